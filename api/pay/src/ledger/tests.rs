//! Tests of accounts and of the movements of events.

use super::*;
use crate::Split;

fn operator(number: u8) -> OperatorId {
    OperatorId::from_bytes([number; 16])
}

/// One event of each form, at a price of 500,000.
fn events() -> Vec<Event> {
    let (buyer, seller) = (operator(1), operator(2));
    let amount = MicroUsdc(500_000);
    let split = Split {
        fee: MicroUsdc(120_000),
        share: MicroUsdc(380_000),
    };
    vec![
        Event::pack("p", buyer, amount),
        Event::grant("g", buyer, amount),
        Event::given("g", buyer, amount),
        Event::sale("s", buyer, seller, split),
        Event::sale_by_x402("t", seller, split),
        Event::trial_sale("u", buyer, amount),
        Event::release("r", seller, split.share),
        Event::dispute_open("d", seller, split.share),
        Event::dispute_lost("d", seller, split.share, true),
        Event::dispute_lost("e", seller, split.share, false),
        Event::dispute_won("d", seller, Some(buyer), split),
        Event::dispute_won("e", seller, None, split),
        Event::trial_dispute_won("f", buyer, amount),
        Event::payout_pick("p", seller, amount),
        Event::payout_done("p", seller, amount),
        Event::payout_failed("q", seller, amount),
        Event::refund_done("r", amount),
        Event::storage_day(buyer, 20_000, amount),
        Event::egress_block(buyer, 682, 1, amount),
        Event::usage_refund("u", buyer, amount),
        Event::unmatched("x", amount),
        Event::assigned("x", Some(buyer), amount),
        Event::assigned("y", None, amount),
        Event::assigned_to_platform("z", amount),
    ]
}

#[test]
fn every_event_has_the_shape_of_its_kind() {
    let events = events();
    for event in &events {
        assert!(!event.lines.is_empty(), "{event:?}");
        for line in &event.lines {
            assert!(event.kind.allows(line.debit.kind(), line.credit.kind()), "{event:?}");
            assert!(line.amount.0 > 0 && line.debit != line.credit, "{event:?}");
        }
    }
    for kind in EventKind::ALL {
        assert!(events.iter().any(|event| event.kind == kind), "{kind:?}");
        assert_eq!(EventKind::parse(kind.as_str()), Some(kind));
    }
}

/// The assets of the platform cover its debts, after any events; given credits have their own counterpart.
#[test]
fn every_event_keeps_the_two_sums() {
    for event in events() {
        let mut accounts: Vec<Account> = event.lines.iter().flat_map(|line| [line.debit, line.credit]).collect();
        accounts.sort();
        accounts.dedup();
        let (mut money, mut given) = (0, 0);
        for account in accounts {
            let change: i64 = event.lines.iter().map(|line| line.effect(account)).sum();
            match account.kind() {
                AccountKind::GivenSource => given += change,
                AccountKind::Given => given -= change,
                kind if kind.side() == AccountSide::Debit => money += change,
                _ => money -= change,
            }
        }
        assert_eq!((money, given), (0, 0), "{event:?}");
    }
}

#[test]
fn a_line_of_zero_is_not_written() {
    let split = Split {
        fee: MicroUsdc(0),
        share: MicroUsdc(100_000),
    };
    assert_eq!(Event::sale("s", operator(1), operator(2), split).lines.len(), 1);
    assert_eq!(Event::grant("g", operator(1), MicroUsdc(0)).lines, []);
}

#[test]
fn an_account_is_what_was_written() {
    for kind in AccountKind::ALL {
        let account = Account::of(kind, operator(7));
        assert_eq!(AccountKind::parse(kind.as_str()), Some(kind));
        assert_eq!(account.operator().is_some(), kind.is_of_operator());
    }
    for account in [
        Account::REFUND_PENDING,
        Account::USAGE,
        Account::GIVEN_SOURCE,
        Account::SUBSIDY,
        Account::SUSPENSE,
        Account::FEES,
        Account::TREASURY,
    ] {
        assert_eq!(account, Account::of(account.kind(), operator(7)));
    }
    let id = Account::of(AccountKind::Fees, operator(1)).id("eip155:1/0x2");
    assert_eq!(id, "eip155:1/0x2|fees");
    let held = Account::of(AccountKind::Held, operator(1)).to_string();
    assert_eq!(held, format!("held:{}", operator(1)));
    assert_eq!(AccountKind::parse("Fees"), None);
}
