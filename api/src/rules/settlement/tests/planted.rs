//! Planted bugs of payments: each of them turns a test red.

use types::fault::{InjectedBug, turns_red};

use super::{extensions, paying};

#[test]
fn every_planted_bug_of_payments_turns_a_test_red() {
    let planted: [(InjectedBug, fn()); 15] = [
        (
            InjectedBug::SettlesUncommitted,
            paying::a_pack_is_credited_once_per_authorization,
        ),
        (
            InjectedBug::GrantsFirst,
            paying::a_refusal_before_sending_is_final_unless_the_chain_says_otherwise,
        ),
        (
            InjectedBug::ServesUnsettled,
            paying::a_lost_answer_is_found_on_the_chain,
        ),
        (InjectedBug::LostIsRefused, paying::a_lost_answer_is_found_on_the_chain),
        (
            InjectedBug::RefusalIsProof,
            paying::what_was_not_taken_is_sent_again_unchanged_while_it_is_valid,
        ),
        (InjectedBug::AsksAgain, paying::a_lost_answer_is_found_on_the_chain),
        (
            InjectedBug::TakesMore,
            paying::a_header_that_is_no_payment_leaves_no_row,
        ),
        (
            InjectedBug::UnprovedOwner,
            paying::a_wallet_that_never_proved_itself_is_no_operators,
        ),
        (
            InjectedBug::HeadSettles,
            paying::a_pack_is_credited_once_per_authorization,
        ),
        (
            InjectedBug::JudgesTimeFirst,
            paying::a_pack_is_credited_once_per_authorization,
        ),
        (
            InjectedBug::LateIsIgnored,
            paying::a_refusal_before_sending_is_final_unless_the_chain_says_otherwise,
        ),
        (
            InjectedBug::OwnerByPath,
            paying::a_dataset_is_bought_once_by_a_wallet_and_read_again_for_nothing,
        ),
        (
            InjectedBug::ForeignNonce,
            extensions::a_wallet_signs_in_and_reads_what_it_bought,
        ),
        (
            InjectedBug::NonceUsedAgain,
            extensions::a_wallet_signs_in_and_reads_what_it_bought,
        ),
        (
            InjectedBug::SecretIgnored,
            extensions::a_payment_with_a_secret_gets_its_answer_again_from_anywhere_for_a_day,
        ),
    ];
    for (bug, test) in planted {
        assert!(turns_red(bug, test), "{bug:?} was not seen");
    }
}
