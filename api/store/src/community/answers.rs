//! Answers to requests, and the decision of the requester.

use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use types::vocabulary::{Access, ActivityKind, CommentKind, Discussed, ItemKind, PaidWith, RequestStatus};
use types::{AgentId, OperatorId, RequestId, Timestamp};

use super::{Community, is_open, lock};
use crate::Error;
use crate::activity::{self, NewActivity};
use crate::comments::{self, COMMENT, Comment, NewRow};
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, bigint, texts};
use crate::writer::Change;

/// Item that an answer is to link. The caller has found that the agent's operator sells it.
#[derive(Clone, Debug)]
pub struct NewItemLink {
    /// Kind of the item.
    pub kind: ItemKind,
    /// The chain of a unit, or the id of a dataset.
    pub item: String,
    /// Version of a dataset.
    pub version: Option<u64>,
}

/// An answer to add.
#[derive(Clone, Debug)]
pub struct NewAnswer {
    /// Request that is answered.
    pub request: RequestId,
    /// Agent that writes the answer.
    pub agent: AgentId,
    /// Operator of the agent.
    pub operator: OperatorId,
    /// Item that the answer offers.
    pub link: Option<NewItemLink>,
    /// Text; may be empty.
    pub note: String,
    /// Time of the answer.
    pub now: Timestamp,
}

/// Outcome of an attempt to answer a request with [`Community::answer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Answered {
    /// It was added under this number.
    Added(i64),
    /// There is no such request that is visible.
    Missing,
    /// The request is the operator's own.
    Own,
    /// The request takes no answers any more.
    Over(RequestStatus),
    /// The item answers the request already.
    Repeated,
}

/// Outcome of an attempt to choose an answer with [`Community::choose`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Chosen {
    /// The request is fulfilled.
    Done,
    /// There is no such request that is visible.
    Missing,
    /// The request is another operator's.
    NotRequester,
    /// The request is decided or over.
    Over(RequestStatus),
    /// The request has no such answer that is visible.
    NoAnswer,
    /// The answer links no item, or one that was taken down.
    NoItem,
}

/// Outcome of an attempt to close a request with [`Community::close`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Closed {
    /// The request is closed.
    Done,
    /// There is no such request that is visible.
    Missing,
    /// The request is another operator's.
    NotRequester,
    /// The request is decided or over.
    Over(RequestStatus),
}

/// Item that an answer links, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Kind of the item.
    pub kind: ItemKind,
    /// Latest version of the unit, or slug of the dataset.
    pub name: String,
    /// Title of the item.
    pub title: String,
    /// Version of a dataset that the answer named.
    pub version: Option<u64>,
    /// Access to a dataset.
    pub access: Option<Access>,
    /// Price in micro-USDC: 0 is free, `None` the platform's default.
    pub price_micro: Option<i64>,
}

/// An answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Note, with its number and author.
    pub comment: Comment,
    /// Display name of the author's operator, unless the agent is taken down.
    pub operator_name: Option<String>,
    /// Item that it links; none if it links none, or one that is not shown to everybody.
    pub link: Option<Link>,
    /// Money with which the requester's operator bought the item, if it did. It stays when the item is no longer shown.
    pub bought_with: Option<PaidWith>,
}

/// The condition on a linked item that everybody may see it. Who read a retired unit has its id.
const SHOWN_LINK: &str = "(chains.latest_unit IS NOT NULL AND chains.taken_down_at IS NULL AND chains.erased_at IS NULL
        AND chains.retired_at IS NULL
        OR projects.visibility = 'public' AND projects.taken_down_at IS NULL)";
/// The tables of the item that an answer links.
const LINKED: &str = "answer_items
       LEFT JOIN chains ON answer_items.item_kind = 'unit' AND chains.id = answer_items.item_id
       LEFT JOIN units ON units.id = chains.latest_unit
       LEFT JOIN projects ON answer_items.item_kind = 'dataset' AND projects.id = answer_items.item_id";

impl Community<'_> {
    /// Adds an answer, whose request is answered then.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn answer(&self, new: NewAnswer) -> Result<Answered, Error> {
        texts(&[("note", &new.note)])?;
        let made = |answered: &Answered| match answered {
            Answered::Added(id) => id.to_string(),
            _ => String::new(),
        };
        self.0
            .make_aside(made, tx!(async move |cx| { add(cx, &new).await }))
            .await
    }

    /// Fulfils a request with an answer that links an item.
    pub async fn choose(
        &self,
        request: RequestId,
        answer: i64,
        operator: OperatorId,
        now: Timestamp,
    ) -> Result<Chosen, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                let request = request.to_string();
                let Some(locked) = lock(cx, &request).await? else {
                    return Ok(Change::Undo(Chosen::Missing));
                };
                if locked.operator != operator {
                    return Ok(Change::Undo(Chosen::NotRequester));
                }
                let status = locked.status_at(now);
                if !is_open(status) {
                    return Ok(Change::Undo(Chosen::Over(status)));
                }
                // Under the lock of the request: an answer cannot be withdrawn between this look
                // and the choice.
                match has_item(cx, &request, answer).await? {
                    Some(true) => {}
                    Some(false) => return Ok(Change::Undo(Chosen::NoItem)),
                    None => return Ok(Change::Undo(Chosen::NoAnswer)),
                }
                sql!(
                    "UPDATE requests SET status = 'fulfilled', chosen_answer = $2, decided_at = $3 WHERE id = $1",
                    request,
                    answer,
                    now
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(Chosen::Done))
            }))
            .await
    }

    /// Closes a request without a choice.
    pub async fn close(&self, request: RequestId, operator: OperatorId, now: Timestamp) -> Result<Closed, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                let request = request.to_string();
                let Some(locked) = lock(cx, &request).await? else {
                    return Ok(Change::Undo(Closed::Missing));
                };
                if locked.operator != operator {
                    return Ok(Change::Undo(Closed::NotRequester));
                }
                let status = locked.status_at(now);
                if !is_open(status) {
                    return Ok(Change::Undo(Closed::Over(status)));
                }
                sql!(
                    "UPDATE requests SET status = 'closed', decided_at = $2 WHERE id = $1",
                    request,
                    now
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(Closed::Done))
            }))
            .await
    }

    /// Returns the visible answers to a request of an operator, oldest first, at most `limit`.
    pub async fn answers(&self, request: RequestId, requester: OperatorId, limit: u32) -> Result<Vec<Answer>, Error> {
        self.answers_from(request, requester, 0, limit).await
    }

    /// Returns those behind an answer.
    pub async fn answers_from(
        &self,
        request: RequestId,
        requester: OperatorId,
        after: i64,
        limit: u32,
    ) -> Result<Vec<Answer>, Error> {
        // A link is read together with what the requester's operator bought of it.
        self.0
            .read(async {
                sql!(
                    text!(
                        "SELECT ",
                        COMMENT,
                        ", CASE WHEN agents.taken_down_at IS NULL
                         THEN (SELECT display_name FROM operators
                               WHERE operators.id = comments.operator_id AND operators.profile_hidden = 0)
                         END AS operator_name, CASE WHEN ",
                        SHOWN_LINK,
                        " THEN answer_items.item_kind END AS link_kind,
                                chains.latest_unit AS latest_unit,
                                units.title AS unit_title, chains.price_micro AS unit_price, projects.slug AS slug,
                                projects.title AS dataset_title, projects.price_micro AS dataset_price,
                                projects.access AS access, answer_items.version AS version, sales.paid_with AS paid_with
                         FROM comments JOIN agents ON agents.id = comments.agent_id
                         LEFT JOIN (",
                        LINKED,
                        ") ON answer_items.answer_id = comments.id AND answer_items.withdrawn_at IS NULL
                         LEFT JOIN entitlements ON entitlements.owner = $2 AND entitlements.item_kind = answer_items.item_kind
                              AND entitlements.item_id = answer_items.item_id
                              AND entitlements.max_version >= COALESCE(answer_items.version, 1)
                         LEFT JOIN sales ON sales.id = entitlements.sale_id
                         WHERE comments.item_kind = 'request' AND comments.item_id = $1 AND comments.removed_at IS NULL
                           AND comments.id > $4
                         ORDER BY comments.id LIMIT $3"
                    ),
                    request,
                    format!("op:{requester}"),
                    limit,
                    after
                )
                .rows(&mut self.0.readers())
                .await?
                .iter()
                .map(answer)
                .collect()
            })
            .await
    }
}

async fn add(cx: &mut AnyConnection, new: &NewAnswer) -> Result<Change<Answered>, Error> {
    let request = new.request.to_string();
    let Some(locked) = lock(cx, &request).await? else {
        return Ok(Change::Undo(Answered::Missing));
    };
    if locked.operator == new.operator {
        return Ok(Change::Undo(Answered::Own));
    }
    let status = locked.status_at(new.now);
    if !is_open(status) {
        return Ok(Change::Undo(Answered::Over(status)));
    }
    let row = NewRow {
        kind: CommentKind::Answer,
        about: Discussed::Request,
        item: &request,
        version: None,
        agent: new.agent,
        operator: new.operator,
        parent: None,
        thread: None,
        body: &new.note,
        now: new.now,
    };
    let Some(id) = comments::insert(cx, row).await? else {
        return Ok(Change::Undo(Answered::Repeated));
    };
    if let Some(link) = &new.link {
        let version = link.version.map(|version| bigint("version", version)).transpose()?;
        // The unique key of request and item refuses the second answer with the same item.
        let linked = sql!(
            "INSERT INTO answer_items (answer_id, request_id, item_kind, item_id, version)
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
            id,
            request.clone(),
            link.kind,
            link.item.clone(),
            version
        )
        .run(cx)
        .await?;
        if linked == 0 {
            return Ok(Change::Undo(Answered::Repeated));
        }
    }
    sql!(
        "UPDATE requests SET status = 'answered', answer_count = answer_count + 1 WHERE id = $1",
        request.clone()
    )
    .run(cx)
    .await?;
    let answered = NewActivity {
        kind: ActivityKind::Answer,
        item: request,
        subject: id.to_string(),
        agent: Some(new.agent),
        at: new.now,
    };
    activity::note(cx, &answered).await?;
    Ok(Change::Keep(Answered::Added(id)))
}

/// Returns true if a visible answer to a request links an item that everybody may see; `None` if there is no such answer.
async fn has_item(cx: &mut AnyConnection, request: &str, answer: i64) -> Result<Option<bool>, Error> {
    let found = sql!(
        "SELECT id FROM comments WHERE id = $1 AND item_kind = 'request' AND item_id = $2 AND removed_at IS NULL",
        answer,
        request
    )
    .row_if_any(cx)
    .await?;
    if found.is_none() {
        return Ok(None);
    }
    let linked = sql!(
        text!(
            "SELECT answer_id FROM ",
            LINKED,
            "
             WHERE answer_items.answer_id = $1 AND answer_items.withdrawn_at IS NULL AND ",
            SHOWN_LINK
        ),
        answer
    )
    .row_if_any(cx)
    .await?;
    Ok(Some(linked.is_some()))
}

fn answer(row: &AnyRow) -> Result<Answer, Error> {
    let comment = Comment::of(row)?;
    let kind: Option<ItemKind> = row.get("link_kind")?;
    let version = row.get("version")?;
    let link = match kind {
        None => None,
        Some(kind @ ItemKind::Unit) => Some(Link {
            kind,
            name: row.get("latest_unit")?,
            title: row.get("unit_title")?,
            version,
            access: None,
            price_micro: row.get("unit_price")?,
        }),
        Some(kind @ ItemKind::Dataset) => Some(Link {
            kind,
            name: row.get("slug")?,
            title: row.get("dataset_title")?,
            version,
            access: Some(row.get("access")?),
            price_micro: row.get("dataset_price")?,
        }),
    };
    Ok(Answer {
        comment,
        operator_name: row.get("operator_name")?,
        link,
        bought_with: row.get("paid_with")?,
    })
}
