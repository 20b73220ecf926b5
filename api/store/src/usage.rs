//! Usage counts per day and kind. The content of requests is never stored.

use crate::query::{sql, tx};
use crate::row::{Columns, bigint};
use crate::writer::Change;
use crate::{Error, Store};

impl Store {
    /// Adds `n` to the count of `kind` (such as `search` or `query`) on a UTC day counted from 1970-01-01.
    pub async fn usage_count(&self, day: i64, kind: &'static str, n: u64) -> Result<(), Error> {
        // Counts are added and not set, because several replicas count at the same time.
        let n = bigint("used", n)?;
        self.write_aside(tx!(async move |cx| {
            sql!(
                "INSERT INTO usage_counts (day, kind, used) VALUES ($1, $2, $3)
                 ON CONFLICT (day, kind) DO UPDATE SET used = usage_counts.used + excluded.used",
                day,
                kind,
                n
            )
            .run(cx)
            .await?;
            Ok(Change::Keep(()))
        }))
        .await
    }

    /// Returns the counts of a day, by kind.
    pub async fn usage(&self, day: i64) -> Result<Vec<(String, u64)>, Error> {
        self.read(async {
            sql!("SELECT kind, used FROM usage_counts WHERE day = $1 ORDER BY kind", day)
                .rows(&mut self.readers())
                .await?
                .iter()
                .map(|row| Ok((row.get("kind")?, row.get("used")?)))
                .collect()
        })
        .await
    }
}
