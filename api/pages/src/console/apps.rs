//! Apps that act as agents.

use askama::Template;

use crate::chrome::{PageLayout, Theme};
use crate::spend::SpendLine;
use crate::time::Instant;

/// `GET /console/apps`. Form: `POST /console/apps/{id}/revoke`.
#[derive(Debug, Template)]
#[template(path = "console/apps.html")]
pub struct AppsPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Connections of the operator, newest first.
    pub apps: Vec<AppRow>,
    /// Outcome of the last action, one sentence.
    pub notice: Option<String>,
}

/// Connection of an app.
#[derive(Clone, Debug)]
pub struct AppRow {
    /// Id of the connection.
    pub id: String,
    /// Name of the app, as it calls itself.
    pub client: String,
    /// Id of the client.
    pub client_id: String,
    /// Name of the agent that it acts as.
    pub agent: String,
    /// Scopes that it has.
    pub scopes: Vec<String>,
    /// Its limits, and what it has spent.
    pub spending: SpendLine,
    /// Path of its endpoint.
    pub endpoint: String,
    /// Time of the consent.
    pub created_at: Instant,
    /// Time of its last call, where known.
    pub used_at: Option<Instant>,
    /// Time until which it can renew its access.
    pub expires_at: Option<Instant>,
}

impl AppRow {
    /// Returns true if the app may spend.
    fn spends(&self) -> bool {
        self.scopes.iter().any(|scope| scope == "spend")
    }
}
