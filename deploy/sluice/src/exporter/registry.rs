//! The metrics of the process in Prometheus's text format 0.0.4.
//!
//! Invariant: a metric that `types::metric` does not name is dropped, and labels have few values, so the output has a
//! bounded size. Recording takes a read lock only.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use parking_lot::RwLock;
use types::metric::{ALL, MetricKind};

/// Upper bounds of a histogram's buckets, in seconds: from a commit on a local disk to the longest request.
const BUCKET_BOUNDS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// The metrics of a process. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    cells: Arc<RwLock<HashMap<Key, MetricCell>>>,
}

#[derive(Clone, Debug)]
enum MetricCell {
    Counter(Arc<AtomicU64>),
    /// Holds the bits of an `f64`.
    Gauge(Arc<AtomicU64>),
    Histogram(Arc<Distribution>),
}

/// A histogram: counts per bucket, and the sum of the values.
#[derive(Debug, Default)]
struct Distribution {
    /// Values above the previous bound up to this one. The last cell counts values above every bound.
    counts: [AtomicU64; BUCKET_BOUNDS.len() + 1],
    /// Holds the bits of an `f64`.
    sum: AtomicU64,
}

impl HistogramFn for Distribution {
    fn record(&self, value: f64) {
        // A bucket includes its upper bound (`le`), so a value equal to a bound belongs to that bucket.
        let place = BUCKET_BOUNDS.partition_point(|bound| *bound < value);
        self.counts[place].fetch_add(1, Ordering::Relaxed);
        let add = |sum| Some(f64::to_bits(f64::from_bits(sum) + value));
        // The closure never returns `None`, so the update cannot fail.
        self.sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok();
    }
}

impl Registry {
    /// Returns the cell of a key and creates it if needed. `None` if `types::metric` has no such metric of this kind.
    fn cell(&self, key: &Key, kind: MetricKind) -> Option<MetricCell> {
        if let Some(cell) = self.cells.read().get(key) {
            return Some(cell.clone());
        }
        let known = ALL
            .iter()
            .any(|metric| metric.name == key.name() && metric.kind == kind);
        let make = || match kind {
            MetricKind::Counter => MetricCell::Counter(Arc::default()),
            MetricKind::Gauge => MetricCell::Gauge(Arc::default()),
            MetricKind::Histogram => MetricCell::Histogram(Arc::default()),
        };
        known.then(|| {
            let mut cells = self.cells.write();
            // Another thread may have created the cell since the read lock was released.
            cells.entry(key.clone()).or_insert_with(make).clone()
        })
    }

    /// Returns all metrics as text, in the order of `types::metric`.
    pub fn render(&self) -> String {
        // The cells are collected first, so that the lock is not held while the text is built.
        let mut by_name: BTreeMap<String, Vec<(String, MetricCell)>> = BTreeMap::new();
        for (key, cell) in &*self.cells.read() {
            let labels = key
                .labels()
                .map(|label| format!("{}=\"{}\"", label.key(), escaped(label.value())));
            let labels = labels.collect::<Vec<_>>().join(",");
            by_name
                .entry(key.name().to_owned())
                .or_default()
                .push((labels, cell.clone()));
        }
        let mut text = String::new();
        for metric in ALL {
            let Some(mut cells) = by_name.remove(metric.name) else {
                continue;
            };
            cells.sort_by(|one, other| one.0.cmp(&other.0));
            let kind = match metric.kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
                MetricKind::Histogram => "histogram",
            };
            // Writes to a string cannot fail. The same holds below.
            writeln!(text, "# HELP {} {}\n# TYPE {0} {kind}", metric.name, metric.help).ok();
            for (labels, cell) in cells {
                show(&mut text, metric.name, &labels, &cell);
            }
        }
        text
    }
}

fn show(text: &mut String, name: &str, labels: &str, cell: &MetricCell) {
    let set = if labels.is_empty() {
        String::new()
    } else {
        format!("{{{labels}}}")
    };
    match cell {
        MetricCell::Counter(count) => writeln!(text, "{name}{set} {}", count.load(Ordering::Relaxed)).ok(),
        MetricCell::Gauge(bits) => writeln!(text, "{name}{set} {}", f64::from_bits(bits.load(Ordering::Relaxed))).ok(),
        MetricCell::Histogram(distribution) => {
            let comma = if labels.is_empty() { "" } else { "," };
            let mut count = 0;
            let bounds = BUCKET_BOUNDS.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
            for (bound, cell) in bounds.zip(&distribution.counts) {
                // Prometheus wants cumulative counts.
                count += cell.load(Ordering::Relaxed);
                writeln!(text, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {count}").ok();
            }
            let sum = f64::from_bits(distribution.sum.load(Ordering::Relaxed));
            writeln!(text, "{name}_sum{set} {sum}\n{name}_count{set} {count}").ok()
        }
    };
}

/// Escapes a label's value.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

impl Recorder for Registry {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        match self.cell(key, MetricKind::Counter) {
            // The caller keeps the cell, so later increments need no lookup.
            Some(MetricCell::Counter(count)) => Counter::from_arc(count),
            // A metric without a name in `types::metric` is dropped here.
            _ => Counter::noop(),
        }
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        match self.cell(key, MetricKind::Gauge) {
            Some(MetricCell::Gauge(bits)) => Gauge::from_arc(bits),
            _ => Gauge::noop(),
        }
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        match self.cell(key, MetricKind::Histogram) {
            Some(MetricCell::Histogram(distribution)) => Histogram::from_arc(distribution),
            _ => Histogram::noop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use types::metric;

    use super::*;

    #[test]
    fn what_is_measured_is_told_in_the_text_format() {
        let registry = Registry::default();
        metrics::with_local_recorder(&registry, || {
            metrics::counter!(metric::MERGES, "result" => "merged").increment(2);
            metrics::counter!(metric::MERGES, "result" => "already_committed").increment(1);
            metrics::gauge!(metric::LOG_LAG, "topic" => "a\"b\\c\nd", "group" => "workers").set(2.5);
            metrics::histogram!(metric::MERGE_SECONDS).record(0.003);
            metrics::histogram!(metric::MERGE_SECONDS).record(0.005);
            metrics::histogram!(metric::MERGE_SECONDS).record(60.0);
            metrics::counter!("sluice_unheard_of_total").increment(1);
            metrics::gauge!(metric::MERGES).set(1.0);
        });
        let text = registry.render();
        for line in [
            "# TYPE sluice_merges_total counter",
            "sluice_merges_total{result=\"already_committed\"} 1",
            "sluice_merges_total{result=\"merged\"} 2",
            "sluice_log_lag{topic=\"a\\\"b\\\\c\\nd\",group=\"workers\"} 2.5",
            "sluice_merge_seconds_bucket{le=\"0.0025\"} 0",
            "sluice_merge_seconds_bucket{le=\"0.005\"} 2",
            "sluice_merge_seconds_bucket{le=\"30\"} 2",
            "sluice_merge_seconds_bucket{le=\"+Inf\"} 3",
            "sluice_merge_seconds_sum 60.008",
            "sluice_merge_seconds_count 3",
        ] {
            assert!(text.lines().any(|told| told == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("unheard"), "{text}");
        assert_eq!(text.matches("# HELP").count(), 3, "{text}");
    }
}
