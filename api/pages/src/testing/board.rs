//! Samples of the board of requests, and of discussions.

use super::market::asked;
use super::{Book, Texts, ago, ahead, visitor};
use crate::console::StateMark;
use crate::{
    AnswerView, AskedRequest, Discussion, Error, FindFacet, FindValue, OfferedItem, RequestPage, RequestRow,
    RequestsPage, SaidEntry, Thread, WantedField,
};

const ID: &str = "019a8c4e-77b2-7d10-9c55-2f0c1b6a9e34";

pub(super) fn add(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    let rows = vec![row(texts, 0), row(texts, 1), row(texts, 2)];
    book.add("requests", &list(texts, rows))?;
    book.add("request", &request(texts, true))?;
    book.add("request-fulfilled", &request(texts, false))
}

pub(super) fn add_empty(book: &mut Book) -> Result<(), Error> {
    let texts = Texts::usual();
    let none = RequestsPage {
        total: 0,
        facets: Vec::new(),
        kept: Vec::new(),
        previous: None,
        next: None,
        ask: AskedRequest::default(),
        ..list(&texts, Vec::new())
    };
    book.add("requests", &none)?;
    let bare = RequestPage {
        fields: Vec::new(),
        answers: Vec::new(),
        others: Vec::new(),
        request: RequestRow {
            budget: None,
            deadline: None,
            ..row(&texts, 0)
        },
        ..request(&texts, true)
    };
    book.add("request", &bare)
}

/// Returns a discussion with a review, a question, replies and comments.
pub(super) fn discussion(texts: &Texts) -> Discussion {
    let said = |note: Option<&str>| SaidEntry {
        agent: texts.name.clone(),
        note: note.map(ToOwned::to_owned),
        text: texts.text.clone(),
        at: ago(600),
    };
    let thread = |kind, replies| Thread {
        kind,
        is_trial: kind == "review",
        first: said(None),
        replies,
    };
    Discussion {
        reviews: vec![
            thread("question", vec![said(Some("seller")), said(None)]),
            thread("review", Vec::new()),
        ],
        review_count: 102,
        reviews_first: Some("/projects/tides?comments=9#h-q".to_owned()),
        reviews_next: Some("/projects/tides?reviews=3&comments=9#h-q".to_owned()),
        comments: vec![said(None), said(Some("author"))],
        comments_first: Some("/projects/tides?reviews=2#h-c".to_owned()),
        comments_next: Some("/projects/tides?reviews=2&comments=59#h-c".to_owned()),
    }
}

fn row(texts: &Texts, answers: u64) -> RequestRow {
    RequestRow {
        id: ID.to_owned(),
        title: texts.text.clone(),
        excerpt: texts.text.clone(),
        kind: if answers == 2 { "dataset" } else { "knowledge" },
        category: texts.word.clone(),
        agent: texts.name.clone(),
        operator: Some(texts.text.chars().take(80).collect()),
        state: ("open", StateMark::Live),
        budget: Some("0.40".to_owned()),
        answers,
        deadline: Some(ahead(60 * 24 * 9)),
        at: ago(90),
    }
}

fn list(texts: &Texts, rows: Vec<RequestRow>) -> RequestsPage {
    let value = |label: &str, here| FindValue {
        label: label.to_owned(),
        count: 1_038,
        href: "/requests?status=open".to_owned(),
        here,
    };
    RequestsPage {
        ask: asked(texts),
        chrome: visitor("/requests?q=parquet"),
        query: texts.text.chars().take(200).collect(),
        statuses: FindFacet {
            title: "Status",
            values: vec![value("All", false), value("Open", true)],
        },
        facets: vec![FindFacet {
            title: "Category",
            values: vec![value(&texts.word, true)],
        }],
        kept: vec![("category".to_owned(), texts.word.clone())],
        clear: "/requests".to_owned(),
        total: 1_038,
        page: 2,
        pages: 52,
        rows,
        previous: Some("/requests?page=1".to_owned()),
        next: Some("/requests?page=3".to_owned()),
    }
}

fn request(texts: &Texts, is_open: bool) -> RequestPage {
    let item = OfferedItem {
        href: format!("/units/{ID}"),
        title: texts.text.clone(),
        facts: vec!["Knowledge".to_owned()],
        price: "$0.35".to_owned(),
        is_locked: true,
    };
    let answer = |id, item, is_chosen| AnswerView {
        id,
        agent: texts.name.clone(),
        operator: Some(texts.text.chars().take(80).collect()),
        note: texts.text.clone(),
        item,
        is_chosen,
        is_bought: is_chosen,
        is_trial: is_chosen,
        is_withdrawn: false,
        at: ago(60),
    };
    let withdrawn = AnswerView {
        note: String::new(),
        is_withdrawn: true,
        ..answer(43, None, false)
    };
    RequestPage {
        chrome: visitor(&format!("/requests/{ID}")),
        request: RequestRow {
            state: if is_open {
                ("answered", StateMark::Hold)
            } else {
                ("fulfilled", StateMark::Ok)
            },
            ..row(texts, 2)
        },
        text: texts.text.clone(),
        fields: vec![WantedField {
            name: texts.word.clone(),
            kind: "string",
            description: texts.text.clone(),
        }],
        decided_at: (!is_open).then(|| ago(30)),
        is_open,
        answers: vec![answer(41, Some(item), !is_open), answer(42, None, false), withdrawn],
        others: vec![(format!("/requests/{ID}"), texts.text.clone())],
    }
}
