//! Download of one part: resumed after an interruption, and hashed as it arrives.
//!
//! Invariant: a part gets its name only when its bytes have the signed SHA-256 and are durable.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proof::{FileHash, Part};
use reqwest::header::{CONTENT_RANGE, RANGE};
use reqwest::{Response, StatusCode};
use sha2::{Digest as _, Sha256};
use tokio::fs::{self, File};
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _};
use types::error::with_causes;

use super::addresses::Addresses;
use super::{PullEvent, PullProgress, under_way};
use crate::client::retry_after;
use crate::retry_budget::Pauses;
use crate::{Client, Error, tls};

/// Time-out for the next bytes.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// The most renewals of addresses without progress, and the most new downloads of a part whose bytes are wrong.
const MAX_REFRESHES: u32 = 2;
/// Bytes that are read from a file at once.
const READ_BYTES: usize = 256 << 10;

/// The reason that a try did not complete the part.
enum DownloadHalt {
    /// The address is not valid, or not any more. Has its generation and the answer.
    Refused(u64, String),
    /// The connection broke or the service is busy. Has the `Retry-After` of the answer, if there was one.
    Broken(Option<Duration>, String),
    /// The bytes are not those that were signed.
    Wrong(proof::Error),
    /// No further try can help.
    Failed(Error),
}

/// Downloads the part unless the folder has it. Returns true if it was downloaded.
pub(super) async fn part(
    client: &Client,
    addresses: &Addresses<'_>,
    folder: &Path,
    part: &Part,
    progress: &Arc<PullProgress>,
) -> Result<bool, Error> {
    let path = folder.join(&part.path);
    // A part of an earlier pull is hashed again, since its bytes may have changed on this machine.
    if is_there(&path, part).await? {
        progress(PullEvent::Here(part.size));
        return Ok(false);
    }
    let mut download = Download {
        client,
        addresses,
        part,
        path: under_way(folder, &part.path),
        progress,
        here: 0,
    };
    let (mut pauses, mut refused, mut wrong) = (Pauses::new(client.retry_budget), 0, 0);
    loop {
        let before = download.here;
        let halt = match download.go_on().await {
            Ok(()) => break,
            Err(halt) => halt,
        };
        // Progress resets the bounds, so that a large part survives any number of interruptions.
        if download.here > before {
            (pauses, refused) = (Pauses::new(client.retry_budget), 0);
        }
        let failed = |problem: String| Error::Part {
            part: part.path.clone(),
            problem,
        };
        match halt {
            DownloadHalt::Failed(error) => return Err(error),
            DownloadHalt::Refused(_, problem) if refused == MAX_REFRESHES => return Err(failed(problem)),
            // The manifest has new addresses, and several parts may need them at once.
            DownloadHalt::Refused(generation, _) => {
                addresses.renew(generation).await?;
                refused += 1;
            }
            DownloadHalt::Wrong(error) if wrong == MAX_REFRESHES => return Err(error.into()),
            // A damaged file of an earlier pull is a usual reason, so the part is downloaded again from its first byte.
            DownloadHalt::Wrong(_) => {
                download.discard().await?;
                wrong += 1;
            }
            DownloadHalt::Broken(asked, problem) => {
                let pause = pauses.next(asked).ok_or_else(|| failed(problem))?;
                tokio::time::sleep(pause).await;
            }
        }
    }
    // The folder is synced once for all parts, before the manifest is written.
    fs::rename(&download.path, &path)
        .await
        .map_err(|source| Error::file(&path, source))?;
    Ok(true)
}

/// A part while it is downloaded.
struct Download<'a> {
    client: &'a Client,
    addresses: &'a Addresses<'a>,
    part: &'a Part,
    path: PathBuf,
    progress: &'a Arc<PullProgress>,
    /// The bytes in the file that were reported to `progress`.
    here: u64,
}

impl Download<'_> {
    /// Fetches the missing bytes and verifies the whole part.
    async fn go_on(&mut self) -> Result<(), DownloadHalt> {
        let (mut file, mut hasher, mut here) = self.open().await.map_err(|source| self.lost(source))?;
        if here > self.part.size {
            return Err(DownloadHalt::Wrong(self.wrong_size(here)));
        }
        if here < self.part.size {
            let (mut response, from) = self.ask(here).await?;
            // A server may ignore the range and send everything (RFC 9110 section 14.2).
            if from == 0 && here > 0 {
                (hasher, here) = (Sha256::new(), 0);
                file.set_len(0).await.map_err(|source| self.lost(source))?;
                file.rewind().await.map_err(|source| self.lost(source))?;
                self.report(0);
            }
            let streamed = self.stream(&mut response, &mut file, &mut hasher, here).await;
            // The bytes are flushed before an error is returned, so that the next try continues after them.
            file.flush().await.map_err(|source| self.lost(source))?;
            here = streamed?;
        }
        if here != self.part.size {
            return Err(DownloadHalt::Wrong(self.wrong_size(here)));
        }
        let found = FileHash::from_bytes(hasher.finalize().into());
        if found != self.part.sha256 {
            return Err(DownloadHalt::Wrong(proof::Error::PartHash {
                part: self.part.path.clone(),
                expected: self.part.sha256,
                found,
            }));
        }
        file.sync_all().await.map_err(|source| self.lost(source))
    }

    /// Opens the file at its end, with the hash and number of its bytes.
    async fn open(&mut self) -> std::io::Result<(File, Sha256, u64)> {
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&self.path)
            .await?;
        // The bytes that are there are hashed, because the hash of a part covers all of them.
        let (hasher, here) = hash(&mut file).await?;
        self.report(here);
        Ok((file, hasher, here))
    }

    /// Requests the bytes from `from` on. Returns the answer and the offset at which it begins.
    async fn ask(&self, from: u64) -> Result<(Response, u64), DownloadHalt> {
        let (generation, url) = self.addresses.of(&self.part.path).await.map_err(DownloadHalt::Failed)?;
        let mut request = self.client.http.get(url);
        if from > 0 {
            request = request.header(RANGE, format!("bytes={from}-"));
        }
        let response = match tokio::time::timeout(READ_TIMEOUT, request.send()).await {
            Ok(Ok(response)) => response,
            // A certificate or a host name does not become right within a pull.
            Ok(Err(error)) if tls::hopeless(&error).is_some() => {
                let error = Error::unanswered("GET", self.part.path.clone(), error);
                return Err(DownloadHalt::Failed(error));
            }
            Ok(Err(error)) => return Err(DownloadHalt::Broken(None, describe(error))),
            Err(_) => return Err(DownloadHalt::Broken(None, "no answer in time".to_owned())),
        };
        let status = response.status();
        match status {
            StatusCode::OK => Ok((response, 0)),
            StatusCode::PARTIAL_CONTENT => {
                let range = response
                    .headers()
                    .get(CONTENT_RANGE)
                    .and_then(|range| range.to_str().ok());
                // Any other range would put bytes at the wrong place.
                let expected = format!("bytes {from}-{}/{}", self.part.size - 1, self.part.size);
                if range == Some(expected.as_str()) {
                    Ok((response, from))
                } else {
                    Err(DownloadHalt::Wrong(self.wrong_size(from)))
                }
            }
            // The store's object ends before `from`, so it is not the signed part.
            StatusCode::RANGE_NOT_SATISFIABLE => Err(DownloadHalt::Wrong(self.wrong_size(from))),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => Err(DownloadHalt::Broken(
                retry_after(response.headers()),
                status.to_string(),
            )),
            _ if status.is_server_error() => Err(DownloadHalt::Broken(
                retry_after(response.headers()),
                status.to_string(),
            )),
            // An expired address is refused, by most stores with 403.
            _ => Err(DownloadHalt::Refused(
                generation,
                format!("the server answered {status}"),
            )),
        }
    }

    /// Writes the body to the file. Returns the size of the file.
    async fn stream(
        &mut self,
        response: &mut Response,
        file: &mut File,
        hasher: &mut Sha256,
        mut here: u64,
    ) -> Result<u64, DownloadHalt> {
        loop {
            let chunk = match tokio::time::timeout(READ_TIMEOUT, response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                // A body without a length may end early without an error.
                Ok(Ok(None)) if here < self.part.size => {
                    return Err(DownloadHalt::Broken(
                        None,
                        format!("the answer ended after {here} bytes"),
                    ));
                }
                Ok(Ok(None)) => return Ok(here),
                Ok(Err(error)) => return Err(DownloadHalt::Broken(None, describe(error))),
                Err(_) => return Err(DownloadHalt::Broken(None, "no more bytes arrived in time".to_owned())),
            };
            // The size is checked first, so that a wrong answer cannot fill the disk.
            here += chunk.len() as u64;
            if here > self.part.size {
                return Err(DownloadHalt::Wrong(self.wrong_size(here)));
            }
            file.write_all(&chunk).await.map_err(|source| self.lost(source))?;
            hasher.update(&chunk);
            self.report(here);
        }
    }

    /// Removes the file, so that the download starts again.
    async fn discard(&mut self) -> Result<(), Error> {
        fs::remove_file(&self.path)
            .await
            .map_err(|source| Error::file(&self.path, source))?;
        self.report(0);
        Ok(())
    }

    /// Reports the difference to the bytes reported before.
    fn report(&mut self, here: u64) {
        if here > self.here {
            (self.progress)(PullEvent::Here(here - self.here));
        } else if here < self.here {
            (self.progress)(PullEvent::Discarded(self.here - here));
        }
        self.here = here;
    }

    fn wrong_size(&self, found: u64) -> proof::Error {
        proof::Error::PartSize {
            part: self.part.path.clone(),
            expected: self.part.size,
            found,
        }
    }

    fn lost(&self, source: std::io::Error) -> DownloadHalt {
        DownloadHalt::Failed(Error::file(&self.path, source))
    }
}

/// Returns true if the file has the size and the hash of the part.
async fn is_there(path: &Path, part: &Part) -> Result<bool, Error> {
    let hashed = async {
        let mut file = File::open(path).await?;
        // The size costs nothing, so it is compared before the hash.
        if file.metadata().await?.len() != part.size {
            return Ok(false);
        }
        let (hasher, _) = hash(&mut file).await?;
        Ok(FileHash::from_bytes(hasher.finalize().into()) == part.sha256)
    };
    match hashed.await {
        Err(error) if std::io::Error::kind(&error) == std::io::ErrorKind::NotFound => Ok(false),
        hashed => hashed.map_err(|source| Error::file(path, source)),
    }
}

/// Hashes a file from its position to its end. Returns the hash and the number of bytes.
async fn hash(file: &mut File) -> std::io::Result<(Sha256, u64)> {
    let (mut hasher, mut bytes) = (Sha256::new(), 0);
    let mut chunk = vec![0; READ_BYTES];
    loop {
        let read = file.read(&mut chunk).await?;
        if read == 0 {
            return Ok((hasher, bytes));
        }
        hasher.update(&chunk[..read]);
        bytes += read as u64;
    }
}

/// Describes an error and its causes, without the address, which grants access to the part.
fn describe(error: reqwest::Error) -> String {
    with_causes(&error.without_url())
}
