//! Samples of the page of takedowns.

use super::{Book, Texts, ago, person};
use crate::Error;
use crate::console::{ModerationPage, ReportQueue, ReportRow, TakedownRow};

const ID: &str = "019a8d10-2c4e-7f11-8a07-b2f0e5d9c314";

pub(super) fn add(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    book.add("console-moderation", &moderation(texts, true))?;
    book.add("console-takedowns", &moderation(texts, false))
}

fn moderation(texts: &Texts, is_moderator: bool) -> ModerationPage {
    let takedown = |restored_at, answer: Option<&str>| TakedownRow {
        id: ID.to_owned(),
        kind: "dataset".to_owned(),
        item: texts.word.clone(),
        reason: "copyright".to_owned(),
        note: Some(texts.text.clone()),
        at: ago(90),
        answer: answer.map(str::to_owned),
        restored_at,
    };
    let takedowns = vec![takedown(None, Some(&texts.text)), takedown(Some(ago(5)), None)];
    let reports = vec![ReportRow {
        id: ID.to_owned(),
        kind: "dataset".to_owned(),
        item: texts.word.clone(),
        url: Some("/projects/tide-gauges".to_owned()),
        reason: "personal-data".to_owned(),
        detail: texts.text.clone(),
        reporter: "without a key".to_owned(),
        email: Some(texts.word.clone()),
        at: ago(51),
    }];
    let own = if is_moderator {
        Vec::new()
    } else {
        takedowns[..1].to_vec()
    };
    ModerationPage {
        chrome: person("/console/moderation", texts, 3),
        own,
        queue: is_moderator.then_some(ReportQueue { reports, takedowns }),
    }
}
