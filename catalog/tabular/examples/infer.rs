//! Says what files are: `infer [--print] [--time] [FLAG VALUE]... FILE...`.
//!
//! Prints the answer of inference as one JSON object a file. `--print` prints the records as they will be stored instead,
//! and the lines that are refused on standard error. `--time` prints the speed.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::sync::Arc;
use std::time::Instant;

use tabular::decode::{Utf8Reader, decompress};
use tabular::detect::{DETECT_BYTES, detect};
use tabular::frame::RecordReader;
use tabular::infer::{InferOptions, Inference, READING_FLAGS, infer};
use tabular::translate::Translator;
use types::batch::LineDecoder;

/// Records that are made at once.
const BATCH_RECORDS: usize = 1_000;

fn main() -> Result<(), Box<dyn Error>> {
    let (mut options, mut files) = (InferOptions::default(), Vec::new());
    let (mut is_timed, mut has_records) = (false, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--time" => is_timed = true,
            "--print" => has_records = true,
            flag if flag.starts_with("--") => {
                let has_value = READING_FLAGS
                    .iter()
                    .any(|(known, has_value)| *known == flag && *has_value);
                let value = if has_value {
                    arguments.next().unwrap_or_default()
                } else {
                    String::new()
                };
                options.set(flag, &value)?;
            }
            _ => files.push(argument),
        }
    }
    let mut out = BufWriter::new(std::io::stdout().lock());
    for file in files {
        let begun = Instant::now();
        let inference = match infer(File::open(&file)?, &options) {
            Ok(inference) => inference,
            Err(error) => {
                writeln!(out, "{}", serde_json::json!({"file": file, "error": error.to_string()}))?;
                continue;
            }
        };
        if is_timed {
            let seconds = begun.elapsed().as_secs_f64();
            #[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits")]
            let rate = inference.text_bytes as f64 / 1e6 / seconds;
            writeln!(out, "{file}: {} records, {rate:.0} MB/s", inference.records)?;
        } else if has_records {
            write_records(&file, &inference, &mut out)?;
        } else {
            let mut answer = serde_json::to_value(&inference)?;
            answer["file"] = file.into();
            writeln!(out, "{answer}")?;
        }
    }
    out.flush()?;
    Ok(())
}

/// Writes the records of a file as its contract stores them.
fn write_records(file: &str, inference: &Inference, out: &mut impl std::io::Write) -> Result<(), Box<dyn Error>> {
    let contract = Arc::new(inference.contract.clone().ok_or("there is no contract")?);
    let mut begin = vec![0; DETECT_BYTES];
    let read = std::io::Read::read(&mut File::open(file)?, &mut begin)?;
    let detected = detect(&begin[..read])?;
    let text = Utf8Reader::new(
        decompress(File::open(file)?, detected.compression)?,
        &inference.reading.encoding,
    )?;
    let mut translator = Translator::new(&inference.reading, &contract)?;
    let mut reader = RecordReader::new(text, &inference.reading)?;
    let (mut record, mut line) = (Vec::new(), Vec::new());
    let mut is_open = true;
    let mut refused = std::io::stderr().lock();
    while is_open {
        let mut decoder = LineDecoder::new(&contract, BATCH_RECORDS, 1 << 20);
        let mut lines = Vec::new();
        while lines.len() < BATCH_RECORDS {
            record.clear();
            let Some(found) = reader.read(&mut record)? else {
                is_open = false;
                break;
            };
            line.clear();
            match translator.translate(&record, found.number, &mut line) {
                Ok(()) => match decoder.push(&line) {
                    Ok(()) => lines.push(found.line),
                    Err(error) => writeln!(refused, "{file}: line {}: {error}", found.line)?,
                },
                Err(problems) => writeln!(refused, "{file}: line {}: {problems:?}", found.line)?,
            }
        }
        let batch = decoder.finish();
        for defect in batch.defects() {
            writeln!(refused, "{file}: {defect:?}")?;
        }
        for row in 0..batch.len() {
            out.write_all(batch.canonical(row))?;
            out.write_all(b"\n")?;
        }
    }
    Ok(())
}
