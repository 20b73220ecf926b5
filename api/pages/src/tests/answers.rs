use super::html::{Element, elements};
use crate::chart::{AnswerChart, ChartForm};
use crate::{AnswerColumn, AnswerColumnKind, TableCell};

fn column(name: &str, kind: AnswerColumnKind) -> AnswerColumn {
    AnswerColumn {
        name: name.to_owned(),
        kind,
    }
}

/// Columns of an answer whose first are texts, or times.
fn columns(along: AnswerColumnKind) -> [AnswerColumn; 2] {
    [column("along", along), column("measure", AnswerColumnKind::Number)]
}

fn rows(points: &[(&str, Option<&str>)]) -> Vec<Vec<TableCell>> {
    let row = |(label, value): &(&str, Option<&str>)| {
        let value = value.map_or(TableCell::Null, TableCell::literal);
        vec![TableCell::text(label), value]
    };
    points.iter().map(row).collect()
}

/// Rows of texts and the numbers from 0.
fn many(count: usize) -> Vec<Vec<TableCell>> {
    let row = |number: usize| vec![TableCell::text("x"), TableCell::literal(&number.to_string())];
    (0..count).map(row).collect()
}

#[track_caller]
fn drawn(columns: &[AnswerColumn], rows: &[Vec<TableCell>], form: ChartForm) -> Vec<Element> {
    match AnswerChart::of(columns, rows, (rows.len(), false), form) {
        AnswerChart::Drawn(chart) => elements(&format!("<!doctype html>{chart}")),
        AnswerChart::Absent(reason) => panic!("{reason}"),
        AnswerChart::Unwanted => panic!("nobody wants it"),
    }
}

#[track_caller]
fn absent(columns: &[AnswerColumn], rows: &[Vec<TableCell>]) -> String {
    match AnswerChart::of(columns, rows, (rows.len(), false), ChartForm::Fitting) {
        AnswerChart::Absent(reason) => reason,
        AnswerChart::Drawn(_) | AnswerChart::Unwanted => panic!("there is no reason"),
    }
}

fn bars(elements: &[Element]) -> Vec<&Element> {
    elements.iter().filter(|element| element.name == "rect").collect()
}

fn number(element: &Element, name: &str) -> f64 {
    element.get(name).unwrap().parse().unwrap()
}

/// The path of the line of a chart.
fn line(elements: &[Element]) -> &str {
    let line = elements.iter().find(|element| element.get("class") == Some("line ns"));
    line.and_then(|line| line.get("d")).unwrap()
}

fn words(elements: &[Element]) -> &str {
    let picture = elements.iter().find(|element| element.get("role") == Some("img"));
    picture.and_then(|picture| picture.get("aria-label")).unwrap()
}

#[test]
fn a_chart_takes_from_2_to_200_rows() {
    let columns = columns(AnswerColumnKind::Text);
    for (count, words) in [
        (0, "has 0 rows"),
        (1, "has 1 row"),
        (201, "has 201 rows"),
        (1_000, "has 1,000 rows"),
    ] {
        let reason = absent(&columns, &many(count));
        assert!(
            reason.starts_with("No chart") && reason.contains(words),
            "{count}: {reason}"
        );
    }
    for count in [2, 30, 31, 200] {
        let elements = drawn(&columns, &many(count), ChartForm::Fitting);
        assert_eq!(bars(&elements).len(), count.min(30));
        // Each bar has its name and its number beside it.
        let words = elements.iter().filter(|element| element.name == "li").count();
        assert_eq!(words, count.min(30) * 2);
        let note = format!("the first 30 of {count} rows");
        assert_eq!(elements.iter().any(|element| element.own == note), count > 30);
        let pictures = elements.iter().filter(|element| element.name == "svg").count();
        assert_eq!(pictures, 1, "one drawing, however many bars");
        for bar in bars(&elements) {
            for (place, size) in [("x", "width"), ("y", "height")] {
                let within = if size == "height" { 30.0 * 24.0 } else { 100.0 };
                let end = number(bar, place) + number(bar, size);
                assert!(number(bar, place) >= 0.0 && end <= within + 0.02, "{count}: {bar:?}");
            }
        }
    }
    let reason = AnswerChart::of(&columns, &many(1_000), (1_000, true), ChartForm::Fitting);
    assert!(matches!(reason, AnswerChart::Absent(reason) if reason.contains("more than 1,000 rows")));
}

#[test]
fn a_chart_needs_numbers_and_something_beside_them() {
    let text = column("a", AnswerColumnKind::Text);
    let number = column("b", AnswerColumnKind::Number);
    let other = column("c", AnswerColumnKind::Other);
    assert!(absent(&[text.clone(), other.clone()], &many(5)).contains("no column of numbers"));
    assert!(absent(&[number.clone(), other], &many(5)).contains("no column of texts or times"));
    assert!(absent(&[], &[]).contains("no column of numbers"));
    let unwanted = AnswerChart::of(&[text, number], &many(5), (5, false), ChartForm::Unwanted);
    assert!(matches!(unwanted, AnswerChart::Unwanted));
}

#[test]
fn nulls_and_infinities_are_gaps() {
    let gaps = [Some("Infinity"), Some("-Infinity"), Some("NaN"), None];
    let columns = columns(AnswerColumnKind::Text);
    for gap in gaps {
        let points = [("a", Some("1")), ("b", gap), ("c", Some("3"))];
        let elements = drawn(&columns, &rows(&points), ChartForm::Bars);
        assert_eq!(bars(&elements).len(), 2, "{gap:?}");
        assert!(
            elements.iter().any(|element| element.own == "1 gap has no number"),
            "{gap:?}"
        );
        let elements = drawn(&columns, &rows(&points), ChartForm::Line);
        // Each side of the gap is a point of its own.
        assert_eq!(line(&elements).matches('M').count(), 2, "{gap:?}");
        assert_eq!(line(&elements).matches("h0").count(), 2, "{gap:?}");
        assert!(
            words(&elements).contains("2 numbers; highest 3"),
            "{}",
            words(&elements)
        );
        // One number alone is no chart.
        assert!(absent(&columns, &rows(&[("a", Some("1")), ("b", gap)])).contains("has 1 row"));
        assert!(absent(&columns, &rows(&[("a", gap), ("b", gap)])).contains("has 0 rows"));
    }
    // Decimals, and sums beyond 64 bits, are texts in an answer, and numbers all the same.
    let texts = ["12345678901234567890123.45", "-1.50"];
    let texts: Vec<_> = texts
        .iter()
        .map(|text| vec![TableCell::text("x"), TableCell::text(text)])
        .collect();
    assert_eq!(bars(&drawn(&columns, &texts, ChartForm::Bars)).len(), 2);
}

#[test]
fn hard_numbers_stay_within_the_drawing() {
    let columns = columns(AnswerColumnKind::Text);
    let hard = [
        "1.7976931348623157e308",
        "-1.7976931348623157e308",
        "5e-324",
        "0",
        "-0.0",
        "9007199254740993",
    ];
    for left in hard {
        for right in hard {
            let points = rows(&[("a", Some(left)), ("b", Some(right)), ("c", Some(left))]);
            for form in [ChartForm::Bars, ChartForm::Line] {
                let text = match AnswerChart::of(&columns, &points, (points.len(), false), form) {
                    AnswerChart::Drawn(chart) => chart.to_string(),
                    _ => panic!("{left} {right}"),
                };
                assert!(!text.contains("NaN") && !text.contains("inf"), "{left} {right}: {text}");
            }
        }
    }
}

#[test]
fn a_constant_is_a_level_line_and_equal_bars() {
    let columns = columns(AnswerColumnKind::Text);
    for value in ["7", "-7", "0", "1e300"] {
        let points = rows(&[("a", Some(value)), ("b", Some(value)), ("c", Some(value))]);
        let elements = drawn(&columns, &points, ChartForm::Bars);
        let widths: Vec<_> = bars(&elements)
            .iter()
            .map(|bar| bar.get("width").unwrap().to_owned())
            .collect();
        assert!(widths.windows(2).all(|pair| pair[0] == pair[1]), "{value}: {widths:?}");
        let elements = drawn(&columns, &points, ChartForm::Line);
        let heights: Vec<_> = line(&elements)
            .split(['M', 'L'])
            .skip(1)
            .map(|point| point.split(' ').nth(1).unwrap())
            .collect();
        assert!(
            heights.len() == 3 && heights.iter().all(|height| *height == heights[0]),
            "{value}: {heights:?}"
        );
    }
}

#[test]
fn bars_go_from_zero_to_their_numbers() {
    let columns = columns(AnswerColumnKind::Text);
    let points = rows(&[("a", Some("5")), ("b", Some("-5")), ("", Some("0")), ("null", None)]);
    let elements = drawn(&columns, &points, ChartForm::Fitting);
    let sides: Vec<_> = bars(&elements)
        .iter()
        .map(|bar| (number(bar, "x"), number(bar, "width")))
        .collect();
    let (zero, size) = (sides[0].0, sides[0].1);
    assert_eq!(sides[1], (zero - size, size));
    assert_eq!(sides[2], (zero, 0.0));
    let labels: Vec<_> = elements
        .iter()
        .filter(|element| element.is_in(&elements, "li"))
        .collect();
    assert_eq!(
        labels.iter().map(|label| label.text.as_str()).collect::<Vec<_>>(),
        ["a", "b", "&#34;&#34;", "null"]
    );
}

#[test]
fn a_line_over_times_is_in_their_order_and_keeps_their_distance() {
    let columns = columns(AnswerColumnKind::Time);
    let points = rows(&[
        ("2026-11-05T00:00:00Z", Some("4")),
        ("2026-11-01T00:00:00Z", Some("0")),
        ("2026-11-02T00:00:00Z", Some("1")),
        ("", Some("9")),
    ]);
    let elements = drawn(&columns, &points, ChartForm::Fitting);
    let across: Vec<_> = line(&elements)
        .split(['M', 'L'])
        .skip(1)
        .map(|point| point.split(' ').next().unwrap())
        .collect();
    assert_eq!(across, ["0.00", "25.00", "100.00"]);
    let notes = elements.iter().find(|element| element.own.contains("UTC")).unwrap();
    assert_eq!(notes.own, "1 row without a time left out · UTC");
    assert!(elements.iter().any(|element| element.own == "1 Nov 2026"));
    assert!(words(&elements).contains("highest 4 at"), "{}", words(&elements));
    // Days and local times have no zone, and one instant is in the middle.
    for times in [
        ["2026-11-01", "2026-11-01"],
        ["2026-11-01T10:00:00", "2026-11-01T10:00:00"],
    ] {
        let elements = drawn(
            &columns,
            &rows(&times.map(|time| (time, Some("1")))),
            ChartForm::Fitting,
        );
        assert!(line(&elements).starts_with("M50.00 "), "{}", line(&elements));
        assert!(!elements.iter().any(|element| element.own.contains("UTC")));
    }
    // The lowest number is not at the ground, which is zero.
    let high = rows(&[("2026-11-01", Some("3.1")), ("2026-11-02", Some("4.4"))]);
    let elements = drawn(&columns, &high, ChartForm::Fitting);
    assert_eq!(line(&elements), "M0.00 38.00L100.00 12.00");
    let grid = elements
        .iter()
        .find(|element| element.get("class") == Some("grid ns"))
        .unwrap();
    assert_eq!(grid.get("d"), Some("M0 0.00H100M0 50.00H100M0 100.00H100"));
    // Bars over times are in the order of the rows.
    let elements = drawn(&columns, &points, ChartForm::Bars);
    assert_eq!(bars(&elements).len(), 4);
    assert!(elements.iter().any(|element| element.own == "2026-11-05 00:00:00"));
    // More of them stand side by side, since time goes to the right.
    let many: Vec<_> = (1..=31).map(|day| format!("2026-10-{day:02}")).collect();
    let many: Vec<_> = many.iter().map(|day| (day.as_str(), Some("2"))).collect();
    assert_eq!(bars(&drawn(&columns, &rows(&many), ChartForm::Bars)).len(), 31);
}

#[test]
fn the_form_of_a_chart_is_a_word_of_the_address() {
    for form in ChartForm::CHOICES {
        assert_eq!(ChartForm::of(form.word()), *form);
    }
    for word in ["", "pie", "BARS", "<script>"] {
        assert_eq!(ChartForm::of(word), ChartForm::Fitting, "{word}");
    }
}
