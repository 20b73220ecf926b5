//! Bytes that were read and not used yet, and the lines that they end.

use std::io::{self, ErrorKind, Read};

/// Bytes that are read at once.
const READ_BYTES: usize = 128 << 10;

/// An input with the bytes of it that were read and not used.
#[derive(Debug)]
pub(crate) struct InputBuffer<R> {
    input: R,
    bytes: Vec<u8>,
    /// First byte of `bytes` that was not used.
    begin: usize,
    is_ended: bool,
}

impl<R> InputBuffer<R> {
    pub(crate) const fn new(input: R) -> Self {
        Self {
            input,
            bytes: Vec::new(),
            begin: 0,
            is_ended: false,
        }
    }

    /// Returns the bytes that were not used.
    pub(crate) fn rest(&self) -> &[u8] {
        self.bytes.get(self.begin..).unwrap_or_default()
    }

    /// Uses some of the bytes.
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.begin = (self.begin + bytes).min(self.bytes.len());
    }

    /// Returns true if nothing follows the bytes that were read.
    pub(crate) const fn is_ended(&self) -> bool {
        self.is_ended
    }
}

impl<R: Read> InputBuffer<R> {
    /// Reads more, and returns false if there is no more.
    pub(crate) fn fill(&mut self) -> io::Result<bool> {
        if self.is_ended {
            return Ok(false);
        }
        // What was used goes first, so that the rest is moved once and not at every read.
        self.bytes.drain(..self.begin);
        self.begin = 0;
        let held = self.bytes.len();
        self.bytes.resize(held + READ_BYTES, 0);
        let read = loop {
            match self.input.read(&mut self.bytes[held..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        self.bytes.truncate(held + *read.as_ref().unwrap_or(&0));
        self.is_ended = read? == 0;
        Ok(!self.is_ended)
    }
}

/// A counter of line ends: LF, CR, or both together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LineCounter {
    /// Number of line ends so far.
    pub(crate) ended: u64,
    /// True behind a carriage return: a line feed that follows belongs to the same line end.
    is_half: bool,
}

impl LineCounter {
    pub(crate) const fn new() -> Self {
        Self {
            ended: 0,
            is_half: false,
        }
    }

    /// Counts the line ends of the text that follows.
    pub(crate) fn add(&mut self, text: &[u8]) {
        let (Some(first), Some(last)) = (text.first(), text.last()) else {
            return;
        };
        let mut after = usize::from(self.is_half && *first == b'\n');
        for place in memchr::memchr2_iter(b'\n', b'\r', text) {
            if place < after {
                continue;
            }
            self.ended += 1;
            after = place + 1 + usize::from(text[place] == b'\r' && text.get(place + 1) == Some(&b'\n'));
        }
        self.is_half = *last == b'\r';
    }
}
