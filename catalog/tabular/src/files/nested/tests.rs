use std::sync::Arc;

use arrow::array::{
    BinaryArray, Decimal128Array, DictionaryArray, DurationMillisecondArray, FixedSizeBinaryArray, Int32Array,
    IntervalDayTimeArray, IntervalYearMonthArray, ListArray, MapArray, StructArray, Time64MicrosecondArray,
    TimestampMillisecondArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{Fields, Int32Type, IntervalDayTime};

use super::*;

fn written(column: &ArrayRef, uuids: &[bool]) -> Result<Vec<String>, String> {
    let node = NestedColumn::new(column, uuids).map_err(|error| error.to_string())?;
    let rows = (0..column.len()).map(|row| {
        let mut out = Vec::new();
        node.write(row, 1_000, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    });
    rows.collect()
}

/// A column with one row: the list of all elements.
fn list(elements: ArrayRef) -> ArrayRef {
    let field = Arc::new(Field::new("item", elements.data_type().clone(), true));
    let ends = OffsetBuffer::from_lengths([elements.len()]);
    Arc::new(ListArray::new(field, ends, elements, None))
}

#[test]
fn the_elements_of_a_list_keep_their_types() {
    let keys = Int32Array::from(vec![Some(0), None]);
    let shared = DictionaryArray::<Int32Type>::try_new(keys, Arc::new(StringArray::from(vec!["07"]))).unwrap();
    let decimal = Decimal128Array::from(vec![350, -5])
        .with_precision_and_scale(38, 2)
        .unwrap();
    let uuid = FixedSizeBinaryArray::try_from_iter([[0x12_u8; 16]].into_iter()).unwrap();
    let times = TimestampMillisecondArray::from(vec![1_500]).with_timezone("Europe/Oslo");
    let cases: [(ArrayRef, &[bool], &str); 13] = [
        (
            Arc::new(StringArray::from(vec![
                Some("07"),
                Some("x, \"y\""),
                Some("null"),
                None,
            ])),
            &[],
            r#"["07","x, \"y\"","null",null]"#,
        ),
        (Arc::new(shared), &[], r#"["07",null]"#),
        (Arc::new(Int64Array::from(vec![Some(1), None])), &[], "[1,null]"),
        (
            Arc::new(UInt64Array::from(vec![u64::MAX])),
            &[],
            "[18446744073709551615]",
        ),
        (Arc::new(Float32Array::from(vec![0.1, 2.0])), &[], "[0.1,2.0]"),
        (Arc::new(BooleanArray::from(vec![true, false])), &[], "[true,false]"),
        (Arc::new(decimal), &[], r#"["3.50","-0.05"]"#),
        (Arc::new(BinaryArray::from(vec![&b"\x00\xff"[..]])), &[], r#"["AP8="]"#),
        (
            Arc::new(uuid.clone()),
            &[true],
            r#"["12121212-1212-1212-1212-121212121212"]"#,
        ),
        (Arc::new(uuid), &[false], r#"["EhISEhISEhISEhISEhISEg=="]"#),
        (Arc::new(times), &[], r#"["1970-01-01T00:00:01.500Z"]"#),
        (
            Arc::new(Time64MicrosecondArray::from(vec![36_000_000_000])),
            &[],
            r#"["10:00:00"]"#,
        ),
        (
            Arc::new(DurationMillisecondArray::from(vec![90_061_500])),
            &[],
            r#"["P1DT1H1M1.5S"]"#,
        ),
    ];
    for (elements, uuids, expected) in cases {
        let kind = elements.data_type().clone();
        assert_eq!(written(&list(elements), uuids).unwrap(), [expected], "{kind}");
    }
}

#[test]
fn lists_structs_and_maps_are_real_json() {
    let inner: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let of = |kind: &DataType, name: &str| Arc::new(Field::new(name, kind.clone(), true));
    let members = Fields::from(vec![of(&DataType::Int32, "b \"n\""), of(&DataType::Utf8, "a")]);
    let people: ArrayRef = Arc::new(StructArray::new(
        members,
        vec![Arc::clone(&numbers), Arc::clone(&inner)],
        Some(vec![true, false].into()),
    ));
    assert_eq!(written(&people, &[]).unwrap(), [r#"{"b \"n\"":1,"a":"a"}"#, "null"]);
    let nested = list(list(Arc::clone(&people)));
    assert_eq!(written(&nested, &[]).unwrap(), [r#"[[{"b \"n\"":1,"a":"a"},null]]"#]);
    let kind = DataType::LargeList(of(list(people).data_type(), "item"));
    let large = cast_with_options(&nested, &kind, &STRICT).unwrap();
    assert_eq!(written(&large, &[]).unwrap(), written(&nested, &[]).unwrap());

    let map = |keys: ArrayRef, values: ArrayRef| -> ArrayRef {
        let fields = Fields::from(vec![
            Field::new("key", keys.data_type().clone(), false),
            Field::new("value", values.data_type().clone(), true),
        ]);
        let ends = OffsetBuffer::from_lengths([keys.len()]);
        let entries = StructArray::new(fields.clone(), vec![keys, values], None);
        let field = Arc::new(Field::new("entries", DataType::Struct(fields), false));
        Arc::new(MapArray::new(field, ends, entries, None, false))
    };
    let texts = |texts: [&str; 2]| Arc::new(StringArray::from(texts.to_vec())) as ArrayRef;
    let written_map = written(&map(texts(["x", "y"]), Arc::clone(&inner)), &[]);
    assert_eq!(written_map.unwrap(), [r#"{"x":"a","y":null}"#]);
    let of_numbers = written(&map(numbers, inner), &[]);
    assert_eq!(
        of_numbers.unwrap(),
        [r#"[{"key":1,"value":"a"},{"key":2,"value":null}]"#]
    );
    let twice = written(&map(texts(["x", "x"]), texts(["1", "2"])), &[]).unwrap_err();
    assert!(twice.contains("the key `x` twice"), "{twice}");
}

#[test]
fn what_json_cannot_say_is_an_error() {
    for number in [f64::NAN, f64::INFINITY] {
        let error = written(&list(Arc::new(Float64Array::from(vec![number]))), &[]).unwrap_err();
        assert!(error.contains("is no number of JSON"), "{error}");
    }
    let long = list(Arc::new(StringArray::from(vec!["x".repeat(600); 10])));
    let error = written(&long, &[]).unwrap_err();
    assert!(error.contains("more than 1000 bytes"), "{error}");
}

#[test]
fn an_interval_has_all_its_parts() {
    for ((months, days, nanoseconds), expected) in [
        ((2, 3, 0), "P2M3D"),
        ((14, 0, 0), "P1Y2M"),
        ((0, 0, 0), "PT0S"),
        ((0, 0, 3_723_004_000_000), "PT1H2M3.004S"),
        ((-1, 3, -500_000_000), "P-1M3DT-0.5S"),
        ((0, 40, 86_400_000_000_000), "P40DT24H"),
    ] {
        let interval = IntervalMonthDayNano::new(months, days, nanoseconds);
        assert_eq!(iso_interval(interval), expected);
    }
    assert_eq!(iso_duration(86_400, TimeUnit::Second), "P1D");
    assert_eq!(
        iso_duration(-90_061_000_001, TimeUnit::Microsecond),
        "P-1DT-1H-1M-1.000001S"
    );
    assert_eq!(
        iso_duration(i64::MIN, TimeUnit::Second),
        "P-106751991167300DT-15H-30M-8S"
    );
    let months: ArrayRef = Arc::new(IntervalYearMonthArray::from(vec![Some(2), None]));
    let days: ArrayRef = Arc::new(IntervalDayTimeArray::from(vec![Some(IntervalDayTime::new(3, 0)), None]));
    let joined = join_intervals(&list(months), &list(days)).unwrap();
    assert_eq!(written(&joined, &[]).unwrap(), [r#"["P2M3D",null]"#]);
}
