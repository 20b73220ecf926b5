mod naive;
mod shown;

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use types::{Contract, Field, FieldType, RecordKey};

use super::*;

/// Numbers of a fixed sequence (splitmix64), so that a failing history can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    /// A number of either sign.
    fn signed(&mut self, end: i64) -> i64 {
        i64::try_from(self.next() % end.unsigned_abs()).unwrap() - end / 2
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// A row of [`contract`].
#[derive(Clone, Debug, Default)]
struct Row {
    text: Option<String>,
    integer: Option<i64>,
    number: Option<f64>,
    flag: Option<bool>,
    at: Option<i64>,
    json: Option<String>,
    day: Option<i32>,
    price: Option<i128>,
    extra: Option<String>,
}

fn contract() -> Contract {
    let kinds = [
        ("text", FieldType::String),
        ("integer", FieldType::Integer),
        ("number", FieldType::Number),
        ("flag", FieldType::Boolean),
        ("at", FieldType::Timestamp),
        ("json", FieldType::Json),
        ("day", FieldType::Date),
        ("price", FieldType::Decimal(2)),
    ];
    Contract::new(kinds.map(|(name, kind)| Field::new(name, kind)).to_vec(), true).unwrap()
}

fn batch(rows: &[Row]) -> RecordBatch {
    let prices: Decimal128Array = rows.iter().map(|row| row.price).collect();
    let times: TimestampMicrosecondArray = rows.iter().map(|row| row.at).collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(rows.iter().map(|row| row.text.clone()).collect::<StringArray>()),
        Arc::new(rows.iter().map(|row| row.integer).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|row| row.number).collect::<Float64Array>()),
        Arc::new(rows.iter().map(|row| row.flag).collect::<BooleanArray>()),
        Arc::new(times.with_timezone("UTC")),
        Arc::new(rows.iter().map(|row| row.json.clone()).collect::<StringArray>()),
        Arc::new(rows.iter().map(|row| row.day).collect::<Date32Array>()),
        Arc::new(prices.with_precision_and_scale(28, 2).unwrap()),
        Arc::new(rows.iter().map(|row| row.extra.clone()).collect::<StringArray>()),
    ];
    RecordBatch::try_new(contract().schema(), columns).unwrap()
}

fn keys(places: Range<usize>) -> Vec<RecordKey> {
    let key = |place: usize| RecordKey::from_bytes(leading(blake3::hash(&place.to_le_bytes()).as_bytes()));
    places.map(key).collect()
}

fn sampling() -> SamplingKey {
    SamplingKey::new([7; 32])
}

/// The sketch of some rows of a version, in batches.
fn sketch(rows: &[Row], places: Range<usize>, batch_rows: usize) -> Sketch {
    let mut sketch = Sketch::new(&contract());
    for first in places.clone().step_by(batch_rows) {
        let range = first..places.end.min(first + batch_rows);
        let columns = batch(&rows[range.clone()]);
        sketch.add(&columns, &keys(range), first as u64, &sampling()).unwrap();
    }
    sketch
}

fn whole(rows: &[Row]) -> Sketch {
    sketch(rows, 0..rows.len(), rows.len().max(1))
}

fn json(sketch: &Sketch, level: ProfileLevel) -> String {
    serde_json::to_string(&sketch.profile(level)).unwrap()
}

/// Rows with few or many different values, of every size, with nulls and hostile values among them.
fn rows(random: &mut Random, count: usize) -> Vec<Row> {
    let (texts, values) = (
        random.pick(&[1, 5, 760, 768, 769, 1_500]),
        random.pick(&[2, 1_000, 1_024, 1_025, 1 << 40]),
    );
    let nulls = random.pick(&[0, 1, 5]);
    let hostile = random.below(3) == 0;
    let row = |random: &mut Random| {
        let has = |random: &mut Random| random.below(10) >= nulls;
        let mut row = Row {
            text: has(random).then(|| match random.below(texts + 1) {
                0 => String::new(),
                1 => "é".repeat(random.pick(&[1, 32, 33, 200])),
                number => format!("text {number}"),
            }),
            integer: has(random).then(|| random.signed(values)),
            #[expect(clippy::cast_precision_loss, reason = "any doubles will do")]
            number: has(random).then(|| random.signed(values) as f64 / 8.0),
            flag: has(random).then(|| random.below(3) == 0),
            at: has(random).then(|| 1_700_000_000_000_000 + random.signed(values) * 1_000),
            json: has(random).then(|| {
                random
                    .pick(&["{\"a\":1}", "[]", "\"é\"", "-1", "true", "false", "12.5"])
                    .to_owned()
            }),
            day: has(random).then(|| i32::try_from(random.signed(values) % 40_000).unwrap()),
            price: has(random).then(|| random.signed(values).into()),
            extra: (random.below(4) == 0).then(|| "{\"b\":2}".to_owned()),
        };
        if hostile && random.below(20) == 0 {
            row.integer = Some(random.pick(&[i64::MIN, i64::MAX, 0, -1]));
            row.number = Some(random.pick(&[
                f64::NAN,
                -f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY,
                f64::MAX,
                f64::MIN,
                -0.0,
                5e-324,
                0.1,
            ]));
            row.at = Some(random.pick(&[-62_135_596_800_000_000, 253_402_300_799_999_999, 0]));
            row.day = Some(random.pick(&[-719_162, 2_932_896, 0]));
            row.price = Some(random.pick(&[10_i128.pow(28) - 1, 1 - 10_i128.pow(28), 0]));
        }
        row
    };
    (0..count).map(|_| row(random)).collect()
}

#[test]
fn any_history_of_parts_and_merges_gives_equal_documents_and_bytes() {
    for history in 0..1_000 {
        let mut random = Random(history);
        let count = match history % 50 {
            0 => 2_000 + random.below(3_000),
            1..5 => 700 + random.below(700),
            _ => random.below(60),
        };
        let rows = rows(&mut random, count);
        let whole = whole(&rows);
        // The parts, in any order, some of them stored and read again.
        let mut cuts: Vec<usize> = (0..random.below(7)).map(|_| random.below(count + 1)).collect();
        cuts.extend([0, count]);
        cuts.sort_unstable();
        let mut parts: Vec<Sketch> = Vec::new();
        for ends in cuts.windows(2) {
            let part = sketch(&rows, ends[0]..ends[1], 1 + random.below(count.max(1)));
            parts.insert(random.below(parts.len() + 1), part);
        }
        while parts.len() > 1 {
            let at = random.below(parts.len());
            let mut other = parts.swap_remove(at);
            if random.below(2) == 0 {
                other = Sketch::decode(&contract(), &other.encode()).unwrap();
            }
            let at = random.below(parts.len());
            parts[at].merge(&other).unwrap();
        }
        let merged = parts.pop().unwrap();
        assert_eq!(merged.records(), count as u64);
        for level in [ProfileLevel::Full, ProfileLevel::Public] {
            assert_eq!(json(&merged, level), json(&whole, level), "history {history}");
        }
        for few in [0, 5, 100, 1_000] {
            assert_eq!(
                merged.preview_offsets(few),
                whole.preview_offsets(few),
                "history {history}"
            );
        }
        assert!(merged.encode() == whole.encode(), "history {history}");
    }
}

#[test]
fn a_merged_sketch_takes_more_rows() {
    let rows = rows(&mut Random(99), 3_000);
    let mut sketch = sketch(&rows, 0..1_000, 300);
    let more = self::sketch(&rows, 1_000..2_500, 1_500);
    sketch
        .merge(&Sketch::decode(&contract(), &more.encode()).unwrap())
        .unwrap();
    let last = batch(&rows[2_500..]);
    sketch.add(&last, &keys(2_500..3_000), 2_500, &sampling()).unwrap();
    assert!(sketch.encode() == whole(&rows).encode());
}

#[test]
fn previews_are_the_smallest_keyed_hashes_in_the_order_of_the_version() {
    let rows = vec![Row::default(); 5_000];
    let whole = whole(&rows);
    let mut ranks: Vec<(u64, u64)> = (0..)
        .zip(keys(0..5_000))
        .map(|(place, key)| (sampling().rank(&key), place))
        .collect();
    ranks.sort_unstable();
    for count in [0, 1, 20, 100] {
        let mut places: Vec<u64> = ranks[..count].iter().map(|(_, place)| *place).collect();
        places.sort_unstable();
        assert_eq!(whole.preview_offsets(count), places);
    }
    assert_eq!(whole.preview_offsets(101).len(), 100);
    // Another secret chooses other rows.
    let mut other = Sketch::new(&contract());
    other
        .add(&batch(&rows), &keys(0..5_000), 0, &SamplingKey::new([8; 32]))
        .unwrap();
    assert_ne!(other.preview_offsets(20), whole.preview_offsets(20));
    assert_eq!(other.profile(ProfileLevel::Full).sampled, 2_048);
}

#[test]
fn sketches_of_other_contracts_and_keys_do_not_merge() {
    let rows = rows(&mut Random(1), 30);
    let mut ours = whole(&rows);
    let before = ours.encode();
    let mut theirs = Sketch::new(&contract());
    theirs
        .add(&batch(&rows), &keys(0..30), 0, &SamplingKey::new([8; 32]))
        .unwrap();
    assert_eq!(ours.merge(&theirs), Err(SketchMismatch::Key));
    for (fields, allow_extra) in [
        (contract().fields().to_vec(), false),
        (contract().fields()[1..].to_vec(), true),
        (vec![Field::new("price", FieldType::Decimal(3))], true),
    ] {
        let other = Contract::new(fields, allow_extra).unwrap();
        assert_eq!(ours.merge(&Sketch::new(&other)), Err(SketchMismatch::Contract));
        let problem = Sketch::decode(&other, &before).unwrap_err().problem;
        assert_eq!(problem, "it is of another contract");
    }
    assert!(ours.encode() == before);
    // Documentation and `required` say nothing about columns.
    let mut fields = contract().fields().to_vec();
    fields[0].required = true;
    fields[0].title = Some("Title".to_owned());
    assert!(Sketch::decode(&Contract::new(fields, true).unwrap(), &before).is_ok());
}

#[test]
fn rows_that_are_not_of_the_contract_change_nothing() {
    let rows = rows(&mut Random(2), 30);
    let mut sketch = whole(&rows);
    let before = sketch.encode();
    let columns = batch(&rows);
    let errors = [
        sketch.add(&columns, &keys(0..29), 30, &sampling()),
        sketch.add(&columns, &keys(0..30), 30, &SamplingKey::new([8; 32])),
        sketch.add(
            &columns.project(&[0, 1, 2, 3, 4, 5, 6, 8]).unwrap(),
            &keys(0..30),
            30,
            &sampling(),
        ),
        sketch.add(
            &columns.project(&[0, 1, 2, 3, 4, 5, 6, 7]).unwrap(),
            &keys(0..30),
            30,
            &sampling(),
        ),
    ];
    let texts = errors.map(|error| error.unwrap_err().to_string());
    let expected = ["29 keys of 30 rows", "one sampling key", "`price`", "`_sluice_extra`"];
    for (text, expected) in texts.iter().zip(expected) {
        assert!(text.contains(expected), "{text}");
    }
    let other = Contract::new(
        vec![
            Field::new("price", FieldType::Decimal(3)),
            Field::new("text", FieldType::Integer),
        ],
        false,
    );
    let error = Sketch::new(&other.unwrap())
        .add(&columns, &keys(0..30), 0, &sampling())
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the column `price` of the type `decimal` holds Decimal128(28, 2)"),
        "{error}"
    );
    assert!(sketch.encode() == before);
}

#[test]
fn damaged_bytes_are_no_sketch() {
    let rows = rows(&mut Random(3), 40);
    let bytes = whole(&rows).encode();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(Sketch::decode(&contract(), &damaged).is_err(), "{at}");
        assert!(Sketch::decode(&contract(), &bytes[..at]).is_err(), "{at}");
    }
    // Bytes whose hash is right are read without a panic, whatever they say.
    let body = &bytes[..bytes.len() - 32];
    let mut random = Random(4);
    let mut read = 0;
    for _ in 0..1_000 {
        let mut damaged = body.to_vec();
        for _ in 0..=random.below(3) {
            let at = 24 + random.below(body.len() - 24);
            damaged[at] = random.pick(&[0, 1, 0x7f, 0x80, 0xff, damaged[at] ^ 1]);
        }
        damaged.extend(blake3::hash(&damaged).as_bytes());
        if let Ok(mut sketch) = Sketch::decode(&contract(), &damaged) {
            read += 1;
            let again = Sketch::decode(&contract(), &damaged).unwrap();
            if sketch.merge(&again).is_ok() {
                json(&sketch, ProfileLevel::Full);
                json(&sketch, ProfileLevel::Public);
                sketch.encode();
            }
        }
    }
    assert!(read > 300, "{read}");
}

/// A contract of many fields of one type, whose names take many bytes of JSON.
fn wide(kind: FieldType) -> Contract {
    let field = |at: usize| Field::new(format!("{}{at:03}", "\u{10348}".repeat(125)), kind);
    Contract::new((0..256).map(field).collect(), false).unwrap()
}

#[test]
fn sketches_and_documents_of_256_columns_are_bounded() {
    let mut random = Random(5);
    for (kind, most) in [
        (FieldType::Number, 25_000),
        (FieldType::Timestamp, 25_000),
        (FieldType::String, 160_000),
    ] {
        let contract = wide(kind);
        let mut sketch = Sketch::new(&contract);
        for first in (0..2_500).step_by(500) {
            let column = |_| -> ArrayRef {
                let mut values = (0..500).map(|_| random.next());
                match kind {
                    FieldType::Number => Arc::new(Float64Array::from_iter_values(
                        values.map(|bits| f64::from_bits(bits & !(1 << 62))),
                    )),
                    FieldType::Timestamp => Arc::new(
                        TimestampMicrosecondArray::from_iter_values(
                            values.map(|micros| i64::try_from(micros >> 8).unwrap()),
                        )
                        .with_timezone("UTC"),
                    ),
                    // Control characters take six bytes of JSON each.
                    _ => Arc::new(StringArray::from_iter_values(
                        values
                            .by_ref()
                            .map(|number| format!("{}{:05}", "\u{1}".repeat(59), number % 1_000)),
                    )),
                }
            };
            let columns: Vec<ArrayRef> = (0..256).map(column).collect();
            let rows = RecordBatch::try_new(contract.schema(), columns).unwrap();
            sketch
                .add(&rows, &keys(first..first + 500), first as u64, &sampling())
                .unwrap();
        }
        let bytes = sketch.encode().len();
        assert!(bytes <= 256 * most, "{kind:?}: {bytes}");
        for level in [ProfileLevel::Full, ProfileLevel::Public] {
            let mut figures = sketch.profile(level);
            figures.cut_to(256 * 1_024);
            let text = serde_json::to_string(&figures).unwrap();
            assert!(text.len() <= 256 * 1_024, "{kind:?} {level}: {}", text.len());
            assert_eq!(figures.columns.len(), 256);
        }
    }
}

#[test]
fn the_bytes_of_a_sketch_stay_what_they_are() {
    let rows = rows(&mut Random(6), 300);
    let bytes = whole(&rows).encode();
    // Stored sketches of earlier builds are read, or the first bytes say another form.
    assert_eq!(&bytes[..8], b"SLSKTCH1");
    let hash = blake3::hash(&bytes).to_hex();
    assert_eq!(&hash[..16], "62be65ab35fae519", "{} bytes", bytes.len());
}
