//! The service in a real browser.
//!
//! Invariant: where there is no browser, CI fails and anybody else is told that nothing was tried.

use std::path::Path;

use tests::World;
use tests::browser::{Browser, By, Look};

use crate::binary;

/// A browser whose artefacts are named after the test.
fn browser(test: &str) -> Option<Browser> {
    Browser::start(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser").join(test))
}

#[tokio::test]
async fn a_browser_reads_the_description_of_the_interface_and_asks_no_other_origin() {
    let Some(browser) = browser("description") else { return };
    let world = World::start(binary()).await;
    let page = browser.person(Look::default()).page();
    let visit = page.goto(format!("{}/openapi.json", world.server.base()));
    assert_eq!(visit.status, 200);
    assert_eq!(visit.headers["content-type"], "application/json");
    page.see(By::Text("openapi"));
    let visit = page.goto(format!("{}/no/such/path", world.server.base()));
    assert_eq!(visit.status, 404);
    let mut complaints = page.complaints();
    // JSON names no icon, so the browser asks for the usual one.
    complaints.retain(|complaint| !complaint.contains("/favicon.ico"));
    assert_eq!(complaints, Vec::<String>::new());
}
