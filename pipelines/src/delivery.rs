//! A message on its way from the consumer to its outcome.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use eventlog::Record;
use tracing::Span;

use crate::isolation::MessageKind;
use crate::offsets::AckHandle;

/// A delivered message.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) record: Record,
    pub(crate) ack: AckHandle,
    /// Kind of the message if it can have been in work when an earlier process ended, and was not tried out.
    pub(crate) suspect: Option<MessageKind>,
    /// Span of the submission, from its delivery to its acknowledgement.
    pub(crate) span: Span,
    pub(crate) permit: BytePermit,
}

/// The bytes of a message that is queued or in work; gives them back when dropped.
#[derive(Debug, Default)]
pub(crate) struct BytePermit {
    bytes: usize,
    writer: Arc<AtomicUsize>,
    all: Arc<AtomicUsize>,
}

impl BytePermit {
    /// Takes the bytes of a message from the budget of its writer and from that of all.
    pub(crate) fn take(bytes: usize, writer: &Arc<AtomicUsize>, all: &Arc<AtomicUsize>) -> Self {
        writer.fetch_add(bytes, Ordering::Relaxed);
        all.fetch_add(bytes, Ordering::Relaxed);
        Self {
            bytes,
            writer: Arc::clone(writer),
            all: Arc::clone(all),
        }
    }
}

impl Drop for BytePermit {
    fn drop(&mut self) {
        self.writer.fetch_sub(self.bytes, Ordering::Relaxed);
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
