//! Samples of the pages about agents, their keys, and devices that ask for one.

use super::checkout::spent;
use super::console::{DAY_MINUTES, ID};
use super::{Book, Texts, ago, ahead, person};
use crate::console::{
    AgentView, AgentsPage, AskedLogin, ClaimEnd, ClaimView, CodeView, DecidedClaim, KeyView, LoginEnd, LoginPage,
    NewAgentForm,
};
use crate::{AgentChoice, Error, FieldError, Instant};

pub(super) fn add(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    book.add("console-agents", &agents(texts))?;
    logins(book, texts)
}

fn logins(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    let page = |asked: Option<AskedLogin>, ended: Option<LoginEnd>, errors: Vec<FieldError>| LoginPage {
        chrome: person("/console/login", texts, 0),
        code: "BCDF-GHJK".to_owned(),
        asked,
        ended,
        errors,
    };
    let agent = |id: &str, name: &str, description: Option<&str>| AgentChoice {
        id: id.to_owned(),
        name: name.to_owned(),
        description: description.map(str::to_owned),
    };
    let asked = |agents: Vec<AgentChoice>, is_own_address: bool| AskedLogin {
        device: texts.name.clone(),
        address: "2001:db8:1:2::1".to_owned(),
        own_address: "203.0.113.7".to_owned(),
        is_own_address,
        asked_at: ago(2),
        expires_at: ahead(13),
        operator: texts.name.clone(),
        key_ends_at: ahead(90 * DAY_MINUTES),
        places_left: u32::from(!is_own_address),
        agents,
        chosen: String::new(),
        new_name: texts.name.clone(),
    };
    let two = || {
        vec![
            agent("019a1", "loess-9", Some(&texts.text)),
            agent("019a2", &texts.name, None),
        ]
    };
    let code = vec![FieldError::new("code", "code: no login waits with it")];
    let name = vec![FieldError::new("new_name", "name: another agent has it")];
    book.add("console-login", &page(None, None, Vec::new()))?;
    book.add("console-login-unknown", &page(None, None, code))?;
    book.add(
        "console-login-asked",
        &page(Some(asked(two(), false)), None, Vec::new()),
    )?;
    book.add("console-login-full", &page(Some(asked(two(), true)), None, Vec::new()))?;
    book.add(
        "console-login-errors",
        &page(Some(asked(Vec::new(), false)), None, name),
    )?;
    book.add(
        "console-login-approved",
        &page(None, Some(LoginEnd::Approved), Vec::new()),
    )?;
    book.add(
        "console-login-rejected",
        &page(None, Some(LoginEnd::Rejected), Vec::new()),
    )
}

fn agent(texts: &Texts, name: &str, removed_at: Option<Instant>, old_key: bool) -> AgentView {
    let key = |minutes: i64, expires_at: Option<Instant>, device: Option<&str>| KeyView {
        id: format!("{ID}-{minutes}"),
        device: device.map(str::to_owned),
        created_at: ago(minutes),
        expires_at,
    };
    let mut keys = vec![key(300, None, None)];
    keys.extend(old_key.then(|| key(50 * DAY_MINUTES, Some(ahead(180)), None)));
    keys.extend(old_key.then(|| key(20, Some(ahead(90 * DAY_MINUTES)), Some(&texts.name))));
    AgentView {
        id: format!("{ID}-{name}")
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .take(40)
            .collect(),
        name: name.to_owned(),
        description: old_key.then(|| texts.text.clone()),
        wallet_address: old_key.then(|| "0x3fA9c5d04e2B7716c0dE88b1a45F90C2e6D7481b".to_owned()),
        created_at: ago(52 * DAY_MINUTES),
        removed_at,
        keys,
        spending: spent(old_key),
    }
}

fn agents(texts: &Texts) -> AgentsPage {
    let claim = |id: &str, error: Option<&str>| ClaimView {
        id: id.to_owned(),
        name: format!("{}-{id}", texts.name),
        description: Some(texts.text.clone()),
        created_at: ago(166),
        expires_at: ahead(21 * 60),
        phrase: if error.is_some() {
            texts.text.clone()
        } else {
            String::new()
        },
        may_spend: error.is_some(),
        cap: if error.is_some() {
            texts.text.clone()
        } else {
            "2.00".to_owned()
        },
        cap_error: error.map(|_| "Must be dollars from 0 on with at most two decimals".to_owned()),
        error: error.map(str::to_owned),
    };
    let code = |id: &str, left: i64, wrong_tries: u32| CodeView {
        id: id.to_owned(),
        created_at: ago(15 - left),
        expires_at: ahead(left),
        wrong_tries,
    };
    let decided = |end: ClaimEnd, minutes: i64| DecidedClaim {
        name: texts.name.clone(),
        end,
        created_at: ago(minutes + 60),
        ended_at: ago(minutes),
    };
    AgentsPage {
        chrome: person("/console/agents", texts, 5),
        limit: 5,
        agents: vec![
            agent(texts, "tide-gauge", None, false),
            agent(texts, &texts.name, None, true),
            agent(texts, "loess-9", Some(ago(5 * DAY_MINUTES)), false),
        ],
        claims: vec![
            claim("c1", None),
            claim("c2", Some("phrase: another phrase than that of the agent")),
        ],
        decided: vec![
            decided(ClaimEnd::Approved, 500),
            decided(ClaimEnd::Rejected, 3 * DAY_MINUTES),
            decided(ClaimEnd::Expired, 20 * DAY_MINUTES),
        ],
        codes: vec![code("k1", 12, 0), code("k2", 3, 5)],
        create: NewAgentForm {
            name: texts.name.clone(),
            wallet_address: String::new(),
            errors: vec![FieldError::new(
                "name",
                "name: another agent of the service has a name that looks like it",
            )],
        },
        notice: Some("north-pier is approved. Its key works now.".to_owned()),
    }
}
