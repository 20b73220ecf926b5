//! Speed of the translation of a CSV, on one thread: decoding, framing, translation, and all of it.
//!
//! `cargo run --release -p tabular --example translate_speed [MEGABYTES]`

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::error::Error;
use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Read as _;
use std::time::Instant;

use tabular::decode::Utf8Reader;
use tabular::frame::RecordReader;
use tabular::reading::Reading;
use tabular::translate::Translator;
use types::Contract;

const CONTRACT: &str = r#"{"fields": [
    {"name": "station", "type": "string"}, {"name": "name", "type": "string"}, {"name": "opened", "type": "date"},
    {"name": "seen_at", "type": "timestamp"}, {"name": "elevation_m", "type": "number"}, {"name": "samples", "type": "integer"},
    {"name": "fee", "type": "decimal", "scale": 2}, {"name": "active", "type": "boolean"}, {"name": "note", "type": "string"}
]}"#;

const READING: &str = r#"{"format": "csv", "columns": [
    {"from": "station", "to": "station"}, {"from": "name", "to": "name"},
    {"from": "opened", "to": "opened", "parse": "%d.%m.%Y"},
    {"from": "seen at", "to": "seen_at", "parse": "%Y-%m-%d %H:%M:%S"},
    {"from": "elevation", "to": "elevation_m", "nulls": ["NA"]}, {"from": "samples", "to": "samples"},
    {"from": "fee", "to": "fee"}, {"from": "active", "to": "active"}, {"from": "note", "to": "note"}
]}"#;

fn text(bytes: usize) -> Result<String, std::fmt::Error> {
    let mut text = String::from("station,name,opened,seen at,elevation,samples,fee,active,note\n");
    let mut row = 0_u64;
    while text.len() < bytes {
        let (day, second) = (row % 28 + 1, row % 60);
        let elevation = if row.is_multiple_of(20) {
            "NA".to_owned()
        } else {
            format!("{}.{}", row % 2_000, row % 97)
        };
        let note = if row.is_multiple_of(4) {
            "\"calm, with fog\""
        } else {
            "calm"
        };
        writeln!(
            text,
            "S{row:07},Station number {row},{day:02}.0{}.19{:02},2024-05-{day:02} 08:{second:02}:{second:02},{elevation},{},{}.5,{},{note}",
            row % 9 + 1,
            row % 90 + 10,
            row * 31 % 100_000,
            row % 500,
            row.is_multiple_of(3),
        )?;
        row += 1;
    }
    Ok(text)
}

fn report(what: &str, bytes: usize, begin: Instant) {
    #[expect(clippy::cast_precision_loss, reason = "a speed")]
    let megabytes = bytes as f64 / 1e6;
    println!("{what}: {:.0} MB/s", megabytes / begin.elapsed().as_secs_f64());
}

fn main() -> Result<(), Box<dyn Error>> {
    let megabytes: usize = std::env::args().nth(1).map_or(Ok(200), |text| text.parse())?;
    let text = text(megabytes * 1_000_000)?;
    let contract: Contract = serde_json::from_str(CONTRACT)?;
    let reading: Reading = serde_json::from_str(READING)?;

    let begin = Instant::now();
    let mut decoder = Utf8Reader::new(text.as_bytes(), &reading.encoding)?;
    let mut buffer = vec![0; 128 << 10];
    while black_box(decoder.read(&mut buffer)?) > 0 {}
    report("decode", text.len(), begin);

    let begin = Instant::now();
    let mut reader = RecordReader::new(text.as_bytes(), &reading)?;
    let mut record = Vec::new();
    while black_box(reader.read(&mut record)?).is_some() {
        record.clear();
    }
    report("frame", text.len(), begin);

    let mut records = Vec::new();
    let mut ends = Vec::new();
    let mut reader = RecordReader::new(text.as_bytes(), &reading)?;
    while reader.read(&mut records)?.is_some() {
        ends.push(records.len());
    }
    let begin = Instant::now();
    let mut translator = Translator::new(&reading, &contract)?;
    let (mut out, mut start) = (Vec::new(), 0);
    let mut json = 0;
    for (number, end) in (0..).zip(ends) {
        out.clear();
        let translated = translator.translate(&records[start..end], number, &mut out);
        translated.map_err(|problems| format!("{problems:?}"))?;
        json += out.len();
        start = end;
    }
    report("translate", text.len(), begin);

    let begin = Instant::now();
    let mut reader = RecordReader::new(Utf8Reader::new(text.as_bytes(), &reading.encoding)?, &reading)?;
    while let Some(framed) = reader.read(&mut record)? {
        out.clear();
        let translated = translator.translate(&record, framed.number, &mut out);
        translated.map_err(|problems| format!("{problems:?}"))?;
        record.clear();
    }
    report("all of it", text.len(), begin);
    println!("{} bytes of CSV came to {json} bytes of JSON Lines", text.len());
    Ok(())
}
