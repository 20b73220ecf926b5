//! Measures the personal data gate on a labelled corpus.
//!
//! The corpus has two halves. The gate's rules were tuned on one; the other was written before and kept away from the
//! gate until the rules were done. The bounds are asserted on the half that was held back.

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::io::Write as _;
    use std::sync::Arc;

    use operators::gates::PersonalData;
    use operators::{Gate, Verdict};
    use serde_json::json;
    use types::Batch;

    const CORPUS: &str = include_str!("corpus/personal.tsv");
    const LEAST_PRECISION: f64 = 0.98;
    const LEAST_RECALL: f64 = 0.98;

    struct Line {
        half: &'static str,
        labels: BTreeSet<String>,
        field: &'static str,
        text: String,
    }

    fn corpus() -> Vec<Line> {
        let line = |line: &'static str| {
            let columns: Vec<_> = line.splitn(4, '\t').collect();
            let [half, labels, field, text] = columns[..] else {
                panic!("four columns: {line}")
            };
            Line {
                half,
                labels: labels
                    .split(',')
                    .filter(|label| *label != "-")
                    .map(str::to_owned)
                    .collect(),
                field,
                text: serde_json::from_str(&format!("\"{text}\"")).unwrap(),
            }
        };
        CORPUS.lines().filter(|line| !line.starts_with('#')).map(line).collect()
    }

    /// The codes the gate refuses the text with, in a record where it stands in a string field of this name.
    fn found(field: &str, text: &str) -> BTreeSet<String> {
        let contract = serde_json::from_value(json!({"fields": [{"name": field, "type": "string"}]})).unwrap();
        let rows = Batch::decode(&Arc::new(contract), &[json!({field: text})]);
        assert_eq!(rows.defects(), []);
        let verdicts = PersonalData::new().judge(&rows);
        match verdicts.exceptions() {
            [] => BTreeSet::new(),
            [(0, Verdict::Refuse { reasons })] => reasons.iter().map(|reason| reason.code.clone()).collect(),
            other => panic!("{other:?}"),
        }
    }

    /// Decisions that are right and wrong, counted by kind: a text may have several.
    #[derive(Clone, Copy, Default)]
    struct Score {
        hits: u32,
        misses: u32,
        alarms: u32,
    }

    impl Score {
        fn precision(self) -> f64 {
            f64::from(self.hits) / f64::from((self.hits + self.alarms).max(1))
        }

        fn recall(self) -> f64 {
            f64::from(self.hits) / f64::from((self.hits + self.misses).max(1))
        }
    }

    #[test]
    fn precision_and_recall_on_the_half_held_back() {
        let lines = corpus();
        let mut report = Vec::new();
        let mut held = Score::default();
        for half in ["tune", "held"] {
            let mut kinds = BTreeMap::<String, Score>::new();
            let mut all = Score::default();
            let mut rows = Score::default();
            for line in lines.iter().filter(|line| line.half == half) {
                let found = found(line.field, &line.text);
                if found != line.labels {
                    writeln!(
                        report,
                        "  {half}: {:?} is {:?}, found {found:?}",
                        line.text, line.labels
                    )
                    .unwrap();
                }
                for kind in line.labels.union(&found) {
                    for score in [&mut all, kinds.entry(kind.clone()).or_default()] {
                        score.hits += u32::from(line.labels.contains(kind) && found.contains(kind));
                        score.misses += u32::from(!found.contains(kind));
                        score.alarms += u32::from(!line.labels.contains(kind));
                    }
                }
                rows.hits += u32::from(!line.labels.is_empty() && !found.is_empty());
                rows.misses += u32::from(!line.labels.is_empty() && found.is_empty());
                rows.alarms += u32::from(line.labels.is_empty() && !found.is_empty());
            }
            let named = [("all kinds".to_owned(), all), ("rows refused".to_owned(), rows)];
            for (name, score) in named.into_iter().chain(kinds) {
                let Score { hits, misses, alarms } = score;
                let (precision, recall) = (score.precision(), score.recall());
                writeln!(
                    report,
                    "{half} {name:20} precision {precision:.4} recall {recall:.4} ({hits} found, {misses} missed, {alarms} false)"
                )
                .unwrap();
            }
            held = all;
        }
        std::io::stdout().write_all(&report).unwrap();
        assert!(held.precision() >= LEAST_PRECISION, "precision {}", held.precision());
        assert!(held.recall() >= LEAST_RECALL, "recall {}", held.recall());
    }

    #[test]
    fn the_corpus_is_large_and_its_halves_are_alike() {
        let lines = corpus();
        assert!(lines.len() >= 1_000, "{}", lines.len());
        let distinct: BTreeSet<_> = lines.iter().map(|line| (line.field, &line.text)).collect();
        assert_eq!(distinct.len(), lines.len(), "no line is in both halves");
        let count = |half: &str, labels: &BTreeSet<String>| {
            lines
                .iter()
                .filter(|line| line.half == half && line.labels == *labels)
                .count()
        };
        for line in &lines {
            let (tune, held) = (count("tune", &line.labels), count("held", &line.labels));
            assert!(held.abs_diff(tune) <= 1, "{:?}: {tune} and {held}", line.labels);
        }
        assert!(lines.iter().filter(|line| line.labels.is_empty()).count() >= 500);
    }
}
