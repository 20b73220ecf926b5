//! Published versions whose vectors are made after their review: they were published with another embedder, or none.
//!
//! Invariant: prints that were put for a version that was erased meanwhile are followed by a job that erases them.

use types::{Timestamp, UnitId};

use super::Knowledge;
use super::erase::forget_late_prints;
use crate::Error;
use crate::query::{sql, tx};
use crate::row::row;
use crate::writer::Change;

row! {
    /// A published version without vectors of an embedder.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct UnembeddedVersion {
        /// Id of the version.
        pub id: UnitId,
        /// Its title.
        pub title: String,
        /// Its text.
        pub body: String,
    }
}

impl Knowledge<'_> {
    /// Returns versions behind `after`, by id, that were ever published, are not erased, and have no vectors of this
    /// embedder beside the platform's table; at most `limit`.
    pub async fn versions_without_vectors(
        &self,
        embedder: &str,
        after: Option<UnitId>,
        limit: u32,
    ) -> Result<Vec<UnembeddedVersion>, Error> {
        self.0
            .all(sql!(
                "SELECT units.id AS id, title, body FROM units JOIN chains ON chains.id = units.chain_id
                 WHERE status IN ('published', 'superseded') AND chains.erased_at IS NULL
                   AND (embedder IS NULL OR embedder <> $1) AND units.id > $2
                 ORDER BY units.id LIMIT $3",
                embedder,
                after.map(|id| id.to_string()).unwrap_or_default(),
                limit
            ))
            .await
    }

    /// Notes that the vectors of versions were put.
    pub async fn vectors_put(&self, versions: Vec<UnitId>, embedder: &str, now: Timestamp) -> Result<(), Error> {
        let embedder = embedder.to_owned();
        self.0
            .write_aside(tx!(async move |cx| {
                for version in versions {
                    sql!(
                        "UPDATE units SET embedder = $2 WHERE id = $1",
                        version,
                        embedder.clone()
                    )
                    .run(cx)
                    .await?;
                    // One that was erased between the look at its text and here has prints now that the job of its
                    // erasure did not see.
                    forget_late_prints(cx, version, now).await?;
                }
                Ok(Change::Keep(()))
            }))
            .await
    }
}
