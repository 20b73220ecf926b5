//! JSON documents: the records of an array or of an object, or objects that follow each other.
//!
//! Invariant: one record is held at a time; what lies beside the records is passed over without being held. What is passed
//! over is checked for its brackets and quotes only, and a record by whoever reads it.

use std::io::{self, Read};

use super::{FrameError, FramePlace, MAX_RECORD_BYTES};
use crate::buffer::{InputBuffer, LineCounter};
use crate::reading::Reading;

#[derive(Debug)]
pub(super) struct JsonFrames<R> {
    input: JsonInput<R>,
    /// The pointer, token by token.
    pointer: Vec<String>,
    /// True if the records are the members of an object.
    has_names: bool,
    place: JsonPlace,
    /// For each token of the pointer, true if its container is an object.
    levels: Vec<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JsonPlace {
    /// Before the document.
    Begin,
    /// Between documents.
    Between,
    /// In the array or object of the records; true before the first one.
    Within(bool),
    /// Behind the records.
    Behind,
    End,
}

#[derive(Debug)]
struct JsonInput<R> {
    input: InputBuffer<R>,
    lines: LineCounter,
}

impl<R: Read> JsonInput<R> {
    /// Returns the line of the next byte, from 1.
    const fn line(&self) -> u64 {
        self.lines.ended + 1
    }

    fn fail<T>(&self, problem: impl Into<String>) -> Result<T, FrameError> {
        Err(FrameError::Json {
            line: self.line(),
            problem: problem.into(),
        })
    }

    /// Uses some of the bytes that were read.
    fn consume(&mut self, bytes: usize) {
        self.lines.add(&self.input.rest()[..bytes]);
        self.input.consume(bytes);
    }

    /// Returns the next byte that is no blank, which is not used yet.
    fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            let rest = self.input.rest();
            let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
            if let Some(place) = rest.iter().position(is_text) {
                let found = rest[place];
                self.consume(place);
                return Ok(Some(found));
            }
            let blanks = rest.len();
            self.consume(blanks);
            if !self.input.fill()? {
                return Ok(None);
            }
        }
    }

    /// Uses the next byte if it is this one.
    fn take(&mut self, wanted: u8) -> io::Result<bool> {
        let is_it = self.peek()? == Some(wanted);
        if is_it {
            self.consume(1);
        }
        Ok(is_it)
    }

    /// Passes over the value that begins here, and appends it to `text`, if there is one, up to the most of a record.
    /// Returns true if it is longer.
    fn value(&mut self, mut text: Option<&mut Vec<u8>>) -> Result<bool, FrameError> {
        let line = self.line();
        let mut scan = ValueScan::default();
        let mut left = MAX_RECORD_BYTES;
        let mut is_too_long = false;
        loop {
            let rest = self.input.rest();
            let end = scan.scan(rest);
            let piece = end.unwrap_or(rest.len());
            if let Some(text) = &mut text {
                let kept = piece.min(left);
                text.extend_from_slice(&rest[..kept]);
                left -= kept;
                is_too_long |= kept < piece;
            }
            self.consume(piece);
            if end.is_some() {
                return Ok(is_too_long);
            }
            if !self.input.fill()? {
                if scan.is_whole_at_end() {
                    return Ok(is_too_long);
                }
                let problem = "the value that begins here never ends".to_owned();
                return Err(FrameError::Json { line, problem });
            }
        }
    }

    /// Reads the name of a member and the colon behind it, and appends the name as it stands in the file.
    fn name(&mut self, text: &mut Vec<u8>) -> Result<(), FrameError> {
        if self.peek()? != Some(b'"') {
            return self.fail("expected the name of a member, in quotes");
        }
        if self.value(Some(text))? {
            return self.fail(format!("the name of a member has more than {MAX_RECORD_BYTES} bytes"));
        }
        if !self.take(b':')? {
            return self.fail("expected `:` behind the name of a member");
        }
        Ok(())
    }
}

/// The search for the end of a value.
#[derive(Debug, Default)]
pub(crate) struct ValueScan {
    depth: usize,
    is_begun: bool,
    is_text: bool,
    is_escaped: bool,
}

impl ValueScan {
    /// Returns the length of the rest of the value, if it ends in this piece.
    pub(crate) fn scan(&mut self, piece: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(rest) = piece.get(at..).filter(|rest| !rest.is_empty()) {
            if self.is_escaped {
                self.is_escaped = false;
                at += 1;
            } else if self.is_text {
                let found = memchr::memchr2(b'"', b'\\', rest)?;
                at += found + 1;
                if rest[found] == b'\\' {
                    self.is_escaped = true;
                } else {
                    self.is_text = false;
                    if self.depth == 0 {
                        return Some(at);
                    }
                }
            } else {
                let is_sign = |byte: &u8| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']');
                let ends_scalar =
                    |byte: &u8| matches!(byte, b',' | b' ' | b'\t' | b'\n' | b'\r' | b':') || is_sign(byte);
                let found = if self.depth > 0 {
                    rest.iter().position(is_sign)
                } else {
                    rest.iter().position(ends_scalar)
                };
                let Some(found) = found else {
                    self.is_begun = true;
                    return None;
                };
                if self.depth == 0 && (self.is_begun || found > 0) {
                    // A number or a word ends before the next sign.
                    return Some(at + found);
                }
                at += found + 1;
                self.is_begun = true;
                match rest[found] {
                    b'"' => self.is_text = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' if self.depth > 0 => {
                        self.depth -= 1;
                        if self.depth == 0 {
                            return Some(at);
                        }
                    }
                    // No value begins with this sign, and the one byte stands for what is wrong.
                    _ => return Some(at),
                }
            }
        }
        None
    }

    /// Returns true if the end of the file ends the value.
    pub(crate) const fn is_whole_at_end(&self) -> bool {
        self.depth == 0 && !self.is_text && !self.is_escaped
    }
}

impl<R: Read> JsonFrames<R> {
    pub(super) fn new(input: R, reading: &Reading) -> Self {
        let tokens = reading.records.split('/').skip(1);
        Self {
            input: JsonInput {
                input: InputBuffer::new(input),
                lines: LineCounter::new(),
            },
            pointer: tokens
                .map(|token| token.replace("~1", "/").replace("~0", "~"))
                .collect(),
            has_names: reading.members.is_some(),
            place: JsonPlace::Begin,
            levels: Vec::new(),
        }
    }

    pub(super) fn read(&mut self, text: &mut Vec<u8>) -> Result<Option<FramePlace>, FrameError> {
        loop {
            match self.place {
                JsonPlace::Begin => {
                    if !self.pointer.is_empty() {
                        self.descend()?;
                    }
                    self.place = JsonPlace::Between;
                }
                JsonPlace::Between => match self.input.peek()? {
                    None if self.levels.is_empty() => self.place = JsonPlace::End,
                    Some(b'{') if !self.has_names => {
                        self.place = self.behind();
                        return self.record(text).map(Some);
                    }
                    Some(b'[') if !self.has_names => self.enter(),
                    Some(b'{') => self.enter(),
                    _ if self.has_names => return self.input.fail("expected an object whose members are the records"),
                    _ => return self.input.fail("expected an object, or an array of objects"),
                },
                JsonPlace::Within(is_first) => {
                    if self.input.take(if self.has_names { b'}' } else { b']' })? {
                        self.place = self.behind();
                        continue;
                    }
                    if !is_first && !self.input.take(b',')? {
                        return self.input.fail("expected `,` or the end of the records");
                    }
                    self.place = JsonPlace::Within(false);
                    return self.record(text).map(Some);
                }
                JsonPlace::Behind => {
                    self.ascend()?;
                    self.place = JsonPlace::End;
                }
                JsonPlace::End => return Ok(None),
            }
        }
    }

    fn enter(&mut self) {
        self.input.consume(1);
        self.place = JsonPlace::Within(true);
    }

    /// Returns the place behind the records.
    const fn behind(&self) -> JsonPlace {
        if self.levels.is_empty() {
            JsonPlace::Between
        } else {
            JsonPlace::Behind
        }
    }

    /// Reads the record that begins here, with its name if it has one.
    fn record(&mut self, text: &mut Vec<u8>) -> Result<FramePlace, FrameError> {
        // Blanks are passed over first, since they may have line ends.
        let next = self.input.peek()?;
        let line = self.input.line();
        if self.has_names && matches!(self.place, JsonPlace::Within(_)) {
            self.input.name(text)?;
            text.push(b':');
        }
        let next = if self.has_names { self.input.peek()? } else { next };
        if matches!(next, None | Some(b',' | b']' | b'}' | b':')) {
            return self.input.fail("expected a value");
        }
        let is_too_long = self.input.value(Some(text))?;
        Ok(FramePlace { line, is_too_long })
    }

    /// Goes to the value that the pointer names.
    fn descend(&mut self) -> Result<(), FrameError> {
        for level in 0..self.pointer.len() {
            let is_object = match self.input.peek()? {
                Some(b'{') => true,
                Some(b'[') => false,
                _ => return self.missing(),
            };
            self.input.consume(1);
            self.levels.push(is_object);
            let index = self.pointer[level].parse::<u64>().ok();
            let mut passed = 0;
            loop {
                if self.input.take(if is_object { b'}' } else { b']' })? {
                    return self.missing();
                }
                if passed > 0 && !self.input.take(b',')? {
                    return self.input.fail("expected `,`");
                }
                let is_it = if is_object {
                    self.is_name(level)?
                } else {
                    index == Some(passed)
                };
                if is_it {
                    break;
                }
                self.pass_value()?;
                passed += 1;
            }
        }
        Ok(())
    }

    /// Goes to the end of the document. A second value of the same name would be records that are left out.
    fn ascend(&mut self) -> Result<(), FrameError> {
        for level in (0..self.levels.len()).rev() {
            let is_object = self.levels[level];
            while !self.input.take(if is_object { b'}' } else { b']' })? {
                if !self.input.take(b',')? {
                    return self.input.fail("expected `,` or the end of the document");
                }
                if is_object && self.is_name(level)? {
                    return self.input.fail("the member that has the records comes a second time");
                }
                self.pass_value()?;
            }
        }
        match self.input.peek()? {
            None => Ok(()),
            Some(_) => self.input.fail("text follows the end of the document"),
        }
    }

    /// Reads a name and returns true if it is the one that the pointer has on this level.
    fn is_name(&mut self, level: usize) -> Result<bool, FrameError> {
        let mut raw = Vec::new();
        self.input.name(&mut raw)?;
        match serde_json::from_slice::<String>(&raw) {
            Ok(name) => Ok(name == self.pointer[level]),
            Err(_) => self.input.fail("the name of a member is no JSON text"),
        }
    }

    fn pass_value(&mut self) -> Result<(), FrameError> {
        if matches!(self.input.peek()?, None | Some(b',' | b']' | b'}' | b':')) {
            return self.input.fail("expected a value");
        }
        self.input.value(None)?;
        Ok(())
    }

    fn missing<T>(&self) -> Result<T, FrameError> {
        let pointer: String = self.pointer.iter().flat_map(|token| ["/", token]).collect();
        self.input.fail(format!(
            "there are no records at `{pointer}`: name another place in `records`"
        ))
    }
}
