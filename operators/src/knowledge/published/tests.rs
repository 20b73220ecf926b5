use types::Timestamp;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::*;

/// Words of a fixed sequence.
fn words(seed: u64, from: u64, to: u64) -> String {
    let word = |at: u64| format!("{:x}", xxh3_64_with_seed(&at.to_le_bytes(), seed) >> 36);
    (from..to).map(word).collect::<Vec<_>>().join(" ")
}

fn unit() -> UnitId {
    UnitId::new(Timestamp::from_micros(0))
}

/// Publishes `body` as a version of `chain`.
fn publish(units: &mut PublishedUnits, chain: UnitId, body: &str, vector: &[f32]) -> UnitId {
    let print = Fingerprint::of(body);
    let unit = unit();
    units.add(PublishedUnit {
        unit,
        chain,
        operator: None,
        text_hash: print.text_hash,
        paragraphs: print.paragraphs.iter().map(|(hash, _)| *hash).collect(),
        signature: Some(print.signature),
        details: print.details,
        facts: print.facts,
        vectors: vec![QuantisedVector::of(vector)],
    });
    unit
}

fn copy(units: &PublishedUnits, chain: UnitId, body: &str) -> Option<CopiedText> {
    units.find_copy(chain, &Fingerprint::of(body)).copy
}

#[test]
fn a_copy_is_found_in_other_chains_and_never_in_its_own() {
    let mut units = PublishedUnits::default();
    let (chain, other) = (unit(), unit());
    let body = words(1, 0, 300);
    let published = publish(&mut units, chain, &body, &[1.0, 0.0]);
    assert!(units.contains(published));
    assert_eq!(
        copy(&units, other, &body.to_uppercase()),
        Some(CopiedText::Exact(published))
    );
    assert_eq!(copy(&units, chain, &body), None);
    // A copy in a second chain makes the text of the first known to both.
    let second = publish(&mut units, other, &body, &[1.0, 0.0]);
    assert_eq!(copy(&units, chain, &body), Some(CopiedText::Exact(second)));
    let edited = format!("{} {}", words(1, 0, 290), words(2, 0, 10));
    assert!(matches!(copy(&units, unit(), &edited), Some(CopiedText::Nearly(_, share)) if share >= 0.78));
    assert_eq!(copy(&units, unit(), &words(3, 0, 300)), None);
}

#[test]
fn edited_texts_are_found_and_unrelated_ones_are_no_candidates() {
    let mut units = PublishedUnits::default();
    for seed in 0..200 {
        publish(&mut units, unit(), &words(seed, 0, 150), &[1.0, 0.0]);
    }
    let mut found = 0;
    for seed in 0..200 {
        // Twelve of 150 words are others: a Jaccard of about 0.85.
        let edited = format!("{} {}", words(seed, 0, 138), words(seed + 5_000, 0, 12));
        found += u32::from(copy(&units, unit(), &edited).is_some());
        let unrelated = Fingerprint::of(&words(seed + 9_000, 0, 150));
        let nearest = units.nearest_by_shingles(unit(), &unrelated.signature, &unrelated.details);
        assert_eq!(nearest.equal, 0);
    }
    assert!(found >= 190, "{found} of 200");
}

/// A notice of a release, which differs from that of another release in its figures only.
fn notice(release: u32) -> String {
    let (before, build, hash) = (release - 1, release * 37, release * 7_919);
    format!(
        "The release 1.{release} is out for testing before it is published on Thursday. You can try it with the command \
         install 1.{before}-beta or 1.{release}-beta and compare the two on your own project. The build {build} was made \
         from the commit {hash}a, and nothing changed in it since. Please tell us about any regression that you find in \
         your own code, with the version of the compiler, the machine and the command that you ran, so that we can \
         reproduce it before the release is published for all."
    )
}

#[test]
fn a_notice_with_other_figures_is_no_copy_and_one_with_the_same_is() {
    let mut units = PublishedUnits::default();
    let published = publish(&mut units, unit(), &notice(40), &[1.0, 0.0]);
    let next = units.find_copy(unit(), &Fingerprint::of(&notice(71)));
    assert!(next.share >= 0.78, "{}", next.share);
    assert_eq!(next.copy, None);
    let edited = notice(40).replace("Please tell us about", "We would like to hear of");
    assert!(matches!(copy(&units, unit(), &edited), Some(CopiedText::Nearly(unit, _)) if unit == published));
}

#[test]
fn paragraphs_of_others_are_found_in_a_padded_text() {
    let mut units = PublishedUnits::default();
    let body = format!("{}\n\n{}", words(1, 0, 60), words(2, 0, 60));
    publish(&mut units, unit(), &body, &[1.0, 0.0]);
    let padded = format!("{body}\n\n{}", words(3, 0, 70));
    assert!(matches!(copy(&units, unit(), &padded), Some(CopiedText::Parts(..))));
    let mostly_new = format!("{}\n\n{}", words(1, 0, 60), words(3, 0, 200));
    assert_eq!(copy(&units, unit(), &mostly_new), None);
}

#[test]
fn the_nearest_by_meaning_is_of_another_chain() {
    let mut units = PublishedUnits::default();
    let chain = unit();
    publish(&mut units, chain, "first 12", &[1.0, 0.0]);
    let far = publish(&mut units, unit(), "second 13", &[0.0, 1.0]);
    let print = Fingerprint::of("third 12 14");
    let vector = [QuantisedVector::of(&[0.9, 0.1])];
    let nearest = units.nearest(chain, &print, &vector).unwrap();
    assert_eq!(nearest.unit, far);
    assert!(nearest.cosine < 0.2);
    assert!(units.nearest(unit(), &print, &vector).unwrap().cosine > 0.89);
    assert_eq!(units.nearest_since(unit(), &print, &vector, 1).unwrap().unit, far);
    assert_eq!(units.nearest_since(unit(), &print, &vector, 2), None);
}

const ENGLISH: &str = "On PostgreSQL 15.4 the nightly export of orders_2026 took 812 ms; with work_mem at 64MB it took 97 ms, \
                       and 1,204,331 rows were read. Exit code 137 was gone.";
const KOREAN: &str = "PostgreSQL 15.4에서 orders_2026의 야간 내보내기는 812ms가 걸렸다. work_mem을 64MB로 올리자 97ms가 되었고 \
                      1204331행을 읽었다. 종료 코드 137은 사라졌다.";

/// Returns how alike a text is to what is published.
fn likeness(units: &PublishedUnits, body: &str, vector: &[f32]) -> Option<(UnitId, Likeness)> {
    let nearest = units.nearest(unit(), &Fingerprint::of(body), &[QuantisedVector::of(vector)])?;
    Some((nearest.unit, nearest.likeness))
}

#[test]
fn facts_and_meaning_together_make_a_copy_and_neither_alone() {
    let mut units = PublishedUnits::default();
    let published = publish(&mut units, unit(), ENGLISH, &[1.0, 0.0]);
    let other = publish(&mut units, unit(), "second 13", &[0.0, 1.0]);
    assert_eq!(likeness(&units, KOREAN, &[0.9, 0.4]), Some((published, Likeness::Copy)));
    assert_eq!(likeness(&units, KOREAN, &[0.2, 0.5]), Some((published, Likeness::Near)));
    // Alike in meaning without its facts: it is marked and not refused.
    let others = ENGLISH
        .replace("812", "455")
        .replace("97", "31")
        .replace("15.4", "16.1")
        .replace("1,204,331", "88,120");
    assert_eq!(
        likeness(&units, &others, &[1.0, 0.0]),
        Some((published, Likeness::Near))
    );
    assert_eq!(
        likeness(&units, "third 14", &[0.6, 0.8]),
        Some((other, Likeness::Distinct))
    );
}

#[test]
fn a_fact_of_three_sellers_tells_nothing() {
    let mut units = PublishedUnits::default();
    for seller in 1..=3_u8 {
        let print = Fingerprint::of(ENGLISH);
        let id = unit();
        units.add(PublishedUnit {
            unit: id,
            chain: id,
            operator: Some(OperatorId::from_bytes([seller; 16])),
            text_hash: [seller; 32],
            paragraphs: Vec::new(),
            signature: None,
            details: Vec::new(),
            facts: print.facts,
            vectors: vec![QuantisedVector::of(&[1.0, 0.0])],
        });
        let expected = if seller < 3 { Likeness::Copy } else { Likeness::Distinct };
        assert_eq!(likeness(&units, KOREAN, &[0.8, 0.6]).unwrap().1, expected, "{seller}");
    }
}

#[test]
fn facts_and_vectors_that_are_made_later_are_compared_with() {
    let mut units = PublishedUnits::default();
    let print = Fingerprint::of(ENGLISH);
    let id = unit();
    units.add(PublishedUnit {
        unit: id,
        chain: id,
        operator: None,
        text_hash: print.text_hash,
        paragraphs: Vec::new(),
        signature: Some(print.signature.clone()),
        details: Vec::new(),
        facts: Vec::new(),
        vectors: Vec::new(),
    });
    assert_eq!((units.len(), units.count_without_vectors()), (1, 1));
    assert_eq!(likeness(&units, KOREAN, &[1.0, 0.0]), None);
    units.supply(id, print.facts.clone(), &[]);
    assert_eq!(likeness(&units, KOREAN, &[1.0, 0.0]), Some((id, Likeness::Near)));
    units.supply(id, print.facts, &[QuantisedVector::of(&[1.0, 0.0])]);
    assert_eq!(likeness(&units, KOREAN, &[1.0, 0.0]), Some((id, Likeness::Copy)));
    assert_eq!(units.count_without_vectors(), 0);
}

#[test]
fn a_version_whose_hashes_were_erased_is_still_known_by_its_text() {
    let mut units = PublishedUnits::default();
    let body = words(1, 0, 100);
    let erased = unit();
    units.add(PublishedUnit {
        unit: erased,
        chain: unit(),
        operator: None,
        text_hash: Fingerprint::of(&body).text_hash,
        paragraphs: Vec::new(),
        signature: None,
        details: Vec::new(),
        facts: Vec::new(),
        vectors: Vec::new(),
    });
    // It is not waited for: its vectors will never come.
    assert_eq!(units.count_without_vectors(), 0);
    publish(&mut units, unit(), &words(2, 0, 100), &[1.0, 0.0]);
    assert_eq!(copy(&units, unit(), &body), Some(CopiedText::Exact(erased)));
    assert!(matches!(
        copy(&units, unit(), &words(2, 0, 99)),
        Some(CopiedText::Nearly(..))
    ));
    assert_eq!(units.len(), 2);
}
