use std::collections::BTreeSet;

use serde_json::Value;

/// The dashboard's definition in the repository.
const DASHBOARD: &str = include_str!("../../../grafana/sluice.json");

/// Every expression of the dashboard.
fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text) if name == "expr" => found.push(text.clone()),
                    other => expressions(other, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, found)),
        _ => {}
    }
}

fn names(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("sluice_"))
}

#[test]
fn the_dashboard_draws_every_metric_and_no_other() {
    let mut found = Vec::new();
    expressions(&serde_json::from_str(DASHBOARD).unwrap(), &mut found);
    let drawn: BTreeSet<&str> = found
        .iter()
        .flat_map(|expression| names(expression))
        .map(|name| name.strip_suffix("_bucket").unwrap_or(name))
        .collect();
    let known: BTreeSet<&str> = super::metric::ALL.iter().map(|metric| metric.name).collect();
    assert_eq!(
        drawn.difference(&known).collect::<Vec<_>>(),
        Vec::<&&str>::new(),
        "no such metric"
    );
    assert_eq!(
        known.difference(&drawn).collect::<Vec<_>>(),
        Vec::<&&str>::new(),
        "nowhere drawn"
    );
}

#[test]
fn the_dashboard_divides_by_labels_that_its_metrics_have() {
    let mut found = Vec::new();
    expressions(&serde_json::from_str(DASHBOARD).unwrap(), &mut found);
    for expression in found {
        let Some((_, rest)) = expression.split_once(" by (") else {
            continue;
        };
        let labels = rest.split_once(')').unwrap().0;
        for name in names(&expression) {
            let name = name.strip_suffix("_bucket").unwrap_or(name);
            let metric = super::metric::ALL.iter().find(|metric| metric.name == name).unwrap();
            for label in labels.split(", ").filter(|label| *label != "le") {
                let known = match metric.labels {
                    super::Labels::Bare => false,
                    super::Labels::Known(known, _) => known == label,
                    super::Labels::Open(known) => known.contains(&label),
                };
                assert!(known, "{name} has no label `{label}`: {expression}");
            }
        }
    }
}
