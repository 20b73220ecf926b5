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
use crate::flow::{Backlog, Bound, Relay, SweeperConfig, Waiters};
use crate::limit::{Limiter, Rule};
use crate::links::Links;
use crate::ops::uploads::UploadPlane;
use crate::sandbox::Sandbox;
use crate::usage::Usage;

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
/// How many dry runs are judged at once.
const DRY_RUNS: usize = 2;

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
    pub(crate) usage: Usage,
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
    pub(crate) limiter: Arc<Limiter>,
    /// Calls per address and minute.
    pub(crate) calls: Rule,
    /// Agents registered per address and hour.
    pub(crate) registrations: Rule,
    /// Room for the bodies of requests.
    pub(crate) bodies: Arc<Bodies>,
    /// Places for dry runs, so that they never take every core from the merges.
    pub(crate) dry_runs: Arc<Semaphore>,
    /// What signs the addresses of parts.
    pub(crate) links: Arc<Links>,
    /// What signs them at the store itself, where it can.
    pub(crate) direct: Option<Arc<dyn DirectParts>>,
    /// Which of those were handed out.
    pub(crate) handed_out: Arc<HandedOut>,
}

/// The planes an [`App`] is made of.
#[derive(Clone, Debug)]
pub struct Planes {
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
    /// What left the service for whom; somebody else stores it.
    pub egress: Egress,
    /// What was used how often; somebody else stores it.
    pub usage: Usage,
    /// Where uploads are.
    pub uploads: UploadPlane,
    /// When an acknowledged contribution is submitted again.
    pub sweeper: SweeperConfig,
    /// Where the store hands out parts itself: what signs their addresses. Otherwise this service serves them.
    pub direct: Option<Arc<dyn DirectParts>>,
    /// Who holds calls to the limits per address.
    pub limiter: Arc<Limiter>,
    /// Whether load balancers are to leave this replica alone.
    pub drain: Drain,
}

impl App {
    /// Puts the planes behind one handle, with counters that stand at zero.
    pub fn new(planes: Planes, config: Config, limits: Limits) -> Self {
        Self {
            store: planes.store,
            catalog: planes.catalog,
            relay: planes.relay,
            waiters: planes.waiters,
            screener: planes.screener,
            clock: planes.clock,
            propagator: planes.propagator,
            sandbox: planes.sandbox,
            egress: planes.egress,
            usage: planes.usage,
            uploads: planes.uploads,
            links: Arc::default(),
            direct: planes.direct,
            handed_out: Arc::default(),
            drain: planes.drain,
            limiter: planes.limiter,
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
            sweeper: Arc::new(planes.sweeper),
            backlog: Backlog::new(Bound {
                contributions: limits.open_contributions,
                bytes: limits.open_bytes,
            }),
            config: Arc::new(config),
            limits: Arc::new(limits),
        }
    }
}
