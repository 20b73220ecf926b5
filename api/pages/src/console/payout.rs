//! Payout address as a task in steps, and the payouts.
//!
//! Invariant: a step that is not done says what follows without it.

use types::money::MicroUsdc;
use types::vocabulary::PayoutState;

use crate::time::Instant;
use crate::words::StateMark;

/// Payout address, and the change that waits.
#[derive(Clone, Debug, Default)]
pub struct PayoutView {
    /// Address that payouts go to now.
    pub address: Option<String>,
    /// Time at which its wallet proved itself by a signature.
    pub proved_at: Option<Instant>,
    /// Message that the wallet signs to prove itself; `None` where there is nothing to prove.
    pub message: Option<String>,
    /// Signature as the person typed it.
    pub signature: String,
    /// Address that comes into force later, and when.
    pub pending: Option<(String, Instant)>,
    /// Time of the last change that was asked for.
    pub changed_at: Option<Instant>,
    /// True if the person signed in recently enough to change it.
    // Without a fresh sign-in the page shows the way to one in place of the form, so that the change is
    // not refused after it was typed.
    pub is_fresh: bool,
    /// Address as the person typed it.
    pub typed: String,
    /// Network of the addresses (CAIP-2).
    pub network: String,
}

impl PayoutView {
    /// Returns true if an address was entered, in force or not.
    pub(crate) const fn is_entered(&self) -> bool {
        self.address.is_some() || self.pending.is_some()
    }

    /// Returns the class of the second step.
    pub(crate) const fn proof_class(&self) -> &'static str {
        match (self.proved_at, &self.message) {
            (Some(_), _) => "done",
            (None, Some(_)) => "now",
            (None, None) => "",
        }
    }
}

/// Payout to an operator, for a table row.
#[derive(Clone, Debug)]
pub struct PayoutRow {
    /// Time at which it was picked.
    pub at: Instant,
    /// Amount that is paid.
    pub amount: MicroUsdc,
    /// Wallet that is paid.
    pub address: String,
    /// State of the payout.
    pub state: PayoutState,
    /// Number of attempts so far.
    pub attempts: u64,
    /// Transaction that paid it, once it is known.
    pub transaction: Option<String>,
}

impl PayoutRow {
    pub(crate) const fn mark(&self) -> StateMark {
        match self.state {
            PayoutState::Done => StateMark::Ok,
            PayoutState::Failed => StateMark::Bad,
            PayoutState::Picked | PayoutState::Sending | PayoutState::Unknown => StateMark::Hold,
        }
    }

    pub(crate) fn says(&self) -> String {
        match (self.state, self.attempts) {
            (PayoutState::Done, 0 | 1) => "arrived".to_owned(),
            (PayoutState::Done, tries) => format!("arrived, after {tries} tries"),
            (PayoutState::Failed, _) => "given up; the amount is ready again".to_owned(),
            (PayoutState::Picked, _) => "is sent next".to_owned(),
            (PayoutState::Sending | PayoutState::Unknown, _) => "on its way".to_owned(),
        }
    }

    pub(crate) fn short_address(&self) -> String {
        short_address(&self.address)
    }

    /// Returns the ends of the transaction.
    pub(crate) fn short_transaction(&self) -> Option<String> {
        self.transaction.as_deref().map(short_address)
    }
}

/// Returns the ends of the address of a wallet, with or without its network.
pub(crate) fn short_address(wallet: &str) -> String {
    let address = wallet.rsplit(':').next().unwrap_or_default();
    let letters: Vec<char> = address.chars().collect();
    match letters.len() {
        0..=12 => address.to_owned(),
        length => {
            let ends = letters.iter().take(4).chain(['…'].iter());
            ends.chain(letters.iter().skip(length - 4)).collect()
        }
    }
}
