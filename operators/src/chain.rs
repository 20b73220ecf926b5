//! The chain: runs operators in order and moves the rows between them.
//!
//! Invariant: rows in = passed + dropped + refused + held, for every operator and for the chain. Only [`split`] moves
//! rows, and it takes each row to exactly one place.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::Instrument as _;
use types::Batch;
use types::key::KeyLookup;
use types::vocabulary::OnRefused;

use crate::decision::{Decision, Numbering, Totals};
use crate::gates::{Contract, Dedup, PersonalData};
use crate::screen::{Screen, Screener};
use crate::verdict::fit;
use crate::{Gate, GateName, Reason, RowVerdict, Stage, Verdict, Verdicts};

/// The most bytes of the verdicts on a batch or an upload as JSON. They travel in messages, commits and answers.
pub const MAX_VERDICT_BYTES: usize = 256 << 10;
/// Bytes of verdicts for each row of a batch that has so many rows that they come to more. Such a batch is a chunk of an
/// upload, of which the first verdicts are taken later, with their words.
const VERDICT_BYTES_OF_ROW: usize = 256;

/// An ordered list of operators; each judges the rows that all before it passed.
#[derive(Debug, Default)]
pub struct GateChain {
    operators: Vec<ChainStep>,
}

#[derive(Debug)]
enum ChainStep {
    Gate(Box<dyn Gate>),
    Stage(Arc<dyn Stage>),
}

/// The counts of one operator: `rows = passed + dropped + refused + held`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tally {
    /// Name of the operator.
    pub gate: GateName,
    /// Number of rows it received.
    pub rows: u32,
    /// Number of rows that passed.
    pub passed: u32,
    /// Number of rows left out as duplicates.
    pub dropped: u32,
    /// Number of rows that reject the batch, or are left out with `onRefused: drop`.
    pub refused: u32,
    /// Number of rows that could not be judged.
    pub held: u32,
    /// What is to be known of how it judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The result of a chain for a batch.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The rows that every operator passed, in order.
    pub passed: Batch,
    /// The number of rows that the chain received.
    pub rows: u32,
    /// The verdicts other than pass, in the order of the rows, which are numbered as in the decoded batch. If they
    /// exceed [`MAX_VERDICT_BYTES`], and 256 bytes a row, they are shortened, but every row stays listed.
    pub verdicts: Vec<RowVerdict>,
    /// One entry per operator, in order.
    pub tallies: Vec<Tally>,
}

/// Builds the chain that merges, dry runs and collectors use: contract, dedup, personal data and, unless `None`, the
/// screen.
pub fn standard_chain(known: Arc<dyn KeyLookup>, screen: Option<Arc<dyn Screener>>) -> GateChain {
    let gates = GateChain::new()
        .gate(Contract)
        .gate(Dedup::new(known))
        .gate(PersonalData::new());
    match screen {
        Some(screener) => gates.stage(Arc::new(Screen::new(screener))),
        None => gates,
    }
}

impl GateChain {
    /// Creates a chain without operators, which passes every row.
    pub const fn new() -> Self {
        Self { operators: Vec::new() }
    }

    /// Adds a gate at the end.
    #[must_use]
    pub fn gate(mut self, gate: impl Gate + 'static) -> Self {
        self.operators.push(ChainStep::Gate(Box::new(gate)));
        self
    }

    /// Adds a stage at the end.
    #[must_use]
    pub fn stage(mut self, stage: Arc<dyn Stage>) -> Self {
        self.operators.push(ChainStep::Stage(stage));
        self
    }

    /// Judges every row of `batch`. Awaits stages only. An operator is not called if no row is left.
    pub async fn run(&mut self, batch: Batch) -> Judged {
        let rows = count(batch.len());
        let mut passing = batch;
        let mut verdicts = Vec::new();
        let mut tallies = Vec::with_capacity(self.operators.len());
        for operator in &mut self.operators {
            let name = operator.name();
            let said = if passing.is_empty() {
                Verdicts::pass(0)
            } else {
                let span = tracing::debug_span!("gate", gate = name.as_str(), rows = passing.len());
                operator.judge(&passing).instrument(span).await
            };
            // An operator judges only the rows that all before it passed.
            let tally;
            (passing, tally) = split(&name, passing, said, &mut verdicts);
            tallies.push(tally);
        }
        // Each gate adds its verdicts in row order; sorting merges them.
        verdicts.sort_by_key(|verdict| verdict.row);
        fit(
            &mut verdicts,
            MAX_VERDICT_BYTES.max(rows as usize * VERDICT_BYTES_OF_ROW),
        );
        Judged {
            passed: passing,
            rows,
            verdicts,
            tallies,
        }
    }
}

impl ChainStep {
    fn name(&self) -> GateName {
        match self {
            Self::Gate(gate) => gate.name(),
            Self::Stage(stage) => stage.name(),
        }
    }

    async fn judge(&mut self, rows: &Batch) -> Verdicts {
        match self {
            Self::Gate(gate) => gate.judge(rows),
            Self::Stage(stage) => stage.judge(rows).await,
        }
    }
}

/// Moves every row of `batch` to one place: the batch of passing rows, or `verdicts` under its original position.
///
/// The batch is not copied if every row passes. If the number of verdicts is wrong, all rows are held.
fn split(name: &GateName, batch: Batch, said: Verdicts, verdicts: &mut Vec<RowVerdict>) -> (Batch, Tally) {
    let rows = batch.len();
    let exceptions = if said.rows() == rows {
        said.into_exceptions()
    } else {
        hold_all(name, rows, &format!("answers for {} of {rows} records", said.rows()))
    };
    let mut tally = Tally {
        gate: name.clone(),
        rows: count(rows),
        passed: 0,
        dropped: 0,
        refused: 0,
        held: 0,
        note: None,
    };
    // The common case: the batch continues as it is.
    if exceptions.is_empty() {
        tally.passed = tally.rows;
        return (batch, tally);
    }
    let mut keep = vec![true; rows];
    for (row, _) in &exceptions {
        keep[*row] = false;
    }
    // Filtering fails only if a column is inconsistent; then no row may pass unjudged.
    let (passing, exceptions) = match batch.filter(&keep) {
        Ok(passing) => (passing, exceptions),
        Err(error) => (
            Batch::decode(batch.contract(), &[]),
            hold_all(name, rows, &error.to_string()),
        ),
    };
    // Counted from the batch itself, so the tally cannot disagree with it.
    tally.passed = count(passing.len());
    for (row, verdict) in exceptions {
        match verdict {
            Verdict::Pass => continue,
            Verdict::Drop { .. } => tally.dropped += 1,
            Verdict::Refuse { .. } => tally.refused += 1,
            Verdict::Hold { .. } => tally.held += 1,
        }
        verdicts.push(RowVerdict::of_record(batch.positions()[row], verdict));
    }
    (passing, tally)
}

/// Returns a hold for every row, for an operator that gave no usable answer.
fn hold_all(name: &GateName, rows: usize, actual: &str) -> Vec<(usize, Verdict)> {
    let reason = Reason {
        gate: name.clone(),
        code: "provider".to_owned(),
        path: String::new(),
        expected: "one verdict per record".to_owned(),
        actual: actual.to_owned(),
    };
    (0..rows)
        .map(|row| {
            (
                row,
                Verdict::Hold {
                    reason: reason.clone(),
                    resumes_after: None,
                },
            )
        })
        .collect()
}

fn count(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}

impl Judged {
    /// Applies the policy of the batch ([`Decision::of`]).
    pub fn decision(&self, on_refused: OnRefused) -> Decision {
        let totals = Totals::of(self.rows.into(), self.passed.len() as u64, &self.verdicts, on_refused);
        Decision::of(&totals, Numbering::Records)
    }
}

#[cfg(test)]
mod tests;
