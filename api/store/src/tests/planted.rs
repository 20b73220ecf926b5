//! Planted bugs of money: each of them turns a scenario red.

use std::pin::Pin;

use types::fault::{InjectedBug, turns_red};

use super::fresh_file;
use crate::conformance::{approval_changes, money, payouts, spending};

type Running<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Scenario that sees a bug.
type Scenario = for<'a> fn(&'a str) -> Running<'a>;

/// Runs a scenario in this thread, where the bug is planted.
fn run(scenario: Scenario) {
    let (url, _folder) = fresh_file();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(scenario(&url));
}

#[test]
fn every_planted_bug_of_money_turns_a_scenario_red() {
    let planted: [(InjectedBug, Scenario); 7] = [
        (InjectedBug::PayoutKeyless, |url| {
            Box::pin(payouts::the_treasury_is_promised_once(url))
        }),
        (InjectedBug::FeeOnWhole, |url| {
            Box::pin(money::a_purchase_moves_the_price_once(url))
        }),
        (InjectedBug::GivenOnPriced, |url| {
            Box::pin(money::given_credits_pay_trial_sales_only(url))
        }),
        (InjectedBug::TrialPays, |url| {
            Box::pin(money::a_trial_sale_is_refunded_in_given_credits(url))
        }),
        (InjectedBug::AppUncapped, |url| {
            Box::pin(spending::an_app_spends_within_its_caps_and_those_of_its_agent(url))
        }),
        (InjectedBug::StaleCounter, |url| {
            Box::pin(spending::a_purchase_fits_the_cap_of_one(url))
        }),
        (InjectedBug::YesWithoutPrice, |url| {
            Box::pin(approval_changes::a_yes_never_pays_more_than_was_shown(url))
        }),
    ];
    for (bug, scenario) in planted {
        assert!(turns_red(bug, || run(scenario)), "{bug:?} was not seen");
    }
}
