//! Files that a call reads: each in a process of its own, which a hostile file ends and not the service.

use std::io::{Cursor, Write as _};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use flate2::{Compress, Compression, Crc, FlushCompress};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};
use tests::World;
use tests::http::Answer;

use crate::binary;
use crate::uploads::{push, said};

const MEBIBYTE: usize = 1 << 20;
/// A workbook that openpyxl wrote.
const WORKBOOK: &[u8] = include_bytes!("../../catalog/tabular/tests/files/openpyxl.xlsx");
const TABLE: &[u8] = include_bytes!("../../catalog/tabular/tests/files/duckdb.parquet");

/// Deflate (RFC 1951) of a byte, so many MiB of it, without the work of compressing it.
fn deflated(byte: u8, mebibytes: usize) -> Vec<u8> {
    let mut compress = Compress::new(Compression::best(), false);
    let mut piece = Vec::with_capacity(MEBIBYTE);
    let plain = vec![byte; MEBIBYTE];
    // What a full flush ends refers to nothing before it, so it can be repeated.
    compress.compress_vec(&plain, &mut piece, FlushCompress::Full).unwrap();
    let mut bytes = piece.repeat(mebibytes);
    // An empty block that is the last (section 3.2.3): fixed codes, and the end.
    bytes.extend([0x03, 0x00]);
    bytes
}

/// A part of a ZIP archive: name, deflated bytes, claimed length and CRC.
struct ZipPart {
    name: &'static str,
    deflated: Vec<u8>,
    length: u32,
    crc: u32,
}

impl ZipPart {
    fn new(name: &'static str, text: &[u8]) -> Self {
        let mut compress = Compress::new(Compression::fast(), false);
        let mut deflated = Vec::with_capacity(text.len() + 100);
        compress
            .compress_vec(text, &mut deflated, FlushCompress::Finish)
            .unwrap();
        let mut crc = Crc::new();
        crc.update(text);
        Self {
            name,
            deflated,
            length: u32::try_from(text.len()).unwrap(),
            crc: crc.sum(),
        }
    }
}

/// A ZIP archive (APPNOTE 4.3) with these parts.
fn zip(parts: &[ZipPart]) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for part in parts {
        let offset = u32::try_from(archive.len()).unwrap();
        let mut common = Vec::new();
        for two in [20_u16, 0, 8, 0, 0x21] {
            common.extend(two.to_le_bytes());
        }
        for four in [part.crc, u32::try_from(part.deflated.len()).unwrap(), part.length] {
            common.extend(four.to_le_bytes());
        }
        common.extend(u16::try_from(part.name.len()).unwrap().to_le_bytes());
        common.extend([0, 0]);
        archive.extend(b"PK\x03\x04");
        archive.extend(&common);
        archive.extend(part.name.as_bytes());
        archive.extend(&part.deflated);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(part.name.as_bytes());
    }
    let begin = u32::try_from(archive.len()).unwrap();
    archive.extend(&directory);
    archive.extend(b"PK\x05\x06\x00\x00\x00\x00");
    let count = u16::try_from(parts.len()).unwrap().to_le_bytes();
    archive.extend(count);
    archive.extend(count);
    archive.extend(u32::try_from(directory.len()).unwrap().to_le_bytes());
    archive.extend(begin.to_le_bytes());
    archive.extend([0, 0]);
    archive
}

/// A workbook whose table of texts is one of so many MiB, which it says or not.
fn workbook_of(mebibytes: usize, is_honest: bool) -> Vec<u8> {
    let relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let relations = |target: &str, kind: &str| {
        format!(
            r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="{relation}/{kind}" Target="{target}"/></Relationships>"#
        )
    };
    let head = format!(r#"<sst xmlns="{main}"><si><t>"#);
    // The head is a block of its own; no end is needed, since nobody comes to it.
    let mut compress = Compress::new(Compression::fast(), false);
    let mut texts = Vec::with_capacity(1_000);
    compress
        .compress_vec(head.as_bytes(), &mut texts, FlushCompress::Full)
        .unwrap();
    texts.extend(deflated(b'a', mebibytes));
    zip(&[
        ZipPart::new("_rels/.rels", relations("xl/workbook.xml", "officeDocument").as_bytes()),
        ZipPart::new(
            "xl/workbook.xml",
            format!(
                r#"<workbook xmlns="{main}" xmlns:r="{relation}"><sheets><sheet name="A" sheetId="1" r:id="r1"/></sheets></workbook>"#
            )
            .as_bytes(),
        ),
        ZipPart::new(
            "xl/_rels/workbook.xml.rels",
            relations("worksheets/sheet1.xml", "worksheet").as_bytes(),
        ),
        ZipPart::new(
            "xl/worksheets/sheet1.xml",
            format!(r#"<worksheet xmlns="{main}"><sheetData><row r="1"><c r="A1"><v>1</v></c></row></sheetData></worksheet>"#)
                .as_bytes(),
        ),
        ZipPart {
            name: "xl/sharedStrings.xml",
            length: if is_honest { u32::try_from(mebibytes * MEBIBYTE).unwrap() } else { 1_000 },
            crc: 0,
            deflated: texts,
        },
    ])
}

/// A Parquet file whose one text comes to so many MiB in its rows. It is short enough to be in a dictionary once.
fn table_of(mebibytes: usize) -> Vec<u8> {
    let text = "x".repeat(MEBIBYTE / 2);
    let column: ArrayRef = Arc::new(StringArray::from(vec![text.as_str(); 50]));
    let batch = RecordBatch::try_from_iter([("text", column)]).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    for _ in 0..mebibytes / 25 {
        writer.write(&batch).unwrap();
    }
    writer.close().unwrap();
    bytes
}

async fn infer(world: &World, file: Vec<u8>) -> Answer {
    world
        .agent
        .http
        .post_as("/files/infer", "application/octet-stream", file)
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workbook_is_inferred_judged_and_converted() {
    let world = World::start(binary()).await;
    let found = infer(&world, WORKBOOK.to_vec()).await.expect(200).body;
    assert_eq!((&found["format"], &found["records"]), (&json!("xlsx"), &json!(3)));
    assert_eq!(found["schemaDef"]["fields"][1]["type"], "date");
    assert_eq!(found["projects"]["limit"], 1_000_000);
    let fields = json!([{"name": "station_id", "type": "string"}, {"name": "elevation_m", "type": "integer"}]);
    let base64 = data_encoding::BASE64.encode(WORKBOOK);
    let ignored = ["Opened", "Seen", "Ratio", "Open at", "Note"];
    let flags: Vec<Value> = ignored
        .iter()
        .map(|name| json!({"flag": "--ignore", "value": name}))
        .collect();
    let mut body = json!({"base64": base64, "schemaDef": {"fields": fields}, "flags": flags});
    let judged = world.agent.http.post("/files/infer", &body).await.expect(200).body;
    assert_eq!(
        (&judged["passed"], &judged["refused"]),
        (&json!(2), &json!(1)),
        "{judged}"
    );
    assert!(judged["rejected"].is_string(), "{judged}");
    let verdict = &judged["verdicts"][0];
    assert_eq!(
        (&verdict["line"], &verdict["column"]),
        (&json!(2), &json!("Elevation (m)"))
    );
    assert_eq!((&verdict["value"], &verdict["gate"]), (&json!("9.5"), &json!("decode")));
    assert_eq!(verdict["remedy"]["flag"], "--null");
    body["onRefused"] = json!("drop");
    let left_out = world.agent.http.post("/files/infer", &body).await.expect(200).body;
    assert_eq!((&left_out["refused"], &left_out["rejected"]), (&json!(1), &Value::Null));
    // Text that stood there would be a decimal.
    body["schemaDef"]["fields"][1] = json!({"name": "elevation_m", "type": "decimal", "scale": 0});
    let judged = world.agent.http.post("/files/infer", &body).await.expect(200).body;
    assert_eq!(
        (&judged["passed"], &judged["refused"]),
        (&json!(2), &json!(1)),
        "{judged}"
    );
    body["schemaDef"]["fields"][1] = json!({"name": "elevation_m", "type": "number"});
    let lines = world.owner.post("/files/convert", &body).await.expect(200);
    let lines = String::from_utf8(lines.bytes).unwrap();
    let lines: Vec<&str> = lines.split('\n').collect();
    assert_eq!(lines[..2], ["", r#"{"station_id":"0017","elevation_m":9.5}"#]);
    assert_eq!(lines[3..], ["", r#"{"station_id":"0019"}"#, ""], "line N is row N");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_is_judged_with_its_values_and_lines() {
    let world = World::start(binary()).await;
    let text = "station;sample;value\nA;1;1,5\nB;x;2,25\nA;1;1,5\n";
    let fields = json!([
        {"name": "station", "type": "string"}, {"name": "sample", "type": "integer"}, {"name": "value", "type": "number"},
    ]);
    let body = json!({"text": text, "schemaDef": {"fields": fields}});
    let judged = world.agent.http.post("/files/infer", &body).await.expect(200).body;
    assert_eq!(
        (&judged["passed"], &judged["refused"], &judged["duplicates"]),
        (&json!(1), &json!(1), &json!(1)),
        "{judged}"
    );
    let verdict = &judged["verdicts"][0];
    assert_eq!(
        (
            &verdict["line"],
            &verdict["column"],
            &verdict["value"],
            &verdict["path"]
        ),
        (&json!(3), &json!("sample"), &json!("x"), &json!("/sample"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bomb_ends_its_process_and_not_the_service() {
    let world = World::start(binary()).await;
    let mut gzip = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03".to_vec();
    gzip.extend(deflated(b'{', 2_000));
    gzip.extend([0; 8]);
    let mut packed = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03".to_vec();
    // A Parquet file of a GiB, in gzip.
    let mut compress = Compress::new(Compression::fast(), false);
    let mut begin = Vec::with_capacity(100);
    compress.compress_vec(b"PAR1", &mut begin, FlushCompress::Full).unwrap();
    packed.extend(begin);
    packed.extend(deflated(0, 1_024));
    packed.extend([0; 8]);
    for (name, file) in [
        ("a workbook that says that it is large", workbook_of(1_024, true)),
        ("a workbook that does not", workbook_of(1_024, false)),
        ("a table in gzip", packed),
    ] {
        assert!(file.len() < 8 << 20, "{name}");
        let (operator, agent) = world.newcomer().await;
        let answer = agent
            .http
            .post_as("/files/infer", "application/octet-stream", file)
            .await;
        assert_eq!(
            (answer.code(), answer.error()),
            (400, "file_too_large"),
            "{name}: {}",
            answer.body
        );
        drop(operator);
    }
    // Text of one character is no records, and it is not held.
    let (_, agent) = world.newcomer().await;
    let answer = agent
        .http
        .post_as("/files/infer", "application/octet-stream", gzip)
        .await;
    assert_eq!(answer.code(), 400, "{}", answer.body);
    let body = json!({"base64": data_encoding::BASE64.encode(&table_of(100))});
    let (_, agent) = world.newcomer().await;
    let answer = agent.http.post("/files/convert", &body).await;
    assert_eq!(
        (answer.code(), answer.error()),
        (400, "file_too_large"),
        "{}",
        answer.body
    );
    // The service is as it was.
    let found = infer(&world, TABLE.to_vec()).await.expect(200).body;
    assert_eq!(found["columns"][2]["examples"], json!(["P2M3D"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bomb_is_refused_by_push() {
    let world = World::start(binary()).await;
    let slug = world.project().await;
    for is_honest in [true, false] {
        let file = world.folder().join(world.name("bomb"));
        std::fs::write(&file, workbook_of(1_024, is_honest)).unwrap();
        let output = push(&world, &slug, &file, 1 << 20).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    }
}

/// What is damaged is said of the file, wherever the damage is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_file_is_refused() {
    let world = World::start(binary()).await;
    let mut zeros = Cursor::new(TABLE.to_vec());
    zeros.set_position(20);
    zeros.write_all(&[0; 40]).unwrap();
    for file in [
        WORKBOOK[..WORKBOOK.len() / 2].to_vec(),
        TABLE[..TABLE.len() - 9].to_vec(),
        zeros.into_inner(),
    ] {
        let answer = infer(&world, file).await;
        assert_eq!(
            (answer.code(), answer.error()),
            (400, "file_refused"),
            "{}",
            answer.body
        );
    }
}
