//! Removal of rows that no call needs any more.
//!
//! Invariant: nothing that still works is removed. A link and a code are kept for a day after their end, so that their
//! holder learns why they do not work.

use std::time::Duration;

use types::Timestamp;

use crate::query::{sql, tx};
use crate::writer::Change;
use crate::{Accounts, Error};

const DAY: Duration = Duration::from_hours(24);

impl Accounts<'_> {
    /// Removes links, codes, logins, keys, changes of addresses and sessions whose time is over, consents of more than a day
    /// ago, and old counts of letters. Returns the number of
    /// rows.
    pub async fn tidy(&self, now: Timestamp) -> Result<u64, Error> {
        self.0
            .write(tx!(async move |cx| {
                let day = i64::try_from(DAY.as_micros()).unwrap_or(i64::MAX);
                let now = now.micros();
                let mut removed = 0;
                for (statement, until) in [
                    ("DELETE FROM mail_links WHERE expires_at <= $1", now - day),
                    ("DELETE FROM claim_codes WHERE expires_at <= $1", now - day),
                    ("DELETE FROM agent_keys WHERE expires_at <= $1", now),
                    // The device learns that it was too late.
                    ("DELETE FROM logins WHERE expires_at <= $1", now - day),
                    ("DELETE FROM login_tries WHERE tried_at <= $1", now - day),
                    ("DELETE FROM sessions WHERE expires_at <= $1", now),
                    ("DELETE FROM email_changes WHERE stop_until <= $1", now - day),
                    ("DELETE FROM consents WHERE created_at <= $1", now - day),
                    // Days are counted from 1970; the present one and the one before it stay.
                    ("DELETE FROM mail_days WHERE day < $1", now.div_euclid(day) - 1),
                ] {
                    let done = sql!(statement, until).run(cx).await?;
                    removed += done;
                }
                Ok(Change::Keep(removed))
            }))
            .await
    }
}
