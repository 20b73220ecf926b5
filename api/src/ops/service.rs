//! Operations about the service itself: health, description, licences, terms, sign-up.

use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::rendered::{self, RenderedJson};
use crate::call::spec::{CallRate, Spec};
use crate::call::wire::NoInput;
use crate::error::ApiError;
use crate::licenses::License;
use crate::ops::openapi;
use crate::rules::readiness::ServiceReadiness;

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
            rate: CallRate::Exempt,
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
            rate: CallRate::Exempt,
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
#[schemars(rename = "Health")]
struct ServiceHealth {
    /// Always `ok`: the process is alive.
    status: &'static str,
}

async fn health(_: Cx, _: NoInput) -> Result<JsonReply<ServiceHealth>, ApiError> {
    // Nothing is asked: a supervisor that restarted the process for a database that is down would only add to the
    // outage.
    Ok(JsonReply::ok(ServiceHealth { status: "ok" }))
}

async fn readiness(cx: Cx, _: NoInput) -> Result<JsonReply<ServiceReadiness>, ApiError> {
    let body = ServiceReadiness::of(&cx.app.store, &cx.app.limiter, &cx.app.process.open_files, cx.now).await;
    Ok(JsonReply {
        // A probe reads the status only. The body names the dependency that is down.
        status: if body.is_up() {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        },
        body,
    })
}

async fn document(cx: Cx, _: NoInput) -> Result<RenderedJson<Value>, ApiError> {
    once(&cx, "openapi", || {
        openapi::document(&cx.operations, &cx.app.config.public_url)
    })
}

/// Returns an answer that depends on the configuration only, and is therefore made once.
fn once<T: Serialize>(cx: &Cx, name: &'static str, make: impl FnOnce() -> T) -> Result<RenderedJson<T>, ApiError> {
    let text = cx.app.process.caches.text(name, || rendered::json(&make()));
    let text = text.map_err(|error| ApiError::internal(format!("answer: {error}")))?;
    Ok(RenderedJson::ok(text))
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Licenses")]
struct LicenseList {
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

async fn licenses(cx: Cx, _: NoInput) -> Result<RenderedJson<LicenseList>, ApiError> {
    once(&cx, "list_licenses", || all_licenses(&cx.app.config.public_url))
}

fn all_licenses(public_url: &str) -> LicenseList {
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
    LicenseList {
        total: items.len(),
        items,
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Terms")]
struct ServiceTerms {
    /// Version that `acceptTerms` must name.
    version: String,
    /// Address of the terms.
    url: String,
}

async fn terms(cx: Cx, _: NoInput) -> Result<RenderedJson<ServiceTerms>, ApiError> {
    let config = &cx.app.config;
    once(&cx, "terms_version", || ServiceTerms {
        version: config.terms_version.clone(),
        url: config.terms_url.clone(),
    })
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SignUp")]
struct SignUpTerms {
    /// True if anyone may sign up. Otherwise sign-up needs an invitation.
    open: bool,
}

async fn signup(cx: Cx, _: NoInput) -> Result<JsonReply<SignUpTerms>, ApiError> {
    Ok(JsonReply::ok(SignUpTerms {
        open: cx.app.config.signup_open,
    }))
}
