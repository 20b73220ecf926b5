//! The names of all metrics.
//!
//! Invariants:
//! - A metric is named here and nowhere else. [`ALL`] lists each of them, so export, description and dashboard share
//!   one list.
//! - A label takes one of a few fixed words, never an id, a slug, a key or a text from outside.
//!
//! Names follow the conventions of Prometheus: counters end in `_total`, times are in seconds, sizes in bytes.

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A number that grows from 0 for as long as the process lives.
    Counter,
    /// A current value that can rise and fall.
    Gauge,
    /// A distribution of values in buckets.
    Histogram,
}

/// A metric with its description.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// The name of the time series.
    pub name: &'static str,
    /// The type of the metric.
    pub kind: MetricKind,
    /// The description shown by Prometheus.
    pub help: &'static str,
    /// The labels and their values.
    pub labels: Labels,
}

/// The labels of a metric.
#[derive(Clone, Copy, Debug)]
pub enum Labels {
    /// Metric that has no label.
    Bare,
    /// One label with all of its values, so that each series exists from the start.
    Known(&'static str, &'static [&'static str]),
    /// Labels whose values are known at run time only.
    Open(&'static [&'static str]),
}

macro_rules! metrics {
    ($($(#[doc = $help:literal])+ $constant:ident = $name:literal, $kind:ident $labels:tt;)+) => {
        $($(#[doc = $help])+ pub const $constant: &str = $name;)+

        /// Every metric, in reading order.
        pub const ALL: &[Metric] = &[$(Metric {
            name: $name,
            kind: MetricKind::$kind,
            // A doc comment begins with a space, and one of several lines is several attributes.
            help: concat!($($help),+).trim_ascii(),
            labels: metrics!(@labels $labels),
        }),+];
    };
    (@labels ()) => { Labels::Bare };
    (@labels ($label:literal in [$($value:literal),+])) => { Labels::Known($label, &[$($value),+]) };
    (@labels ($($label:literal),+)) => { Labels::Open(&[$($label),+]) };
}

metrics! {
    /// Calls answered, by operation and HTTP status.
    REQUESTS = "sluice_requests_total", Counter ("operation", "status");
    /// Seconds until a call's answer began, by operation.
    REQUEST_SECONDS = "sluice_request_seconds", Histogram ("operation");
    /// Calls refused or failed, by the machine code of their error.
    REFUSALS = "sluice_refusals_total", Counter ("error");

    /// Contributions by state: acknowledged by this process, or decided by an outcome it projected.
    CONTRIBUTIONS = "sluice_contributions_total", Counter ("state" in ["acknowledged", "merged", "rejected", "waiting"]);
    /// Versions of knowledge units by state: acknowledged by this process, or decided by an outcome it projected.
    UNITS = "sluice_units_total", Counter ("state" in ["acknowledged", "published", "rejected", "waiting"]);
    /// Records that outcomes projected by this process added to datasets.
    RECORDS_MERGED = "sluice_records_merged_total", Counter ();
    /// Submissions that wait in the relay to be appended to the log.
    RELAY_QUEUE = "sluice_relay_queue", Gauge ();
    /// Submissions that the relay did not append; the sweeper appends them later.
    RELAY_ABANDONED = "sluice_relay_abandoned_total", Counter ();
    /// Submissions without an outcome that the sweeper appended again.
    SWEEPER_APPENDED = "sluice_sweeper_appended_total", Counter ();
    /// Seconds from an outcome to its row in the database.
    PROJECTION_SECONDS = "sluice_projection_seconds", Histogram ();
    /// Messages that no worker could process.
    DEAD_LETTERS = "sluice_dead_letters_total", Counter ();
    /// Submissions that did not fit the queue of their table writer and come again from the outbox.
    DEFERRED = "sluice_deferred_total", Counter ();
    /// Submissions and units set aside because they crashed the processes that tried them out.
    QUARANTINED = "sluice_quarantined_total", Counter ();
    /// Requests that waited for an outcome and got it from another process.
    REMOTE_OUTCOMES = "sluice_remote_outcomes_total", Counter ();

    /// Seconds until an append to the log was durable, by topic.
    LOG_APPEND_SECONDS = "sluice_log_append_seconds", Histogram ("topic");
    /// Calls of the log that failed, by kind of call.
    LOG_FAILURES = "sluice_log_failures_total", Counter ("call" in ["append", "read", "commit"]);
    /// Resets of a log reader: its position was outside the log, or its consumer was restarted because its topic was
    /// recreated, it stalled, or its group left partitions unassigned.
    LOG_READER_RESETS = "sluice_log_reader_resets_total", Counter ("cause" in ["out_of_range", "consumer_restarted"]);
    /// Records of a topic that a group of this process has not committed, by topic and group.
    LOG_LAG = "sluice_log_lag", Gauge ("topic", "group");

    /// Seconds of a merge, from a submission that the gates have judged to a durable version.
    MERGE_SECONDS = "sluice_merge_seconds", Histogram ();
    /// Merges by result: a new version, a version committed before, or no new record.
    MERGES = "sluice_merges_total", Counter ("result" in ["merged", "already_committed", "nothing_new"]);
    /// Commits that lost the race to another owner of the table.
    COMMIT_CONFLICTS = "sluice_commit_conflicts_total", Counter ();
    /// Tables with versions that a worker of this process opened, at its start or when it was assigned their partition.
    TABLES_OPENED = "sluice_tables_opened_total", Counter ();
    /// Files of tables that were found damaged or missing, by kind of file.
    DAMAGE = "sluice_table_damage_total", Counter ("file" in ["part", "commit"]);
    /// Requests to the object store, by kind of request.
    OBJECT_REQUESTS = "sluice_object_requests_total", Counter ("call" in ["get", "put", "list", "delete", "copy"]);
    /// Requests to the object store that failed temporarily and are retried.
    OBJECT_FAILURES = "sluice_object_failures_total", Counter ("call" in ["get", "put", "list", "delete", "copy"]);

    /// Builds of profiles of versions by result: built, dropped because the dataset changed meanwhile or another
    /// process has it, put in the queue because it reads many rows, or failed.
    PROFILES = "sluice_profiles_total", Counter ("result" in ["built", "dropped", "queued", "failed"]);
    /// Seconds of a build of a profile.
    PROFILE_SECONDS = "sluice_profile_seconds", Histogram ();
    /// Bytes of sketches of parts that were read from the object store or written to it.
    SKETCH_BYTES = "sluice_sketch_bytes_total", Counter ("direction" in ["read", "written"]);

    /// Queries by result.
    QUERIES = "sluice_queries_total", Counter ("result" in ["ok", "refused", "failed", "timed_out", "too_large", "out_of_memory", "crashed", "busy", "unavailable", "damaged"]);
    /// Seconds of a query.
    QUERY_SECONDS = "sluice_query_seconds", Histogram ();
    /// Queries that are running.
    QUERIES_RUNNING = "sluice_queries_running", Gauge ();
    /// Bytes sent to operators that count toward their egress.
    EGRESS_BYTES = "sluice_egress_bytes_total", Counter ();

    /// Runs of collectors that this process ended, by outcome.
    COLLECTOR_RUNS = "sluice_collector_runs_total", Counter ("outcome" in ["merged", "unchanged", "held", "failed"]);
    /// Rows that collectors fetched: new, known to the dataset, refused by a gate, or no record of the contract.
    COLLECTOR_ROWS = "sluice_collector_rows_total", Counter ("fate" in ["new", "known", "refused", "failed"]);
    /// Seconds of a run of a collector.
    COLLECTOR_SECONDS = "sluice_collector_seconds", Histogram ();

    /// Accounts of the whole service that were made on the present UTC day.
    DAY_SIGN_UPS = "sluice_day_sign_ups", Gauge ();
    /// Sales for money of the whole service on the present UTC day.
    DAY_SALES = "sluice_day_sales", Gauge ();
    /// Prices of these sales together, in cents of USDC.
    DAY_SALES_CENTS = "sluice_day_sales_cents", Gauge ();
    /// Records that versions of the present UTC day added to datasets of the whole service.
    DAY_ROWS = "sluice_day_records_merged", Gauge ();
    /// Jobs whose last try failed, up to a thousand: those tried again by themselves, and those given up.
    JOBS_FAILING = "sluice_jobs_failing", Gauge ("state" in ["retried", "given_up"]);

    /// Transactions of this process that changed the database; concurrent changes share one.
    DATABASE_COMMITS = "sluice_database_commits_total", Counter ();
    /// Database calls that failed and are retried.
    DATABASE_FAILURES = "sluice_database_failures_total", Counter ();
    /// Requests that the shared cache did not answer; limits are then counted per replica.
    CACHE_FAILURES = "sluice_cache_failures_total", Counter ();
    /// The shared cache at the last check: 1 up, 0 down; absent if none is configured.
    CACHE_UP = "sluice_cache_up", Gauge ();
    /// Connections that have a place.
    CONNECTIONS = "sluice_connections", Gauge ();
    /// Connections that the service ended or refused: without a request in time, for a new one, or beyond the share of an
    /// address.
    CONNECTIONS_CUT = "sluice_connections_cut_total", Counter ("cause" in ["silent", "gave_way", "share_taken"]);
    /// Open files of the process, counted every 5 s; absent where the system does not tell.
    OPEN_FILES = "sluice_open_files", Gauge ();
    /// Files that the process may have open.
    OPEN_FILES_LIMIT = "sluice_open_files_limit", Gauge ();
    /// 1 while this replica drains and asks load balancers to send no requests.
    DRAINING = "sluice_draining", Gauge ();
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_distinct_and_say_their_kind() {
        let mut seen = HashSet::new();
        for metric in ALL {
            assert!(seen.insert(metric.name), "{} is there twice", metric.name);
            assert!(metric.name.starts_with("sluice_"), "{}", metric.name);
            assert_eq!(
                metric.name.ends_with("_total"),
                metric.kind == MetricKind::Counter,
                "{}",
                metric.name
            );
            assert!(!metric.help.is_empty(), "{}", metric.name);
        }
    }
}
