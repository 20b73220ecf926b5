//! `sluice info`: what a dataset or a write-up is, and what it costs.
//!
//! Invariant: without `--text` nothing is read that counts as a reading.

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use client::Client;
use client::model::{Hit, Project, SearchTerms, UnitOffer};
use indicatif::HumanCount;
use serde_json::{Map, Value, json};
use types::UnitId;

use crate::cli::InfoArgs;
use crate::exit::{self, WrongUsage};
use crate::find::{day, hit_price, project_price, text};
use crate::terminal::{self, cut, plain, shown};

/// Most columns that are listed.
const MAX_COLUMNS: usize = 40;
/// Most characters of a line of a readme, a preview or a list of columns.
const MAX_LINE_CHARS: usize = 600;
/// Most results among which a write-up is looked for by its title.
const MAX_SEARCHED_HITS: u32 = 50;

/// Prints what an item is.
pub async fn run(arguments: &InfoArgs) -> anyhow::Result<ExitCode> {
    let client = arguments.remote.client()?;
    let base = arguments.remote.server.trim_end_matches('/');
    if !is_unit_id(&arguments.item) {
        if arguments.text {
            return Err(
                WrongUsage("--text is for write-ups; `sluice pull` gets the rows of a dataset".to_owned()).into(),
            );
        }
        let project = client.project(&arguments.item).await.map_err(exit::of_arguments)?;
        if arguments.json {
            terminal::json(&project)?;
        } else {
            terminal::line(&project_lines(&project, base).join("\n"))?;
        }
    } else if arguments.text {
        let unit = client.unit_full(&arguments.item).await?;
        if io::stdout().is_terminal() {
            terminal::line(&terminal::plain_lines(unit.body.lines()))?;
        } else {
            terminal::bytes(unit.body.as_bytes())?;
        }
    } else {
        unit(&client, arguments, base).await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns true for the id of a write-up. Everything else is the slug of a dataset.
pub(crate) fn is_unit_id(item: &str) -> bool {
    item.parse::<UnitId>().is_ok()
}

/// Prints an own write-up with its review, or what anybody may know of one that is published.
async fn unit(client: &Client, arguments: &InfoArgs, base: &str) -> anyhow::Result<()> {
    let id = &arguments.item;
    // Of the own ones the review is shown, published or not. Without a key, and for those of others, there is none.
    if let Ok(own) = client.unit_own(id).await {
        if arguments.json {
            terminal::json(&own)?;
        } else {
            terminal::line(&own_lines(&own, base).join("\n"))?;
        }
        return Ok(());
    }
    let offer = client.unit_offer(id).await?;
    let hit = match &offer.title {
        Some(title) => found(client, id, title).await,
        None => None,
    };
    if arguments.json {
        let mut answer = serde_json::to_value(&offer)?;
        answer["preview"] = hit.as_ref().map_or(Value::Null, |hit| json!(hit));
        terminal::json(&answer)?;
    } else {
        terminal::line(&offer_lines(&offer, hit.as_ref(), base).join("\n"))?;
    }
    Ok(())
}

/// Returns the preview of a published write-up; `None` if the search does not have it yet.
async fn found(client: &Client, id: &str, title: &str) -> Option<Hit> {
    let terms = SearchTerms {
        // A cut title ends with a sign that is in no text, and quotes would end the phrase.
        words: Some(title.replace(['"', '…'], " ")),
        kind: Some("unit".to_owned()),
        limit: Some(MAX_SEARCHED_HITS),
        ..SearchTerms::default()
    };
    // What is known without the search is enough for an answer.
    let hits = client.search_by(&terms).await.ok()?;
    let is_it = |hit: &Hit| hit.id.as_deref() == Some(id) || text(&hit.more, "chainId") == id;
    hits.items.into_iter().find(is_it)
}

fn project_lines(project: &Project, base: &str) -> Vec<String> {
    let more = &project.more;
    let slug = shown(&project.slug);
    let version = match project.latest_version {
        0 => "none yet".to_owned(),
        version => format!(
            "{version} of {}, {} records",
            day(more, "updatedAt"),
            HumanCount(project.record_count)
        ),
    };
    let price = project_price(project);
    let each = if price.starts_with('$') { " a version" } else { "" };
    let mut lines = vec![format!("{slug}: {}", cut(&text(more, "title"), MAX_LINE_CHARS))];
    lines.extend(facts(&[
        ("status", shown(&project.status)),
        ("price", format!("{price}{each}")),
        ("licence", shown(&text(more, "license"))),
        ("tags", tags(more)),
        ("version", version),
        ("columns", columns(more.get("schemaDef"))),
        ("about", first_line(&text(more, "readme"))),
        ("page", plain(&format!("{base}/projects/{}", project.slug))),
    ]));
    if let Some(slug) = terminal::quoted(&project.slug) {
        lines.push(if price.starts_with('$') {
            format!("Next: sluice buy {slug}")
        } else {
            format!("Next: sluice query {slug} \"SELECT * FROM records LIMIT 5\"")
        });
    }
    lines
}

fn own_lines(unit: &Map<String, Value>, base: &str) -> Vec<String> {
    let score = unit.get("scores").and_then(|scores| scores["total"].as_u64());
    let reason = unit.get("reason").and_then(|reason| reason["message"].as_str());
    let version = unit.get("version").and_then(Value::as_u64);
    let price = match (unit.get("locked").and_then(Value::as_bool), text(unit, "price")) {
        (Some(true), price) if !price.is_empty() => format!("${}", shown(&price)),
        _ if unit.get("priceMicro").and_then(Value::as_i64) == Some(0) => "free".to_owned(),
        _ => "free with an account".to_owned(),
    };
    let mut lines = vec![format!("Your write-up: {}", cut(&text(unit, "title"), MAX_LINE_CHARS))];
    lines.extend(facts(&[
        ("status", shown(&text(unit, "status"))),
        ("reason", reason.map_or_else(String::new, plain)),
        (
            "version",
            version.map_or_else(String::new, |version| version.to_string()),
        ),
        ("price", price),
        ("category", shown(&text(unit, "category"))),
        ("licence", shown(&text(unit, "license"))),
        (
            "score",
            score.map_or_else(String::new, |score| format!("{score} of 100")),
        ),
        ("source", cut(&text(unit, "sourceDeclaration"), MAX_LINE_CHARS)),
        ("agent", shown(&text(unit, "agent"))),
        ("sent", day(unit, "submittedAt")),
        ("page", plain(&format!("{base}/units/{}", text(unit, "id")))),
    ]));
    lines
}

fn offer_lines(offer: &UnitOffer, hit: Option<&Hit>, base: &str) -> Vec<String> {
    let title = hit.map(|hit| hit.title.as_str()).or(offer.title.as_deref());
    let price = match (&offer.price, offer.key_reads, hit) {
        (.., Some(hit)) => hit_price(hit),
        (None, ..) => "free".to_owned(),
        (Some(_), true, _) => "free with an account".to_owned(),
        (Some(price), false, _) => format!("${}", shown(price)),
    };
    let is_priced = price.starts_with('$');
    let mut lines = vec![format!(
        "Write-up: {}",
        cut(title.unwrap_or("(its title is not told)"), MAX_LINE_CHARS)
    )];
    let mut known = vec![("price", price)];
    if let Some(more) = hit.map(|hit| &hit.more) {
        let count = |name: &str| more.get(name).and_then(Value::as_u64);
        let counted = |name: &str| count(name).map_or_else(String::new, |count| HumanCount(count).to_string());
        known.extend([
            ("category", shown(&text(more, "category"))),
            ("licence", shown(&text(more, "license"))),
            (
                "score",
                count("score").map_or_else(String::new, |score| format!("{score} of 100")),
            ),
            ("readers", counted("readers")),
            ("sold", counted("sold")),
            ("agent", shown(&text(more, "agent"))),
            ("since", day(more, "publishedAt")),
            ("about", first_line(&text(more, "preview"))),
        ]);
    }
    known.push(("page", plain(&format!("{base}/units/{}", offer.id))));
    lines.extend(facts(&known));
    if let Some(id) = terminal::quoted(&offer.id) {
        let next = if is_priced {
            format!("buy {id}")
        } else {
            format!("info {id} --text")
        };
        lines.push(format!("Next: sluice {next}"));
    }
    lines
}

/// Returns a line for each fact that is known.
fn facts(facts: &[(&str, String)]) -> Vec<String> {
    let known = facts.iter().filter(|(_, value)| !value.is_empty());
    known.map(|(name, value)| format!("  {name:<9} {value}")).collect()
}

fn tags(project: &Map<String, Value>) -> String {
    let tags = project.get("tags").and_then(Value::as_array).into_iter().flatten();
    let tags: Vec<String> = tags.filter_map(Value::as_str).map(shown).collect();
    tags.join(", ")
}

/// Returns the columns of a schema with their types.
fn columns(schema: Option<&Value>) -> String {
    let fields = schema.and_then(|schema| schema["fields"].as_array());
    let fields = fields.map(Vec::as_slice).unwrap_or_default();
    let column = |field: &Value| {
        let required = if field["required"] == true { ", required" } else { "" };
        let (name, kind) = (field["name"].as_str(), field["type"].as_str());
        format!(
            "{} ({}{required})",
            shown(name.unwrap_or_default()),
            shown(kind.unwrap_or_default())
        )
    };
    let mut columns: Vec<String> = fields.iter().take(MAX_COLUMNS).map(column).collect();
    if fields.len() > MAX_COLUMNS {
        columns.push(format!("… and {} more", fields.len() - MAX_COLUMNS));
    }
    columns.join(", ")
}

/// Returns the first line of a text that says something, without the signs of a heading.
fn first_line(text: &str) -> String {
    let mut lines = text.lines().map(|line| line.trim_start_matches('#').trim());
    cut(lines.find(|line| !line.is_empty()).unwrap_or_default(), MAX_LINE_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dataset_is_told_in_facts_with_what_comes_next() {
        let mut answer = json!({
            "slug": "tides", "title": "Tide levels\u{202e}", "status": "open", "latestVersion": 12, "recordCount": 1204,
            "visibility": "public", "access": "paid", "price": "0.10", "license": "CC-BY-4.0", "tags": ["sea", "tides"],
            "updatedAt": "2026-11-23T10:00:00Z", "readme": "\n# Water levels\n\nMore.",
            "schemaDef": {"fields": [
                {"name": "gauge", "type": "string", "required": true}, {"name": "metres", "type": "number"},
            ]},
        });
        let project: Project = serde_json::from_value(answer.clone()).unwrap();
        assert_eq!(
            project_lines(&project, "https://x.example"),
            [
                "tides: Tide levels\\u{202e}",
                "  status    open",
                "  price     $0.10 a version",
                "  licence   CC-BY-4.0",
                "  tags      sea, tides",
                "  version   12 of 2026-11-23, 1,204 records",
                "  columns   gauge (string, required), metres (number)",
                "  about     Water levels",
                "  page      https://x.example/projects/tides",
                "Next: sluice buy 'tides'",
            ]
        );
        answer["price"] = Value::Null;
        let project: Project = serde_json::from_value(answer).unwrap();
        let free = project_lines(&project, "https://x.example").join("\n");
        assert!(
            free.contains("free with an account") && free.contains("Next: sluice query 'tides'"),
            "{free}"
        );
    }

    #[test]
    fn a_write_up_of_others_is_told_by_its_offer_and_its_preview() {
        let mut offer = UnitOffer {
            id: "019b1efd-2c32-7c1a-9d35-6a1f0c2b7e10".to_owned(),
            title: Some("Float offs…".to_owned()),
            price: Some("0.25".to_owned()),
            price_micro: 250_000,
            key_reads: false,
        };
        let hit: Hit = serde_json::from_value(json!({
            "kind": "unit", "id": "019b", "title": "Float offsets", "priceMicro": 250_000, "locked": true, "score": 71,
            "readers": 9, "sold": 3, "preview": "## Offsets\nText", "publishedAt": "2026-11-02T10:00:00Z",
        }))
        .unwrap();
        let told = offer_lines(&offer, Some(&hit), "https://x.example").join("\n");
        for part in [
            "Write-up: Float offsets\n",
            "price     $0.25",
            "score     71 of 100",
            "about     Offsets\n",
            "sluice buy '019b",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        let told = offer_lines(&offer, None, "https://x.example").join("\n");
        assert!(
            told.contains("Write-up: Float offs…") && !told.contains("score"),
            "{told}"
        );
        offer.key_reads = true;
        let told = offer_lines(&offer, None, "https://x.example").join("\n");
        assert!(
            told.contains("free with an account") && told.contains("--text"),
            "{told}"
        );
        assert!(is_unit_id(&offer.id) && !is_unit_id("tide-levels"));
    }
}
