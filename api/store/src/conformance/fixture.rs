//! Fixtures of the scenarios.

use std::sync::Arc;

use tokio::sync::Barrier;
use tokio::task::JoinSet;
use types::{AgentId, ContributionId, DatasetId, OperatorId, Timestamp, Version};

use crate::{
    Access, AgentCreated, Mail, NewAgent, NewContribution, NewJob, NewOperator, NewProject, OperatorCreated, Options,
    OutcomeRow, ProjectCreated, Resolution, Store, SubmitOutcome, Visibility,
};

/// The instant `seconds` after the beginning of the scenarios.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000 + seconds * 1_000_000)
}

pub(crate) async fn open(url: &str) -> Store {
    Store::connect(url, Options::default()).await.unwrap()
}

/// A hash that no other call returns.
pub(crate) fn fresh_hash() -> [u8; 32] {
    *blake3::hash(ContributionId::new(at(0)).as_bytes()).as_bytes()
}

/// A job that no other call returns.
pub(crate) fn job(now: Timestamp) -> NewJob {
    NewJob {
        id: ContributionId::new(now).to_string(),
        kind: "mail".to_owned(),
        dedupe: None,
        operator: None,
        payload: "{}".to_owned(),
        due_at: now,
        now,
    }
}

/// A letter with its job.
pub(crate) fn mail(now: Timestamp, budget: Option<u32>) -> Mail {
    Mail {
        job: job(now),
        day: now.day(),
        budget,
    }
}

pub(crate) fn new_operator(email: &str) -> NewOperator {
    NewOperator {
        id: OperatorId::new(at(0)),
        email: email.to_owned(),
        display_name: "Ada".to_owned(),
        terms_version: "2026-11".to_owned(),
        token_hash: fresh_hash(),
        now: at(0),
    }
}

pub(crate) fn new_agent(operator: OperatorId, name: &str) -> NewAgent {
    NewAgent {
        id: AgentId::new(at(0)),
        operator,
        name: name.to_owned(),
        skeleton: name.to_lowercase(),
        wallet_address: None,
        description: None,
        key_hash: fresh_hash(),
        now: at(0),
    }
}

pub(crate) fn new_project(operator: OperatorId, slug: &str) -> NewProject {
    NewProject {
        id: DatasetId::new(at(0)),
        slug: slug.to_owned(),
        title: format!("Title of {slug}"),
        readme: "What the records are and where they come from.".to_owned(),
        contract_json: r#"{"fields":[{"name":"n","type":"integer"}]}"#.to_owned(),
        license: "CC0-1.0".to_owned(),
        tags: vec!["weather".to_owned(), "daily".to_owned()],
        access: Access::Public,
        visibility: Visibility::Public,
        price_micro: None,
        trial_sale: false,
        preview_rows: Some(20),
        operator,
        created_by_agent: None,
        now: at(0),
    }
}

pub(crate) async fn operator(store: &Store, email: &str) -> OperatorId {
    let new = new_operator(email);
    let id = new.id;
    assert_eq!(store.operator_create(new).await.unwrap(), OperatorCreated::Created);
    id
}

pub(crate) async fn agent(store: &Store, operator: OperatorId, name: &str) -> AgentId {
    let new = new_agent(operator, name);
    let id = new.id;
    assert_eq!(store.agent_create(new, u32::MAX).await.unwrap(), AgentCreated::Created);
    id
}

pub(crate) async fn project(store: &Store, new: NewProject) -> DatasetId {
    let id = new.id;
    assert_eq!(
        store.project_create(new, u32::MAX).await.unwrap(),
        ProjectCreated::Created
    );
    id
}

/// An operator with an agent and an open public project.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    pub(crate) operator: OperatorId,
    pub(crate) agent: AgentId,
    pub(crate) project: DatasetId,
}

impl World {
    pub(crate) async fn new(store: &Store) -> Self {
        let operator = operator(store, "ada@example.org").await;
        Self {
            operator,
            agent: agent(store, operator, "collector").await,
            project: project(store, new_project(operator, "weather")).await,
        }
    }

    /// A contribution without key and allowance.
    pub(crate) fn contribution(&self) -> NewContribution {
        NewContribution {
            id: ContributionId::new(at(0)),
            project: self.project,
            agent: self.agent,
            operator: self.operator,
            source_declaration: Some("measured on the roof".to_owned()),
            rows: 3,
            private: false,
            paused: false,
            submission: b"{\"generation\":0}".to_vec(),
            now: at(0),
            idempotency: None,
            allowance: None,
            first_sweep: at(60),
        }
    }

    /// Acknowledges `count` contributions.
    pub(crate) async fn submitted(&self, store: &Store, count: usize) -> Vec<ContributionId> {
        let mut ids = Vec::with_capacity(count);
        for _ in 0..count {
            let new = self.contribution();
            ids.push(new.id);
            assert_eq!(store.contribution_submit(new).await.unwrap(), SubmitOutcome::Submitted);
        }
        ids
    }
}

pub(crate) fn outcome(id: ContributionId, resolution: Resolution) -> OutcomeRow {
    OutcomeRow {
        id,
        generation: 0,
        at: at(10),
        resolution,
        tallies: "[]".to_owned(),
        verdicts: r#"[{"row":1}]"#.to_owned(),
    }
}

pub(crate) fn merged(version: u64) -> Resolution {
    Resolution::Merged {
        version: Version(version),
        accepted: 2,
        record_count: 2 * version,
        root: "ab".repeat(32),
    }
}

pub(crate) fn rejected(code: &str) -> Resolution {
    Resolution::Rejected {
        code: code.to_owned(),
        message: "Not a record is new.".to_owned(),
    }
}

pub(crate) fn waiting(resumes_after: Option<i64>) -> Resolution {
    Resolution::Waiting {
        reason: "budget".to_owned(),
        resumes_after: resumes_after.map(at),
    }
}

/// Runs `racers` at the same instant, every other one on a handle of its own, and returns what each got.
pub(crate) async fn race<T, Racer, Run>(stores: [Store; 2], racers: usize, run: Run) -> Vec<T>
where
    T: Send + 'static,
    Racer: Future<Output = T> + Send + 'static,
    Run: Fn(Store, usize) -> Racer,
{
    let barrier = Arc::new(Barrier::new(racers));
    let mut racing = JoinSet::new();
    for number in 0..racers {
        let racer = run(stores[number % 2].clone(), number);
        let barrier = Arc::clone(&barrier);
        racing.spawn(async move {
            barrier.wait().await;
            racer.await
        });
    }
    racing.join_all().await
}
