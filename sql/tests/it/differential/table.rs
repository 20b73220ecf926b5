//! The table that both engines read: every type, nulls, duplicates, extremes.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use types::Contract;

use super::generate::Dice;

/// The number of rows.
const ROWS: u64 = 60;

/// The fields: `id` is never null and never twice, `j` has the extremes.
pub(super) fn contract() -> Arc<Contract> {
    let def = json!({"fields": [
        {"name": "id", "type": "integer", "required": true},
        {"name": "s", "type": "string"},
        {"name": "t", "type": "string"},
        {"name": "i", "type": "integer"},
        {"name": "j", "type": "integer"},
        {"name": "n", "type": "number"},
        {"name": "m", "type": "number"},
        {"name": "b", "type": "boolean"},
        {"name": "moment", "type": "timestamp"},
        {"name": "doc", "type": "json"},
        {"name": "day", "type": "date"},
        {"name": "amount", "type": "decimal", "scale": 2}
    ]});
    Arc::new(serde_json::from_value(def).unwrap())
}

/// The rows, in three versions.
pub(super) fn batches() -> Vec<Vec<Value>> {
    let mut dice = Dice::new(1);
    let rows: Vec<Value> = (0..ROWS).map(|id| record(id, &mut dice)).collect();
    rows.chunks(25).map(<[Value]>::to_vec).collect()
}

fn record(id: u64, dice: &mut Dice) -> Value {
    let texts = [
        "", "a", "A", "ab", "abc", "b", "Zoë", "naïve", "日本", "😀x", "a_b", "a%b", " pad ", "10", "-3",
    ];
    let large = [
        i64::MAX,
        i64::MIN,
        i64::MAX - 1,
        i64::MIN + 1,
        0,
        1,
        -1,
        4_611_686_018_427_387_904,
        3_037_000_500,
        1_000_000,
    ];
    let times = [
        "2024-02-29T23:59:59.999999Z",
        "2024-01-01T00:00:00Z",
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:00:00Z",
        "2025-07-14T12:30:15.5Z",
        "2026-01-01T06:00:00Z",
        "1900-03-01T01:02:03Z",
    ];
    let documents = [
        json!({"a": 1, "b": [true, null]}),
        json!([]),
        json!("text"),
        json!(5),
        json!({"é": "ü"}),
    ];
    let small = |dice: &mut Dice| i64::try_from(dice.below(21)).unwrap() - 10;
    let mut record = Map::new();
    record.insert("id".to_owned(), id.into());
    let mut put = |dice: &mut Dice, name: &str, value: Value| {
        if dice.below(5) > 0 {
            record.insert(name.to_owned(), value);
        }
    };
    let text = *dice.pick(&texts);
    put(dice, "s", text.into());
    let text = *dice.pick(&texts);
    put(dice, "t", text.into());
    let whole = small(dice);
    put(dice, "i", whole.into());
    let whole = *dice.pick(&large);
    put(dice, "j", whole.into());
    // Quarters are exact, so a sum is the same in every order.
    #[expect(clippy::cast_precision_loss, reason = "it is small")]
    let quarters = small(dice) as f64 / 4.0;
    put(dice, "n", quarters.into());
    let number = *dice.pick(&[0.0, 0.5, -1024.75, 65_536.25, 1.0, -1.0, 1e6]);
    put(dice, "m", number.into());
    let yes = dice.below(2) == 0;
    put(dice, "b", yes.into());
    let time = *dice.pick(&times);
    put(dice, "moment", time.into());
    let document = dice.pick(&documents).clone();
    put(dice, "doc", document);
    let day = *dice.pick(&[
        "2024-02-29",
        "2024-01-01",
        "1969-12-31",
        "1970-01-01",
        "2025-07-14",
        "1900-03-01",
    ]);
    put(dice, "day", day.into());
    let amount = *dice.pick(&["0.00", "0.50", "-1024.75", "65536.25", "1", "-1", "1000000"]);
    put(dice, "amount", amount.into());
    Value::Object(record)
}
