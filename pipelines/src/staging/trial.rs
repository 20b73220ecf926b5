//! The trial of an upload: everything that staging does with its content, on one thread, with nothing kept.

use std::io::Read;
use std::sync::Arc;

use catalog::TrialStager;
use eventlog::Record;
use operators::screen::{LocalScreener, Screener};
use tokio::runtime::Runtime;
use types::key::NoKeys;

use super::collect::MOST_ROWS;
use super::cut::cut;
use super::judge::{Bench, judge};
use crate::conclude::notes::Notes;
use crate::judge::{decode, described};
use crate::message::Source;

/// Cuts, judges and encodes an upload whose bytes are `input`, as if its dataset had no records: more rows pass than
/// will.
pub(crate) fn try_out(runtime: &Runtime, record: &Record, input: impl Read) -> Result<(), String> {
    let submission = decode(record)?;
    let Source::Upload(layout) = submission.source else {
        return Ok(());
    };
    let bench = Bench {
        contract: Arc::new(submission.contract),
        known: Arc::new(NoKeys),
        screener: (!submission.private).then(|| Arc::new(LocalScreener) as Arc<dyn Screener>),
        most_rows: MOST_ROWS,
    };
    let mut stager = TrialStager::new(&bench.contract, submission.contribution, submission.agent);
    let mut failed = None;
    let fields = bench.contract.fields().len();
    let ended = cut(input, layout.compression, fields, |unit| {
        let judged = runtime.block_on(judge(&bench, unit));
        let notes = Notes {
            rows: u32::try_from(judged.lines.len()).unwrap_or(u32::MAX),
            verdicts: judged.verdicts,
            tallies: judged.tallies,
        };
        drop(notes.written());
        failed = stager.push(&judged.passed).err();
        failed.is_none()
    });
    if let Some(error) = failed {
        return Err(described(&error));
    }
    ended.map_err(|error| error.to_string())?;
    stager.finish().map(drop).map_err(|error| described(&error))
}
