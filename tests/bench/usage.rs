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
    // Fields 16 and 17 (proc_pid_stat(5)).
    ticks("self", 13)
}

/// CPU that every thread of a process has used so far, to a hundredth of a second.
pub(crate) fn cpu_of(pid: u32) -> Duration {
    // Fields 14 and 15.
    ticks(&pid.to_string(), 11)
}

/// Two fields of what the kernel tells of a process, in ticks of which there are 100 to the second.
fn ticks(process: &str, at: usize) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // Why from behind: the name may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks: u64 = fields[at..at + 2]
        .iter()
        .map(|field| field.parse::<u64>().unwrap())
        .sum();
    Duration::from_millis(ticks * 10)
}

/// How often the threads of a process, as far as they still run, have waited for something and were woken.
pub(crate) fn wake_ups_of(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let switches = threads.filter_map(|thread| {
        let status = fs::read_to_string(thread.path().join("status")).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse::<u64>().ok()
    });
    switches.sum()
}

/// Proportional set size of a process in KiB.
pub(crate) fn pss_kib(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Lets the most memory that a process has held count from now on.
pub(crate) fn forget_peak(pid: u32) {
    // proc_pid_clear_refs(5): 5 resets the peak resident set size.
    fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
}
