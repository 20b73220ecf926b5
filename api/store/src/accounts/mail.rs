//! The number of letters that calls cause on a day.
//!
//! Invariant: a letter is counted in the transaction that adds its job, so the count is exact after any crash.

use sqlx::AnyConnection;

use crate::query::sql;
use crate::{Error, NewJob, jobs};

/// Letter that a change causes.
#[derive(Clone, Debug)]
pub struct Mail {
    /// Job that sends it.
    pub job: NewJob,
    /// UTC day that it counts toward, in days since 1970.
    pub day: i64,
    /// Number of letters of the day at which no further one is sent; none for a letter that is always sent.
    pub budget: Option<u32>,
}

/// Counts a letter and adds its job. Returns false, and does neither, if the day's budget is spent.
pub(crate) async fn send(cx: &mut AnyConnection, mail: &Mail) -> Result<bool, Error> {
    let budget = mail.budget.map_or(i64::MAX, i64::from);
    // The first letter of a day is inserted without looking at the count, so a budget of none is checked here.
    if budget == 0 {
        return Ok(false);
    }
    let counted = sql!(
        "INSERT INTO mail_days (day, used) VALUES ($1, 1)
         ON CONFLICT (day) DO UPDATE SET used = mail_days.used + 1 WHERE mail_days.used < $2",
        mail.day,
        budget
    )
    .run(cx)
    .await?;
    // The condition of the update was false: the day is at its budget.
    if counted == 0 {
        return Ok(false);
    }
    jobs::insert(cx, &mail.job).await?;
    Ok(true)
}
