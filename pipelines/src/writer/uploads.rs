//! The uploads of a dataset that are being judged, beside its batches.
//!
//! Invariant: of an upload that is delivered while it is judged, the later delivery is done at once: the first brings
//! the outcome, or a restart delivers again.

use std::collections::HashSet;
use std::sync::Arc;

use catalog::Table;
use eventlog::Record;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use operators::screen::Screener;
use tabular::reading::Reading;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;
use types::error::with_causes;
use types::vocabulary::OnRefused;
use types::{AgentId, Classify as _, ContributionId, Retry, UploadLayout};

use crate::context::{Context, Uploads};
use crate::delivery::Delivery;
use crate::history;
use crate::isolation::{MessageKind, Probe, poison_reason};
use crate::judge::upload::{Error, judge_upload};
use crate::judge::{JudgeOutcome, Judged, JudgedSubmission};
use crate::message::{Address, Source, Submission};
use crate::publish::publish;
use crate::report::adopted;
use crate::step::{Step, Stopped, Unfinished};

/// The uploads of a writer that are being judged.
#[derive(Default)]
pub(crate) struct Running {
    tasks: FuturesUnordered<BoxFuture<'static, (ContributionId, Delivery, Step<JudgeOutcome>)>>,
    open: HashSet<ContributionId>,
}

impl Running {
    /// Returns true if nothing is being judged.
    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Returns the next upload whose judging ends; `None` where there is none.
    pub(crate) async fn next(&mut self) -> Option<(Delivery, Step<JudgeOutcome>)> {
        let (contribution, delivery, found) = self.tasks.next().await?;
        self.open.remove(&contribution);
        Some((delivery, found))
    }

    /// Begins to judge an upload, unless it is being judged or was merged. Gives back a message that is at its end.
    pub(crate) async fn begin(
        &mut self,
        context: &Context,
        table: &Table,
        delivery: Delivery,
        submission: Submission,
    ) -> Result<Option<(Delivery, Step<()>)>, Stopped> {
        let address = submission.address();
        if self.open.contains(&address.contribution)
            || context.outcomes.contains(address.contribution, address.generation)
        {
            return Ok(Some((delivery, Ok(()))));
        }
        let (Some(uploads), Source::Upload(layout)) = (context.uploads.clone(), submission.source) else {
            let poison = Unfinished::poison("this worker has no place of uploads");
            return Ok(Some((delivery, Err(poison))));
        };
        match history::check(context, table, address, submission.head).await {
            Err(error @ catalog::Error::HistoryLost { .. }) => {
                history::put_off(context, address, &error).await?;
                return Ok(Some((delivery, Ok(()))));
            }
            Err(catalog::Error::Deleted { .. }) => return Ok(Some((delivery, Err(Unfinished::Deleted)))),
            Ok(()) | Err(_) => {}
        }
        match table.find(address.contribution).await {
            Err(catalog::Error::Deleted { .. }) => return Ok(Some((delivery, Err(Unfinished::Deleted)))),
            Ok(None) => {}
            Ok(Some(merge)) => {
                publish(context, table, adopted(address, merge)).await?;
                return Ok(Some((delivery, Ok(()))));
            }
            // Not an end: the commit asks again, for as long as it takes.
            Err(error) => tracing::warn!(
                error = with_causes(&error),
                "the table could not be asked before staging"
            ),
        }
        let screener = (!submission.private).then(|| Arc::clone(&context.screener));
        self.open.insert(address.contribution);
        // A task of its own: it has the turn of all uploads, and must come to its end also while its
        // writer waits for its table.
        let is_suspect = delivery.suspect == Some(MessageKind::Upload);
        let suspect = is_suspect.then(|| delivery.record.clone());
        let (stagers, context) = (table.stagers(), context.clone());
        let subject = UploadSubject {
            address,
            agent: submission.agent,
            on_refused: submission.on_refused,
            reading: submission.reading,
        };
        let judging = async move {
            if let Some(record) = suspect {
                probe_first(&context, &uploads, &record, &layout).await?;
            }
            attempts(context, uploads, stagers, screener, subject, layout).await
        };
        let judging = judging.instrument(tracing::debug_span!("stage upload"));
        let judging = AbortOnDropHandle::new(tokio::spawn(judging));
        let head = submission.head;
        self.tasks.push(
            async move {
                let found = match judging.await {
                    Ok(judged) => {
                        judged.map(|judged| JudgeOutcome::Judged(Box::new(JudgedSubmission { address, head, judged })))
                    }
                    Err(end) if end.is_panic() => Err(Unfinished::poison(Error::Panicked.to_string())),
                    Err(_cancelled) => Err(Unfinished::Stopped),
                };
                (address.contribution, delivery, found)
            }
            .boxed(),
        );
        Ok(None)
    }
}

/// Tries an upload out.
async fn probe_first(context: &Context, uploads: &Uploads, record: &Record, layout: &UploadLayout) -> Step<()> {
    let probe = Probe::Upload {
        record,
        layout,
        objects: &*uploads.objects,
    };
    let tried = poison_reason(context.isolation.as_deref(), probe);
    // Boxed, because the future is large.
    match context.stop.run_until_cancelled(tried.boxed()).await.ok_or(Stopped)? {
        Some(reason) => Err(Unfinished::failed_probe(reason)),
        None => Ok(()),
    }
}

/// Members of an upload's submission that the judge reads.
#[derive(Clone, Debug)]
struct UploadSubject {
    address: Address,
    agent: AgentId,
    on_refused: OnRefused,
    reading: Option<Reading>,
}

/// Judges an upload, again for as long as that can help.
async fn attempts(
    context: Context,
    uploads: Uploads,
    stagers: catalog::Stagers,
    screener: Option<Arc<dyn Screener>>,
    subject: UploadSubject,
    layout: UploadLayout,
) -> Step<Judged> {
    let UploadSubject {
        address,
        agent,
        on_refused,
        reading,
    } = subject;
    let (mut failures, mut least) = (0, 0);
    loop {
        let judging = async {
            let stager = stagers.stage(address.contribution, agent, least).await?;
            judge_upload(&uploads, layout, reading.clone(), screener.clone(), on_refused, stager).await
        };
        // Boxed, because the future is large.
        match context.stop.run_until_cancelled(judging.boxed()).await.ok_or(Stopped)? {
            Ok(judged) => return Ok(judged),
            // Its bytes may be gone with the dataset, so it would be tried in vain.
            Err(_) if matches!(stagers.was_deleted().await, Ok(true)) => return Err(Unfinished::Deleted),
            Err(error) if error.retry() == Retry::Backoff => {
                tracing::error!(contribution = %address.contribution, error = with_causes(&error),
                    "an upload could not be staged, trying again");
                if let Error::Catalog(catalog::Error::NoRoom { bytes }) = error {
                    // Until there is as much room, all that work would come to the same end.
                    least = least.max(bytes + bytes / 16);
                }
                context.wait(&mut failures, &error).await?;
            }
            Err(Error::Catalog(error)) => return Err(Unfinished::refused_by_table(&error)),
            Err(error) => return Err(Unfinished::poison(with_causes(&error))),
        }
    }
}
