//! Samples of the pages of the console.

use super::checkout::spent;
use super::{Book, Texts, agents, ago, ahead, collectors, owner, person, publish};
use crate::console::{
    AccountView, ActivityPage, ActivityRow, AgentsPage, AppRow, AppsPage, ChangeActor, ConsoleDatasetPage,
    ContributionPage, ContributionRow, ContributionState, ContributionsPage, DatasetFacts, DatasetRow, DatasetsPage,
    DeletionForm, GateTally, JobRow, NewAgentForm, PreviewRowsForm, SessionRow, SettingsPage, TokenRow, UploadRow,
    VerdictKind, VerdictRow, VersionRow,
};
use crate::{Error, FieldError, GateLoss, Instant, RowFlow};

pub(super) const ID: &str = "019a8d10-2c4e-7f11-8a07-b2f0e5d9c314";
pub(super) const DAY_MINUTES: i64 = 24 * 60;

pub(super) fn add(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    agents::add(book, texts)?;
    datasets(book, texts)?;
    contributions(book, texts)?;
    book.add(
        "console-activity",
        &ActivityPage {
            chrome: person("/console/activity", texts, 3),
            rows: activity(texts),
            next: Some("/console/activity?before=1".to_owned()),
            is_later: true,
            jobs: jobs(texts),
        },
    )?;
    book.add("console-collectors", &collectors::some(texts))?;
    book.add("console-settings", &settings(texts, true))?;
    book.add("console-settings-stale", &settings(texts, false))?;
    book.add("console-apps", &apps(texts))
}

fn row(texts: &Texts, minutes: i64, records: u64, state: ContributionState) -> ContributionRow {
    let merged = state == ContributionState::Merged;
    let reason = match state {
        ContributionState::Rejected => Some(texts.text.clone()),
        ContributionState::Held => Some("the judging model does not answer".to_owned()),
        ContributionState::Dead => Some("unprocessable: ended two workers".to_owned()),
        ContributionState::Waiting | ContributionState::Merged => None,
    };
    ContributionRow {
        id: ID.to_owned(),
        dataset: texts.word.clone(),
        agent: texts.name.clone(),
        records,
        state,
        version: merged.then_some(1_242),
        accepted: merged.then(|| records - records / 4),
        reason,
        at: ago(minutes),
    }
}

fn rows(texts: &Texts) -> Vec<ContributionRow> {
    vec![
        row(texts, 2, 84, ContributionState::Merged),
        row(texts, 16, 500, ContributionState::Held),
        row(texts, 38, 500, ContributionState::Rejected),
        row(texts, 72, 84, ContributionState::Waiting),
        row(texts, 240, 500, ContributionState::Dead),
        row(texts, 3 * DAY_MINUTES, 84, ContributionState::Merged),
    ]
}

pub(super) fn activity(texts: &Texts) -> Vec<ActivityRow> {
    let row = |minutes: i64, actor: ChangeActor, operation: &str, subject: Option<&str>| ActivityRow {
        at: ago(minutes),
        actor,
        operation: operation.to_owned(),
        subject: subject.map(str::to_owned),
        request_id: ID.to_owned(),
    };
    vec![
        row(
            1,
            ChangeActor::Agent(texts.name.clone()),
            "create_dataset",
            Some(&texts.word),
        ),
        row(166, ChangeActor::Anonymous, "claim_agent", Some(&texts.name)),
        row(170, ChangeActor::Person, "create_claim_code", None),
        row(
            175,
            ChangeActor::PersonAs(texts.name.clone()),
            "approve_purchase",
            Some(ID),
        ),
        row(
            9 * 60,
            ChangeActor::App(texts.name.clone()),
            "update_dataset",
            Some("sea-surface-temp"),
        ),
        row(12 * DAY_MINUTES, ChangeActor::Service, "expire_claims", None),
    ]
}

fn jobs(texts: &Texts) -> Vec<JobRow> {
    let job = |attempts: u32, last_error: Option<String>, failed_at: Option<Instant>| JobRow {
        kind: "mail".to_owned(),
        due_at: ahead(30),
        attempts,
        last_error,
        failed_at,
    };
    vec![
        job(0, None, None),
        job(3, Some(texts.text.clone()), None),
        job(8, Some("the server refused the address".to_owned()), Some(ago(40))),
    ]
}

pub(super) fn flow(texts: &Texts) -> RowFlow {
    let gate = |name: &str, dropped: u64, refused: u64, held: u64| GateLoss {
        name: name.to_owned(),
        dropped,
        refused,
        held,
    };
    RowFlow {
        rows: 29_824,
        gates: vec![
            gate("contract", 0, 412, 0),
            gate("dedup", 6_208, 0, 0),
            gate("personal-data", 0, 2, 0),
            gate(&texts.gate, 0, 0, 500),
        ],
        waiting: 84,
        rejected: 1_088,
    }
}

fn tallies(texts: &Texts) -> Vec<GateTally> {
    let gate = |gate: &str, rows: u64, dropped: u64, refused: u64| GateTally {
        gate: gate.to_owned(),
        rows,
        passed: rows - dropped - refused,
        dropped,
        refused,
        held: 0,
    };
    vec![
        gate("contract", 500, 0, 3),
        gate("dedup", 497, 12, 0),
        gate("personal-data", 485, 0, 0),
        gate(&texts.gate, 485, 0, 0),
    ]
}

fn datasets(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    let dataset = |slug: &str, title: &str, status: &str, version: u64| DatasetRow {
        slug: slug.to_owned(),
        title: title.to_owned(),
        is_down: false,
        status: status.to_owned(),
        visibility: "public".to_owned(),
        access: "paid".to_owned(),
        version,
        records: version * 676,
        merged_at: (version > 0).then(|| ago(12)),
        waiting: version % 3,
        is_asked: version.is_multiple_of(2),
    };
    book.add(
        "console-datasets",
        &DatasetsPage {
            chrome: person("/console/datasets", texts, 5),
            datasets: vec![
                dataset("tide-levels", "Tide levels, 14 North Sea gauges", "open", 1_242),
                dataset("sea-surface-temp", &texts.text, "paused", 311),
                dataset("gauge-visits", "Visits to gauges", "archived", 0),
                DatasetRow {
                    is_down: true,
                    ..dataset("quay-walls", "Quay walls", "open", 4)
                },
            ],
        },
    )?;
    publish::add(book, texts)?;
    let version = |version: u64, added: u64| VersionRow {
        version,
        contribution: Some(ID.to_owned()),
        agent: texts.name.clone(),
        added,
        records: version * 676,
        root: "83b419ccc5d9ef72d7f35b587261a0f0b1fa6002f5c7dac75de42756b95da43f".to_owned(),
        at: ago(12),
    };
    let upload = |state: &str| UploadRow {
        id: ID.to_owned(),
        state: state.to_owned(),
        bytes: 1_610_612_736,
        parts: 24,
        agent: texts.name.clone(),
        created_at: ago(90),
        expires_at: ahead(270),
    };
    book.add(
        "console-dataset",
        &ConsoleDatasetPage {
            chrome: person("/console/datasets/tide-levels", texts, 5),
            dataset: DatasetFacts {
                slug: texts.word.clone(),
                title: texts.text.clone(),
                status: "open".to_owned(),
                visibility: "public".to_owned(),
                access: "paid".to_owned(),
                license: "CC0-1.0".to_owned(),
                tags: vec!["tides".to_owned(), texts.word.clone()],
                created_by: Some(texts.name.clone()),
                created_at: ago(52 * DAY_MINUTES),
                version: 1_242,
                records: 839_412,
                bytes: Some(50_873_562),
                contributors: 2,
                root: Some("83b419ccc5d9ef72d7f35b587261a0f0b1fa6002f5c7dac75de42756b95da43f".to_owned()),
                merged_at: Some(ago(12)),
                example: Some(r#"{"gauge": "Hook of Holland", "metres": 0.83}"#.to_owned()),
            },
            edit: owner::edit(texts),
            price_window: "24 hours".to_owned(),
            sales: owner::sales(texts),
            growth: owner::growth(),
            versions: vec![version(1_242, 84), version(1_241, 84), version(1_240, 60)],
            contributors: owner::contributors(texts),
            gates: tallies(texts),
            uploads: vec![upload("open"), upload("completed"), upload("expired")],
            contributions: rows(texts),
            preview: Some(PreviewRowsForm {
                rows: texts.word.clone(),
                most: 20,
                is_paid: true,
                is_asked: true,
                errors: vec![FieldError::new("rows", "Must be at most 20.")],
            }),
            deletion: Some(DeletionForm {
                confirm: texts.word.clone(),
                errors: vec![FieldError::new("confirm", "Must be the slug of this dataset.")],
            }),
        },
    )
}

fn contributions(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    book.add(
        "console-contributions",
        &ContributionsPage {
            chrome: person("/console/contributions?state=rejected", texts, 5),
            state: None,
            rows: rows(texts),
            next: Some("/console/contributions?before=1".to_owned()),
            is_later: false,
        },
    )?;
    let verdict = |row: u64, kind: VerdictKind, gate: &str, found: &str| VerdictRow {
        row,
        kind,
        gate: gate.to_owned(),
        code: "type".to_owned(),
        path: "/celsius".to_owned(),
        expected: "number".to_owned(),
        found: found.to_owned(),
    };
    for state in ContributionState::ALL {
        let is_decided = !matches!(state, ContributionState::Waiting | ContributionState::Held);
        let is_rejected = state == ContributionState::Rejected;
        let verdicts = vec![
            verdict(118, VerdictKind::Refuse, "contract", "\"8,41\""),
            verdict(119, VerdictKind::Refuse, "contract", &texts.text),
            verdict(0, VerdictKind::Drop, "dedup", "a row of v311"),
            verdict(1, VerdictKind::Hold, "screen", "no judgement"),
            verdict(2, VerdictKind::Pass, "", ""),
        ];
        book.add(
            &format!("console-contribution-{}", state.word()),
            &ContributionPage {
                chrome: person(&format!("/console/contributions/{ID}"), texts, 5),
                contribution: row(texts, 38, 500, state),
                source: Some(texts.text.clone()),
                decided_at: is_decided.then(|| ago(37)),
                resumes_at: (state == ContributionState::Held).then(|| ahead(70)),
                gates: if is_decided { tallies(texts) } else { Vec::new() },
                verdicts: if is_rejected { verdicts } else { Vec::new() },
                hidden_verdicts: if is_rejected { 10 } else { 0 },
            },
        )?;
    }
    Ok(())
}

fn settings(texts: &Texts, is_fresh: bool) -> SettingsPage {
    let session = |id: &str, current: bool, minutes: i64| SessionRow {
        id: id.to_owned(),
        current,
        created_at: ago(minutes),
        seen_at: ago(minutes / 100),
        expires_at: ahead(20 * DAY_MINUTES),
        address: "203.0.113.24".to_owned(),
        program: if current {
            "Mozilla/5.0 (X11; Linux x86_64; rv:145.0)".to_owned()
        } else {
            texts.text.clone()
        },
    };
    SettingsPage {
        chrome: person("/console/settings", texts, 5),
        account: AccountView {
            id: ID.to_owned(),
            email: texts.email.clone(),
            display_name: texts.name.clone(),
            terms_version: "2026-11-01".to_owned(),
            created_at: ago(52 * DAY_MINUTES),
            verified_at: Some(ago(52 * DAY_MINUTES - 9)),
            adult_stated_at: is_fresh.then(|| ago(52 * DAY_MINUTES - 9)),
        },
        forms: owner::forms(texts, is_fresh),
        sessions: vec![session("s1", true, 300), session("s2", false, 6 * DAY_MINUTES)],
        tokens: vec![
            TokenRow {
                id: "t1".to_owned(),
                label: Some(texts.name.clone()),
                created_at: ago(4 * DAY_MINUTES),
            },
            TokenRow {
                id: "t2".to_owned(),
                label: None,
                created_at: ago(52 * DAY_MINUTES),
            },
        ],
        token_label: texts.word.clone(),
        payout: is_fresh.then(|| "0x3fA9c5d04e2B7716c0dE88b1a45F90C2e6D7481b".to_owned()),
        errors: if is_fresh {
            vec![FieldError::new("label", "Must be one line.")]
        } else {
            Vec::new()
        },
        notice: (!is_fresh).then(|| "The token is revoked.".to_owned()),
    }
}

fn apps(texts: &Texts) -> AppsPage {
    let app = |id: &str, client_id: &str| AppRow {
        id: id.to_owned(),
        client: texts.name.clone(),
        client_id: client_id.to_owned(),
        agent: texts.name.clone(),
        scopes: ["read", "write", "spend"]
            .into_iter()
            .take(if id == "a1" { 3 } else { 2 })
            .map(str::to_owned)
            .collect(),
        spending: spent(true),
        endpoint: "/mcp".to_owned(),
        created_at: ago(2 * DAY_MINUTES),
        used_at: Some(ago(31)),
        expires_at: Some(ahead(28 * DAY_MINUTES)),
    };
    AppsPage {
        chrome: person("/console/apps", texts, 5),
        apps: vec![
            app("a1", "https://fathom.example/oauth/client.json"),
            app("a2", "019a7d20-5b11"),
        ],
        notice: None,
    }
}

/// Adds pages of an operator who has nothing yet.
pub(super) fn add_empty(book: &mut Book) -> Result<(), Error> {
    let texts = Texts::usual();
    let chrome = |path: &str| person(path, &texts, 0);
    book.add(
        "console-agents",
        &AgentsPage {
            chrome: chrome("/console/agents"),
            limit: 5,
            agents: Vec::new(),
            claims: Vec::new(),
            decided: Vec::new(),
            codes: Vec::new(),
            create: NewAgentForm::default(),
            notice: None,
        },
    )?;
    book.add(
        "console-datasets",
        &DatasetsPage {
            chrome: chrome("/console/datasets"),
            datasets: Vec::new(),
        },
    )?;
    book.add(
        "console-contributions",
        &ContributionsPage {
            chrome: chrome("/console/contributions"),
            state: Some(ContributionState::Dead),
            rows: Vec::new(),
            next: None,
            is_later: false,
        },
    )?;
    book.add(
        "console-activity",
        &ActivityPage {
            chrome: chrome("/console/activity"),
            rows: Vec::new(),
            next: None,
            is_later: false,
            jobs: Vec::new(),
        },
    )?;
    book.add("console-collectors", &collectors::none(chrome("/console/collectors")))?;
    book.add(
        "console-apps",
        &AppsPage {
            chrome: chrome("/console/apps"),
            apps: Vec::new(),
            notice: None,
        },
    )
}
