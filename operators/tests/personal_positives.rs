//! Holds the personal data gate to what it found before its rules were narrowed: personal data of many countries, in
//! rows under names of fields and in prose, written before the rules were changed.
//!
//! Invariant: a line marked `found` was found then and stays found.

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use operators::gates::PersonalData;
    use operators::{Gate, Verdict};
    use serde_json::json;
    use types::Batch;

    const POSITIVES: &str = include_str!("corpus/positives.tsv");

    struct Line {
        mark: &'static str,
        labels: BTreeSet<String>,
        field: &'static str,
        is_integer: bool,
        text: String,
    }

    fn lines() -> Vec<Line> {
        let line = |line: &'static str| {
            let columns: Vec<_> = line.splitn(4, '\t').collect();
            let [mark, labels, field, text] = columns[..] else {
                panic!("four columns: {line}")
            };
            let (field, is_integer) = field
                .strip_suffix(":integer")
                .map_or((field, false), |field| (field, true));
            Line {
                mark,
                labels: labels.split(',').map(str::to_owned).collect(),
                field,
                is_integer,
                text: serde_json::from_str(&format!("\"{text}\"")).unwrap(),
            }
        };
        POSITIVES
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(line)
            .collect()
    }

    fn found(line: &Line) -> BTreeSet<String> {
        let kind = if line.is_integer { "integer" } else { "string" };
        let contract = serde_json::from_value(json!({"fields": [{"name": line.field, "type": kind}]})).unwrap();
        let value = if line.is_integer {
            json!(line.text.parse::<i64>().unwrap())
        } else {
            json!(line.text)
        };
        let rows = Batch::decode(&Arc::new(contract), &[json!({line.field: value})]);
        assert_eq!(rows.defects(), []);
        match PersonalData::new().judge(&rows).exceptions() {
            [] => BTreeSet::new(),
            [(0, Verdict::Refuse { reasons })] => reasons.iter().map(|reason| reason.code.clone()).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_found_stays_found() {
        let lines = lines();
        assert!(lines.len() >= 200, "{}", lines.len());
        let mut lost = Vec::new();
        for line in &lines {
            let found = found(line);
            if line.mark == "found" && !line.labels.is_subset(&found) {
                let labels: Vec<_> = line.labels.iter().cloned().collect();
                lost.push(format!(
                    "{}: {} of {:?}, found {found:?}",
                    line.mark,
                    labels.join(","),
                    line.text
                ));
            }
        }
        assert_eq!(lost, [""; 0]);
    }
}
