//! JSON Lines: a record a line.

use std::io::Read;

use super::{FrameError, FramePlace, MAX_RECORD_BYTES};
use crate::buffer::InputBuffer;

#[derive(Debug)]
pub(super) struct LineFrames<R> {
    input: InputBuffer<R>,
    /// Line of the next byte, from 1.
    line: u64,
    blank_rows: u64,
}

impl<R> LineFrames<R> {
    pub(super) const fn new(input: R) -> Self {
        Self {
            input: InputBuffer::new(input),
            line: 1,
            blank_rows: 0,
        }
    }

    pub(super) const fn blank_rows(&self) -> u64 {
        self.blank_rows
    }
}

impl<R: Read> LineFrames<R> {
    pub(super) fn read(&mut self, text: &mut Vec<u8>) -> Result<Option<FramePlace>, FrameError> {
        loop {
            if self.input.rest().is_empty() && !self.input.fill()? {
                return Ok(None);
            }
            let begin = text.len();
            let mut is_too_long = false;
            // Bytes of the line that were searched.
            let mut searched = 0;
            loop {
                let rest = self.input.rest();
                let found = memchr::memchr(b'\n', &rest[searched..]).map(|found| searched + found);
                let end = found.unwrap_or(rest.len());
                if found.is_some() || end > MAX_RECORD_BYTES || self.input.is_ended() {
                    if !is_too_long {
                        is_too_long = end > MAX_RECORD_BYTES;
                        text.extend_from_slice(rest[..end.min(MAX_RECORD_BYTES)].trim_ascii());
                    }
                    self.input.consume(end);
                    searched = 0;
                } else {
                    searched = end;
                }
                if found.is_some() {
                    self.input.consume(1);
                    break;
                }
                if !self.input.fill()? && self.input.rest().is_empty() {
                    break;
                }
            }
            let line = self.line;
            self.line += 1;
            if text.len() > begin || is_too_long {
                return Ok(Some(FramePlace { line, is_too_long }));
            }
            self.blank_rows += 1;
        }
    }
}
