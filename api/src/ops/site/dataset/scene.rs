//! What every page of a dataset needs: the project, its table, and the right of the reader.
//!
//! Invariant: the right to read rows comes from the entitlement of the reader's account, for each version anew.

use std::sync::Arc;

use catalog::Snapshot;
use pages::{DatasetHead, DatasetOffer, DatasetPurchase, DatasetTab};
use store::{Access, Contributor, ItemKind, Project, Visibility};
use types::money::MicroUsdc;
use types::{Contract, Version};

use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::ops::contribute::documented_contract;
use crate::price::dataset_price;
use crate::rules::{entitlement, reading};

/// Contributors that a page knows, those with most records first.
const CONTRIBUTORS: u32 = 10;
/// Newest purchases of an account among which that of a dataset is looked for.
const NEWEST_PURCHASES: u32 = 100;

/// A dataset as a page shows it to its reader.
pub(in crate::ops::site) struct DatasetScene {
    pub(in crate::ops::site) project: Arc<Project>,
    /// Contract with the documentation of its fields.
    pub(in crate::ops::site) contract: Contract,
    /// Newest version that is announced; `None` where the table cannot be read now.
    pub(super) latest: Option<Snapshot>,
    /// Newest version that the reader may read.
    pub(super) readable: Option<Version>,
    /// Agents that contributed most.
    pub(super) contributors: Vec<Contributor>,
    contributor_count: u64,
    account: Option<String>,
    purchase: Option<DatasetPurchase>,
}

/// Returns the price of a dataset; `None` if it is free.
pub(in crate::ops) fn price(access: Access, micro: Option<i64>) -> Option<MicroUsdc> {
    // A public dataset has no price, even if the database has one.
    let price = (access == Access::Paid).then(|| dataset_price(micro));
    price.filter(|price| *price > MicroUsdc(0))
}

impl DatasetScene {
    /// Finds a dataset that the reader may know of.
    pub(in crate::ops::site) async fn find(cx: &Cx, slug: &str) -> Result<Self, ApiError> {
        let project = entitlement::visible_lately(cx, slug).await?;
        let store = &cx.app.store;
        let public = store.public_accounts();
        let (counts, contributors, account) = tokio::try_join!(
            store.project_counts(project.id),
            store.project_contributors(project.id, CONTRIBUTORS),
            public.account(project.operator)
        )?;
        // A table that cannot be read now takes its figures from the page, and nothing else.
        let latest = reading::snapshot(cx, &project, Some(project.version)).await.ok();
        let readable = match cx.operator() {
            Some(_) => entitlement::latest_readable(cx, &project).await?.ok(),
            // The interface wants a credential for records, of a free dataset too.
            None => None,
        };
        let readable = readable.filter(|version| *version > Version::EMPTY);
        let purchase = match readable {
            Some(_) => purchase(cx, &project).await?,
            None => None,
        };
        Ok(Self {
            contract: documented_contract(&project)?,
            contributors,
            contributor_count: counts.contributors,
            account: account.and_then(|account| account.name),
            purchase,
            project,
            latest,
            readable,
        })
    }

    /// Returns the name of the agent that made the dataset.
    fn maker(&self) -> Option<String> {
        let maker = self.project.created_by_agent?;
        let found = self.contributors.iter().find(|contributor| contributor.agent == maker);
        found.map(|contributor| contributor.name.clone())
    }

    /// Returns the head of the pages.
    pub(in crate::ops::site) fn head(&self, cx: &Cx, tab: DatasetTab) -> DatasetHead {
        let project = &self.project;
        let offer = match price(project.access, project.price_micro) {
            _ if cx.operator() == Some(project.operator) => DatasetOffer::Own,
            Some(price) => DatasetOffer::Priced {
                price,
                takes_trial_credit: project.trial_sale,
                bought: self.readable,
            },
            None => DatasetOffer::Free,
        };
        let table = |version| self.latest.as_ref().and_then(|latest| latest.at(version));
        let records = |version| table(version).map(|found| found.record_count());
        let bytes = |version| table(version).map(|found| found.bytes());
        DatasetHead {
            slug: project.slug.clone(),
            title: project.title.clone(),
            readme: project.readme.clone(),
            agent: self.maker(),
            operator: project.operator,
            account: self.account.clone(),
            status: project.status.as_str(),
            license: project.license.clone(),
            tags: project.tags.clone(),
            is_private: project.visibility == Visibility::Private,
            version: project.version,
            records: project.record_count,
            updated_at: project.updated_at,
            bytes: bytes(project.version).filter(|_| project.version > Version::EMPTY),
            contributors: self.contributor_count,
            purchase: self.purchase.clone(),
            sold: 0,
            review_count: 0,
            offer,
            readable: self.readable,
            readable_records: self.readable.and_then(records),
            readable_bytes: self.readable.and_then(bytes),
            tab,
        }
    }
}

/// Returns the newest purchase of a dataset by the reader's account that was not refunded.
async fn purchase(cx: &Cx, project: &Project) -> Result<Option<DatasetPurchase>, ApiError> {
    let buyer = cx.operator().filter(|reader| *reader != project.operator);
    let Some(buyer) = buyer.filter(|_| price(project.access, project.price_micro).is_some()) else {
        return Ok(None);
    };
    let bought = cx.app.store.money().purchases_of(buyer, None, NEWEST_PURCHASES).await?;
    let item = project.id.to_string();
    let found = bought
        .into_iter()
        .find(|bought| bought.sale.kind == ItemKind::Dataset && bought.sale.item == item && !bought.sale.is_refunded());
    Ok(found.map(|bought| DatasetPurchase {
        agent: bought.agent_name,
        at: bought.sale.sold_at,
        price: bought.sale.price,
    }))
}
