//! Samples of the pages of a dataset.

use operators::profile::{ColumnProfile, ProfileLevel};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use types::money::MicroUsdc;
use types::{Contract, Field, FieldType, Timestamp, Version};

use super::board::discussion;
use super::site::TERMS;
use super::{Book, Texts, ago, person, visitor};
use crate::{
    ColumnChoice, ColumnOrder, DatasetHead, DatasetOffer, DatasetPage, DatasetPurchase, DatasetRecordPage, DatasetRows,
    DatasetRowsPage, DatasetTab, Discussion, Error, FieldError, PageLayout, PreviewRows, ProofOfVersion, ReadableRows,
    RecordRow, RowsState, RowsStatement, ShownColumn, ShownFilter, SummaryOfVersion, VersionChoice, VersionContributor,
    WholeRecord,
};

/// Comparisons of the samples.
const OPERATORS: &[(&str, &str)] = &[
    ("is", "is"),
    ("not", "is not"),
    ("has", "contains"),
    ("null", "is null"),
];

/// Returns a time some minutes before that of the samples.
pub(super) fn before(minutes: i64) -> Timestamp {
    Timestamp::from_micros(ago(minutes).0)
}

/// Returns a name that a field may have.
fn name(texts: &Texts, end: &str) -> String {
    let letters = texts.word.chars().filter(|letter| !" ,;{}()=".contains(*letter));
    // A name may turn the direction of the text around it.
    let turn = if texts.word.len() > 20 { "\u{202e}" } else { "" };
    format!("{}{turn}{end}", letters.take(90).collect::<String>())
}

fn fields(texts: &Texts) -> Vec<Field> {
    let kinds = [
        ("", FieldType::String),
        ("_at", FieldType::Timestamp),
        ("_metres", FieldType::Number),
        ("_count", FieldType::Integer),
        ("_paid", FieldType::Decimal(2)),
        ("_open", FieldType::Boolean),
        ("_day", FieldType::Date),
        ("_sensor", FieldType::Json),
    ];
    let field = |(end, kind): (&str, FieldType)| Field {
        required: kind == FieldType::String,
        description: Some(
            texts
                .text
                .chars()
                .filter(|letter| !letter.is_control())
                .take(100)
                .collect(),
        ),
        ..Field::new(name(texts, end), kind)
    };
    kinds.into_iter().map(field).collect()
}

/// Returns the figures of a field, with the texts of somebody else.
fn profile(field: &Field, texts: &Texts) -> Option<ColumnProfile> {
    let bins = json!({"edges": [0, 1, 2, 3], "shares": [0.25, 0.0, 0.75]});
    let more = match field.kind {
        FieldType::String => {
            json!({"empty": 2, "other": 0, "length": {"min": 3, "max": 40, "mean": 11.5, "histogram": bins},
            "top": [{"value": texts.word, "count": 300, "exact": true}, {"value": "b", "count": 100, "exact": true}]})
        }
        FieldType::Boolean => json!({"true": 300, "false": 100}),
        FieldType::Json => json!({"length": {"min": 2, "max": 90, "mean": 20.0, "histogram": bins}}),
        FieldType::Timestamp => json!({"first": "2026-11-01T00:00:00Z", "last": "2026-11-23T10:00:00Z", "histogram": {
            "edges": ["2026-11-01T00:00:00Z", "2026-11-12T00:00:00Z", "2026-11-23T10:00:00Z"], "shares": [0.5, 0.5]}}),
        FieldType::Date => json!({"first": "2026-11-01", "last": "2026-11-23",
            "histogram": {"edges": ["2026-11-01", "2026-11-12", "2026-11-24"], "shares": [0.5, 0.5]}}),
        FieldType::Decimal(_) => json!({"scale": 2, "min": "-1.00", "max": "12.50", "mean": 3.5,
            "histogram": {"edges": ["-1.00", "5.75", "12.50"], "shares": [0.9, 0.1]}}),
        FieldType::Integer | FieldType::Number => json!({"min": -2, "max": 5_635_087, "mean": 1.12, "deviation": 0.9,
            "negative": 3, "zero": 1, "histogram": bins}),
    };
    let mut all = json!({"name": field.name, "type": field.kind.name(), "nulls": 12,
        "distinct": {"about": 5_120, "exact": field.kind == FieldType::Boolean}});
    let members = all.as_object_mut()?;
    members.extend(more.as_object()?.clone());
    serde_json::from_value(all).ok()
}

pub(super) fn columns(texts: &Texts, order: Option<ColumnOrder>) -> Vec<ShownColumn> {
    let column = |(at, field): (usize, Field)| ShownColumn {
        profile: profile(&field, texts),
        records: 400,
        order: order.filter(|_| at == 2),
        field,
    };
    fields(texts).into_iter().enumerate().map(column).collect()
}

pub(super) fn values(texts: &Texts) -> Vec<Option<Box<RawValue>>> {
    let values = [
        json!(texts.text),
        json!("2026-11-23T10:00:00.5Z"),
        json!(-2.41),
        json!(i64::MIN),
        json!("12.50"),
        json!(true),
        json!("2026-11-23"),
        json!({"type": texts.word}),
    ];
    values.iter().map(|value| to_raw_value(value).ok()).collect()
}

fn rows(texts: &Texts, count: u64) -> Vec<RecordRow> {
    let mut rows: Vec<RecordRow> = (1..=count)
        .map(|place| RecordRow {
            place: Some(place),
            values: values(texts),
            begun: Vec::new(),
        })
        .collect();
    if let Some(row) = rows.last_mut() {
        // Nulls, and an empty text.
        row.values = vec![to_raw_value(&json!("")).ok(), to_raw_value(&Value::Null).ok()];
    }
    rows
}

pub(super) fn head(texts: &Texts, offer: DatasetOffer, readable: Option<Version>) -> DatasetHead {
    DatasetHead {
        slug: "tide-gauges".to_owned(),
        title: texts.text.clone(),
        readme: TERMS.to_owned(),
        agent: Some(texts.name.clone()),
        operator: super::accounts::ACCOUNT,
        account: Some(texts.name.clone()),
        status: "open",
        license: "CC-BY-4.0".to_owned(),
        tags: vec![texts.word.clone()],
        is_private: offer == DatasetOffer::Own,
        version: Version(1_242),
        records: 839_412,
        updated_at: before(12),
        bytes: Some(6_400_000),
        contributors: 12,
        purchase: match offer {
            DatasetOffer::Priced {
                price, bought: Some(_), ..
            } => Some(DatasetPurchase {
                agent: Some(texts.name.clone()),
                at: before(3_000),
                price,
            }),
            _ => None,
        },
        sold: 14,
        review_count: 0,
        offer,
        readable,
        readable_records: readable.map(|_| 835_732),
        readable_bytes: readable.map(|_| 6_300_000),
        tab: DatasetTab::Data,
    }
}

pub(super) fn priced(bought: Option<Version>) -> DatasetOffer {
    DatasetOffer::Priced {
        price: MicroUsdc(100_000),
        takes_trial_credit: true,
        bought,
    }
}

pub(super) fn readable(texts: &Texts) -> ReadableRows {
    let choice = |version, note, here| VersionChoice {
        version: Version(version),
        note,
        here,
    };
    ReadableRows {
        versions: vec![choice(1_242, "latest", true), choice(1_241, "", false)],
        bytes: Some(6_300_000),
        names: fields(texts).into_iter().map(|field| field.name).collect(),
        operators: OPERATORS,
        filters: Vec::new(),
        order: None,
        columns: fields(texts)
            .into_iter()
            .map(|field| ColumnChoice {
                value: field.name.clone(),
                label: field.name,
                here: true,
            })
            .collect(),
        has_ranges: false,
        found: None,
        offset: 0,
        page: 50,
        token: "cm93cy10b2tlbg".to_owned(),
        sql: "/projects/tide-gauges/sql?version=1242".to_owned(),
        statement: None,
        typed: None,
        errors: Vec::new(),
        is_asked: false,
        figures: Some(Version(1_242)),
        is_beginning: false,
        failure: None,
    }
}

fn filter(texts: &Texts) -> ShownFilter {
    ShownFilter {
        column: name(texts, ""),
        operator: "is".to_owned(),
        words: "is",
        has_value: true,
        value: texts.text.chars().take(200).collect(),
    }
}

fn statement() -> RowsStatement {
    RowsStatement {
        sql: "SELECT *\nFROM records\nWHERE \"gauge\" = 'Wick'".to_owned(),
        most_rows: 1_000,
    }
}

/// Returns the rows of a page with what a reader chose.
fn view(chrome: &PageLayout, texts: &Texts, order: Option<ColumnOrder>, view: ReadableRows) -> DatasetRows {
    let head = head(texts, DatasetOffer::Free, Some(Version(1_242)));
    let rows = if view.failure.is_some() || view.found == Some(0) {
        Vec::new()
    } else {
        rows(texts, 3)
    };
    let state = RowsState::Readable(Box::new(view));
    DatasetRows::new(
        chrome,
        &head,
        (Version(1_242), 839_412),
        (columns(texts, order), rows),
        state,
    )
}

/// Returns what proves a version.
fn proof(version: Version) -> ProofOfVersion {
    ProofOfVersion {
        version,
        root: "83b419cc".repeat(8),
        records: 839_412,
        key: "557eb63353d68c62".to_owned(),
        files: Some((9, 6_400_000)),
    }
}

fn page(
    chrome: PageLayout,
    texts: &Texts,
    head: DatasetHead,
    mut rows: DatasetRows,
    is_empty: bool,
) -> Option<DatasetPage> {
    let contract = Contract::new(fields(texts), false).ok()?;
    let figures = if is_empty {
        Vec::new()
    } else {
        vec![texts.text.chars().take(60).collect(); 8]
    };
    let summary = SummaryOfVersion {
        version: Version(1_240),
        text: texts.text.clone(),
        model: texts.word.clone(),
    };
    if !is_empty {
        rows.prove(proof(rows.version()));
    }
    let contributor = VersionContributor {
        agent: texts.name.clone(),
        contributions: 183,
        added: 15_372,
    };
    Some(
        DatasetPage::new(
            chrome,
            head,
            rows,
            (contract, figures),
            ((!is_empty).then_some(Version(1_240)), before(90_000)),
            (!is_empty).then_some(summary),
            if is_empty { Vec::new() } else { vec![contributor] },
            if is_empty {
                Discussion::default()
            } else {
                discussion(texts)
            },
        )
        .with_days(if is_empty { Vec::new() } else { vec![0, 84, 1_240] }),
    )
}

pub(super) fn add(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    first_pages(book, texts)?;
    viewers(book, texts)?;
    previews(book, texts)?;
    record(book, texts)
}

fn first_pages(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    let path = "/projects/tide-gauges";
    let preview = RowsState::Preview(PreviewRows {
        level: ProfileLevel::Public,
        made_at: before(600),
        is_cut: true,
        asked: None,
    });
    let (chrome, locked) = (visitor(path), head(texts, priced(None), None));
    let mut sampled = rows(texts, 3);
    if let Some(row) = sampled.first_mut() {
        // The last column is JSON, and was cut.
        row.values.truncate(7);
        row.values.push(to_raw_value("{\"type\":\"be").ok());
        row.begun = (0..8).map(|column| column == 7).collect();
    }
    let shown = DatasetRows::new(
        &chrome,
        &locked,
        (Version(883), 809_450),
        (columns(texts, None), sampled),
        preview,
    );
    if let Some(page) = page(chrome, texts, locked, shown, false) {
        book.add("dataset-locked-terms", &page)?;
    }
    for (name, offer) in [("bought", priced(Some(Version(1_198)))), ("own", DatasetOffer::Own)] {
        let (chrome, head) = (person(path, texts, 0), head(texts, offer, Some(Version(1_198))));
        let mut shown = DatasetRows::new(
            &chrome,
            &head,
            (Version(1_198), 835_732),
            (columns(texts, None), rows(texts, 3)),
            RowsState::Readable(Box::new(readable(texts))),
        );
        shown.begin();
        if let Some(page) = page(chrome, texts, head, shown, false) {
            book.add(&format!("dataset-{name}-terms"), &page)?;
        }
    }
    Ok(())
}

fn viewers(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    let path = "/projects/tide-gauges/rows?version=1242";
    let (descending, place) = (ColumnOrder::Descending, name(texts, "_metres"));
    let states = [
        ("rows", None, readable(texts)),
        (
            "rows-chosen",
            Some(descending),
            ReadableRows {
                filters: vec![filter(texts), filter(texts), filter(texts)],
                order: Some((place, descending)),
                found: Some(120),
                offset: 50,
                statement: Some(statement()),
                ..readable(texts)
            },
        ),
        (
            "rows-middle",
            None,
            ReadableRows {
                offset: 419_750,
                ..readable(texts)
            },
        ),
        (
            "rows-asked",
            None,
            ReadableRows {
                filters: vec![filter(texts)],
                statement: Some(statement()),
                is_asked: true,
                ..readable(texts)
            },
        ),
        (
            "rows-none",
            None,
            ReadableRows {
                filters: vec![
                    ShownFilter {
                        value: String::new(),
                        ..filter(texts)
                    },
                    ShownFilter {
                        words: "is null",
                        has_value: false,
                        value: String::new(),
                        ..filter(texts)
                    },
                ],
                found: Some(0),
                ..readable(texts)
            },
        ),
        (
            "rows-typed",
            None,
            ReadableRows {
                typed: Some(filter(texts)),
                errors: vec![FieldError::new(
                    "v1",
                    format!("\u{2068}{}\u{2069} is no number", texts.word),
                )],
                ..readable(texts)
            },
        ),
        (
            "rows-failed",
            None,
            ReadableRows {
                filters: vec![filter(texts)],
                failure: Some((texts.text.clone(), true)),
                has_ranges: true,
                ..readable(texts)
            },
        ),
    ];
    for (name, order, state) in states {
        let chrome = person(path, texts, 0);
        let mut rows = view(&chrome, texts, order, state);
        rows.prove(proof(rows.version()));
        let page = DatasetRowsPage {
            rows,
            head: head(texts, DatasetOffer::Free, Some(Version(1_242))),
            chrome,
        };
        book.add(&format!("dataset-{name}"), &page)?;
    }
    older_rows(book, path, texts)
}

/// Adds rows of an earlier version than the newest that was bought.
fn older_rows(book: &mut Book, path: &str, texts: &Texts) -> Result<(), Error> {
    let chrome = person(path, texts, 0);
    let bought = head(texts, priced(Some(Version(1_242))), Some(Version(1_242)));
    let state = RowsState::Readable(Box::new(readable(texts)));
    let page = DatasetRowsPage {
        rows: DatasetRows::new(
            &chrome,
            &bought,
            (Version(1_198), 835_732),
            (columns(texts, None), rows(texts, 3)),
            state,
        ),
        head: bought,
        chrome,
    };
    book.add("dataset-rows-older", &page)
}

fn previews(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    let path = "/projects/tide-gauges/rows?version=1242";
    let (chrome, head_of_free) = (visitor(path), head(texts, DatasetOffer::Free, None));
    let page = DatasetRowsPage {
        rows: DatasetRows::new(
            &chrome,
            &head_of_free,
            (Version(1_242), 839_412),
            (columns(texts, None), Vec::new()),
            RowsState::Closed,
        ),
        head: head_of_free,
        chrome,
    };
    book.add("dataset-rows-closed", &page)?;
    let (chrome, head_of_free) = (
        person(path, texts, 0),
        head(texts, DatasetOffer::Free, Some(Version(1_242))),
    );
    let preview = RowsState::Preview(PreviewRows {
        level: ProfileLevel::Full,
        made_at: before(600),
        is_cut: false,
        asked: Some(Version(1_240)),
    });
    let mut sampled = DatasetRows::new(
        &chrome,
        &head_of_free,
        (Version(1_242), 839_412),
        (columns(texts, None), rows(texts, 3)),
        preview,
    );
    sampled.offer(path.to_owned());
    let page = DatasetRowsPage {
        rows: sampled,
        head: head_of_free,
        chrome,
    };
    book.add("dataset-rows-offered", &page)
}

fn record(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    let record = WholeRecord {
        version: Version(1_242),
        records: 839_412,
        place: 2,
        values: fields(texts).into_iter().zip(values(texts)).collect(),
        extra: to_raw_value(&json!({"note": texts.text})).ok(),
    };
    let page = DatasetRecordPage {
        chrome: person("/projects/tide-gauges/rows?row=2", texts, 0),
        head: head(texts, DatasetOffer::Free, Some(Version(1_242))),
        record,
        page: 50,
    };
    book.add("dataset-record", &page)
}

pub(super) fn add_empty(book: &mut Book) -> Result<(), Error> {
    let texts = &Texts::usual();
    let chrome = visitor("/projects/tide-gauges");
    let head = DatasetHead {
        version: Version(0),
        records: 0,
        bytes: None,
        contributors: 0,
        ..head(texts, DatasetOffer::Free, None)
    };
    let bare = columns(texts, None).into_iter().map(|column| ShownColumn {
        profile: None,
        ..column
    });
    let shown = DatasetRows::new(
        &chrome,
        &head,
        (Version(0), 0),
        (bare.collect(), Vec::new()),
        RowsState::Empty,
    );
    match page(chrome, texts, head, shown, true) {
        Some(page) => book.add("dataset-terms", &page),
        None => Ok(()),
    }
}
