//! Receipts of answers: what was asked and answered, signed with the current service key.
//!
//! Invariant: an answer without its receipt is not sent. Nothing of a receipt is stored.

use catalog::Root;
use proof::query_receipt::{AnswerHash, QueryReceiptFormat};
use proof::{QueryReceipt, SignedStatement};
use serde::{Serialize, Serializer};
use store::Project;
use types::Version;
use types::error::with_causes;

use super::QueryAnswer;
use super::run::{AskedQuery, QueryAnswered};
use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::keys::KeyRing;

/// Characters of a signature, its key and the endorsement of the key, as JSON, and of what is not known of a draft.
const SIGNATURE_CHARACTERS: usize = 700;

/// A receipt, before the rows of the answer are known that fit.
pub(super) struct ReceiptDraft {
    /// The receipt, or why there can be none.
    receipt: Result<QueryReceipt, &'static str>,
}

/// As many bytes as the receipt will have, or some more.
impl Serialize for ReceiptDraft {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.receipt.as_ref().ok(), "x".repeat(SIGNATURE_CHARACTERS)).serialize(serializer)
    }
}

impl ReceiptDraft {
    /// Creates the draft of what a query answered after `offset` of its rows.
    pub(super) fn new(project: &Project, asked: &AskedQuery<'_>, answered: &QueryAnswered, offset: u32) -> Self {
        let is_empty = answered.version == Version::EMPTY;
        let root = answered.root.or_else(|| is_empty.then_some(Root::EMPTY));
        let receipt = match (&answered.repetition, root) {
            (Some(repetition), Some(root)) => Ok(QueryReceipt {
                format: QueryReceiptFormat::V1,
                dataset: project.id,
                slug: project.slug.clone(),
                version: answered.version,
                root,
                sql: asked.sql.to_owned(),
                limit: asked.limit,
                offset,
                next_offset: None,
                now: repetition.now,
                build: repetition.build,
                row_count: 0,
                answer: AnswerHash::from_bytes([0; 32]),
                reproducible: repetition.why.is_empty(),
                why: repetition.why.iter().map(|&why| why.to_owned()).collect(),
                issued_at: repetition.now,
            }),
            (None, _) => Err("the sandbox said nothing of another run"),
            (_, None) => Err("the table has no root of the version"),
        };
        Self { receipt }
    }

    /// Signs the receipt of an answer and returns the answer with it.
    ///
    /// # Errors
    /// 503 if there is no key to sign with.
    pub(super) async fn sign(self, cx: &Cx, answer: QueryAnswer) -> Result<QueryAnswer, ApiError> {
        let failed = |context: String| ApiError::internal(format!("the receipt of a query: {context}"));
        let mut receipt = self.receipt.map_err(|problem| failed(problem.to_owned()))?;
        receipt.row_count = answer.row_count;
        receipt.next_offset = answer.next_offset;
        let columns = serde_json::to_value(&answer.columns).map_err(|error| failed(error.to_string()))?;
        // An answer has up to 8 MiB, which are read and hashed.
        let hashing = tokio::task::spawn_blocking(move || {
            let hash = AnswerHash::of(&columns, answer.rows.iter().map(AsRef::as_ref), answer.truncated);
            (answer, hash)
        });
        let (mut answer, hash) = hashing.await.map_err(|error| failed(error.to_string()))?;
        receipt.answer = hash.map_err(|error| failed(error.to_string()))?;
        // Read before the keys: a key that is retired meanwhile counts for some seconds more.
        let now = cx.app.clock.now();
        let ring = KeyRing::load(&cx.app.store, &*cx.app.clock).await;
        let ring = ring.map_err(|error| ApiError::unavailable(with_causes(&error)))?;
        receipt.issued_at = ring.issued_at(now);
        let signed = SignedStatement::sign(receipt, ring.signer(), ring.current());
        answer.receipt = Some(signed.map_err(|error| ApiError::unavailable(with_causes(&error)))?);
        Ok(answer)
    }
}
