use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use types::Batch;

use super::*;

fn contract(allow_extra: bool) -> Arc<Contract> {
    let def = json!({"allowExtra": allow_extra, "fields": [
        {"name": "text", "type": "string"}, {"name": "whole", "type": "integer"}, {"name": "double", "type": "number"},
        {"name": "flag", "type": "boolean"}, {"name": "at", "type": "timestamp"}, {"name": "any", "type": "json"},
        {"name": "day", "type": "date"}, {"name": "price", "type": "decimal", "scale": 2},
        {"name": "온도", "type": "number"}, {"name": "\u{fb33}", "type": "string"}, {"name": "😀", "type": "string"},
    ]});
    Arc::new(serde_json::from_value(def).unwrap())
}

/// The rows of a batch as a part has them.
fn stored(batch: &Batch) -> RecordBatch {
    let columns = batch.columns();
    let names = columns
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect::<Vec<_>>();
    let mut columns: Vec<_> = names.into_iter().zip(columns.columns().iter().cloned()).collect();
    let versions: arrow::array::ArrayRef = Arc::new(Int64Array::from_value(1, batch.len()));
    columns.push((VERSION_COLUMN.to_owned(), versions));
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true))).unwrap()
}

fn canonical(contract: &Contract, rows: &RecordBatch, row: usize) -> Result<String, String> {
    let mut out = Vec::from(*b"before");
    PartRows::new(contract, rows)?.write(&mut out, row)?;
    Ok(String::from_utf8(out).unwrap()["before".len()..].to_owned())
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("finite", |double| double.is_finite())
            .prop_map(Value::from),
        "[^\u{0}]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[^\u{0}]{0,4}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn any_record() -> impl Strategy<Value = Value> {
    let some = |value: BoxedStrategy<Value>| prop::option::of(value);
    (
        some("[^\u{0}]{0,8}".prop_map(Value::from).boxed()),
        some(any::<i64>().prop_map(Value::from).boxed()),
        some(
            any::<f64>()
                .prop_filter("finite", |double| double.is_finite())
                .prop_map(Value::from)
                .boxed(),
        ),
        some(any::<bool>().prop_map(Value::from).boxed()),
        some(
            prop_oneof![
                -62_135_596_800_000_000_i64..=253_402_300_799_999_999,
                -62_135_596_800_000_000_i64..=-62_135_510_400_000_000,
                253_402_128_000_000_000_i64..=253_402_300_799_999_999,
            ]
            .prop_map(|micros| Timestamp::from_micros(micros).to_string().into())
            .boxed(),
        ),
        some(any_json().boxed()),
        some(
            (-719_162_i32..=2_932_896)
                .prop_map(|days| Date::from_days(days).to_string().into())
                .boxed(),
        ),
        some("-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,2})?".prop_map(Value::from).boxed()),
        prop::collection::btree_map("[^\u{0}]{1,3}", any_json(), 0..3),
    )
        .prop_map(|(text, whole, double, flag, at, any, day, price, extras)| {
            let mut record: Map<String, Value> = extras.into_iter().collect();
            let fields = [
                ("text", text.clone()),
                ("whole", whole),
                ("double", double.clone()),
                ("flag", flag),
                ("at", at),
                ("any", any),
                ("day", day),
                ("price", price),
                ("온도", double),
                ("\u{fb33}", text.clone()),
                ("😀", text),
            ];
            for (name, value) in fields {
                record.insert(name.to_owned(), value.unwrap_or_default());
            }
            record.into()
        })
}

proptest! {
    #[test]
    fn columns_give_the_canonical_form_of_the_record_they_came_from(records in prop::collection::vec(any_record(), 1..8)) {
        let contract = contract(true);
        let batch = Batch::decode(&contract, &records);
        prop_assert_eq!(batch.defects(), &[]);
        let rows = stored(&batch);
        for row in 0..batch.len() {
            let expected = String::from_utf8(batch.canonical(row).to_vec()).unwrap();
            prop_assert_eq!(canonical(&contract, &rows, row), Ok(expected));
        }
    }
}

#[test]
fn columns_of_another_contract_are_refused() {
    let rows = stored(&Batch::decode(&contract(false), &[json!({"text": "a"})]));
    assert_eq!(canonical(&contract(false), &rows, 0), Ok(r#"{"text":"a"}"#.to_owned()));
    assert!(
        canonical(&contract(true), &rows, 0)
            .unwrap_err()
            .contains("no column `_sluice_extra`")
    );
    let other: Contract = serde_json::from_value(json!({"fields": [{"name": "text", "type": "integer"}]})).unwrap();
    assert!(
        canonical(&other, &rows, 0)
            .unwrap_err()
            .contains("`text` is Utf8 and not Int64")
    );
}

#[test]
fn what_no_record_can_give_is_refused() {
    let contract: Contract =
        serde_json::from_value(json!({"allowExtra": true, "fields": [{"name": "n", "type": "number"}]})).unwrap();
    let rows = |number: f64, extra: &str| {
        let columns: [(&str, arrow::array::ArrayRef); 3] = [
            ("n", Arc::new(Float64Array::from(vec![number]))),
            (EXTRA_COLUMN, Arc::new(StringArray::from(vec![extra]))),
            (VERSION_COLUMN, Arc::new(Int64Array::from(vec![1]))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    assert_eq!(
        canonical(&contract, &rows(1.5, r#"{"a":1}"#), 0),
        Ok(r#"{"a":1,"n":1.5}"#.to_owned())
    );
    for (number, extra) in [
        (f64::NAN, "{}"),
        (1.0, "[]"),
        (1.0, "{"),
        (1.0, r#"{"a":1,"a":2}"#),
        (1.0, r#"{"n":2}"#),
    ] {
        assert!(
            canonical(&contract, &rows(number, extra), 0).is_err(),
            "{number} {extra}"
        );
    }
}
