//! Documents and lines as readers see them: hostile values, the public level, summaries.

use types::vocabulary;

use super::*;

fn figures(rows: &[Row], level: ProfileLevel) -> ProfileFigures {
    whole(rows).profile(level)
}

fn line(figures: &ProfileFigures, name: &str) -> String {
    let column = figures.columns.iter().find(|column| column.name == name);
    let line = summary(column.unwrap());
    assert!(!line.contains(char::is_control), "{line}");
    line
}

#[test]
fn hostile_values_have_a_document() {
    let long = "한".repeat(100_000);
    let row = |number, integer, units: i128, at, day, text: &str| Row {
        text: Some(text.to_owned()),
        number: Some(number),
        integer: Some(integer),
        at: Some(at),
        day: Some(day),
        price: Some(units),
        json: Some(format!("[{text:?}]")),
        ..Row::default()
    };
    let most = 10_i128.pow(28) - 1;
    let rows = [
        row(f64::NAN, i64::MIN, -most, -62_135_596_800_000_000, -719_162, &long),
        row(-f64::NAN, i64::MAX, most, 253_402_300_799_999_999, 2_932_896, ""),
        row(f64::INFINITY, 0, 0, 0, 0, "\u{0}\n\u{202e}</script>"),
        row(f64::NEG_INFINITY, 0, 0, 0, 0, "=1+1"),
        row(f64::MAX, 0, 0, 0, 0, "=1+1"),
        row(f64::MIN, 0, 0, 0, 0, "=1+1"),
        row(-0.0, 0, 0, 0, 0, "=1+1"),
    ];
    for level in [ProfileLevel::Full, ProfileLevel::Public] {
        let figures = figures(&rows, level);
        let text = serde_json::to_string(&figures).unwrap();
        assert!(
            !text.contains("null,") && !text.contains("null}") && !text.contains("null]"),
            "{text}"
        );
        assert!(text.len() < 20_000 && !text.contains("한한"));
        assert_eq!(serde_json::from_str::<ProfileFigures>(&text).unwrap(), figures);
    }
    let full = figures(&rows, ProfileLevel::Full);
    let [text, integer, number, flag, at, json, day, price] = &full.columns[..] else {
        panic!("{full:?}")
    };
    assert_eq!(
        (number.not_finite, number.distinct.about, number.zero),
        (Some(4), 6, Some(1))
    );
    assert_eq!(
        number.range(),
        Some((&ProfileValue::Number(f64::MIN), &ProfileValue::Number(f64::MAX)))
    );
    assert_eq!((number.mean, number.deviation), (Some(0.0), Some(1.797_69e308)));
    assert_eq!(
        integer.range(),
        Some((&ProfileValue::Integer(i64::MIN), &ProfileValue::Integer(i64::MAX)))
    );
    assert_eq!(integer.mean, Some(-1.0 / 7.0));
    let edges = &integer.histogram.as_ref().unwrap().edges;
    assert_eq!(
        (edges.len(), edges.last()),
        (21, Some(&ProfileValue::Integer(i64::MAX)))
    );
    assert_eq!((flag.distinct.about, flag.nulls, flag.trues), (0, Some(7), Some(0)));
    let last = |column: &ColumnProfile| column.histogram.as_ref().unwrap().edges.last().unwrap().to_string();
    assert_eq!(
        (last(at), last(day)),
        ("9999-12-31T23:59:59.999999Z".to_owned(), "9999-12-31".to_owned())
    );
    assert_eq!(last(price), types::decimal::text(most, 2));
    assert_eq!(text.length.as_ref().unwrap().max, Some(100_000));
    assert_eq!(json.length.as_ref().unwrap().max, Some(100_004));
    assert_eq!((text.top.as_ref().unwrap()[0].count, text.other), (4, Some(1)));
    for column in &full.columns {
        line(&full, &column.name);
    }
}

#[test]
fn documents_of_no_rows_of_one_and_of_a_constant_are_plain() {
    let none = json(&Sketch::new(&contract()), ProfileLevel::Full);
    assert!(
        none.starts_with(
            r#"{"records":0,"sampled":0,"columns":[{"name":"text","type":"string","nulls":0,"distinct":{"about":0,"exact":true},"empty":0,"top":[],"other":0},"#
        ),
        "{none}"
    );
    assert!(none.ends_with(r#""extra":{"records":0}}"#), "{none}");
    let row = Row {
        integer: Some(9_007_199_254_740_993),
        number: Some(2.5),
        at: Some(1),
        ..Row::default()
    };
    for rows in [vec![row.clone()], vec![row; 5_000]] {
        let figures = figures(&rows, ProfileLevel::Full);
        for name in ["integer", "number", "at"] {
            let column = figures.columns.iter().find(|column| column.name == name).unwrap();
            let histogram = column.histogram.as_ref().unwrap();
            assert_eq!((histogram.edges.len(), &histogram.shares), (2, &vec![1.0]), "{name}");
        }
        let integer = &figures.columns[1];
        assert_eq!(
            integer.quantiles.as_ref().unwrap().p50,
            ProfileValue::Integer(9_007_199_254_740_993)
        );
        assert_eq!(integer.deviation, (rows.len() > 1).then_some(0.0));
        assert_eq!(line(&figures, "integer"), "always 9007199254740993");
        assert_eq!(
            line(&figures, "text"),
            format!("no values, {} null", if rows.len() > 1 { "5,000" } else { "1" })
        );
    }
}

#[test]
fn the_public_level_gives_no_value_away() {
    // One row of a thousand stands out in every column.
    let plain = |at: i64| Row {
        text: Some(format!("ordinary{}", at % 3)),
        integer: Some(1_000 + at),
        number: Some(f64::from(i32::try_from(at).unwrap()) / 3.0),
        flag: Some(at % 3 == 0),
        at: Some(1_700_000_000_000_000 + at * 86_400_000_000),
        json: Some("[1]".to_owned()),
        day: Some(19_000 + i32::try_from(at % 100).unwrap()),
        price: Some((10_000 + at).into()),
        extra: Some("{\"secret\":1}".to_owned()),
    };
    let mut rows: Vec<Row> = (0..999).map(plain).collect();
    rows.push(Row {
        text: Some("outlier".repeat(80)),
        integer: Some(987_654_321),
        number: Some(-987_654.321),
        flag: Some(true),
        at: Some(4_000_000_000_000_000),
        json: Some(format!("{{\"outlier\":\"{}\"}}", "x".repeat(900))),
        day: Some(40_000),
        price: Some(987_654_321),
        extra: None,
    });
    let public = figures(&rows, ProfileLevel::Public);
    let text = serde_json::to_string(&public).unwrap();
    for secret in [
        "outlier",
        "ordinary",
        "9876",
        "2096-",
        "2079-",
        "secret",
        "extra",
        "quantiles",
        "mean",
        "top",
    ] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let members = [
        "name",
        "type",
        "scale",
        "nullPercent",
        "distinct",
        "histogram",
        "length",
        "truePercent",
    ];
    for column in document["columns"].as_array().unwrap() {
        let column = column.as_object().unwrap();
        assert!(column.keys().all(|name| members.contains(&name.as_str())), "{column:?}");
        let histogram = column
            .get("histogram")
            .or_else(|| column.get("length")?.get("histogram"));
        let shares = histogram.map_or(&[][..], |histogram| histogram["shares"].as_array().unwrap());
        let percents = shares.iter().map(|share| share.as_f64().unwrap() * 100.0);
        for percent in percents {
            assert!((percent - percent.round()).abs() < 1e-9, "{percent}");
        }
        if let Some(length) = column.get("length") {
            assert_eq!(length.as_object().unwrap().len(), 1);
        }
    }
    let ends = |name: &str| {
        let column = public.columns.iter().find(|column| column.name == name).unwrap();
        let edges = &column.histogram.as_ref().unwrap().edges;
        (edges[0].to_string(), edges[edges.len() - 1].to_string())
    };
    // The ends are the 1st and the 99th hundredth, of two digits or whole months; bins of whole widths may go beyond.
    assert_eq!(ends("integer").0, "1000");
    assert_eq!(ends("number"), ("3".to_owned(), "330".to_owned()));
    assert_eq!(
        ends("at"),
        ("2023-11-01T00:00:00Z".to_owned(), "2026-09-01T00:00:00Z".to_owned())
    );
    assert_eq!(ends("price").0, "100.00");
    assert_eq!(public.columns[0].distinct, DistinctCount { about: 4, exact: true });
    assert_eq!(
        public.columns[1].distinct,
        DistinctCount {
            about: 1_000,
            exact: false
        }
    );
    assert_eq!(line(&public, "at"), "mostly 2023-11-01 to 2026-09-01 (UTC)");
    assert_eq!(line(&public, "number"), "mostly 3 to 330");
    assert_eq!(line(&public, "flag"), "33 % true");
}

#[test]
fn public_bins_end_before_the_values_at_the_ends() {
    let of = |count: usize, nulls: usize| {
        let value = |at: usize| Row {
            integer: (at >= nulls).then(|| i64::try_from(at).unwrap() * 1_000),
            number: (at >= nulls).then(|| f64::from(u32::try_from(at).unwrap())),
            text: (at >= nulls).then(|| "x".repeat(at)),
            ..Row::default()
        };
        figures(&(0..count).map(value).collect::<Vec<_>>(), ProfileLevel::Public)
    };
    let edges = |figures: &ProfileFigures, at: usize| {
        let column = &figures.columns[at];
        let histogram = column.histogram.as_ref();
        let histogram = histogram.or_else(|| column.length.as_ref()?.histogram.as_ref());
        histogram.map(|histogram| histogram.edges.clone())
    };
    let hundred = of(100, 0);
    assert_eq!(edges(&hundred, 2).unwrap().first(), Some(&ProfileValue::Number(1.0)));
    assert_eq!(edges(&hundred, 2).unwrap().last(), Some(&ProfileValue::Number(98.0)));
    assert_eq!(edges(&hundred, 1).unwrap().first(), Some(&ProfileValue::Integer(1_000)));
    assert_eq!(edges(&hundred, 0).unwrap().first(), Some(&ProfileValue::Integer(1)));
    for few in [of(99, 0), of(150, 51)] {
        assert!((0..3).all(|column| edges(&few, column).is_none()), "{few:?}");
    }
}

#[test]
fn summaries_say_a_column_in_a_line() {
    let row = |at: i64, name: &str| Row {
        text: Some(name.to_owned()),
        number: Some([-2.41, 5.87, -0.1][usize::try_from(at % 3).unwrap()]),
        integer: Some(at * 1_000),
        flag: Some(at > 0),
        at: Some(1_700_000_000_000_000 + at * 86_400_000_000),
        json: Some(if at > 0 { "{}" } else { "[1,2]" }.to_owned()),
        day: Some(20_000),
        price: Some(i128::from(at) - 1),
        ..Row::default()
    };
    let mut rows: Vec<Row> = ["Wick", "Le\u{202e}ith\n\u{2028}x", "Wick"]
        .iter()
        .zip(0..)
        .map(|(name, at)| row(at, name))
        .collect();
    let full = figures(&rows, ProfileLevel::Full);
    for (name, expected) in [
        ("text", "2 different values, most often “Wick”"),
        ("number", "−2.41 to 5.87, mean 1.12"),
        ("integer", "0 to 2000, mean 1000"),
        ("flag", "67 % true"),
        ("at", "2023-11-14 to 2023-11-16 (UTC)"),
        ("json", "objects and arrays, 2 to 5 characters"),
        ("day", "always 2024-10-04"),
        ("price", "−0.01 to 0.01, mean 0"),
    ] {
        assert_eq!(line(&full, name), expected);
    }
    let row = |text: &str, json: &str, number| Row {
        text: Some(text.to_owned()),
        json: Some(json.to_owned()),
        number: Some(number),
        ..Row::default()
    };
    let mixed = [
        row("", "1", 1.0 / 3.0),
        row("", "1", -2e9 / 3.0),
        row("a", "true", 1e-9),
        row("b", "{}", 0.0),
    ];
    let mixed = figures(&mixed, ProfileLevel::Full);
    assert_eq!(line(&mixed, "text"), "3 different values, most often empty");
    assert_eq!(line(&mixed, "json"), "numbers, objects and booleans, 1 to 4 characters");
    assert_eq!(line(&mixed, "number"), "−666667000 to 0.333333, mean −166666667");
    rows.remove(0);
    rows.push(rows[0].clone());
    rows.push(Row::default());
    assert_eq!(
        line(&figures(&rows, ProfileLevel::Full), "text"),
        "2 different values, most often “Leith  x”, 1 null"
    );
    assert_eq!(
        line(&figures(&rows, ProfileLevel::Public), "day"),
        "1 different value, 25 % null"
    );
}

#[test]
fn short_numbers_have_few_digits_or_those_before_the_point() {
    for (value, expected) in [
        (-1.0 / 3.0, "−0.333"),
        (0.0, "0"),
        (999.6, "1000"),
        (-44_102.7, "−44103"),
        (1e15, "1000000000000000"),
        (1.234e300, "1.23e300"),
        (-5e-324, "−5e-324"),
    ] {
        assert_eq!(short_number(value, 3), expected);
    }
    for (value, expected) in [
        (1_234_567.9, "1234568"),
        (1_234.567_8, "1234.57"),
        (1.234_567_890_123e-9, "1.23457e-9"),
    ] {
        assert_eq!(short_number(value, 6), expected);
    }
}

#[test]
fn documents_are_cut_by_their_least_important_figures() {
    let mut random = Random(11);
    let rows = rows(&mut random, 2_000);
    let full = figures(&rows, ProfileLevel::Full);
    let length = |figures: &ProfileFigures| serde_json::to_string(figures).unwrap().len();
    let mut same = full.clone();
    same.cut_to(length(&full));
    assert_eq!(same, full);
    let mut fewer = full.clone();
    fewer.cut_to(length(&full) - 1);
    let (top, kept) = (
        full.columns[0].top.as_ref().unwrap(),
        fewer.columns[0].top.as_ref().unwrap(),
    );
    assert_eq!(kept[..], top[..5.min(top.len())]);
    let all = |figures: &ProfileFigures| {
        let column = &figures.columns[0];
        column.other.unwrap() + column.top.as_ref().unwrap().iter().map(|top| top.count).sum::<u64>()
    };
    assert_eq!(all(&fewer), all(&full));
    let mut least = full.clone();
    least.cut_to(0);
    assert!(
        least
            .columns
            .iter()
            .all(|column| column.histogram.is_none() && column.quantiles.is_none())
    );
    assert_eq!((all(&least), &least.columns[1].min), (all(&full), &full.columns[1].min));
}

#[test]
fn levels_are_words() {
    for level in [ProfileLevel::Full, ProfileLevel::Public] {
        assert_eq!(serde_json::to_string(&level).unwrap(), format!("\"{level}\""));
    }
    let mut schema = schemars::schema_for!(ProfileLevel);
    vocabulary::plain(&mut schema);
    assert_eq!(schema.get("enum"), Some(&serde_json::json!(["public", "full"])));
}
