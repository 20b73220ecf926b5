//! Question of a device that wants a key of an agent.

use askama::Template;

use crate::chrome::{PageLayout, Theme};
use crate::consent::AgentChoice;
use crate::form::{Errors as _, FieldError};
use crate::time::Instant;

/// `GET /console/login`. Forms: `POST /console/login` with `code`, then `POST /console/login/approve` with `code`, `agent`
/// (an id, or `new`) and `new_name`, or `POST /console/login/reject` with the same.
#[derive(Debug, Template)]
#[template(path = "console/login.html")]
pub struct LoginPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Code as the person typed it.
    pub code: String,
    /// Login that waits with the code, once one was typed.
    pub asked: Option<AskedLogin>,
    /// Decision that was just made.
    pub ended: Option<LoginEnd>,
    /// Rules that the input breaks.
    pub errors: Vec<FieldError>,
}

/// Login that a person decides about.
#[derive(Clone, Debug)]
pub struct AskedLogin {
    /// Name that the device gives itself.
    pub device: String,
    /// Network address that asked.
    pub address: String,
    /// Network address of the person.
    pub own_address: String,
    /// True if both addresses are the same.
    // Somebody who reads a code to a person over the telephone asks from elsewhere, which is the one thing that the person can
    // see.
    pub is_own_address: bool,
    /// Time at which the device asked.
    pub asked_at: Instant,
    /// Time from which the code no longer works.
    pub expires_at: Instant,
    /// Display name of the operator who is signed in.
    pub operator: String,
    /// Time at which the key would end.
    pub key_ends_at: Instant,
    /// Agents to choose from.
    pub agents: Vec<AgentChoice>,
    /// Number of places for agents that are left.
    pub places_left: u32,
    /// Value of the field `agent`, as chosen; empty at first.
    pub chosen: String,
    /// Name of the new agent.
    pub new_name: String,
}

impl AskedLogin {
    /// Returns true for the choice that is marked: the person's, else the only agent, else a new one where there is none.
    fn is_marked(&self, id: &str) -> bool {
        match (self.chosen.as_str(), self.agents.as_slice()) {
            // Of several agents the person chooses: the device gets all that the agent may.
            ("", [only]) => only.id == id,
            ("", []) => id == "new",
            (chosen, _) => chosen == id,
        }
    }
}

/// Decision about a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginEnd {
    /// The key works.
    Approved,
    /// The key never works.
    Rejected,
}
