//! What caller and child say to each other over their socket.
//!
//! Invariant: a frame is its length as u32, little endian, and that many bytes of JSON. After a [`Job`] the caller sends
//! the descriptors of its parts, at most [`BATCH`] with one byte, and each time waits for one byte before it goes on, so
//! that no more than a batch is ever on its way.

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

use crate::{Answer, MAX_ANSWER_BYTES, Refusal};

/// The two sides must be of one build; this changes with what they say.
pub(crate) const PROTOCOL: &str = concat!("sluice-sql-1 ", env!("CARGO_PKG_VERSION"));
/// How many descriptors are sent at once; the kernel takes 253.
pub(crate) const BATCH: usize = 250;
/// The longest frame from a child: the rows of an answer, and its columns.
const LONGEST: usize = MAX_ANSWER_BYTES + (4 << 20);

/// What a child is told when it starts.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) protocol: String,
    /// The limit of its address space, in bytes.
    pub(crate) memory: u64,
    /// The limit of its processor time, in seconds.
    pub(crate) processor: u64,
    /// How many threads run a query.
    pub(crate) threads: usize,
}

/// The query.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) contract: Arc<Contract>,
    pub(crate) sql: String,
    pub(crate) limit: u32,
    /// What `now()` says.
    pub(crate) now: Timestamp,
    /// Rows and proof of each part, in the order of their descriptors.
    pub(crate) parts: Vec<(u64, Arc<Proof>)>,
}

/// What a child says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// It is warm and fenced in.
    Ready,
    /// It cannot be made ready.
    Unfit(String),
    /// The rows.
    Answer(Answer),
    Refused {
        what: String,
        rule: String,
    },
    Failed(String),
    /// A part could not be read.
    Unreadable(String),
    /// A part is not what was written.
    Damaged(String),
    TooLarge,
    OutOfMemory,
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        Self::Refused {
            what: refusal.what,
            rule: refusal.rule,
        }
    }
}

/// A frame, ready to be sent.
pub(crate) fn frame(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = u32::try_from(bytes.len() - 4).map_err(io::Error::other)?;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

/// The child's end: waits for what it needs.
#[derive(Debug)]
pub(crate) struct Pipe(pub(crate) UnixStream);

impl Pipe {
    /// The next frame.
    pub(crate) fn receive<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length)?;
        let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
        self.0.read_exact(&mut bytes)?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// Sends a frame.
    pub(crate) fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        self.0.write_all(&frame(message)?)
    }

    /// The next `count` open files.
    pub(crate) fn receive_files(&mut self, count: usize) -> io::Result<Vec<File>> {
        let mut files = Vec::with_capacity(count);
        while files.len() < count {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BATCH))];
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
            if received.bytes == 0 || files.len() == before {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.0.write_all(&byte)?;
        }
        Ok(files)
    }
}

/// The caller's end.
#[derive(Debug)]
pub(crate) struct Line(pub(crate) tokio::net::UnixStream);

impl Line {
    /// The next frame; one that is longer than any answer may be is an error.
    pub(crate) async fn receive(&mut self) -> io::Result<Reply> {
        let length = self.0.read_u32_le().await? as usize;
        if length > LONGEST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the frame is too long"));
        }
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).await?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// Sends a frame.
    pub(crate) async fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        self.0.write_all(&frame(message)?).await
    }

    /// Sends up to [`BATCH`] open files and waits until they have arrived.
    pub(crate) async fn send_files(&mut self, files: &[File]) -> io::Result<()> {
        let descriptors: Vec<BorrowedFd<'_>> = files.iter().map(File::as_fd).collect();
        let socket = &self.0;
        let send = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BATCH))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            sendmsg(socket, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
            Ok(())
        };
        socket.async_io(Interest::WRITABLE, send).await?;
        self.0.read_u8().await.map(drop)
    }
}
