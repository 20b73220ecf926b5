//! The conformance suite of engines: every scenario runs on every engine, each on a fresh database.
//!
//! Invariant: a scenario uses the database through [`Store`](crate::Store) only, so it is the same for every engine.
//!
//! [`store_suite!`](crate::store_suite) makes a module of tests from the scenarios:
//!
//! ```ignore
//! store::store_suite!(sqlite, || Some((format!("sqlite://{}", path.display()), guard)));
//! ```
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "scenarios of tests")]

pub mod accounts;
pub mod activity;
pub mod approval_changes;
pub mod approvals;
pub mod apps;
pub mod archive;
pub mod claims;
pub mod collectors;
pub mod community;
pub mod console;
pub mod contributions;
pub mod dead_letters;
pub mod deletion;
pub mod digests;
pub mod disputes;
pub(crate) mod fixture;
pub mod jobs;
pub mod knowledge;
pub mod knowledge_appeals;
pub mod knowledge_holds;
pub mod knowledge_marks;
pub mod knowledge_reads;
pub mod library;
pub mod logins;
pub mod losses;
pub mod moderation;
pub mod money;
pub mod money_check;
pub mod money_model;
pub mod money_usage;
pub mod outcomes;
pub mod payments;
pub mod payouts;
pub mod people;
pub mod points;
pub mod profiles;
pub mod projects;
pub mod public_accounts;
pub mod races;
pub mod reading;
pub mod receipts;
pub mod reviews;
pub mod seals;
pub mod service;
pub mod sign_ups;
pub mod spending;
pub mod staff;
pub mod statements;
pub mod summaries;
pub mod trail;
pub mod uploads;

/// Makes a module of tests named for an engine.
///
/// The second argument is called once per test. It returns the URL of a fresh database and a guard that keeps it, or
/// `None`, with a message, if the engine is not available.
#[macro_export]
macro_rules! store_suite {
    ($engine:ident, $fresh:expr) => {
        $crate::store_suite! { $engine, $fresh;
            accounts: an_address_has_one_operator_whatever_its_case, a_suspension_reaches_tokens_and_keys,
                a_secret_names_its_owner, a_name_and_its_look_alikes_are_one, an_unknown_operator_is_missing;
            trail: a_change_leaves_its_row, an_undone_change_leaves_no_row, a_change_without_its_row_is_undone,
                a_count_is_exact_under_contention, counts_follow_their_windows;
            jobs: a_job_is_leased_until_it_is_done, a_job_that_was_given_up_stays_visible, equal_jobs_are_one_job,
                a_job_goes_to_one_of_many_workers;
            sign_ups: a_sign_up_is_verified_by_its_link, a_link_ends_after_a_day_and_a_resend_makes_another,
                a_request_for_a_link_reveals_no_account, no_account_is_made_when_the_letters_are_spent,
                the_letters_of_a_day_are_exact_under_contention, one_of_many_wins_an_address,
                one_of_many_uses_of_a_link_succeeds, an_unverified_sign_up_is_deleted,
                a_mailbox_signs_up_once, one_of_many_wins_a_mailbox, an_invitation_admits_an_address, a_session_ends_when_asked_when_over_and_when_suspended,
                tidying_removes_what_is_over;
            claims: an_approved_claim_is_an_agent, a_claim_that_is_over_frees_its_name_and_place,
                wrong_tries_lock_a_code, a_code_works_once_and_until_its_end, identical_claims_are_one_claim,
                a_claim_and_an_agent_never_share_a_name, waiting_claims_count_as_agents,
                the_first_decision_about_a_claim_stays, a_rotated_key_ends_when_it_was_said_to,
                a_revoked_token_is_unknown, a_payout_address_changes_at_its_instant,
                a_status_is_given_once_per_interval;
            logins: an_approved_login_is_a_key_with_an_end, a_login_that_is_over_gives_no_key,
                wrong_codes_lock_a_person_out, one_of_many_approvals_wins, a_login_makes_its_agent_or_nothing,
                the_key_of_a_login_ends_with_its_agent;
            people: a_name_is_not_changed_over_another_window, an_address_is_confirmed_and_taken_back,
                an_address_of_another_is_never_given, one_of_many_confirmations_changes_the_address,
                an_account_closes_once_nothing_is_open, a_form_changes_the_edition_that_it_saw,
                a_price_is_changed_from_the_one_that_was_seen, readers_of_an_item_are_counted_by_day,
                sales_of_an_item_are_listed_and_added_up, an_open_dispute_keeps_an_account_open;
            projects: a_project_is_found_as_it_was_created, a_number_out_of_range_names_its_column, a_slug_is_never_freed, archiving_makes_room_for_another,
                private_projects_are_listed_for_their_operator_only, a_search_takes_its_text_literally,
                a_search_ignores_case_beyond_ascii, pages_neither_repeat_nor_skip, archived_is_final,
                a_price_changes_once_per_window, a_refused_change_changes_nothing,
                a_text_that_not_every_engine_holds_is_refused, texts_are_ordered_by_their_bytes;
            contributions: an_acknowledged_contribution_is_kept_with_its_submission,
                a_key_replays_within_its_window_and_not_after, a_key_with_another_body_is_refused,
                a_key_belongs_to_its_agent_and_project, a_project_that_is_not_open_refuses,
                a_refused_contribution_leaves_nothing, an_allowance_is_per_operator_and_day,
                old_keys_are_pruned, the_outbox_gives_what_is_due;
            outcomes: a_merge_closes_and_makes_a_version, a_rejection_closes_and_says_why,
                the_first_terminal_outcome_wins, what_a_table_has_is_merged_whatever_was_said_before,
                an_outcome_of_another_generation_is_ignored,
                waiting_keeps_the_row_open_and_says_when,
                an_unapplicable_outcome_does_not_stop_the_others, an_outcome_is_kept_whatever_its_texts, versions_and_contributors_add_up;
            dead_letters: a_dead_letter_is_kept_once, a_replay_reopens_what_was_unprocessable,
                a_late_outcome_of_the_old_generation_does_not_close_a_replay, other_letters_are_not_replayed,
                a_replay_reopens_a_version_of_a_unit;
            losses: an_accepted_loss_takes_the_versions_that_the_table_lacks,
                versions_after_a_loss_have_the_numbers_of_the_lost_ones,
                a_version_that_the_table_has_instead_takes_the_place_of_the_lost_one,
                a_loss_is_accepted_only_where_there_is_one,
                a_version_merged_after_the_table_was_read_is_kept,
                a_lost_contribution_that_is_merged_again_has_its_version_again,
                a_loss_forgets_the_place_in_the_source;
            deletion: a_private_dataset_is_deleted_and_its_slug_stays, what_was_open_ends_with_its_dataset,
                what_others_read_stays, outcomes_of_a_deleted_dataset_change_nothing, a_deletion_is_cleared_in_pages,
                one_of_many_deletions_wins;
            races: twins_of_one_key_are_one_contribution, twins_of_one_call_make_one_thing, an_operator_never_exceeds_its_agents,
                an_operator_never_exceeds_its_projects, an_allowance_is_exact_under_contention,
                one_of_many_wins_a_slug, one_of_many_wins_a_name, a_price_changes_once_under_contention,
                an_archived_project_stays_archived, two_projectors_apply_each_outcome_once,
                the_first_of_two_outcomes_wins, counts_add_up_under_contention, a_letter_is_replayed_once;
            reading: keys_follow_each_other_and_stay, a_revoked_current_key_is_replaced_at_once,
                one_of_many_rotations_wins, one_of_many_first_keys_is_the_first,
                rotations_and_revocations_take_turns, a_secret_is_made_once, a_lease_is_exclusive_and_ends,
                one_of_many_queries_gets_the_lease, egress_adds_up_by_month, egress_is_of_its_readers, versions_between_two_are_oldest_first;
            collectors: a_due_time_is_run_once_under_its_lease, a_run_that_is_lost_is_failed_and_due_again,
                a_cursor_moves_with_the_end_of_a_run_only, one_of_many_begins_a_run, a_lease_of_a_clock_that_was_ahead_ends,
                old_runs_are_pruned, a_run_that_is_given_back_is_due_and_no_failure;
            console: contributions_are_listed_by_what_became_of_them, contributions_are_counted_by_day,
                contributions_are_added_up_by_their_tallies, projects_and_uploads_are_listed;
            service: counts_add_up_and_keep_no_text, a_checker_sees_what_is_there, two_handles_share_one_database,
                a_change_costs_one_commit, a_closed_store_says_so;
            knowledge: an_acknowledged_version_is_kept_with_its_submission, a_text_is_taken_once_until_it_is_rejected,
                an_hour_and_a_day_have_their_limits, a_revision_supersedes_and_adds_points,
                the_first_outcome_of_a_version_stays, what_cannot_be_processed_costs_nothing,
                a_retirement_takes_its_revision_with_it, a_price_of_a_unit_changes_once_per_window,
                copies_and_outcomes_at_once_count_once, an_allowance_of_versions_is_exact_under_contention;
            knowledge_holds: a_hold_ends_with_the_first_decision, a_text_without_a_verdict_is_given_up,
                a_pause_ends_for_all_at_once;
            knowledge_appeals: a_rejection_is_appealed_once_and_decided_by_the_next_outcome,
                what_no_judge_decided_is_not_appealed, an_appeal_ends_with_its_unit, one_of_many_appeals_opens;
            knowledge_marks: a_mark_follows_a_read_and_takes_the_place_of_the_one_before,
                a_mark_counts_once_for_a_wallet_that_paid, three_payers_make_a_seller_trusted,
                payers_on_different_units_at_once_are_all_counted;
            knowledge_reads: a_first_read_counts_once, one_of_many_reads_is_the_first,
                a_rating_follows_a_read_and_is_given_once, a_reply_answers_a_comment_of_its_item,
                the_newest_units_come_first, an_erased_unit_has_no_text;
            community: a_request_is_answered_chosen_and_bought, a_request_is_over_at_its_deadline,
                requests_are_found_by_words_and_counted, one_of_many_decides_a_request,
                what_is_withdrawn_or_hidden_is_not_chosen, a_seller_is_told_of_a_request_once;
            reviews: an_item_is_reviewed_once_by_an_agent, one_of_many_reviews_is_kept,
                a_reply_belongs_to_the_thread_of_its_review, the_trace_of_a_comment_stays;
            points: a_merged_batch_gives_points_once, batches_count_for_a_place_where_others_read, events_are_listed_newest_first,
                the_ranking_is_by_points_and_period;
            activity: the_feed_has_what_anybody_may_see;
            apps: the_authorization_server_finds_its_records, an_agent_that_is_down_acts_through_no_app, a_consent_makes_one_agent,
                a_registered_client_goes_when_nothing_is_left_of_it, a_crowd_of_clients_is_thinned,
                the_console_is_connected_until_something_ends_it, one_of_many_consents_connects_the_console;
            moderation: a_report_is_kept_once_within_a_day, one_of_many_twins_is_a_report,
                a_unit_comes_down_and_back, a_dataset_stays_with_buyers_for_some_reasons,
                a_comment_and_an_agent_come_down_and_back,
                what_is_said_on_the_board_comes_down_and_back, a_decision_is_made_once,
                purchases_in_a_cycle_are_left_out_of_the_ranking;
            digests: moderators_get_one_letter_a_slot;
            staff: a_takedown_is_undone_while_its_letters_wait, one_of_many_takes_a_takedown_back,
                decisions_are_listed_and_a_dismissal_is_opened_again, a_reported_item_has_its_evidence,
                accounts_are_found_by_what_is_known, a_suspension_by_a_page_tells_once,
                invitations_are_listed_and_taken_back, figures_are_counted_by_day,
                a_failed_job_is_tried_again_by_hand;
            payments: an_authorization_is_bound_once, an_identifier_is_one_payment_of_a_payer, one_of_many_takes_an_identifier, one_of_many_sends_a_payment, a_payment_takes_each_step_once,
                a_nonce_moves_its_amount_once, a_wallet_proves_itself_to_one_operator, one_of_many_proves_a_wallet,
                a_payout_is_booked_once;
            payouts: the_treasury_is_promised_once, a_refund_waits_for_the_treasury,
                a_refund_is_owed_until_it_is_paid;
            money_check: a_planted_row_breaks_its_rule, a_payment_is_forgotten_by_a_service_that_runs,
                a_treasury_that_lacks_money_is_found;
            money: a_purchase_moves_the_price_once, pages_of_the_journal_follow_each_other,
                what_is_not_sold_is_not_charged, credits_pay_the_price_now,
                given_credits_pay_trial_sales_only, a_balance_is_spent_once, a_reference_is_one_grant,
                a_share_is_released_once, a_refund_takes_everything_back, a_dispute_can_end_for_the_seller,
                a_trial_sale_is_refunded_in_given_credits;
            disputes: a_buyer_opens_one_dispute_of_a_sale, one_of_many_openings_is_the_dispute,
                a_seller_answers_once_or_gives_the_price_back, each_side_lists_its_disputes;
            public_accounts: an_account_shows_what_is_public, an_end_is_told_of_what_was_public;
            spending: a_purchase_fits_the_cap_of_one, an_app_spends_within_its_caps_and_those_of_its_agent,
                a_cap_begins_anew_with_its_period, a_refund_gives_nothing_back_to_a_cap,
                purchases_at_once_never_pass_a_cap, one_of_many_purchases_uses_the_cap,
                egress_is_paid_within_the_caps, limits_are_of_an_operators_own, a_counter_that_lies_is_found;
            approvals: a_purchase_above_the_line_waits_for_a_person, a_yes_buys_once_whatever_comes_at_once,
                a_call_without_a_version_means_what_was_asked, the_lower_line_and_the_greatest_price_hold,
                a_form_makes_one_row, rows_that_wait_and_letters_have_a_number, a_yes_that_lies_is_found;
            approval_changes: a_yes_never_pays_more_than_was_shown, a_yes_waits_for_caps_and_credits,
                a_yes_to_what_has_changed_buys_nothing, a_no_binds_for_a_day, a_no_is_to_the_price_of_its_page,
                what_was_refunded_is_asked_for_again, a_row_that_an_agent_takes_over_has_the_price_of_now,
                the_first_of_many_questions_of_a_person_gives_way;
            money_model: any_order_of_events_agrees_with_a_model;
            money_usage: egress_is_paid_before_it_is_leased, the_last_bytes_are_leased_once,
                a_day_of_storage_is_charged_once,
                the_journal_is_final;
            seals: days_are_sealed_in_order, a_sealed_day_takes_no_event, one_of_many_seals_a_day,
                an_altered_day_breaks_its_seal, a_clock_that_is_set_back_does_not_stop_the_ledger,
                the_movements_of_a_day_are_those_that_are_sealed;
            library: what_was_bought_is_listed_once, a_read_is_listed_while_it_may_be_read_again;
            receipts: the_facts_of_a_sale_are_those_of_its_purchase, a_trial_sale_has_facts, one_of_many_receipts_is_kept,
                a_settled_payment_keeps_one_receipt;
            archive: a_month_leaves_the_database_whole, only_a_sealed_month_leaves_the_database,
                a_month_ends_although_its_numbers_do_not, an_altered_archive_is_found;
            profiles: the_newest_version_is_built_once, what_was_asked_for_is_built_first,
                milestones_are_far_apart, a_choice_begins_milestones, documents_that_nobody_needs_go,
                a_build_that_fails_waits_longer_each_time, documents_of_a_lost_version_are_not_found,
                what_was_asked_for_leaves_room, a_version_that_was_asked_for_is_no_milestone,
                a_lost_version_does_not_wait_nor_count_as_the_newest, a_lease_lasts_while_it_is_renewed,
                sketches_are_charged_whoever_made_them;
            statements: a_purchase_is_one_line_of_the_statement, sales_say_where_their_money_is, first_steps_stay_hidden;
            summaries: a_version_is_summarised_once, a_dataset_that_is_not_shown_has_no_summary,
                what_cannot_be_summarised_is_given_up;
            uploads: an_upload_becomes_a_contribution_once, an_operator_never_exceeds_its_uploads,
                uploads_are_counted_under_contention, a_refused_upload_leaves_nothing,
                a_project_that_is_not_open_takes_no_upload, bytes_are_freed_once_nobody_needs_them,
                an_open_upload_is_not_freed, what_is_abandoned_is_over_at_once,
                what_expires_gives_its_allowance_back, a_suspension_ends_uploads, open_uploads_are_listed_for_their_operator,
                an_upload_is_cancelled_or_completed, what_is_cancelled_gives_its_allowance_back_once;
        }
    };
    ($engine:ident, $fresh:expr; $($group:ident: $($scenario:ident),*;)*) => {
        mod $engine {
            $(mod $group {
                $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scenario() {
                    let Some((url, _database)) = ($fresh)() else { return };
                    $crate::conformance::$group::$scenario(&url).await;
                })*
            })*
        }
    };
}
