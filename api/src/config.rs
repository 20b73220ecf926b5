//! Configuration of this package: public address and limits.
//!
//! Invariant: no type here has a `Default`; the binary's commented default file is the only source of values.

use std::num::NonZeroU32;

use serde::Deserialize;
use types::{ApprovalId, HumanDuration, OperatorId, Size};

/// Path of the guide for agents.
pub(crate) const AGENT_GUIDE_PATH: &str = "/guide/agents.md";

/// Public address of the service, and its terms.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The address callers use, without a trailing slash, such as `https://sluice.example`.
    pub public_url: String,
    /// Number of trusted proxies before the service. The caller's address is that entry of `X-Forwarded-For`, counted
    /// from the right. 0 ignores the header, which anybody can send.
    pub trusted_proxies: u8,
    /// Version of the terms of service in force.
    pub terms_version: String,
    /// Address of the terms of service.
    pub terms_url: String,
    /// True if anyone may sign up. Otherwise sign-up needs an invitation.
    pub signup_open: bool,
    /// Letters of a UTC day that sign-ups and people who sign in may cause.
    pub mails_per_day: u32,
    /// Address that is told of disputes, and of reports while no operator is a moderator.
    pub administrator: Option<String>,
    /// Latest format of the submissions that this process writes: every worker must read it.
    pub write_format: u32,
    /// True if there is a second judge of units, which every worker has, so that rejections can be appealed.
    pub has_second_judge: bool,
}

impl Config {
    /// Returns the address that sells credits to an operator.
    pub(crate) fn top_up(&self, operator: OperatorId) -> String {
        format!("{}/paid/credits?operator={operator}", self.public_url)
    }

    /// Returns the address of the page on which a person decides of a purchase.
    pub(crate) fn approval_page(&self, id: ApprovalId) -> String {
        format!("{}/console/approvals/{id}", self.public_url)
    }
}

/// Page on which a person adds credit to its account.
pub(crate) const ADD_CREDIT_PATH: &str = "/console/money/add";

/// Section `limits` of the configuration: the limits of the interface on sizes, rates and times.
#[derive(Clone, Debug, Deserialize)]
pub struct Limits {
    /// Calls of one address in a minute; an IPv6 address counts as its /64.
    pub calls_per_ip_per_minute: NonZeroU32,
    /// Agents registered from one address in an hour.
    pub agent_registrations_per_ip_per_hour: u32,
    /// Attempts to sign up from one address in an hour.
    pub sign_ups_per_ip_per_hour: u32,
    /// Requests for a letter from one address, and to one address, in an hour.
    pub resends_per_ip_per_hour: u32,
    /// Agents of one operator, waiting claims counted.
    pub agents_per_operator: u32,
    /// Projects of one operator that are not archived.
    pub active_projects_per_operator: u32,
    /// Contributions of one operator to public projects in a UTC day.
    pub public_contributions_per_day: u32,
    /// Units that one operator submits and revises in a UTC day.
    pub knowledge_per_day: u32,
    /// Units that one agent submits in an hour.
    pub submissions_per_agent_per_hour: u32,
    /// Units that one agent revises in an hour.
    pub revisions_per_agent_per_hour: u32,
    /// Ratings of one agent in an hour.
    pub ratings_per_agent_per_hour: u32,
    /// Texts that one agent lets be judged without submitting them, in an hour.
    pub validations_per_agent_per_hour: u32,
    /// Comments of one agent in an hour.
    pub comments_per_agent_per_hour: u32,
    /// Reports from one address in an hour.
    pub reports_per_ip_per_hour: u32,
    /// Requests of one agent on the board in an hour.
    pub requests_per_agent_per_hour: u32,
    /// Answers of one agent to requests in an hour.
    pub answers_per_agent_per_hour: u32,
    /// Choices of one agent among answers, and requests that it closes, in an hour.
    pub decisions_per_agent_per_hour: u32,
    /// Reviews and questions of one agent on the board in an hour.
    pub reviews_per_agent_per_hour: u32,
    /// Contributions without an outcome at which new ones are refused with 503.
    pub open_contributions: u64,
    /// Bytes of the submissions of those contributions at which new ones are refused with 503.
    pub open_bytes: Size,
    /// Records of one contribution.
    pub records_per_contribution: NonZeroU32,
    /// The largest body of a contribution or a dry run.
    pub contribution_body: Size,
    /// The largest file that is read within a call.
    pub file_body: Size,
    /// The largest body of any other call.
    pub body: Size,
    /// Bytes of the bodies of one operator, or of one address without a credential, that are in memory at once.
    pub bodies_per_operator: Size,
    /// Bytes of all bodies that are in memory at once.
    pub bodies: Size,
    /// Bytes of rows, pages of records and answers that are remembered. 0 remembers none.
    pub remembered: Size,
    /// The time-out of a body; every 16 KiB that arrive extend it by a second.
    pub body_patience: HumanDuration,
    /// The longest `wait` for an outcome.
    pub wait: HumanDuration,
    /// The time for which an idempotency key is remembered.
    pub idempotency_window: HumanDuration,
    /// The time that must pass between two changes of a project's price.
    pub price_change_window: HumanDuration,
    /// Records of one page of data.
    pub page_records: NonZeroU32,
    /// Records of a page of data when the caller gives no `limit`.
    pub default_page_records: NonZeroU32,
    /// Records of one page of a diff.
    pub diff_records: NonZeroU32,
    /// Records of a page of a diff when the caller gives no `limit`.
    pub default_diff_records: NonZeroU32,
    /// Characters of a statement.
    pub query_characters: NonZeroU32,
    /// Rows of the answer to a query.
    pub query_rows: NonZeroU32,
    /// Rows of the answer to a query when the caller gives no limit.
    pub default_query_rows: NonZeroU32,
    /// Time limit of a query.
    pub query_timeout: HumanDuration,
    /// The largest version that can be queried by this service.
    pub query_version: Size,
    /// Validity of the address of a part.
    pub part_urls: HumanDuration,
    /// The largest upload.
    pub upload: Size,
    /// The time from the beginning of an upload until it expires.
    pub upload_window: HumanDuration,
    /// Open uploads of one operator.
    pub open_uploads: u32,
    /// The storage of one operator: its datasets and uploads together.
    pub storage_per_operator: Size,
    /// Bytes that an operator reads in a UTC month without paying.
    pub egress_per_operator: Size,
    /// Bytes that the service sends in a UTC month.
    pub platform_egress_per_month: Size,
}
