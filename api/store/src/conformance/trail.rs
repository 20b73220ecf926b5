//! Scenarios about the audit trail and the counts of limits.

use types::vocabulary::ActorKind;
use types::{AgentId, OperatorId};

use super::fixture::{at, job, new_agent, open, operator, race};
use crate::{AgentCreated, AuditEntry, Counted, Event, Store};

const LIMIT: u32 = 10;

fn entry(id: &str, operator: OperatorId) -> AuditEntry {
    AuditEntry {
        id: id.to_owned(),
        at: at(1),
        operator: Some(operator),
        actor_kind: ActorKind::Agent,
        actor: Some(AgentId::new(at(0)).to_string()),
        operation: "create_agent".to_owned(),
        subject: Some("tide-bot".to_owned()),
        request_id: "r".to_owned(),
    }
}

/// A change leaves one row, however many transactions its handle writes; the operator reads it, newest first.
pub async fn a_change_leaves_its_row(url: &str) {
    let store = open(url).await;
    let (one, two) = (
        operator(&store, "one@example.org").await,
        operator(&store, "two@example.org").await,
    );
    let first = store.audited(entry("a", one));
    assert!(first.flow().job_add(job(at(0))).await.unwrap());
    assert!(first.flow().job_add(job(at(0))).await.unwrap());
    assert!(store.audited(entry("b", one)).flow().job_add(job(at(0))).await.unwrap());
    let flow = store.flow();
    let ids = async |before| -> Vec<String> {
        let rows = flow.audit_of(one, before, 9).await.unwrap();
        rows.into_iter().map(|row| row.id).collect()
    };
    assert_eq!(ids(None).await, ["b", "a"]);
    assert_eq!(ids(Some("b")).await, ["a"]);
    assert_eq!(flow.audit_of(two, None, 9).await.unwrap(), []);
}

/// A change that is undone leaves no row.
pub async fn an_undone_change_leaves_no_row(url: &str) {
    let store = open(url).await;
    let operator = operator(&store, "one@example.org").await;
    let audited = store.audited(entry("a", operator));
    let created = audited.agent_create(new_agent(operator, "bob"), 0).await;
    assert_eq!(created.unwrap(), AgentCreated::LimitReached);
    assert_eq!(store.flow().audit_of(operator, None, 9).await.unwrap(), []);
}

/// A change whose row the database refuses is undone.
pub async fn a_change_without_its_row_is_undone(url: &str) {
    let store = open(url).await;
    let operator = operator(&store, "one@example.org").await;
    // The store refuses a NUL, which not every engine keeps.
    let refused = AuditEntry {
        request_id: "a\0b".to_owned(),
        ..entry("a", operator)
    };
    let new = new_agent(operator, "bob");
    let hash = new.key_hash;
    let created = store.audited(refused).agent_create(new, 5).await;
    assert!(created.is_err(), "{created:?}");
    assert_eq!(store.accounts().principal(&hash, at(2)).await.unwrap(), None);
}

fn event(window: i64) -> Event {
    Event {
        rule: "sign_ups",
        subject: "0123".to_owned(),
        window,
        ends_at: at(7_200),
        count: 1,
    }
}

/// Of many events at once exactly the limit is admitted, on several handles.
pub async fn a_count_is_exact_under_contention(url: &str) {
    let stores = [open(url).await, open(url).await];
    let counted = race(stores, 40, |store, _| async move {
        let take = store.counter_take(event(1), |counted| counted.used < LIMIT);
        take.await.unwrap()
    })
    .await;
    let admitted = counted.iter().filter(|counted| counted.used < LIMIT).count();
    assert_eq!(admitted, LIMIT as usize);
}

/// Counts move on with their windows, outlive the handle, and are deleted when they no longer matter.
pub async fn counts_follow_their_windows(url: &str) {
    let store = open(url).await;
    let take = async |store: &Store, window| store.counter_take(event(window), |_| true).await.unwrap();
    for (window, used, before) in [(5, 0, 0), (5, 1, 0), (6, 0, 2), (5, 1, 2), (6, 2, 2), (8, 0, 0)] {
        assert_eq!(take(&store, window).await, Counted { used, before }, "{window}");
    }
    store.close().await;
    let again = open(url).await;
    assert_eq!(take(&again, 8).await, Counted { used: 1, before: 0 });
    assert_eq!(again.counters_prune(at(7_199)).await.unwrap(), 0);
    assert_eq!(again.counters_prune(at(7_200)).await.unwrap(), 1);
    assert_eq!(take(&again, 8).await, Counted { used: 0, before: 0 });
}
