//! The records of a text as JSON, one a line.
//!
//! Invariant: record N is line N. One that cannot be translated is an empty line, and its problems are told apart.

use std::collections::VecDeque;
use std::io::{self, Read};

use operators::{GateName, Reason, RowVerdict, Verdict};
use parking_lot::Mutex;
use tabular::frame::{FrameError, RecordReader};
use tabular::reading::{Reading, ReadingError};
use tabular::translate::{CellProblem, Translator};
use types::Contract;

use crate::judge::chunk::JudgedLines;

/// Bytes of lines that are made at once.
const LINES_BYTES: usize = 64 << 10;

/// Records that could not be translated, in order.
#[derive(Debug, Default)]
pub(super) struct TextProblems(Mutex<VecDeque<RowVerdict>>);

impl TextProblems {
    /// Moves the records before `end` to the lines that were judged there.
    pub(super) fn take_before(&self, end: u64, lines: &mut JudgedLines) {
        let mut problems = self.0.lock();
        let count = problems.iter().take_while(|said| u64::from(said.row) < end).count();
        if count == 0 {
            return;
        }
        let report = &mut lines.judged.report;
        report.verdicts.extend(problems.drain(..count));
        report.verdicts.sort_by_key(|said| said.row);
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        report.rows = report.rows.saturating_add(count);
        if let Some(decoded) = report.tallies.first_mut() {
            decoded.rows = decoded.rows.saturating_add(count);
            decoded.refused = decoded.refused.saturating_add(count);
        }
    }
}

/// A reader of the lines.
#[derive(Debug)]
pub(super) struct TranslatedText<'a, R> {
    records: RecordReader<R>,
    translator: Translator,
    problems: &'a TextProblems,
    failure: Option<FrameError>,
    /// The text of one record.
    record: Vec<u8>,
    /// Lines that were made, of which the first bytes are taken.
    lines: Vec<u8>,
    taken: usize,
    ended: bool,
}

impl<'a, R: Read> TranslatedText<'a, R> {
    pub(super) fn new(
        records: RecordReader<R>,
        reading: &Reading,
        contract: &Contract,
        problems: &'a TextProblems,
    ) -> Result<Self, ReadingError> {
        Ok(Self {
            records,
            translator: Translator::new(reading, contract)?,
            problems,
            failure: None,
            record: Vec::new(),
            lines: Vec::new(),
            taken: 0,
            ended: false,
        })
    }

    /// Returns the failure of the text, after which nothing of it can be trusted.
    pub(super) fn failure(self) -> Option<FrameError> {
        self.failure
    }

    /// Makes more lines, unless the text has ended.
    fn fill(&mut self) -> Result<(), FrameError> {
        self.lines.clear();
        self.taken = 0;
        while self.lines.len() < LINES_BYTES {
            self.record.clear();
            let Some(record) = self.records.read(&mut self.record)? else {
                self.ended = true;
                return Ok(());
            };
            let begin = self.lines.len();
            let translated = self.translator.translate(&self.record, record.number, &mut self.lines);
            if let Err(problems) = translated {
                let row = u32::try_from(record.number).unwrap_or(u32::MAX);
                let reasons = problems.into_iter().map(reason).collect();
                let verdict = Verdict::Refuse { reasons };
                self.problems.0.lock().push_back(RowVerdict { row, verdict });
            }
            // JSON has line ends only between tokens (RFC 8259 section 7), and what is no JSON is refused as it is.
            for byte in self.lines.iter_mut().skip(begin) {
                if matches!(byte, b'\n' | b'\r') {
                    *byte = b' ';
                }
            }
            self.lines.push(b'\n');
        }
        Ok(())
    }
}

fn reason(problem: CellProblem) -> Reason {
    Reason {
        gate: GateName::DECODE,
        code: problem.code.to_owned(),
        path: problem.path,
        expected: problem.expected,
        actual: problem.problem,
    }
}

impl<R: Read> Read for TranslatedText<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.lines.len()
            && !self.ended
            && let Err(error) = self.fill()
        {
            (self.ended, self.failure) = (true, Some(error));
            return Err(io::Error::other("the text cannot be read any further"));
        }
        let rest = self.lines.get(self.taken..).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        for (place, byte) in buffer.iter_mut().zip(rest) {
            *place = *byte;
        }
        self.taken += length;
        Ok(length)
    }
}
