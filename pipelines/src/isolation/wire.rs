//! Messages between a worker and a child, over a socket.
//!
//! Invariant: to a child, a frame is the lengths of its head and its body as u32, little endian, then the head as JSON
//! and the body. From a child, a frame is one byte. Of an upload, at most [`AHEAD`] pieces are on their way, so a child
//! never makes its worker wait for anything but an answer.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use messages::head;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// The pieces of an upload that are sent before the first is taken.
pub(super) const AHEAD: usize = 4;

/// The kind of a message that is tried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MessageKind {
    /// A submission with its records.
    Batch,
    /// A submission that refers to an upload.
    Upload,
    /// A version of a knowledge unit.
    Unit,
}

impl MessageKind {
    /// Returns the kind of a submission to a dataset, as far as its first line can be read.
    pub(crate) fn of_submission(value: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Reference {
            #[serde(default)]
            upload: Option<IgnoredAny>,
        }
        match serde_json::from_slice(head(value)) {
            Ok(Reference { upload: Some(_) }) => Self::Upload,
            _ => Self::Batch,
        }
    }
}

/// The head of a frame to a child.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Head {
    /// The first frame.
    SetUp {
        /// Limit of the address space, in bytes.
        memory: u64,
        /// The text that test builds die of; empty for none.
        lethal: String,
    },
    /// A message to try out. The body is its value.
    Probe {
        /// Kind of the message.
        kind: MessageKind,
        /// Key of the message.
        key: Vec<u8>,
    },
    /// The next bytes of the upload, or none after the last. They are of no interest once its probe is over.
    Piece,
}

/// A frame from a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// The child takes messages.
    Ready = 1,
    /// The child has taken a piece.
    Taken = 2,
    /// The child has outlived the message.
    Survived = 3,
}

/// The worker's end of the socket.
#[derive(Debug)]
pub(super) struct ServiceEnd(pub(super) tokio::net::UnixStream);

impl ServiceEnd {
    pub(super) async fn send(&mut self, head: &Head, body: &[u8]) -> io::Result<()> {
        let head = serde_json::to_vec(head)?;
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).map_err(io::Error::other);
        let mut frame = Vec::with_capacity(8 + head.len());
        frame.extend_from_slice(&length(&head)?.to_le_bytes());
        frame.extend_from_slice(&length(body)?.to_le_bytes());
        frame.extend_from_slice(&head);
        self.0.write_all(&frame).await?;
        self.0.write_all(body).await
    }

    /// Receives the next frame. The future may be dropped without loss.
    pub(super) async fn reply(&mut self) -> io::Result<Reply> {
        let mut byte = [0];
        if self.0.read(&mut byte).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let replies = [Reply::Ready, Reply::Taken, Reply::Survived];
        let reply = replies.into_iter().find(|reply| *reply as u8 == byte[0]);
        reply.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// The child's end of the socket, with blocking calls.
#[derive(Debug)]
pub(super) struct ChildEnd(pub(super) UnixStream);

impl ChildEnd {
    /// Receives the next frame.
    pub(super) fn receive(&mut self) -> io::Result<(Head, Vec<u8>)> {
        let mut lengths = [[0; 4]; 2];
        for length in &mut lengths {
            self.0.read_exact(length)?;
        }
        // The child trusts its worker, so the lengths need no bound.
        let [mut head, mut body] = lengths.map(|length| vec![0; u32::from_le_bytes(length) as usize]);
        self.0.read_exact(&mut head)?;
        self.0.read_exact(&mut body)?;
        Ok((serde_json::from_slice(&head)?, body))
    }

    pub(super) fn send(&mut self, reply: Reply) -> io::Result<()> {
        self.0.write_all(&[reply as u8])
    }
}
