//! The fence: kernel limits that a child puts on itself.
//!
//! Invariant: after [`close`] the process can only compute, read the files that it received, and talk to its caller.
//! Every other system call fails. On systems without seccomp only the resource limits hold.

use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};

use crate::ChildSetup;

fn set(resource: Resource, value: u64) -> Result<(), String> {
    set_both(resource, value, value)
}

fn set_both(resource: Resource, current: u64, maximum: u64) -> Result<(), String> {
    let limit = Rlimit {
        current: Some(current),
        maximum: Some(maximum),
    };
    setrlimit(resource, limit).map_err(|error| format!("the limit {resource:?} could not be set: {error}"))
}

/// Makes the kernel prefer this process over the service when the machine runs out of memory.
pub(crate) fn prefer_for_oom_kill() {
    #[cfg(target_os = "linux")]
    // The error is ignored: without the permission the process is an ordinary victim.
    std::fs::write("/proc/self/oom_score_adj", "1000").ok();
}

/// Raises the limit of open files to the maximum, forbids writes to files, and disables core dumps.
pub(crate) fn limit_files() -> Result<(), String> {
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    setrlimit(Resource::Nofile, files).map_err(|error| format!("cannot set the limit of open files: {error}"))?;
    set(Resource::Fsize, 0)?;
    set(Resource::Core, 0)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| format!("cannot protect the memory of the process: {error}"))
}

/// Limits the address space. An allocation beyond it fails in this process and disturbs no other.
pub(crate) fn limit_memory(bytes: u64) -> Result<(), String> {
    set(Resource::As, bytes)
}

/// Limits memory and processor time.
pub(crate) fn limit(setup: &ChildSetup) -> Result<(), String> {
    limit_memory(setup.memory)?;
    // SIGXCPU at the first limit tells the caller the reason. SIGKILL at the second limit would not.
    set_both(Resource::Cpu, setup.processor, setup.processor + 1)
}

/// Forbids every system call that the work does not need, in all threads and for ever.
#[cfg(target_os = "linux")]
pub(crate) fn close() -> Result<(), String> {
    use std::collections::BTreeMap;

    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter_all_threads};

    const NEEDED: [libc::c_long; 39] = [
        // Reading the parts, talking to the caller.
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_pread64,
        libc::SYS_preadv,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_recvfrom,
        libc::SYS_recvmsg,
        libc::SYS_sendto,
        libc::SYS_sendmsg,
        libc::SYS_close,
        libc::SYS_lseek,
        // Memory.
        libc::SYS_brk,
        libc::SYS_mmap,
        libc::SYS_mremap,
        libc::SYS_munmap,
        libc::SYS_mprotect,
        libc::SYS_madvise,
        // Existing threads: waiting, waking, ending.
        libc::SYS_futex,
        libc::SYS_sched_yield,
        libc::SYS_sched_getaffinity,
        libc::SYS_membarrier,
        libc::SYS_rseq,
        libc::SYS_set_robust_list,
        libc::SYS_epoll_pwait,
        libc::SYS_exit,
        libc::SYS_exit_group,
        // Time and randomness.
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_gettimeofday,
        libc::SYS_nanosleep,
        libc::SYS_getrandom,
        // Reporting of a crash.
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_tgkill,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
    ];
    let shut = || -> Result<(), Box<dyn std::error::Error>> {
        let calls: BTreeMap<i64, _> = NEEDED.into_iter().map(|call| (call, Vec::new())).collect();
        // A refused call returns an error, so the engine can report it.
        let refused = SeccompAction::Errno(libc::EPERM as u32);
        let filter = SeccompFilter::new(
            calls,
            refused,
            SeccompAction::Allow,
            TargetArch::try_from(std::env::consts::ARCH)?,
        )?;
        let program: BpfProgram = filter.try_into()?;
        // The engine's threads exist already, and a filter of one thread would not cover them.
        apply_filter_all_threads(&program)?;
        Ok(())
    };
    shut().map_err(|error| format!("cannot block system calls: {error}"))?;
    // The filter is tested, because a filter that is silently ignored would be no fence.
    let file = std::fs::File::open("/").is_ok();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").is_ok();
    let thread = std::thread::Builder::new().spawn(|| ()).is_ok();
    if file || socket || thread {
        return Err("blocked system calls still work".to_owned());
    }
    Ok(())
}

/// Does nothing: other systems have only the limits.
#[cfg(not(target_os = "linux"))]
pub(crate) fn close() -> Result<(), String> {
    Ok(())
}
