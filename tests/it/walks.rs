//! Walks of eight people in a browser, each from its first page to its goal without leaving the site.

mod administrator;
mod agent_developer;
mod buyer;
mod csv_owner;
mod moderator;
mod operator;
mod reader;
mod visitor;

use tests::browser::{By, Page};

use crate::console::judge_answer;

/// Follows a link or sends a form, which must lead to a page.
fn follow(page: &Page, by: By<'_>, what: &str) {
    let visit = page.submit(by);
    assert_eq!(visit.status, 200, "{what}: {}", visit.url);
}

/// Follows a link or sends a form, and judges the page to which it leads.
fn click(page: &Page, by: By<'_>, what: &str) {
    follow(page, by, what);
    judge_answer(page, what);
}
