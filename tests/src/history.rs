//! What the clients of a crash test saw, written down by the client before and after each request.
//!
//! Invariant: a request is in the file before it is sent and its answer after it came, so a request without an answer
//! is one whose effect is unknown, never one that is forgotten.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a batch was made to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Nature {
    /// At least one record that no other request has; every record fits the contract.
    Fresh,
    /// Only records that were in the table when it was sent.
    Duplicates,
    /// At least one record that does not fit the contract.
    Bad,
}

/// One line of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Event {
    /// A project is about to be created.
    Create {
        /// Its slug.
        slug: String,
        /// Its `schemaDef`.
        contract: Value,
    },
    /// The answer to [`Event::Create`].
    Created {
        /// The slug.
        slug: String,
        /// The status.
        status: u16,
    },
    /// What a project reads as after a recovery.
    Found {
        /// The slug.
        slug: String,
        /// The status.
        status: u16,
        /// The `schemaDef` it shows; null when it is not there.
        contract: Value,
        /// The versions it shows, newest first.
        versions: Value,
    },
    /// A batch is about to be sent.
    Submit {
        /// Number of the request, unique in the file.
        request: u64,
        /// The dataset.
        slug: String,
        /// The agent's id.
        agent: String,
        /// The `Idempotency-Key`.
        key: Option<String>,
        /// What it was made to be.
        nature: Nature,
        /// The records.
        records: Vec<Value>,
    },
    /// The answer to [`Event::Submit`].
    Answer {
        /// The request.
        request: u64,
        /// The status.
        status: u16,
        /// The id, where the status is 200 or 201.
        contribution: Option<String>,
    },
    /// No whole answer came.
    Unknown {
        /// The request.
        request: u64,
    },
    /// What a contribution reads as.
    Outcome {
        /// The contribution.
        contribution: String,
        /// The status of the answer.
        status: u16,
        /// The body of the answer.
        body: Value,
    },
    /// What a version reads as through the interface.
    Read {
        /// The dataset.
        slug: String,
        /// The version.
        version: u64,
        /// How many records it has.
        rows: u64,
        /// The fingerprint of its records in order.
        fingerprint: String,
    },
    /// A process died at a crash point.
    Kill {
        /// The point.
        point: String,
        /// Which passage of it.
        nth: u64,
    },
}

/// The open file.
#[derive(Debug)]
pub struct History {
    path: PathBuf,
    file: Mutex<File>,
}

impl History {
    /// Starts a file.
    pub fn create(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let file = Mutex::new(File::options().create(true).append(true).open(&path).unwrap());
        Self { path, file }
    }

    /// Writes one line.
    pub fn write(&self, event: &Event) {
        let mut line = serde_json::to_vec(event).unwrap();
        line.push(b'\n');
        self.file.lock().unwrap().write_all(&line).unwrap();
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Reads a file of events that grows.
#[derive(Debug, Default)]
pub struct Reader {
    offset: u64,
    events: Vec<Event>,
}

impl Reader {
    /// Everything written so far: what came since the last call is read from the file.
    pub fn read_on(&mut self, path: &Path) -> &[Event] {
        let mut file = File::open(path).unwrap();
        file.seek(SeekFrom::Start(self.offset)).unwrap();
        let mut text = String::new();
        self.offset += file.read_to_string(&mut text).unwrap() as u64;
        self.events
            .extend(text.lines().map(|line| serde_json::from_str::<Event>(line).unwrap()));
        &self.events
    }

    /// What was read so far.
    pub fn events(&self) -> &[Event] {
        &self.events
    }
}
