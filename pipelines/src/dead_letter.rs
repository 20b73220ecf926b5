//! Dead letters: messages that cannot be processed, kept for an operator.
//!
//! Invariant: a letter about another delivery of a decided submission rejects nothing.

use bytes::Bytes;
use data_encoding::BASE64;
use eventlog::Record;

use crate::context::Context;
use crate::delivery::Delivery;
use crate::message::{Address, BASE_FORMAT, CONTRIBUTIONS_TOPIC, DEAD_LETTERS, DeadLetter, Resolution};
use crate::publish::{AppendOutcome, append, publish_outcome};
use crate::report::{Report, outcome};
use crate::step::Stopped;

/// The most bytes of the reason and of the key in a letter; a key is 16 bytes where it is a dataset's.
const MAX_REASON: usize = 1_024;
const MAX_KEY: usize = 64;

/// Appends a message that cannot be processed to the dead letters, and rejects its contribution where it can be
/// read and is not decided, so that nobody waits for it.
pub(crate) async fn dead_letter(
    context: &Context,
    delivery: &Delivery,
    address: Option<Address>,
    reason: &str,
) -> Result<(), Stopped> {
    let position = delivery.ack.position();
    let reason = &reason[..reason.floor_char_boundary(MAX_REASON)];
    tracing::error!(?position, contribution = ?address.map(|address| address.contribution), reason, "dead letter");
    let Record { key, value } = &delivery.record;
    let mut kept = append_letter(context, delivery, address, reason, key, value).await?;
    if kept == AppendOutcome::Refused {
        let reason = format!("{reason}; its {} bytes are too many for a letter", value.len());
        let key = key.slice(..key.len().min(MAX_KEY));
        kept = append_letter(context, delivery, address, &reason, &key, &[]).await?;
    }
    if kept == AppendOutcome::Refused {
        tracing::error!(
            ?position,
            "the log takes no letter about a message; it is only at its position"
        );
    }
    // A letter about another delivery of a decided submission must not reject what was decided.
    let Some(address) = address.filter(|address| !context.outcomes.contains(address.contribution, address.generation))
    else {
        return Ok(());
    };
    let resolution = Resolution::Rejected {
        code: "unprocessable".to_owned(),
        message: "the service could not process the batch; it is kept and the operators were told".to_owned(),
    };
    publish_outcome(
        context,
        outcome(address, context.clock.now(), resolution, Report::default()),
    )
    .await
}

/// Appends the letter itself.
async fn append_letter(
    context: &Context,
    delivery: &Delivery,
    address: Option<Address>,
    reason: &str,
    key: &Bytes,
    value: &[u8],
) -> Result<AppendOutcome, Stopped> {
    let position = delivery.ack.position();
    let letter = DeadLetter {
        format: BASE_FORMAT,
        topic: CONTRIBUTIONS_TOPIC.to_owned(),
        partition: position.partition,
        offset: position.offset,
        contribution: address.map(|address| address.contribution),
        unit: None,
        reason: reason.to_owned(),
        at: context.clock.now(),
        key: BASE64.encode(key),
        value: BASE64.encode(value),
    };
    match serde_json::to_vec(&letter) {
        Ok(letter) => {
            let record = Record {
                key: key.clone(),
                value: letter.into(),
            };
            append(context, DEAD_LETTERS, record, false).await
        }
        Err(error) => {
            tracing::error!(%error, "a dead letter cannot be encoded");
            Ok(AppendOutcome::Refused)
        }
    }
}
