//! An upload whose caller has no answer yet.

use store::{Allowance, Store};
use types::ContributionId;

use crate::cx::Cx;

/// Abandons an upload, unless it is begun: nobody has its addresses, so it must not take the place of one that can be.
pub(super) struct Unbegun {
    store: Store,
    /// None once it is begun or abandoned.
    id: Option<ContributionId>,
    allowance: Option<Allowance>,
}

impl Unbegun {
    /// Made before the upload is: should the caller go away meanwhile, it is abandoned all the same.
    pub(super) fn new(cx: &Cx, id: ContributionId, allowance: Option<Allowance>) -> Self {
        Self {
            store: cx.app.store.clone(),
            id: Some(id),
            allowance,
        }
    }

    /// There is nothing to abandon: it is begun, or will never be.
    pub(super) fn settle(mut self) {
        self.id = None;
    }

    pub(super) async fn abandon(mut self) -> Result<(), store::Error> {
        if let Some(id) = self.id {
            self.store.upload_abandon(id, self.allowance).await?;
        }
        self.id = None;
        Ok(())
    }
}

/// What a client leaves behind that goes away before its answer.
impl Drop for Unbegun {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else {
            return;
        };
        let (store, allowance) = (self.store.clone(), self.allowance);
        tokio::spawn(async move {
            if let Err(error) = store.upload_abandon(id, allowance).await {
                tracing::warn!(
                    upload = %id, %error,
                    "cannot remove an upload whose caller disconnected; it expires by itself"
                );
            }
        });
    }
}
