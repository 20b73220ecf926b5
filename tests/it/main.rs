//! Everything that is tested through the service's own doors: one binary, one file per subject.
//!
//! Invariant: no test knows another; each that needs a service starts its own or shares one that it does not disturb.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::tests_outside_test_module,
    reason = "every module here is a test module"
)]

mod accounts;
mod accounts_fields;
mod api;
mod approvals;
mod attack;
mod before;
#[cfg(feature = "s3")]
mod bits;
mod bodies;
mod browser;
mod cases;
mod check_command;
mod checkout;
mod clients;
mod collectors;
mod community;
mod concurrency;
mod console;
mod crash;
mod cross_origin;
mod dataset_pages;
mod deletion;
mod disk_full;
mod disputes;
mod downloads;
mod files;
mod generators;
mod history;
mod judges;
mod knowledge;
mod knowledge_crash;
mod ledger;
mod login;
mod market_commands;
mod mcp;
mod meaning;
#[cfg(feature = "s3")]
mod moderation;
mod money;
mod money_faults;
mod oauth;
mod oauth_keys;
mod openapi;
mod pages;
mod payments;
mod permissions;
mod profiles;
mod publish;
mod push_create;
mod push_files;
mod quarantine;
mod readers;
mod readme;
mod receipts;
#[cfg(feature = "s3")]
mod replicas;
#[cfg(all(feature = "kafka", feature = "postgres", feature = "redis", feature = "s3"))]
mod scale;
#[cfg(feature = "postgres")]
mod slow_database;
mod sql_page;
mod storm;
mod tidy;
#[cfg(feature = "s3")]
mod tls;
#[cfg(feature = "otel")]
mod traces;
mod uploads;
#[cfg(feature = "s3")]
mod uploads_bucket;
mod uploads_large;
mod uploads_refused;
mod walks;
mod worked;

use std::path::Path;
use std::process::Command;

use store::testing::Authority;

/// The program under test.
fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_sluice-under-test"))
}

/// Says what could not be tested here; where everything must be tested, fails.
fn optional(reason: &str) {
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "not tested: {reason}");
    eprintln!("skipped: {reason}");
}

/// An authority with its files in this folder; none where `openssl` is not here.
fn authority(folder: &Path, name: &str) -> Option<Authority> {
    if Command::new("openssl").arg("version").output().is_err() {
        optional("TLS: `openssl` makes the certificates, and is not here");
        return None;
    }
    let folder = folder.join(name);
    std::fs::create_dir(&folder).unwrap();
    Some(Authority::new(folder, name))
}

/// A whole number from the environment of the test run, for longer runs than the usual one.
fn configured(name: &str, usual: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(usual, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} must be a number, not {text}"))
    })
}
