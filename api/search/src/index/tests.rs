#[path = "../../judged/judged.rs"]
mod judged;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use types::vocabulary::{ItemKind, Language};

use self::judged::{document_vectors, interval, mean, ndcg, queries, query_vectors, texts};
use super::*;
use crate::document::{Price, Standing};
use crate::facets::SearchFilter;

fn unit(id: &str, title: &str, body: &str) -> Document {
    Document {
        key: DocumentKey {
            kind: ItemKind::Unit,
            id: id.to_owned(),
        },
        title: title.to_owned(),
        terms: vec!["performance-tuning".to_owned()],
        body: body.to_owned(),
        source: "Ran it here.".to_owned(),
        facts: DocumentFacts {
            category: Some("performance-tuning".to_owned()),
            license: "CC0-1.0".to_owned(),
            language: None,
            tags: Vec::new(),
            price: Price::WithKey,
            price_micro: 0,
            trial_sale: false,
            published_at: Timestamp::from_micros(1),
            score: 60,
            standing: Standing::Trusted,
        },
    }
}

fn index(documents: &[Document]) -> Index {
    let index = Index::new().unwrap();
    for document in documents {
        index.put(document).unwrap();
    }
    index.commit().unwrap();
    index
}

fn query(text: &str, mode: SearchMode) -> SearchQuery {
    SearchQuery {
        text: text.to_owned(),
        vector: None,
        mode,
        filter: SearchFilter::default(),
        order: SearchOrder::Best,
        offset: 0,
        limit: 50,
    }
}

fn ids(index: &Index, query: &SearchQuery) -> Vec<String> {
    let found = index.search(query, Timestamp::from_micros(2)).unwrap();
    found.hits.into_iter().map(|key| key.id).collect()
}

fn some() -> Vec<Document> {
    vec![
        unit(
            "pool",
            "Pool of 200 connections ran out",
            "Set max_connections to 400; p99 rose to 95 ms in Postgres 16.2.",
        ),
        unit(
            "subway",
            "지하철 2호선 혼잡도",
            "출근 시간의 지하철에서 혼잡도를 측정했다.",
        ),
        unit(
            "soup",
            "Noodle soup",
            "Boil the noodles for eight minutes. Measuring salt helps.",
        ),
    ]
}

#[test]
fn a_unit_of_a_new_seller_ranks_below_its_like_a_near_and_a_doubted_one_below_that() {
    let text = "SQLite checkpoints take 38 ms for 4000 pages in WAL mode";
    let of = |id: &str, standing| {
        let mut unit = unit(id, text, text);
        unit.facts.standing = standing;
        unit
    };
    // In this order their ids and times would put the doubted one first.
    let index = index(&[
        of("a", Standing::Doubted),
        of("b", Standing::Near),
        of("c", Standing::NewSeller),
        of("d", Standing::Trusted),
        unit(
            "e",
            "SQLite",
            "A word about SQLite among many others of no concern to anybody.",
        ),
    ]);
    for mode in [SearchMode::Keyword, SearchMode::Semantic, SearchMode::Auto] {
        let found = ids(&index, &query("SQLite checkpoints 4000 pages", mode));
        let of_text: Vec<_> = found.iter().filter(|id| *id != "e").collect();
        assert_eq!(of_text, ["d", "c", "b", "a"], "{mode:?}");
    }
    // The newest of all, without a query, is no ranking.
    assert_eq!(ids(&index, &query("", SearchMode::Auto)), ["a", "b", "c", "d", "e"]);
}

#[test]
fn hits_come_in_the_order_that_was_asked_for() {
    let of = |id: &str, at, price, score| {
        let mut unit = unit(id, "Tide levels", "Tide levels of a gauge");
        unit.facts.published_at = Timestamp::from_micros(at);
        unit.facts.price_micro = price;
        unit.facts.score = score;
        unit
    };
    let index = index(&[of("a", 1, 500_000, 90), of("b", 2, 0, 60), of("c", 3, 10_000, 70)]);
    for (order, expected) in [
        (SearchOrder::Newest, ["c", "b", "a"]),
        (SearchOrder::Cheapest, ["b", "c", "a"]),
        (SearchOrder::Score, ["a", "c", "b"]),
    ] {
        for mode in [SearchMode::Keyword, SearchMode::Auto] {
            let asked = SearchQuery {
                order,
                ..query("tide levels", mode)
            };
            assert_eq!(ids(&index, &asked), expected, "{order:?} {mode:?}");
            // Pages of one order follow each other.
            let second = SearchQuery {
                offset: 1,
                limit: 1,
                ..asked
            };
            assert_eq!(ids(&index, &second), [expected[1]], "{order:?} {mode:?}");
        }
    }
}

#[test]
fn a_tag_and_a_language_narrow_and_are_counted() {
    let dataset = |id: &str, tags: &[&str]| {
        let mut document = unit(id, "Tide levels", "Tide levels of a gauge");
        document.key.kind = ItemKind::Dataset;
        document.facts.category = None;
        document.facts.tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        document
    };
    let mut english = unit("u", "Tide levels", "Tide levels of a gauge");
    english.facts.language = Some(Language::English);
    let index = index(&[dataset("d", &["sea", "tide"]), dataset("e", &["sea"]), english]);
    let narrowed = |filter: SearchFilter| {
        let asked = SearchQuery {
            filter,
            ..query("", SearchMode::Keyword)
        };
        let mut found = ids(&index, &asked);
        found.sort_unstable();
        found
    };
    let tagged = |tag: &str| SearchFilter {
        tag: Some(tag.to_owned()),
        ..SearchFilter::default()
    };
    assert_eq!(narrowed(tagged("sea")), ["d", "e"]);
    assert_eq!(narrowed(tagged("tide")), ["d"]);
    // A part of a tag is another tag.
    assert_eq!(narrowed(tagged("tid")), Vec::<String>::new());
    let in_english = SearchFilter {
        language: Some(Language::English),
        ..SearchFilter::default()
    };
    assert_eq!(narrowed(in_english), ["u"]);
    let found = index
        .search(&query("", SearchMode::Keyword), Timestamp::from_micros(2))
        .unwrap();
    let (_, tags) = found.facets.iter().find(|(facet, _)| *facet == Facet::Tag).unwrap();
    let tags: Vec<_> = tags.iter().map(|tag| (tag.value.as_str(), tag.count)).collect();
    assert_eq!(tags, [("sea", 2), ("tide", 1)]);
}

#[test]
fn what_an_index_keeps_of_a_document_is_read_back() {
    let mut kept = unit("kept", "Tide levels", "Tide levels of a gauge");
    let key = kept.key.clone();
    for tags in [
        Vec::new(),
        vec!["sea".to_owned()],
        vec!["sea".to_owned(), "tide 2".to_owned()],
    ] {
        kept.facts.tags = tags;
        kept.facts.price_micro = 250_000;
        let text = kept_facts::encoded(&key, &kept.facts);
        assert_eq!(kept_facts::decoded(&text), Some((key.clone(), kept.facts.clone())));
    }
}

#[test]
fn other_forms_of_a_word_find_a_unit_in_every_mode() {
    let index = index(&some());
    for mode in [SearchMode::Keyword, SearchMode::Semantic, SearchMode::Auto] {
        for (text, id) in [
            ("connection pools", "pool"),
            ("MAX_CONNECTIONS", "pool"),
            ("postgres 16", "pool"),
            ("지하철의 혼잡도", "subway"),
            ("boiled noodle", "soup"),
        ] {
            assert_eq!(
                ids(&index, &query(text, mode)).first().map(String::as_str),
                Some(id),
                "{text} {mode:?}"
            );
        }
    }
}

#[test]
fn phrases_are_exact_and_no_text_is_an_error() {
    let index = index(&some());
    assert_eq!(
        ids(&index, &query("\"noodles for eight\"", SearchMode::Keyword)),
        ["soup"]
    );
    assert!(ids(&index, &query("\"eight noodles\"", SearchMode::Keyword)).is_empty());
    for text in [
        "\"",
        "a AND (",
        "title:x",
        "\\",
        "*",
        "\"\"\"",
        "\u{0}",
        "은는이가",
        "\u{200b}",
        "+- ~ ^2",
    ] {
        for mode in [SearchMode::Keyword, SearchMode::Semantic, SearchMode::Auto] {
            ids(&index, &query(text, mode));
        }
    }
    // Without a word, everything is found.
    assert_eq!(ids(&index, &query("", SearchMode::Auto)).len(), 3);
}

#[test]
fn a_removed_or_replaced_document_is_gone_before_the_commit() {
    let index = index(&some());
    let key = |id: &str| DocumentKey {
        kind: ItemKind::Unit,
        id: id.to_owned(),
    };
    index.remove(&key("pool"));
    index.put(&unit("soup", "Bread", "Bake it for an hour.")).unwrap();
    for mode in [SearchMode::Keyword, SearchMode::Semantic, SearchMode::Auto] {
        assert!(ids(&index, &query("connections", mode)).is_empty(), "{mode:?}");
        assert!(!ids(&index, &query("noodles", mode)).contains(&"pool".to_owned()));
    }
    assert!(ids(&index, &query("noodles", SearchMode::Keyword)).is_empty());
    index.commit().unwrap();
    assert_eq!(ids(&index, &query("bread", SearchMode::Keyword)), ["soup"]);
    assert_eq!(index.count(), 2);
}

#[test]
fn a_facet_counts_without_its_own_condition() {
    let mut documents = some();
    documents[2].facts.category = Some("cooking".to_owned());
    let index = index(&documents);
    let mut only = query("", SearchMode::Keyword);
    only.filter.category = Some("cooking".to_owned());
    let found = index.search(&only, Timestamp::from_micros(2)).unwrap();
    let counts = |facet: Facet| {
        let values = &found.facets.iter().find(|(of, _)| *of == facet).unwrap().1;
        values
            .iter()
            .map(|count| (count.value.clone(), count.count))
            .collect::<Vec<_>>()
    };
    assert_eq!(found.total, 1);
    assert_eq!(
        counts(Facet::Category),
        [("performance-tuning".to_owned(), 2), ("cooking".to_owned(), 1)]
    );
    assert_eq!(counts(Facet::License), [("CC0-1.0".to_owned(), 1)]);
    only.filter.min_score = 61;
    assert_eq!(index.search(&only, Timestamp::from_micros(2)).unwrap().total, 0);
}

#[test]
fn vectors_of_a_model_are_used_once_nearly_all_are_there() {
    let index = Index::with_model(Some(2)).unwrap();
    let documents = some();
    for document in &documents {
        index.put(document).unwrap();
    }
    index.commit().unwrap();
    let missing = index.without_vector(100);
    assert_eq!(missing.len(), documents.len());
    assert!(!index.is_modelled());
    let vector = |index: usize| QuantisedVector::of(if index == 0 { &[1.0, 0.0] } else { &[0.0, 1.0] });
    for (at, missing) in missing.iter().enumerate() {
        assert!(index.set_vectors(missing, &[vector(at)]));
    }
    assert!(index.is_modelled() && index.without_vector(1).is_empty());
    let asked = SearchQuery {
        vector: Some(vec![1.0, 0.0]),
        ..query("nothing in common", SearchMode::Semantic)
    };
    assert_eq!(ids(&index, &asked), [missing[0].key.id.clone()]);
    // A replaced document has no vector, and takes none of its old text.
    let document = documents
        .iter()
        .find(|document| document.key == missing[0].key)
        .unwrap();
    index.put(document).unwrap();
    assert!(!index.set_vectors(&missing[0], &[vector(0)]));
    assert!(!index.set_vectors(&index.without_vector(1)[0], &[QuantisedVector::of(&[1.0])]));
    assert_eq!(ids(&index, &asked), Vec::<String>::new());
}

#[test]
fn the_best_piece_of_a_document_counts() {
    let index = Index::with_model(Some(3)).unwrap();
    for document in some() {
        index.put(&document).unwrap();
    }
    index.commit().unwrap();
    for missing in index.without_vector(100) {
        let pieces: [[f32; 3]; 2] = match missing.key.id.as_str() {
            "pool" => [[0.0, 1.0, 0.0], [0.99, 0.1, 0.0]],
            "soup" => [[0.7, 0.7, 0.0], [0.7, 0.0, 0.7]],
            _ => [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]],
        };
        assert!(index.set_vectors(&missing, &pieces.map(|piece| QuantisedVector::of(&piece))));
    }
    // The words fit nothing, so vectors alone rank; the misspelled word of the other query fits.
    let asked = |text: &str, mode| SearchQuery {
        vector: Some(vec![1.0, 0.0, 0.0]),
        ..query(text, mode)
    };
    for mode in [SearchMode::Semantic, SearchMode::Auto] {
        assert_eq!(ids(&index, &asked("zyx", mode)), ["pool", "soup"], "{mode:?}");
    }
    assert_eq!(ids(&index, &asked("지하철 혼잡도", SearchMode::Auto))[0], "subway");
    // Vectors that come again replace those before.
    let missing = MissingVector {
        key: some()[0].key.clone(),
        slot: 0,
    };
    assert!(index.set_vectors(&missing, &[QuantisedVector::of(&[0.0, 0.0, 1.0])]));
    assert_eq!(ids(&index, &asked("zyx", SearchMode::Semantic)), ["soup"]);
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "a direction by chance needs few digits")]
fn the_nearest_of_many_pieces_is_found_by_its_signs() {
    const DIMENSIONS: usize = 128;
    // Numbers of a fixed sequence (splitmix64), from -1 to 1.
    let mut state = 1_u64;
    let mut number = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed >> 40) as f32 / 8_388_608.0 - 1.0
    };
    let mut vector = |near: &[f32], noise: f32| -> Vec<f32> {
        let moved: Vec<f32> = near.iter().map(|value| value + noise * number()).collect();
        let length = moved.iter().map(|value| value * value).sum::<f32>().sqrt();
        moved.into_iter().map(|value| value / length).collect()
    };
    // The pieces of a document lie around its subject, as those of real texts do.
    let subjects: Vec<Vec<f32>> = (0..400).map(|_| vector(&[0.0; DIMENSIONS], 1.0)).collect();
    let pieces: Vec<Vec<Vec<f32>>> = subjects
        .iter()
        .map(|subject| (0..5).map(|_| vector(subject, 0.1)).collect())
        .collect();
    let index = Index::with_model(Some(DIMENSIONS)).unwrap();
    for number in 0..subjects.len() {
        index.put(&unit(&number.to_string(), "A title", "a body")).unwrap();
    }
    index.commit().unwrap();
    for missing in index.without_vector(1_000) {
        let own = &pieces[missing.key.id.parse::<usize>().unwrap()];
        let own: Vec<QuantisedVector> = own.iter().map(|piece| QuantisedVector::of(piece)).collect();
        assert!(index.set_vectors(&missing, &own));
    }
    for (number, own) in pieces.iter().enumerate().step_by(7) {
        let asked = SearchQuery {
            vector: Some(vector(&own[4], 0.1)),
            limit: 1,
            ..query("zyx", SearchMode::Semantic)
        };
        assert_eq!(ids(&index, &asked), [number.to_string()]);
    }
}

#[test]
fn a_query_finds_something_while_a_word_of_it_exists() {
    let index = index(&some());
    for mode in [SearchMode::Keyword, SearchMode::Semantic, SearchMode::Auto] {
        let text = "why does every second aircraft carrier of the northern fleet boil its anchors";
        assert_eq!(ids(&index, &query(text, mode)), ["soup"], "{mode:?}");
    }
}

#[test]
fn a_misspelled_word_and_a_part_of_one_find_a_unit() {
    let mut documents = some();
    documents.push(unit(
        "flat",
        "Wohnungskündigung per Einschreiben",
        "Der Brief wurde auf der Straße zugestellt und nicht angenommen.",
    ));
    documents.push(unit("cat", "黒猫の写真", "庭で撮った写真。"));
    documents.push(unit("year", "تقرير مستشفى", "تقرير عام ٢٠٢٤ عن المستشفى."));
    documents.push(unit("city", "Iğdır ısınma", "Kışın ısıtma için bir rapor."));
    let index = index(&documents);
    for (text, id) in [
        ("conection", "pool"),
        ("connectoins", "pool"),
        ("Postgress", "pool"),
        ("혼잡돠", "subway"),
        ("지하첼 2호선", "subway"),
        ("Kündigung", "flat"),
        ("wohnungskuendigungen", "flat"),
        ("Strasse", "flat"),
        ("STRAẞE", "flat"),
        ("猫", "cat"),
        ("2024", "year"),
        ("مستشفي", "year"),
        ("igdir", "city"),
    ] {
        for mode in [SearchMode::Keyword, SearchMode::Auto] {
            let first = ids(&index, &query(text, mode)).into_iter().next();
            assert_eq!(first.as_deref(), Some(id), "{text} {mode:?}");
        }
    }
}

#[test]
fn a_title_goes_before_a_body_and_most_words_before_one() {
    let index = index(&[
        unit(
            "body",
            "Notes of a week",
            "The replica lagged, and so did the lease of a lock.",
        ),
        unit("title", "Replica lag", "It took a week."),
        unit("rare", "Zygote", "zygote zygote zygote zygote"),
        unit("most", "Lease of a lock expired", "The renewal came too late."),
    ]);
    assert_eq!(
        ids(&index, &query("replica", SearchMode::Keyword))[..2],
        ["title", "body"]
    );
    assert_eq!(
        ids(&index, &query("lease lock expired renewal zygote", SearchMode::Keyword))[0],
        "most"
    );
}

#[test]
fn a_dataset_ranks_beside_units_by_the_same_rules() {
    let mut dataset = unit("tides", "Tide gauges of the coast", "Water levels by the minute.");
    dataset.key.kind = ItemKind::Dataset;
    dataset.terms = vec!["gauge_level".to_owned(), "station".to_owned()];
    let index = index(&[dataset, unit("note", "Notes", "A gauge of the coast was read twice.")]);
    for text in ["gauge coast", "gauges of coasts", "guage coast"] {
        assert_eq!(ids(&index, &query(text, SearchMode::Auto)), ["tides", "note"], "{text}");
    }
    assert_eq!(ids(&index, &query("station", SearchMode::Keyword)), ["tides"]);
}

/// Returns the judged documents.
fn judged_documents() -> Vec<Document> {
    let document = |text: judged::Text| Document {
        terms: vec![text.category],
        source: text.source,
        ..unit(&text.slug, &text.title, &text.body)
    };
    texts().into_iter().map(document).collect()
}

/// Asserts that the judged queries are answered at least so well in each set.
fn assert_answered(mode: SearchMode, floors: &[(&str, f64)], search: impl Fn(&str) -> Vec<String>) {
    let mut by_set: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for judged in queries().iter().filter(|judged| judged.is_for(mode.as_str())) {
        let value = ndcg(&search(&judged.q), &judged.grades);
        for set in [judged.set(), judged.kind.as_str()] {
            by_set.entry(set.to_owned()).or_default().push(value);
        }
    }
    let mut report = String::new();
    for (set, values) in &by_set {
        let (mean, (low, high)) = (mean(values), interval(values));
        let (name, number) = (mode.as_str(), values.len());
        writeln!(
            report,
            "{name:8} {set:18} nDCG@10 {mean:.3} ({low:.3} to {high:.3}) of {number} queries"
        )
        .unwrap();
    }
    eprint_report(&report);
    for (set, floor) in floors {
        assert!(mean(&by_set[*set]) >= *floor, "{set} is below {floor}:\n{report}");
    }
}

#[test]
fn judged_queries_are_answered_by_words_alone() {
    let index = index(&judged_documents());
    assert!(queries().len() >= 240);
    // Just under what was measured.
    let floors = [("first half", 0.85), ("typos, second half", 0.92)];
    for mode in [SearchMode::Keyword, SearchMode::Auto] {
        assert_answered(mode, &floors, |text| ids(&index, &query(text, mode)));
    }
}

#[test]
fn judged_queries_are_answered_by_words_and_meaning_also_across_languages() {
    let index = Index::with_model(Some(512)).unwrap();
    index.put_all(&judged_documents()).unwrap();
    index.commit().unwrap();
    let (documents, vectors) = (document_vectors(), query_vectors());
    for missing in index.without_vector(documents.len()) {
        assert!(index.set_vectors(&missing, &documents[&missing.key.id]));
    }
    let search = |text: &str, mode| {
        let vector = Some(vectors[text].clone());
        ids(
            &index,
            &SearchQuery {
                vector,
                ..query(text, mode)
            },
        )
    };
    assert_answered(SearchMode::Semantic, &[], |text| search(text, SearchMode::Semantic));
    let floors = [
        ("first half", 0.85),
        ("typos, second half", 0.85),
        ("cross, first half", 0.45),
        ("cross, second half", 0.45),
    ];
    assert_answered(SearchMode::Auto, &floors, |text| search(text, SearchMode::Auto));
}

/// Prints to the captured output of the test.
fn eprint_report(report: &str) {
    use std::io::Write as _;
    writeln!(std::io::stderr(), "{report}").unwrap();
}

#[test]
fn documents_and_queries_take_time_that_is_linear_in_their_text() {
    let index = index(&[unit("one", "A title", "the first of all bodies")]);
    growth::is_linear("the index", 2_000, |text| {
        index.put(&unit("two", "A title", text)).unwrap();
    });
    for mode in [SearchMode::Keyword, SearchMode::Semantic, SearchMode::Auto] {
        growth::is_linear("a search", 500, |text| {
            ids(&index, &query(text, mode));
        });
    }
}
