//! Publishing over a table that cannot be read as a whole.

use std::sync::atomic::{AtomicU32, Ordering};

use catalog::storage::DurableLocal;
use messages::{BASE_FORMAT, UnitText};
use operators::knowledge::Fingerprint;
use serde_json::json;
use tempfile::TempDir;
use types::clock::ManualClock;
use types::knowledge::Axes;
use types::unit::{Judge, UnitScores};
use types::vocabulary::Language;
use types::{AgentId, OperatorId, UnitId};

use super::*;

const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

/// A clock that stops the worker at the third look. A publisher looks once for each try.
#[derive(Debug, Default)]
struct StopsAtThird {
    looks: AtomicU32,
    stop: CancellationToken,
}

impl Clock for StopsAtThird {
    fn now(&self) -> Timestamp {
        let looks = self.looks.fetch_add(1, Ordering::SeqCst) + 1;
        assert!(
            looks < 20,
            "the publisher tries again and again without looking if it is to stop"
        );
        if looks == 3 {
            self.stop.cancel();
        }
        NOW
    }
}

fn passed() -> Reviewed {
    let id = UnitId::new(NOW);
    let text = UnitText {
        title: "A title".to_owned(),
        body: "A body".to_owned(),
        category: "performance-tuning".to_owned(),
        source_declaration: "Measured by us".to_owned(),
    };
    let candidate = Candidate {
        print: Fingerprint::of(&text.body),
        vectors: Vec::new(),
        near: None,
        scores: UnitScores::from(Axes::of_tenths([70; 4])),
        judge: Judge::heuristic("scripted"),
        language: Language::English,
        seen: 0,
    };
    Reviewed {
        submission: UnitSubmission {
            format: BASE_FORMAT,
            unit: id,
            chain: id,
            predecessor: None,
            generation: 0,
            agent: AgentId::new(NOW),
            operator: OperatorId::new(NOW),
            submitted_at: NOW,
            text,
            origin: None,
        },
        entries: Vec::new(),
        verdict: Verdict::Pass(Box::new(candidate)),
    }
}

/// Puts a row of the version as a newer build might: in a language that this one does not know.
async fn put_unreadable_row(catalog: &Catalog, reviewed: &Reviewed) {
    let Verdict::Pass(candidate) = &reviewed.verdict else {
        panic!("it passed")
    };
    let mut row = candidate.row(&reviewed.submission, NOW, None);
    row["language"] = json!("new");
    let contract = platform::contract().unwrap();
    let mut table = catalog.table(platform::KNOWLEDGE, &contract).await.unwrap();
    let guard = ContributionId::from_bytes(*reviewed.submission.unit.as_bytes());
    let batch = Arc::new(Batch::decode(&contract, &[row]));
    let mut prepared = PreparedVersion::of_batch(guard, reviewed.submission.agent, batch);
    let committed = table.commit(&mut prepared, NOW, |_| Value::Null).await.unwrap();
    assert!(matches!(committed, CommitOutcome::Committed(_)));
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_waited_for() {
    let dir = TempDir::new().unwrap();
    let objects = Arc::new(DurableLocal::open(dir.path().join("tables")).unwrap());
    let catalog = Catalog::open(objects, dir.path().join("keys"), Arc::new(ManualClock::at(NOW))).unwrap();
    let reviewed = passed();
    put_unreadable_row(&catalog, &reviewed).await;
    let mut publisher = Publisher::open(&catalog, None).await.unwrap();
    let clock = StopsAtThird::default();
    let outcomes = publisher.publish(vec![reviewed], &catalog, &clock, &clock.stop).await;
    // The version is neither published again nor rejected.
    assert!(outcomes.unwrap().is_none());
    assert_eq!(clock.looks.load(Ordering::SeqCst), 3);
    let rows = catalog.snapshot(platform::KNOWLEDGE, None).await.unwrap().unwrap();
    assert_eq!(rows.record_count(), 1);
}
