//! A request to the service, and the calls of the interface.

use std::time::Duration;

use bytes::Bytes;
use reqwest::{Method, Url};
use serde::Serialize;
use serde_json::{Value, json};

use crate::model::{
    Agent, Answer, BegunLogin, Bought, Contribution, Diff, FullUnit, Hits, Me, NewAgent, NewProject, NewUnit,
    OpenUpload, OpenUploads, Page, Project, ProjectPage, RowVerdict, Unit, Validation,
};
use crate::push::{BegunUpload, NewUpload, UploadCompletion};
use crate::{Client, Error};

/// A request before it is sent.
#[derive(Debug)]
pub(crate) struct PendingCall {
    pub(crate) method: Method,
    segments: Vec<String>,
    query: Vec<(&'static str, String)>,
    pub(crate) body: Option<Bytes>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) wait: Duration,
    reads: bool,
}

impl PendingCall {
    pub(crate) fn get<const N: usize>(segments: [&str; N]) -> Self {
        Self::new(Method::GET, segments, true)
    }

    pub(crate) fn post<const N: usize>(segments: [&str; N], body: &impl Serialize) -> Self {
        // The types of this crate have text keys and finite numbers, so serialization cannot fail.
        let body = serde_json::to_vec(body).unwrap_or_default().into();
        Self {
            body: Some(body),
            ..Self::new(Method::POST, segments, false)
        }
    }

    fn new<const N: usize>(method: Method, segments: [&str; N], reads: bool) -> Self {
        Self {
            method,
            segments: segments.map(str::to_owned).into(),
            query: Vec::new(),
            body: None,
            idempotency_key: None,
            wait: Duration::ZERO,
            reads,
        }
    }

    pub(crate) fn query(mut self, name: &'static str, value: impl Into<u64>) -> Self {
        self.query.push((name, value.into().to_string()));
        self
    }

    pub(crate) fn text(mut self, name: &'static str, value: &str) -> Self {
        self.query.push((name, value.to_owned()));
        self
    }

    fn wait(mut self, seconds: u32) -> Self {
        self.wait = Duration::from_secs(seconds.into());
        // Without the parameter the service does not wait.
        if seconds == 0 {
            self
        } else {
            self.query("wait", seconds)
        }
    }

    /// Returns true if sending the call twice has the effect of sending it once.
    pub(crate) const fn repeatable(&self) -> bool {
        self.reads || self.idempotency_key.is_some()
    }

    pub(crate) fn path(&self) -> String {
        format!("/{}", self.segments.join("/"))
    }

    pub(crate) fn url(&self, base: &Url) -> Url {
        let mut url = base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            // A base address may end with a slash. The segments are percent-encoded here.
            path.pop_if_empty().extend(&self.segments);
        }
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.query);
        }
        url
    }
}

impl Client {
    /// Registers an agent. Needs the operator token. Only this answer has the key.
    pub async fn agent_create(&self, agent: &NewAgent) -> Result<Agent, Error> {
        self.json(PendingCall::post(["agents"], agent)).await
    }

    /// Creates a dataset project that the caller's operator maintains.
    pub async fn project_create(&self, project: &NewProject) -> Result<Project, Error> {
        self.json(PendingCall::post(["projects"], project)).await
    }

    /// Returns the project with its readme, contract, versions and contributors.
    pub async fn project(&self, slug: &str) -> Result<Project, Error> {
        self.json(PendingCall::get(["projects", slug])).await
    }

    /// Contributes 1 to 500 records and waits up to `wait` seconds (0 to 20) for the outcome.
    ///
    /// With an `idempotency_key` the call is retried, and its records are merged at most once.
    pub async fn contribute(
        &self,
        slug: &str,
        records: &[Value],
        wait: u32,
        idempotency_key: Option<&str>,
    ) -> Result<Contribution, Error> {
        let mut call = PendingCall::post(["projects", slug, "contribute"], &json!({ "records": records })).wait(wait);
        call.idempotency_key = idempotency_key.map(str::to_owned);
        self.json(call).await
    }

    /// Contributes records with the source that they are from, as [`contribute`](Self::contribute) does.
    pub async fn contribute_from(
        &self,
        slug: &str,
        records: &[Value],
        source: &str,
        wait: u32,
        idempotency_key: &str,
    ) -> Result<Contribution, Error> {
        let body = json!({ "records": records, "sourceDeclaration": source });
        let mut call = PendingCall::post(["projects", slug, "contribute"], &body).wait(wait);
        call.idempotency_key = Some(idempotency_key.to_owned());
        self.json(call).await
    }

    /// Returns a contribution. Waits up to `wait` seconds (0 to 20) for its outcome.
    pub async fn contribution(&self, slug: &str, id: &str, wait: u32) -> Result<Contribution, Error> {
        self.json(PendingCall::get(["projects", slug, "contributions", id]).wait(wait))
            .await
    }

    /// Submits a knowledge unit. Not repeatable: the service refuses a second one with the same text.
    pub async fn unit_submit(&self, unit: &NewUnit) -> Result<Unit, Error> {
        self.json(PendingCall::post(["knowledge"], unit)).await
    }

    /// Returns a knowledge unit with its review. Waits up to `wait` seconds (0 to 20) for the end of the review.
    pub async fn unit(&self, id: &str, wait: u32) -> Result<Unit, Error> {
        self.json(PendingCall::get(["knowledge", id]).wait(wait)).await
    }

    /// Returns the whole text of a published unit.
    pub async fn unit_full(&self, id: &str) -> Result<FullUnit, Error> {
        self.json(PendingCall::get(["knowledge", id, "full"])).await
    }

    /// Buys a unit with credits. Costs nothing if the operator has it.
    pub async fn unit_buy(&self, id: &str) -> Result<Bought, Error> {
        self.json(PendingCall::post(["knowledge", id, "buy"], &json!({}))).await
    }

    /// Searches published units and public datasets.
    pub async fn search(&self, words: &str) -> Result<Hits, Error> {
        self.json(PendingCall::get(["search"]).text("q", words)).await
    }

    /// Begins an upload. Not repeatable: each call begins another one.
    pub(crate) async fn upload_begin(&self, slug: &str, upload: &NewUpload<'_>) -> Result<BegunUpload, Error> {
        self.json(PendingCall::post(["projects", slug, "uploads"], upload))
            .await
    }

    /// Returns the open uploads of the caller's operator. `slug` is any project that the caller sees.
    pub async fn uploads(&self, slug: &str) -> Result<Vec<OpenUpload>, Error> {
        let listed: OpenUploads = self.json(PendingCall::get(["projects", slug, "uploads"])).await?;
        Ok(listed.items)
    }

    /// Cancels an upload that was not completed. Doing it twice has the effect of doing it once.
    pub async fn upload_cancel(&self, slug: &str, id: &str) -> Result<(), Error> {
        let call = PendingCall::new(Method::DELETE, ["projects", slug, "uploads", id], true);
        self.bytes(call).await?;
        Ok(())
    }

    /// Returns the first `limit` projects that the caller sees.
    pub async fn projects(&self, limit: u32) -> Result<Vec<Project>, Error> {
        self.json::<ProjectPage>(PendingCall::get(["projects"]).query("limit", limit))
            .await
            .map(|listed| listed.items)
    }

    /// Returns the caller of this client's key.
    pub async fn me(&self) -> Result<Me, Error> {
        self.json(PendingCall::get(["me"])).await
    }

    /// Begins the login of a device. Needs no credential. Not repeatable: each call begins another one.
    pub async fn login_begin(&self, device: &str) -> Result<BegunLogin, Error> {
        self.json(PendingCall::post(["agents", "login"], &json!({ "device": device })))
            .await
    }

    /// Archives a project, for good. Doing it twice has the effect of doing it once.
    pub async fn project_archive(&self, slug: &str) -> Result<Project, Error> {
        let call = PendingCall::post(["projects", slug], &json!({ "status": "archived" }));
        let call = PendingCall {
            method: Method::PATCH,
            reads: true,
            ..call
        };
        self.json(call).await
    }

    /// Deletes a private dataset. Not repeatable: a second call finds none.
    pub async fn project_delete(&self, slug: &str) -> Result<Value, Error> {
        self.json(PendingCall::new(Method::DELETE, ["projects", slug], false))
            .await
    }

    /// Completes an upload. Doing it twice has the effect of doing it once.
    pub(crate) async fn upload_complete(
        &self,
        slug: &str,
        id: &str,
        completion: &UploadCompletion<'_>,
    ) -> Result<Contribution, Error> {
        let call = PendingCall::post(["projects", slug, "uploads", id, "complete"], completion);
        // A completed upload stays completed, so the call may be repeated like a read.
        self.json(PendingCall { reads: true, ..call }).await
    }

    /// Returns the verdict on each record of a decided contribution, in row order.
    pub async fn contribution_verdicts(&self, slug: &str, id: &str) -> Result<Vec<RowVerdict>, Error> {
        let call = PendingCall::get(["projects", slug, "contributions", id, "verdicts"]);
        let path = call.path();
        // The answer is JSON Lines.
        let lines = self.bytes(call).await?;
        serde_json::Deserializer::from_slice(&lines)
            .into_iter()
            .collect::<Result<_, _>>()
            .map_err(|source| Error::Answer {
                method: Method::GET.to_string(),
                path,
                source,
            })
    }

    /// Judges records as if they were contributed, and stores nothing.
    pub async fn validate(&self, slug: &str, records: &[Value]) -> Result<Validation, Error> {
        let call = PendingCall::post(["projects", slug, "validate"], &json!({ "records": records }));
        // A dry run changes nothing, so the call may be repeated.
        self.json(PendingCall { reads: true, ..call }).await
    }

    /// Returns the bytes of the signed manifest of a version, by default the latest. They are not verified.
    pub async fn manifest(&self, slug: &str, version: Option<u64>) -> Result<Bytes, Error> {
        let mut call = PendingCall::get(["projects", slug, "manifest"]);
        if let Some(version) = version {
            call = call.query("version", version);
        }
        self.bytes(call).await
    }

    /// Returns the bytes of the document of service keys. They are not verified. Needs no credential.
    pub async fn service_keys(&self) -> Result<Bytes, Error> {
        self.bytes(PendingCall::get([".well-known", "service-keys"])).await
    }

    /// Returns a page of a version's records, by default of the latest version.
    pub async fn data(&self, slug: &str, version: Option<u64>, offset: u64, limit: u32) -> Result<Page, Error> {
        let mut call = PendingCall::get(["projects", slug, "data"])
            .query("offset", offset)
            .query("limit", limit);
        if let Some(version) = version {
            call = call.query("version", version);
        }
        self.json(call).await
    }

    /// Runs a query, which is one SELECT over the table `records`. The default version is the latest, the default limit
    /// that of the service.
    pub async fn query(
        &self,
        slug: &str,
        sql: &str,
        version: Option<u64>,
        limit: Option<u32>,
    ) -> Result<Answer, Error> {
        let mut question = json!({ "sql": sql });
        if let Some(version) = version {
            question["version"] = version.into();
        }
        if let Some(limit) = limit {
            question["limit"] = limit.into();
        }
        let call = PendingCall::post(["projects", slug, "query"], &question);
        // A query changes nothing, so the call may be repeated.
        self.json(PendingCall { reads: true, ..call }).await
    }

    /// Returns up to `limit` (0 to 500) of the records appended after version `from` up to `to`, with their
    /// contributors.
    pub async fn diff(&self, slug: &str, from: u64, to: u64, offset: u64, limit: u32) -> Result<Diff, Error> {
        let call = PendingCall::get(["projects", slug, "diff"])
            .query("from", from)
            .query("to", to)
            .query("offset", offset)
            .query("limit", limit);
        self.json(call).await
    }
}
