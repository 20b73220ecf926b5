//! Splitting the bytes of an upload into chunks of whole lines, or of the records that its reading says.
//!
//! Invariant: every line, or record, is in one chunk, in order, with its number; no more is held than a chunk and a record,
//! and one that is too long is passed over without being held.

use std::borrow::Cow;
use std::io::{self, Cursor, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tabular::decode::{MalformedText, Utf8Reader, decompress};
use tabular::detect::FileCompression;
use tabular::frame::{FrameError, RecordReader};
use tabular::reading::{Reading, TextCompression};

use uploads::Compression;

/// Bytes of lines of a chunk, roughly; and of the names that its records get.
const CHUNK: usize = 1 << 20;
/// Maximum number of values in a chunk, counted with all fields of the contract: a short line may become a record of a
/// thousand times its size.
const CHUNK_VALUES: usize = 1 << 16;
/// The longest line: what a whole batch of records may have.
pub(crate) const MAX_LINE_BYTES: usize = 4 << 20;
/// Maximum number of bytes of a compressed upload, decompressed.
pub(crate) const MOST_TEXT: u64 = 20 << 30;
/// Maximum number of bytes for each compressed byte, once more than [`UNSUSPECTED`] have come.
pub(crate) const MOST_RATIO: u64 = 100;
pub(crate) const UNSUSPECTED: u64 = 64 << 20;
/// Maximum number of lines: each has a number, in verdicts too.
const MOST_LINES: u64 = u32::MAX as u64;
/// Maximum number of bytes of a message about a file. A reading may have long names.
const MOST_WORDS: usize = 500;
/// First bytes of a gzip stream (RFC 1952 section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// U+FEFF as UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Lines, or records, that follow each other.
#[derive(Debug)]
pub(crate) struct LineChunk {
    /// Its place among the chunks, from 0.
    pub(crate) number: u64,
    /// Index of the first line in the file, or of the first record, from 0.
    pub(crate) first: u64,
    /// Number of its lines, or records.
    pub(crate) lines: usize,
    /// The lines with their ends, or the records one after the other.
    pub(crate) text: Vec<u8>,
    /// True if it has no lines and stands for one line that is too long.
    pub(crate) too_long: bool,
    /// The records, unless each line is one.
    pub(crate) records: Option<Vec<ChunkRecord>>,
    /// Bytes that were read of a compressed upload by now. It is said here, because every try must decide alike.
    pub(crate) read: Option<u64>,
}

/// One record of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkRecord {
    /// Its end in the text of the chunk. It begins where the one before it ends.
    pub(crate) end: usize,
    /// Line on which it begins, from 1.
    pub(crate) line: u64,
    /// True if it is too long, and only its begin is there.
    pub(crate) is_too_long: bool,
}

/// Properties of an upload that say how it is split.
#[derive(Clone, Debug)]
pub(crate) struct SplitPlan {
    /// Compression of the upload.
    pub(crate) compression: Compression,
    /// The reading; `None` if every line is a record of the contract.
    pub(crate) reading: Option<Arc<Reading>>,
    /// True if chunks have records also where each line is one.
    pub(crate) is_by_record: bool,
    /// Number of fields of a record.
    pub(crate) fields: usize,
    /// Bytes of the names that every record gets.
    pub(crate) name_bytes: usize,
}

/// Reason for which an upload cannot be cut to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SplitError {
    /// Its bytes cannot be read as lines; for the contributor.
    #[error("{message}")]
    Unreadable {
        code: &'static str,
        message: Cow<'static, str>,
    },
    /// Its bytes could not be read; the reason is known elsewhere.
    #[error("the bytes of an upload could not be read")]
    Source,
    /// Nobody takes the chunks any more.
    #[error("the chunks are not wanted")]
    Unwanted,
}

const fn unreadable(code: &'static str, message: &'static str) -> SplitError {
    SplitError::Unreadable {
        code,
        message: Cow::Borrowed(message),
    }
}

/// Returns the error of a file that ends here, by words that name its line.
fn broken(code: &'static str, mut message: String) -> SplitError {
    message.truncate(message.floor_char_boundary(MOST_WORDS));
    SplitError::Unreadable {
        code,
        message: Cow::Owned(message),
    }
}

/// An error of the source, as [`Read`] tells it.
#[derive(Debug, thiserror::Error)]
#[error("the source of the bytes failed")]
pub(crate) struct SourceFailed;

#[derive(Debug, thiserror::Error)]
#[error("it comes to more bytes than it may")]
struct DecompressionBomb;

/// Decompresses `input` and splits it into chunks. Calls `emit` with each chunk until it returns that it wants no more.
pub(crate) fn split(input: impl Read, plan: &SplitPlan, emit: impl FnMut(LineChunk) -> bool) -> Result<(), SplitError> {
    let zstd = plan.reading.as_ref().and_then(|reading| reading.compression);
    let (name, compression) = match (plan.compression, zstd) {
        (Compression::Gzip, _) => ("gzip", FileCompression::Gzip),
        (Compression::None, Some(TextCompression::Zstd)) => ("zstd", FileCompression::Zstd),
        (Compression::None, None) => ("", FileCompression::None),
    };
    let ended = if compression == FileCompression::None {
        split_text(input, plan, None, emit)
    } else {
        let read = Arc::new(AtomicU64::new(0));
        let counted = CountedReader {
            input,
            read: Arc::clone(&read),
        };
        decompress(counted, compression)
            .map_err(BrokenSource::Io)
            .and_then(|decoder| {
                let bounded = BoundedReader {
                    decoder,
                    read: Arc::clone(&read),
                    written: 0,
                };
                split_text(bounded, plan, Some(&read), emit)
            })
    };
    ended.map_err(|error| match error {
        BrokenSource::Unwanted => SplitError::Unwanted,
        BrokenSource::Content(error) => error,
        BrokenSource::Io(error) if is::<SourceFailed>(&error) => SplitError::Source,
        BrokenSource::Io(error) if is::<DecompressionBomb>(&error) => SplitError::Unreadable {
            code: if name == "zstd" { "zstd_bomb" } else { "gzip_bomb" },
            message: format!("the {name} stream comes to more than 20 GiB, or to more than 100 times its size").into(),
        },
        BrokenSource::Io(_) => SplitError::Unreadable {
            code: if name == "zstd" { "zstd_damaged" } else { "gzip_damaged" },
            message: format!("the {name} stream is cut off or damaged").into(),
        },
    })
}

/// Splits a text that is not compressed. `read` counts the bytes of its source, if that is compressed.
fn split_text(
    input: impl Read,
    plan: &SplitPlan,
    read: Option<&AtomicU64>,
    emit: impl FnMut(LineChunk) -> bool,
) -> Result<(), BrokenSource> {
    let most = (CHUNK_VALUES / plan.fields.max(1)).max(1);
    let Some(reading) = &plan.reading else {
        return LineSplitter::default().run(input, most, emit);
    };
    let mut input = input;
    let mut begin = Vec::new();
    input.by_ref().take(GZIP.len() as u64).read_to_end(&mut begin)?;
    if begin == GZIP {
        return Err(BrokenSource::Content(GZIP_UNEXPECTED));
    }
    let input = Cursor::new(begin).chain(input);
    let text = Utf8Reader::new(input, &reading.encoding)
        .map_err(|error| BrokenSource::Content(broken("unknown_encoding", error.to_string())))?;
    if reading.is_plain_lines() && !plan.is_by_record {
        return LineSplitter::default().run(text, most, emit);
    }
    let records = RecordReader::new(text, reading)
        .map_err(|error| BrokenSource::Content(broken("reading_unfit", error.to_string())))?;
    let most = most.min((CHUNK / plan.name_bytes.max(1)).max(1));
    split_records(records, most, read, emit)
}

/// Cuts records into chunks of at most `most`.
fn split_records(
    mut reader: RecordReader<impl Read>,
    most: usize,
    read: Option<&AtomicU64>,
    mut emit: impl FnMut(LineChunk) -> bool,
) -> Result<(), BrokenSource> {
    let (mut number, mut first) = (0, 0);
    loop {
        let mut text = Vec::with_capacity(CHUNK + CHUNK / 4);
        let mut records = Vec::new();
        let mut is_end = false;
        while text.len() < CHUNK && records.len() < most {
            let before = text.len();
            let Some(record) = reader.read(&mut text)? else {
                is_end = true;
                break;
            };
            // Its begin says nothing that is needed.
            if record.is_too_long {
                text.truncate(before);
            }
            records.push(ChunkRecord {
                end: text.len(),
                line: record.line,
                is_too_long: record.is_too_long,
            });
        }
        let lines = records.len();
        let chunk = LineChunk {
            number,
            first,
            lines,
            text,
            too_long: false,
            records: Some(records),
            read: read.map(|read| read.load(Ordering::Relaxed)),
        };
        if lines > 0 && !emit(chunk) {
            return Err(BrokenSource::Unwanted);
        }
        number += 1;
        first += lines as u64;
        if first > MOST_LINES {
            return Err(BrokenSource::Content(unreadable(
                "too_many_lines",
                "it has more than 4,294,967,295 records",
            )));
        }
        if is_end {
            return Ok(());
        }
    }
}

/// A file that is compressed, though nobody said so.
const GZIP_UNEXPECTED: SplitError = unreadable(
    "gzip_unexpected",
    "the lines begin like gzip: it is compressed twice, or its compression was not declared",
);

impl From<FrameError> for BrokenSource {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Io(error) => Self::from(error),
            error => Self::Content(broken(error.code(), error.to_string())),
        }
    }
}

fn is<E: std::error::Error + 'static>(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(<dyn std::error::Error + Send + Sync>::is::<E>)
}

enum BrokenSource {
    Unwanted,
    Content(SplitError),
    Io(io::Error),
}

impl From<io::Error> for BrokenSource {
    fn from(error: io::Error) -> Self {
        match MalformedText::of(&error) {
            Some(malformed) => Self::Content(broken(
                "malformed_text",
                format!("{malformed}: name its encoding in the reading"),
            )),
            None => Self::Io(error),
        }
    }
}

/// Reads one more chunk, or to the end; returns true at the end.
fn fill(input: &mut impl Read, held: &mut Vec<u8>) -> io::Result<bool> {
    let wanted = held.len() + CHUNK;
    let missing = wanted - held.len();
    // `take` with `read_to_end` appends to the vector without filling it with zeros first.
    let read = input.by_ref().take(missing as u64).read_to_end(held);
    match read {
        Ok(read) => Ok(read < missing),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(false),
        Err(error) => Err(error),
    }
}

#[derive(Default)]
struct LineSplitter {
    begun: bool,
    /// True while the rest of a line that is too long is passed over.
    passing: bool,
    chunks: u64,
    lines: u64,
}

impl LineSplitter {
    /// Cuts into chunks of at most `most` lines.
    fn run(
        mut self,
        mut input: impl Read,
        most: usize,
        mut emit: impl FnMut(LineChunk) -> bool,
    ) -> Result<(), BrokenSource> {
        let mut held = Vec::with_capacity(CHUNK + CHUNK / 4);
        loop {
            let end = fill(&mut input, &mut held)?;
            if !self.begun {
                self.begun = true;
                if held.starts_with(&GZIP) {
                    return Err(BrokenSource::Content(GZIP_UNEXPECTED));
                }
                // A JSON text must not begin with the mark (RFC 8259 section 8.1), and a reader may
                // ignore it there.
                if held.starts_with(MARK) {
                    held.drain(..MARK.len());
                }
            }
            if self.passing {
                match memchr::memchr(b'\n', &held) {
                    Some(end) => {
                        held.drain(..=end);
                        self.passing = false;
                    }
                    None => held.clear(),
                }
            }
            let complete = if end {
                held.len()
            } else {
                memchr::memrchr(b'\n', &held).map_or(0, |last| last + 1)
            };
            if complete > 0 {
                // The rest is copied and the chunk keeps the allocation: the rest is one cut line, the
                // chunk a megabyte.
                let mut rest = Vec::with_capacity(CHUNK + CHUNK / 4);
                rest.extend_from_slice(&held[complete..]);
                held.truncate(complete);
                if !self.chunks(std::mem::replace(&mut held, rest), most, &mut emit) {
                    return Err(BrokenSource::Unwanted);
                }
            // The part of the line that is held is dropped at once, since nothing will read it.
            } else if held.len() > MAX_LINE_BYTES {
                held.clear();
                self.passing = true;
                if !emit(self.long_line()) {
                    return Err(BrokenSource::Unwanted);
                }
            }
            if self.lines > MOST_LINES {
                return Err(BrokenSource::Content(unreadable(
                    "too_many_lines",
                    "it has more than 4,294,967,295 lines, empty ones counted in",
                )));
            }
            if end {
                return Ok(());
            }
        }
    }

    /// Hands on whole lines, of which there are some, at most `most` at once; returns false if no more are wanted.
    fn chunks(&mut self, text: Vec<u8>, most: usize, mut emit: impl FnMut(LineChunk) -> bool) -> bool {
        let ended = memchr::memchr_iter(b'\n', &text).count();
        let lines = ended + usize::from(text.last().is_some_and(|last| *last != b'\n'));
        if lines <= most {
            return emit(self.next(text, lines, false));
        }
        let (mut rest, mut left) = (&text[..], lines);
        while left > 0 {
            let end = memchr::memchr_iter(b'\n', rest).nth(most - 1);
            let (chunk, after) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
            if !emit(self.next(chunk.to_vec(), left.min(most), false)) {
                return false;
            }
            rest = after;
            left = left.saturating_sub(most);
        }
        true
    }

    fn long_line(&mut self) -> LineChunk {
        self.next(Vec::new(), 1, true)
    }

    fn next(&mut self, text: Vec<u8>, lines: usize, too_long: bool) -> LineChunk {
        let chunk = LineChunk {
            number: self.chunks,
            first: self.lines,
            lines,
            text,
            too_long,
            records: None,
            read: None,
        };
        self.chunks += 1;
        self.lines += lines as u64;
        chunk
    }
}

/// Counts what is read.
struct CountedReader<R> {
    input: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for CountedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Decompresses as far as is decent.
struct BoundedReader<R> {
    decoder: R,
    read: Arc<AtomicU64>,
    written: u64,
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let written = self.decoder.read(buffer)?;
        self.written += written as u64;
        let read = self.read.load(Ordering::Relaxed);
        // Small files of one repeated line compress better than the ratio allows, and harm nobody. So
        // only the bytes beyond a first amount are held against their source.
        let suspect = self.written > UNSUSPECTED && self.written > read.saturating_mul(MOST_RATIO);
        if suspect || self.written > MOST_TEXT {
            return Err(io::Error::other(DecompressionBomb));
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests;
