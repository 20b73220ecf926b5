use std::io::Cursor;

use proptest::prelude::*;

use super::*;

/// A record as a test sees it: its line, its cells, its problem.
type Seen = (u64, Vec<String>, Option<RecordProblem>);

/// Reads all records, some bytes at a time.
fn read(text: &[u8], delimiter: u8, at_once: usize) -> Result<Vec<Seen>, Error> {
    read_with(text, CsvFormat::delimited_by(delimiter), at_once)
}

struct Slowly<'a>(&'a [u8], usize);

impl Read for Slowly<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let most = self.1.min(to.len());
        self.0.read(&mut to[..most])
    }
}

fn read_with(text: &[u8], format: CsvFormat, at_once: usize) -> Result<Vec<Seen>, Error> {
    let mut reader = CsvReader::with_format(Slowly(text, at_once), format);
    let (mut record, mut records) = (CsvRecord::default(), Vec::new());
    while reader.read(&mut record)? {
        let cells = record.cells().map(|cell| String::from_utf8_lossy(cell).into_owned());
        records.push((record.line(), cells.collect(), record.problem()));
    }
    Ok(records)
}

fn records(text: &str) -> Vec<Seen> {
    let whole = read(text.as_bytes(), b',', usize::MAX).unwrap();
    assert_eq!(read(text.as_bytes(), b',', 1).unwrap(), whole, "{text:?} byte by byte");
    whole
}

fn seen(line: u64, cells: &[&str]) -> Seen {
    (line, cells.iter().map(|cell| (*cell).to_owned()).collect(), None)
}

#[test]
fn a_quote_that_is_never_closed_is_named_with_its_line_and_cell() {
    for (text, line, cell) in [
        ("a,b\n1,\"x\n2,y\n3,z\n", 2, 1),
        ("\"", 1, 0),
        ("a\n\"b", 2, 0),
        ("a\n \"b\"\"", 2, 0),
        ("a,b\r\n\"1\r\n\",\"2\r\n\r\n", 3, 1),
        ("a\rb\r\"c", 3, 0),
    ] {
        for at_once in [1, usize::MAX] {
            match read(text.as_bytes(), b',', at_once) {
                Err(Error::Unclosed { line: l, cell: c }) => assert_eq!((l, c), (line, cell), "{text:?}"),
                other => panic!("{text:?}: {other:?}"),
            }
        }
    }
}

#[test]
fn text_behind_a_closing_quote_is_a_problem_of_its_record_alone() {
    for (text, cell) in [
        ("x,y\n1,\"ab\"c\n2,d\n", 1),
        ("x,y\n\"ab\" c,1\n2,d\n", 0),
        ("x,y\n1,\"ab\"c\"\n2,d\n", 1),
        ("x,y\n\"a\"b,\"c\"d\n2,d\n", 0),
    ] {
        let records = records(text);
        assert_eq!(records.len(), 3, "{text:?}: {records:?}");
        assert_eq!((records[1].0, records[1].2), (2, Some(RecordProblem::AfterQuote(cell))));
        assert_eq!(records[2], seen(3, &["2", "d"]));
    }
}

#[test]
fn quotes_blanks_and_line_ends_are_as_the_rules_say() {
    assert_eq!(
        records("x,y\n6\" pipe,a\"b\"\n"),
        [seen(1, &["x", "y"]), seen(2, &["6\" pipe", "a\"b\""])]
    );
    assert_eq!(
        records("\"1\" ,\t \"a, b\" \n 2 , c \n"),
        [seen(1, &["1", "a, b"]), seen(2, &[" 2 ", " c "])]
    );
    assert_eq!(
        records("a\r\n\r\nb\rc\n\n\n\"d\r\n\re\"\r\nf"),
        [
            seen(1, &["a"]),
            seen(3, &["b"]),
            seen(4, &["c"]),
            seen(7, &["d\r\n\re"]),
            seen(10, &["f"])
        ]
    );
    assert_eq!(
        records("a,\n,\n\"\"\n,"),
        [
            seen(1, &["a", ""]),
            seen(2, &["", ""]),
            seen(3, &[""]),
            seen(4, &["", ""])
        ]
    );
    assert_eq!(records(""), []);
    assert_eq!(records("\r\n\n\r"), []);
    let tabs = read(b"a b\tc\n \"x\t\" \t1\n", b'\t', usize::MAX).unwrap();
    assert_eq!(tabs, [seen(1, &["a b", "c"]), seen(2, &["x\t", "1"])]);
}

#[test]
fn a_record_of_delimiters_is_blank_and_one_with_a_quote_is_not() {
    let blank = |text: &str| {
        let (mut reader, mut record) = (CsvReader::new(Cursor::new(text.to_owned()), b','), CsvRecord::default());
        assert!(reader.read(&mut record).unwrap());
        record.is_blank()
    };
    assert!(blank(",,\n"));
    for text in ["\"\"\n", ",\"\"\n", ", \n", "a,\n"] {
        assert!(!blank(text), "{text:?}");
    }
}

#[test]
fn a_record_that_is_too_long_takes_bounded_memory_and_the_next_one_is_read() {
    for piece in ["x", ",", "\"\"", "\"\",", " ", "\"a\nb\","] {
        let long = piece.repeat(2 * MAX_RECORD_BYTES / piece.len());
        let text = match piece {
            "\"\"" => format!("\"{long}\"\nnext\n"),
            _ => format!("{long}\nnext\n"),
        };
        let mut reader = CsvReader::new(Cursor::new(text), b',');
        let mut record = CsvRecord::default();
        assert!(reader.read(&mut record).unwrap());
        assert_eq!(record.problem(), Some(RecordProblem::TooLong), "{piece:?}");
        assert!(record.cells().len() <= MAX_CELLS, "{piece:?}");
        assert!(reader.read(&mut record).unwrap());
        assert_eq!(record.cells().collect::<Vec<_>>(), [b"next"], "{piece:?}");
        assert!(!reader.read(&mut record).unwrap());
    }
    let unclosed = format!("a\n\"{}", "x\n".repeat(MAX_RECORD_BYTES));
    let result = read(unclosed.as_bytes(), b',', usize::MAX);
    assert!(
        matches!(result, Err(Error::Unclosed { line: 2, cell: 0 })),
        "{result:?}"
    );
}

#[test]
fn a_backslash_escapes_within_quotes_only_where_the_format_says_so() {
    let escaped = CsvFormat {
        escape: QuoteEscape::Backslash,
        ..CsvFormat::delimited_by(b',')
    };
    let cells = |text: &str, format: CsvFormat| {
        let mut reader = CsvReader::with_format(text.as_bytes(), format);
        let (mut record, mut records) = (CsvRecord::default(), Vec::new());
        while reader.read(&mut record).unwrap() {
            let cells = record.cells().map(|cell| String::from_utf8_lossy(cell).into_owned());
            records.push(cells.collect::<Vec<_>>());
        }
        records
    };
    assert_eq!(
        cells("\"a\\\"b\\\\\",\\N\n\"c\\\nd\",\"e\"\"f\"\n", escaped),
        [["a\"b\\", "\\N"], ["c\nd", "e\"f"]]
    );
    assert_eq!(
        cells("\"C:\\new\\t\",\"\\,\\é\"\n", escaped),
        [["C:\\new\\t", ",\\é"]],
        "a backslash before any other byte is none that escapes"
    );
    assert_eq!(cells("\"a\\\",b\n", CsvFormat::delimited_by(b',')), [["a\\", "b"]]);
    let unquoted = CsvFormat {
        quote: None,
        ..CsvFormat::delimited_by(b'|')
    };
    assert_eq!(cells("\"a|b\nc\"|d", unquoted), [["\"a", "b"], ["c\"", "d"]]);
    let single = CsvFormat {
        quote: Some(b'\''),
        ..CsvFormat::delimited_by(b';')
    };
    assert_eq!(cells("'a;b';\"c'\n", single), [["a;b", "\"c'"]]);
}

#[test]
fn lines_are_passed_over_whatever_they_say() {
    for at_once in [1, usize::MAX] {
        let mut reader = CsvReader::new(Slowly(b"\"x\r\ny\"\rz\n\na,b\nlast", at_once), b',');
        for line in 2..=4 {
            assert!(reader.skip_line().unwrap());
            assert_eq!(reader.line(), line);
        }
        let mut record = CsvRecord::default();
        assert!(reader.read(&mut record).unwrap());
        assert_eq!((record.line(), record.len()), (5, 2));
        assert!(reader.skip_line().unwrap());
        assert!(!reader.skip_line().unwrap());
    }
}

/// A cell of a file by RFC 4180, and whether it is written with quotes.
fn cell() -> impl Strategy<Value = (String, bool)> {
    prop_oneof![
        3 => ("[a-c0-9 .\\\\äöü水]{0,6}", Just(false)),
        2 => ("[ -~\r\n\t,;|\"'äö水]{0,8}", Just(true)),
    ]
}

/// The signs of a file.
fn format() -> impl Strategy<Value = CsvFormat> {
    let delimiters = prop::sample::select(b",;|\t".to_vec());
    let quotes = prop::sample::select(b"\"'".to_vec());
    (delimiters, quotes, any::<bool>()).prop_map(|(delimiter, quote, is_double)| CsvFormat {
        delimiter,
        quote: Some(quote),
        escape: if is_double {
            QuoteEscape::Double
        } else {
            QuoteEscape::Backslash
        },
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// RFC 4180 section 2, with lines of any length, other delimiters and quotes, and backslashes.
    #[test]
    fn a_file_by_the_rfc_is_read_as_the_crate_csv_reads_it(
        rows in prop::collection::vec(prop::collection::vec(cell(), 1..5), 0..8),
        format in format(),
        is_crlf in any::<bool>(),
        is_ended in any::<bool>(),
        at_once in 1_usize..20,
    ) {
        let end = if is_crlf { "\r\n" } else { "\n" };
        let quote = char::from(format.quote.unwrap());
        let is_double = format.escape == QuoteEscape::Double;
        let written = |(text, is_quoted): &(String, bool)| match (is_quoted, is_double) {
            (false, _) => text.clone(),
            (true, true) => format!("{quote}{}{quote}", text.replace(quote, &format!("{quote}{quote}"))),
            (true, false) => {
                format!("{quote}{}{quote}", text.replace('\\', "\\\\").replace(quote, &format!("\\{quote}")))
            }
        };
        let delimiter = char::from(format.delimiter).to_string();
        let lines = rows.iter().map(|row| row.iter().map(written).collect::<Vec<_>>().join(&delimiter));
        let mut text = lines.collect::<Vec<_>>().join(end);
        if is_ended {
            text.push_str(end);
        }
        let mut theirs = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(format.delimiter)
            .quote(quote as u8)
            .escape((!is_double).then_some(b'\\'))
            .from_reader(text.as_bytes());
        let theirs: Vec<Vec<String>> = theirs
            .records()
            .map(|record| record.unwrap().iter().map(str::to_owned).collect())
            .collect();
        let ours = read_with(text.as_bytes(), format, at_once).unwrap();
        prop_assert!(ours.iter().all(|(_, _, problem)| problem.is_none()), "{text:?}: {ours:?}");
        let ours: Vec<Vec<String>> = ours.into_iter().map(|(_, cells, _)| cells).collect();
        prop_assert_eq!(ours, theirs, "{:?}", text);
    }

    /// Whatever a file says, no cell has bytes that the file does not have, and reading ends.
    #[test]
    fn any_text_is_read_alike_whatever_is_read_at_once(
        text in "[ab,\\\\\" \t\r\n]{0,40}",
        format in format(),
        at_once in 1_usize..9,
    ) {
        let whole = read_with(text.as_bytes(), format, usize::MAX);
        let pieces = read_with(text.as_bytes(), format, at_once);
        prop_assert_eq!(format!("{whole:?}"), format!("{pieces:?}"));
    }
}
