//! The library of an operator: what it bought and may read, with the newest version beside the one that it owns.
//!
//! Invariant: an item is in it once, by the purchase by which it reads, and a refund takes it out.

use types::OperatorId;
use types::vocabulary::ItemKind;

use super::entitlements::Owner;
use super::{Money, Sale};
use crate::Error;
use crate::projects::find::pattern_or_empty;
use crate::query::{sql, text};
use crate::row::{Columns, Row as _, is_set, nested, row, texts};

const HIDDEN_AT: &str = "COALESCE(projects.taken_down_at, projects.deleted_at, chains.taken_down_at) AS hidden_at";

row! {
    /// An item that an operator bought and reads.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct OwnedItem {
        /// Purchase by which it reads.
        pub sale: Sale = Sale::COLUMNS => nested,
        /// Name of the agent that bought it, if one did.
        pub agent_name: Option<String> = "agents.name AS agent_name",
        /// Slug of the dataset, for one.
        pub slug: Option<String> = "projects.slug AS slug",
        /// Title as it is now.
        pub title: Option<String> = "COALESCE(projects.title, units.title) AS title",
        /// Newest version of a dataset; of a unit the number of the newest one.
        pub newest: Option<u64> = "COALESCE(projects.version, units.number) AS newest",
        /// True while it is taken down, and once it is deleted.
        pub is_hidden: bool = HIDDEN_AT => is_set,
        /// Payers that confirm a unit.
        pub confirmed: Option<u64> = "confirmed_count",
        /// Payers that flag a unit.
        pub flagged: Option<u64> = "stale_count + incorrect_count AS flagged",
    }
}

/// Choice of items of a library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LibraryFilter {
    /// Words that a title or a text contains; empty for all.
    pub q: String,
    /// Kind of the items.
    pub kind: Option<ItemKind>,
    /// True for datasets with a version that is newer than the owned one.
    pub is_newer: bool,
    /// Order of the items.
    pub order: LibraryOrder,
    /// Items to leave out.
    pub offset: u32,
    /// The most items to return.
    pub limit: u32,
}

/// Order of a library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LibraryOrder {
    /// The newest purchase first.
    #[default]
    Newest,
    /// The first title of the alphabet first, in lower case.
    Title,
    /// The dearest first.
    Price,
}

/// Tables joined to the entitlements of an owner, and the conditions of a [`LibraryFilter`].
// A page reads own rows only, found by the owner, so words may stand anywhere in them.
const OWNED: &str = r" FROM entitlements
     JOIN sales ON sales.id = entitlements.sale_id
     LEFT JOIN projects ON sales.item_kind = 'dataset' AND projects.id = sales.item_id
     LEFT JOIN chains ON sales.item_kind = 'unit' AND chains.id = sales.item_id
     LEFT JOIN units ON units.id = chains.latest_unit
     LEFT JOIN agents ON agents.id = sales.agent_id
     WHERE entitlements.owner = $1
       AND ($2 = '' OR entitlements.item_kind = $2)
       AND ($3 = '' OR LOWER(COALESCE(projects.title, units.title)) LIKE $3 ESCAPE '\'
            OR LOWER(COALESCE(projects.readme, units.body)) LIKE $3 ESCAPE '\'
            OR projects.slug LIKE $3 ESCAPE '\')
       AND ($4 = 0 OR projects.version > entitlements.max_version)";

impl Money<'_> {
    /// Returns a page of what an operator bought and reads.
    pub async fn library(&self, operator: OperatorId, filter: &LibraryFilter) -> Result<Vec<OwnedItem>, Error> {
        let Some([owner, kind, words]) = arguments(operator, filter) else {
            return Ok(Vec::new());
        };
        let statement = match filter.order {
            LibraryOrder::Newest => text!(
                "SELECT ",
                OwnedItem::COLUMNS,
                OWNED,
                " ORDER BY sales.sold_at DESC, sales.id DESC LIMIT $5 OFFSET $6"
            ),
            LibraryOrder::Title => text!(
                "SELECT ",
                OwnedItem::COLUMNS,
                OWNED,
                " ORDER BY LOWER(COALESCE(projects.title, units.title)), sales.id LIMIT $5 OFFSET $6"
            ),
            LibraryOrder::Price => text!(
                "SELECT ",
                OwnedItem::COLUMNS,
                OWNED,
                " ORDER BY sales.price DESC, sales.id DESC LIMIT $5 OFFSET $6"
            ),
        };
        self.0
            .all(sql!(
                statement,
                owner,
                kind,
                words,
                filter.is_newer,
                filter.limit,
                filter.offset
            ))
            .await
    }

    /// Counts the items on all pages of a choice.
    pub async fn library_count(&self, operator: OperatorId, filter: &LibraryFilter) -> Result<u64, Error> {
        let Some([owner, kind, words]) = arguments(operator, filter) else {
            return Ok(0);
        };
        self.0
            .read(async {
                sql!(
                    text!("SELECT COUNT(*) AS listed", OWNED),
                    owner,
                    kind,
                    words,
                    filter.is_newer
                )
                .row(&mut self.0.readers())
                .await?
                .get("listed")
            })
            .await
    }
}

/// Returns the owner, the kind and the pattern of a choice, or `None` if no text can contain its words.
fn arguments(operator: OperatorId, filter: &LibraryFilter) -> Option<[String; 3]> {
    texts(&[("q", &filter.q)]).ok()?;
    let kind = filter.kind.map_or_else(String::new, |kind| kind.as_str().to_owned());
    Some([Owner::Operator(operator).to_string(), kind, pattern_or_empty(&filter.q)])
}
