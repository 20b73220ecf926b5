//! All operations, in reading order: one call of [`Operations::add`] each.

mod accounts;
mod contribute;
mod contributions;
mod data;
mod diff;
mod dry_run;
mod export;
mod keys;
mod manifest;
pub(crate) mod pages;
mod part_download;
mod projects;
mod query;
mod reading;
mod service;
pub(crate) mod uploads;

use crate::config::Limits;
use crate::operation::Operations;

/// Returns the table of the service, with the limits of its configuration.
pub(crate) fn all(limits: &Limits) -> Operations {
    let mut table = Operations::default();
    service::add(&mut table);
    pages::add(&mut table);
    accounts::add(&mut table);
    projects::add(&mut table);
    contribute::add(&mut table, limits);
    uploads::add(&mut table, limits);
    contributions::add(&mut table, limits);
    dry_run::add(&mut table, limits);
    data::add(&mut table, limits);
    query::add(&mut table, limits);
    export::add(&mut table);
    diff::add(&mut table, limits);
    manifest::add(&mut table);
    part_download::add(&mut table);
    keys::add(&mut table);
    table
}

#[cfg(test)]
mod tests;
