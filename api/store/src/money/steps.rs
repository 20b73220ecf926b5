//! Steps of accounts: a proof that the movements of an account follow each other, in whatever order they are read.
//!
//! Invariant: an account is whole if its movements are one run, in which each number follows the one before it and each
//! balance is the one before it and the amount. Runs that meet are one, so a journal that is nearly in order takes little
//! memory.

use std::collections::{BTreeMap, HashMap};

use pay::{AccountKind, AccountSide, EventKind};

use super::MoneyFault;

/// Movement of an event, with what it does to its two accounts.
#[derive(Clone, Copy, Debug)]
pub(super) struct MovementStep<'a> {
    /// Kind of the event.
    pub(super) kind: &'a str,
    pub(super) amount: i64,
    /// Account, number of the movement in it, balance after it.
    pub(super) debit: (&'a str, i64, i64),
    pub(super) credit: (&'a str, i64, i64),
}

/// Steps of all accounts.
#[derive(Debug, Default)]
pub(super) struct LedgerSteps {
    accounts: HashMap<String, AccountSteps>,
    /// Kinds of events with the kinds of accounts between which they moved something.
    shapes: Vec<[String; 3]>,
}

/// Steps of an account.
#[derive(Debug, Default)]
struct AccountSteps {
    /// Number up to which movements are left out.
    from: i64,
    /// Runs by the number of their first movement.
    runs: BTreeMap<i64, StepRun>,
    is_broken: bool,
}

/// Movements that follow each other.
#[derive(Clone, Copy, Debug)]
struct StepRun {
    before: i64,
    /// Number of the last movement, and the balance after it.
    last: i64,
    after: i64,
}

impl AccountSteps {
    fn add(&mut self, seq: i64, before: i64, after: i64) {
        if seq <= self.from {
            return;
        }
        let mut run = StepRun {
            before,
            last: seq,
            after,
        };
        let mut first = seq;
        if let Some((&begin, earlier)) = self.runs.range(..=seq).next_back() {
            if earlier.last >= seq {
                self.is_broken = true;
                return;
            }
            if earlier.last == seq - 1 {
                self.is_broken |= earlier.after != before;
                (first, run.before) = (begin, earlier.before);
            }
        }
        if let Some(later) = self.runs.remove(&seq.saturating_add(1)) {
            self.is_broken |= later.before != after;
            (run.last, run.after) = (later.last, later.after);
        }
        self.runs.insert(first, run);
    }

    /// Tells if the steps lead from one number and balance to another.
    fn lead(&self, from: (i64, i64), to: (i64, i64)) -> bool {
        let mut runs = self.runs.iter();
        let leads = match (runs.next(), runs.next()) {
            (None, _) => from == to,
            (Some((first, run)), None) => (first.saturating_sub(1), run.before) == from && (run.last, run.after) == to,
            (Some(_), Some(_)) => false,
        };
        leads && !self.is_broken
    }
}

impl LedgerSteps {
    /// Leaves movements of an account out whose number is not above `seq`.
    pub(super) fn begin(&mut self, account: String, seq: i64) {
        self.accounts.entry(account).or_default().from = seq;
    }

    /// Adds a movement.
    pub(super) fn add(&mut self, step: &MovementStep<'_>) {
        for ((account, seq, after), side) in [(step.debit, AccountSide::Debit), (step.credit, AccountSide::Credit)] {
            self.add_one(account, seq, after, step.amount, side);
        }
        let shape = [step.kind, word_of(step.debit.0), word_of(step.credit.0)];
        if !self.shapes.iter().any(|known| known == &shape) {
            self.shapes.push(shape.map(str::to_owned));
        }
    }

    /// Adds what a movement does to the account on one of its sides.
    pub(super) fn add_one(&mut self, account: &str, seq: i64, after: i64, amount: i64, side: AccountSide) {
        let raises = AccountKind::parse(word_of(account)).is_some_and(|kind| kind.side() == side);
        let before = after.saturating_sub(if raises { amount } else { -amount });
        match self.accounts.get_mut(account) {
            Some(steps) => steps.add(seq, before, after),
            None => self
                .accounts
                .entry(account.to_owned())
                .or_default()
                .add(seq, before, after),
        }
    }

    /// Tells if the movements of an account lead from one number and balance to another.
    pub(super) fn lead(&self, account: &str, from: (i64, i64), to: (i64, i64)) -> bool {
        self.accounts
            .get(account)
            .map_or(from == to, |steps| steps.lead(from, to))
    }

    /// Takes the kinds of movements that no event has.
    pub(super) fn take_odd_shapes(&mut self) -> Vec<MoneyFault> {
        let shapes = std::mem::take(&mut self.shapes);
        let odd = shapes.into_iter().filter(|[kind, debit, credit]| {
            let kinds = (
                EventKind::parse(kind),
                AccountKind::parse(debit),
                AccountKind::parse(credit),
            );
            !matches!(kinds, (Some(kind), Some(debit), Some(credit)) if kind.allows(debit, credit))
        });
        let fault = |[kind, debit, credit]: [String; 3]| MoneyFault {
            rule: "M1",
            subject: format!("{kind}: {debit} to {credit}"),
            problem: "an event of this kind has no such movement",
        };
        odd.map(fault).collect()
    }
}

/// Returns the word of the kind of an account, from its id.
fn word_of(account: &str) -> &str {
    let (_, account) = account.rsplit_once('|').unwrap_or(("", account));
    account.split_once(':').map_or(account, |(kind, _)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEES: &str = "eip155:84532/0x5111|fees";

    fn steps(order: &[i64], of: impl Fn(i64) -> (i64, i64)) -> LedgerSteps {
        let mut steps = LedgerSteps::default();
        for seq in order {
            let (amount, after) = of(*seq);
            steps.add_one(FEES, *seq, after, amount, AccountSide::Credit);
        }
        steps
    }

    /// Movement `seq` adds `seq`.
    fn sum(seq: i64) -> (i64, i64) {
        (seq, seq * (seq + 1) / 2)
    }

    #[test]
    fn movements_follow_each_other_in_any_order() {
        for order in [
            vec![1, 2, 3, 4, 5],
            vec![5, 4, 3, 2, 1],
            vec![2, 4, 1, 5, 3],
            vec![3, 1, 5, 2, 4],
        ] {
            let steps = steps(&order, sum);
            assert!(steps.lead(FEES, (0, 0), (5, 15)), "{order:?}");
            assert!(!steps.lead(FEES, (0, 0), (5, 16)) && !steps.lead(FEES, (0, 0), (6, 15)));
            assert!(!steps.lead(FEES, (0, 1), (5, 15)) && !steps.lead(FEES, (1, 0), (5, 15)));
        }
        assert!(LedgerSteps::default().lead(FEES, (3, 7), (3, 7)));
        assert!(!LedgerSteps::default().lead(FEES, (0, 0), (1, 7)));
    }

    #[test]
    fn what_is_missing_twice_or_wrong_breaks_the_steps() {
        for order in [
            vec![1, 2, 4, 5],
            vec![2, 3, 4, 5],
            vec![1, 2, 3, 4],
            vec![1, 2, 2, 3, 4, 5],
            vec![3, 1, 2, 3, 4, 5],
        ] {
            assert!(!steps(&order, sum).lead(FEES, (0, 0), (5, 15)), "{order:?}");
        }
        for wrong in 1..=5 {
            let order = [2, 4, 1, 5, 3];
            let amount = steps(&order, |seq| (sum(seq).0 + i64::from(seq == wrong), sum(seq).1));
            let after = steps(&order, |seq| (sum(seq).0, sum(seq).1 + i64::from(seq == wrong)));
            assert!(
                !amount.lead(FEES, (0, 0), (5, 15)) && !after.lead(FEES, (0, 0), (5, 15)),
                "{wrong}"
            );
        }
    }

    #[test]
    fn an_account_begins_at_its_opening() {
        let mut steps = LedgerSteps::default();
        steps.begin(FEES.to_owned(), 3);
        for seq in [5, 2, 4] {
            steps.add_one(FEES, seq, sum(seq).1, sum(seq).0, AccountSide::Credit);
        }
        assert!(steps.lead(FEES, (3, 6), (5, 15)));
    }

    #[test]
    fn an_account_says_of_which_kind_it_is() {
        assert_eq!(word_of("eip155:84532/0x5111|held:0190-11"), "held");
        assert_eq!((word_of(FEES), word_of("fees"), word_of("")), ("fees", "fees", ""));
    }

    #[test]
    fn a_movement_that_no_event_has_is_odd() {
        let mut steps = LedgerSteps::default();
        for (kind, debit, credit) in [
            ("grant", "x|subsidy", "x|credits:1"),
            ("grant", "x|fees", "x|credits:1"),
            ("gift", "x|fees", ""),
        ] {
            steps.add(&MovementStep {
                kind,
                amount: 1,
                debit: (debit, 1, 1),
                credit: (credit, 1, 1),
            });
        }
        let odd: Vec<_> = steps.take_odd_shapes().into_iter().map(|fault| fault.subject).collect();
        assert_eq!(odd, ["grant: fees to credits", "gift: fees to "]);
    }
}
