//! Staging on behalf of a lane, and the one step on the lane that ends it.
//!
//! Invariant: of an upload that is delivered while it is staged, the later delivery is done at once: the first brings
//! the outcome, or a restart delivers again. What holds for concluding a batch holds here.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use catalog::{CommitOutcome, KnownHead, Late, Prepared, Table};
use eventlog::Record;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use operators::Decision;
use operators::screen::Screener;
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument as _, Span};
use types::{AgentId, Classify as _, ContributionId, Retry, UploadLayout};

use super::collect::Collected;
use super::{Error, Uploads, stage};
use crate::conclude::notes::Notes;
use crate::conclude::{adopted, may_pass, not_merged, nothing_new, outcome};
use crate::emit::Stopped;
use crate::isolation::{MessageKind, Trial, condemned};
use crate::judge::{Work, described};
use crate::lane::Context;
use crate::lanes::Weight;
use crate::message::{Address, Source, Submission};
use crate::settled::bury;
use crate::telling::tell;
use crate::{faults, history};

/// The uploads of a lane that are being staged.
#[derive(Default)]
pub(crate) struct Running {
    tasks: FuturesUnordered<BoxFuture<'static, Ended>>,
    open: HashSet<ContributionId>,
}

/// An upload whose staging ended.
pub(crate) struct Ended {
    work: Work,
    weight: Weight,
    address: Address,
    /// As in [`Submission`].
    head: Option<KnownHead>,
    result: Result<Result<Collected, Error>, Stopped>,
}

impl Ended {
    /// Returns the span of the upload's submission.
    pub(crate) const fn span(&self) -> &Span {
        &self.work.span
    }
}

impl Running {
    /// Returns true if nothing is being staged.
    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The next upload whose staging ends; `None` where there is none.
    pub(crate) async fn next(&mut self) -> Option<Ended> {
        let ended = self.tasks.next().await?;
        self.open.remove(&ended.address.contribution);
        Some(ended)
    }

    /// Begins to stage an upload, unless it is being staged or was merged.
    pub(crate) async fn begin(
        &mut self,
        context: &Context,
        table: &Table,
        (work, weight): (Work, Weight),
        submission: Submission,
    ) -> Result<(), Stopped> {
        let address = submission.address();
        if self.open.contains(&address.contribution)
            || context.finished.contains(address.contribution, address.generation)
        {
            work.ticket.finish();
            return Ok(());
        }
        let (Some(uploads), Source::Upload(layout)) = (context.uploads.clone(), submission.source) else {
            bury(context, &work, "this worker has no place of uploads").await?;
            work.ticket.finish();
            return Ok(());
        };
        if let Err(error @ catalog::Error::HistoryLost { .. }) =
            history::check(context, table, address, submission.head).await
        {
            history::put_off(context, address, &error).await?;
            work.ticket.finish();
            return Ok(());
        }
        match table.find(address.contribution).await {
            Ok(None) => {}
            Ok(Some(merge)) => {
                tell(context, table, adopted(address, merge)).await?;
                work.ticket.finish();
                return Ok(());
            }
            // Not an end: the step on the lane asks again, for as long as it takes.
            Err(error) => tracing::warn!(error = described(&error), "the table could not be asked before staging"),
        }
        let screener = (!submission.private).then(|| Arc::clone(&context.screener));
        self.open.insert(address.contribution);
        // A task of its own: it has the turn of all uploads, and must come to its end also while its
        // lane waits for its table.
        let is_suspect = work.suspect == Some(MessageKind::Upload);
        let suspect = is_suspect.then(|| work.record.clone());
        let (stagers, context) = (table.stagers(), context.clone());
        let staging = async move {
            if let Some(record) = suspect
                && let Some(reason) = try_out(&context, &uploads, &record, &layout).await?
            {
                return Ok(Err(Error::Condemned(reason)));
            }
            attempts(context, uploads, stagers, screener, address, submission.agent, layout).await
        };
        let staging = staging.instrument(tracing::debug_span!("stage upload"));
        let staging = AbortOnDropHandle::new(tokio::spawn(staging));
        let head = submission.head;
        self.tasks.push(
            async move {
                Ended {
                    result: match staging.await {
                        Ok(result) => result,
                        Err(end) if end.is_panic() => Ok(Err(Error::Panicked)),
                        Err(_cancelled) => Err(Stopped),
                    },
                    work,
                    weight,
                    address,
                    head,
                }
            }
            .boxed(),
        );
        Ok(())
    }
}

/// Tries an upload out. Returns the reason if nobody is to work on it.
async fn try_out(
    context: &Context,
    uploads: &Uploads,
    record: &Record,
    layout: &UploadLayout,
) -> Result<Option<String>, Stopped> {
    let trial = Trial::Upload {
        record,
        layout,
        objects: &*uploads.objects,
    };
    let tried = condemned(context.isolation.as_deref(), trial);
    // Boxed, because the future is large.
    context.stop.run_until_cancelled(tried.boxed()).await.ok_or(Stopped)
}

/// Stages an upload, again for as long as that can help.
async fn attempts(
    context: Context,
    uploads: Uploads,
    stagers: catalog::Stagers,
    screener: Option<Arc<dyn Screener>>,
    address: Address,
    agent: AgentId,
    layout: UploadLayout,
) -> Result<Result<Collected, Error>, Stopped> {
    let (mut failures, mut least) = (0, 0);
    loop {
        let staging = async {
            let stager = stagers.stage(address.contribution, agent, least).await?;
            stage(&uploads, layout, screener.clone(), stager).await
        };
        // Boxed, because the future is large.
        let staged = context.stop.run_until_cancelled(staging.boxed()).await.ok_or(Stopped)?;
        match staged {
            Err(error) if error.retry() == Retry::Backoff => {
                tracing::error!(contribution = %address.contribution, error = described(&error),
                    "an upload could not be staged, trying again");
                if let Error::Catalog(catalog::Error::NoRoom { bytes }) = error {
                    // Until there is as much room, all that work would come to the same end.
                    least = least.max(bytes + bytes / 16);
                }
                context.wait(&mut failures, &error).await?;
            }
            staged => return Ok(staged),
        }
    }
}

/// The one step on the lane: what was staged becomes a version, or its outcome says why not.
pub(crate) async fn conclude(context: &Context, table: &mut Table, ended: Ended) -> Result<(), Stopped> {
    let Ended {
        mut work,
        address,
        head,
        result,
        weight: _held,
    } = ended;
    let poison = match result? {
        Ok(collected) => settle(context, table, (address, head), collected).await?.err(),
        Err(error) => {
            work.condemned = matches!(error, Error::Condemned(_));
            Some(described(&error))
        }
    };
    if let Some(poison) = poison {
        bury(context, &work, &poison).await?;
    }
    work.ticket.finish();
    Ok(())
}

/// Brings an upload that was judged to its outcome; of one that cannot be concluded the reason is returned.
async fn settle(
    context: &Context,
    table: &mut Table,
    (address, head): (Address, Option<KnownHead>),
    collected: Collected,
) -> Result<Result<(), String>, Stopped> {
    if context.finished.contains(address.contribution, address.generation) {
        return Ok(Ok(()));
    }
    let Collected {
        decision,
        mut staged,
        rows,
        verdicts,
        tallies,
    } = collected;
    let notes = Arc::new(Notes {
        rows,
        verdicts,
        tallies,
    });
    let mut failures = 0;
    let told = loop {
        let merging = merge(context, table, (address, head), &decision, staged.as_mut(), &notes);
        let Ok(merging) = AssertUnwindSafe(merging).catch_unwind().await else {
            return Ok(Err("merging it panicked".to_owned()));
        };
        match merging {
            Ok(told) => break told,
            Err(error @ catalog::Error::HistoryLost { .. }) => {
                // Rows that the table lost were left out of what is staged, so it is staged again later.
                return history::put_off(context, address, &error).await.map(Ok);
            }
            Err(error @ catalog::Error::NoRoom { .. }) => {
                // Not waited for, because the staged files take the room. The message comes again, as
                // it has no outcome.
                tracing::error!(dataset = %address.dataset, contribution = %address.contribution,
                    error = described(&error), "an upload could not be merged, and is staged again later");
                return Ok(Ok(()));
            }
            Err(error) if !may_pass(&error) => return Ok(Err(described(&error))),
            Err(error) => {
                tracing::error!(dataset = %address.dataset, contribution = %address.contribution,
                    error = described(&error), "the merge of an upload failed, trying again");
                context.wait(&mut failures, &error).await?;
            }
        }
    };
    // Dropped now, because its files take room, and their rows are in the table or wanted by nobody.
    drop(staged);
    tell(context, table, told).await.map(Ok)
}

async fn merge(
    context: &Context,
    table: &mut Table,
    (address, head): (Address, Option<KnownHead>),
    decision: &Decision,
    staged: Option<&mut Prepared>,
    notes: &Arc<Notes>,
) -> Result<crate::message::Outcome, catalog::Error> {
    history::check(context, table, address, head).await?;
    if let Some(merge) = faults::may_skip_guard(table.find(address.contribution).await?) {
        return Ok(adopted(address, merge));
    }
    let Some(staged) = staged else {
        table.confirm().await?;
        return Ok(outcome(
            context,
            address,
            not_merged(decision.clone()),
            Notes::clone(notes),
        ));
    };
    let kept = Arc::clone(notes);
    let written = move |late: &Late| Notes::clone(&kept).with_late(late).written();
    let committing = table.commit(staged, context.clock.now(), written);
    Ok(match committing.instrument(tracing::debug_span!("merge")).await? {
        CommitOutcome::Committed(merge) | CommitOutcome::AlreadyCommitted(merge) => adopted(address, merge),
        CommitOutcome::NothingNew(late) => {
            let notes = Notes::clone(notes).with_late(&late);
            outcome(context, address, nothing_new(), notes)
        }
    })
}
