//! A copy of all that the service keeps about an account, as one JSON document.
//!
//! Invariant: the document is made while it is sent, a page of a list at a time, so its size does not matter; an error closes
//! the connection, so that a part is not taken for the whole. It has no secret: keys and tokens are kept as hashes, and are
//! left out.

mod rows;

use std::io;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use serde_json::{Value, json};
use store::{DisputeSide, EntryCursor, EntryFilter, GivenMark, GivenRating, OpinionPlace};
use types::{ApprovalId, ContributionId, DatasetId, DisputeId, OperatorId, ReportId, RequestId, SaleId, UnitId};

use super::account;
use crate::call::answer::{FileDownload, JSON};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::wire::NoInput;
use crate::error::ApiError;
use crate::ops::page_kit::page;
use crate::state::holder_limit::HolderPermit;

/// Rows of a list that are read at a time.
const ROWS: u32 = 200;
/// Payouts, takedowns and waiting approvals in the document, newest first.
const HEAD_ROWS: u32 = 5_000;

pub(super) fn add(table: &mut Operations) {
    table.add(
        page(
            "account_copy_file",
            "/console/settings/account.json",
            "A copy of all data of the account",
        ),
        &[],
        copy,
    );
}

async fn copy(cx: Cx, _: NoInput) -> Result<FileDownload, ApiError> {
    let operator = cx.the_operator()?;
    // As many as downloads of datasets are sent to one operator at once, and more wait.
    let permit = cx.app.process.exports.acquire(operator).await;
    let head = head(&cx).await?;
    let sent = SentCopy {
        cx,
        operator,
        list: 0,
        page: ListPage::Begin,
        _permit: permit,
    };
    let lists = stream::try_unfold(sent, async |mut sent: SentCopy| {
        let piece = sent.next().await.map_err(|error| broken(&error))?;
        Ok(piece.map(|piece| (piece, sent)))
    });
    let pieces: BoxStream<'static, Result<Bytes, io::Error>> = stream::iter([Ok(head)]).chain(lists).boxed();
    Ok(FileDownload::pieces("account.json", JSON, pieces))
}

/// Returns the beginning of the document: the account and its short lists, without the brace that ends it.
async fn head(cx: &Cx) -> Result<Bytes, ApiError> {
    let operator = cx.the_operator()?;
    let account = account(cx).await?;
    let store = &cx.app.store;
    let (accounts, money) = (store.accounts(), store.money());
    let (sessions, tokens, agents, claims) = tokio::try_join!(
        accounts.sessions_of(operator, cx.now),
        accounts.tokens_of(operator),
        accounts.agents_of(operator, cx.now),
        accounts.claims_of(operator, ROWS, cx.now)
    )?;
    let moderation = store.moderation();
    let (payout, apps, payouts, takedowns, waiting) = tokio::try_join!(
        accounts.payout(operator, cx.now),
        async { store.oauth().connections_of(operator, cx.now).await },
        money.payouts_of(operator, HEAD_ROWS),
        moderation.takedowns_of(operator, HEAD_ROWS),
        money.approvals_waiting(operator, HEAD_ROWS, cx.now)
    )?;
    let muted: Vec<_> = account.muted_letters.iter().map(|topic| topic.as_str()).collect();
    let head = json!({
        "format": "sluice-account-1",
        "madeAt": cx.now.to_string(),
        "account": {
            "id": account.id.to_string(),
            "email": account.email,
            "displayName": account.display_name,
            "isNameHidden": account.profile_hidden,
            "mutedLetters": muted,
            "termsVersion": account.terms_version,
            "createdAt": account.created_at.to_string(),
            "verifiedAt": account.verified_at.map(|at| at.to_string()),
            "adultStatedAt": account.adult_stated_at.map(|at| at.to_string()),
            "payoutAddress": payout.address,
            "payoutProvedAt": payout.proved_at.map(|at| at.to_string()),
            "payoutNext": payout.next.map(|(address, at)| json!({"address": address, "at": at.to_string()})),
        },
        "sessions": sessions.into_iter().map(|session| json!({
            "id": session.id.to_string(),
            "createdAt": session.created_at.to_string(),
            "seenAt": session.seen_at.to_string(),
            "expiresAt": session.expires_at.to_string(),
            "address": session.address,
            "userAgent": session.user_agent,
        })).collect::<Vec<_>>(),
        "operatorTokens": tokens.into_iter().map(|token| json!({
            "id": token.id.to_string(),
            "label": token.label,
            "createdAt": token.created_at.to_string(),
        })).collect::<Vec<_>>(),
        "agents": agents.into_iter().map(|agent| json!({
            "id": agent.id.to_string(),
            "name": agent.name,
            "description": agent.description,
            "walletAddress": agent.wallet_address,
            "createdAt": agent.created_at.to_string(),
            "removedAt": agent.removed_at.map(|at| at.to_string()),
            "keys": agent.keys.into_iter().map(|key| json!({
                "id": key.id.to_string(),
                "label": key.label,
                "createdAt": key.created_at.to_string(),
                "expiresAt": key.expires_at.map(|at| at.to_string()),
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "claims": claims.into_iter().map(|claim| json!({
            "id": claim.id.to_string(),
            "name": claim.name,
            "status": claim.status.as_str(),
            "createdAt": claim.created_at.to_string(),
            "decidedAt": claim.decided_at.map(|at| at.to_string()),
        })).collect::<Vec<_>>(),
        "apps": apps.into_iter().map(|app| json!({
            "id": app.id.to_string(),
            "clientId": app.client_id,
            "agent": app.agent_name,
            "resource": app.resource,
            "scopes": app.scopes,
            "beganAt": app.began_at.to_string(),
            "usedAt": app.used_at.map(|at| at.to_string()),
        })).collect::<Vec<_>>(),
        "payouts": payouts.into_iter().map(|payout| json!({
            "id": payout.id,
            "address": payout.address,
            "amountMicro": payout.amount.0,
            "state": payout.state.as_str(),
            "transaction": payout.transaction,
            "createdAt": payout.created_at.to_string(),
        })).collect::<Vec<_>>(),
        "takedowns": takedowns.iter().map(rows::takedown).collect::<Vec<_>>(),
        "approvalsWaiting": waiting.iter().map(rows::approval).collect::<Vec<_>>(),
    });
    let mut text = head.to_string();
    // The lists follow in the same object.
    text.pop();
    Ok(Bytes::from(text))
}

/// List of the document, in its order.
#[derive(Clone, Copy)]
enum CopiedList {
    Datasets,
    Contributions,
    Knowledge,
    Comments,
    Requests,
    Purchases,
    Sales,
    Approvals,
    DisputesAsBuyer,
    DisputesAsSeller,
    Ratings,
    Marks,
    Reports,
    Ledger,
    Trail,
}

impl CopiedList {
    const ALL: [Self; 15] = [
        Self::Datasets,
        Self::Contributions,
        Self::Knowledge,
        Self::Comments,
        Self::Requests,
        Self::Purchases,
        Self::Sales,
        Self::Approvals,
        Self::DisputesAsBuyer,
        Self::DisputesAsSeller,
        Self::Ratings,
        Self::Marks,
        Self::Reports,
        Self::Ledger,
        Self::Trail,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Datasets => "datasets",
            Self::Contributions => "contributions",
            Self::Knowledge => "knowledge",
            Self::Comments => "comments",
            Self::Requests => "requests",
            Self::Purchases => "purchases",
            Self::Sales => "sales",
            Self::Approvals => "approvals",
            Self::DisputesAsBuyer => "disputesAsBuyer",
            Self::DisputesAsSeller => "disputesAsSeller",
            Self::Ratings => "ratings",
            Self::Marks => "marks",
            Self::Reports => "reports",
            Self::Ledger => "ledger",
            Self::Trail => "trail",
        }
    }
}

/// Place in a list.
enum ListPage {
    /// Before its first row.
    Begin,
    /// Behind the row that the text names.
    After(String),
    /// Behind its last row.
    End,
}

/// Document that is being sent. It owns the permit, which is returned when the answer ends.
struct SentCopy {
    cx: Cx,
    operator: OperatorId,
    list: usize,
    page: ListPage,
    _permit: HolderPermit,
}

impl SentCopy {
    /// Returns the next piece of the document.
    async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        let Some(list) = CopiedList::ALL.get(self.list).copied() else {
            // The brace of the object was the last piece.
            return Ok(None);
        };
        let mut text = String::new();
        let after = match &self.page {
            ListPage::Begin => {
                text = format!(",\"{}\":[", list.name());
                None
            }
            ListPage::After(row) => Some(row.clone()),
            ListPage::End => {
                self.list += 1;
                self.page = ListPage::Begin;
                let is_last = self.list == CopiedList::ALL.len();
                return Ok(Some(Bytes::from_static(if is_last { b"]}\n" } else { b"]" })));
            }
        };
        let is_first = after.is_none();
        let (rows, next) = self.rows(list, after.as_deref()).await?;
        for (number, row) in rows.iter().enumerate() {
            if number > 0 || !is_first {
                text.push(',');
            }
            text.push('\n');
            text.push_str(&row.to_string());
        }
        self.page = next.map_or(ListPage::End, ListPage::After);
        Ok(Some(Bytes::from(text)))
    }

    /// Returns rows of a list after a place, and the place behind them if there may be more.
    async fn rows(&self, list: CopiedList, after: Option<&str>) -> Result<(Vec<Value>, Option<String>), ApiError> {
        let (operator, now) = (self.operator, self.cx.now);
        let store = &self.cx.app.store;
        match list {
            CopiedList::Datasets => {
                let after: Option<DatasetId> = place(after)?;
                let found = store.console().projects_after(operator, after, ROWS).await?;
                let next = more(found.len(), found.last().map(|project| project.id));
                Ok((found.iter().map(rows::dataset).collect(), next))
            }
            CopiedList::Contributions => {
                let before: Option<ContributionId> = place(after)?;
                let console = store.console();
                let found = console
                    .contributions_of(operator, store::Selection::All, before, ROWS)
                    .await?;
                let next = more(found.len(), found.last().map(|row| row.id));
                Ok((found.iter().map(rows::contribution).collect(), next))
            }
            CopiedList::Knowledge => {
                let before: Option<UnitId> = place(after)?;
                let found = store.knowledge().submissions_of(operator, before, ROWS).await?;
                let next = more(found.len(), found.last().map(|unit| unit.id));
                Ok((found.iter().map(rows::unit).collect(), next))
            }
            CopiedList::Comments => {
                let before: Option<i64> = place(after)?;
                let found = store.console().comments_by(operator, before, ROWS).await?;
                let next = more(found.len(), found.last().map(|comment| comment.id));
                Ok((found.iter().map(rows::comment).collect(), next))
            }
            CopiedList::Requests => {
                let before: Option<RequestId> = place(after)?;
                let found = store.community().requests_of(operator, before, now, ROWS).await?;
                let next = more(found.len(), found.last().map(|request| request.id));
                Ok((found.iter().map(rows::request).collect(), next))
            }
            CopiedList::Purchases => {
                let before: Option<SaleId> = place(after)?;
                let found = store.money().purchases_of(operator, before, ROWS).await?;
                let next = more(found.len(), found.last().map(|bought| bought.sale.id));
                Ok((
                    found.iter().map(|bought| rows::sale(&bought.sale, false)).collect(),
                    next,
                ))
            }
            CopiedList::Sales => {
                let before: Option<SaleId> = place(after)?;
                let found = store.money().sales_by(operator, before, ROWS).await?;
                let next = more(found.len(), found.last().map(|sold| sold.id));
                Ok((found.iter().map(|sold| rows::sale(sold, true)).collect(), next))
            }
            CopiedList::Approvals => {
                let before: Option<ApprovalId> = place(after)?;
                let found = store.money().approvals_ended(operator, before, ROWS, now).await?;
                let next = more(found.len(), found.last().map(|row| row.id));
                Ok((found.iter().map(rows::approval).collect(), next))
            }
            CopiedList::DisputesAsBuyer | CopiedList::DisputesAsSeller => {
                let side = if matches!(list, CopiedList::DisputesAsBuyer) {
                    DisputeSide::Buyer
                } else {
                    DisputeSide::Seller
                };
                let before: Option<DisputeId> = place(after)?;
                let found = store.money().disputes_of(operator, side, before, ROWS).await?;
                let next = more(found.len(), found.last().map(|row| row.dispute.id));
                Ok((found.iter().map(rows::dispute).collect(), next))
            }
            CopiedList::Ratings => self.ratings(after).await,
            CopiedList::Marks => self.marks(after).await,
            CopiedList::Reports => {
                let before: Option<ReportId> = place(after)?;
                let found = store.moderation().reports_by(operator, before, ROWS).await?;
                let next = more(found.len(), found.last().map(|row| row.id));
                Ok((found.iter().map(rows::report).collect(), next))
            }
            CopiedList::Ledger => {
                let from: EntryCursor = place(after)?.unwrap_or(EntryCursor::NEWEST);
                let asset = &self.cx.app.pay.asset;
                let money = store.money();
                let (found, next) = money
                    .journal(asset, operator, EntryFilter::default(), from, ROWS)
                    .await?;
                Ok((
                    found.iter().map(rows::entry).collect(),
                    next.map(|next| next.to_string()),
                ))
            }
            CopiedList::Trail => {
                let found = store.flow().audit_of(operator, after, ROWS).await?;
                let next = more(found.len(), found.last().map(|row| row.id.clone()));
                Ok((found.iter().map(rows::change).collect(), next))
            }
        }
    }

    /// Returns ratings after a place, and the place behind them if there may be more.
    async fn ratings(&self, after: Option<&str>) -> Result<(Vec<Value>, Option<String>), ApiError> {
        let after: Option<OpinionPlace> = place(after)?;
        let console = self.cx.app.store.console();
        let found = console.ratings_by(self.operator, after, ROWS).await?;
        let next = more(found.len(), found.last().map(GivenRating::place));
        Ok((found.iter().map(rows::rating).collect(), next))
    }

    /// Returns marks after a place, and the place behind them if there may be more.
    async fn marks(&self, after: Option<&str>) -> Result<(Vec<Value>, Option<String>), ApiError> {
        let after: Option<OpinionPlace> = place(after)?;
        let console = self.cx.app.store.console();
        let found = console.marks_by(self.operator, after, ROWS).await?;
        let next = more(found.len(), found.last().map(GivenMark::place));
        Ok((found.iter().map(rows::mark).collect(), next))
    }
}

/// Reads the place of a page, which an earlier page gave.
fn place<T: std::str::FromStr>(after: Option<&str>) -> Result<Option<T>, ApiError> {
    let read = |text: &str| {
        text.parse()
            .map_err(|_error| ApiError::internal(format!("`{text}` is no place in a list")))
    };
    after.map(read).transpose()
}

/// Returns the place behind a page, unless it was the last.
fn more<T: ToString>(count: usize, last: Option<T>) -> Option<String> {
    let is_full = u32::try_from(count).is_ok_and(|count| count >= ROWS);
    last.filter(|_| is_full).map(|last| last.to_string())
}

/// Logs an error of a document that is being sent, and returns the one that closes the connection.
fn broken(error: &ApiError) -> io::Error {
    tracing::debug!(
        error = error.reason(),
        "a copy of an account failed after its answer had begun; the connection was closed"
    );
    io::Error::other("the copy failed")
}
