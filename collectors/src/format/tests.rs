use std::time::{Duration, Instant};

use super::*;

fn fetch(text: &str) -> Fetch {
    toml::from_str(&format!("url = \"https://h.example/\"\n{text}")).unwrap()
}

fn decoded(definition: &str, body: &str, is_framed: bool) -> Result<Vec<Value>, RunFailure> {
    decode(&fetch(definition), &Bytes::copy_from_slice(body.as_bytes()), is_framed)
}

#[test]
fn records_are_found_where_the_definition_says() {
    let members = "format = \"json\"\nrecords = \"/a/b\"\nmembers = true";
    assert_eq!(
        decoded(members, r#"{"a":{"b":{"x":1,"y":2}}}"#, true).unwrap(),
        [json!({"key": "x", "value": 1}), json!({"key": "y", "value": 2})]
    );
    assert_eq!(
        decoded("format = \"json\"", "[1,2]", true).unwrap(),
        [json!(1), json!(2)]
    );
    assert_eq!(
        decoded("format = \"ndjson\"", "{\"a\":1}\n\n{\"a\":2}\n", false)
            .unwrap()
            .len(),
        2
    );
    let csv = "format = \"csv\"\nheader = false\ndelimiter = \";\"";
    assert_eq!(
        decoded(csv, "a;\"b;c\"\n", false).unwrap(),
        [json!({"1": "a", "2": "b;c"})]
    );
    let marked = "\u{feff}id, name \n1,x\n";
    assert_eq!(
        decoded("format = \"csv\"", marked, true).unwrap(),
        [json!({"id": "1", "name": "x"})]
    );
}

#[test]
fn an_answer_that_is_cut_off_or_of_another_form_is_refused() {
    for (definition, body, is_framed) in [
        ("format = \"json\"", r#"[{"a":1},{"a""#, false),
        ("format = \"json\"", r#"{"items":[]}"#, true),
        ("format = \"json\"\nrecords = \"/items\"", r#"{"error":"busy"}"#, true),
        ("format = \"json\"", "<html>busy</html>", true),
        ("format = \"ndjson\"", "{\"a\":1}\n{\"a\":", true),
        ("format = \"ndjson\"", "{\"a\":1}\n{\"a\":12}", false),
        ("format = \"csv\"", "a,b\n1,2\n3", true),
        ("format = \"csv\"", "a,b\n1,2\n3,4", false),
        ("format = \"csv\"", "a,b\n1,\u{0}\u{1}\n\"", false),
        ("format = \"csv\"", "a,b\n1,\"2\n3,4\n", true),
        ("format = \"csv\"", "a,b\n1,\"2\"3\n", true),
        ("format = \"feed\"", "<rss><channel><item><title>x</title></item>", true),
        ("format = \"feed\"", "<html><body></body></html>", true),
        (
            "format = \"feed\"",
            "<rss><channel><item><title>&lol;</title></item></channel></rss>",
            true,
        ),
        ("format = \"parquet\"", "PAR1 and no more", true),
    ] {
        let refused = decoded(definition, body, is_framed).unwrap_err();
        assert_eq!(refused.code, "form", "{body}");
    }
}

#[test]
fn a_number_that_would_lose_digits_stays_as_it_is_written_however_many_there_are() {
    let [long, tiny] = ["1000000000000000000007", "1e-400"].map(written_number);
    for definition in ["format = \"json\"", "format = \"ndjson\""] {
        let text = r#"{"a":[1000000000000000000007,1.5],"b":1e-400,"c":"1e-400","d":1e-400,"d":2}"#;
        let body = match definition {
            "format = \"json\"" => format!("[{text}]"),
            _ => format!("{text}\n"),
        };
        let expected = json!({"a": [long, 1.5], "b": tiny, "c": "1e-400", "d": 2});
        assert_eq!(decoded(definition, &body, true).unwrap(), [expected]);
    }
    // Names are not read again for each of the numbers below them.
    let body = format!(r#"[{{"{}":[{}1]}}]"#, "x".repeat(1 << 20), "1e-400,".repeat(20_000));
    let begun = Instant::now();
    let records = decoded("format = \"json\"", &body, true).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let numbers = records[0]
        .as_object()
        .unwrap()
        .values()
        .next()
        .unwrap()
        .as_array()
        .unwrap();
    assert_eq!((numbers.len(), &numbers[19_999]), (20_001, &tiny));
    // What is no number of JSON does not become one.
    assert!(decoded("format = \"json\"", "[1.2.34567890123456789]", true).is_err());
}

#[test]
fn entries_of_both_feeds_have_the_same_members() {
    let atom = r#"<feed xmlns="http://www.w3.org/2005/Atom"><title>all</title><entry><id>1</id><title>A &amp; B &#x43;</title>
        <link rel="self" href="s"/><link href="https://h.example/1?a=1&amp;b=2"/><author><name>Ada</name></author>
        <updated>2026-11-24T10:00:00Z</updated><summary>x</summary></entry></feed>"#;
    let rss = r#"<rss version="2.0"><channel><title>all</title><item><guid>1</guid><title><![CDATA[A & B C]]></title>
        <link>https://h.example/1?a=1&amp;b=2</link><author>Ada</author><description>x</description></item></channel></rss>"#;
    let (atom, rss) = (
        decoded("format = \"feed\"", atom, true),
        decoded("format = \"feed\"", rss, true),
    );
    let mut atom = atom.unwrap();
    assert_eq!(atom[0]["updated"], "2026-11-24T10:00:00Z");
    atom[0].as_object_mut().unwrap().remove("updated");
    assert_eq!(atom, rss.unwrap());
    assert_eq!(atom[0]["title"], "A & B C");
}

#[test]
fn the_next_page_is_a_text_or_there_is_none() {
    let next = |text: &'static str| next_page(&Bytes::from_static(text.as_bytes()), "/next");
    assert_eq!(next(r#"{"next":"/p?2"}"#).unwrap().as_deref(), Some("/p?2"));
    for last in [r#"{"next":null}"#, r#"{"next":""}"#, "{}"] {
        assert_eq!(next(last).unwrap(), None);
    }
    assert!(next(r#"{"next":7}"#).is_err() && next("{").is_err());
}

/// A file of two rows with a number, a text that may be missing, and an instant.
pub(crate) fn parquet_file() -> Vec<u8> {
    use ::parquet::data_type::{ByteArrayType, Int64Type};
    use ::parquet::file::writer::SerializedFileWriter;
    use ::parquet::schema::parser::parse_message_type;

    let schema = "message rows {
        required int64 n; optional binary name (STRING); required int64 at (TIMESTAMP(MICROS, true)); }";
    let schema = std::sync::Arc::new(parse_message_type(schema).unwrap());
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, std::sync::Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&[1, 2], None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let names = ["Hook of Holland".into()];
    column
        .typed::<ByteArrayType>()
        .write_batch(&names, Some(&[1, 0]), None)
        .unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column
        .typed::<Int64Type>()
        .write_batch(&[0, 1_500_000], None, None)
        .unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    bytes
}

/// A file of `rows` rows with the same text, which the file has once.
fn repeating(text: &str, rows: usize) -> Vec<u8> {
    use ::parquet::data_type::{ByteArray, ByteArrayType};
    use ::parquet::file::writer::SerializedFileWriter;
    use ::parquet::schema::parser::parse_message_type;

    let schema = parse_message_type("message rows { required binary name (STRING); }").unwrap();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema.into(), std::sync::Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let values = vec![ByteArray::from(text); rows];
    column
        .typed::<ByteArrayType>()
        .write_batch(&values, None, None)
        .unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    bytes
}

#[test]
fn a_small_file_of_large_rows_is_refused_while_it_is_read() {
    let text = "a".repeat(1_000);
    let bytes = repeating(&text, 200);
    assert!(bytes.len() < 10_000, "{}", bytes.len());
    let rows = |most| parquet::rows_within(Bytes::copy_from_slice(&bytes), most);
    assert_eq!(rows(1 << 20).unwrap().len(), 200);
    assert_eq!(rows(100_000).unwrap_err().code, "too_large");
}

#[test]
fn rows_of_parquet_are_records_and_half_a_file_is_none() {
    let bytes = parquet_file();
    let decoded = |bytes: &[u8]| decode(&fetch("format = \"parquet\""), &Bytes::copy_from_slice(bytes), true);
    assert_eq!(
        decoded(&bytes).unwrap(),
        [
            json!({"n": 1, "name": "Hook of Holland", "at": "1970-01-01T00:00:00Z"}),
            json!({"n": 2, "name": null, "at": "1970-01-01T00:00:01.5Z"}),
        ]
    );
    for end in [bytes.len() / 2, bytes.len() - 1] {
        assert_eq!(decoded(&bytes[..end]).unwrap_err().code, "form");
    }
}
