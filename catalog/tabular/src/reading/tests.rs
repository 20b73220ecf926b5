use serde_json::json;

use super::*;

fn contract() -> Contract {
    serde_json::from_value(json!({"fields": [
        {"name": "station_id", "type": "string", "required": true},
        {"name": "opened", "type": "timestamp"},
        {"name": "seen_at", "type": "timestamp"},
        {"name": "row", "type": "integer"},
    ]}))
    .unwrap()
}

fn whole() -> serde_json::Value {
    json!({
        "format": "csv", "encoding": "utf-8", "delimiter": ";", "quote": "\"", "escape": "double", "headerLine": 1,
        "decimal": ",", "nulls": [], "emptyText": false, "tz": "2026b",
        "columns": [
            {"from": "Station ID", "to": "station_id"},
            {"from": "Opened", "to": "opened", "parse": "%d.%m.%Y"},
            {"from": "Seen", "to": "seen_at", "parse": "%Y-%m-%d %H:%M", "zone": "Europe/Oslo", "nulls": ["n/a"]},
            {"from": "Notes", "to": null},
        ],
        "number": {"field": "row", "start": 1},
    })
}

#[test]
fn a_reading_is_what_its_json_says_and_is_written_without_what_is_usual() {
    let reading: Reading = serde_json::from_value(whole()).unwrap();
    assert_eq!(reading.check(&contract()), Ok(()));
    assert_eq!(
        (reading.delimiter, reading.decimal, reading.quote),
        (';', ',', Some('"'))
    );
    assert_eq!(reading.columns[3].to, None);
    let text = serde_json::to_string(&reading).unwrap();
    assert!(!text.contains("headerLine") && !text.contains("emptyText"), "{text}");
    assert_eq!(serde_json::from_str::<Reading>(&text).unwrap(), reading);
    let plain: Reading = serde_json::from_str("{}").unwrap();
    assert_eq!(plain, Reading::default());
    assert!(plain.is_plain_lines() && !reading.is_plain_lines());
    let unquoted: Reading = serde_json::from_value(json!({"format": "csv", "quote": null})).unwrap();
    assert_eq!(unquoted.quote, None);
    let text = serde_json::to_string(&unquoted).unwrap();
    assert_eq!(serde_json::from_str::<Reading>(&text).unwrap(), unquoted);
}

#[test]
fn a_column_that_says_nothing_of_its_field_and_a_member_that_nobody_knows_are_refused() {
    for wrong in [
        json!({"columns": [{"from": "a"}]}),
        json!({"colums": []}),
        json!({"columns": [{"from": "a", "to": "b", "pattern": "%Y"}]}),
        json!({"format": "tsv"}),
        json!({"delimiter": "ab"}),
    ] {
        assert!(serde_json::from_value::<Reading>(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn what_does_not_fit_the_contract_is_named_by_its_place() {
    for (pointer, value, path) in [
        ("/columns/0/to", json!("station"), "/columns/0/to"),
        ("/columns/1/to", json!("station_id"), "/columns/1/to"),
        ("/columns/0/to", json!(null), "/columns"),
        ("/columns/0/parse", json!("%d.%m.%Y"), "/columns/0/parse"),
        ("/columns/1/parse", json!("%d.%m"), "/columns/1/parse"),
        ("/columns/1/parse", json!("%d.%m.%Y %Q"), "/columns/1/parse"),
        ("/columns/2/zone", json!("Europe/Atlantis"), "/columns/2/zone"),
        ("/columns/0/zone", json!("UTC"), "/columns/0/zone"),
        ("/number/field", json!("opened"), "/number/field"),
        ("/number/field", json!("station_id"), "/number/field"),
        ("/number/start", json!(-1), "/number/start"),
        ("/delimiter", json!("\n"), "/delimiter"),
        ("/delimiter", json!("→"), "/delimiter"),
        ("/quote", json!(";"), "/quote"),
        ("/decimal", json!("'"), "/decimal"),
        ("/encoding", json!("utf-9"), "/encoding"),
        ("/headerLine", json!(100_000), "/headerLine"),
        ("/skipLines", json!([3, 2]), "/skipLines"),
        ("/skipLines", json!([1]), "/skipLines"),
        ("/records", json!("/data"), "/records"),
        ("/members", json!("key"), "/members"),
        ("/columns", json!([]), "/columns"),
        ("/format", json!("json"), "/delimiter"),
        ("/nulls", json!(["x".repeat(2_000)]), "/nulls"),
    ] {
        let mut reading = whole();
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        let parent = reading.pointer_mut(parent).unwrap();
        match parent {
            serde_json::Value::Object(members) => {
                members.insert(member.to_owned(), value.clone());
            }
            _ => unreachable!(),
        }
        let reading: Reading = serde_json::from_value(reading).unwrap();
        let error = reading.check(&contract()).unwrap_err();
        assert_eq!(error.path, path, "{pointer} {value}: {error}");
    }
}

#[test]
fn a_reading_has_a_bounded_size() {
    let column = |index: usize| ColumnReading {
        from: format!("{index:0>200}"),
        to: None,
        ..ColumnReading::default()
    };
    let reading = |columns: usize| Reading {
        format: TextFormat::Csv,
        columns: (0..columns).map(column).collect(),
        ..Reading::default()
    };
    let any: Contract = serde_json::from_value(json!({"fields": [{"name": "a", "type": "string"}]})).unwrap();
    assert_eq!(reading(400).check(&any), Ok(()));
    assert_eq!(reading(1_000).check(&any).unwrap_err().path, "");
    let names: Vec<_> = (0..=MAX_READING_COLUMNS).map(|index| index.to_string()).collect();
    let many = Reading {
        columns: names
            .into_iter()
            .map(|from| ColumnReading {
                from,
                ..ColumnReading::default()
            })
            .collect(),
        ..reading(0)
    };
    assert_eq!(many.check(&any).unwrap_err().path, "/columns");
}
