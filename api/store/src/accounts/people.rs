//! What a person changes of the account: the name, whether others see it, and which letters come.
//!
//! Invariant: a name that was changed meanwhile in another window is not overwritten.

use types::OperatorId;
use types::vocabulary::LetterTopic;

use super::operators::missing;
use crate::query::{sql, tx};
use crate::row::texts;
use crate::writer::Change;
use crate::{Accounts, Error};

impl Accounts<'_> {
    /// Renames an operator whose name is `was`. Returns false if it has another name by now, which is not `name` either;
    /// then nothing changed.
    ///
    /// # Errors
    /// [`Error::Text`].
    pub async fn rename(&self, operator: OperatorId, was: String, name: String) -> Result<bool, Error> {
        texts(&[("display_name", &name), ("display_name", &was)])?;
        self.0
            .write(tx!(async move |cx| {
                // A form that is sent twice finds its own name, which is no conflict.
                let renamed = sql!(
                    "UPDATE operators SET display_name = $2
                     WHERE id = $1 AND closed_at IS NULL AND display_name IN ($2, $3)",
                    operator,
                    name,
                    was
                )
                .run(cx)
                .await?;
                Ok(Change::written_if(renamed > 0, renamed > 0))
            }))
            .await
    }

    /// Leaves the name of an operator out of public pages, or shows it there.
    ///
    /// # Errors
    /// [`Error::Missing`] if the operator does not exist, or its account is closed.
    pub async fn profile_hide(&self, operator: OperatorId, is_hidden: bool) -> Result<(), Error> {
        self.0
            .write(tx!(async move |cx| {
                let set = sql!(
                    "UPDATE operators SET profile_hidden = $2 WHERE id = $1 AND closed_at IS NULL",
                    operator,
                    is_hidden
                )
                .run(cx)
                .await?;
                if set == 0 {
                    return Err(missing(operator));
                }
                Ok(Change::Keep(()))
            }))
            .await
    }

    /// Sets the topics of the letters that a person does not want.
    ///
    /// # Errors
    /// [`Error::Missing`] if the operator does not exist, or its account is closed.
    pub async fn letters_mute(&self, operator: OperatorId, topics: &[LetterTopic]) -> Result<(), Error> {
        let words: Vec<_> = topics.iter().map(|topic| topic.as_str()).collect();
        let words = words.join(" ");
        self.0
            .write(tx!(async move |cx| {
                let set = sql!(
                    "UPDATE operators SET muted_letters = $2 WHERE id = $1 AND closed_at IS NULL",
                    operator,
                    words
                )
                .run(cx)
                .await?;
                if set == 0 {
                    return Err(missing(operator));
                }
                Ok(Change::Keep(()))
            }))
            .await
    }
}
