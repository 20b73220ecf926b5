//! Public pages: datasets, what happened, who leads, what was taken down, the form of a report, and the map of them.
//!
//! Invariant: a page shows what the operation for programs at its address answers, from the same functions.

mod accounts;
mod collectors;
mod dataset;
mod download;
mod market;
mod records;
mod report;
mod sitemap;
mod sql;

use crate::call::operation::Operations;
use crate::call::spec::Spec;
use crate::config::Limits;

pub(super) use dataset::price;

pub(super) fn add(table: &mut Operations, limits: &Limits) {
    market::add(table);
    dataset::add(table);
    download::add(table);
    records::add(table);
    accounts::add(table);
    collectors::add(table);
    report::add(table);
    sitemap::add(table);
    sql::add(table, limits);
}

/// Returns the description of a page that anybody opens.
fn page(name: &'static str, path: &'static str, summary: &'static str) -> Spec {
    Spec {
        name,
        path,
        summary,
        ..Spec::PAGE
    }
}

#[cfg(test)]
mod tests;
