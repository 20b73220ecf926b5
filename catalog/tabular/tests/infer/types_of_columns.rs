//! Types of columns, null words, dates and times.

use proptest::prelude::*;
use serde_json::json;
use types::FieldType;

use crate::{fields, inferred, inferred_with, notes, questions, remedies, sample};

#[test]
fn a_decimal_comma_is_taken_where_it_is_sure() {
    let found = inferred("a;b\n1,5;x\n2,25;y");
    assert_eq!(
        (fields(&found).as_str(), found.reading.decimal),
        ("a number, b string", ',')
    );
    assert_eq!(sample(&found), json!([{"a": 1.5, "b": "x"}, {"a": 2.25, "b": "y"}]));

    let found = inferred("a;b\n1,500;x\n2,250;y");
    assert_eq!(
        (fields(&found).as_str(), notes(&found)),
        ("a string, b string", vec!["units"])
    );
    let found = inferred_with("a;b\n1,500;x\n2,250;y", &[("--decimal-comma", "")]);
    assert_eq!(sample(&found), json!([{"a": 1.5, "b": "x"}, {"a": 2.25, "b": "y"}]));

    let found = inferred("a;b;c\n1,5;2;3.5\n2,5;3,25;4.5");
    assert_eq!(fields(&found), "a number, b number, c string");
    assert_eq!(fields(&inferred("a;b\n1.5;x\n2.25;y")), "a number, b string");
}

#[test]
fn numbers_keep_every_digit() {
    for (text, expected, noted) in [
        ("zip\n01234\n98765", "zip string", vec!["leading_zeros"]),
        ("phone\n+47123\n+47456", "phone string", vec!["plus_signs"]),
        ("n\n170141183460469231731", "n decimal(0)", vec![]),
        ("n\n123456789012345678901234567890", "n string", vec!["digits"]),
        ("x\n0.1\n2.220446049250313081e-16", "x number", vec![]),
        ("x\n0.123456789012345678", "x decimal(18)", vec![]),
        ("x\n0.1234567890123456789", "x string", vec!["digits"]),
        ("x\n1.5\n.5\n1e5\n5.", "x number", vec![]),
        ("x\n1.0\nNA\n2.0", "x number", vec![]),
        ("tract\n12E12\n13456", "tract string", vec!["codes"]),
        ("tract\n03E05\n13456", "tract string", vec!["leading_zeros"]),
        ("x\n12%\n15%", "x string", vec!["units"]),
        ("x\n€5\n€6", "x string", vec!["units"]),
        ("x\n 5 \n 6", "x integer", vec![]),
        ("x\n9007199254740993\n1.5", "x decimal(1)", vec![]),
        ("b\ntrue\nFALSE\n", "b boolean", vec![]),
        ("b\nyes\nno\n", "b string", vec![]),
    ] {
        let found = inferred(text);
        assert_eq!(
            (fields(&found).as_str(), notes(&found), questions(&found)),
            (expected, noted, vec![]),
            "{text:?}"
        );
    }
    let found = inferred("n\n170141183460469231731");
    assert_eq!(sample(&found), json!([{"n": "170141183460469231731"}]));
    assert_eq!(
        sample(&inferred_with("b\nyes\nno", &[("--types", "b=boolean")])),
        json!([{"b": true}, {"b": false}])
    );
    assert_eq!(
        sample(&inferred_with("z\n01", &[("--types", "z=integer")])),
        json!([{"z": 1}])
    );
}

#[test]
fn words_are_null_where_everything_else_is_no_text() {
    let found = inferred("q\n3\nNA");
    assert_eq!((fields(&found).as_str(), found.columns[0].nulls), ("q integer", 1));
    assert_eq!(sample(&found), json!([{"q": 3}, {}]));
    assert_eq!(found.reading.columns[0].nulls, ["NA"]);

    let found = inferred("code\nNA\nNO");
    assert_eq!(
        (fields(&found).as_str(), sample(&found)),
        ("code string", json!([{"code": "NA"}, {"code": "NO"}]))
    );

    let found = inferred("v\n1.5\nnan\ninf");
    assert_eq!((fields(&found).as_str(), found.columns[0].nulls), ("v number", 1));
    assert_eq!(questions(&found), ["infinity"]);
    assert_eq!(remedies(&found, "infinity"), ["--null 'v=inf'", "--types 'v=string'"]);
    let found = inferred_with("v\n1.5\nnan\ninf", &[("--null", "inf")]);
    assert_eq!(
        (sample(&found), questions(&found)),
        (json!([{"v": 1.5}, {}, {}]), vec![])
    );
    assert_eq!(
        questions(&inferred_with("v\n1.5\ninf", &[("--types", "v=string")])),
        Vec::<&str>::new()
    );

    let found = inferred("v\n1\n::\n2\n::");
    assert_eq!(
        (fields(&found).as_str(), questions(&found)),
        ("v integer", vec!["null_word"])
    );
    let found = inferred_with("v,w\n1,::\n::,a", &[("--null", "v=::")]);
    assert_eq!(sample(&found), json!([{"v": 1, "w": "::"}, {"w": "a"}]));

    let found = inferred("a,b\n1,\\N\n,x");
    assert_eq!(sample(&found), json!([{"a": 1}, {"b": "x"}]));
    let found = inferred("a,b\n1,\n2,\"\"\n");
    assert_eq!(
        (fields(&found).as_str(), notes(&found)),
        ("a integer, b string", vec!["no_values"])
    );
    let found = inferred_with("a,b\n1,x\n2,\"\"\n", &[("--empty-text", "")]);
    assert_eq!(found.sample[1], json!({"a": 2, "b": ""}));
}

#[test]
fn a_few_values_that_exclude_a_better_type_are_named() {
    let text = format!("v\n{}9,5m\n{}", "1.5\n".repeat(300), "2.5\n".repeat(300));
    let found = inferred(&text);
    assert_eq!(
        (fields(&found).as_str(), notes(&found)),
        ("v string", vec!["exceptions"])
    );
    assert_eq!(
        (found.notes[0].line, found.notes[0].message.contains("`9,5m`")),
        (Some(302), true)
    );
    assert_eq!(
        remedies(&found, "exceptions"),
        ["--null 'v=9,5m'", "--types 'v=number'"]
    );
    let found = inferred_with(&text, &[("--null", "v=9,5m")]);
    assert_eq!((fields(&found).as_str(), found.columns[0].nulls), ("v number", 1));
    assert_eq!(notes(&inferred("v\n1\nx\n2\n3\ny\n4\n")), Vec::<&str>::new());
}

#[test]
fn dates_of_every_form_are_read() {
    for (text, expected, parse, first) in [
        ("d\n2020-02-29", "d date", None, "2020-02-29"),
        ("d\n2021/03/04", "d date", Some("%Y/%m/%d"), "2021-03-04"),
        ("d\n04.03.2021", "d date", Some("%d.%m.%Y"), "2021-03-04"),
        ("d\n4 Mar 2021", "d date", Some("%d %b %Y"), "2021-03-04"),
        ("d\n31-OCT-2023", "d date", Some("%d-%b-%Y"), "2023-10-31"),
        ("d\n05/06/2020\n25/06/2020", "d date", Some("%d/%m/%Y"), "2020-06-05"),
        ("d\n05/06/2020\n05/26/2020", "d date", Some("%m/%d/%Y"), "2020-05-06"),
        ("t\n2024-05-01T08:00:00Z", "t timestamp", None, "2024-05-01T08:00:00Z"),
        (
            "t\n2024-05-01T08:00:00+02:00",
            "t timestamp",
            None,
            "2024-05-01T06:00:00Z",
        ),
        (
            "t\n2024-05-01 08:00:00+0200",
            "t timestamp",
            Some("%Y-%m-%d %H:%M:%S%.f%z"),
            "2024-05-01T06:00:00Z",
        ),
        (
            "t\n2024-05-01 08:00 UTC",
            "t timestamp",
            Some("%Y-%m-%d %H:%M %z"),
            "2024-05-01T08:00:00Z",
        ),
        (
            "t\n5/14/2024 3:04 PM",
            "t timestamp",
            Some("%m/%d/%Y %I:%M %p"),
            "2024-05-14T15:04:00Z",
        ),
        (
            "t\n2024-05-01T08:00:00.1234560Z",
            "t timestamp",
            None,
            "2024-05-01T08:00:00.123456Z",
        ),
    ] {
        let found = inferred(text);
        let seen = (
            fields(&found),
            found.columns[0].parse.as_deref(),
            found.sample[0].as_object().unwrap().values().next(),
        );
        assert_eq!(seen, (expected.to_owned(), parse, Some(&json!(first))), "{text:?}");
        assert_eq!(questions(&found), Vec::<&str>::new(), "{text:?}");
    }
    let found = inferred("d\n05/06/2020");
    assert_eq!(
        (fields(&found).as_str(), notes(&found)),
        ("d string", vec!["day_or_month"])
    );
    assert_eq!(
        remedies(&found, "day_or_month"),
        ["--types 'd=date:%d/%m/%Y'", "--types 'd=date:%m/%d/%Y'"]
    );
    let found = inferred_with("d\n05/06/2020", &[("--types", "d=date:%d/%m/%Y")]);
    assert_eq!(sample(&found), json!([{"d": "2020-06-05"}]));
    for text in ["d\n2021-02-29", "d\n2021-03-04\n2021-03-04 08:00", "d\n4/3/21"] {
        assert_eq!(fields(&inferred(text)), "d string", "{text:?}");
    }
}

#[test]
fn times_without_a_zone_are_noted_and_fine_ones_asked_about() {
    let found = inferred("t\n2024-05-01 08:00");
    assert_eq!((fields(&found).as_str(), notes(&found)), ("t timestamp", vec!["zone"]));
    assert_eq!(sample(&found), json!([{"t": "2024-05-01T08:00:00Z"}]));
    let found = inferred_with("t\n2024-05-01 08:00", &[("--zone", "Europe/Oslo")]);
    assert_eq!(
        (sample(&found), notes(&found)),
        (json!([{"t": "2024-05-01T06:00:00Z"}]), vec![])
    );
    assert!(found.reading.tz.is_some());
    let found = inferred_with("t\n2024-03-31 02:30\n2024-03-30 02:30", &[("--zone", "Europe/Berlin")]);
    assert_eq!(sample(&found), json!([{"t": "2024-03-30T01:30:00Z"}]));

    let found = inferred("t\n2024-05-01T08:00:00.1234567Z");
    assert_eq!(
        (
            questions(&found),
            remedies(&found, "finer_than_microseconds")[0].as_str()
        ),
        (vec!["finer_than_microseconds"], "--round 't'")
    );
    let found = inferred_with("t\n2024-05-01T08:00:00.1234567Z", &[("--round", "t")]);
    assert_eq!(
        (sample(&found), questions(&found)),
        (json!([{"t": "2024-05-01T08:00:00.123457Z"}]), vec![])
    );

    let found = inferred("t\n1714550400");
    assert_eq!((fields(&found).as_str(), notes(&found)), ("t integer", vec!["epoch"]));
    assert_eq!(remedies(&found, "epoch"), ["--types 't=timestamp:unix-seconds'"]);
    let found = inferred_with("t\n1714550400", &[("--types", "t=timestamp:unix-seconds")]);
    assert_eq!(
        (sample(&found), notes(&found)),
        (json!([{"t": "2024-05-01T08:00:00Z"}]), vec![])
    );
    assert_eq!(
        remedies(&inferred("date\n20240501"), "epoch"),
        ["--types 'date=date:%Y%m%d'"]
    );
    assert_eq!(notes(&inferred("population\n1714550400")), Vec::<&str>::new());
}

#[test]
fn json_in_cells_is_json() {
    let found = inferred("j\n\"{\"\"a\"\":[1]}\"\n[]");
    assert_eq!(
        (fields(&found).as_str(), sample(&found)),
        ("j json", json!([{"j": {"a": [1]}}, {"j": []}]))
    );
    assert_eq!(fields(&inferred("j\n\"{\"\"a\"\":[1]}\"\nx")), "j string");
    assert_eq!(
        fields(&inferred("j\n\"{\"\"a\"\":1000000000000000000007}\"\n")),
        "j string"
    );
}

/// Cells that are hard to tell from each other.
const CELLS: [&str; 48] = [
    "",
    " ",
    "0",
    "-1",
    "007",
    "+5",
    "+1.5",
    "1.5",
    "1.50",
    ".5",
    "5.",
    "1e5",
    "1E5",
    "12E12",
    "1e400",
    "1,5",
    "1,500",
    "1.234,5",
    "9223372036854775807",
    "9223372036854775808",
    "0.123456789012345678",
    "0.1234567890123456789",
    "9007199254740993",
    "9007199254740993.0",
    "NA",
    "n/a",
    "nan",
    "NaN",
    "inf",
    "-Infinity",
    "-",
    "--",
    "::",
    "true",
    "FALSE",
    "2024-05-01",
    "2024-5-1",
    "05/06/2020",
    "25/06/2020",
    "06/25/2020",
    "4 Mar 2021",
    "2024-05-01T08:00:00Z",
    "2024-05-01 08:00",
    "2024-05-01 08:00:00.1234567",
    "2024-05-01T08:00:00+02:00",
    "{}",
    "[1]",
    "Oslo",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 500, ..ProptestConfig::default() })]

    /// A type that is settled without a question refuses no record, and a text is kept as it is.
    #[test]
    fn no_record_is_refused_by_the_types_that_its_values_have(
        places in prop::collection::vec((0..CELLS.len(), 0..CELLS.len()), 1..6),
        delimiter in prop::sample::select(vec!['|', ';', ',']),
    ) {
        let quoted = |place: usize| format!("\"{}\"", CELLS[place]);
        let lines = places.iter().map(|(left, right)| format!("x{delimiter}{}{delimiter}{}\n", quoted(*left), quoted(*right)));
        let text = format!("k{delimiter}left{delimiter}right\n{}", lines.collect::<String>());
        let found = inferred(&text);
        if found.is_settled() {
            prop_assert_eq!(found.sample.len(), places.len(), "{}: {}", text, fields(&found));
            let is_text = |name: &str| found.columns.iter().any(|column| column.name == name && column.kind == FieldType::String);
            for ((left, right), record) in places.iter().zip(&found.sample) {
                for (name, place) in [("left", left), ("right", right)] {
                    let kept = record.get(name).and_then(|value| value.as_str()).unwrap_or_default();
                    prop_assert!(!is_text(name) || kept == CELLS[*place], "{}: {}", text, record);
                }
            }
        }
    }
}
