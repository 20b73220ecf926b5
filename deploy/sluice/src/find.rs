//! `sluice search` and `sluice list`: what is on sale.
//!
//! Invariant: titles and names are texts of others, and are printed so that a terminal does not obey them.

use std::process::ExitCode;

use client::model::{Hit, Hits, Project, ProjectPage, ProjectSearch, SearchTerms};
use indicatif::HumanCount;
use serde_json::{Map, Value};
use types::money::MicroUsdc;

use crate::cli::{HitKind, HitPrice, ListArgs, SearchArgs};
use crate::terminal::{self, cut, shown};
use crate::{exit, grid};

/// Most hits that a search lists.
const MAX_HITS: usize = 50;
/// Most datasets that are listed.
const MAX_LISTED: usize = 1_000;
/// Most characters of a title in a list.
const MAX_TITLE_CHARS: usize = 48;

/// Prints what a search finds, the best first.
pub async fn search(arguments: &SearchArgs) -> anyhow::Result<ExitCode> {
    let words = arguments.words.join(" ");
    let terms = SearchTerms {
        words: (!words.is_empty()).then_some(words),
        kind: arguments.kind.map(|kind| kind.word().to_owned()),
        category: arguments.category.clone(),
        price: arguments.price.map(|price| price.word().to_owned()),
        limit: Some(arguments.limit),
    };
    let client = arguments.remote.client()?;
    let hits = client.search_by(&terms).await.map_err(exit::of_arguments)?;
    if arguments.json {
        terminal::json(&hits)?;
    } else if hits.items.is_empty() {
        terminal::line("Nothing was found.")?;
        terminal::note(&format!(
            "Fewer words find more. {}/requests is where to ask for it.",
            shown(&client.origin())
        ));
    } else {
        terminal::line(&hit_lines(&hits).join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the datasets that the caller sees, the latest merge first.
pub async fn list(arguments: &ListArgs) -> anyhow::Result<ExitCode> {
    let search = ProjectSearch {
        words: arguments.text.clone(),
        limit: Some(arguments.limit),
    };
    let client = arguments.remote.client()?;
    let page = client.project_page(&search).await.map_err(exit::of_arguments)?;
    if arguments.json {
        terminal::json(&page)?;
    } else if page.items.is_empty() {
        terminal::line("There is no such dataset.")?;
    } else {
        terminal::line(&project_lines(&page).join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl HitKind {
    const fn word(self) -> &'static str {
        match self {
            Self::Unit => "unit",
            Self::Dataset => "dataset",
        }
    }
}

impl HitPrice {
    const fn word(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Key => "key",
            Self::Priced => "priced",
            Self::Trial => "trial",
        }
    }
}

fn hit_lines(hits: &Hits) -> Vec<String> {
    let heads = ["kind", "name", "title", "price", ""].map(str::to_owned);
    let rows: Vec<Vec<String>> = hits.items.iter().map(hit_row).collect();
    let mut lines = grid::lines(&heads, &rows, |_| false);
    lines.push(counted(hits.items.len(), hits.total, MAX_HITS));
    lines
}

fn hit_row(hit: &Hit) -> Vec<String> {
    let is_unit = hit.kind == "unit";
    let (kind, name) = if is_unit {
        ("write-up", &hit.id)
    } else {
        ("dataset", &hit.slug)
    };
    let facts = if is_unit {
        let score = number(&hit.more, "score").map(|score| format!("score {score}"));
        let sold = number(&hit.more, "sold").filter(|sold| *sold > 0);
        let sold = sold.map(|sold| format!("sold {}", HumanCount(sold)));
        let facts: Vec<String> = score.into_iter().chain(sold).collect();
        facts.join(", ")
    } else {
        match (number(&hit.more, "version"), number(&hit.more, "recordCount")) {
            (Some(version), Some(records)) if version > 0 => {
                format!("version {version}, {} records", HumanCount(records))
            }
            _ => "no version yet".to_owned(),
        }
    };
    vec![
        kind.to_owned(),
        shown(name.as_deref().unwrap_or_default()),
        cut(&hit.title, MAX_TITLE_CHARS),
        hit_price(hit),
        facts,
    ]
}

/// Returns the words for the price of a result.
pub(crate) fn hit_price(hit: &Hit) -> String {
    let needs_purchase = match hit.kind.as_str() {
        "unit" => hit.locked,
        _ => hit.more.get("access").is_some_and(|access| access == "paid"),
    };
    if hit.kind == "unit" && hit.price_micro == 0 {
        "free".to_owned()
    } else if needs_purchase {
        format!("${}", MicroUsdc(hit.price_micro))
    } else {
        "free with an account".to_owned()
    }
}

fn project_lines(page: &ProjectPage) -> Vec<String> {
    let heads = ["name", "title", "records", "version", "price", "last merged"].map(str::to_owned);
    let rows: Vec<Vec<String>> = page.items.iter().map(project_row).collect();
    let mut lines = grid::lines(&heads, &rows, |column| matches!(column, 2 | 3));
    lines.push(counted(page.items.len(), page.total, MAX_LISTED));
    lines
}

fn project_row(project: &Project) -> Vec<String> {
    let merged = if project.latest_version == 0 {
        "never".to_owned()
    } else {
        day(&project.more, "updatedAt")
    };
    vec![
        shown(&project.slug),
        cut(&text(&project.more, "title"), MAX_TITLE_CHARS),
        HumanCount(project.record_count).to_string(),
        project.latest_version.to_string(),
        project_price(project),
        merged,
    ]
}

/// Returns the price of a dataset in words: `private`, `free with an account`, or the amount in dollars.
pub(crate) fn project_price(project: &Project) -> String {
    match (text(&project.more, "visibility").as_str(), text(&project.more, "price")) {
        ("private", _) => "private".to_owned(),
        (_, price) if price.is_empty() => "free with an account".to_owned(),
        (_, price) => format!("${}", shown(&price)),
    }
}

/// Returns the line about how many of all are listed, of `most` at a time.
fn counted(listed: usize, total: u64, most: usize) -> String {
    let more = if (listed as u64) < total && listed < most {
        "; --limit lists more"
    } else {
        ""
    };
    format!("({} of {}{more})", HumanCount(listed as u64), HumanCount(total))
}

/// Returns a text of an answer as it is; an empty one if the answer has none of this name.
pub(crate) fn text(answer: &Map<String, Value>, name: &str) -> String {
    answer.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Returns the day of a time of an answer.
pub(crate) fn day(answer: &Map<String, Value>, name: &str) -> String {
    let at = text(answer, name);
    shown(at.split('T').next().unwrap_or_default())
}

fn number(answer: &Map<String, Value>, name: &str) -> Option<u64> {
    answer.get(name).and_then(Value::as_u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn results_line_up_and_command_no_terminal() {
        let hits: Hits = serde_json::from_value(json!({
            "total": 31, "mode": "auto",
            "items": [
                {"kind": "dataset", "slug": "tides", "title": "Tide levels", "priceMicro": 100_000, "locked": true,
                 "access": "paid", "version": 12, "recordCount": 1204},
                {"kind": "unit", "id": "019b", "title": "Gauge\u{1b}[2J", "priceMicro": 250_000, "locked": true,
                 "score": 71, "sold": 3},
                {"kind": "unit", "id": "019c", "title": "Free", "priceMicro": 0, "score": 50, "sold": 0},
                {"kind": "dataset", "slug": "new", "title": "New", "priceMicro": 0, "access": "public", "version": 0,
                 "recordCount": 0},
            ],
        }))
        .unwrap();
        assert_eq!(
            hit_lines(&hits),
            [
                "kind      name   title           price",
                "--------  -----  --------------  --------------------  -------------------------",
                "dataset   tides  Tide levels     $0.10                 version 12, 1,204 records",
                "write-up  019b   Gauge\\u{1b}[2J  $0.25                 score 71, sold 3",
                "write-up  019c   Free            free                  score 50",
                "dataset   new    New             free with an account  no version yet",
                "(4 of 31; --limit lists more)",
            ]
        );
    }

    #[test]
    fn datasets_line_up() {
        let page: ProjectPage = serde_json::from_value(json!({
            "total": 2,
            "items": [
                {"slug": "tides", "title": "Tide levels", "status": "open", "latestVersion": 12, "recordCount": 1204,
                 "visibility": "public", "access": "paid", "price": "0.10", "updatedAt": "2026-11-23T10:00:00Z"},
                {"slug": "drafts", "title": "Drafts", "status": "open", "latestVersion": 0, "recordCount": 0,
                 "visibility": "private", "access": "public", "updatedAt": "2026-11-20T10:00:00Z"},
            ],
        }))
        .unwrap();
        assert_eq!(
            project_lines(&page),
            [
                "name    title        records  version  price    last merged",
                "------  -----------  -------  -------  -------  -----------",
                "tides   Tide levels    1,204       12  $0.10    2026-11-23",
                "drafts  Drafts             0        0  private  never",
                "(2 of 2)",
            ]
        );
    }
}
