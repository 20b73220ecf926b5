//! The vectors of versions that were published without any.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use operators::knowledge::{EmbeddedText, Embedder, TextRole, UnitPrints, Vector};
use operators::screen::Unavailable;

use super::*;
use crate::flow::jobs::JobRunner;
use crate::flow::jobs::later_prints::MakeVectors;
use crate::flow::jobs::prints::ForgetFingerprints;

/// An embedder that gives each text two vectors.
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
        Ok(texts.iter().map(|_| vec![vec![1.0, 0.0], vec![0.0, 1.0]]).collect())
    }
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
    let embedder = Arc::new(TwoVectors);
    let vectors = Arc::new(MakeVectors::new(
        store.clone(),
        app.catalog.clone(),
        embedder,
        Arc::clone(&clock),
    ));
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
