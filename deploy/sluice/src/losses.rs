//! `sluice admin table accept-loss`: accepts that a table lost versions, beside a running service. Prints JSON.
//!
//! Invariant: the loss is recorded in the database first and beside the table second, so that no worker merges a
//! version whose number the database still has for a lost one. A second call repeats both steps and changes nothing
//! more.

use std::sync::Arc;

use anyhow::{Context, bail};
use catalog::{KnownHead, history};
use object_store::ObjectStore;
use serde_json::json;
use store::{LossAccepted, NewLoss, ProjectEntry, Store};
use types::{Clock, DatasetId};

use crate::config::Config;
use crate::exit::Missing;
use crate::layout::DataLayout;
use crate::{keys, objects, terminal};

/// Accepts the loss of versions by a project's table and prints the lost versions.
pub async fn accept(
    store: &Store,
    clock: &Arc<dyn Clock>,
    config: &Config,
    slug: &str,
    reason: String,
) -> anyhow::Result<()> {
    // The reason is checked before anything is opened.
    keys::check_reason(&reason)?;
    let projects = store.check_projects().await?;
    let is_named = |project: &ProjectEntry| project.slug == slug && project.deleted_at.is_none();
    let Some(project) = projects.into_iter().find(is_named) else {
        bail!(Missing(format!("there is no project `{slug}`")));
    };
    let opened = objects::open(config, &DataLayout::new(&config.data.dir)).await?;
    let tables: Arc<dyn ObjectStore> = opened.store;
    let recorded = history::read(&tables, project.id).await.with_context(|| {
        format!("the table of `{slug}` is damaged and not only behind; restore what is named below from a copy")
    })?;
    let new = NewLoss {
        project: project.id,
        // The version that was read: a merge in between would make the list of lost versions wrong, so
        // it is refused as stale.
        expected: project.version,
        roots: recorded.iter().map(|version| version.head.root.to_string()).collect(),
        reason,
        now: clock.now(),
    };
    let accepted = store.loss_accept(new).await?;
    // This comes before the result is judged: an earlier call may have ended between the two steps.
    publish(store, &tables, project.id).await?;
    let (loss, contributions) = match accepted {
        LossAccepted::Accepted { loss, contributions } => (loss, contributions),
        LossAccepted::NothingLost => {
            bail!("the table of `{slug}` has every version that it is known to have; there is no loss to accept")
        }
        LossAccepted::Stale => bail!("`{slug}` got another version while its table was read; run the command again"),
    };
    let head = recorded.last().map(|version| version.head);
    terminal::json(&json!({
        "slug": slug,
        "projectId": project.id,
        "loss": loss.number,
        "lostVersions": { "from": loss.kept.0 + 1, "to": loss.version.0 },
        "lostContributions": contributions,
        "version": head.map_or(0, |head| head.version.0),
        "root": head.map(|head| head.root),
        "reason": loss.reason,
        "acceptedAt": loss.accepted_at.to_string(),
    }))?;
    Ok(())
}

/// Records the lost versions beside the table, where workers read them.
async fn publish(store: &Store, tables: &Arc<dyn ObjectStore>, dataset: DatasetId) -> anyhow::Result<()> {
    let lost = known(store, dataset).await?;
    // Nothing is published for a table that never lost anything, so its folder stays as it is.
    if !lost.is_empty() {
        let published = history::accept(tables, dataset, &lost).await;
        published.context("the loss is accepted, and the workers could not be told; run the command again")?;
    }
    Ok(())
}

/// Returns the versions of a project whose loss was accepted.
pub(crate) async fn known(store: &Store, dataset: DatasetId) -> anyhow::Result<Vec<KnownHead>> {
    let lost = store.lost_versions(dataset).await?;
    let heads = lost.into_iter().filter_map(|lost| {
        Some(KnownHead {
            version: lost.version,
            // A root that does not parse cannot be the root of any table.
            root: lost.root.parse().ok()?,
        })
    });
    Ok(heads.collect())
}
