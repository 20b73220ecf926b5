//! The probe of an upload: everything that judging it does, on one thread, with nothing kept.

use std::io::Read;
use std::sync::Arc;

use catalog::DryRunStager;
use eventlog::Record;
use operators::screen::{LocalScreener, Screener};
use tokio::runtime::Runtime;
use types::error::with_causes;
use types::key::NoKeys;

use super::chunk::{LineContext, Translation, judge_lines};
use super::decode;
use super::merger::WorkTotal;
use super::split::split;
use crate::context::MOST_ROWS;
use crate::message::Source;

/// Splits, judges and encodes an upload whose bytes are `input`, as if its dataset had no records: more rows pass than
/// will.
pub(crate) fn probe_upload(runtime: &Runtime, record: &Record, input: impl Read) -> Result<(), String> {
    let submission = decode(record)?;
    let Source::Upload(layout) = submission.source else {
        return Ok(());
    };
    let translation = submission
        .reading
        .map(|reading| Translation::new(reading, &submission.contract));
    let translation = translation.transpose().map_err(|error| error.to_string())?;
    let context = LineContext {
        contract: Arc::new(submission.contract),
        known: Arc::new(NoKeys),
        screener: (!submission.private).then(|| Arc::new(LocalScreener) as Arc<dyn Screener>),
        most_rows: MOST_ROWS,
        translation,
    };
    let mut stager = DryRunStager::new(&context.contract, submission.contribution, submission.agent);
    let mut failed = None;
    let mut work = WorkTotal::default();
    let ended = split(input, &context.plan(layout.compression), |chunk| {
        let lines = runtime.block_on(judge_lines(&context, chunk));
        work.add(&lines);
        let judged = lines.judged;
        drop(judged.report.written());
        failed = stager.push(&judged.passed).err();
        // A worker takes no more either.
        failed.is_none() && work.excess().is_none()
    });
    if let Some(error) = failed {
        return Err(with_causes(&error));
    }
    if let Some(excess) = work.excess() {
        return Err(format!("{:?}", excess.decision()));
    }
    ended.map_err(|error| error.to_string())?;
    stager.finish().map(drop).map_err(|error| with_causes(&error))
}
