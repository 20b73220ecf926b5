//! Page that asks the records of a dataset in SQL.
//!
//! Invariants:
//! - Opening the page runs nothing, whoever wrote its address. A statement runs when a page of this service sends the form.
//! - A person asks as its operator: the same right, the same one query at a time, the same egress. No credits are spent.

mod examples;
mod place;

use futures_util::future::OptionFuture;
use http::{Method, StatusCode};
use pages::{
    AnswerColumnKind, ChartForm, DatasetTab, NeededCells, SqlAccess, SqlAnswer, SqlExample, SqlOutcome, SqlPage,
    SqlProblem, SqlQuestion, TableCell,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::Project;
use types::Version;
use types::contract::{Contract, EXTRA_COLUMN};

use self::examples::ExampleStatement;
use super::dataset::DatasetScene;
use super::page;
use crate::call::answer::{HTML, OperationOutput, OperationResult};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::{LINE, SchemaBound, TEXT};
use crate::call::spec::{GuardedItem, Spec};
use crate::call::view::PageResponse;
use crate::call::visit::sign_in;
use crate::codes::ErrorCode;
use crate::config::Limits;
use crate::error::ApiError;
use crate::ops::page_kit::{form_lines, page_layout, sentence};
use crate::ops::query::run::{QueryAnswered, run};
use crate::rules::answer_file::{DownloadedAnswer, FileFormat};
use crate::rules::entitlement;
use crate::rules::reading::{MAX_EXACT_INTEGER, NO_VERSION, NOT_BOUGHT, NOT_YET};
use crate::state::sandbox::AnswerColumn;

const PATH: &str = "/projects/{slug}/sql";
/// Rows of an answer where nobody chose another number.
const DEFAULT_ANSWER_ROWS: u32 = 200;
/// Versions that can be chosen: the newest, and the one that is asked.
const MAX_VERSION_CHOICES: u64 = 10;
/// Formats of a file of an answer, as the form sends them, and their words.
const FORMATS: &[(&str, &str)] = &[
    ("csv", "CSV"),
    ("ndjson", "JSON Lines"),
    ("parquet", "Parquet"),
    ("arrow", "Arrow"),
];

pub(super) fn add(table: &mut Operations, limits: &Limits) {
    let bound = |at, keyword, value: u64| SchemaBound {
        at,
        keyword,
        value,
        asserted: true,
    };
    // A browser sends two characters for the end of a line; they count as one afterwards.
    let characters = u64::from(limits.query_characters.get()) * 2;
    let bounds = [
        bound("/properties/q", "maxLength", characters),
        bound("/properties/limit", "maximum", limits.query_rows.get().into()),
    ];
    let opened_page = Spec {
        item: GuardedItem::Project,
        failure: &[NO_VERSION],
        ..page("sql_page", PATH, "A dataset in SQL")
    };
    table.add(opened_page, &bounds, opened);
    let form = Spec {
        method: Method::POST,
        item: GuardedItem::Project,
        success: &[
            (200, "The page with the answer, or a file of it."),
            (303, "Nobody is signed in; the browser opens the page for that."),
        ],
        failure: &[
            (400, "The statement is refused, is not valid, or fails."),
            NOT_BOUGHT,
            NO_VERSION,
            (408, "The statement took longer than its time."),
            (413, "The version or the answer is too large."),
            (429, "Another query of the operator runs, or every place is taken."),
            NOT_YET,
        ],
        ..page("sql_form", PATH, "Ask a dataset in SQL")
    };
    table.add(form, &bounds, sent);
}

/// Question in an address.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SqlPageQuery {
    /// Slug of the dataset.
    #[schemars(length(max = 80))]
    slug: String,
    /// Version to ask.
    #[schemars(range(min = 0, max = MAX_EXACT_INTEGER))]
    version: Option<u64>,
    /// Statement.
    #[schemars(length(max = 8_000), regex(pattern = TEXT))]
    q: Option<String>,
    /// Greatest number of rows.
    #[schemars(range(min = 1, max = 1_000))]
    limit: Option<u32>,
    /// Form of the chart.
    #[schemars(length(max = 20), regex(pattern = LINE))]
    chart: Option<String>,
}

/// Question in a form.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SqlForm {
    /// Slug of the dataset.
    #[schemars(length(max = 80))]
    slug: String,
    /// Version to ask.
    #[schemars(range(min = 0, max = MAX_EXACT_INTEGER))]
    version: Option<u64>,
    /// Statement.
    #[schemars(length(max = 8_000), regex(pattern = TEXT))]
    q: String,
    /// Greatest number of rows.
    #[schemars(range(min = 1, max = 1_000))]
    limit: Option<u32>,
    /// Form of the chart.
    #[schemars(length(max = 20), regex(pattern = LINE))]
    chart: Option<String>,
    /// Format of a file with the answer; a page without one.
    file: Option<FileFormat>,
}

async fn opened(cx: Cx, input: SqlPageQuery) -> Result<PageResponse, ApiError> {
    let scene = DatasetScene::find(&cx, &input.slug).await?;
    let access = access(&cx, &scene.project).await?;
    let question = SqlQuestion {
        version: asked_version(&scene.project, &access, input.version)?,
        sql: form_lines(&input.q.unwrap_or_default()),
        limit: asked_limit(&cx, input.limit),
        chart: ChartForm::of(input.chart.as_deref().unwrap_or_default()),
    };
    PageResponse::page(&sql_page(&cx, &scene, access, question, SqlOutcome::Unasked).await?)
}

async fn sent(cx: Cx, input: SqlForm) -> Result<SqlResponse, ApiError> {
    // An answer is whole in memory, so only a few of an operator exist at once, as with those to its agents. Nothing is
    // read before there is room, so nothing is old when it is used.
    let answers = &cx.app.process.answers;
    let permit = cx.operator().map(|operator| answers.acquire(operator));
    let _permit = OptionFuture::from(permit).await;
    // What the page shows may be half a second old, the right to run a statement may not.
    let project = entitlement::visible(&cx, &input.slug).await?;
    let scene = DatasetScene::find(&cx, &input.slug).await?;
    let access = access(&cx, &project).await?;
    let question = SqlQuestion {
        version: asked_version(&project, &access, input.version)?,
        sql: form_lines(&input.q),
        limit: asked_limit(&cx, input.limit),
        chart: ChartForm::of(input.chart.as_deref().unwrap_or_default()),
    };
    if cx.operator().is_none() {
        let address = sign_in(&address(&project.slug, &question));
        return PageResponse::see(&address).map(SqlResponse::Page);
    }
    match answer(&cx, &project, &question, input.file).await {
        Ok(SqlResult::File(output)) => Ok(SqlResponse::File(output)),
        Ok(SqlResult::Answer(answered)) => {
            let outcome = SqlOutcome::Answered(Box::new(answered));
            let page = sql_page(&cx, &scene, access, question, outcome).await?;
            PageResponse::page(&page).map(SqlResponse::Page)
        }
        // A page that names the dataset must not answer where the dataset or the person is not known, nor hide a
        // defect.
        Err(error)
            if matches!(
                error.status(),
                StatusCode::NOT_FOUND | StatusCode::UNAUTHORIZED | StatusCode::INTERNAL_SERVER_ERROR
            ) =>
        {
            Err(error)
        }
        Err(error) => {
            let outcome = SqlOutcome::Failed(problem(&cx, &scene.contract, &error, &question.sql));
            let page = sql_page(&cx, &scene, access, question, outcome).await?;
            Ok(SqlResponse::Page(PageResponse::page(&page)?.of_error(&error)))
        }
    }
}

/// Page, or a file that the browser saves.
enum SqlResponse {
    Page(PageResponse),
    File(OperationOutput),
}

impl OperationResult for SqlResponse {
    const CONTENT_TYPE: &'static str = HTML;

    fn schema() -> Value {
        json!({"type": "string"})
    }

    fn into_output(self) -> Result<OperationOutput, ApiError> {
        match self {
            Self::Page(page) => page.into_output(),
            Self::File(output) => Ok(output),
        }
    }
}

/// Answer to a question in the form that was asked for.
enum SqlResult {
    Answer(SqlAnswer),
    File(OperationOutput),
}

/// Runs a statement, and counts what it answers as egress.
async fn answer(
    cx: &Cx,
    project: &Project,
    question: &SqlQuestion,
    file: Option<FileFormat>,
) -> Result<SqlResult, ApiError> {
    let version = Some(question.version).filter(|version| version.0 > 0);
    let answered = run(cx, project, version, &question.sql, question.limit).await?;
    let reader = cx.reader();
    let reader = reader.ok_or_else(|| ApiError::internal("an answer without a reader"))?;
    let egress = &cx.app.egress;
    if let Some(format) = file {
        let file = DownloadedAnswer {
            slug: &project.slug,
            version: answered.version,
            columns: &answered.columns,
            rows: &answered.rows,
            is_cut: answered.truncated,
        };
        let output = file.encode(format)?.into_output()?;
        return Ok(SqlResult::File(egress.counted(&cx.app, reader, output).await?));
    }
    let bytes = answered.rows.iter().map(|row| row.get().len() as u64 + 1).sum();
    let now = cx.app.clock.now();
    egress.admit(&cx.app, reader, now, bytes).await?;
    egress.sent(&reader, now, bytes);
    let millis = now.since(cx.now).as_millis();
    Ok(SqlResult::Answer(SqlAnswer {
        millis: u64::try_from(millis).unwrap_or(u64::MAX),
        link: format!(
            "{}{}",
            cx.app.config.public_url,
            address(
                &project.slug,
                &SqlQuestion {
                    version: answered.version,
                    ..question.clone()
                }
            )
        ),
        ..shown(&answered)?
    }))
}

/// Returns an answer as a page shows it, without its time and its link.
fn shown(answered: &QueryAnswered) -> Result<SqlAnswer, ApiError> {
    let kinds: Vec<_> = answered.columns.iter().map(|column| kind_of(&column.kind)).collect();
    let mut needed = NeededCells::new(answered.rows.len(), &kinds);
    let mut rows = Vec::new();
    for row in &answered.rows {
        if !needed.needs_more() {
            break;
        }
        let cells = cells(row, &answered.columns, &needed.columns)?;
        needed.take(&cells);
        rows.push(cells);
    }
    let column = |at: &usize| {
        Some(pages::AnswerColumn {
            kind: *kinds.get(*at)?,
            name: answered.columns.get(*at)?.name.clone(),
        })
    };
    Ok(SqlAnswer {
        version: answered.version,
        root: answered
            .root
            .as_ref()
            .filter(|_| answered.version.0 > 0)
            .map(ToString::to_string),
        rows,
        columns: needed.columns.iter().filter_map(column).collect(),
        column_count: answered.columns.len(),
        row_count: answered.rows.len(),
        is_cut: answered.truncated,
        millis: 0,
        link: String::new(),
    })
}

/// Returns the kind of the values of an Arrow type.
fn kind_of(arrow: &str) -> AnswerColumnKind {
    let begins = |words: &[&str]| words.iter().any(|word| arrow.starts_with(word));
    if arrow == "Utf8" {
        AnswerColumnKind::Text
    } else if begins(&["Int", "UInt", "Float", "Decimal"]) && !arrow.starts_with("Interval") {
        AnswerColumnKind::Number
    } else if begins(&["Timestamp", "Date"]) {
        AnswerColumnKind::Time
    } else {
        AnswerColumnKind::Other
    }
}

/// Returns the cells of a row in the columns with these indexes. Values of the type JSON are shown as JSON, so a text of JSON
/// keeps its quotes.
fn cells(row: &RawValue, columns: &[AnswerColumn], needed: &[usize]) -> Result<Vec<TableCell>, ApiError> {
    let values: Vec<&RawValue> =
        serde_json::from_str(row.get()).map_err(|error| ApiError::internal(format!("a row of an answer: {error}")))?;
    let cell = |(value, column): (&RawValue, &AnswerColumn)| match value.get() {
        "null" => Ok(TableCell::Null),
        text if text.starts_with('"') && column.kind != "Json" => {
            serde_json::from_str::<std::borrow::Cow<'_, str>>(text)
                .map(|text| TableCell::text(&text))
                .map_err(|error| ApiError::internal(format!("a text of an answer: {error}")))
        }
        text => Ok(TableCell::literal(text)),
    };
    let found = |at: &usize| Some((*values.get(*at)?, columns.get(*at)?));
    needed.iter().filter_map(found).map(cell).collect()
}

/// Returns what an error of a question says to the person, with its place in the statement.
fn problem(cx: &Cx, contract: &Contract, error: &ApiError, sql: &str) -> SqlProblem {
    let about_sql = error.details().iter().find(|detail| detail.path == "/sql");
    let mut said = SqlProblem {
        message: String::new(),
        place: None,
        meant: None,
        can_repeat: false,
    };
    match (error.code(), about_sql) {
        (ErrorCode::QueryRefused | ErrorCode::QueryFailed, Some(detail)) => {
            let message = detail.problem.strip_prefix("failed: ");
            let message = message.or_else(|| detail.problem.strip_prefix("is refused: "));
            let message = message.unwrap_or(&detail.problem);
            said.place = place::of(message, sql);
            if let Some(missing) = place::missing_column(message) {
                let names = contract.fields().iter().map(|field| field.name.as_str());
                said.meant = place::like(missing, names).map(str::to_owned);
            }
            said.message = sentence(message);
        }
        (ErrorCode::QueryRunning, _) => {
            "Another question of your account is running, and one runs at a time. Your statement stays here."
                .clone_into(&mut said.message);
            said.can_repeat = true;
        }
        (ErrorCode::QueriesBusy, _) => {
            "Every place for a question is taken. Your statement stays here.".clone_into(&mut said.message);
            said.can_repeat = true;
        }
        (ErrorCode::QueryTimeout, _) => {
            said.message = format!(
                "It took longer than {} seconds and was stopped. Ask for less, or pull the version and ask an engine of \
                 your own.",
                cx.app.limits.query_timeout.seconds()
            );
        }
        (ErrorCode::EgressQuota, _) => {
            "The egress of the month is used up, and a page buys no more. Agents of your account read on with credits."
                .clone_into(&mut said.message);
        }
        _ => {
            said.message = sentence(error.message());
            said.can_repeat = error.status().is_server_error();
        }
    }
    said
}

/// Returns the right of the reader.
async fn access(cx: &Cx, project: &Project) -> Result<SqlAccess, ApiError> {
    if cx.operator().is_none() {
        return Ok(SqlAccess::SignedOut);
    }
    let latest = entitlement::latest_readable(cx, project).await?;
    Ok(latest.map_or_else(SqlAccess::Unbought, SqlAccess::UpTo))
}

/// Returns the version that a question is about: the one that it names, else the latest that the reader may ask.
fn asked_version(project: &Project, access: &SqlAccess, named: Option<u64>) -> Result<Version, ApiError> {
    match (named.filter(|version| *version > 0), access) {
        (Some(version), _) if version <= project.version.0 => Ok(Version(version)),
        (Some(version), _) => {
            let message = format!("the dataset `{}` has no version {version}", project.slug);
            Err(ApiError::not_found(message))
        }
        (None, SqlAccess::UpTo(latest)) => Ok(*latest),
        (None, SqlAccess::SignedOut | SqlAccess::Unbought(_)) => Ok(project.version),
    }
}

fn asked_limit(cx: &Cx, named: Option<u32>) -> u32 {
    named.unwrap_or_else(|| DEFAULT_ANSWER_ROWS.min(cx.app.limits.query_rows.get()))
}

/// Returns the address of the page with a statement in its box, or with none.
pub(super) fn link(slug: &str, version: Version, sql: String) -> String {
    let question = SqlQuestion {
        version,
        sql,
        limit: DEFAULT_ANSWER_ROWS,
        chart: ChartForm::default(),
    };
    address(slug, &question)
}

/// Returns the address of the page with a question in its box.
fn address(slug: &str, question: &SqlQuestion) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    if question.version.0 > 0 {
        query.append_pair("version", &question.version.to_string());
    }
    if question.limit != DEFAULT_ANSWER_ROWS {
        query.append_pair("limit", &question.limit.to_string());
    }
    if question.chart != ChartForm::default() {
        query.append_pair("chart", question.chart.word());
    }
    if !question.sql.is_empty() {
        query.append_pair("q", &question.sql);
    }
    format!("/projects/{slug}/sql?{}", query.finish())
}

async fn sql_page(
    cx: &Cx,
    scene: &DatasetScene,
    access: SqlAccess,
    question: SqlQuestion,
    outcome: SqlOutcome,
) -> Result<SqlPage, ApiError> {
    let (project, contract) = (&scene.project, &scene.contract);
    let example = |example: ExampleStatement| SqlExample {
        href: address(
            &project.slug,
            &SqlQuestion {
                sql: example.sql,
                chart: ChartForm::default(),
                ..question.clone()
            },
        ),
        label: example.label,
    };
    let newest = match access {
        SqlAccess::UpTo(latest) => latest,
        SqlAccess::SignedOut | SqlAccess::Unbought(_) => project.version,
    };
    let first = newest.0.saturating_sub(MAX_VERSION_CHOICES - 1).max(1).min(newest.0);
    let mut versions: Vec<_> = (first..=newest.0).map(Version).collect();
    if !versions.contains(&question.version) {
        versions.push(question.version);
    }
    versions.sort_unstable_by(|left, right| right.cmp(left));
    let limits = &cx.app.limits;
    let most_rows = limits.query_rows.get();
    let mut choices = vec![DEFAULT_ANSWER_ROWS.min(most_rows), most_rows, question.limit];
    choices.sort_unstable();
    choices.dedup();
    Ok(SqlPage {
        chrome: page_layout(cx).await?,
        head: scene.head(cx, DatasetTab::Sql),
        versions,
        examples: examples::of(contract).into_iter().map(example).collect(),
        extra: contract.allow_extra().then_some(EXTRA_COLUMN),
        fields: contract.fields().to_vec(),
        question,
        access,
        outcome,
        limits: choices,
        most_characters: limits.query_characters.get(),
        most_rows,
        seconds: limits.query_timeout.seconds(),
        formats: FORMATS,
    })
}

#[cfg(test)]
mod tests;
