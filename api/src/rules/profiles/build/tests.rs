use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use serde_json::json;
use types::{AgentId, ContributionId, DatasetId, Timestamp};

use super::*;
use crate::testing::Service;

const TERMS: DocumentTerms = DocumentTerms {
    access: Access::Public,
    visibility: Visibility::Public,
    preview_rows: Some(20),
};

/// A service with a dataset of one large version and two small ones.
async fn service() -> (Service, DatasetId) {
    let service = Service::start().await;
    let token = service.operator().await;
    service.project(&token, "names", &json!({})).await;
    for names in [0..70_000, 70_000..70_010, 70_010..70_020] {
        let records: Vec<Value> = names.map(|number| json!({"name": format!("n{number}")})).collect();
        let now = service.app.clock.now();
        let (contribution, agent) = (ContributionId::new(now), AgentId::new(now));
        service
            .merged_in_the_table_only("names", contribution, agent, &records)
            .await;
    }
    let projects = service.app.store.check_projects().await.unwrap();
    (service, projects[0].id)
}

async fn begun(catalog: &Catalog, dataset: DatasetId) -> BegunProfile {
    let snapshot = catalog.snapshot(dataset, None).await.unwrap().unwrap();
    let begun = BegunProfile::begin(snapshot, SamplingKey::new([7; 32]), &CancellationToken::new()).await;
    begun.unwrap().unwrap()
}

async fn built(catalog: &Catalog, dataset: DatasetId) -> NewProfile {
    let begun = begun(catalog, dataset).await;
    begun.finish(TERMS, &CancellationToken::new()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_profile_depends_on_the_rows_and_on_no_sketch() {
    let (service, dataset) = service().await;
    let catalog = &service.app.catalog;
    assert_eq!(begun(catalog, dataset).await.unread_rows(), 70_020);
    let first = built(catalog, dataset).await;
    assert_eq!(first.records, 70_020);
    assert!(first.sketch_bytes > 0);
    // Now only the small parts are read.
    assert_eq!(begun(catalog, dataset).await.unread_rows(), 20);
    let folder = service.tables().join(dataset.to_string()).join("_sluice");
    let sketches = || {
        let entries = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let mut found: Vec<_> = entries
            .filter(|path| path.to_string_lossy().contains("/profile-1-"))
            .collect();
        found.sort();
        found
    };
    let kept = sketches();
    assert_eq!(kept.len(), 1);
    let bytes = std::fs::read(&kept[0]).unwrap();
    let with_sketch = built(catalog, dataset).await;
    std::fs::write(&kept[0], &bytes[1..]).unwrap();
    let of_damaged = built(catalog, dataset).await;
    assert_eq!(std::fs::read(&kept[0]).unwrap(), bytes);
    std::fs::remove_file(&kept[0]).unwrap();
    let again = built(catalog, dataset).await;
    assert_eq!(sketches(), kept);
    for other in [with_sketch, of_damaged, again] {
        assert_eq!((&other.figures, &other.preview), (&first.figures, &first.preview));
        assert_eq!(
            (other.root.as_str(), other.sketch_bytes > 0),
            (first.root.as_str(), true)
        );
    }
    // A sketch that another key sampled is of no use.
    let snapshot = catalog.snapshot(dataset, None).await.unwrap().unwrap();
    let other = BegunProfile::begin(snapshot, SamplingKey::new([8; 32]), &CancellationToken::new())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(other.unread_rows(), 70_020);
}

/// Counts the bytes of sketches that this thread has merged.
#[derive(Default)]
struct MergedHere(Arc<AtomicU64>);

impl Recorder for MergedHere {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        if key.name() == metric::SKETCH_BYTES {
            Counter::from_arc(Arc::clone(&self.0))
        } else {
            Counter::noop()
        }
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[tokio::test]
async fn stored_sketches_are_small_and_never_merged_on_a_thread_that_serves_calls() {
    let (service, dataset) = service().await;
    let catalog = &service.app.catalog;
    let stored = built(catalog, dataset).await.sketch_bytes;
    let here = MergedHere::default();
    let begun = {
        let _counted = metrics::set_default_local_recorder(&here);
        begun(catalog, dataset).await
    };
    assert_eq!(begun.unread_rows(), 20, "the stored sketch was merged");
    assert_eq!(here.0.load(Ordering::Relaxed), 0);
    let whole = begun.merged.encode().len() as u64;
    assert!(stored < whole * 9 / 10, "{stored} of {whole}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn preview_rows_are_records_at_their_places() {
    let (service, dataset) = service().await;
    let built = built(&service.app.catalog, dataset).await;
    let rows: Vec<RankedRow> = serde_json::from_str(&built.preview).unwrap();
    assert_eq!(rows.len(), 100);
    for row in &rows {
        assert_eq!(row.row["name"], format!("n{}", row.offset));
    }
    let places: std::collections::BTreeSet<u64> = rows.iter().map(|row| row.offset).collect();
    assert_eq!(places.len(), 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_that_nobody_waits_for_ends() {
    let (service, dataset) = service().await;
    let stop = CancellationToken::new();
    stop.cancel();
    let stopped = begun(&service.app.catalog, dataset).await.finish(TERMS, &stop).await;
    assert!(matches!(stopped, Err(BuildError::Stopped)), "{stopped:?}");
}

#[tokio::test]
async fn a_table_with_another_root_is_not_built() {
    let (service, dataset) = service().await;
    let catalog = &service.app.catalog;
    let version = types::Version(3);
    let lost = snapshot_of(catalog, dataset, version, &"0".repeat(64)).await;
    assert!(matches!(lost, Err(catalog::Error::HistoryLost { .. })), "{lost:?}");
    let later = snapshot_of(catalog, dataset, types::Version(4), "").await;
    assert!(later.unwrap().is_none());
    let none = DatasetId::new(Timestamp::from_micros(1));
    assert!(snapshot_of(catalog, none, version, "").await.unwrap().is_none());
}
