//! Samples of the search and of knowledge units.

use super::{Book, Texts, ago, person, visitor};
use crate::console::{StateMark, UnitRow, UnitsPage};
use crate::{AskedRequest, Error, FindFacet, FindHit, FindMode, FindPage, FindValue, MarkedText, MiniScore};
use types::vocabulary::ItemKind;

const ID: &str = "019a8c4e-77b2-7d10-9c55-2f0c1b6a9e34";

pub(super) fn add(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    book.add("find", &find(texts, true))?;
    book.add("find-none", &find(texts, false))?;
    let row = |state, total, reason: Option<&str>| UnitRow {
        id: ID.to_owned(),
        title: texts.text.clone(),
        agent: texts.name.clone(),
        state,
        total,
        reason: reason.map(ToOwned::to_owned),
        at: ago(90),
    };
    let page = UnitsPage {
        chrome: person("/console/knowledge", texts, 0),
        rows: vec![
            row(("published", StateMark::Ok), Some(86), None),
            row(("rejected", StateMark::Bad), Some(51), Some(&texts.text)),
            row(
                ("waiting", StateMark::Hold),
                None,
                Some("the judging model does not answer"),
            ),
        ],
        next: Some(format!("/console/knowledge?before={ID}")),
        is_later: true,
    };
    book.add("console-knowledge", &page)
}

pub(super) fn add_empty(book: &mut Book) -> Result<(), Error> {
    let page = UnitsPage {
        chrome: person("/console/knowledge", &Texts::usual(), 0),
        rows: Vec::new(),
        next: None,
        is_later: false,
    };
    book.add("console-knowledge", &page)
}

fn find(texts: &Texts, has_hits: bool) -> FindPage {
    let mode = |word, label, here| FindMode {
        word,
        label,
        href: format!("/find?q=parquet&mode={word}"),
        here,
    };
    let value = |label: &str, count, here| FindValue {
        label: label.to_owned(),
        count,
        href: "/find?q=parquet&category=compat-matrix".to_owned(),
        here,
    };
    let facet = |title, values| FindFacet { title, values };
    let hit = |is_unit: bool| hit(texts, is_unit);
    FindPage {
        chrome: visitor("/find?q=parquet"),
        query: texts.text.chars().take(200).collect(),
        modes: vec![
            mode("auto", "Words and meaning", true),
            mode("keyword", "Words alone", false),
            mode("semantic", "Meaning alone", false),
        ],
        kinds: vec![
            mode("", "Everything", true),
            mode("dataset", "Datasets", false),
            mode("unit", "Knowledge", false),
        ],
        orders: vec![mode("", "Best match", true), mode("newest", "Newest", false)],
        split: has_hits.then_some((41, 11)),
        total: if has_hits { 52 } else { 0 },
        is_exact: has_hits,
        judge: "words-1".to_owned(),
        is_heuristic: has_hits,
        kept: vec![("category".to_owned(), texts.word.clone())],
        clear: "/find?q=parquet".to_owned(),
        facets: vec![
            facet("Kind", vec![value("unit", 41, false), value("dataset", 11, false)]),
            facet("Category", vec![value(&texts.word, 9, true)]),
            facet("Language", Vec::new()),
        ],
        hits: if has_hits {
            vec![hit(true), hit(false)]
        } else {
            Vec::new()
        },
        first: has_hits.then(|| "/find?q=parquet".to_owned()),
        next: has_hits.then(|| "/find?q=parquet&cursor=YXV0by4yMA".to_owned()),
        ask: asked(texts),
        tries: if has_hits {
            Vec::new()
        } else {
            vec![(texts.word.clone(), 6)]
        },
        asked: if has_hits {
            Vec::new()
        } else {
            vec![(format!("/requests/{ID}"), texts.text.clone(), Some("20.00".to_owned()))]
        },
    }
}

/// Returns a request that somebody thinks of.
pub(super) fn asked(texts: &Texts) -> AskedRequest {
    AskedRequest {
        title: texts.text.chars().take(200).collect(),
        is_dataset: true,
        base: "https://sluice.example".to_owned(),
    }
}

/// Returns a unit or a dataset in a list. Words of it are marked that each of its texts has.
pub(super) fn hit(texts: &Texts, is_unit: bool) -> FindHit {
    let title = format!("Parquet: {}", texts.text);
    FindHit {
        kind: if is_unit { ItemKind::Unit } else { ItemKind::Dataset },
        title: MarkedText::new(&title, &["parquet".to_owned()]),
        href: if is_unit {
            format!("/units/{ID}")
        } else {
            "/projects/tide-levels".to_owned()
        },
        category: is_unit.then(|| texts.word.clone()),
        slug: (!is_unit).then(|| texts.word.clone()),
        license: "CC-BY-4.0".to_owned(),
        agent: is_unit.then(|| texts.name.clone()),
        text: MarkedText::new(&texts.text, &[]),
        score: is_unit.then(|| (86, MiniScore::new([90, 85, 90, 80]))),
        ratings: is_unit.then(|| "4.7 of 5, 23 ratings".to_owned()),
        tags: if is_unit { Vec::new() } else { vec![texts.word.clone()] },
        price: if is_unit { "$0.25".to_owned() } else { "Free".to_owned() },
        is_locked: is_unit,
        size: (!is_unit).then_some((839_412, 1_242)),
        notes: vec!["trial credit works".to_owned()],
        happened: if is_unit { "published" } else { "updated" },
        at: ago(60),
    }
}
