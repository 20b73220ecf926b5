//! Changes of a project.
//!
//! Invariant: a change is applied completely or not at all.

use std::time::Duration;

use types::vocabulary::{ItemKind, ProjectStatus, Visibility};
use types::{DatasetId, Timestamp};

use super::{Project, find, missing, tags_text};
use crate::query::{sql, text, tx};
use crate::row::{Columns as _, Row as _, texts};
use crate::stamps::Touched;
use crate::writer::Change;
use crate::{Error, Store, money, profiles, service_state};

/// The members of a project to change; `None` keeps the current value.
#[derive(Clone, Debug, Default)]
pub struct ProjectChanges {
    /// New title of the project.
    pub title: Option<String>,
    /// New readme of the project.
    pub readme: Option<String>,
    /// New tags of the project.
    pub tags: Option<Vec<String>>,
    /// New status of the project.
    pub status: Option<ProjectStatus>,
    /// The new price in micro-USDC; `Some(None)` is the platform's default.
    #[expect(
        clippy::option_option,
        reason = "no change, the default and an amount are three things"
    )]
    pub price: Option<Option<i64>>,
    /// New value of `trial_sale`: true if buyers may pay with given credits.
    pub trial_sale: Option<bool>,
    /// The new number of rows that anybody sees; `Some(None)` shows nothing of a paid project.
    #[expect(clippy::option_option, reason = "no change, nothing and a number are three things")]
    pub preview_rows: Option<Option<u32>>,
    /// Edition that the caller saw, if the change is to that only; see [`Project::edition`].
    pub seen: Option<String>,
}

impl ProjectChanges {
    /// Returns a project with the changes, apart from what depends on the time.
    fn applied(&self, old: &Project) -> Project {
        let mut new = old.clone();
        new.title.clone_from(self.title.as_ref().unwrap_or(&old.title));
        new.readme.clone_from(self.readme.as_ref().unwrap_or(&old.readme));
        new.tags.clone_from(self.tags.as_ref().unwrap_or(&old.tags));
        new.status = self.status.unwrap_or(old.status);
        new.price_micro = self.price.unwrap_or(old.price_micro);
        new.trial_sale = self.trial_sale.unwrap_or(old.trial_sale);
        new.preview_rows = self.preview_rows.unwrap_or(old.preview_rows);
        new
    }
}

impl Project {
    /// Returns a text that names the title, readme, tags, status, price and trial sales of the project as they are: another
    /// one after any of them changed.
    pub fn edition(&self) -> String {
        let edited = (
            &self.title,
            &self.readme,
            &self.tags,
            self.status.as_str(),
            self.price_micro,
            self.trial_sale,
        );
        // Texts and numbers always have a JSON form.
        let text = serde_json::to_vec(&edited).unwrap_or_default();
        blake3::hash(&text).to_hex()[..32].to_owned()
    }
}

/// The result of [`Store::project_update`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum ProjectUpdated {
    /// The project after the change.
    Updated(Project),
    /// The project is of another edition than the caller saw, here as it is; nothing changed.
    Edited(Project),
    /// The price changed less than a window ago; nothing changed.
    PriceTooSoon {
        /// Time until the price may change again; more than zero.
        retry_after: Duration,
    },
    /// The project is archived, which is final; nothing changed.
    StatusConflict {
        /// Current status of the project.
        from: ProjectStatus,
        /// Status that was requested.
        to: ProjectStatus,
    },
}

impl Store {
    /// Changes a project.
    ///
    /// Setting a member to its current value is no change. In particular, setting the current price does not use up the
    /// one change that a window of `price_window` allows. The price at creation is not a change.
    ///
    /// # Errors
    /// [`Error::Missing`] if the project does not exist; [`Error::Text`].
    pub async fn project_update(
        &self,
        id: DatasetId,
        changes: ProjectChanges,
        now: Timestamp,
        price_window: Duration,
    ) -> Result<ProjectUpdated, Error> {
        texts(&[
            ("title", changes.title.as_deref().unwrap_or_default()),
            ("readme", changes.readme.as_deref().unwrap_or_default()),
        ])?;
        let touched = move |_: &ProjectUpdated| Touched::Projects(vec![id]);
        self.write_touching(
            touched,
            tx!(async move |cx| {
                // Writing the row locks it, so the values that are checked below cannot change
                // meanwhile.
                let row = sql!(
                    text!(
                        "UPDATE projects SET slug = slug WHERE id = $1 AND deleted_at IS NULL RETURNING ",
                        Project::COLUMNS,
                        ", price_changed_at"
                    ),
                    id
                )
                .row_if_any(cx)
                .await?
                .ok_or_else(|| missing(id))?;
                let old = Project::of(&row)?;
                let mut price_changed_at: Option<Timestamp> = row.get("price_changed_at")?;

                let new = changes.applied(&old);
                // First, so that a form that is sent twice is no conflict with itself.
                if new == old {
                    return Ok(Change::Undo(ProjectUpdated::Updated(old)));
                }
                if changes.seen.is_some_and(|seen| seen != old.edition()) {
                    return Ok(Change::Undo(ProjectUpdated::Edited(old)));
                }
                // Archiving is final.
                if old.status == ProjectStatus::Archived && new.status != old.status {
                    return Ok(Change::Undo(ProjectUpdated::StatusConflict {
                        from: old.status,
                        to: new.status,
                    }));
                }
                if new.price_micro != old.price_micro {
                    // A price that was never changed may change at once.
                    let allowed_at = price_changed_at.map(|changed_at| changed_at.plus(price_window));
                    if let Some(allowed_at) = allowed_at.filter(|allowed_at| *allowed_at > now) {
                        return Ok(Change::Undo(ProjectUpdated::PriceTooSoon {
                            retry_after: allowed_at.since(now),
                        }));
                    }
                    price_changed_at = Some(now);
                    money::price_set(cx, ItemKind::Dataset, &id.to_string(), new.price_micro, now).await?;
                }
                sql!(
                    "UPDATE projects
                     SET title = $2, title_key = $3, readme = $4, tags = $5, status = $6, price_micro = $7,
                         price_changed_at = $8, trial_sale = $9, preview_rows = $10
                     WHERE id = $1",
                    id,
                    new.title.as_str(),
                    find::fold(&new.title),
                    new.readme.as_str(),
                    tags_text(&new.tags)?,
                    new.status,
                    new.price_micro,
                    price_changed_at,
                    new.trial_sale,
                    new.preview_rows
                )
                .run(cx)
                .await?;
                if old.preview_rows.is_none() && new.preview_rows.is_some() {
                    // Its newest version is built again, since it can be a milestone now.
                    profiles::begin_again(cx, id).await?;
                }
                // Last, as it locks the counter of the search, for which every other change of an item
                // waits.
                if new.visibility == Visibility::Public {
                    service_state::search_changed(cx, ItemKind::Dataset, &id.to_string(), now).await?;
                }
                Ok(Change::Keep(ProjectUpdated::Updated(new)))
            }),
        )
        .await
    }
}
