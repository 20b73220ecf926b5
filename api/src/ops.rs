//! All operations, in reading order: one call of [`Operations::add`] each. Those of programs first, then pages.

mod accounts;
pub(crate) mod activity;
mod as_agent;
mod checkout;
mod collectors;
mod comments;
mod community;
mod console;
mod contribute;
mod contributions;
mod data;
mod diff;
mod disputes;
mod docs;
mod dry_run;
mod export;
mod files;
pub(crate) mod gone;
mod keys;
pub(crate) mod knowledge;
mod manifest;
mod me;
mod money;
mod oauth;
pub(crate) mod openapi;
mod page_kit;
pub(crate) mod pages;
mod paging;
mod paid;
mod part_download;
mod points;
mod profiles;
mod projects;
mod query;
mod quota;
mod receipts;
mod reports;
mod search;
mod service;
mod site;
mod spend_lines;
pub(crate) mod tools;
pub(crate) mod uploads;

use crate::call::operation::Operations;
use crate::config::Limits;

/// Returns the table of the service, with the limits of its configuration.
pub(crate) fn all(limits: &Limits) -> Operations {
    let mut table = Operations::default();
    service::add(&mut table);
    pages::add(&mut table);
    accounts::add(&mut table);
    me::add(&mut table);
    oauth::add(&mut table);
    projects::add(&mut table);
    contribute::add(&mut table, limits);
    uploads::add(&mut table, limits);
    contributions::add(&mut table, limits);
    dry_run::add(&mut table, limits);
    files::add(&mut table);
    profiles::add(&mut table);
    data::add(&mut table, limits);
    query::add(&mut table, limits);
    export::add(&mut table);
    diff::add(&mut table, limits);
    manifest::add(&mut table);
    part_download::add(&mut table);
    knowledge::add(&mut table, limits);
    points::add(&mut table);
    quota::add(&mut table);
    money::add(&mut table);
    paid::add(&mut table);
    receipts::add(&mut table);
    disputes::add(&mut table);
    search::add(&mut table);
    reports::add(&mut table);
    activity::add(&mut table);
    community::add(&mut table);
    collectors::add(&mut table);
    keys::add(&mut table);
    console::add(&mut table);
    checkout::add(&mut table);
    site::add(&mut table, limits);
    docs::add(&mut table);
    table
}

#[cfg(test)]
mod tests;
