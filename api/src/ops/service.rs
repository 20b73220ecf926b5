//! Operations about the service itself: health, description, licences, terms, sign-up.

use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::call::answer::Reply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::rendered::{self, Rendered};
use crate::call::spec::{Rate, Spec};
use crate::call::wire::Nothing;
use crate::error::ApiError;
use crate::licenses::License;
use crate::ops::openapi;
use crate::rules::readiness::Readiness;

const TAG: &str = "service";

/// Returns the fields that the entries of this file share.
fn base() -> Spec {
    Spec { tag: TAG, ..Spec::BASE }
}

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "health",
            path: "/healthz",
            summary: "Whether the process is alive",
            rate: Rate::Exempt,
            ..base()
        },
        &[],
        health,
    );
    table.add(
        Spec {
            name: "readiness",
            path: "/readyz",
            summary: "Whether the parts the service needs are up",
            rate: Rate::Exempt,
            success: &[(200, "Every part is up."), (503, "A part is down.")],
            ..base()
        },
        &[],
        readiness,
    );
    table.add(
        Spec {
            name: "openapi",
            path: "/openapi.json",
            summary: "This description of the interface",
            lenient: true,
            ..base()
        },
        &[],
        document,
    );
    table.add(
        Spec {
            name: "list_licenses",
            path: "/licenses",
            summary: "The licences an item may carry, each with a link to its text",
            ..base()
        },
        &[],
        licenses,
    );
    table.add(
        Spec {
            name: "terms_version",
            path: "/terms/version",
            summary: "The version of the terms of service in force",
            ..base()
        },
        &[],
        terms,
    );
    table.add(
        Spec {
            name: "signup_status",
            path: "/signup/status",
            summary: "Whether sign-up is open or by invitation",
            ..base()
        },
        &[],
        signup,
    );
}

#[derive(Debug, Serialize, JsonSchema)]
struct Health {
    /// Always `ok`: the process is alive.
    status: &'static str,
}

async fn health(_: Cx, _: Nothing) -> Result<Reply<Health>, ApiError> {
    // Nothing is asked: a supervisor that restarted the process for a database that is down would only add to the
    // outage.
    Ok(Reply::ok(Health { status: "ok" }))
}

async fn readiness(cx: Cx, _: Nothing) -> Result<Reply<Readiness>, ApiError> {
    let body = Readiness::of(&cx.app.store, &cx.app.limiter, &cx.app.process.open_files, cx.now).await;
    Ok(Reply {
        // A probe reads the status only. The body names the dependency that is down.
        status: if body.is_up() {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        },
        body,
    })
}

async fn document(cx: Cx, _: Nothing) -> Result<Rendered<Value>, ApiError> {
    once(&cx, "openapi", || {
        openapi::document(&cx.operations, &cx.app.config.public_url)
    })
}

/// Returns an answer that depends on the configuration only, and is therefore made once.
fn once<T: Serialize>(cx: &Cx, name: &'static str, make: impl FnOnce() -> T) -> Result<Rendered<T>, ApiError> {
    let text = cx.app.process.caches.text(name, || rendered::json(&make()));
    let text = text.map_err(|error| ApiError::internal(format!("answer: {error}")))?;
    Ok(Rendered::ok(text))
}

#[derive(Debug, Serialize, JsonSchema)]
struct Licenses {
    items: Vec<LicenseEntry>,
    total: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct LicenseEntry {
    /// Value that `license` accepts.
    id: &'static str,
    /// Name of the licence.
    name: &'static str,
    /// Address of its text.
    url: String,
}

async fn licenses(cx: Cx, _: Nothing) -> Result<Rendered<Licenses>, ApiError> {
    once(&cx, "list_licenses", || all_licenses(&cx.app.config.public_url))
}

fn all_licenses(public_url: &str) -> Licenses {
    let link = |url: &str| {
        // The texts of the platform's own licences are served here, so their addresses are relative.
        if url.starts_with('/') {
            format!("{public_url}{url}")
        } else {
            url.to_owned()
        }
    };
    let entry = |license: &License| LicenseEntry {
        id: license.id(),
        name: license.name(),
        url: link(license.url()),
    };
    let items: Vec<_> = License::ALL.iter().map(entry).collect();
    Licenses {
        total: items.len(),
        items,
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct Terms {
    /// Version that `acceptTerms` must name.
    version: String,
    /// Address of the terms.
    url: String,
}

async fn terms(cx: Cx, _: Nothing) -> Result<Rendered<Terms>, ApiError> {
    let config = &cx.app.config;
    once(&cx, "terms_version", || Terms {
        version: config.terms_version.clone(),
        url: config.terms_url.clone(),
    })
}

#[derive(Debug, Serialize, JsonSchema)]
struct SignUp {
    /// True if anyone may sign up. Otherwise sign-up needs an invitation.
    open: bool,
}

async fn signup(cx: Cx, _: Nothing) -> Result<Reply<SignUp>, ApiError> {
    Ok(Reply::ok(SignUp {
        open: cx.app.config.signup_open,
    }))
}
