use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;

fn kind(begin: &[u8]) -> FileKind {
    detect(begin).unwrap().kind
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn files_are_what_their_bytes_say() {
    for (begin, expected) in [
        (&b"id,qty\n7,3\n"[..], FileKind::Delimited),
        (b"{\"a\":1}\n{\"a\":2}\n", FileKind::JsonLines),
        (b"\n\n{\"a\":1}\n\n{\"a\":2}", FileKind::JsonLines),
        (b"{\"a\":1}{\"a\":2}", FileKind::JsonDocument),
        (b"{\"data\":{\"items\":[{\"a\":1}]}}\n", FileKind::JsonDocument),
        (b"{\n \"a\": 1\n}", FileKind::JsonDocument),
        (b"[{\"a\":1}]", FileKind::JsonDocument),
        (b"[\n]", FileKind::JsonDocument),
        (b"[x] a,b\n1,2", FileKind::Delimited),
        (b"PAR1....", FileKind::Parquet),
        (b"ARROW1\0\0", FileKind::ArrowFile),
        (b"\xff\xff\xff\xff\x10\0\0\0", FileKind::ArrowStream),
        (b"PK\x03\x04................xl/workbook.xml", FileKind::Xlsx),
    ] {
        assert_eq!(kind(begin), expected, "{:?}", String::from_utf8_lossy(begin));
    }
}

#[test]
fn what_is_compressed_is_looked_into_once() {
    let text = b"p|q\n1|2";
    let members = [gzip(b"p|q\n"), gzip(b"1|2")].concat();
    let found = detect(&members).unwrap();
    assert_eq!(
        (found.compression, found.kind),
        (FileCompression::Gzip, FileKind::Delimited)
    );
    let found = detect(&zstd::encode_all(&text[..], 1).unwrap()).unwrap();
    assert_eq!(
        (found.compression, found.kind),
        (FileCompression::Zstd, FileKind::Delimited)
    );
    assert_eq!(detect(&gzip(&members)).unwrap_err().code, "compressed_twice");
    assert_eq!(detect(b"\x1f\x8b\x08nothing").unwrap_err().code, "damaged");
    // The begin of a file ends anywhere.
    let long = gzip(&b"{\"a\":1}\n".repeat(1_000));
    assert_eq!(kind(&long[..long.len() / 2]), FileKind::JsonLines);
    let bomb = gzip(&vec![b'a'; 100 << 20]);
    assert_eq!(kind(&bomb), FileKind::Delimited);
}

#[test]
fn encodings_show_in_marks_and_zeros() {
    let wide = |text: &str, mark: bool, is_big: bool| -> Vec<u8> {
        let mark = mark.then_some(0xfeff_u16);
        let units = mark.into_iter().chain(text.encode_utf16());
        units
            .flat_map(|unit| if is_big { unit.to_be_bytes() } else { unit.to_le_bytes() })
            .collect()
    };
    for (mark, is_big, label) in [
        (true, false, "utf-16le"),
        (true, true, "utf-16be"),
        (false, false, "utf-16le"),
        (false, true, "utf-16be"),
    ] {
        let found = detect(&wide("{\"naam\":1}\n{\"naam\":2}", mark, is_big)).unwrap();
        assert_eq!((found.encoding, found.kind), (label, FileKind::JsonLines));
    }
    assert_eq!(detect(b"\xef\xbb\xbf{\"a\":1}\n{}").unwrap().kind, FileKind::JsonLines);
    assert_eq!(detect(b"K\xf6ln,1\n").unwrap().encoding, "utf-8");
    // As Hive writes tables.
    let controls = b"a\x01b\x02c\x03d\n".repeat(99);
    assert_eq!(kind(&controls), FileKind::Delimited);
}

#[test]
fn what_is_not_read_is_named_with_a_way_out() {
    let zip = [&b"PK\x03\x04"[..], &[0; 22], &[5, 0, 0, 0], b"x.csv"].concat();
    let tar = [vec![b'x'; 257], b"ustar\0".to_vec(), vec![0; 300]].concat();
    for (begin, code, words) in [
        (&zip[..], "zip", "`x.csv`"),
        (b"PK\x05\x06", "zip", "ZIP"),
        (b"BZh91AY", "bzip2", "bunzip2"),
        (b"\xfd7zXZ\0", "xz", "unxz"),
        (&tar, "tar", "tar -xf"),
        (b"\xd0\xcf\x11\xe0\xa1", "old_office", ".xlsx"),
        (b"FEA1", "feather_1", "Feather 2"),
        (b"Obj\x01", "avro", "Parquet"),
        (b"ORC", "orc", "Parquet"),
        (b"SQLite format 3\0", "sqlite", "sqlite3"),
        (b"%PDF-1.7", "pdf", "PDF"),
        (b"  <!DOCTYPE html><title>", "html", "a web page"),
        (b"<HTML>", "html", "a web page"),
        (b"<?xml version='1.0'?><Workbook>", "xml", "XML"),
        (b"version https://git-lfs", "lfs_pointer", "git lfs pull"),
        (b"[[1,2],[3,4]]", "not_objects", "records must be objects"),
        (b"[1,2]\n[3,4]\n", "not_objects", "records must be objects"),
        (b" \n", "empty", "empty"),
        (b"", "empty", "empty"),
        (b"\x89PNG\r\n\x1a\n", "image", "an image"),
        (b"\xff\xd8\xff\xe0", "image", "an image"),
        (b"GIF89a", "image", "an image"),
        (b"\x01\x02\x03\x04\x05\x06\x07\x08\x0e\x0f\xc3\x28", "binary", "binary"),
        (b"\x7fELF\0\0\0\0\0\0\0\0\0\0\0\x01", "binary", "binary"),
    ] {
        let refused = detect(begin).unwrap_err();
        assert_eq!(refused.code, code, "{}", String::from_utf8_lossy(begin));
        assert!(refused.to_string().contains(words), "{refused}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_something_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Err(refused) = detect(&bytes) {
            prop_assert!(!refused.problem.is_empty() && !refused.remedy.is_empty());
        }
    }
}
