//! A large file of long records, made a line at a time, and what a service must make of it.
//!
//! Invariant: a record depends on the number of its first line alone; nothing is held but one line. The lines are the
//! same on every machine.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use serde_json::{Value, json};
use tests::random::Random;

/// How many records the table has before: what one batch takes.
pub(super) const BEFORE: u64 = 500;
/// The last of so many lines is the record of an earlier line.
const AGAIN: u64 = 50;
/// Bytes of the text of a record, about.
const SHORT: usize = 600;
const LONG: usize = 1_300;
/// How many phrases there are; a record's text is made of them.
const PHRASES: usize = 1 << 16;

const SYLLABLES: [&str; 32] = [
    "ba", "be", "do", "du", "ka", "ke", "li", "lo", "ma", "me", "na", "no", "pa", "pe", "ri", "ro", "sa", "se", "ta",
    "te", "vi", "vo", "sta", "tre", "plo", "gri", "an", "el", "or", "ut", "is", "em",
];

/// Makes records.
#[derive(Debug)]
pub(super) struct Prose {
    phrases: Vec<String>,
    /// One line of so many is a record that the table has before.
    step: u64,
}

/// What is in a file, and what its table has in the end.
#[derive(Debug)]
pub(super) struct Truth {
    /// Lines of the file.
    pub(super) lines: u64,
    /// Lines whose record is that of an earlier line.
    pub(super) again: u64,
    /// The sum of `seq` over all records of the table.
    pub(super) sum: u64,
}

/// The contract of the records.
pub(super) fn contract() -> Value {
    json!({"fields": [
        {"name": "id", "type": "string", "required": true},
        {"name": "seq", "type": "integer", "required": true},
        {"name": "value", "type": "number", "required": true},
        {"name": "ok", "type": "boolean"},
        {"name": "note", "type": "string", "required": true},
    ]})
}

impl Prose {
    /// Records for a file of so many bytes.
    pub(super) fn new(bytes: u64) -> Self {
        let mut random = Random::new(41);
        let mut word = || {
            let syllables = 2 + random.below(3);
            (0..syllables).map(|_| *random.pick(&SYLLABLES)).collect::<String>()
        };
        let words: Vec<_> = (0..2_048).map(|_| word()).collect();
        let mut phrase = || format!("{} {} ", random.pick(&words), random.pick(&words));
        Self {
            phrases: (0..PHRASES).map(|_| phrase()).collect(),
            // Why a multiple: such a line has a record of its own.
            step: bytes / (LONG as u64 + 200) / BEFORE / AGAIN * AGAIN,
        }
    }

    /// The records that the table has before.
    pub(super) fn before(&self) -> Vec<Value> {
        (0..BEFORE).map(|number| self.record(number * self.step)).collect()
    }

    /// The record of the line `line`, which is of its own.
    pub(super) fn record(&self, line: u64) -> Value {
        let mut text = Vec::new();
        self.write(line, &mut text);
        serde_json::from_slice(&text).unwrap()
    }

    /// The lines whose records the file adds, in their order.
    pub(super) fn added(&self, truth: &Truth) -> impl Iterator<Item = u64> {
        let step = self.step;
        (0..truth.lines).filter(move |line| {
            let is_before = line.is_multiple_of(step) && line / step < BEFORE;
            !is_again(*line) && !is_before
        })
    }

    /// Writes a file of at most so many bytes and nearly as many.
    pub(super) fn file(&self, path: &Path, bytes: u64) -> Truth {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
        let mut truth = Truth {
            lines: 0,
            again: 0,
            sum: 0,
        };
        let (mut written, mut line) = (0, Vec::new());
        loop {
            line.clear();
            if is_again(truth.lines) {
                let first = first(truth.lines);
                if first.is_multiple_of(2) {
                    self.write(first, &mut line);
                } else {
                    self.write_otherwise(first, &mut line);
                }
            } else {
                self.write(truth.lines, &mut line);
            }
            line.push(b'\n');
            written += line.len() as u64;
            if written > bytes {
                break;
            }
            out.write_all(&line).unwrap();
            if is_again(truth.lines) {
                truth.again += 1;
            } else {
                truth.sum += truth.lines;
            }
            truth.lines += 1;
        }
        out.into_inner().unwrap();
        assert!(BEFORE * self.step < truth.lines, "{truth:?}");
        truth
    }

    fn write(&self, line: u64, out: &mut Vec<u8>) {
        let mut random = Random::new(line);
        let (id, value, ok) = (random.bits(), random.below(8_000), random.chance(80));
        let value = f64::from(u16::try_from(value).unwrap()) / 8.0;
        // Why no digits: of a million identifiers with some, one looks like the number of a person's card or account.
        let id: String = format!("{id:016x}").bytes().map(lettered).collect();
        let begin = format!(r#"{{"id":"{id}","seq":{line},"value":{value},"ok":{ok},"note":""#);
        out.extend_from_slice(begin.as_bytes());
        self.note(&mut random, out);
        out.extend_from_slice(b"\"}");
    }

    /// The same record in other bytes.
    fn write_otherwise(&self, line: u64, out: &mut Vec<u8>) {
        let record = self.record(line);
        let of = |name: &str| record[name].to_string();
        let (note, ok, seq, id) = (of("note"), of("ok"), of("seq"), of("id"));
        let value = record["value"].as_f64().unwrap();
        let text = format!(r#"{{ "note" : {note}, "ok": {ok}, "value": {value:.4}, "seq": {seq},"id":{id} }}"#);
        out.extend_from_slice(text.as_bytes());
    }

    fn note(&self, random: &mut Random, out: &mut Vec<u8>) {
        let end = out.len() + SHORT + random.below(LONG - SHORT);
        while out.len() < end {
            // Four of sixteen bits each.
            let mut bits = random.bits();
            for _ in 0..4 {
                let phrase = &self.phrases[usize::try_from(bits % PHRASES as u64).unwrap()];
                out.extend_from_slice(phrase.as_bytes());
                bits >>= 16;
            }
        }
        out.pop();
    }
}

/// A hexadecimal digit as a letter.
fn lettered(digit: u8) -> char {
    char::from(if digit.is_ascii_digit() {
        digit - b'0' + b'p'
    } else {
        digit
    })
}

/// Whether a line has the record of an earlier one.
const fn is_again(line: u64) -> bool {
    line % AGAIN == AGAIN - 1
}

/// The first line that has the record of this one.
const fn first(mut line: u64) -> u64 {
    while is_again(line) {
        line /= 2;
    }
    line
}
