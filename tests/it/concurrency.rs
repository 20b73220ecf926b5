//! One dataset never waits for another, and many at once agree.

use std::time::Instant;

use serde_json::{Value, json};
use tests::World;
use tests::world::{all_data, batch, contribute, decided, records};

use crate::binary;

/// Records with long texts: expensive to judge, close to the largest body.
fn heavy(series: usize) -> Vec<Value> {
    let text = "the quick brown fox jumps over the lazy dog; ".repeat(170);
    (0..500)
        .map(|row| json!({"station": format!("{series} {row} {text}"), "sample": row}))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_dataset_does_not_delay_another() {
    let world = World::start(binary()).await;
    let (busy, quick) = (world.project().await, world.project().await);
    let path = format!("/projects/{busy}/contribute");
    let mut pending = Vec::new();
    for series in 0..12 {
        let answer = world.agent.http.post(&path, &batch(&heavy(series))).await.expect(201);
        pending.push(answer.text("/id").to_owned());
    }
    let begun = Instant::now();
    let merged = contribute(&world.agent.http, &quick, &records("q", 5)).await;
    assert_eq!(merged.text("/status"), "merged");
    let quick_took = begun.elapsed();
    let mut still_open = 0;
    for id in &pending {
        let contribution = world
            .agent
            .http
            .get(&format!("/projects/{busy}/contributions/{id}"))
            .await;
        still_open += usize::from(contribution.text("/status") != "merged");
    }
    for id in &pending {
        assert_eq!(decided(&world.agent.http, &busy, id).await.text("/status"), "merged");
    }
    let busy_took = begun.elapsed();
    assert!(
        still_open * 2 >= pending.len() && quick_took * 3 < busy_took,
        "{quick_took:?} for the small batch, {busy_took:?} for the large ones, {still_open} of which were open after it"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_sent_at_once_to_many_datasets_are_all_merged_once() {
    const DATASETS: usize = 6;
    const BATCHES: usize = 8;
    let world = World::start(binary()).await;
    let mut slugs = Vec::new();
    for _ in 0..DATASETS {
        slugs.push(world.project().await);
    }
    let contributions = (0..DATASETS * BATCHES).map(|number| {
        let (http, slug) = (world.agent.http.clone(), slugs[number % DATASETS].clone());
        // Neighbouring batches share half of their records.
        let rows = records("shared", 10 * (number / DATASETS) + 20).split_off(10 * (number / DATASETS));
        async move { contribute(&http, &slug, &rows).await }
    });
    let outcomes = futures_util::future::join_all(contributions).await;
    for slug in &slugs {
        let read = world
            .agent
            .http
            .get(&format!("/projects/{slug}/data?limit=1000"))
            .await
            .expect(200);
        let items = read.body["items"].as_array().unwrap();
        let mut samples: Vec<_> = items.iter().map(|item| item["sample"].as_u64().unwrap()).collect();
        samples.sort_unstable();
        let whole: Vec<u64> = (0..(BATCHES as u64) * 10 + 10).collect();
        assert_eq!(samples, whole, "{slug}");
    }
    let accepted: u64 = outcomes
        .iter()
        .filter_map(|outcome| outcome.body["acceptedCount"].as_u64())
        .sum();
    assert_eq!(accepted, (DATASETS * (BATCHES * 10 + 10)) as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_of_one_dataset_are_gapless_however_many_send() {
    let world = World::start(binary()).await;
    let slug = world.project().await;
    let contributions = (0..40).map(|number| {
        let (http, slug) = (world.agent.http.clone(), slug.clone());
        async move { contribute(&http, &slug, &records(&format!("s{number}"), 5)).await }
    });
    let outcomes = futures_util::future::join_all(contributions).await;
    let mut versions: Vec<_> = outcomes
        .iter()
        .map(|outcome| outcome.body["mergedVersion"].as_u64().unwrap())
        .collect();
    versions.sort_unstable();
    assert_eq!(versions, (1..=40).collect::<Vec<_>>());
    for outcome in &outcomes {
        let version = outcome.body["mergedVersion"].as_u64().unwrap();
        assert_eq!(outcome.body["recordCount"], version * 5);
        assert_eq!(
            all_data(&world.agent.http, &slug, version).await.len() as u64,
            version * 5
        );
    }
}
