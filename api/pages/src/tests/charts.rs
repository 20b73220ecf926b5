use super::html::elements;
use crate::chart::Bars;
use crate::{DayCount, GateLoss, Instant, RowFlow};

fn gate(name: &str, dropped: u64, refused: u64, held: u64) -> GateLoss {
    GateLoss {
        name: name.to_owned(),
        dropped,
        refused,
        held,
    }
}

/// Returns the elements of a drawing, which is not a whole page.
fn drawn(drawing: &str) -> Vec<super::html::Element> {
    elements(&format!("<!doctype html>{drawing}"))
}

fn number(text: &str) -> u64 {
    text.replace([',', '−'], "").trim().parse().unwrap()
}

#[test]
fn every_row_of_a_flow_is_in_the_table_once() {
    let flow = RowFlow {
        rows: 29_824,
        gates: vec![
            gate("contract", 0, 412, 0),
            gate("dedup", 6_208, 0, 0),
            gate("screen", 0, 7, 500),
        ],
        waiting: 84,
        rejected: 1_088,
    };
    assert_eq!(flow.passed(), 29_824 - 84 - 412 - 6_208 - 507);
    assert_eq!(flow.merged(), flow.passed() - 1_088);
    let elements = drawn(&flow.drawn().to_string());
    let cells: Vec<u64> = elements
        .iter()
        .filter(|element| element.name == "td" && element.get("class").is_some_and(|class| class.starts_with('n')))
        .map(|element| number(&element.text))
        .collect();
    let (rows, lost): (Vec<u64>, Vec<u64>) = cells.chunks(2).map(|pair| (pair[0], pair[1])).unzip();
    assert_eq!(lost, [84, 412, 6_208, 507, 1_088]);
    assert_eq!(rows.last(), Some(&flow.merged()));
    assert_eq!(flow.rows, flow.merged() + lost.iter().sum::<u64>());
    let picture = elements
        .iter()
        .find(|element| element.get("role") == Some("img"))
        .unwrap();
    let words = picture.get("aria-label").unwrap();
    for part in [
        "29,824 rows in",
        "412 refused by schema",
        "500 held by screening",
        "21,525 merged",
    ] {
        assert!(words.contains(part), "{words}");
    }
}

#[test]
fn a_channel_without_rows_is_empty() {
    let surface = |rows: u64| {
        let flow = RowFlow {
            rows,
            gates: vec![gate("contract", 0, 0, 0)],
            ..RowFlow::default()
        };
        let elements = drawn(&flow.drawn().to_string());
        let surface = elements.iter().find(|element| element.get("class") == Some("surface"));
        surface.and_then(|surface| surface.get("d")).unwrap().to_owned()
    };
    assert!(surface(0).starts_with("M0 212.0"), "{}", surface(0));
    assert!(surface(1).starts_with("M0 80.0"), "{}", surface(1));
}

#[test]
fn a_flow_stays_within_its_drawing() {
    let all = [
        RowFlow::default(),
        RowFlow {
            rows: 1,
            ..RowFlow::default()
        },
        RowFlow {
            rows: u64::MAX,
            gates: vec![gate("contract", u64::MAX, u64::MAX, 1)],
            waiting: u64::MAX,
            rejected: u64::MAX,
        },
        RowFlow {
            rows: 10,
            gates: (0..12).map(|at| gate(&format!("gate-{at}"), 1, 1, 1)).collect(),
            waiting: 0,
            rejected: 0,
        },
    ];
    for flow in all {
        for rectangle in drawn(&flow.drawn().to_string())
            .iter()
            .filter(|element| element.get("class") == Some("out"))
        {
            let value = |name: &str| rectangle.get(name).unwrap().parse::<f64>().unwrap();
            assert!(
                value("y") >= 70.0 && value("y") + value("height") <= 212.0,
                "{rectangle:?}"
            );
            assert!(value("x") + value("width") <= 1080.0, "{rectangle:?}");
        }
    }
}

fn day(at: i64, merged: u64, waiting: u64, rejected: u64) -> DayCount {
    DayCount {
        day: Instant(at * 86_400_000_000),
        merged,
        waiting,
        rejected,
    }
}

#[test]
fn bars_reach_as_high_as_their_counts() {
    let days: Vec<_> = (0_i64..14)
        .map(|at| day(at, 10, 5, 5))
        .chain([day(14, 0, 0, 0)])
        .collect();
    let elements = drawn(&Bars::of_contributions(&days).to_string());
    let heights: Vec<&str> = elements.iter().filter_map(|element| element.get("height")).collect();
    // The key has three squares; then a day has three pieces: 10, 5 and 5 of the 20 that the axis reaches.
    assert_eq!(heights[3..6], ["50.00", "25.00", "25.00"]);
    assert_eq!(heights.len(), 3 + 14 * 3);
    let titles: Vec<&str> = elements
        .iter()
        .filter(|element| element.name == "title")
        .map(|title| title.text.as_str())
        .collect();
    assert_eq!(titles[0], "1 Jan: 10 merged, 5 waiting, 5 rejected");
    assert_eq!(titles[14], "15 Jan: none");
    let picture = elements
        .iter()
        .find(|element| element.get("role") == Some("img"))
        .unwrap();
    assert_eq!(
        picture.get("aria-label"),
        Some("280 contributions in 15 days, at most 20 a day")
    );
}

#[test]
fn bars_without_counts_say_so() {
    for days in [Vec::new(), vec![day(0, 0, 0, 0), day(1, 0, 0, 0)]] {
        let text = Bars::of_contributions(&days).to_string();
        assert!(text.contains(&format!("none in {} days", days.len())), "{text}");
        assert!(!text.contains("<rect class=\"b1\" x"), "{text}");
    }
}
