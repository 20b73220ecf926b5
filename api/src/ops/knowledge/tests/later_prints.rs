//! The vectors of versions that were published without any.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use operators::knowledge::{ChunkVectors, EmbeddedText, Embedder, QuantisedVector, TextRole, UnitPrints, Vector};
use operators::screen::{Cause, Unavailable};

use super::*;
use crate::flow::jobs::JobRunner;
use crate::flow::jobs::later_prints::MakeVectors;
use crate::flow::jobs::prints::ForgetFingerprints;

/// Word in texts that [`TwoVectors`] refuses.
const REFUSED_WORD: &str = "unreadable";

/// An embedder that gives each text two vectors, and none to one with [`REFUSED_WORD`].
#[derive(Debug)]
struct TwoVectors;

#[async_trait]
impl Embedder for TwoVectors {
    fn id(&self) -> &'static str {
        "two"
    }

    fn judge(&self) -> Judge {
        judge()
    }

    fn dimensions(&self) -> usize {
        2
    }

    async fn embed(&self, texts: &[EmbeddedText<'_>], _: TextRole) -> Result<Vec<Vec<Vector>>, Unavailable> {
        if texts.iter().any(|text| text.body.contains(REFUSED_WORD)) {
            return Err(Unavailable {
                reason: Cause::Text,
                resumes_after: None,
            });
        }
        Ok(texts.iter().map(|_| vec![vec![1.0, 0.0], vec![0.0, 1.0]]).collect())
    }
}

/// Returns the job of [`TwoVectors`].
fn two_vectors(world: &World) -> Arc<MakeVectors> {
    let app = &world.service.app;
    let (store, catalog, clock) = (app.store.clone(), app.catalog.clone(), Arc::clone(&app.clock));
    Arc::new(MakeVectors::new(store, catalog, Arc::new(TwoVectors), clock))
}

/// Returns the prints of all versions that have some.
async fn prints(world: &World) -> Vec<UnitPrints> {
    let files = world.service.app.catalog.prints(&HashSet::new()).await.unwrap();
    let lines = files.iter().flat_map(|(_, file)| file.split(|byte| *byte == b'\n'));
    let lines = lines.filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

#[tokio::test]
async fn versions_without_vectors_get_them_once_and_erased_ones_lose_them() {
    let world = World::start().await;
    let app = &world.service.app;
    let first = world.published("One text with 1,204,331 rows.", 60).await;
    let second = world.revised(&first, "Another text with 88,120 rows.").await;
    world.publish(&second, 61).await;
    let rejected = world.submitted("A third text.").await;
    world.reject(&rejected).await;
    let (store, clock) = (app.store.clone(), Arc::clone(&app.clock));
    let vectors = two_vectors(&world);
    let forget = ForgetFingerprints::new(store.clone(), app.catalog.clone(), Arc::clone(&clock));
    let handler = Arc::clone(&vectors);
    let runner = JobRunner::new(store.clone(), clock)
        .with(MakeVectors::KIND, handler)
        .with(ForgetFingerprints::KIND, Arc::new(forget));
    vectors.add(None).await.unwrap();
    assert_eq!(runner.run_due().await, 1);
    let made = prints(&world).await;
    let units: HashSet<String> = made.iter().map(|print| print.unit.to_string()).collect();
    assert_eq!(units, HashSet::from([first.clone(), second.clone()]));
    for print in &made {
        assert_eq!(print.vectors(Some("two")).len(), 2);
        assert_eq!(print.vectors(Some("another")), []);
        assert!(!print.facts().unwrap().is_empty());
    }
    // A second start finds nothing to do.
    vectors.add(None).await.unwrap();
    assert_eq!(runner.run_due().await, 0);
    assert_eq!(prints(&world).await.len(), 2);
    let (knowledge, now) = (app.store.knowledge(), world.service.clock.now());
    assert!(knowledge.erase(first.parse().unwrap(), now).await.unwrap());
    assert_eq!(runner.run_due().await, 1);
    assert_eq!(prints(&world).await.len(), 0);
}

#[tokio::test]
async fn a_version_that_the_embedder_refuses_waits_no_longer_and_is_near_to_nothing() {
    let world = World::start().await;
    let refused = world.published("An unreadable text with 1,204,331 rows.", 60).await;
    let other = world.published("Another text with 88,120 rows.", 60).await;
    let vectors = two_vectors(&world);
    let handler = Arc::clone(&vectors);
    let runner = JobRunner::new(world.service.app.store.clone(), Arc::clone(&world.service.app.clock));
    let runner = runner.with(MakeVectors::KIND, handler);
    vectors.add(None).await.unwrap();
    assert_eq!(runner.run_due().await, 1);
    let of_units: HashMap<String, Vec<QuantisedVector>> = prints(&world)
        .await
        .into_iter()
        .map(|print| (print.unit.to_string(), print.vectors(Some("two"))))
        .collect();
    assert_eq!(of_units[&other].len(), 2);
    // A version without vectors would be waited for at each start.
    assert_eq!(of_units[&refused].len(), 1);
    let mut compared = ChunkVectors::new(2);
    assert!(compared.add(0, &of_units[&refused]));
    for direction in [[1.0, 0.0], [0.0, 1.0], [-0.6, -0.8]] {
        let cosine = compared.best_of_rows(&QuantisedVector::of(&direction), 0..1);
        assert!(cosine.abs() < 0.01, "{cosine}");
    }
    vectors.add(None).await.unwrap();
    assert_eq!(runner.run_due().await, 0);
}

/// The text was read for its vectors before the erasure, and they are put after its job.
#[tokio::test]
async fn vectors_that_are_put_after_an_erasure_are_followed_by_a_job() {
    let world = World::start().await;
    let unit = world.published("One text.", 60).await;
    let (knowledge, now) = (world.service.app.store.knowledge(), world.service.clock.now());
    assert!(knowledge.erase(unit.parse().unwrap(), now).await.unwrap());
    let app = &world.service.app;
    let forget = ForgetFingerprints::new(app.store.clone(), app.catalog.clone(), Arc::clone(&app.clock));
    let runner = JobRunner::new(app.store.clone(), Arc::clone(&app.clock));
    let runner = runner.with(ForgetFingerprints::KIND, Arc::new(forget));
    assert_eq!(runner.run_due().await, 1);
    knowledge
        .vectors_put(vec![unit.parse().unwrap()], "an-embedder", now)
        .await
        .unwrap();
    assert_eq!(runner.run_due().await, 1);
}
