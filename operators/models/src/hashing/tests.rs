use operators::knowledge::QuantisedVector;
use proptest::prelude::*;

use super::*;

fn cosine(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

fn likeness(one: &str, other: &str) -> f32 {
    cosine(
        &HashingEmbedder::document("", one),
        &HashingEmbedder::document("", other),
    )
}

const POOL: &str = "The connection pool of Postgres ran out at 200 clients. Raising max_connections to 400 raised the \
                    p99 latency from 12 ms to 95 ms, because each backend takes 9 MB.";
const POOL_REWORDED: &str = "Postgres connection pools run out with 200 clients; max_connections = 400 raises latency \
                             (p99) to 95 ms since every backend needs 9 MB.";
const SOUP: &str = "Boil the noodles for eight minutes and add salt, garlic and a spoon of sesame oil.";

#[test]
fn texts_about_one_thing_are_nearer_than_others() {
    assert!(likeness(POOL, POOL) > 0.999);
    assert!(likeness(POOL, POOL_REWORDED) > 0.4, "{}", likeness(POOL, POOL_REWORDED));
    assert!(likeness(POOL, SOUP) < 0.2, "{}", likeness(POOL, SOUP));
    let (one, other) = ("지하철 혼잡도를 측정했다", "지하철의 혼잡도 측정 결과");
    assert!(likeness(one, other) > likeness(one, "커피 원두 가격 비교") + 0.3);
}

#[test]
fn other_forms_of_a_word_are_near() {
    assert!(likeness("measuring latencies", "measured latency") > 0.5);
    assert!(likeness("kubernetes", "kubernets") > likeness("kubernetes", "postgres"));
}

#[test]
fn rare_words_weigh_more_in_a_query() {
    let text = HashingEmbedder::document("", "vacuum");
    let rare = |word: &str| if word == "vacuum" { 6.0 } else { 1.0 };
    let weighed = HashingEmbedder::query("table vacuum", &rare);
    let plain = HashingEmbedder::query("table vacuum", &|_| 1.0);
    assert!(cosine(&weighed, &text) > cosine(&plain, &text) + 0.05);
}

/// Vectors are kept, so a change of their values needs a new id.
#[test]
fn the_vector_of_a_text_does_not_change() {
    let vector = QuantisedVector::of(&HashingEmbedder::document("Pool sizes", POOL));
    let bytes: Vec<u8> = vector.bytes.iter().map(|byte| byte.cast_unsigned()).collect();
    assert_eq!(
        xxh3_64_with_seed(&bytes, 0),
        GOLDEN,
        "{:#x}",
        xxh3_64_with_seed(&bytes, 0)
    );
}

const GOLDEN: u64 = 0xd7a8_02f7_5557_7f15;

proptest! {
    #[test]
    fn every_vector_has_length_one(title in "\\PC{0,20}", body in "\\PC{0,60}|[a-z가-힣0-9 ]{0,60}") {
        let vector = HashingEmbedder::document(&title, &body);
        prop_assert_eq!(vector.len(), HASHED_DIMENSIONS);
        prop_assert!((cosine(&vector, &vector) - 1.0).abs() < 1e-4);
    }
}
