//! What a process uses, as the kernel counts it.

use std::fs;

/// Nanoseconds of CPU that every thread of this process has used so far.
pub(crate) fn cpu_nanos() -> u64 {
    let threads = fs::read_dir("/proc/self/task").unwrap();
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("schedstat")).ok())
        .map(|stat| stat.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
        .sum()
}

/// Proportional set size of a process in KiB.
pub(crate) fn pss_kib(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
