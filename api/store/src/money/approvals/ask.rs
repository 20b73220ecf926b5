//! Rows that begin to wait: an agent's purchase above its line, and what a person chose on a page.

use sqlx::AnyConnection;
use types::money::MicroUsdc;
use types::vocabulary::{ApprovalState, AskedBy, ItemKind};
use types::{AgentId, ApprovalId, OperatorId, SaleId, Timestamp, Version};

use super::{
    APPROVAL_LASTS, APPROVAL_LETTERS_A_DAY, MAX_WAITING_APPROVALS, PurchaseApproval, SELECT, all, by_id, optional,
};
use crate::Error;
use crate::accounts::{self, Mail};
use crate::apps;
use crate::money::purchase::{Purchased, WantedItem, find_for_sale, owned};
use crate::money::{Money, Spender};
use crate::query::{sql, text, tx};
use crate::row::{Columns, bigint, texts};
use crate::writer::Change;

/// Rows of one agent and item that are read at once. It has fewer.
const MAX_ROWS_OF_ITEM: u32 = 100;

/// Words of an agent beside an item that it buys, for the case that the purchase waits for a person.
#[derive(Clone, Debug)]
pub struct NewPurchaseAsk {
    /// Id of the row, if there will be a new one.
    pub id: ApprovalId,
    /// Words of the agent for the person.
    pub reason: Option<String>,
    /// Letter to the person, if one is to be sent.
    pub letter: Option<ApprovalLetter>,
}

impl NewPurchaseAsk {
    /// Returns the ask of an agent that says nothing, without a letter.
    pub fn silent(now: Timestamp) -> Self {
        Self {
            id: ApprovalId::new(now),
            reason: None,
            letter: None,
        }
    }
}

/// Letter about a row that waits.
#[derive(Clone, Debug)]
pub struct ApprovalLetter {
    /// The letter. The row gives its job the input and the word for `dedupe`.
    pub mail: Mail,
    /// Returns the input of the job for a row.
    pub input: fn(ApprovalId) -> String,
}

/// Choice of a person on a page: an item, and the agent that buys it.
#[derive(Clone, Debug)]
pub struct NewPersonAsk {
    /// Id of the row, if there will be a new one.
    pub id: ApprovalId,
    /// Operator that the person is.
    pub operator: OperatorId,
    /// Id of the form, which makes one row however often it is sent.
    pub form: String,
    /// Kind of the item.
    pub kind: ItemKind,
    /// Id of the unit or the dataset.
    pub item: String,
    /// Version of a dataset; the latest if absent.
    pub version: Option<Version>,
    /// Agent of the operator that buys.
    pub agent: AgentId,
    /// Price that the page showed.
    pub price: MicroUsdc,
    /// Price of an item of the kind without a price of its own.
    pub default_price: MicroUsdc,
    /// Time of the call.
    pub now: Timestamp,
}

/// Result of [`Money::approval_ask`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum PersonAsked {
    /// The row of this choice, which waits or has ended.
    Row(Box<PurchaseApproval>),
    /// The item costs more now than the page showed. Nothing changed, as in all that follow.
    PriceAbove(MicroUsdc),
    /// The item is not sold to this operator: it is its own, free, hidden or retired, or lacks the version.
    NotSold,
    /// The operator has it already.
    Owned {
        /// Sale by which it has it.
        sale: SaleId,
    },
    /// The operator has no such agent, or it was removed or taken down.
    NoAgent,
}

impl Money<'_> {
    /// Makes the row of what a person chose, or returns the one that the same form or agent has for it, at the price of
    /// now.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn approval_ask(&self, new: NewPersonAsk) -> Result<PersonAsked, Error> {
        texts(&[("form", &new.form)])?;
        self.0
            .write_aside(tx!(async move |cx| { choose(cx, &new).await }))
            .await
    }
}

async fn choose(cx: &mut AnyConnection, new: &NewPersonAsk) -> Result<Change<PersonAsked>, Error> {
    accounts::lock(cx, new.operator).await?;
    if apps::is_removed(cx, new.operator, new.agent).await? {
        return Ok(Change::Undo(PersonAsked::NoAgent));
    }
    let wanted = WantedItem {
        kind: new.kind,
        item: &new.item,
        version: new.version,
        buyer: new.operator,
        default_price: new.default_price,
    };
    let goods = match find_for_sale(cx, &wanted).await? {
        Ok(goods) => goods,
        Err(Purchased::Owned { .. }) => {
            let sale = sale_of(cx, new.operator, new.kind, &new.item).await?;
            let owned = sale.map_or(PersonAsked::NotSold, |sale| PersonAsked::Owned { sale });
            return Ok(Change::Undo(owned));
        }
        Err(_) => return Ok(Change::Undo(PersonAsked::NotSold)),
    };
    if goods.price > new.price {
        return Ok(Change::Undo(PersonAsked::PriceAbove(goods.price)));
    }
    let key = ApprovalKey {
        agent: new.agent,
        kind: new.kind,
        item: &new.item,
        version: goods.unlocks(),
    };
    let sent = of_form(cx, new.operator, &new.form, new.now).await?;
    // A form that was sent before with another choice names no row for this one.
    let is_form_free = sent.is_none();
    let kept = match sent.filter(|row| key.is_of(row)) {
        Some(row) => Some(row),
        None => key.waiting(cx, new.now).await?,
    };
    if let Some(row) = kept {
        if row.state == ApprovalState::Waiting && row.price != goods.price {
            sql!(
                "UPDATE approvals SET price = $2 WHERE id = $1 AND state = 'waiting'",
                row.id,
                goods.price.0
            )
            .run(cx)
            .await?;
        }
        return chosen(cx, row.id, new.now).await;
    }
    key.expire(cx, new.now).await?;
    if count_waiting(cx, new.agent, AskedBy::Person, new.now).await? >= i64::from(MAX_WAITING_APPROVALS) {
        // Somebody who looks at many things decides about few of them: what was begun first gives way.
        sql!(
            "UPDATE approvals SET state = 'expired'
             WHERE id = (SELECT id FROM approvals
                         WHERE agent_id = $1 AND asked_by = 'person' AND state = 'waiting' AND expires_at > $2
                         ORDER BY asked_at, id LIMIT 1)",
            new.agent,
            new.now
        )
        .run(cx)
        .await?;
    }
    let row = NewApprovalRow {
        id: new.id,
        operator: new.operator,
        spender: Spender {
            agent: new.agent,
            app: None,
        },
        asked_by: AskedBy::Person,
        form: Some(new.form.as_str()).filter(|_| is_form_free),
        kind: new.kind,
        item: &new.item,
        version: key.version,
        price: goods.price,
        reason: None,
        now: new.now,
    };
    row.insert(cx).await?;
    chosen(cx, new.id, new.now).await
}

/// Returns the row of a choice, as it is in the transaction.
async fn chosen(cx: &mut AnyConnection, id: ApprovalId, now: Timestamp) -> Result<Change<PersonAsked>, Error> {
    Ok(match found(cx, id, now).await? {
        Some(row) => Change::Keep(PersonAsked::Row(Box::new(row))),
        None => Change::Undo(PersonAsked::NotSold),
    })
}

/// Purchase of an agent that waits for a person.
#[derive(Clone, Copy, Debug)]
pub(in crate::money) struct AgentAsk<'a> {
    pub(in crate::money) new: &'a NewPurchaseAsk,
    pub(in crate::money) operator: OperatorId,
    pub(in crate::money) spender: Spender,
    pub(in crate::money) kind: ItemKind,
    pub(in crate::money) item: &'a str,
    /// Version of a dataset; for a unit 1.
    pub(in crate::money) version: u64,
    pub(in crate::money) price: MicroUsdc,
    pub(in crate::money) now: Timestamp,
}

/// Makes an agent's purchase wait for a person, or returns the row of it that there is.
pub(in crate::money) async fn ask(cx: &mut AnyConnection, ask: AgentAsk<'_>) -> Result<Change<Purchased>, Error> {
    let AgentAsk {
        new,
        operator,
        spender,
        kind,
        item,
        version,
        price,
        now,
    } = ask;
    accounts::lock(cx, operator).await?;
    // Read again under the lock: another call of the agent, or its person, may have been faster.
    let before = AskedBefore::of(cx, Some(spender.agent), kind, item, now).await?;
    if let Some(row) = before.waiting(version) {
        if row.asked_by == AskedBy::Agent {
            return Ok(Change::Undo(Purchased::Waiting(Box::new(row.clone()))));
        }
        // A person began it on a page. From now on the agent waits for it too, at the price of now, and the person is told.
        if is_full(cx, spender.agent, now).await? {
            return Ok(Change::Undo(Purchased::TooManyWaiting));
        }
        let taken = sql!(
            "UPDATE approvals SET asked_by = 'agent', connection_id = $2, reason = $3, asked_at = $4, expires_at = $5,
                    price = $6
             WHERE id = $1 AND state = 'waiting'",
            row.id,
            spender.app,
            new.reason.as_deref(),
            now,
            now.plus(APPROVAL_LASTS),
            price.0
        )
        .run(cx)
        .await?;
        if taken > 0 {
            return waiting(cx, operator, row.id, new.letter.clone(), now).await;
        }
    }
    let owned = owned(cx, operator, kind, item).await?.filter(|owned| *owned >= version);
    if let (Some(row), Some(_)) = (before.bought(version), owned) {
        // The yes came between the look at what is owned and the lock. What was refunded is not owned any more.
        return Ok(Change::Undo(Purchased::Approved {
            version,
            approval: Box::new(row.clone()),
        }));
    }
    if let Some(denied) = before.denied(price) {
        return Ok(Change::Undo(denied));
    }
    let key = ApprovalKey {
        agent: spender.agent,
        kind,
        item,
        version,
    };
    key.expire(cx, now).await?;
    if is_full(cx, spender.agent, now).await? {
        return Ok(Change::Undo(Purchased::TooManyWaiting));
    }
    let row = NewApprovalRow {
        id: new.id,
        operator,
        spender,
        asked_by: AskedBy::Agent,
        form: None,
        kind,
        item,
        version,
        price,
        reason: new.reason.as_deref(),
        now,
    };
    row.insert(cx).await?;
    waiting(cx, operator, new.id, new.letter.clone(), now).await
}

/// Sends the letter about a row that waits from now on, and returns the row.
async fn waiting(
    cx: &mut AnyConnection,
    operator: OperatorId,
    id: ApprovalId,
    letter: Option<ApprovalLetter>,
    now: Timestamp,
) -> Result<Change<Purchased>, Error> {
    if let Some(ApprovalLetter { mut mail, input }) = letter {
        // With this row, under the lock of the operator.
        let today: i64 = sql!(
            "SELECT COUNT(*) FROM approvals WHERE operator_id = $1 AND asked_by = 'agent' AND asked_at >= $2",
            operator,
            Timestamp::of_day(now.day())
        )
        .scalar(cx)
        .await?;
        if today <= i64::from(APPROVAL_LETTERS_A_DAY) {
            mail.job.payload = input(id);
            mail.job.dedupe = Some(format!("approval:{id}"));
            // A day without letters left changes nothing: the row is on the page.
            let _is_sent = accounts::mail::send(cx, &mail).await?;
        }
    }
    Ok(match found(cx, id, now).await? {
        Some(row) => Change::Keep(Purchased::Waiting(Box::new(row))),
        // A no may be faster than the read.
        None => Change::Undo(Purchased::Missing),
    })
}

/// Rows of an agent and an item that answer its repeats: those that wait, and those of which a person decided lately.
#[derive(Clone, Debug, Default)]
pub(in crate::money) struct AskedBefore {
    /// Newest first.
    rows: Vec<PurchaseApproval>,
}

impl AskedBefore {
    /// Reads the rows of an agent; nobody has none.
    pub(in crate::money) async fn of(
        cx: &mut AnyConnection,
        agent: Option<AgentId>,
        kind: ItemKind,
        item: &str,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let Some(agent) = agent else {
            return Ok(Self::default());
        };
        let statement = sql!(
            text!(
                SELECT,
                "approvals.agent_id = $1 AND approvals.item_kind = $2 AND approvals.item_id = $3
                 AND (approvals.state = 'waiting' AND approvals.expires_at > $4
                      OR approvals.state IN ('bought', 'denied') AND approvals.decided_at > $5)
                 ORDER BY approvals.id DESC LIMIT $6"
            ),
            agent,
            kind,
            item,
            now,
            now.minus(APPROVAL_LASTS),
            MAX_ROWS_OF_ITEM
        );
        let rows = all(statement, cx, now).await?;
        Ok(Self { rows })
    }

    /// Returns the version that a call without one means: that of the row that waits, or else of the latest decision.
    pub(in crate::money) fn version(&self) -> Option<Version> {
        let waiting = self.rows.iter().find(|row| row.state == ApprovalState::Waiting);
        let decided = || self.rows.iter().max_by_key(|row| row.decided_at);
        waiting.or_else(decided).map(|row| Version(row.version))
    }

    /// Returns the row by which a person bought a version lately.
    pub(in crate::money) fn bought(&self, version: u64) -> Option<&PurchaseApproval> {
        self.find(ApprovalState::Bought, version)
    }

    /// Returns the refusal if a person said no to the agent lately. It binds whatever the version, unless the price has
    /// fallen.
    pub(in crate::money) fn denied(&self, price: MicroUsdc) -> Option<Purchased> {
        let denied = self
            .rows
            .iter()
            .filter(|row| row.state == ApprovalState::Denied && row.asked_by == AskedBy::Agent)
            .max_by_key(|row| row.decided_at)?;
        (price >= denied.price).then(|| Purchased::Denied {
            approval: Box::new(denied.clone()),
            until: denied.decided_at.unwrap_or(denied.asked_at).plus(APPROVAL_LASTS),
        })
    }

    fn waiting(&self, version: u64) -> Option<&PurchaseApproval> {
        self.find(ApprovalState::Waiting, version)
    }

    fn find(&self, state: ApprovalState, version: u64) -> Option<&PurchaseApproval> {
        self.rows
            .iter()
            .find(|row| row.state == state && row.version == version)
    }
}

/// Identity of a row: an agent has one that waits for it.
#[derive(Clone, Copy, Debug)]
struct ApprovalKey<'a> {
    agent: AgentId,
    kind: ItemKind,
    item: &'a str,
    version: u64,
}

impl ApprovalKey<'_> {
    fn is_of(&self, row: &PurchaseApproval) -> bool {
        (row.agent, row.kind, row.item.as_str(), row.version) == (self.agent, self.kind, self.item, self.version)
    }

    async fn waiting(&self, cx: &mut AnyConnection, now: Timestamp) -> Result<Option<PurchaseApproval>, Error> {
        let before = AskedBefore::of(cx, Some(self.agent), self.kind, self.item, now).await?;
        Ok(before.waiting(self.version).cloned())
    }

    /// Writes that the row is expired whose time is over, so that another may wait.
    async fn expire(&self, cx: &mut AnyConnection, now: Timestamp) -> Result<(), Error> {
        sql!(
            "UPDATE approvals SET state = 'expired'
             WHERE agent_id = $1 AND item_kind = $2 AND item_id = $3 AND version = $4
               AND state = 'waiting' AND expires_at <= $5",
            self.agent,
            self.kind,
            self.item,
            bigint("version", self.version)?,
            now
        )
        .run(cx)
        .await?;
        Ok(())
    }
}

/// Row to add.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewApprovalRow<'a> {
    pub(super) id: ApprovalId,
    pub(super) operator: OperatorId,
    pub(super) spender: Spender,
    pub(super) asked_by: AskedBy,
    pub(super) form: Option<&'a str>,
    pub(super) kind: ItemKind,
    pub(super) item: &'a str,
    pub(super) version: u64,
    pub(super) price: MicroUsdc,
    pub(super) reason: Option<&'a str>,
    pub(super) now: Timestamp,
}

impl NewApprovalRow<'_> {
    pub(super) async fn insert(&self, cx: &mut AnyConnection) -> Result<(), Error> {
        sql!(
            "INSERT INTO approvals
                 (id, operator_id, agent_id, connection_id, asked_by, form, item_kind, item_id, version, price, reason,
                  state, asked_at, expires_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'waiting', $12, $13)",
            self.id,
            self.operator,
            self.spender.agent,
            self.spender.app,
            self.asked_by,
            self.form,
            self.kind,
            self.item,
            bigint("version", self.version)?,
            self.price.0,
            self.reason,
            self.now,
            self.now.plus(APPROVAL_LASTS)
        )
        .run(cx)
        .await?;
        Ok(())
    }
}

/// Returns a row by its id.
pub(super) async fn found(
    cx: &mut AnyConnection,
    id: ApprovalId,
    now: Timestamp,
) -> Result<Option<PurchaseApproval>, Error> {
    optional(by_id(id), cx, now).await
}

async fn of_form(
    cx: &mut AnyConnection,
    operator: OperatorId,
    form: &str,
    now: Timestamp,
) -> Result<Option<PurchaseApproval>, Error> {
    let statement = sql!(
        text!(SELECT, "approvals.operator_id = $1 AND approvals.form = $2"),
        operator,
        form
    );
    optional(statement, cx, now).await
}

/// Returns true if as many rows that an agent asked for wait as may.
async fn is_full(cx: &mut AnyConnection, agent: AgentId, now: Timestamp) -> Result<bool, Error> {
    let waiting = count_waiting(cx, agent, AskedBy::Agent, now).await?;
    Ok(waiting >= i64::from(MAX_WAITING_APPROVALS))
}

/// Returns the number of rows of an agent that wait.
async fn count_waiting(
    cx: &mut AnyConnection,
    agent: AgentId,
    asked_by: AskedBy,
    now: Timestamp,
) -> Result<i64, Error> {
    sql!(
        "SELECT COUNT(*) FROM approvals
         WHERE agent_id = $1 AND asked_by = $2 AND state = 'waiting' AND expires_at > $3",
        agent,
        asked_by,
        now
    )
    .scalar(cx)
    .await
}

/// Returns the sale by which an operator has an item.
async fn sale_of(
    cx: &mut AnyConnection,
    operator: OperatorId,
    kind: ItemKind,
    item: &str,
) -> Result<Option<SaleId>, Error> {
    sql!(
        "SELECT sale_id FROM entitlements WHERE owner = $1 AND item_kind = $2 AND item_id = $3",
        format!("op:{operator}"),
        kind,
        item
    )
    .row_if_any(cx)
    .await?
    .map(|row| row.get("sale_id"))
    .transpose()
}
