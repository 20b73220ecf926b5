//! Vectors of texts by models, which cost money to make again.
//!
//! Invariant: an erased unit has none. A vector is that of a piece of the text whose hash is beside it, and the vectors
//! of a text are written together.

use types::UnitId;

use crate::knowledge::lock;
use crate::query::{sql, tx};
use crate::row::row;
use crate::search::{Searching, places};
use crate::writer::Change;
use crate::{Error, Store};

row! {
    /// The vector of a piece of a text.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct StoredVector {
        /// Version of a unit, or id of a dataset.
        pub item: String = "version_id",
        /// Number of the piece, from 0.
        pub chunk: u64,
        /// Hash of the text.
        pub hash: Vec<u8> = "signature",
        /// Scale as four bytes, the least first, then one byte for each dimension.
        pub vector: Vec<u8>,
    }
}

/// The vectors of a text to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewVectors {
    /// Version of a unit, or id of a dataset.
    pub item: String,
    /// Hash of the text.
    pub hash: Vec<u8>,
    /// Vectors of the pieces, each as in [`StoredVector`].
    pub vectors: Vec<Vec<u8>>,
}

impl Searching<'_> {
    /// Returns the vectors of items by an embedder, those of an item in the order of its pieces.
    pub async fn vectors(&self, embedder: &str, items: &[String]) -> Result<Vec<StoredVector>, Error> {
        // `IN ()` is no SQL.
        if items.is_empty() {
            return Ok(Vec::new());
        }
        let text = format!(
            "SELECT version_id, chunk, signature, vector FROM unit_vectors
             WHERE version_id IN ({}) AND embedder = ${} ORDER BY version_id, chunk",
            places(items.len()),
            items.len() + 1
        );
        let store: &Store = self.store();
        store
            .read(async {
                let mut query = sql!(sqlx::AssertSqlSafe(text));
                for item in items {
                    query = query.with(item.clone());
                }
                query.with(embedder).all(&mut store.readers()).await
            })
            .await
    }

    /// Keeps the vectors of a version of a unit, or of a dataset where there is no chain, in place of those that it had.
    /// Returns false for a unit that was erased meanwhile.
    pub async fn keep_vectors(&self, embedder: &str, chain: Option<UnitId>, new: NewVectors) -> Result<bool, Error> {
        let embedder = embedder.to_owned();
        self.store()
            .write_aside(tx!(async move |cx| {
                // The lock is the one that an erasure takes.
                if let Some(chain) = chain {
                    // A vector of an erased text would tell what it was about, and arrives seconds
                    // after it was asked for.
                    match lock(cx, chain).await? {
                        Some(chain) if chain.erased_at.is_none() => {}
                        _ => return Ok(Change::Undo(false)),
                    }
                }
                sql!("DELETE FROM unit_vectors WHERE version_id = $1", &new.item)
                    .run(cx)
                    .await?;
                for (chunk, vector) in (0_i64..).zip(&new.vectors) {
                    sql!(
                        "INSERT INTO unit_vectors (version_id, chunk, embedder, signature, vector)
                         VALUES ($1, $2, $3, $4, $5)",
                        &new.item,
                        chunk,
                        embedder.as_str(),
                        new.hash.as_slice(),
                        vector.as_slice()
                    )
                    .run(cx)
                    .await?;
                }
                Ok(Change::Keep(true))
            }))
            .await
    }
}
