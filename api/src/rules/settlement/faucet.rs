//! Gifts of test USDC of the built-in ledger: what counts for them, and how much a day gives.
//!
//! Invariant: a gift is within the day of its wallet, of its caller, and of all. Calls without an account share half of
//! the day of all, so that nobody without one can take the other half.

use std::net::IpAddr;

use store::{Event, WalletGift};
use types::{OperatorId, Timestamp};
use x402::Address;

use crate::state::limit::LimitSource;

/// Micro-USDC of a test USDC.
pub const USDC: i64 = 1_000_000;
/// Most test USDC of a wallet in a UTC day.
pub const MOST_OF_WALLET: u32 = 10;
/// Most test USDC that an operator, or an address without an account, gives out in a UTC day.
pub const MOST_OF_CALLER: u32 = 20;
/// Most test USDC of all in a UTC day.
pub const MOST_OF_ALL: u32 = 2_000;
/// Most test USDC of all calls without an account in a UTC day.
pub const MOST_OF_STRANGERS: u32 = MOST_OF_ALL / 2;
/// Test USDC of a gift that names no amount: a pack of credits and some items.
pub const GIFT: u32 = 5;

fn of_day(rule: &'static str, subject: String, usdc: u32, most: u32, now: Timestamp) -> (Event, u32) {
    let event = Event {
        rule,
        subject,
        window: now.day(),
        ends_at: now.next_day().next_day(),
        count: usdc,
    };
    (event, most)
}

/// Returns what a gift counts for as one to its wallet.
pub fn of_wallet(wallet: &Address, usdc: u32, now: Timestamp) -> (Event, u32) {
    of_day("faucet", wallet.to_string(), usdc, MOST_OF_WALLET, now)
}

/// Returns a gift of whole test USDC that an operator, or somebody without an account, asks for.
pub(crate) fn gift(
    wallet: &Address,
    usdc: u32,
    operator: Option<OperatorId>,
    client: IpAddr,
    now: Timestamp,
) -> WalletGift {
    let mut counted = vec![of_wallet(wallet, usdc, now)];
    if let Some(operator) = operator {
        counted.push(of_day(
            "faucet_operator",
            operator.to_string(),
            usdc,
            MOST_OF_CALLER,
            now,
        ));
    } else {
        let client = LimitSource::from(client).to_string();
        counted.push(of_day("faucet_client", client, usdc, MOST_OF_CALLER, now));
        counted.push(of_day(
            "faucet_strangers",
            "all".to_owned(),
            usdc,
            MOST_OF_STRANGERS,
            now,
        ));
    }
    // Last, because every gift waits for it.
    counted.push(of_day("faucet_all", "all".to_owned(), usdc, MOST_OF_ALL, now));
    WalletGift {
        wallet: wallet.to_string(),
        amount: i64::from(usdc) * USDC,
        counted,
    }
}

/// Returns whose day is used up, for a sentence.
pub(crate) fn whose(rule: &str) -> String {
    match rule {
        "faucet" => format!("a wallet gets at most {MOST_OF_WALLET} test USDC"),
        "faucet_operator" => format!("an operator asks for at most {MOST_OF_CALLER} test USDC"),
        "faucet_client" => format!("an address without an account asks for at most {MOST_OF_CALLER} test USDC"),
        "faucet_strangers" => format!("all calls without an account get at most {MOST_OF_STRANGERS} test USDC"),
        _ => format!("the faucet gives at most {MOST_OF_ALL} test USDC"),
    }
}
