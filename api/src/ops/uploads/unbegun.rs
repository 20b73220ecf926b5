//! Guard of an upload whose caller has no answer yet.
//!
//! Invariant: an upload whose addresses nobody received is abandoned, so that it takes no slot or allowance of its
//! operator.

use store::Store;
use types::ContributionId;

use crate::call::cx::Cx;

/// Guard that abandons an upload when it is dropped before [`settle`](Self::settle).
pub(super) struct AbandonOnDrop {
    store: Store,
    /// `None` after the upload was begun or abandoned.
    id: Option<ContributionId>,
}

impl AbandonOnDrop {
    /// Arms the guard. It is created before the upload's row, so that a client that disconnects meanwhile leaves none
    /// behind.
    pub(super) fn new(cx: &Cx, id: ContributionId) -> Self {
        Self {
            store: cx.app.store.clone(),
            id: Some(id),
        }
    }

    /// Disarms the guard: the upload is begun, or was never created.
    pub(super) fn settle(mut self) {
        self.id = None;
    }

    pub(super) async fn abandon(mut self) -> Result<(), store::Error> {
        if let Some(id) = self.id {
            // It cannot be completed yet, since nobody knows its id.
            self.store.upload_abandon(id).await.map(|_abandoned| ())?;
        }
        self.id = None;
        Ok(())
    }
}

/// Abandons the upload in the background if the client disconnected before its answer.
impl Drop for AbandonOnDrop {
    // A drop cannot wait, so a task does the work. Should it fail, the upload expires at its normal time.
    fn drop(&mut self) {
        let Some(id) = self.id.take() else {
            return;
        };
        // Abandoning also returns the day's allowance that the upload used.
        let store = self.store.clone();
        tokio::spawn(async move {
            if let Err(error) = store.upload_abandon(id).await {
                tracing::warn!(
                    upload = %id, %error,
                    "cannot remove an upload whose caller disconnected; it expires by itself"
                );
            }
        });
    }
}
