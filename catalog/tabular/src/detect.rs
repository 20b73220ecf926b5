//! Form of a file, by its bytes alone. Names of files are never looked at.
//!
//! Invariant: what is not read is named, with the way to something that is.

use std::io::Read as _;

use memchr::memmem;
use serde::{Deserialize, Serialize};

use crate::decode::{Utf8Reader, decompress};

/// Bytes of the begin of a file that [`detect`] is made for.
pub const DETECT_BYTES: usize = 1 << 20;
/// Bytes in which zeros are counted.
const PARITY_BYTES: usize = 4 << 10;
/// Zeros in [`PARITY_BYTES`] beyond which a file is no text.
const MOST_ZEROS: usize = 8;
/// Other control characters in [`PARITY_BYTES`] beyond which a file is no text.
const MOST_CONTROLS: usize = 8;
/// Different control characters up to which they are taken for the delimiters of a text.
const MOST_CONTROL_KINDS: u32 = 3;
/// Place of the sign of a tar archive (POSIX).
const TAR_SIGN: std::ops::Range<usize> = 257..262;

/// Compression of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileCompression {
    /// There is none.
    #[default]
    None,
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
}

/// Form of a file that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// Text with cells between delimiters.
    Delimited,
    /// A JSON object a line.
    JsonLines,
    /// JSON documents.
    JsonDocument,
    /// Apache Parquet.
    Parquet,
    /// An Arrow IPC file, which Feather 2 is.
    ArrowFile,
    /// An Arrow IPC stream.
    ArrowStream,
    /// An Office Open XML workbook.
    Xlsx,
}

impl FileKind {
    /// Returns true if the file is text.
    pub const fn is_text(self) -> bool {
        matches!(self, Self::Delimited | Self::JsonLines | Self::JsonDocument)
    }
}

/// Form, compression and encoding of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detected {
    /// Its compression.
    pub compression: FileCompression,
    /// Label of its encoding, as its byte order mark or its zeros say; `utf-8` otherwise.
    pub encoding: &'static str,
    /// Its form, within the compression.
    pub kind: FileKind,
}

/// A file that is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {remedy}")]
pub struct Unreadable {
    /// Code of the reason: `compressed_twice`, `zip`, `empty`, `not_objects`, `binary` and so on.
    pub code: &'static str,
    /// Description of the file, such as "it is a PDF document". May name a file of an archive, which is text of others.
    pub problem: String,
    /// Remedy. `FILE` stands for the name of the file.
    pub remedy: String,
}

fn unreadable<T>(code: &'static str, problem: impl Into<String>, remedy: impl Into<String>) -> Result<T, Unreadable> {
    Err(Unreadable {
        code,
        problem: problem.into(),
        remedy: remedy.into(),
    })
}

/// Signs of files that are refused by name: first bytes, code, problem, remedy.
const REFUSED: [(&[u8], &str, &str, &str); 12] = [
    (
        b"BZh",
        "bzip2",
        "it is compressed with bzip2",
        "decompress it first: `bunzip2 -k FILE`",
    ),
    (
        b"\xfd7zXZ\x00",
        "xz",
        "it is compressed with xz",
        "decompress it first: `unxz -k FILE`",
    ),
    (
        b"\xd0\xcf\x11\xe0",
        "old_office",
        "it is a document of an older Office, such as `.xls`",
        "save it as `.xlsx` or as CSV",
    ),
    (
        b"FEA1",
        "feather_1",
        "it is a Feather file of version 1",
        "write it as Parquet or as Feather 2",
    ),
    (
        b"Obj\x01",
        "avro",
        "it is an Avro file",
        "write it as Parquet or as JSON Lines",
    ),
    (b"ORC", "orc", "it is an ORC file", "write it as Parquet"),
    (
        b"SQLite format 3\x00",
        "sqlite",
        "it is an SQLite database",
        "export a table: `sqlite3 -csv -header FILE 'SELECT * FROM …'`",
    ),
    (
        b"%PDF",
        "pdf",
        "it is a PDF document",
        "take the table that it was made from",
    ),
    (b"\x89PNG", "image", "it is an image", "take the table that it shows"),
    (
        b"\xff\xd8\xff",
        "image",
        "it is an image",
        "take the table that it shows",
    ),
    (b"GIF8", "image", "it is an image", "take the table that it shows"),
    (
        b"version https://git-lfs",
        "lfs_pointer",
        "it is a pointer of Git LFS and not the file itself",
        "fetch the file: `git lfs pull`",
    ),
];

/// Says what a file is by its first bytes: [`DETECT_BYTES`] of them, or the whole file.
///
/// # Errors
/// It is nothing that is read.
pub fn detect(begin: &[u8]) -> Result<Detected, Unreadable> {
    let compression = compression(begin);
    if compression == FileCompression::None {
        return content(begin, begin.len() < DETECT_BYTES, compression);
    }
    let mut text = Vec::new();
    let read =
        decompress(begin, compression).and_then(|decoder| decoder.take(DETECT_BYTES as u64).read_to_end(&mut text));
    // The begin of a file may end anywhere, which looks like damage.
    let is_whole = read.is_ok() && text.len() < DETECT_BYTES;
    if read.is_err() && text.is_empty() {
        let problem = "it begins like a compressed file, and is damaged";
        return unreadable("damaged", problem, "fetch or make it again");
    }
    if self::compression(&text) != FileCompression::None {
        return unreadable("compressed_twice", "it is compressed twice", "decompress it once");
    }
    content(&text, is_whole, compression)
}

fn compression(begin: &[u8]) -> FileCompression {
    match begin {
        [0x1f, 0x8b, ..] => FileCompression::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => FileCompression::Zstd,
        _ => FileCompression::None,
    }
}

fn content(begin: &[u8], is_whole: bool, compression: FileCompression) -> Result<Detected, Unreadable> {
    let found = |kind, encoding| {
        Ok(Detected {
            compression,
            encoding,
            kind,
        })
    };
    for (sign, code, problem, remedy) in REFUSED {
        if begin.starts_with(sign) {
            return unreadable(code, problem, remedy);
        }
    }
    if begin.get(TAR_SIGN) == Some(b"ustar") {
        return unreadable("tar", "it is a tar archive", "unpack it first: `tar -xf FILE`");
    }
    match begin {
        [b'P', b'A', b'R', b'1', ..] => return found(FileKind::Parquet, "utf-8"),
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => return found(FileKind::ArrowFile, "utf-8"),
        [0xff, 0xff, 0xff, 0xff, _, _, _, _, ..] => return found(FileKind::ArrowStream, "utf-8"),
        [b'P', b'K', 3, 4, ..] if memmem::find(begin, b"xl/workbook.xml").is_some() => {
            return found(FileKind::Xlsx, "utf-8");
        }
        [b'P', b'K', 3..=8, 4..=9, ..] => return zip(begin),
        _ => {}
    }
    let encoding = encoding(begin)?;
    let mut text = Vec::new();
    if let Ok(decoder) = Utf8Reader::new(begin, encoding) {
        // A text that is malformed further on is read up to there: its line is told when it is read whole.
        let read = decoder.take(DETECT_BYTES as u64).read_to_end(&mut text);
        if read.is_err() && text.is_empty() {
            text.extend_from_slice(begin);
        }
    }
    found(text_kind(&text, is_whole)?, encoding)
}

fn zip(begin: &[u8]) -> Result<Detected, Unreadable> {
    // APPNOTE 4.3.7: the length of the name at 26, the name at 30.
    let length = begin
        .get(26..28)
        .map_or(0, |length| usize::from(length[0]) | usize::from(length[1]) << 8);
    let name = begin.get(30..30 + length).map(String::from_utf8_lossy);
    let problem = match name {
        Some(name) if !name.is_empty() => format!("it is a ZIP archive with the file `{name}`"),
        _ => "it is a ZIP archive".to_owned(),
    };
    unreadable(
        "zip",
        problem,
        "unpack it, or: `unzip -p FILE | sluice push - --create`",
    )
}

/// Returns the label of the encoding that the first bytes show.
fn encoding(begin: &[u8]) -> Result<&'static str, Unreadable> {
    match begin {
        [0xff, 0xfe, ..] => return Ok("utf-16le"),
        [0xfe, 0xff, ..] => return Ok("utf-16be"),
        _ => {}
    }
    let begin = &begin[..begin.len().min(PARITY_BYTES)];
    let zeros = |parity: usize| begin.iter().skip(parity).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd) = (zeros(0), zeros(1));
    // Of text in UTF-16, most characters have a zero in the same half.
    let is_most = |zeros: usize| zeros * 4 > begin.len();
    match (even, odd) {
        (0, odd) if is_most(odd) => Ok("utf-16le"),
        (even, 0) if is_most(even) => Ok("utf-16be"),
        _ if even + odd > MOST_ZEROS || has_controls(begin) => unreadable(
            "binary",
            "it is a binary file of a format that is not known",
            "send CSV, JSON, JSON Lines, Parquet, Arrow or XLSX",
        ),
        _ => Ok("utf-8"),
    }
}

/// Returns true for bytes with more control characters than a text has. Tabs, line ends, form feeds and the escapes of
/// ISO/IEC 2022 do not count.
fn has_controls(begin: &[u8]) -> bool {
    let is_control = |byte: u8| matches!(byte, 1..=8 | 0x0e..=0x1a | 0x1c..=0x1f);
    let controls = begin.iter().filter(|byte| is_control(**byte));
    let (count, kinds) = controls.fold((0, 0_u32), |(count, kinds), byte| (count + 1, kinds | 1 << byte));
    count > MOST_CONTROLS && kinds.count_ones() > MOST_CONTROL_KINDS
}

fn text_kind(text: &[u8], is_whole: bool) -> Result<FileKind, Unreadable> {
    let text = text.trim_ascii_start();
    match text {
        [] if is_whole => unreadable("empty", "it is empty", "send a file with records"),
        [b'<', ..] => markup(text),
        [b'{', ..] => Ok(object_kind(text, is_whole)),
        [b'[', rest @ ..] => match rest.trim_ascii_start() {
            [b'{' | b']', ..] | [] => Ok(FileKind::JsonDocument),
            _ if is_json(text, is_whole) => unreadable(
                "not_objects",
                "it is JSON, and its records are no objects",
                "records must be objects: give each value a name",
            ),
            // A cell may begin with a bracket.
            _ => Ok(FileKind::Delimited),
        },
        _ => Ok(FileKind::Delimited),
    }
}

/// Returns true if the first line, or the whole text, is JSON as far as it goes.
fn is_json(text: &[u8], is_whole: bool) -> bool {
    let parsed = |text: &[u8], is_whole: bool| {
        let mut values = serde_json::Deserializer::from_slice(text).into_iter::<serde::de::IgnoredAny>();
        match values.next() {
            Some(Ok(_)) => true,
            Some(Err(error)) => error.is_eof() && !is_whole,
            None => false,
        }
    };
    parsed(text, is_whole)
}

fn object_kind(text: &[u8], is_whole: bool) -> FileKind {
    let Some(end) = memchr::memchr(b'\n', text) else {
        return FileKind::JsonDocument;
    };
    let (line, rest) = text.split_at(end);
    let is_object = serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
    // The only line of a file is a document: the answer of an API mostly is written so, with its records within.
    let is_more = !rest.trim_ascii_start().is_empty() || !is_whole;
    if is_object && is_more {
        FileKind::JsonLines
    } else {
        FileKind::JsonDocument
    }
}

fn markup(text: &[u8]) -> Result<FileKind, Unreadable> {
    let begin = text[..text.len().min(PARITY_BYTES)].to_ascii_lowercase();
    let has = |sign: &[u8]| memmem::find(&begin, sign).is_some();
    if has(b"<!doctype html") || has(b"<html") {
        let problem = "it is a web page, perhaps an error page that was saved";
        return unreadable("html", problem, "fetch the file itself");
    }
    let remedy = "save it as CSV, or as `.xlsx` if a spreadsheet wrote it";
    unreadable("xml", "it is XML", remedy)
}

#[cfg(test)]
mod tests;
