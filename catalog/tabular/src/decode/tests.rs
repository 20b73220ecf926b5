use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn text(input: &[u8], compression: FileCompression) -> io::Result<String> {
    let mut text = String::new();
    decompress(input, compression)?.read_to_string(&mut text)?;
    Ok(text)
}

fn utf8(bytes: &[u8], label: &str) -> Result<String, MalformedText> {
    let mut text = Vec::new();
    let read = Utf8Reader::new(bytes, label).unwrap().read_to_end(&mut text);
    match read {
        Ok(_) => Ok(String::from_utf8(text).unwrap()),
        Err(error) => Err(MalformedText::of(&error).unwrap().clone()),
    }
}

#[test]
fn gzip_may_have_members_and_zeros_behind_them() {
    let members = [gzip(b"a,b\n"), gzip(b""), gzip(b"1,2\n")].concat();
    let padded = [members.clone(), vec![0; 100_000]].concat();
    for bytes in [&members, &padded] {
        assert_eq!(text(bytes, FileCompression::Gzip).unwrap(), "a,b\n1,2\n");
    }
    for damaged in [
        [members.clone(), b"more".to_vec()].concat(),
        [members.clone(), vec![0; 10], b"more".to_vec()].concat(),
        members[..members.len() - 1].to_vec(),
        gzip(b"a")[..5].to_vec(),
    ] {
        assert!(text(&damaged, FileCompression::Gzip).is_err(), "{damaged:?}");
    }
}

#[test]
fn zstandard_is_read_with_a_window_of_at_most_128_mib() {
    let frames = [
        zstd::encode_all(&b"a,b\n"[..], 1).unwrap(),
        zstd::encode_all(&b"1,2\n"[..], 1).unwrap(),
    ]
    .concat();
    assert_eq!(text(&frames, FileCompression::Zstd).unwrap(), "a,b\n1,2\n");
    assert!(text(&frames[..frames.len() - 1], FileCompression::Zstd).is_err());
    let windowed = |log: u32| {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(log).unwrap();
        encoder.include_contentsize(false).unwrap();
        encoder.write_all(b"a,b\n").unwrap();
        encoder.finish().unwrap()
    };
    assert_eq!(text(&windowed(27), FileCompression::Zstd).unwrap(), "a,b\n");
    assert!(text(&windowed(28), FileCompression::Zstd).is_err());
}

#[test]
fn text_of_every_encoding_becomes_utf_8_without_its_mark() {
    for (bytes, label, expected) in [
        (&b"naam\nZo\xc3\xab"[..], "utf-8", "naam\nZoë"),
        (b"\xef\xbb\xbfa,b", "utf-8", "a,b"),
        (b"\xff\xfen\0a\0a\0m\0\n\0Z\0o\0\xeb\0", "utf-16le", "naam\nZoë"),
        (b"\xfe\xff\0n\0\xeb", "utf-16be", "në"),
        (b"K\xf6ln", "windows-1252", "Köln"),
        (b"\x8e\x9a", "shift_jis", "字"),
        (b"", "utf-8", ""),
    ] {
        assert_eq!(utf8(bytes, label).as_deref(), Ok(expected), "{label}");
    }
    assert!(Utf8Reader::new(&b""[..], "utf-9").is_err());
    assert!(Utf8Reader::new(&b""[..], "replacement").is_err());
}

#[test]
fn bytes_that_are_no_text_are_named_by_their_line_and_an_encoding_is_only_offered() {
    let begin = "stad,land\r\nBr\u{fc}ssel,Belgien\rM\u{fc}nchen,Deutschland\n";
    let latin: Vec<u8> = begin
        .chars()
        .map(|character| u8::try_from(u32::from(character)).unwrap())
        .collect();
    let malformed = utf8(&latin, "utf-8").unwrap_err();
    assert_eq!(malformed.line, 2);
    assert_eq!(malformed.to_string(), "line 2 is not UTF-8");
    let offer = offer_encoding(&latin, &malformed).unwrap();
    assert_eq!((offer.label.as_str(), offer.word.as_str()), ("windows-1252", "Brüssel"));
    for (bytes, line) in [
        (&b"a\nb\n\xc3"[..], 3),
        (b"a\r\nb\r\n\xff", 3),
        (b"a\rb\rc\xed\xa0\x80", 3),
        (b"\xf6", 1),
    ] {
        assert_eq!(utf8(bytes, "utf-8").unwrap_err().line, line, "{bytes:?}");
    }
    // Half of a pair of surrogates.
    assert_eq!(utf8(b"a\0\n\0\x00\xd8", "utf-16le").unwrap_err().line, 2);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_at_once_says_nothing(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        label in prop::sample::select(vec!["utf-8", "utf-16le", "windows-1252", "gb18030"]),
        at_once in 1_usize..40,
    ) {
        let whole = utf8(&bytes, label);
        let mut reader = Utf8Reader::new(Cursor::new(&bytes), label).unwrap();
        let mut text = Vec::new();
        let slow = loop {
            let mut some = vec![0; at_once];
            match reader.read(&mut some) {
                Ok(0) => break Ok(String::from_utf8(text).unwrap()),
                Ok(read) => text.extend_from_slice(&some[..read]),
                Err(error) => break Err(MalformedText::of(&error).unwrap().clone()),
            }
        };
        prop_assert_eq!(&slow, &whole);
        if label == "utf-8" {
            let theirs = String::from_utf8(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes).to_vec());
            prop_assert_eq!(slow.ok(), theirs.ok());
        }
    }
}
