use std::io::Write as _;

use flate2::Compression as Level;
use flate2::write::GzEncoder;

use super::*;

/// The lines with their numbers; a line that is too long is `None`.
type Lines = Vec<(u64, Option<String>)>;

/// Fields of the records.
const FIELDS: usize = 4;

fn plan(compression: Compression, fields: usize) -> SplitPlan {
    SplitPlan {
        compression,
        reading: None,
        is_by_record: false,
        fields,
        name_bytes: 0,
    }
}

fn split_all(input: &[u8], compression: Compression) -> Result<Lines, SplitError> {
    let mut lines = Vec::new();
    let mut chunks = 0;
    split(input, &plan(compression, FIELDS), |chunk| {
        assert_eq!(chunk.number, chunks);
        chunks += 1;
        if chunk.too_long {
            lines.push((chunk.first, None));
        }
        let texts = chunk.text.split_inclusive(|byte| *byte == b'\n');
        for (number, line) in (chunk.first..).zip(texts) {
            lines.push((number, Some(String::from_utf8_lossy(line).trim_end().to_owned())));
        }
        true
    })?;
    Ok(lines)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Level::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn code(input: &[u8], compression: Compression) -> &'static str {
    match split_all(input, compression) {
        Err(SplitError::Unreadable { code, .. }) => code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_line_is_there_with_its_number_however_it_ends() {
    for (text, expected) in [
        ("", vec![]),
        ("a", vec!["a"]),
        ("a\nb\n", vec!["a", "b"]),
        ("a\r\n\r\nb", vec!["a", "", "b"]),
        ("\u{feff}a\nb", vec!["a", "b"]),
        ("\n\n", vec!["", ""]),
    ] {
        let lines = split_all(text.as_bytes(), Compression::None).unwrap();
        let expected: Lines = (0..)
            .zip(expected.into_iter().map(|line| Some(line.to_owned())))
            .collect();
        assert_eq!(lines, expected, "{text:?}");
    }
}

#[test]
fn lines_across_units_keep_their_numbers() {
    let text = (0..300_000)
        .map(|number| format!("line {number}\n"))
        .collect::<Vec<_>>()
        .concat();
    assert!(text.len() > 3 * CHUNK);
    for (bytes, compression) in [
        (text.clone().into_bytes(), Compression::None),
        (gzip(text.as_bytes()), Compression::Gzip),
    ] {
        let lines = split_all(&bytes, compression).unwrap();
        assert_eq!(lines.len(), 300_000);
        for (index, (number, line)) in (0..).zip(lines) {
            assert_eq!((number, line), (index, Some(format!("line {index}"))));
        }
    }
}

#[test]
fn many_short_lines_of_many_fields_are_many_units() {
    let text = b"{}\n".repeat(100_000);
    for (fields, most) in [(1, 65_536), (2, 32_768), (256, 256), (100_000, 1)] {
        let (mut lines, mut chunks, mut read) = (0, 0, Vec::new());
        let bytes = &text[..if most == 1 { 30 } else { text.len() - 1 }];
        split(bytes, &plan(Compression::None, fields), |chunk| {
            assert_eq!((chunk.number, chunk.first), (chunks, lines));
            let count = chunk.text.split_inclusive(|byte| *byte == b'\n').count();
            assert!((1..=most).contains(&count), "{count} lines");
            chunks += 1;
            lines += count as u64;
            read.extend(chunk.text);
            true
        })
        .unwrap();
        assert_eq!(read, bytes);
        assert_eq!(lines, bytes.len().div_ceil(3) as u64);
        assert_eq!(chunks, lines.div_ceil(most as u64));
    }
}

#[test]
fn a_line_that_is_too_long_is_named_and_passed_over() {
    let mut text = b"a\n".to_vec();
    text.resize(100 << 20, b'x');
    text.extend_from_slice(b"\nb\n");
    let lines = split_all(&text, Compression::None).unwrap();
    let expected = vec![(0, Some("a".to_owned())), (1, None), (2, Some("b".to_owned()))];
    assert_eq!(lines, expected);
    // One without an end.
    text.truncate(50 << 20);
    assert_eq!(split_all(&text, Compression::None).unwrap(), expected[..2]);
}

#[test]
fn gzip_may_have_several_members_and_must_be_whole() {
    let two = [gzip(b"a\nb"), gzip(b"c\nd\n")].concat();
    let lines = split_all(&two, Compression::Gzip).unwrap();
    let texts: Vec<_> = lines.into_iter().filter_map(|(_, line)| line).collect();
    assert_eq!(texts, ["a", "bc", "d"]);
    assert_eq!(split_all(&gzip(b""), Compression::Gzip).unwrap(), []);
    assert_eq!(code(&two[..two.len() - 3], Compression::Gzip), "gzip_damaged");
    assert_eq!(code(&[&two[..], b"more"].concat(), Compression::Gzip), "gzip_damaged");
    assert_eq!(code(b"plain\n", Compression::Gzip), "gzip_damaged");
    assert_eq!(code(b"", Compression::Gzip), "gzip_damaged");
    let mut damaged = gzip(&b"some text that is longer\n".repeat(100));
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x55;
    assert_eq!(code(&damaged, Compression::Gzip), "gzip_damaged");
}

#[test]
fn gzip_where_none_belongs_is_named() {
    assert_eq!(code(&gzip(b"a\n"), Compression::None), "gzip_unexpected");
    assert_eq!(code(&gzip(&gzip(b"a\n")), Compression::Gzip), "gzip_unexpected");
}

#[test]
fn a_bomb_is_found_long_before_its_end() {
    let mut encoder = GzEncoder::new(Vec::new(), Level::best());
    encoder.write_all(&vec![b'\n'; 200 << 20]).unwrap();
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < 1 << 20);
    let mut read = 0;
    let ended = split(&bomb[..], &plan(Compression::Gzip, FIELDS), |chunk| {
        read += chunk.text.len() as u64;
        true
    });
    assert!(
        matches!(ended, Err(SplitError::Unreadable { code: "gzip_bomb", .. })),
        "{ended:?}"
    );
    assert!(read < 2 * UNSUSPECTED, "{read}");
}

#[test]
fn there_are_no_more_lines_than_numbers() {
    for (before, ends) in [(3, false), (2, true)] {
        let cutter = LineSplitter {
            lines: MOST_LINES - before,
            ..LineSplitter::default()
        };
        let ended = cutter.run(&b"\n\n\n"[..], 100, |_| true);
        let many = matches!(
            ended,
            Err(BrokenSource::Content(SplitError::Unreadable {
                code: "too_many_lines",
                ..
            }))
        );
        assert_eq!((many, ended.is_ok()), (ends, !ends), "{before} before");
    }
}

#[test]
fn a_source_that_fails_is_not_the_contributors_fault() {
    struct Fails;
    impl Read for Fails {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other(SourceFailed))
        }
    }
    for compression in [Compression::None, Compression::Gzip] {
        assert!(matches!(
            split(Fails, &plan(compression, FIELDS), |_| true),
            Err(SplitError::Source)
        ));
    }
}

#[test]
fn cutting_ends_where_nobody_wants_more() {
    let text = b"line\n".repeat(CHUNK);
    let mut chunks = 0;
    let ended = split(&text[..], &plan(Compression::None, FIELDS), |_| {
        chunks += 1;
        chunks < 2
    });
    assert!(matches!(ended, Err(SplitError::Unwanted)));
    assert_eq!(chunks, 2);
}

#[test]
fn records_are_cut_by_their_text_their_names_and_their_values() {
    let reading = r#"{"format": "csv", "headerLine": 0, "columns": [{"from": "a", "to": "a"}]}"#;
    let reading: Arc<Reading> = Arc::new(serde_json::from_str(reading).unwrap());
    let cut = |text: &str, fields: usize, name_bytes: usize| {
        let plan = SplitPlan {
            compression: Compression::None,
            reading: Some(Arc::clone(&reading)),
            is_by_record: false,
            fields,
            name_bytes,
        };
        let (mut sizes, mut next) = (Vec::new(), 0);
        let ended = split(text.as_bytes(), &plan, |chunk| {
            assert_eq!(
                (chunk.first, chunk.number, chunk.read),
                (next, sizes.len() as u64, None)
            );
            let records = chunk.records.unwrap();
            assert_eq!(records.len(), chunk.lines);
            assert!(records.last().is_some_and(|record| record.end == chunk.text.len()));
            next += chunk.lines as u64;
            sizes.push(chunk.lines);
            true
        });
        ended.unwrap();
        sizes
    };
    let short = "x\n".repeat(10);
    assert_eq!(cut(&short, 1, 10), [10]);
    assert_eq!(cut(&short, CHUNK_VALUES / 4, 10), [4, 4, 2]);
    assert_eq!(cut(&short, 1, CHUNK / 3), [3, 3, 3, 1]);
    assert_eq!(cut(&short, 1, 2 * CHUNK), [1; 10]);
    let long = format!("{}\n", "x".repeat(CHUNK / 2)).repeat(5);
    assert_eq!(cut(&long, 1, 10), [2, 2, 1]);
    assert_eq!(cut("", 1, 10), [0; 0]);
    let passed = format!("a\n{}\nb\n", "x".repeat(MAX_LINE_BYTES + 1));
    assert_eq!(cut(&passed, 1, 10), [3]);
}
