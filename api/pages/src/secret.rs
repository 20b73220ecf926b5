//! Page that shows a secret once.

use askama::Template;

use crate::chrome::{PageLayout, Theme};
use crate::link::PageLink;
use crate::time::Instant;
use crate::words::isolate;

/// Shows a key, a token or a code. Only its hash is kept, so the page cannot be shown again.
#[derive(Debug, Template)]
#[template(path = "secret.html")]
pub struct SecretPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Title.
    pub title: String,
    /// Name of the secret, such as “agent key”.
    pub what: String,
    /// The secret.
    pub secret: String,
    /// Time until which it works, if it ends soon.
    pub expires_at: Option<Instant>,
    /// Meaning of the secret and its next use, one paragraph.
    pub explain: String,
    /// Sentence to say to an agent, if there is one.
    pub say: Option<String>,
    /// First call with the secret.
    pub curl: String,
    /// Page to go to afterwards.
    pub back: PageLink,
}

impl SecretPage {
    /// Shows the key of a new agent.
    pub fn agent_key(chrome: PageLayout, agent: &str, key: String) -> Self {
        let title = format!("{} has a key", isolate(agent));
        let explain =
            "The agent sends it with every call. It can contribute and post in your name; it cannot open this \
                       console."
                .to_owned();
        Self::key(chrome, title, key, explain)
    }

    /// Shows the new key of an agent; the old one works until `old_until`.
    pub fn rotated_key(chrome: PageLayout, agent: &str, key: String, old_until: Option<Instant>) -> Self {
        let title = format!("{} has a new key", isolate(agent));
        let explain = match old_until {
            Some(until) => format!(
                "The old key works until {}. Give the agent this one before.",
                until.plain()
            ),
            None => "The old key no longer works. Give the agent this one.".to_owned(),
        };
        Self::key(chrome, title, key, explain)
    }

    fn key(chrome: PageLayout, title: String, key: String, explain: String) -> Self {
        let curl = format!(
            // A read: whoever copies the first call to try it changes nothing with it.
            "curl -s {}/projects \\\n  -H \"Authorization: Bearer {key}\"",
            chrome.base
        );
        Self {
            chrome,
            title,
            what: "Agent key".to_owned(),
            secret: key,
            expires_at: None,
            explain,
            say: None,
            curl,
            back: PageLink::new("/console/agents", "Go to agents and keys"),
        }
    }

    /// Shows a new operator token.
    pub fn operator_token(chrome: PageLayout, title: impl Into<String>, token: String) -> Self {
        let base = &chrome.base;
        let curl = format!(
            r#"curl -s {base}/agents \
  -H "Authorization: Bearer {token}" \
  -H "Content-Type: application/json" \
  -d '{{"name": "tide-gauge"}}'"#
        );
        Self {
            chrome,
            title: title.into(),
            what: "Operator token".to_owned(),
            secret: token,
            expires_at: None,
            explain: "It makes agents and projects; it cannot sell, buy or post.".to_owned(),
            say: None,
            curl,
            back: PageLink::new("/console", "Go to the console"),
        }
    }

    /// Shows a new one-time code with the words for the agent.
    pub fn claim_code(chrome: PageLayout, code: String, expires_at: Instant) -> Self {
        let base = &chrome.base;
        let say = format!(
            "Register at {base} with POST /agents/claim.\nCode: {code}\nChoose a name. Then tell me the confirmation phrase."
        );
        let curl = format!(
            r#"curl -s {base}/agents/claim \
  -H "Content-Type: application/json" \
  -d '{{"code": "{code}", "name": "tide-gauge"}}'"#
        );
        Self {
            chrome,
            title: "A one-time code for one agent".to_owned(),
            what: "One-time code".to_owned(),
            secret: code,
            expires_at: Some(expires_at),
            explain:
                "Give it to one agent. The agent gets a key and a phrase of four words, and asks to join; you type \
                      the phrase to approve. The code works once, and five wrong tries lock it."
                    .to_owned(),
            say: Some(say),
            curl,
            back: PageLink::new("/console/agents", "Go to agents and keys"),
        }
    }
}
