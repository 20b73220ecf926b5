//! Kills the process wherever it can die between an acknowledgement and its outcome, and proves that nothing is lost
//! and nothing doubled; then plants bugs and proves that the proof would see them.
//!
//! Invariant: a point that never fired, or a fault that never happened, fails the run.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tests::checker::Violation;
use tests::crash::{Counters, Fault, Site};
use tests::history::Event;
use tests::random::Random;
use types::fault::{CRASH_POINTS, InjectedBug};

use crate::{binary, configured};

/// Kills in a usual run; `SLUICE_TEST_KILLS` asks for more.
const KILLS: u64 = 200;
/// Kills within which every injected bug must be seen.
const KILLS_PER_BUG: usize = 240;
/// Kills after which a folder is left for a new one, so that judging stays quick.
const LIVES: usize = 12;
/// How long a recovery may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long a recovery may take where an injected bug may keep it from ever ending.
const PLANTED_PATIENCE: Duration = Duration::from_secs(10);
/// Passages at which a point is armed, in the order of the rounds.
const PASSAGES: [u64; 8] = [3, 1, 8, 2, 12, 5, 16, 10];
/// How often a life passes the points that begin so, roughly; the others are passed by every batch, or nearly.
const SELDOM: [(&str, u64); 4] = [("upload.freed", 2), ("upload.", 5), ("stage.", 4), ("compact.", 6)];
/// Every other way to run: a second worker that believes the tables to be its own.
const RIVAL: (&str, &str) = ("SLUICE_FAULT_RIVAL", "1");
/// Parts are compacted as often as they can be.
const COMPACTING: (&str, &str) = ("SLUICE__COMPACTION__FAN_IN", "2");
/// Threads that kill at the same time.
const THREADS: usize = 2;
/// Kills while an upload was sent, or was acknowledged and not decided.
const DURING_UPLOADS: &str = "kills during uploads";
/// One of how many kills is one of those, at least.
const UPLOADS: u64 = 4;
/// What must have happened at least once in a run.
const REQUIRED: [&str; 10] = [
    "kills at work",
    "kills in recovery",
    DURING_UPLOADS,
    "kills with a rival",
    "kills with a rival during uploads",
    "unanswered requests repeated",
    "requests without an answer",
    "replayed answers",
    "merged",
    "rejected",
];

#[derive(Clone, Copy, Debug)]
struct Job {
    fault: Fault,
    nested: Option<Fault>,
    rival: bool,
}

/// Every point at every passage, round after round; some with a second death, some with a rival.
fn jobs(rounds: usize, random: &mut Random) -> VecDeque<Job> {
    let recovery: Vec<_> = CRASH_POINTS
        .into_iter()
        .filter(|point| is_passed_in_recovery(point))
        .collect();
    let mut jobs = VecDeque::new();
    for round in 0..rounds {
        for (index, point) in CRASH_POINTS.into_iter().enumerate() {
            let nth = PASSAGES[round % PASSAGES.len()] + (round / PASSAGES.len()) as u64;
            let seldom = SELDOM.iter().find(|(prefix, _)| point.starts_with(prefix));
            let nth = seldom.map_or(nth, |(_, most)| 1 + nth % most);
            let nested = ((index + round) % 2 == 0).then(|| Fault {
                point: recovery[random.below(recovery.len())],
                nth: 1 + random.bits() % 2,
            });
            let rival = (index + round) % 4 == 3;
            jobs.push_back(Job {
                fault: Fault { point, nth },
                nested,
                rival,
            });
        }
    }
    jobs
}

fn is_passed_in_recovery(point: &str) -> bool {
    !["ack.", "project.", "upload."]
        .iter()
        .any(|prefix| point.starts_with(prefix))
}

/// Kills with work in flight.
fn kills_in(counters: &Counters) -> u64 {
    counters.get("kills at work") + counters.get("kills in recovery")
}

/// One thread's share: a plain and a rival folder, each used for some kills and then replaced.
struct Shift {
    sites: [Option<Site>; 2],
    random: Random,
    counters: Counters,
}

impl Shift {
    async fn work(&mut self, job: Job) {
        let slot = usize::from(job.rival);
        if self.sites[slot].as_ref().is_none_or(|site| site.lives() >= LIVES) {
            self.leave(slot).await;
            let environment: &[_] = if job.rival { &[COMPACTING, RIVAL] } else { &[COMPACTING] };
            self.sites[slot] = Some(Site::build(binary(), self.random.bits(), environment, PATIENCE).await);
        }
        let site = self.sites[slot].as_mut().unwrap();
        let before = [kills_in(&site.counters), site.counters.get(DURING_UPLOADS)];
        let verdict = site.kill_at(job.fault, job.nested).await;
        if job.rival {
            let after = [kills_in(&site.counters), site.counters.get(DURING_UPLOADS)];
            self.counters.add("kills with a rival", after[0] - before[0]);
            self.counters
                .add("kills with a rival during uploads", after[1] - before[1]);
        }
        self.refuse(slot, &format!("before {job:?}"), &verdict.violations);
        self.counters
            .add("lives that were not ended", u64::from(!verdict.fired));
    }

    /// Fails where anything is wrong, and keeps the folder for a look.
    fn refuse(&mut self, slot: usize, when: &str, violations: &[Violation]) {
        if violations.is_empty() {
            return;
        }
        let site = self.sites[slot].take().unwrap();
        let shown: Vec<_> = violations.iter().take(5).map(ToString::to_string).collect();
        let (count, shown, log) = (violations.len(), shown.join("\n"), site.log());
        panic!(
            "{when}: {count} violations\n{shown}\n{log}\nkept in {}",
            site.keep().display()
        );
    }

    /// Judges a folder for the last time, takes its counters and lets it go.
    async fn leave(&mut self, slot: usize) {
        let Some(site) = &mut self.sites[slot] else { return };
        let violations = site.finish().await;
        self.refuse(slot, "at the end", &violations);
        let site = self.sites[slot].take().unwrap();
        self.counters.absorb(&site.counters);
        self.counters.add("folders", 1);
        for event in site.events() {
            match event {
                Event::Unknown { .. } => self.counters.add("requests without an answer", 1),
                Event::Answer { status: 200, .. } => self.counters.add("replayed answers", 1),
                Event::Answer { status: 201, .. } => self.counters.add("acknowledged", 1),
                Event::Read { .. } => self.counters.add("versions read", 1),
                Event::Outcome { body, .. } => {
                    self.counters.add(body["status"].as_str().unwrap_or("lost"), 1);
                }
                _ => {}
            }
        }
        site.options().assert_consistent();
    }

    fn kills(&self) -> u64 {
        let running: u64 = self.sites.iter().flatten().map(|site| kills_in(&site.counters)).sum();
        running + kills_in(&self.counters)
    }
}

/// Runs `work` on every item, on as many threads as there are processors to kill with.
fn on_threads<T: Send, R: Send>(work: impl Fn(usize, &Mutex<VecDeque<T>>) -> R + Sync, items: VecDeque<T>) -> Vec<R> {
    let queue = Mutex::new(items);
    std::thread::scope(|scope| {
        let (work, queue) = (&work, &queue);
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || work(thread, queue)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

#[test]
fn nothing_acknowledged_is_lost_or_doubled_wherever_the_process_dies() {
    let wanted = configured("SLUICE_TEST_KILLS", KILLS);
    let seed = configured("SLUICE_TEST_SEED", 1);
    let begun = Instant::now();
    let killed = Mutex::new(0);
    let rounds = usize::try_from(wanted).unwrap().div_ceil(CRASH_POINTS.len()).max(2);
    let shifts = on_threads(
        |thread, queue| {
            let random = Random::new(seed + thread as u64);
            let mut shift = Shift {
                sites: [None, None],
                random,
                counters: Counters::default(),
            };
            runtime().block_on(async {
                let mut before = 0;
                while *killed.lock().unwrap() < wanted {
                    let Some(job) = queue.lock().unwrap().pop_front() else {
                        break;
                    };
                    shift.work(job).await;
                    *killed.lock().unwrap() += shift.kills() - before;
                    before = shift.kills();
                }
                shift.leave(0).await;
                shift.leave(1).await;
            });
            shift.counters
        },
        jobs(rounds, &mut Random::new(seed)),
    );
    let mut counters = Counters::default();
    for shift in &shifts {
        counters.absorb(shift);
    }
    let kills = kills_in(&counters);
    eprintln!(
        "{kills} kills in {:?}, seed {seed}; lost 0, doubled 0\n{}",
        begun.elapsed(),
        counters.lines()
    );
    assert!(kills >= wanted, "{kills} kills");
    let during_uploads = counters.get(DURING_UPLOADS);
    assert!(
        during_uploads * UPLOADS >= kills,
        "{during_uploads} kills during uploads"
    );
    for name in CRASH_POINTS.iter().chain(&REQUIRED) {
        assert!(counters.get(name) > 0, "`{name}` never happened");
    }
}

/// The bugs that a crash lets show in datasets; flipped bits show another one (`bits`), units and money the
/// others (`knowledge_crash`, `money_faults`).
fn injected_bugs() -> Vec<(&'static str, InjectedBug)> {
    let others = [
        &InjectedBug::OF_UNITS[..],
        &InjectedBug::OF_MONEY,
        &[InjectedBug::BlindReads],
    ]
    .concat();
    let of_crashes = |(_, bug): &(&str, InjectedBug)| !others.contains(bug);
    InjectedBug::ALL.into_iter().filter(of_crashes).collect()
}

#[test]
fn every_injected_bug_is_seen() {
    let seed = configured("SLUICE_TEST_SEED", 1);
    let seen = on_threads(
        |_, queue| {
            let mut seen = Vec::new();
            loop {
                let Some((name, bug)) = queue.lock().unwrap().pop_front() else {
                    return seen;
                };
                seen.push((name, runtime().block_on(hunt(name, bug, seed))));
            }
        },
        injected_bugs().into(),
    );
    let seen: Vec<_> = seen.into_iter().flatten().collect();
    for (name, found) in &seen {
        match found {
            Some((kills, violation)) => eprintln!("{name}: seen after {kills} kills: {violation}"),
            None => eprintln!("{name}: not seen in {KILLS_PER_BUG} kills"),
        }
    }
    assert_eq!(seen.len(), injected_bugs().len());
    assert!(
        seen.iter().all(|(_, found)| found.is_some()),
        "an injected bug was not seen"
    );
}

/// Kills a process with an injected bug until a violation shows: after how many kills, and which.
async fn hunt(name: &str, bug: InjectedBug, seed: u64) -> Option<(usize, String)> {
    let mut random = Random::new(seed);
    let mut environment = vec![("SLUICE_FAULT_PLANT", name), COMPACTING];
    if matches!(
        bug,
        InjectedBug::LibraryRebase | InjectedBug::CompactionBlind | InjectedBug::UploadBlind
    ) {
        environment.push(RIVAL);
    }
    let mut jobs = jobs(2 * PASSAGES.len(), &mut random);
    let mut site = Site::build(binary(), random.bits(), &environment, PLANTED_PATIENCE).await;
    let mut kills = 0;
    while kills < KILLS_PER_BUG {
        let job = jobs.pop_front()?;
        let verdict = site.kill_at(job.fault, None).await;
        let mut violations = verdict.violations;
        let is_full = site.lives() >= LIVES;
        if violations.is_empty() {
            kills += usize::from(verdict.fired);
            if is_full {
                violations = site.finish().await;
            }
        }
        if let Some(violation) = violations.first() {
            return Some((kills, violation.to_string()));
        }
        if is_full {
            site = Site::build(binary(), random.bits(), &environment, PLANTED_PATIENCE).await;
        }
    }
    None
}
