//! Samples of the page on which a file becomes a dataset.

use super::{Book, Texts, ago, ahead, person};
use crate::console::{
    ActiveDataset, ConnectForm, DatasetWords, PublishBounds, PublishColumn, PublishDraft, PublishPage, PublishTarget,
    RefusedCell, UnfinishedUpload,
};
use crate::{AgentChoice, Error, FieldError};

const ID: &str = "019a8d10-2c4e-7f11-8a07-b2f0e5d9c314";

pub(super) fn add(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    let agent = AgentChoice {
        id: ID.to_owned(),
        name: texts.name.clone(),
        description: Some(texts.text.clone()),
    };
    let page = |agent: Option<AgentChoice>, agents: Vec<AgentChoice>| PublishPage {
        chrome: person("/console/publish", texts, 1),
        operator: texts.text.clone(),
        connect: ConnectForm {
            chosen: agent.as_ref().map_or_else(String::new, |agent| agent.id.clone()),
            agents,
            places_left: 4,
            name: texts.word.clone(),
        },
        agent,
        target: None,
        active: Vec::new(),
        active_count: 2,
        active_limit: 3,
        uploads: Vec::new(),
        licenses: vec![("CC0-1.0".to_owned(), "Creative Commons Zero".to_owned())],
        bounds: PublishBounds {
            upload_bytes: 5 << 30,
            looked_bytes: 12_000_000,
            form_bytes: 1 << 20,
            form_records: 500,
        },
        draft: None,
        errors: Vec::new(),
    };
    let refused = PublishPage {
        errors: vec![FieldError::new("agreed", "Must be ticked")],
        ..page(None, vec![agent.clone()])
    };
    book.add("console-publish-agent", &refused)?;
    let start = PublishPage {
        uploads: vec![UnfinishedUpload {
            id: ID.to_owned(),
            slug: texts.word.clone(),
            agent: texts.name.clone(),
            bytes: 212_000_000,
            created_at: ago(90),
            expires_at: ahead(270),
        }],
        ..page(Some(agent.clone()), vec![agent.clone()])
    };
    book.add("console-publish", &start)?;
    let full = PublishPage {
        active: vec![ActiveDataset {
            slug: texts.word.clone(),
            title: texts.text.clone(),
            is_private: true,
        }],
        active_count: 3,
        ..page(Some(agent.clone()), vec![agent.clone()])
    };
    book.add("console-publish-full", &full)?;
    let target = PublishPage {
        target: Some(PublishTarget {
            slug: texts.word.clone(),
            title: texts.text.clone(),
            schema: texts.text.clone(),
        }),
        ..page(Some(agent.clone()), vec![agent.clone()])
    };
    book.add("console-publish-more", &target)?;
    let read = PublishPage {
        draft: Some(draft(texts)),
        errors: vec![FieldError::new("slug", "This address is taken")],
        ..page(Some(agent.clone()), vec![agent])
    };
    book.add("console-publish-read", &read)
}

fn draft(texts: &Texts) -> PublishDraft {
    let column = |kind: &str, is_used: bool| PublishColumn {
        from: texts.text.clone(),
        is_used,
        name: texts.word.clone(),
        kind: kind.to_owned(),
        scale: "2".to_owned(),
        is_required: true,
        meaning: texts.text.clone(),
        parse: "%d.%m.%Y".to_owned(),
        examples: vec![texts.text.clone(), texts.word.clone()],
        nulls: 12,
        filled: 88,
        told: texts.text.clone(),
    };
    PublishDraft {
        file_name: texts.text.clone(),
        content: "YQ==".to_owned(),
        base: texts.text.clone(),
        flags: "[]".to_owned(),
        found: "csv".to_owned(),
        records: 100,
        columns: ["string", "date", "decimal"]
            .map(|kind| column(kind, true))
            .into_iter()
            .chain([column("json", false)])
            .collect(),
        heads: vec![texts.word.clone(), texts.text.clone()],
        sample: vec![vec![texts.text.clone(), String::new()]],
        passed: 90,
        refused: 7,
        duplicates: 3,
        verdicts: ["refused", "dropped"]
            .map(|verdict| RefusedCell {
                line: 812,
                column: texts.text.clone(),
                value: texts.text.clone(),
                verdict: verdict.to_owned(),
                problem: texts.text.clone(),
                remedy: texts.text.clone(),
            })
            .to_vec(),
        notes: vec![texts.text.clone()],
        questions: vec![texts.text.clone()],
        drops: true,
        about: DatasetWords {
            title: texts.text.clone(),
            slug: texts.word.clone(),
            readme: texts.text.clone(),
            tags: texts.word.clone(),
            source: texts.text.clone(),
            license: "CC0-1.0".to_owned(),
            readers: "paid".to_owned(),
            price: texts.word.clone(),
        },
    }
}
