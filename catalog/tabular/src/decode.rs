//! Decompression and decoding of a text, as it comes.
//!
//! Invariant: what comes out is UTF-8 that says the same as the bytes; bytes that say nothing in their encoding end the text
//! with an error that names their line.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Decoder, DecoderResult, Encoding};
use flate2::bufread::GzDecoder;

use crate::buffer::LineCounter;
use crate::detect::FileCompression;

/// Greatest window of Zstandard, as a power of two: 128 MiB.
const MAX_WINDOW_LOG: u32 = 27;
/// Bytes that are decoded at once.
const SOURCE_BYTES: usize = 64 << 10;
/// Bytes on each side of a malformed sequence that its error keeps.
const AROUND_BYTES: usize = 40;
/// Bytes of the begin of a file that an encoding is guessed from.
const GUESS_BYTES: usize = 64 << 10;
/// A shorter buffer may not have room for one character.
const LEAST_TARGET: usize = 16;

/// Returns the text of a compressed input.
///
/// # Errors
/// There is no memory for a decoder.
pub fn decompress<'a>(input: impl Read + 'a, compression: FileCompression) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match compression {
        FileCompression::None => Box::new(input),
        FileCompression::Gzip => Box::new(GzipReader::new(input)),
        FileCompression::Zstd => Box::new(zstd_reader(input)?),
    })
}

fn zstd_reader<'a, R: Read + 'a>(input: R) -> io::Result<impl Read + 'a> {
    let mut decoder = zstd::stream::read::Decoder::new(WholeReads(input))?;
    decoder.window_log_max(MAX_WINDOW_LOG)?;
    Ok(decoder)
}

/// Reads as much as was asked for, so that how often its source is read says nothing about how it was cut.
struct WholeReads<R>(R);

impl<R: Read> Read for WholeReads<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut read = 0;
        while read < buffer.len() {
            match self.0.read(&mut buffer[read..]) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }
}

/// A reader of gzip (RFC 1952) with any number of members, and with zeros behind the last one, as tapes leave them.
pub struct GzipReader<R> {
    /// `None` once the text has ended.
    member: Option<GzDecoder<BufReader<WholeReads<R>>>>,
}

impl<R> std::fmt::Debug for GzipReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GzipReader").finish_non_exhaustive()
    }
}

impl<R: Read> GzipReader<R> {
    /// Returns a reader of the text of `input`.
    pub fn new(input: R) -> Self {
        Self {
            member: Some(GzDecoder::new(BufReader::new(WholeReads(input)))),
        }
    }
}

impl<R: Read> Read for GzipReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let Some(member) = self.member.take() else { break };
            let mut input = member.into_inner();
            let is_more = loop {
                let bytes = input.fill_buf()?;
                let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
                let (is_end, is_more) = (bytes.is_empty(), zeros < bytes.len());
                input.consume(zeros);
                if is_end || is_more {
                    break is_more;
                }
            };
            self.member = is_more.then(|| GzDecoder::new(input));
        }
        Ok(0)
    }
}

/// Bytes that are no text in the encoding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is not {encoding}")]
pub struct MalformedText {
    /// Line of the bytes, from 1.
    pub line: u64,
    /// Name of the encoding.
    pub encoding: &'static str,
    /// The bytes with some before and after them.
    pub around: Vec<u8>,
    /// Place of the first wrong byte in `around`.
    pub at: usize,
}

impl MalformedText {
    /// Returns the malformed text that an error of a [`Utf8Reader`] stands for.
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

/// The WHATWG Encoding Standard has no such label.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no encoding of the WHATWG Encoding Standard, such as `windows-1252`")]
pub struct UnknownEncoding(pub String);

/// A reader of a text as UTF-8, without a byte order mark.
pub struct Utf8Reader<R> {
    input: R,
    encoding: &'static Encoding,
    decoder: Decoder,
    source: Vec<u8>,
    /// Part of `source` that was not decoded yet.
    begin: usize,
    end: usize,
    is_ended: bool,
    is_done: bool,
    malformed: Option<MalformedText>,
    lines: LineCounter,
    /// Decoded characters for a buffer that is too short for one.
    left: Vec<u8>,
}

impl<R> std::fmt::Debug for Utf8Reader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Utf8Reader");
        shown
            .field("encoding", &self.encoding.name())
            .field("lines", &self.lines.ended);
        shown.finish_non_exhaustive()
    }
}

impl<R: Read> Utf8Reader<R> {
    /// Returns a reader of `input`, which is in the encoding of this label.
    ///
    /// # Errors
    /// There is no such encoding.
    pub fn new(input: R, label: &str) -> Result<Self, UnknownEncoding> {
        let encoding = Encoding::for_label_no_replacement(label.as_bytes());
        let encoding = encoding.ok_or_else(|| UnknownEncoding(label.to_owned()))?;
        Ok(Self {
            input,
            encoding,
            decoder: encoding.new_decoder_with_bom_removal(),
            source: Vec::new(),
            begin: 0,
            end: 0,
            is_ended: false,
            is_done: false,
            malformed: None,
            lines: LineCounter::new(),
            left: Vec::new(),
        })
    }

    fn fill(&mut self) -> io::Result<()> {
        self.source.resize(SOURCE_BYTES, 0);
        self.begin = 0;
        self.end = 0;
        let read = loop {
            match self.input.read(&mut self.source) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        (self.end, self.is_ended) = (read, read == 0);
        Ok(())
    }

    /// Decodes into a buffer with room for a character; 0 at the end.
    fn decode(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(malformed) = self.malformed.take() {
                self.is_done = true;
                return Err(io::Error::new(ErrorKind::InvalidData, malformed));
            }
            if self.is_done {
                return Ok(0);
            }
            if self.begin == self.end && !self.is_ended {
                self.fill()?;
            }
            let source = &self.source[self.begin..self.end];
            let (result, read, written) =
                self.decoder
                    .decode_to_utf8_without_replacement(source, buffer, self.is_ended);
            self.begin += read;
            self.lines.add(&buffer[..written]);
            match result {
                DecoderResult::InputEmpty => self.is_done = self.is_ended,
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(length, after) => {
                    let wrong = self.begin.saturating_sub(usize::from(length) + usize::from(after));
                    let first = wrong.saturating_sub(AROUND_BYTES);
                    let last = self.end.min(self.begin + AROUND_BYTES);
                    self.malformed = Some(MalformedText {
                        line: self.lines.ended + 1,
                        encoding: self.encoding.name(),
                        around: self.source[first..last].to_vec(),
                        at: wrong - first,
                    });
                }
            }
            if written > 0 {
                return Ok(written);
            }
        }
    }
}

impl<R: Read> Read for Utf8Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left.is_empty() {
            if buffer.len() >= LEAST_TARGET || buffer.is_empty() {
                return if buffer.is_empty() { Ok(0) } else { self.decode(buffer) };
            }
            let mut some = [0; LEAST_TARGET];
            let decoded = self.decode(&mut some)?;
            self.left.extend_from_slice(&some[..decoded]);
        }
        let length = self.left.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(self.left.drain(..length)) {
            *to = from;
        }
        Ok(length)
    }
}

/// Returns the bytes of `text` in the encoding with this label; `None` if there is no such encoding, or if it lacks a
/// character.
pub fn encode<'a>(text: &'a str, label: &str) -> Option<Cow<'a, [u8]>> {
    let encoding = Encoding::for_label_no_replacement(label.as_bytes())?;
    // `Encoding::encode` writes UTF-8 in place of UTF-16 (WHATWG Encoding Standard, section 4.3).
    if encoding == encoding_rs::UTF_16LE {
        return Some(text.encode_utf16().flat_map(u16::to_le_bytes).collect());
    }
    if encoding == encoding_rs::UTF_16BE {
        return Some(text.encode_utf16().flat_map(u16::to_be_bytes).collect());
    }
    let (bytes, _, is_lossy) = encoding.encode(text);
    (!is_lossy).then_some(bytes)
}

/// Returns the byte order mark, which begins a text in UTF-16 (RFC 2781, section 3.2); empty for any other encoding.
pub fn byte_order_mark(label: &str) -> &'static str {
    let is_wide = |encoding: &Encoding| encoding == encoding_rs::UTF_16LE || encoding == encoding_rs::UTF_16BE;
    if Encoding::for_label(label.as_bytes()).is_some_and(is_wide) {
        "\u{feff}"
    } else {
        ""
    }
}

/// The encoding that a text may be in, to be offered to a person: it is never taken without being asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodingOffer {
    /// Label of the encoding.
    pub label: String,
    /// The word that is malformed, as the encoding reads it.
    pub word: String,
}

/// Returns an encoding in which `malformed` is text, guessed from the begin of the file.
pub fn offer_encoding(begin: &[u8], malformed: &MalformedText) -> Option<EncodingOffer> {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(&begin[..begin.len().min(GUESS_BYTES)], false);
    detector.feed(&malformed.around, true);
    let encoding = detector.guess(None, Utf8Detection::Deny);
    let (before, rest) = malformed.around.split_at_checked(malformed.at)?;
    let text = |bytes: &[u8]| encoding.decode_without_bom_handling(bytes).0.into_owned();
    let (before, rest) = (text(before), text(rest));
    let is_of_word = |character: &char| character.is_alphanumeric();
    let head: Vec<char> = before.chars().rev().take_while(is_of_word).collect();
    let tail = rest.chars().take_while(is_of_word);
    let word: String = head.into_iter().rev().chain(tail).collect();
    (!word.is_empty()).then(|| EncodingOffer {
        label: encoding.name().to_ascii_lowercase(),
        word,
    })
}

#[cfg(test)]
mod tests;
