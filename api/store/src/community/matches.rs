//! Operators whose items match a request, each of which is told once.

use types::vocabulary::ItemKind;
use types::{OperatorId, RequestId, Timestamp};

use super::Community;
use crate::Error;
use crate::query::{sql, text, tx};
use crate::row::{Row as _, row};
use crate::writer::Change;

row! {
    /// Request that an operator got notice of, with the item that matches it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct RequestMatch {
        /// Id of the request that matches.
        pub request: RequestId = "request_id",
        /// Title of the request.
        pub title: String,
        /// Kind of the item that matches.
        pub kind: ItemKind = "item_kind",
        /// The chain of a unit, or the id of a dataset.
        pub item: String = "item_id",
        /// Time at which the operator got notice.
        pub at: Timestamp,
    }
}

impl Community<'_> {
    /// Notifies operators of a request, each with the item of it that matches best. An operator gets one notice of a
    /// request. Returns the number of operators that had none before.
    pub async fn tell(
        &self,
        request: RequestId,
        sellers: Vec<(OperatorId, ItemKind, String)>,
        now: Timestamp,
    ) -> Result<u64, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                let mut told = 0;
                // The key of operator and request lets each operator be told once, whichever of its
                // items match.
                for (operator, kind, item) in sellers {
                    told += sql!(
                        "INSERT INTO request_matches (operator_id, request_id, item_kind, item_id, at)
                         VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
                        operator,
                        request,
                        kind,
                        item,
                        now
                    )
                    .run(cx)
                    .await?;
                }
                Ok(if told > 0 { Change::Keep(told) } else { Change::Undo(0) })
            }))
            .await
    }

    /// Returns the requests that an operator got notice of and that take answers at `now`, newest first.
    pub async fn told(&self, operator: OperatorId, now: Timestamp, limit: u32) -> Result<Vec<RequestMatch>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    RequestMatch::COLUMNS,
                    " FROM request_matches JOIN requests ON requests.id = request_matches.request_id
                     WHERE request_matches.operator_id = $1 AND requests.removed_at IS NULL
                       AND requests.status IN ('open', 'answered') AND (deadline IS NULL OR deadline > $2)
                     ORDER BY at DESC, request_id DESC LIMIT $3"
                ),
                operator,
                now,
                limit
            ))
            .await
    }
}
