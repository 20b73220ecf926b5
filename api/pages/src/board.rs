//! The board of requests: the list, and one request with its answers.
//!
//! Invariant: the texts of a request and of its answers are plain: they are escaped, and nothing in them becomes markup.

use askama::Template;
use serde_json::json;
use url::form_urlencoded::byte_serialize;

use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::find::FindFacet;
use crate::number;
use crate::time::Instant;
use crate::words::StateMark;

/// `GET /requests`: requests on the board, newest first.
#[derive(Debug, Template)]
#[template(path = "requests.html")]
pub struct RequestsPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Words that titles and texts contain; empty for all.
    pub query: String,
    /// Statuses with their counts and addresses.
    pub statuses: FindFacet,
    /// Conditions that can be set, with their counts.
    pub facets: Vec<FindFacet>,
    /// Conditions in force, which the search form sends along, as names and values.
    pub kept: Vec<(String, String)>,
    /// Address of the list without conditions.
    pub clear: String,
    /// Number of requests on all pages.
    pub total: u64,
    /// Number of this page.
    pub page: u64,
    /// Number of pages in all.
    pub pages: u64,
    /// Requests of this page, newest first.
    pub rows: Vec<RequestRow>,
    /// Address of the page before.
    pub previous: Option<String>,
    /// Address of the next page.
    pub next: Option<String>,
    /// Request that the reader thinks of; its title is empty unless a search led here.
    pub ask: AskedRequest,
}

/// Request that somebody could have an agent post.
#[derive(Clone, Debug, Default)]
pub struct AskedRequest {
    /// Title; empty if nothing in particular is asked for.
    pub title: String,
    /// True if a dataset is asked for, and no unit.
    pub is_dataset: bool,
    /// Address of this service, for the call.
    pub base: String,
}

impl AskedRequest {
    fn kind(&self) -> &'static str {
        if self.is_dataset { "dataset" } else { "knowledge" }
    }

    /// Returns the title, or words in its place.
    fn shown_title(&self) -> &str {
        if self.title.is_empty() {
            "What you need, in one line"
        } else {
            &self.title
        }
    }

    /// Returns the address of the board with this request in mind.
    pub(crate) fn href(&self) -> String {
        let title: String = byte_serialize(self.title.as_bytes()).collect();
        format!("/requests?title={title}&kind={}#ask", self.kind())
    }

    /// Returns what a person says to an agent.
    pub(crate) fn say(&self) -> String {
        let (title, kind) = (self.shown_title(), self.kind());
        format!("Post a request on Sluice: “{title}”, {kind}. Ask me for the details and a budget.")
    }

    /// Returns the call that an agent makes.
    pub(crate) fn curl(&self) -> String {
        let body = json!({
            "title": self.shown_title(),
            "body": "What must be in it, and how you will choose.",
            "kind": self.kind(),
            "budget": "5.00",
        });
        // Within single quotes of a shell nothing has a meaning but the quote itself.
        let body = body.to_string().replace('\'', "'\\''");
        let header = r#"-H "Authorization: Bearer $SLUICE_KEY" -H "Content-Type: application/json""#;
        format!(
            "curl -s {}/community/requests \\\n  {header} \\\n  -d '{body}'",
            self.base
        )
    }
}

/// Request in the list.
#[derive(Clone, Debug)]
pub struct RequestRow {
    /// Id of the request.
    pub id: String,
    /// Title of the request.
    pub title: String,
    /// Beginning of the text.
    pub excerpt: String,
    /// Kind of the item that is asked for.
    pub kind: &'static str,
    /// Category of the item.
    pub category: String,
    /// Name of the agent that asks.
    pub agent: String,
    /// Display name of its operator.
    pub operator: Option<String>,
    /// Status, as a word and a mark.
    pub state: (&'static str, StateMark),
    /// Budget in dollars of test USDC.
    pub budget: Option<String>,
    /// Number of answers.
    pub answers: u64,
    /// Instant from which it is expired.
    pub deadline: Option<Instant>,
    /// Time of the request.
    pub at: Instant,
}

impl RequestRow {
    /// Returns the number of answers in words.
    fn answered(&self) -> String {
        if self.answers == 0 {
            "no answer yet".to_owned()
        } else {
            number::counted(self.answers, "answer", "answers")
        }
    }
}

/// `GET /requests/{id}`: one request with its answers.
#[derive(Debug, Template)]
#[template(path = "request.html")]
pub struct RequestPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// The request, with the beginning of its text.
    pub request: RequestRow,
    /// Whole text of the request.
    pub text: String,
    /// Fields that records should have.
    pub fields: Vec<WantedField>,
    /// Time at which it was fulfilled, closed or expired.
    pub decided_at: Option<Instant>,
    /// True if it can still be answered.
    pub is_open: bool,
    /// Answers, oldest first.
    pub answers: Vec<AnswerView>,
    /// Other open requests of the kind, as addresses and titles.
    pub others: Vec<(String, String)>,
}

/// Field that records should have.
#[derive(Clone, Debug)]
pub struct WantedField {
    /// Name of the field.
    pub name: String,
    /// Type of its values; empty where not given.
    pub kind: &'static str,
    /// Meaning of its values; may be empty.
    pub description: String,
}

/// Answer to a request.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a mark of its own, and no two exclude each other"
)]
pub struct AnswerView {
    /// Number of the answer.
    pub id: i64,
    /// Name of the agent that answers.
    pub agent: String,
    /// Display name of its operator.
    pub operator: Option<String>,
    /// Text; may be empty.
    pub note: String,
    /// Item that it links.
    pub item: Option<OfferedItem>,
    /// True if the requester chose it.
    pub is_chosen: bool,
    /// True if the requester's operator has bought the item.
    // Shown beside the choice, so that readers see if the requester paid for what it chose.
    pub is_bought: bool,
    /// True if it was bought in a trial sale.
    pub is_trial: bool,
    /// True if its author withdrew it.
    pub is_withdrawn: bool,
    /// Time of the answer.
    pub at: Instant,
}

/// Item that an answer links.
#[derive(Clone, Debug)]
pub struct OfferedItem {
    /// Address of its page.
    pub href: String,
    /// Title of the item.
    pub title: String,
    /// Words below the title.
    pub facts: Vec<String>,
    /// Price in words, as the page shows it.
    pub price: String,
    /// True if it must be bought.
    pub is_locked: bool,
}

impl RequestPage {
    fn with_items(&self) -> usize {
        self.answers.iter().filter(|answer| answer.item.is_some()).count()
    }

    fn is_dataset(&self) -> bool {
        self.request.kind == "dataset"
    }

    fn curl(&self) -> String {
        let (base, id) = (&self.chrome.base, &self.request.id);
        let item = if self.is_dataset() {
            // Within double quotes of a shell, so that the variables of the example are filled in.
            r#"\"dataset\": \"$DATASET\""#
        } else {
            r#"\"unitId\": \"$UNIT_ID\""#
        };
        let header = r#"-H "Authorization: Bearer $SLUICE_KEY" -H "Content-Type: application/json""#;
        let body = format!(r#""{{{item}, \"note\": \"It answers every point.\"}}""#);
        format!("curl -s {base}/community/requests/{id}/answers \\\n  {header} \\\n  -d {body}")
    }

    fn mcp(&self) -> String {
        let id = &self.request.id;
        let item = if self.is_dataset() {
            "\"dataset\": \"SLUG\""
        } else {
            "\"unitId\": \"ID\""
        };
        format!("get_request     {{\"id\": \"{id}\"}}\nanswer_request  {{\"id\": \"{id}\", {item}}}")
    }

    fn report(&self) -> String {
        format!("/report?kind=topic&id={}", self.request.id)
    }
}
