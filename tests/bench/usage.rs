//! What a process uses, as the kernel counts it.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CPU that every thread of this process has used so far.
pub(crate) fn cpu() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(used).unwrap()
}

/// CPU that the processes have used that this one started and that ended, to a hundredth of a second.
pub(crate) fn children() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    // Behind the name, which may hold anything: fields 16 and 17 (proc_pid_stat(5)), 100 to the second.
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks: u64 = fields[13..15].iter().map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

/// Proportional set size of a process in KiB.
pub(crate) fn pss_kib(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
