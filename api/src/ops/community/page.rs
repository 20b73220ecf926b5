//! The board as pages: the list of requests, and one request with its answers.
//!
//! Invariant: a page shows what the operation for programs answers to the same conditions.

use pages::console::StateMark;
use pages::{
    AnswerView, AskedRequest, FindFacet, FindValue, OfferedItem, RequestPage, RequestRow, RequestsPage, WantedField,
};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{ItemKind, RequestFilter, RequestStatus};
use types::money::MicroUsdc;
use types::vocabulary::PaidWith;
use url::form_urlencoded::Serializer;

use super::requests::{found, full};
use super::view::{FieldType, LinkedItem, RequestAnswer, RequestCounts, RequestSummary, WantedRecordField};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::LINE;
use crate::call::spec::Spec;
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::ops::page_kit::{instant, page_layout};

const PATH: &str = "/requests";
/// Status that the list has where the address names none, and the word for requests of every status.
const DEFAULT_STATUS: &str = RequestStatus::Open.as_str();
const ALL: &str = "all";
/// Last page that can be asked for.
const LAST: u64 = 1_000;
/// Other requests beside one.
const OTHERS: u32 = 4;

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "requests_page",
            path: PATH,
            summary: "Requests on the board",
            ..Spec::PAGE
        },
        &[],
        list,
    );
    table.add(
        Spec {
            name: "request_page",
            path: "/requests/{id}",
            summary: "A request with its answers",
            ..Spec::PAGE
        },
        &[],
        show,
    );
}

/// The conditions as a form sends them: what is empty is not set.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FindRequestsQuery {
    /// Words that titles and texts contain.
    #[schemars(length(max = 200), regex(pattern = LINE))]
    q: Option<String>,
    /// Status, such as `answered`, or `all`; `open` where not given.
    #[schemars(length(max = 20))]
    status: Option<String>,
    /// Kind of the item.
    #[schemars(length(max = 20))]
    kind: Option<String>,
    /// Category of the item.
    #[schemars(length(max = 60))]
    category: Option<String>,
    /// Number of the page; 1 where not given.
    #[schemars(range(min = 1, max = 1_000))]
    page: Option<u32>,
    /// Title of a request that the reader thinks of.
    #[schemars(length(max = 200), regex(pattern = LINE))]
    title: Option<String>,
}

impl FindRequestsQuery {
    /// Returns the conditions that are set, by the names of their parameters.
    fn set(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("q", &self.q),
            ("status", &self.status),
            ("kind", &self.kind),
            ("category", &self.category),
        ];
        let set = all
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_deref()?.trim())));
        set.filter(|(_, value)| !value.is_empty()).collect()
    }

    fn value(&self, name: &str) -> &str {
        let set = self.set();
        set.iter()
            .find(|(other, _)| *other == name)
            .map_or("", |(_, value)| *value)
    }

    /// Returns the address of the conditions with one of them changed, or the page. An empty value lifts it.
    fn with(&self, name: &str, value: &str) -> String {
        let mut query = Serializer::new(String::new());
        query.extend_pairs(self.set().into_iter().filter(|(other, _)| *other != name));
        if !value.is_empty() {
            query.append_pair(name, value);
        }
        match query.finish() {
            query if query.is_empty() => PATH.to_owned(),
            query => format!("{PATH}?{query}"),
        }
    }

    /// Returns a condition with the counts of its values.
    fn facet<'c>(
        &self,
        title: &'static str,
        name: &str,
        counts: impl IntoIterator<Item = (&'c String, &'c u64)>,
    ) -> FindFacet {
        let values = counts.into_iter().map(|(value, count)| {
            let here = self.value(name) == value;
            FindValue {
                label: value.clone(),
                count: *count,
                href: self.with(name, if here { "" } else { value }),
                here,
            }
        });
        FindFacet {
            title,
            values: values.collect(),
        }
    }

    /// Returns the status of the list, or [`ALL`].
    fn status(&self) -> &str {
        match self.value("status") {
            "" => DEFAULT_STATUS,
            status => status,
        }
    }

    /// Returns the conditions as the operation for programs takes them.
    fn wanted(&self) -> serde_json::Map<String, serde_json::Value> {
        let set = self.set().into_iter().filter(|(name, _)| *name != "status");
        let status = Some(("status", self.status())).filter(|(_, status)| *status != ALL);
        let texts = set.chain(status);
        let mut wanted: serde_json::Map<_, _> = texts
            .map(|(name, value)| (name.to_owned(), value.to_owned().into()))
            .collect();
        if let Some(page) = self.page {
            wanted.insert("page".to_owned(), page.into());
        }
        wanted
    }

    /// Returns the statuses in the order in which a request goes through them, then all.
    fn statuses(&self, counts: &RequestCounts) -> FindFacet {
        let value = |word: &str, count| FindValue {
            label: word.to_owned(),
            count,
            href: self.with("status", if word == DEFAULT_STATUS { "" } else { word }),
            here: self.status() == word,
        };
        let each = RequestStatus::WORDS
            .iter()
            .map(|word| value(word, counts.status.get(*word).copied().unwrap_or_default()));
        let all = value(ALL, counts.status.values().sum());
        FindFacet {
            title: "Status",
            values: each.chain([all]).collect(),
        }
    }
}

async fn list(cx: Cx, mut input: FindRequestsQuery) -> Result<PageResponse, ApiError> {
    let unknown = |_error| ApiError::not_found("there is no such list");
    let wanted = serde_json::from_value(input.wanted().into()).map_err(unknown)?;
    let mut board = found(&cx, wanted).await?;
    let answered = RequestStatus::Answered.as_str();
    // Without an open request, the board opens with answered requests, whose askers have not chosen yet.
    if board.total == 0 && input.set().is_empty() && board.counts.status.get(answered).is_some_and(|count| *count > 0) {
        input.status = Some(answered.to_owned());
        let wanted = serde_json::from_value(input.wanted().into()).map_err(unknown)?;
        board = found(&cx, wanted).await?;
    }
    let (page, pages) = (u64::from(board.page), board.pages.clamp(1, LAST));
    // The most frequent category comes first.
    let mut categories: Vec<_> = board.counts.category.iter().collect();
    categories.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    // The text is a field of the form and comes with it.
    let kept = input.set().into_iter().filter(|(name, _)| *name != "q");
    PageResponse::page(&RequestsPage {
        chrome: page_layout(&cx).await?,
        query: input.value("q").to_owned(),
        statuses: input.statuses(&board.counts),
        facets: vec![
            input.facet("Kind", "kind", &board.counts.kind),
            input.facet("Category", "category", categories),
        ],
        ask: AskedRequest {
            title: input.title.as_deref().unwrap_or_default().trim().to_owned(),
            is_dataset: input.value("kind") == "dataset",
            base: cx.app.config.public_url.clone(),
        },
        kept: kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        clear: PATH.to_owned(),
        total: board.total,
        page,
        pages,
        previous: (page > 1).then(|| input.with("page", &(page - 1).min(pages).to_string())),
        next: (page < pages).then(|| input.with("page", &(page + 1).to_string())),
        rows: board
            .items
            .into_iter()
            .map(|listed| row(listed.summary, listed.excerpt))
            .collect(),
    })
}

/// Returns a request as pages show it.
fn row(summary: RequestSummary, excerpt: String) -> RequestRow {
    let mark = match summary.status {
        RequestStatus::Open => StateMark::Live,
        RequestStatus::Answered => StateMark::Hold,
        RequestStatus::Fulfilled => StateMark::Ok,
        RequestStatus::Closed | RequestStatus::Expired => StateMark::Off,
    };
    RequestRow {
        id: summary.id,
        title: summary.title,
        excerpt,
        kind: summary.kind.as_str(),
        category: summary.category,
        agent: summary.agent,
        operator: summary.operator,
        state: (summary.status.as_str(), mark),
        budget: summary.budget,
        answers: summary.answer_count,
        deadline: summary.deadline.map(|at| instant(at.instant())),
        at: instant(summary.created_at.instant()),
    }
}

/// A request in a path.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RequestPagePath {
    /// Id of the request.
    #[schemars(length(max = 64))]
    id: String,
}

async fn show(cx: Cx, input: RequestPagePath) -> Result<PageResponse, ApiError> {
    let shown = full(&cx, &input.id).await?;
    let (summary, text) = (shown.request.summary, shown.request.body);
    let alike = RequestFilter {
        status: Some(RequestStatus::Open),
        kind: Some(summary.kind),
        ..RequestFilter::default()
    };
    let community = cx.app.store.community();
    let others = community.requests(&alike, cx.now, 0, OTHERS).await?;
    let others = others.into_iter().filter(|other| other.id.to_string() != summary.id);
    PageResponse::page(&RequestPage {
        chrome: page_layout(&cx).await?,
        text,
        fields: shown.request.fields.into_iter().map(field).collect(),
        decided_at: summary.decided_at.as_ref().map(|at| instant(at.instant())),
        is_open: matches!(summary.status, RequestStatus::Open | RequestStatus::Answered),
        others: others
            .map(|other| (format!("{PATH}/{}", other.id), other.title))
            .collect(),
        answers: shown.answers.into_iter().map(answer).collect(),
        request: row(summary, String::new()),
    })
}

fn field(field: WantedRecordField) -> WantedField {
    WantedField {
        name: field.name,
        kind: match field.kind {
            None => "",
            Some(FieldType::String) => "string",
            Some(FieldType::Number) => "number",
            Some(FieldType::Integer) => "integer",
            Some(FieldType::Boolean) => "boolean",
        },
        description: field.description.unwrap_or_default(),
    }
}

fn answer(answer: RequestAnswer) -> AnswerView {
    AnswerView {
        id: answer.id,
        agent: answer.agent,
        operator: answer.operator,
        note: answer.note,
        item: answer.item.map(offered),
        is_chosen: answer.chosen,
        is_bought: answer.bought,
        is_trial: answer.bought_with == Some(PaidWith::Given),
        is_withdrawn: answer.withdrawn_at.is_some(),
        at: instant(answer.at.instant()),
    }
}

fn offered(item: LinkedItem) -> OfferedItem {
    let name = item.unit_id.or(item.dataset).unwrap_or_default();
    let version = item.version.map(|version| format!("v{version}"));
    let with_key = (!item.locked && item.price_micro > 0).then(|| "free with an account".to_owned());
    let (kind, href) = match item.kind {
        ItemKind::Unit => ("Knowledge", format!("/units/{name}")),
        ItemKind::Dataset => ("Dataset", format!("/projects/{name}")),
    };
    OfferedItem {
        href,
        title: item.title,
        facts: [Some(kind.to_owned()), version, with_key]
            .into_iter()
            .flatten()
            .collect(),
        price: if item.price_micro == 0 {
            "Free".to_owned()
        } else {
            format!("${}", MicroUsdc(item.price_micro))
        },
        is_locked: item.locked,
    }
}
