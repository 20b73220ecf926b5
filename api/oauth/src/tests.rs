//! The vectors of attacks on the flows: requests that differ from good ones by little, and what they come to.
//!
//! Invariant: each vector changes one thing, so that its outcome has one cause.

mod authorization;
mod clients;
mod exchanges;
mod growth;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use types::clock::ManualClock;
use types::{AgentId, OperatorId, Timestamp};

use crate::authorize::{self, AuthorizeRequest};
use crate::client::OAuthClient;
use crate::memory::MemoryStorage;
use crate::token;
use crate::{AppBudget, AuthorizationServer, Error, Issuer, Params, Scope};

pub(crate) const ISSUER: &str = "https://sluice.example";
/// RFC 7636 appendix B.
pub(crate) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub(crate) const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
pub(crate) const REDIRECT: &str = "https://app.example/cb?tenant=1";

/// A form with changes: `name=value` sets a parameter, `-name` removes it, and `+name=value` adds a second one.
pub(crate) fn changed(base: &[(&str, &str)], changes: &[&str]) -> Params {
    let mut pairs: Vec<(String, String)> = base
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    for change in changes {
        if let Some(name) = change.strip_prefix('-') {
            pairs.retain(|(known, _)| known != name);
            continue;
        }
        let is_second = change.starts_with('+');
        let (name, value) = change.trim_start_matches('+').split_once('=').unwrap();
        if !is_second {
            pairs.retain(|(known, _)| known != name);
        }
        pairs.push((name.to_owned(), value.to_owned()));
    }
    let form = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish();
    Params::parse(form.as_bytes())
}

/// Parameters of a URL.
pub(crate) fn parameters(url: &str) -> Params {
    Params::parse(url.split_once('?').unwrap().1.as_bytes())
}

/// A server with a clock of its own, a registered client and another one.
pub(crate) struct World {
    pub(crate) server: AuthorizationServer,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) client: OAuthClient,
    pub(crate) other: OAuthClient,
}

impl World {
    pub(crate) async fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_795_000_000_000_000)));
        let issuer = Issuer::new(ISSUER).unwrap();
        let server = AuthorizationServer::new(issuer, Arc::new(MemoryStorage::default()), Arc::clone(&clock) as _);
        let metadata = json!({"redirect_uris": [REDIRECT, "http://127.0.0.1/cb"], "client_name": "Desk"});
        let client = server.register(metadata.to_string().as_bytes()).await.unwrap();
        let other = server.register(metadata.to_string().as_bytes()).await.unwrap();
        Self {
            server,
            clock,
            client,
            other,
        }
    }

    pub(crate) fn wait(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// A good authorization request of the client with changes.
    pub(crate) fn request(&self, changes: &[&str]) -> Result<AuthorizeRequest, authorize::AuthorizeRefusal> {
        let base = [
            ("response_type", "code"),
            ("client_id", &self.client.id),
            ("redirect_uri", REDIRECT),
            ("state", "s&1"),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
            ("resource", "https://sluice.example/mcp"),
            ("scope", "read write"),
            ("unknown", "ignored"),
        ];
        authorize::check(&changed(&base, changes), &self.client, self.server.issuer())
    }

    /// Goes through consent and returns the code.
    pub(crate) async fn code(&self, changes: &[&str]) -> String {
        let request = self.request(changes).unwrap();
        let now = Timestamp::default();
        let (operator, agent) = (OperatorId::new(now), AgentId::new(now));
        let url = self
            .server
            .grant(&request, operator, agent, request.scopes, AppBudget::default())
            .await
            .unwrap();
        parameters(&url).get("code").unwrap().unwrap().to_owned()
    }

    /// Sends a form to the token endpoint as a client.
    pub(crate) async fn post(&self, client: &OAuthClient, form: &Params) -> Result<Value, Error> {
        let credentials = token::credentials(form, None)?;
        self.server.authenticate(&credentials, client, None).await?;
        let request = token::request(form, self.server.issuer())?;
        let answer = self.server.token(client, &request).await?;
        Ok(serde_json::to_value(answer).unwrap())
    }

    /// Exchanges a code, with changes of a good request.
    pub(crate) async fn exchange(&self, code: &str, changes: &[&str]) -> Result<Value, Error> {
        let base = [
            ("grant_type", "authorization_code"),
            ("client_id", &self.client.id),
            ("code", code),
            ("code_verifier", VERIFIER),
            ("redirect_uri", REDIRECT),
            ("resource", "https://sluice.example/mcp"),
            ("unknown", "ignored"),
        ];
        self.post(&self.client, &changed(&base, changes)).await
    }

    /// Uses a refresh token, with changes of a good request.
    pub(crate) async fn refresh(&self, token: &Value, changes: &[&str]) -> Result<Value, Error> {
        let base = [
            ("grant_type", "refresh_token"),
            ("client_id", &self.client.id),
            ("refresh_token", token.as_str().unwrap()),
        ];
        self.post(&self.client, &changed(&base, changes)).await
    }

    /// Connects the client and returns the answer with its tokens.
    pub(crate) async fn connect(&self) -> Value {
        let code = self.code(&[]).await;
        self.exchange(&code, &[]).await.unwrap()
    }

    /// Returns true if an access token works at `/mcp` for reading.
    pub(crate) async fn works(&self, answer: &Value) -> bool {
        let token = answer["access_token"].as_str().unwrap();
        let checked = self.server.check(token, crate::Resource::Mcp, Scope::Read).await;
        checked.unwrap().is_ok()
    }
}

/// The error code of a refusal by the token endpoint.
#[track_caller]
pub(crate) fn refused(outcome: Result<Value, Error>) -> &'static str {
    match outcome {
        Err(Error::Refused(error)) => error.code,
        other => panic!("{other:?}"),
    }
}
