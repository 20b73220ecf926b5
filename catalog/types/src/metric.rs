//! The names of everything that is measured.
//!
//! Invariants:
//! - A metric is named here and nowhere else; [`ALL`] has each of them, so what is exported, described and drawn is one list.
//! - A label takes one of a few words of the program: never an id, a slug, a key or a text that somebody sent.
//!
//! Names follow the conventions of Prometheus: counters end in `_total`, times are in seconds, sizes in bytes.

/// What kind of number a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Grows from 0 for as long as the process lives.
    Counter,
    /// A value now.
    Gauge,
    /// A distribution.
    Histogram,
}

/// A metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What kind of number it is.
    pub kind: Kind,
    /// What it counts.
    pub help: &'static str,
    /// Its labels.
    pub labels: Labels,
}

/// The labels of a metric.
#[derive(Clone, Copy, Debug)]
pub enum Labels {
    /// None.
    Bare,
    /// One, and every value it takes, so that each can be there from the start.
    Known(&'static str, &'static [&'static str]),
    /// Some, whose values the program knows only as it meets them.
    Open(&'static [&'static str]),
}

macro_rules! metrics {
    ($($(#[doc = $help:literal])+ $constant:ident = $name:literal, $kind:ident $labels:tt;)+) => {
        $($(#[doc = $help])+ pub const $constant: &str = $name;)+

        /// Every metric, in reading order.
        pub const ALL: &[Metric] = &[$(Metric {
            name: $name,
            kind: Kind::$kind,
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

    /// Contributions by what became of them: acknowledged by this process, or decided by an outcome it projected.
    CONTRIBUTIONS = "sluice_contributions_total", Counter ("state" in ["acknowledged", "merged", "rejected", "waiting"]);
    /// Records that outcomes projected by this process added to datasets.
    RECORDS_MERGED = "sluice_records_merged_total", Counter ();
    /// Submissions that wait in the relay for the log.
    RELAY_QUEUE = "sluice_relay_queue", Gauge ();
    /// Submissions that the relay left to the sweeper.
    RELAY_LEFT = "sluice_relay_left_total", Counter ();
    /// Open submissions that the sweeper appended again.
    SWEEPER_APPENDED = "sluice_sweeper_appended_total", Counter ();
    /// Seconds from an outcome to its row in the database.
    PROJECTION_SECONDS = "sluice_projection_seconds", Histogram ();
    /// Messages that no worker could process.
    DEAD_LETTERS = "sluice_dead_letters_total", Counter ();
    /// Submissions that ended their worker's process again and again and are worked on no more.
    QUARANTINED = "sluice_quarantined_total", Counter ();
    /// Requests that were woken by an outcome of another process.
    FOLLOWED = "sluice_followed_total", Counter ();

    /// Seconds until an append to the log was durable, by topic.
    LOG_APPEND_SECONDS = "sluice_log_append_seconds", Histogram ("topic");
    /// Calls of the log that failed, by what was asked of it.
    LOG_FAILURES = "sluice_log_failures_total", Counter ("call" in ["append", "read", "commit"]);
    /// Times that a reader lost its place in the log, by how: its position was not kept any more, or its consumer was
    /// replaced because the topic was made anew or gave nothing, or its group left partitions to nobody.
    LOG_LOST = "sluice_log_lost_total", Counter ("how" in ["out_of_range", "renewed"]);
    /// Records of a topic that a group of this process has not done, by topic and group.
    LOG_LAG = "sluice_log_lag", Gauge ("topic", "group");

    /// Seconds of a merge, from a judged batch to a durable version.
    MERGE_SECONDS = "sluice_merge_seconds", Histogram ();
    /// Merges by how they ended: a version, one found to be there already, nothing new.
    MERGES = "sluice_merges_total", Counter ("result" in ["merged", "adopted", "nothing_new"]);
    /// Commits that another owner of the table put first.
    COMMIT_CONFLICTS = "sluice_commit_conflicts_total", Counter ();
    /// Tables that had versions already when a worker of this process opened them: a start, or a take-over.
    TAKEOVERS = "sluice_takeovers_total", Counter ();
    /// Requests to the store of the tables, by what was asked of it.
    OBJECT_REQUESTS = "sluice_object_requests_total", Counter ("call" in ["get", "put", "list", "delete", "copy"]);
    /// Requests to the store of the tables that failed for no reason of the request, each to be tried again.
    OBJECT_FAILURES = "sluice_object_failures_total", Counter ("call" in ["get", "put", "list", "delete", "copy"]);

    /// Queries by how they ended.
    QUERIES = "sluice_queries_total", Counter ("result" in ["ok", "refused", "failed", "timed_out", "too_large", "out_of_memory", "crashed", "busy", "unavailable"]);
    /// Seconds of a query.
    QUERY_SECONDS = "sluice_query_seconds", Histogram ();
    /// Queries that run.
    QUERIES_RUNNING = "sluice_queries_running", Gauge ();
    /// Bytes that left for operators and count toward their egress.
    EGRESS_BYTES = "sluice_egress_bytes_total", Counter ();

    /// Transactions of this process that changed the database; changes that come together share one.
    DATABASE_COMMITS = "sluice_database_commits_total", Counter ();
    /// Times that the database did not do what was asked and is asked again.
    DATABASE_FAILURES = "sluice_database_failures_total", Counter ();
    /// Times that the shared cache did not answer; limits are counted per replica then.
    CACHE_FAILURES = "sluice_cache_failures_total", Counter ();
    /// The shared cache at the last look: 1 up, 0 down; nothing where none is configured.
    CACHE_UP = "sluice_cache_up", Gauge ();
    /// Whether load balancers are told to leave this replica alone: 1 while it drains.
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
                metric.kind == Kind::Counter,
                "{}",
                metric.name
            );
            assert!(!metric.help.is_empty(), "{}", metric.name);
        }
    }
}
