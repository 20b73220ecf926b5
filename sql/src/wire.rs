//! Messages between the caller and a child, over their socket.
//!
//! Invariant: a frame is its length as u32, little endian, and that many bytes of JSON. After a [`ChildQuery`] the caller
//! sends the file descriptors of the parts, at most [`FILES_AT_ONCE`] with one byte, and waits for one byte after each
//! batch. So at most one batch is in transit.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use types::{Contract, Proof, Timestamp};

use crate::{MAX_ANSWER_BYTES, QueryAnswer, Refusal};

/// Version of the protocol. Both sides must be of the same build.
pub(crate) const PROTOCOL: &str = concat!("sluice-sql-1 ", env!("CARGO_PKG_VERSION"));
/// Number of descriptors per message. The kernel allows 253.
pub(crate) const FILES_AT_ONCE: usize = 250;
/// Maximum length of a frame from a child in bytes: the rows of an answer, and its columns.
const MAX_FRAME_BYTES: usize = MAX_ANSWER_BYTES + (4 << 20);

/// First message to a child.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) protocol: String,
    /// Limit of the address space, in bytes.
    pub(crate) memory: u64,
    /// Limit of the processor time, in seconds.
    pub(crate) processor: u64,
    /// Number of threads of a query.
    pub(crate) threads: usize,
}

/// The query, sent to a ready child.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ChildQuery {
    pub(crate) contract: Arc<Contract>,
    pub(crate) sql: String,
    pub(crate) limit: u32,
    /// True if each run must give the rows in the same order.
    pub(crate) is_steady: bool,
    /// Time that `now()` returns in the statement.
    pub(crate) now: Timestamp,
    /// Row count and proof of each part, in the order of their descriptors.
    pub(crate) parts: Vec<(u64, Arc<Proof>)>,
}

/// Message from a child.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ChildReply {
    /// The engine is warm and the fence is closed.
    Ready,
    /// The preparation failed, with a description.
    Unfit(String),
    /// The rows of the result.
    Answer(QueryAnswer),
    Refused {
        what: String,
        rule: String,
    },
    Failed(String),
    /// A part could not be read.
    Unreadable(String),
    /// A part differs from its proof.
    Damaged(String),
    TooLarge,
    OutOfMemory,
}

impl From<Refusal> for ChildReply {
    fn from(refusal: Refusal) -> Self {
        Self::Refused {
            what: refusal.what,
            rule: refusal.rule,
        }
    }
}

/// Encodes a message as a frame.
pub(crate) fn frame(message: &impl Serialize) -> io::Result<Vec<u8>> {
    // Placeholder for the length, which is known after serialisation.
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = u32::try_from(bytes.len() - 4).map_err(io::Error::other)?;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

/// The child's end of the socket, with blocking calls.
#[derive(Debug)]
pub(crate) struct ChildChannel(pub(crate) UnixStream);

impl ChildChannel {
    /// Receives the next frame.
    pub(crate) fn receive<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length)?;
        // The child trusts the caller, so this length needs no bound.
        let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
        self.0.read_exact(&mut bytes)?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// Sends a message as a frame.
    pub(crate) fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        self.0.write_all(&frame(message)?)
    }

    /// Receives the next `count` open files.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if a message has no files.
    pub(crate) fn receive_files(&mut self, count: usize) -> io::Result<Vec<File>> {
        let mut files = Vec::with_capacity(count);
        while files.len() < count {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_AT_ONCE))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut byte = [0];
            let mut bytes = [IoSliceMut::new(&mut byte)];
            let received = recvmsg(&self.0, &mut bytes, &mut control, RecvFlags::CMSG_CLOEXEC)?;
            let before = files.len();
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                    files.extend(descriptors.map(File::from));
                }
            }
            // The caller closed the socket, or sent a message without files.
            if received.bytes == 0 || files.len() == before {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            // The byte acknowledges the batch.
            self.0.write_all(&byte)?;
        }
        Ok(files)
    }
}

/// The caller's end of the socket.
#[derive(Debug)]
pub(crate) struct ServiceChannel(pub(crate) tokio::net::UnixStream);

impl ServiceChannel {
    /// Receives the next frame. A frame longer than [`MAX_FRAME_BYTES`] is an error, so a child cannot exhaust the
    /// caller's memory.
    pub(crate) async fn receive(&mut self) -> io::Result<ChildReply> {
        let length = self.0.read_u32_le().await? as usize;
        if length > MAX_FRAME_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the frame is too long"));
        }
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).await?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// Sends a message as a frame.
    pub(crate) async fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        self.0.write_all(&frame(message)?).await
    }

    /// Sends up to [`FILES_AT_ONCE`] open files and waits for their acknowledgement.
    pub(crate) async fn send_files(&mut self, files: &[File]) -> io::Result<()> {
        let descriptors: Vec<BorrowedFd<'_>> = files.iter().map(File::as_fd).collect();
        let socket = &self.0;
        let send = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_AT_ONCE))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            // Descriptors need at least one byte beside them. `NOSIGNAL` turns SIGPIPE of a dead child into an error.
            sendmsg(socket, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
            Ok(())
        };
        socket.async_io(Interest::WRITABLE, send).await?;
        self.0.read_u8().await.map(drop)
    }
}
