//! Conversion of CSV (RFC 4180) into JSON Lines by the contract of the project.
//!
//! Invariant: a line number in an error is the line of the file on which the record begins. The header, line ends
//! inside cells and empty lines count.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{Read, Write};

use anyhow::{Context, anyhow, bail};
use tabular::csv::{CsvReader, CsvRecord, Error, RecordProblem};
use types::{Contract, FieldType};

use super::cell::{boolean, compact, integer, number};
use super::convert::kind_of;
use crate::terminal::shown;

/// The most columns of a file, which bounds the memory that a header can take.
const MAX_COLUMNS: usize = 10_000;
/// The byte order mark that some programs put before UTF-8.
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];
/// The byte order marks of UTF-16.
const UTF_16: [[u8; 2]; 2] = [[0xff, 0xfe], [0xfe, 0xff]];

/// Converts a CSV file whose first line names the fields.
pub(super) fn convert(input: impl Read, contract: &Contract, out: &mut impl Write) -> anyhow::Result<()> {
    let mut reader = CsvReader::new(without_mark(input)?, b',');
    let mut record = CsvRecord::default();
    let columns = CsvColumns::read(&mut reader, &mut record, contract)?;
    let mut line = Vec::new();
    while next(&mut reader, &mut record, &columns.names)? {
        // One buffer serves all lines, since a file can have millions.
        line.clear();
        columns
            .convert(&record, &mut line)
            .with_context(|| format!("line {}", record.line()))?;
        out.write_all(&line)?;
    }
    Ok(())
}

/// Returns the line on which each of `records` begins. Records are counted from 0 and in order.
pub(super) fn lines_of(input: impl Read, records: &[u64]) -> anyhow::Result<Vec<u64>> {
    let mut reader = CsvReader::new(without_mark(input)?, b',');
    let mut record = CsvRecord::default();
    let mut lines = Vec::new();
    // The first record is the header.
    next(&mut reader, &mut record, &[])?;
    for number in 0.. {
        let Some(wanted) = records.get(lines.len()) else {
            break;
        };
        if !next(&mut reader, &mut record, &[])? {
            break;
        }
        if number == *wanted {
            lines.push(record.line());
        }
    }
    Ok(lines)
}

/// Reads the next record with a value, and returns false at the end.
fn next(reader: &mut CsvReader<impl Read>, record: &mut CsvRecord, names: &[String]) -> anyhow::Result<bool> {
    loop {
        match reader.read(record) {
            // A line of delimiters only has no value, like an empty line.
            Ok(true) if record.is_blank() => {}
            Ok(is_there) => return Ok(is_there),
            Err(Error::Unclosed { line, cell }) => bail!(
                "line {line}: the quote that opens {} is never closed; nothing behind it can be read. Close it, and write \
                 a quote within a cell twice",
                column(names, cell)
            ),
            Err(Error::Io(error)) => return Err(error.into()),
        }
    }
}

/// Returns the words for a cell: its column, or its number if it has none.
fn column(names: &[String], cell: usize) -> String {
    match names.get(cell) {
        Some(name) => format!("column `{}`", shown(name)),
        None => format!("cell {}", cell + 1),
    }
}

/// The columns of a file, as its header and the contract say.
struct CsvColumns {
    names: Vec<String>,
    /// Type of each column, `None` for an extra member.
    kinds: Vec<Option<FieldType>>,
    /// The JSON before the value of each column: its name and a colon.
    heads: Vec<Vec<u8>>,
    /// True if the file has one more column, without a name.
    has_nameless: bool,
}

impl CsvColumns {
    /// Reads the header. Each name may occur once.
    fn read(reader: &mut CsvReader<impl Read>, record: &mut CsvRecord, contract: &Contract) -> anyhow::Result<Self> {
        // Without a header the file has no column.
        next(reader, record, &[])?;
        if record.len() > MAX_COLUMNS {
            let len = record.len();
            bail!("the header names {len} columns; at most {MAX_COLUMNS} are sent");
        }
        let line = || format!("line {}: the header", record.line());
        sound(record, &[]).with_context(line)?;
        let names = record.cells().enumerate().map(|(at, cell)| text(cell, &[], at));
        let mut names: Vec<String> = names
            .map(|name| name.map(str::to_owned))
            .collect::<Result<_, _>>()
            .with_context(line)?;
        // Programs of spreadsheets write a delimiter behind the last name.
        let has_nameless = names.len() > 1 && names.pop_if(|name| name.is_empty()).is_some();
        if let Some(at) = names.iter().position(String::is_empty) {
            bail!(
                "line {}: column {} has no name in the header; name it",
                record.line(),
                at + 1
            );
        }
        let mut seen = HashSet::new();
        // The second column would silently take the place of the first.
        if let Some(name) = names.iter().find(|name| !seen.insert(*name)) {
            bail!("two columns are called `{}`; rename one of them", shown(name));
        }
        let kinds = names.iter().map(|name| kind_of(contract, name));
        let kinds = kinds.collect::<Result<_, _>>()?;
        let head = |name: &String| {
            let mut head = serde_json::to_vec(name)?;
            head.push(b':');
            Ok::<_, serde_json::Error>(head)
        };
        Ok(Self {
            heads: names.iter().map(head).collect::<Result<_, _>>()?,
            names,
            kinds,
            has_nameless,
        })
    }

    /// Writes a record as one line of JSON.
    fn convert(&self, record: &CsvRecord, line: &mut Vec<u8>) -> anyhow::Result<()> {
        let (len, wanted) = (record.len(), self.names.len() + usize::from(self.has_nameless));
        sound(record, &self.names)?;
        if len != wanted {
            bail!("it has {len} cells, and the header has {wanted}; quote a cell that has a comma or a line end");
        }
        line.push(b'{');
        for (at, cell) in record.cells().enumerate() {
            // CSV has no null. An empty cell is a missing member.
            if cell.is_empty() {
                continue;
            }
            let cell = text(cell, &self.names, at)?;
            let (Some(kind), Some(head)) = (self.kinds.get(at), self.heads.get(at)) else {
                bail!(
                    "cell {} is `{}`, and the header has no name for it",
                    at + 1,
                    shown(cell)
                );
            };
            if line.len() > 1 {
                line.push(b',');
            }
            line.extend_from_slice(head);
            value(cell, *kind, line).map_err(|problem| {
                let (column, found) = (column(&self.names, at), shown(cell));
                anyhow!("{column}: {problem:#}, found `{found}`; correct it, or leave the cell empty")
            })?;
        }
        line.extend_from_slice(b"}\n");
        Ok(())
    }
}

/// Fails if a record has a problem.
fn sound(record: &CsvRecord, names: &[String]) -> anyhow::Result<()> {
    match record.problem() {
        None => Ok(()),
        Some(RecordProblem::AfterQuote(cell)) => bail!(
            "{}: text follows the closing quote; write a quote within a cell twice",
            column(names, cell)
        ),
        Some(RecordProblem::TooLong) => bail!(
            "the record has more than {} bytes, the most of one",
            tabular::csv::MAX_RECORD_BYTES
        ),
    }
}

/// Returns a cell as text. U+0000 is in no text that a person wrote, and readers of the dataset end at it.
fn text<'a>(cell: &'a [u8], names: &[String], at: usize) -> anyhow::Result<&'a str> {
    let place = || column(names, at);
    let text =
        std::str::from_utf8(cell).map_err(|_error| anyhow!("{} is not UTF-8; save the file as UTF-8", place()))?;
    if text.contains('\0') {
        bail!("{} has the character U+0000; remove it", place());
    }
    Ok(text)
}

/// Writes a cell as a JSON value of its type.
fn value(cell: &str, kind: Option<FieldType>, line: &mut Vec<u8>) -> anyhow::Result<()> {
    match kind {
        Some(FieldType::Integer) => write!(line, "{}", integer(cell)?)?,
        // The digits are sent as they are written, since the service decides about those that a double would drop.
        Some(FieldType::Number) => line.extend_from_slice(number(cell)?.as_bytes()),
        Some(FieldType::Boolean) => write!(line, "{}", boolean(cell)?)?,
        Some(FieldType::Json) => line.extend_from_slice(compact(cell)?.as_bytes()),
        // As text, since a JSON number keeps 15 digits.
        Some(FieldType::Decimal(_)) => serde_json::to_writer(line, &*number(cell)?)?,
        Some(FieldType::String | FieldType::Timestamp | FieldType::Date) | None => serde_json::to_writer(line, cell)?,
    }
    Ok(())
}

/// Skips the byte order mark, if there is one. UTF-16 is an error.
fn without_mark(mut input: impl Read) -> anyhow::Result<impl Read> {
    let mut first = Vec::new();
    input.by_ref().take(3).read_to_end(&mut first)?;
    if UTF_16.iter().any(|mark| first.starts_with(mark)) {
        bail!("it is UTF-16; save it as UTF-8");
    }
    // Programs of spreadsheets begin their files with it, and it would become a part of the first name.
    let first: Cow<'static, [u8]> = if first == BYTE_ORDER_MARK {
        Cow::Borrowed(&[])
    } else {
        Cow::Owned(first)
    };
    Ok(std::io::Cursor::new(first).chain(input))
}

#[cfg(test)]
mod tests {
    use std::io::{self, Cursor};
    use std::time::{Duration, Instant};

    use serde_json::{Value, json};

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
            (
                "name,count\na,1\nb,1.5\n",
                "line 3: column `count`: it is no integer of 64 bits, found `1.5`; correct it, or leave the cell empty",
            ),
            ("name,count\r\na,1\r\nb,1.5\r\n", "line 3: column `count`"),
            ("name,count\n\"a\n\nb\",1\nb,1.5\n", "line 5: column `count`"),
            (
                "name,count\r\n\"a\r\nb\",1\r\n\r\n\r\nb,1.5\r\n",
                "line 6: column `count`",
            ),
            ("\u{feff}name,count\n\n\nb,1.5", "line 4: column `count`"),
            ("\"na\nme\",count\nb,1.5\n", "the column `na\\u{a}me` is no field"),
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
        for (bytes, words) in [
            (
                &b"name,count\na,1\n\nx\xff,2\n"[..],
                "line 4: column `name` is not UTF-8; save the file as UTF-8",
            ),
            (
                b"na\xffme\n",
                "line 1: the header: cell 1 is not UTF-8; save the file as UTF-8",
            ),
            (
                b"name,count\na\0,1\n",
                "line 2: column `name` has the character U+0000; remove it",
            ),
            (b"\xff\xfen\0\n\0", "it is UTF-16; save it as UTF-8"),
            (
                b"name,count,\na,1,b\n",
                "line 2: cell 3 is `b`, and the header has no name for it",
            ),
            (b",name\n1,a\n", "line 1: column 1 has no name in the header; name it"),
            (
                b"name,count\n1,\"Inch 5\n2,foo\n3,bar\n",
                "line 2: the quote that opens column `count` is never closed",
            ),
            (
                b"name,count\n\"a\nb\",\"c\n2,\n",
                "line 3: the quote that opens column `count` is never closed",
            ),
            (b"name,\"count\n", "line 1: the quote that opens cell 2 is never closed"),
            (
                b"name,count\na,1\n\"b\"c,2\n",
                "line 3: column `name`: text follows the closing quote; write a quote within a cell twice",
            ),
            (
                b"\"name\"x,count\n",
                "line 1: the header: cell 1: text follows the closing quote",
            ),
            (
                b"name,more\na,\"{\"\"x\"\":1}\n",
                "line 2: the quote that opens column `more` is never closed",
            ),
        ] {
            let error = convert(Cursor::new(bytes), &contract(false), &mut io::sink()).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.starts_with(words), "{words}: {error}");
        }
    }

    #[test]
    fn empty_rows_and_an_unnamed_last_column_are_left_out() {
        let expected = [json!({"name": "a", "count": 1}), json!({"name": "b, c"})];
        assert_eq!(
            converted("name,count,\r\n,,\r\na,1,\r\n\r\n\"b, c\" ,,\r\n", false).unwrap(),
            expected
        );
        assert_eq!(
            converted("name\rb\r\r\"\"\r", false).unwrap(),
            [json!({"name": "b"}), json!({})]
        );
        let lines = lines_of(Cursor::new("name,count\n,\na,1\n,\n\nb,2\n"), &[0, 1]).unwrap();
        assert_eq!(lines, [3, 6]);
    }

    #[test]
    fn decimals_are_sent_as_text_with_their_digits() {
        let contract =
            serde_json::from_value(json!({"fields": [{"name": "a", "type": "decimal", "scale": 18}]})).unwrap();
        let mut out = Vec::new();
        let text = "a\n0.123456789012345678\n+7\n-.5\n";
        convert(Cursor::new(text), &contract, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"a\":\"0.123456789012345678\"}\n{\"a\":\"7\"}\n{\"a\":\"-0.5\"}\n"
        );
    }

    #[test]
    fn numbers_are_sent_with_the_digits_of_the_file() {
        for (cell, sent) in [
            ("1000000000000000000001", "1000000000000000000001"),
            ("0.12345678901234567891", "0.12345678901234567891"),
            ("+007.50e+2", "7.50e+2"),
            ("-.5", "-0.5"),
            ("+.5", "0.5"),
            ("5.", "5"),
            ("00", "0"),
        ] {
            let mut out = Vec::new();
            convert(Cursor::new(format!("ratio\n{cell}\n")), &contract(false), &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), format!("{{\"ratio\":{sent}}}\n"));
        }
        let mut out = Vec::new();
        let document = "more\n\"{\"\"n\"\":\n 12345678901234567891234}\"\n";
        convert(Cursor::new(document), &contract(false), &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"more\":{\"n\":  12345678901234567891234}}\n"
        );
        for cell in [
            "1e400", "inf", "nan", "1,5", "0x1", "1_000", " 1", "-", ".", "e5", "1e", "+",
        ] {
            let error = converted(&format!("ratio\n\"{cell}\"\n"), false).unwrap_err();
            assert!(format!("{error:#}").contains("it is no number"), "{cell}: {error:#}");
        }
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
