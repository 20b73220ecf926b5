//! Pages: sign-up, sign-in and the console.
//!
//! Invariant: a page of the console shows rows of the signed-in person's operator only, and a form changes only those:
//! the operator of the session is part of each statement.

mod account;
mod activity;
mod agents;
mod apps;
mod attention;
mod collectors;
mod consent;
mod contributions;
mod datasets;
pub(in crate::ops) mod disputes;
mod entry;
mod figures;
mod invitations;
mod invite;
mod item_sales;
mod library;
mod limits;
mod logins;
mod moderation;
mod money;
mod operators;
mod overview;
mod payout;
mod publish;
mod quota;
mod settings;
mod staff;
mod texts;
mod top_up;

pub(super) use agents::CODE_LASTS;
pub(super) use apps::name as app_name;
pub(super) use attention::pages as attention_pages;
pub(super) use collectors::logged as logged_run;
pub(super) use contributions::records;
pub(super) use item_sales::of as sales_of_item;
pub(super) use publish::{NEW as NEW_AGENT, make as make_agent};

use crate::call::operation::Operations;

pub(super) fn add(table: &mut Operations) {
    texts::add(table);
    entry::add(table);
    invite::add(table);
    overview::add(table);
    agents::add(table);
    logins::add(table);
    datasets::add(table);
    publish::add(table);
    contributions::add(table);
    library::add(table);
    money::add(table);
    payout::add(table);
    top_up::add(table);
    quota::add(table);
    disputes::add(table);
    collectors::add(table);
    activity::add(table);
    moderation::add(table);
    operators::add(table);
    invitations::add(table);
    figures::add(table);
    apps::add(table);
    consent::add(table);
    limits::add(table);
    settings::add(table);
    account::add(table);
}
