//! Pages: sign-up, sign-in and the console.
//!
//! Invariant: a page of the console shows rows of the signed-in person's operator only, and a form changes only those:
//! the operator of the session is part of each statement.

mod activity;
mod agents;
mod apps;
mod collectors;
mod consent;
mod contributions;
mod datasets;
pub(in crate::ops) mod disputes;
mod entry;
mod invite;
mod limits;
mod logins;
mod moderation;
mod money;
mod overview;
mod publish;
mod settings;
mod texts;

pub(super) use agents::CODE_LASTS;
pub(super) use apps::name as app_name;
pub(super) use collectors::logged as logged_run;
pub(super) use contributions::records;

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
    money::add(table);
    disputes::add(table);
    collectors::add(table);
    activity::add(table);
    moderation::add(table);
    apps::add(table);
    consent::add(table);
    limits::add(table);
    settings::add(table);
}
