//! Handles to every plane the operations use.

use std::sync::Arc;
use std::time::Duration;

use catalog::Catalog;
use operators::screen::Screener;
use store::Store;
use tokio::sync::Semaphore;
use types::Clock;
use types::trace::Propagator;

use crate::bodies::Bodies;
use crate::config::{Config, Limits};
use crate::direct::{DirectParts, HandedOut};
use crate::drain::Drain;
use crate::egress::Egress;
use crate::flow::{Backlog, Relay, SweeperConfig, Waiters};
use crate::limit::{Limiter, Rule};
use crate::links::Links;
use crate::ops::uploads::UploadPlane;
use crate::places::Places;
use crate::sandbox::Sandbox;
use crate::usage::Usage;

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
/// Dry runs that are judged at once.
const DRY_RUNS: usize = 2;
/// Answers, exports and parts of one operator at once; more wait.
const AT_ONCE: usize = 8;
/// Pieces of parts that are written, and parts that are ended, at once; more wait, and their senders with them.
const PART_WRITES: usize = 16;

/// Everything an operation may reach; cheap to clone.
#[derive(Clone, Debug)]
pub struct App {
    /// The metadata database.
    pub store: Store,
    /// The read side of the tables.
    pub catalog: Catalog,
    /// The short cut from a committed submission to the log.
    pub relay: Relay,
    /// Who waits for an outcome.
    pub waiters: Waiters,
    /// The judge of the model screen, for dry runs.
    pub screener: Arc<dyn Screener>,
    /// The one source of time.
    pub clock: Arc<dyn Clock>,
    /// What carries traces into messages.
    pub propagator: Arc<dyn Propagator>,
    /// Where queries run.
    pub sandbox: Arc<dyn Sandbox>,
    /// What left the service for whom.
    pub egress: Egress,
    /// What was used how often.
    pub usage: Usage,
    /// Where uploads are.
    pub uploads: UploadPlane,
    /// When an acknowledged contribution is submitted again.
    pub sweeper: Arc<SweeperConfig>,
    /// What is acknowledged and has no outcome; somebody else looks at the database for it.
    pub backlog: Backlog,
    /// How the service presents itself.
    pub config: Arc<Config>,
    /// The limits of the interface.
    pub limits: Arc<Limits>,
    /// Whether load balancers are to leave this replica alone.
    pub drain: Drain,
    /// Who holds calls to the limits per address.
    pub limiter: Arc<Limiter>,
    /// Signs the addresses of parts at the store itself; none where this service serves the parts.
    pub direct: Option<Arc<dyn DirectParts>>,
    /// Counts and bounds of this process.
    pub process: Arc<Process>,
}

/// Counts and bounds that each process keeps for itself, and that begin at zero with it.
#[derive(Debug)]
pub struct Process {
    /// Calls per address and minute.
    pub(crate) calls: Rule,
    /// Agents registered per address and hour.
    pub(crate) registrations: Rule,
    /// Memory for the bodies of requests.
    pub(crate) bodies: Arc<Bodies>,
    /// Permits for dry runs, so that they never take every core from the merges.
    pub(crate) dry_runs: Arc<Semaphore>,
    /// Permits of each operator for whole answers that count as egress: from the call until they are sent.
    pub(crate) answers: Places,
    /// Permits of each operator for exports.
    pub(crate) exports: Places,
    /// Permits of each operator for parts that are received.
    pub(crate) parts: Places,
    /// Permits for writing pieces of parts to the disk.
    pub(crate) part_writes: Semaphore,
    /// Signer of the addresses of parts.
    pub(crate) links: Links,
    /// Presigned addresses whose transfer is counted already.
    pub(crate) handed_out: HandedOut,
}

impl Process {
    /// Makes the counts and bounds for these limits.
    pub fn new(limits: &Limits) -> Self {
        Self {
            calls: Rule {
                name: "calls",
                limit: limits.calls_per_ip_per_minute,
                window: MINUTE,
            },
            registrations: Rule {
                name: "registrations",
                limit: limits.agents_per_ip_per_hour,
                window: HOUR,
            },
            bodies: Arc::new(Bodies::new(limits.operator_body_bytes, limits.bodies_bytes)),
            dry_runs: Arc::new(Semaphore::new(DRY_RUNS)),
            answers: Places::new(AT_ONCE),
            exports: Places::new(AT_ONCE),
            parts: Places::new(AT_ONCE),
            part_writes: Semaphore::new(PART_WRITES),
            links: Links::default(),
            handed_out: HandedOut::default(),
        }
    }
}
