//! The end of what deleted rows left in the file of the database, where no statement reads it any more.
//!
//! Invariant: only pages that hold no row are overwritten, by the database itself: they are filled with zeros as pages of
//! a table, which is then dropped. So a crash at any point leaves at most that table, and the next run goes on.

use sqlx::AnyConnection;

use crate::engine::Engine;
use crate::query::{sql, tx};
use crate::row::Columns;
use crate::writer::Change;
use crate::{Error, Flow};

/// Pages that one change fills, so that other changes wait for milliseconds.
const PAGES: i64 = 256;
/// Rows of the table of zeros that one change deletes.
const ROWS: i64 = 16;

impl Flow<'_> {
    /// Overwrites the free pages of the database, and empties its write-ahead log. Returns false if the log cannot be
    /// emptied now, because somebody reads an old state. Does nothing on `PostgreSQL`, which vacuums by itself.
    pub async fn scrub(&self) -> Result<bool, Error> {
        if self.0.engine() != Engine::Sqlite {
            return Ok(true);
        }
        while !self.fill().await? {}
        while !self.release().await? {}
        self.empty_log().await
    }

    /// Fills some free pages with zeros. Returns true if no page is free.
    async fn fill(&self) -> Result<bool, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                let free: i64 = sql!("PRAGMA freelist_count").scalar(cx).await?;
                if free == 0 {
                    return Ok(Change::Undo(true));
                }
                let page: i64 = sql!("PRAGMA page_size").scalar(cx).await?;
                sql!("CREATE TABLE IF NOT EXISTS scrub (zeros BLOB NOT NULL)")
                    .run(cx)
                    .await?;
                // Each page of a long value has the number of the next one in 4 bytes.
                sql!(
                    "INSERT INTO scrub (zeros) VALUES (zeroblob($1))",
                    free.min(PAGES) * (page - 4)
                )
                .run(cx)
                .await?;
                Ok(Change::Keep(false))
            }))
            .await
    }

    /// Gives some of the filled pages back. Returns true if none is left.
    async fn release(&self) -> Result<bool, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                let table = "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'scrub'";
                let tables: i64 = sql!(table).scalar(cx).await?;
                if tables == 0 {
                    return Ok(Change::Undo(true));
                }
                let some = "DELETE FROM scrub WHERE rowid IN (SELECT rowid FROM scrub LIMIT $1)";
                let deleted = sql!(some, ROWS).run(cx).await?;
                if deleted == 0 {
                    sql!("DROP TABLE scrub").run(cx).await?;
                }
                Ok(Change::Keep(deleted == 0))
            }))
            .await
    }

    /// Moves the write-ahead log into the database and truncates it, since it has older states of pages.
    async fn empty_log(&self) -> Result<bool, Error> {
        self.0
            .read(async {
                let row = sql!("PRAGMA wal_checkpoint(TRUNCATE)")
                    .row(&mut self.0.readers())
                    .await?;
                Ok(row.get::<i64>("busy")? == 0)
            })
            .await
    }
}

/// Sets if the changes of a connection overwrite pages that become free, which costs a write of each.
pub(crate) async fn overwrite(cx: &mut AnyConnection, engine: Engine, whole_pages: bool) -> Result<(), Error> {
    if let Some(statement) = engine.overwriting(whole_pages) {
        sql!(statement).run(cx).await?;
    }
    Ok(())
}
