//! The prints of an erased unit after its job, and after an outcome that comes late.

use std::collections::HashSet;
use std::sync::Arc;

use super::*;
use crate::flow::jobs::JobRunner;
use crate::flow::jobs::prints::ForgetFingerprints;

struct Prints {
    world: World,
    runner: JobRunner,
}

impl Prints {
    async fn start() -> Self {
        let world = World::start().await;
        let app = &world.service.app;
        let handler = ForgetFingerprints::new(app.store.clone(), app.catalog.clone(), Arc::clone(&app.clock));
        let runner = JobRunner::new(app.store.clone(), Arc::clone(&app.clock));
        Self {
            runner: runner.with(ForgetFingerprints::KIND, Arc::new(handler)),
            world,
        }
    }

    /// Stores prints as a worker does that publishes these versions together.
    async fn put(&self, units: &[&str]) {
        let lines: Vec<_> = units
            .iter()
            .map(|unit| json!({"unit": unit}).to_string() + "\n")
            .collect();
        let catalog = &self.world.service.app.catalog;
        catalog
            .put_prints(units[0].parse().unwrap(), lines.concat().into())
            .await
            .unwrap();
    }

    async fn printed(&self) -> Vec<String> {
        let files = self.world.service.app.catalog.prints(&HashSet::new()).await.unwrap();
        let lines = files.iter().flat_map(|(_, file)| file.split(|byte| *byte == b'\n'));
        let units = lines.filter(|line| !line.is_empty()).map(|line| {
            let line: Value = serde_json::from_slice(line).unwrap();
            line["unit"].as_str().unwrap().to_owned()
        });
        units.collect()
    }

    async fn erase(&self, unit: &str) {
        let (knowledge, now) = (self.world.service.app.store.knowledge(), self.world.service.clock.now());
        assert!(knowledge.erase(unit.parse().unwrap(), now).await.unwrap());
    }
}

#[tokio::test]
async fn prints_of_an_erased_unit_are_gone_after_its_job() {
    let prints = Prints::start().await;
    let erased = prints.world.submitted("One text.").await;
    let kept = prints.world.submitted("Another text.").await;
    prints.put(&[&erased, &kept]).await;
    prints.erase(&erased).await;
    assert_eq!(prints.runner.run_due().await, 1);
    assert_eq!(prints.printed().await, [kept]);
    assert_eq!(prints.runner.run_due().await, 0);
}

/// A worker that had the text before the erasure publishes it afterwards.
#[tokio::test]
async fn prints_that_are_put_late_are_gone_after_their_outcome() {
    let prints = Prints::start().await;
    let erased = prints.world.submitted("One text.").await;
    prints.erase(&erased).await;
    assert_eq!(prints.runner.run_due().await, 1);
    prints.put(&[&erased]).await;
    assert!(!prints.world.apply(&erased, resolution(60)).await);
    assert_eq!(prints.runner.run_due().await, 1);
    assert_eq!(prints.printed().await, Vec::<String>::new());
}
