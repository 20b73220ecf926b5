//! Messages between the caller and a child, over their socket.
//!
//! Invariant: a frame is its length as u32, little endian, and that many bytes of JSON. Bytes may follow, whose number the
//! frame names, or file descriptors: at most [`FILES_AT_ONCE`] with one byte, and the caller waits for one byte after each
//! batch. So at most one batch is in transit.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};

/// Number of descriptors per message. The kernel allows 253.
pub const FILES_AT_ONCE: usize = 250;

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
pub struct ChildChannel(pub(crate) UnixStream);

impl ChildChannel {
    /// Receives the next frame.
    pub fn receive<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length)?;
        // The child trusts the caller, so this length needs no bound.
        let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
        self.0.read_exact(&mut bytes)?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// Sends a message as a frame.
    pub fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        self.0.write_all(&frame(message)?)
    }

    /// Receives so many bytes, which follow a message.
    pub fn receive_bytes(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Sends bytes, which follow a message that names their number.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    /// Receives the next `count` open files.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if a message has no files.
    pub fn receive_files(&mut self, count: usize) -> io::Result<Vec<File>> {
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
pub struct ServiceChannel(pub(crate) tokio::net::UnixStream);

impl ServiceChannel {
    /// Receives the next frame. A frame longer than `most` bytes is an error, so a child cannot exhaust the caller's memory.
    pub async fn receive<T: DeserializeOwned>(&mut self, most: usize) -> io::Result<T> {
        let length = self.0.read_u32_le().await? as usize;
        if length > most {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the frame is too long"));
        }
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).await?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// Sends a message as a frame.
    pub async fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        self.0.write_all(&frame(message)?).await
    }

    /// Receives so many bytes, which follow a message.
    pub async fn receive_bytes(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes).await?;
        Ok(bytes)
    }

    /// Sends bytes, which follow a message that names their number.
    pub async fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes).await
    }

    /// Sends up to [`FILES_AT_ONCE`] open files and waits for their acknowledgement.
    pub async fn send_files(&mut self, files: &[File]) -> io::Result<()> {
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
