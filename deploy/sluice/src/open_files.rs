//! Open files of the process: its limit, what connections may take of it, and the watch that the probes read.
//!
//! Invariant: connections have at most half of the files, so that reads and merges find some whatever strangers hold.

use std::fs::{self, File};
use std::time::Duration;

use api::periodic::PeriodicTimer;
use api::state::open_files::OpenFiles;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio_util::sync::CancellationToken;
use types::metric;

/// Most files that are asked for. More are of no use, and where the hard limit is a thousand times as much, programs
/// that close every number would take seconds.
const MAX_OPEN_FILES: u64 = 1 << 20;
/// Interval between two looks, and the number of looks after which the files are counted: that costs more.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const COUNT_AT: u32 = 5;
/// Folder with an entry for each open file of the process.
const OPEN_FILES_FOLDER: &str = "/proc/self/fd";
/// File that opens wherever any does.
const PROBE_FILE: &str = "/dev/null";

/// Raises the soft limit of open files to the hard one, at most to [`MAX_OPEN_FILES`].
pub(crate) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(MAX_OPEN_FILES).min(MAX_OPEN_FILES);
    // `None` is no limit.
    if current.is_some_and(|current| current < wanted) {
        let raised = Rlimit {
            current: Some(wanted),
            maximum,
        };
        // A limit that cannot be raised is no failure: connections are bounded by the present one.
        setrlimit(Resource::Nofile, raised).ok();
    }
}

/// Returns the number of files that the process may have open.
pub(crate) fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Returns the number of connections that are accepted at a time, of `wanted`, with this limit of open files.
pub(crate) fn connections(wanted: usize, limit: u64) -> usize {
    let half = usize::try_from(limit / 2).unwrap_or(usize::MAX);
    wanted.min(half).max(1)
}

/// Looks every second if a file can be opened, until `stop`.
pub(crate) async fn watch(files: OpenFiles, stop: CancellationToken) {
    metrics::gauge!(metric::OPEN_FILES_LIMIT).set(as_gauge(limit()));
    let mut rounds = PeriodicTimer::every(LOOK_EVERY, &stop);
    let mut looks: u32 = 0;
    while rounds.next().await {
        let opened = File::open(PROBE_FILE).map(drop);
        let error = opened.err().and_then(|error| Errno::from_io_error(&error));
        let have_run_out = matches!(error, Some(Errno::MFILE | Errno::NFILE));
        if files.note(have_run_out) {
            if have_run_out {
                let limit = limit();
                tracing::error!(
                    limit,
                    "no more files can be opened: reads and merges fail until some are closed"
                );
            } else {
                tracing::warn!("files can be opened again");
            }
        }
        if looks.is_multiple_of(COUNT_AT)
            && let Ok(open) = fs::read_dir(OPEN_FILES_FOLDER)
        {
            // The folder itself is open while it is read.
            let count = (open.count() as u64).saturating_sub(1);
            metrics::gauge!(metric::OPEN_FILES).set(as_gauge(count));
        }
        looks = looks.wrapping_add(1);
    }
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is a double")]
const fn as_gauge(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_have_half_of_the_files_at_most() {
        assert_eq!(connections(4_096, 1_024), 512);
        assert_eq!(connections(4_096, 20_000), 4_096);
        assert_eq!(connections(4_096, u64::MAX), 4_096);
        assert_eq!(connections(4_096, 1), 1);
    }

    #[test]
    fn the_soft_limit_is_raised_to_the_hard_one() {
        raise_limit();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let hard = maximum.unwrap_or(MAX_OPEN_FILES).min(MAX_OPEN_FILES);
        assert!(current.is_none_or(|current| current >= hard), "{current:?} of {hard}");
    }
}
