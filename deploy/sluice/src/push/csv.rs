//! Conversion of CSV (RFC 4180) into JSON Lines by the contract of the project.
//!
//! Invariant: a line number in an error is the line of the file on which the record begins. The header, line ends
//! inside cells and empty lines count.

use std::collections::HashSet;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};

use anyhow::{Context, bail};
use csv::{ByteRecord, ErrorKind, Position, Reader, StringRecord};
use serde_json::{Map, Value};
use types::{Contract, FieldType, json};

use super::convert::{boolean, integer, kind_of, number};

/// The most columns of a file, which bounds the memory that a header can take.
const MAX_COLUMNS: usize = 10_000;
/// The byte order mark that some programs put before UTF-8.
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Converts a CSV file whose first line names the fields.
pub(super) fn convert(mut input: impl Read + Seek, contract: &Contract, out: &mut impl Write) -> anyhow::Result<()> {
    let begin = skip_mark(&mut input)?;
    let mut reader = Reader::from_reader(input);
    let Some(refused) = records(&mut reader, contract, out)? else {
        return Ok(());
    };
    // The line is computed only for an error, by reading the file again from the record's position.
    let line = line_at(&mut reader.into_inner(), begin, &refused.position)?;
    Err(refused.problem.context(format!("line {line}")))
}

/// Returns the line on which each of `records` begins. Records are counted from 0 and in order.
pub(super) fn lines_of(mut input: impl Read + Seek, records: &[u64]) -> anyhow::Result<Vec<u64>> {
    let begin = skip_mark(&mut input)?;
    let mut reader = Reader::from_reader(input);
    let mut positions = Vec::new();
    let mut record = ByteRecord::new();
    for number in 0.. {
        let Some(wanted) = records.get(positions.len()) else {
            break;
        };
        if !reader.read_byte_record(&mut record)? {
            break;
        }
        if number == *wanted {
            positions.extend(record.position().cloned());
        }
    }
    let mut input = reader.into_inner();
    let lines = positions.iter().map(|position| line_at(&mut input, begin, position));
    Ok(lines.collect::<Result<_, _>>()?)
}

/// The first record that cannot be converted.
struct Refused {
    position: Position,
    problem: anyhow::Error,
}

/// Converts records up to the first that cannot be converted, and returns that one.
fn records(
    reader: &mut Reader<impl Read>,
    contract: &Contract,
    out: &mut impl Write,
) -> anyhow::Result<Option<Refused>> {
    let names = names(reader)?;
    let kinds: Vec<Option<FieldType>> = names
        .iter()
        .map(|name| kind_of(contract, name))
        .collect::<Result<_, _>>()?;
    let (mut record, mut line) = (StringRecord::new(), Vec::new());
    loop {
        // The position is taken before the record is read, since not every error has one.
        let position = reader.position().clone();
        match reader.read_record(&mut record) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) => {
                let problem = match error.into_kind() {
                    ErrorKind::UnequalLengths { expected_len, len, .. } => {
                        anyhow::anyhow!("it has {len} cells, and the header has {expected_len}")
                    }
                    ErrorKind::Utf8 { err, .. } => anyhow::anyhow!("cell {} is not UTF-8", err.field() + 1),
                    ErrorKind::Io(error) => return Err(error.into()),
                    other => anyhow::anyhow!("it cannot be read: {other:?}"),
                };
                return Ok(Some(Refused { position, problem }));
            }
        }
        let mut members = Map::new();
        for ((name, kind), cell) in names.iter().zip(&kinds).zip(&record) {
            // CSV has no null. An empty cell is a missing member.
            if cell.is_empty() {
                continue;
            }
            match value(cell, *kind) {
                Ok(value) => members.insert(name.clone(), value),
                Err(problem) => {
                    let problem = problem.context(format!("column `{name}`"));
                    return Ok(Some(Refused { position, problem }));
                }
            };
        }
        // One buffer serves all lines, since a file can have millions.
        line.clear();
        serde_json::to_writer(&mut line, &members)?;
        line.push(b'\n');
        out.write_all(&line)?;
    }
}

/// Reads the header. Each name may occur once.
fn names(reader: &mut Reader<impl Read>) -> anyhow::Result<Vec<String>> {
    let header = reader.headers().context("the header cannot be read")?;
    if header.len() > MAX_COLUMNS {
        bail!(
            "the header names {} columns; at most {MAX_COLUMNS} are sent",
            header.len()
        );
    }
    let mut seen = HashSet::new();
    // The second column would silently take the place of the first.
    if let Some(name) = header.iter().find(|name| !seen.insert(*name)) {
        bail!("two columns are called `{name}`");
    }
    Ok(header.iter().map(str::to_owned).collect())
}

fn value(cell: &str, kind: Option<FieldType>) -> anyhow::Result<Value> {
    Ok(match kind {
        Some(FieldType::Integer) => integer(cell)?.into(),
        Some(FieldType::Number) => Value::Number(number(cell)?),
        Some(FieldType::Boolean) => boolean(cell)?.into(),
        Some(FieldType::Json) => json::parse(cell.as_bytes()).context("it is not JSON")?,
        Some(FieldType::String | FieldType::Timestamp) | None => cell.into(),
    })
}

/// Skips the byte order mark, if there is one, and returns the offset of the text.
fn skip_mark(input: &mut (impl Read + Seek)) -> io::Result<u64> {
    let mut first = Vec::new();
    input.by_ref().take(3).read_to_end(&mut first)?;
    // Programs of spreadsheets begin their files with it, and it would become a part of the first name.
    let begin = if first == BYTE_ORDER_MARK { 3 } else { 0 };
    input.seek(SeekFrom::Start(begin))
}

/// Returns the line on which the first record after a position begins. The CSV reader's position is the end of the
/// previous record, which may be before a line end and empty lines.
fn line_at(input: &mut (impl Read + Seek), begin: u64, position: &Position) -> io::Result<u64> {
    input.seek(SeekFrom::Start(begin + position.byte()))?;
    let mut line = position.line();
    for byte in BufReader::new(input).bytes() {
        match byte? {
            b'\n' => line += 1,
            b'\r' => {}
            _ => break,
        }
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::super::convert::tests::contract;
    use super::*;

    fn converted(text: &str, extra: bool) -> anyhow::Result<Vec<Value>> {
        let mut out = Vec::new();
        convert(Cursor::new(text), &contract(extra), &mut out)?;
        let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        Ok(lines.map(|line| serde_json::from_slice(line).unwrap()).collect())
    }

    #[test]
    fn cells_become_what_their_fields_say() {
        let text = "\u{feff}count,name,ratio,good,at,more\r\n\
                    7,\"a, \"\"b\"\"\nc\",2,true,2026-11-21T07:00:00Z,\"{\"\"x\"\":[1]}\"\r\n,d,0.5,0,,\r\n";
        let expected = [
            json!({"name": "a, \"b\"\nc", "count": 7, "ratio": 2, "good": true, "at": "2026-11-21T07:00:00Z", "more": {"x": [1]}}),
            json!({"name": "d", "ratio": 0.5, "good": false}),
        ];
        assert_eq!(converted(text, false).unwrap(), expected);
        let quoted = text.replacen("count", "\"count\"", 1);
        assert_eq!(converted(&quoted, false).unwrap(), expected);
        assert_eq!(
            converted("name,other\na,1\n", true).unwrap(),
            [json!({"name": "a", "other": "1"})]
        );
    }

    #[test]
    fn a_cell_that_does_not_fit_is_named_with_its_line_of_the_file() {
        for (text, words) in [
            ("name,count\na,1\nb,1.5\n", "line 3: column `count`"),
            ("name,count\r\na,1\r\nb,1.5\r\n", "line 3: column `count`"),
            ("name,count\n\"a\n\nb\",1\nb,1.5\n", "line 5: column `count`"),
            (
                "name,count\r\n\"a\r\nb\",1\r\n\r\n\r\nb,1.5\r\n",
                "line 6: column `count`",
            ),
            ("\u{feff}name,count\n\n\nb,1.5", "line 4: column `count`"),
            ("\"na\nme\",count\nb,1.5\n", "the column `na\nme` is no field"),
            ("name,ratio\na,much\n", "line 2: column `ratio`"),
            ("name,good\na,yes\n", "line 2: column `good`"),
            ("name,more\na,{\n", "line 2: column `more`"),
            ("name,other\na,b\n", "the column `other` is no field"),
            ("name,count,name\na,1,b\n", "two columns are called `name`"),
            (
                "name,count\na,1\n\n\nb\n",
                "line 5: it has 1 cells, and the header has 2",
            ),
        ] {
            let error = format!("{:#}", converted(text, false).unwrap_err());
            assert!(error.contains(words), "{text}: {error}");
        }
        let mut not_utf8 = b"name,count\na,1\n\nx\xff,2\n".to_vec();
        let error = convert(Cursor::new(&mut not_utf8), &contract(false), &mut io::sink()).unwrap_err();
        assert_eq!(format!("{error:#}"), "line 4: cell 1 is not UTF-8");
    }

    #[test]
    fn records_are_found_on_their_lines() {
        let text = "\u{feff}name,count\r\n\"a\r\n\r\n\",1\r\nb,2\r\n\r\nc,3\r\n\"d\n\",4\r\ne,5";
        let lines = |records: &[u64]| lines_of(Cursor::new(text), records).unwrap();
        assert_eq!(lines(&[0, 1, 2, 3, 4]), [2, 5, 7, 8, 10]);
        assert_eq!(lines(&[1, 4]), [5, 10]);
        assert_eq!(lines(&[]), [0; 0]);
    }

    #[test]
    fn a_header_of_very_many_names_is_refused_at_once() {
        let names = (0..100_000)
            .map(|n| format!("column_{n}"))
            .collect::<Vec<_>>()
            .join(",");
        for extra in [false, true] {
            let begun = Instant::now();
            let error = converted(&format!("{names}\n"), extra).unwrap_err().to_string();
            assert!(error.contains("names 100000 columns; at most 10000"), "{error}");
            assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
        }
    }
}
