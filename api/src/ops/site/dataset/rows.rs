//! Rows of a dataset: a page of the viewer, one record whole, or the stored preview.
//!
//! Invariants:
//! - Without the right to a version nothing but the stored preview is shown, whatever the address says.
//! - Filters and an order run a statement only if a page of this service, made for the session, asks for them.
//! - Rows are read only if no other site led here, which sees to it that the stored preview is shown.
//! - Rows count toward the egress of the reader's account as `read_dataset` counts them, and are never paid for.

mod columns;
mod query;

use bytes::Bytes;
use catalog::Snapshot;
use http::StatusCode;
use pages::{
    DatasetHead, DatasetRecordPage, DatasetRows, DatasetRowsPage, DatasetTab, PageLayout, PreviewRows, ReadableRows,
    RecordRow, RowsState, RowsStatement, ShownFilter, VersionChoice, WholeRecord,
};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use types::{Field, Version};

use self::columns::{ShownColumns, aligned, all_columns, members, names_to_filter, others, with_profile};
use self::query::{RowsQuery, TypedInVain};
use super::scene::DatasetScene;
use super::select::{AskedRows, OPERATORS};
use super::versions;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{GuardedItem, Spec};
use crate::call::view::PageResponse;
use crate::call::visit::BrowserRequest;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::ops::data::page_json;
use crate::ops::page_kit::{page_layout, sentence};
use crate::ops::query::run::{AskedQuery, PAGE_PATIENCE, ask};
use crate::ops::site::{page, sql};
use crate::rules::profiles;
use crate::rules::reading::{self, NO_VERSION, NOT_YET};

pub(super) use self::columns::{BareColumns, values};

/// Rows on a page of the viewer.
const PAGE_ROWS: u32 = 50;
/// Rows on the first screen of a dataset.
const FIRST_ROWS: u32 = 10;
/// Versions of the list of the viewer.
const VERSION_CHOICES: u64 = 8;

pub(super) fn add(table: &mut Operations) {
    let spec = Spec {
        item: GuardedItem::Project,
        success: &[
            (200, "The page."),
            (303, "The address of what the form asks for; the browser opens it."),
        ],
        failure: &[NO_VERSION, NOT_YET],
        ..page("dataset_rows_page", "/projects/{slug}/rows", "Rows of a dataset")
    };
    table.add(spec, &[], rows);
}

async fn rows(cx: Cx, input: RowsQuery) -> Result<PageResponse, ApiError> {
    let scene = DatasetScene::find(&cx, &input.slug).await?;
    let columns = all_columns(&scene.contract);
    let shown = ShownColumns::of(&input.cols, &columns);
    let chrome = page_layout(&cx).await?;
    let head = scene.head(&cx, DatasetTab::Data);
    let asked = input.version.map(Version);
    let readable = match (asked, scene.readable) {
        (Some(asked), Some(_)) if profiles::may_read(&cx, &scene.project, asked).await? => Some(asked),
        (None, readable) => readable,
        _ => None,
    };
    let Some(version) = readable.filter(|_| !is_from_elsewhere(&cx)) else {
        let offered = readable.map(|version| (version, input.address(&shown, None)));
        let rows = preview(&cx, &scene, (&chrome, &head), asked, offered).await?;
        let rows = proven(&cx, &scene, rows).await?;
        return PageResponse::page(&DatasetRowsPage { chrome, head, rows });
    };
    if let Some(address) = input.shorter(&shown) {
        return PageResponse::see(&address);
    }
    if let Some(place) = input.row {
        return record(&cx, &scene, (chrome, head), version, place).await;
    }
    let mut typed = TypedInVain::default();
    let asked = input.asked(&columns, shown.indexes.clone(), &mut typed)?;
    let is_own_filter = cx.the_visit()?.is_own_filter(&scene.project.slug, input.run.as_deref());
    let is_bad = !typed.errors.is_empty();
    let rows = viewer(
        &cx,
        &scene,
        (&chrome, &head),
        version,
        (&columns, &shown),
        (asked, typed, is_own_filter),
    )
    .await?;
    let rows = proven(&cx, &scene, rows).await?;
    let page = PageResponse::page(&DatasetRowsPage { chrome, head, rows })?;
    Ok(if is_bad {
        page.with_status(StatusCode::BAD_REQUEST)
    } else {
        page
    })
}

/// Returns the rows with what proves their version.
async fn proven(cx: &Cx, scene: &DatasetScene, mut rows: DatasetRows) -> Result<DatasetRows, ApiError> {
    if let Some(proof) = versions::proof(cx, scene, rows.version()).await? {
        rows.prove(proof);
    }
    Ok(rows)
}

/// Returns the first rows of a dataset: those of the newest version that the reader may read, or the preview. Beside them the
/// line of figures for each field.
pub(super) async fn first(
    cx: &Cx,
    scene: &DatasetScene,
    chrome: &PageLayout,
    head: &DatasetHead,
) -> Result<DatasetRows, ApiError> {
    let Some(version) = scene.readable.filter(|_| !is_from_elsewhere(cx)) else {
        let address = || format!("/projects/{}/rows", scene.project.slug);
        let offered = scene.readable.map(|version| (version, address()));
        let rows = preview(cx, scene, (chrome, head), None, offered).await?;
        return proven(cx, scene, rows).await;
    };
    let columns = all_columns(&scene.contract);
    let shown = ShownColumns::of(&[], &columns);
    let asked = AskedRows {
        columns: shown.indexes.clone(),
        filters: Vec::new(),
        order: None,
        offset: 0,
        limit: FIRST_ROWS,
    };
    let mut rows = viewer(
        cx,
        scene,
        (chrome, head),
        version,
        (&columns, &shown),
        (asked, TypedInVain::default(), false),
    )
    .await?;
    rows.begin();
    proven(cx, scene, rows).await
}

/// Returns true if another site led the browser here.
pub(super) fn is_from_elsewhere(cx: &Cx) -> bool {
    cx.visit.as_ref().is_some_and(BrowserRequest::is_from_elsewhere)
}

/// Returns the stored preview, or the heads of the columns alone. A reader who may read a version is offered the address of its
/// rows.
async fn preview(
    cx: &Cx,
    scene: &DatasetScene,
    (chrome, head): (&PageLayout, &DatasetHead),
    asked: Option<Version>,
    offered: Option<(Version, String)>,
) -> Result<DatasetRows, ApiError> {
    let project = &scene.project;
    let columns = all_columns(&scene.contract);
    let usual = ShownColumns::of(&[], &columns).indexes;
    let profile = match (&offered, asked) {
        (Some((version, _)), _) => profiles::shown_upto(cx, project, *version).await?,
        (None, None) => profiles::shown(cx, project, None).await?,
        // A version that there is not has no preview of its own; a reader without a right sees the newest one then.
        (None, asked) => match profiles::shown(cx, project, asked).await? {
            Some(profile) => Some(profile),
            None => profiles::shown(cx, project, None).await?,
        },
    };
    let state = match &profile {
        _ if project.version == Version::EMPTY => RowsState::Empty,
        Some(profile) if !profile.preview.is_empty() => RowsState::Preview(PreviewRows {
            level: profile.level,
            made_at: profile.made_at,
            is_cut: profile.is_cut,
            asked: asked.filter(|asked| *asked != profile.version),
        }),
        _ => RowsState::Closed,
    };
    let mut rows = Vec::new();
    for (at, record) in profile.iter().flat_map(|profile| &profile.preview).enumerate() {
        let place = profile.as_ref().and_then(|profile| profile.offsets.get(at));
        let begun = profile.as_ref().and_then(|profile| profile.begun.get(at));
        let is_begun = |column: &usize| {
            let name = columns.get(*column).map(|field| &field.name);
            begun.zip(name).is_some_and(|(begun, name)| begun.contains(name))
        };
        let record = record
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), to_raw_value(value).ok()?)));
        rows.push(RecordRow {
            place: place.map(|offset| offset + 1),
            values: aligned(record.collect(), &scene.contract, &columns, &usual),
            begun: usual.iter().map(is_begun).collect(),
        });
    }
    let of = profile
        .as_ref()
        .map_or((project.version, project.record_count), |profile| {
            (profile.version, profile.records)
        });
    let columns = with_profile(&columns, &usual, profile.as_ref(), None);
    let mut rows = DatasetRows::new(chrome, head, of, (columns, rows), state);
    if let Some((_, address)) = offered {
        rows.offer(address);
    }
    Ok(rows)
}

/// Returns a page of the viewer. What keeps it from reading rows now is said on it.
async fn viewer(
    cx: &Cx,
    scene: &DatasetScene,
    (chrome, head): (&PageLayout, &DatasetHead),
    version: Version,
    (columns, shown): (&[Field], &ShownColumns),
    (asked, typed, is_own_filter): (AskedRows, TypedInVain, bool),
) -> Result<DatasetRows, ApiError> {
    let project = &scene.project;
    let snapshot = reading::entitled(cx, project, Some(version)).await;
    let total = snapshot.as_ref().map_or(0, Snapshot::record_count);
    let bytes = snapshot.as_ref().ok().map(Snapshot::bytes);
    // The figures are of this version or of an earlier one; the heads are small, and say what a column is like.
    let profile = profiles::shown_upto(cx, project, version).await?;
    if let (Ok(snapshot), true) = (&snapshot, profile.as_ref().map(|found| found.version) != Some(version)) {
        profiles::request::ask_for(cx, project, snapshot).await?;
    }
    let is_asked = asked.needs_statement() && !is_own_filter;
    let read = match snapshot {
        Ok(snapshot) if asked.needs_statement() && !is_asked => selected(cx, scene, &snapshot, columns, &asked).await,
        Ok(snapshot) => plain(cx, scene, &snapshot, columns, &asked).await,
        Err(error) => Err(error),
    };
    let (rows, found, failure) = match read {
        Ok((rows, found)) => (rows, found, None),
        Err(error) => (Vec::new(), None, Some(failure(cx, error)?)),
    };
    let order = asked.order.filter(|_| !is_asked);
    let (choices, has_ranges) = shown.choices(columns);
    let name = |at: usize| columns.get(at).map(|field| field.name.clone()).unwrap_or_default();
    let filters = asked.filters.iter().map(|filter| {
        let (operator, words) = filter.operator.words();
        ShownFilter {
            column: name(filter.column),
            operator: operator.to_owned(),
            words,
            has_value: filter.operator.has_value(),
            value: filter.value.clone(),
        }
    });
    let statement = statement(cx, columns, &asked);
    let view = ReadableRows {
        versions: versions_to_choose(scene, version),
        bytes,
        names: names_to_filter(columns, shown),
        operators: OPERATORS,
        filters: filters.collect(),
        order: asked.order.map(|(at, order)| (name(at), order)),
        columns: choices,
        has_ranges,
        found: found.or_else(|| (asked.filters.is_empty() || is_asked).then_some(total)),
        offset: asked.offset,
        page: PAGE_ROWS.into(),
        token: cx.the_visit()?.rows_token(&project.slug),
        sql: sql::link(&project.slug, version, statement.clone().unwrap_or_default()),
        statement: statement.map(|sql| RowsStatement {
            sql,
            most_rows: cx.app.limits.query_rows.get(),
        }),
        typed: typed.filter,
        errors: typed.errors,
        is_asked,
        figures: profile.as_ref().map(|profile| profile.version),
        is_beginning: false,
        failure,
    };
    let columns = with_profile(columns, &asked.columns, profile.as_ref(), order);
    let state = RowsState::Readable(Box::new(view));
    Ok(DatasetRows::new(chrome, head, (version, total), (columns, rows), state))
}

/// Returns what filters or orders the rows as the statement of a person, unless it is too long to be taken.
fn statement(cx: &Cx, columns: &[Field], asked: &AskedRows) -> Option<String> {
    let statement = asked.needs_statement().then(|| asked.question(columns));
    let most = cx.app.limits.query_characters.get() as usize;
    statement.filter(|sql| sql.chars().count() <= most)
}

/// Returns the versions that the viewer offers: the newest ones that the reader may read, and the one that it shows.
fn versions_to_choose(scene: &DatasetScene, here: Version) -> Vec<VersionChoice> {
    let readable = scene.readable.unwrap_or(here);
    let oldest = readable.0.saturating_sub(VERSION_CHOICES - 1).max(1);
    let mut numbers: Vec<u64> = (oldest..=readable.0).rev().collect();
    if !numbers.contains(&here.0) {
        numbers.push(here.0);
        numbers.sort_unstable_by(|left, right| right.cmp(left));
    }
    let choice = |number: u64| VersionChoice {
        version: Version(number),
        note: match number {
            _ if number == scene.project.version.0 => "latest",
            _ if number == readable.0 => "newest you own",
            _ => "",
        },
        here: number == here.0,
    };
    numbers.into_iter().map(choice).collect()
}

/// Rows with the number of all that were found, if it is known.
type FoundRows = (Vec<RecordRow>, Option<u64>);

/// Returns the rows of a page in the order of the version.
async fn plain(
    cx: &Cx,
    scene: &DatasetScene,
    snapshot: &Snapshot,
    columns: &[Field],
    asked: &AskedRows,
) -> Result<FoundRows, ApiError> {
    let records = records(&page_json(cx, snapshot, asked.offset, asked.limit).await?)?;
    count(cx, records.iter().map(|record| record.get().len() as u64 + 1).sum()).await?;
    let mut rows = Vec::with_capacity(records.len());
    for (place, record) in (asked.offset.saturating_add(1)..).zip(&records) {
        rows.push(RecordRow {
            place: Some(place),
            values: aligned(members(record)?, &scene.contract, columns, &asked.columns),
            begun: Vec::new(),
        });
    }
    Ok((rows, None))
}

/// Part of an answer of `read_dataset`.
#[derive(Deserialize)]
struct RecordsOfPage {
    items: Vec<Box<RawValue>>,
}

/// Returns the records of a page of `read_dataset`.
fn records(page: &Bytes) -> Result<Vec<Box<RawValue>>, ApiError> {
    let page: RecordsOfPage =
        serde_json::from_slice(page).map_err(|error| ApiError::internal(format!("a page of records: {error}")))?;
    Ok(page.items)
}

/// Counts record bytes as egress of the reader's account.
///
/// # Errors
/// 402 and 429 if no more may be sent for nothing; 403 if another site led the browser here, which would use up the egress.
pub(super) async fn count(cx: &Cx, bytes: u64) -> Result<(), ApiError> {
    if is_from_elsewhere(cx) {
        let message = "another site led here, so no row is read yet; open this page from another page of the dataset";
        return Err(ApiError::new(ErrorCode::ForeignForm, message));
    }
    let Some(reader) = cx.reader().filter(|_| cx.answer_is_sent) else {
        return Ok(());
    };
    cx.app.egress.admit(&cx.app, reader, cx.now, bytes).await?;
    cx.app.egress.sent(&reader, cx.now, bytes);
    Ok(())
}

/// Returns the rows that a statement filters and orders.
async fn selected(
    cx: &Cx,
    scene: &DatasetScene,
    snapshot: &Snapshot,
    columns: &[Field],
    asked: &AskedRows,
) -> Result<FoundRows, ApiError> {
    let sql = asked.statement(columns);
    let most = cx.app.limits.query_characters.get();
    if sql.chars().count() > most as usize {
        let message = "the names of these columns are too long to be filtered or ordered at once; show fewer columns";
        return Err(ApiError::new(ErrorCode::QueryTooLarge, message));
    }
    let question = AskedQuery {
        version: Some(snapshot.version()),
        sql: &sql,
        limit: asked.limit,
        is_steady: true,
        has_places: true,
        is_repeated: false,
        patience: PAGE_PATIENCE,
    };
    let answered = ask(cx, &scene.project, &question).await?;
    count(cx, answered.rows.iter().map(|row| row.get().len() as u64 + 1).sum()).await?;
    let broken = |what: &str| ApiError::internal(format!("a row of the viewer: {what}"));
    let (mut rows, mut found) = (Vec::with_capacity(answered.rows.len()), None);
    for row in &answered.rows {
        let mut values: Vec<Box<RawValue>> =
            serde_json::from_str(row.get()).map_err(|error| broken(&error.to_string()))?;
        let rest = values.split_off(values.len().min(asked.columns.len()));
        let number = |at: usize| -> Result<u64, ApiError> {
            let text = rest.get(at).ok_or_else(|| broken("a value is missing"))?.get();
            text.parse().map_err(|_error| broken("a place is no number"))
        };
        if !asked.filters.is_empty() {
            found = Some(number(2)?);
        }
        // The records of a version follow those of the version before.
        let before = Version(number(0)?.saturating_sub(1));
        let before = snapshot.at(before).map_or(0, |before| before.record_count());
        rows.push(RecordRow {
            place: Some(before.saturating_add(number(1)?).saturating_add(1)),
            values: values.into_iter().map(Some).collect(),
            begun: Vec::new(),
        });
    }
    if rows.is_empty() && asked.offset == 0 {
        found = Some(0);
    }
    Ok((rows, found))
}

/// Returns what the page says of an error, and true if it helps to try again. An error that hides the dataset, and a defect,
/// are answered as such.
pub(super) fn failure(cx: &Cx, error: ApiError) -> Result<(String, bool), ApiError> {
    if matches!(
        error.status(),
        StatusCode::NOT_FOUND | StatusCode::INTERNAL_SERVER_ERROR
    ) {
        return Err(error);
    }
    Ok(match error.code() {
        ErrorCode::QueryRunning => (
            "Another question of your account is running, and one runs at a time.".to_owned(),
            true,
        ),
        ErrorCode::QueriesBusy => ("Every place for a question is taken.".to_owned(), true),
        ErrorCode::QueryTimeout => (
            format!(
                "It took longer than {} seconds and was stopped. Filter by less, or pull the version and ask an engine of \
                 your own.",
                cx.app.limits.query_timeout.seconds()
            ),
            false,
        ),
        ErrorCode::EgressQuota => (
            "The egress of the month is used up, and a page buys no more. Agents of your account read on with credits."
                .to_owned(),
            false,
        ),
        _ => {
            let detail = error.details().first().map(|detail| detail.problem.as_str());
            let is_late = error.status().is_server_error() || error.status() == StatusCode::TOO_MANY_REQUESTS;
            (sentence(detail.unwrap_or_else(|| error.message())), is_late)
        }
    })
}

/// Returns the page of one record.
async fn record(
    cx: &Cx,
    scene: &DatasetScene,
    (chrome, head): (PageLayout, DatasetHead),
    version: Version,
    place: u64,
) -> Result<PageResponse, ApiError> {
    let snapshot = reading::entitled(cx, &scene.project, Some(version)).await?;
    let found = records(&page_json(cx, &snapshot, place - 1, 1).await?)?;
    let record = found.first().ok_or_else(|| {
        let (slug, count) = (&scene.project.slug, snapshot.record_count());
        ApiError::not_found(format!(
            "version {version} of `{slug}` has {count} rows, and no row {place}"
        ))
    })?;
    count(cx, record.get().len() as u64 + 1).await?;
    let mut members = members(record)?;
    let fields = scene.contract.fields().iter();
    let values = fields
        .map(|field| (field.clone(), members.remove(&field.name)))
        .collect();
    let record = WholeRecord {
        version,
        records: snapshot.record_count(),
        place,
        values,
        extra: others(&members),
    };
    PageResponse::page(&DatasetRecordPage {
        chrome,
        head,
        record,
        page: PAGE_ROWS.into(),
    })
}
