//! Receipts of queries, checked offline: the signature, the answer that they are about, and the statement, which is run
//! again over a pulled version.
//!
//! Invariant: `equal` and `different` are said of what was compared byte by byte. What another program or an open order of
//! rows can explain is not compared.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use client::KnownKeys;
use proof::query_receipt::{AnswerHash, BuildId};
use proof::{Keys, Manifest, Part, QueryReceipt, VerifiedStatement};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sql::{Sandbox, SandboxConfig, SandboxPart, VersionRecords};
use types::Proof;
use types::clock::SystemClock;
use types::proof::Blocks;

use super::signatures;
use crate::exit::WrongUsage;
use crate::{sandbox, terminal};

/// Time that a statement may take here: more than at the service, since the machine may be slower.
const MAX_RUN_TIME: Duration = Duration::from_mins(5);
/// Bytes of a part that are read at a time.
const READ_BYTES: usize = 1 << 20;

/// Files that a receipt is held against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueryReceiptFiles<'a> {
    /// Answer of the service, as JSON.
    pub(crate) answer: Option<&'a Path>,
    /// Folder of the pulled version.
    pub(crate) data: Option<&'a Path>,
    /// Keys document to trust for the folder.
    pub(crate) keys: Option<&'a Path>,
    /// Services that this machine has met.
    pub(crate) known: &'a KnownKeys,
    /// True if the result is printed as one JSON object.
    pub(crate) is_json: bool,
}

/// Result of a comparison, with what it is about.
#[derive(Debug, PartialEq, Eq)]
enum Compared {
    Equal(String),
    Different(String),
    Not(String),
}

impl Compared {
    fn line(&self) -> String {
        match self {
            Self::Equal(what) => format!("equal: {what}"),
            Self::Different(what) => format!("different: {what}"),
            Self::Not(why) => format!("not compared: {why}"),
        }
    }

    fn json(&self) -> Value {
        let (result, what) = match self {
            Self::Equal(what) => ("equal", what),
            Self::Different(what) => ("different", what),
            Self::Not(why) => ("not_compared", why),
        };
        json!({ "result": result, "of": what })
    }
}

/// Members of an answer that its hash is of.
#[derive(Deserialize)]
struct AnswerFile {
    columns: Box<RawValue>,
    rows: Vec<Box<RawValue>>,
    truncated: bool,
}

/// Checks a receipt with keys that are trusted, and prints what holds. The exit code is a failure if something is
/// different.
///
/// # Errors
/// A receipt that is forged, cut or revoked, a file that cannot be read, or a folder that is another version.
pub(crate) async fn run(text: &[u8], keys: &Keys, files: &QueryReceiptFiles<'_>) -> anyhow::Result<ExitCode> {
    let verified = VerifiedStatement::<QueryReceipt>::parse(text, keys)?;
    let receipt = verified.statement();
    if !files.is_json {
        terminal::line(&format!(
            "signed: {} of {} version {} for `{}`, by the key {} on {}",
            rows(receipt.row_count),
            terminal::shown(&receipt.slug),
            receipt.version,
            terminal::plain(&receipt.sql),
            verified.key(),
            receipt.issued_at
        ))?;
    }
    let mut compared = Vec::new();
    if let Some(path) = files.answer {
        compared.push(answer(receipt, path)?);
    }
    if let Some(folder) = files.data {
        compared.push(again(receipt, folder, files).await?);
    }
    let is_different = compared
        .iter()
        .any(|compared| matches!(compared, Compared::Different(_)));
    let code = if is_different {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    };
    if files.is_json {
        let compared: Vec<Value> = compared.iter().map(Compared::json).collect();
        let key = verified.key().to_string();
        terminal::json(&json!({ "verified": true, "keyId": key, "receipt": receipt, "compared": compared }))?;
        return Ok(code);
    }
    for compared in &compared {
        terminal::line(&terminal::plain(&compared.line()))?;
    }
    Ok(code)
}

fn rows(count: u64) -> String {
    if count == 1 {
        "1 row".to_owned()
    } else {
        format!("{count} rows")
    }
}

/// Compares a file with the answer that was signed.
fn answer(receipt: &QueryReceipt, path: &Path) -> anyhow::Result<Compared> {
    let shown = path.display();
    let text = fs::read(path).with_context(|| format!("`{shown}` could not be read"))?;
    let file: AnswerFile = serde_json::from_slice(&text).with_context(|| {
        format!("`{shown}` is not the answer to a query: it needs `columns`, `rows` and `truncated`")
    })?;
    let columns = types::json::parse(file.columns.get().as_bytes());
    let columns = columns.with_context(|| format!("`{shown}` is not the answer to a query"))?;
    let hash = AnswerHash::of(&columns, file.rows.iter().map(AsRef::as_ref), file.truncated)
        .with_context(|| format!("`{shown}` is not the answer to a query"))?;
    Ok(if hash == receipt.answer {
        Compared::Equal(format!("`{shown}` is the answer"))
    } else {
        Compared::Different(format!("`{shown}` is another answer: its hash is {hash}"))
    })
}

/// Runs the statement over a pulled version, if it gives the same answer each time.
async fn again(receipt: &QueryReceipt, folder: &Path, files: &QueryReceiptFiles<'_>) -> anyhow::Result<Compared> {
    let shown = folder.display();
    let verify = client::Verify {
        folder,
        keys: files.keys,
        known: files.known,
    };
    let verified = signatures(&verify)?;
    let manifest = verified.manifest.manifest();
    if (manifest.dataset, manifest.version, manifest.root) != (receipt.dataset, receipt.version, receipt.root) {
        return Err(WrongUsage(format!(
            "`{shown}` has version {} of {} with the root {}, and the receipt is about version {} of {} with the root {}",
            manifest.version,
            terminal::shown(&manifest.slug),
            manifest.root,
            receipt.version,
            terminal::shown(&receipt.slug),
            receipt.root
        ))
        .into());
    }
    verify.parts(&verified.manifest, &|_| {})?;
    if !receipt.reproducible {
        return Ok(Compared::Not(format!(
            "the statement may give another answer each time ({})",
            receipt.why.join(", ")
        )));
    }
    let records = records(manifest.clone(), folder.to_owned()).await?;
    let own = sandbox::build().await?;
    let found = Rerun::of(receipt, &records).await;
    Ok(found.compared(receipt, own))
}

/// Result of another run of a statement.
#[derive(Debug)]
enum Rerun {
    Answer(AnswerHash),
    /// The statement gives no answer, whatever the machine is.
    NoAnswer(String),
    /// This machine gave none.
    Unknown(String),
}

impl Rerun {
    async fn of(receipt: &QueryReceipt, records: &VersionRecords) -> Self {
        match Self::answer(receipt, records).await {
            Ok(hash) => Self::Answer(hash),
            Err(error @ (sql::Error::Refused(_) | sql::Error::Failed { .. } | sql::Error::TooLarge)) => {
                Self::NoAnswer(error.to_string())
            }
            Err(error) => Self::Unknown(error.to_string()),
        }
    }

    async fn answer(receipt: &QueryReceipt, records: &VersionRecords) -> Result<AnswerHash, sql::Error> {
        let unready = |problem: String| sql::Error::Process { problem, source: None };
        let program = sandbox::program().map_err(|error| unready(format!("{error:#}")))?;
        let sandbox = Sandbox::start(SandboxConfig {
            standby: 0,
            at_once: 1,
            seconds: MAX_RUN_TIME,
            ..SandboxConfig::new(program, Arc::new(SystemClock::default()))
        })?;
        let answer = sandbox
            .query_at(records, &receipt.sql, receipt.limit, receipt.now)
            .await?;
        let columns = serde_json::to_value(&answer.columns).map_err(|error| unready(error.to_string()))?;
        let end = receipt.next_offset.map_or(usize::MAX, |end| end as usize);
        let page = answer.rows.iter().take(end).skip(receipt.offset as usize);
        AnswerHash::of(&columns, page.map(AsRef::as_ref), answer.truncated).map_err(|error| unready(error.to_string()))
    }

    fn compared(self, receipt: &QueryReceipt, own: BuildId) -> Compared {
        let other = || {
            let build = receipt.build;
            Compared::Not(format!(
                "this program is the build {own} and gives another answer than the build {build}, which answered"
            ))
        };
        match self {
            Self::Answer(hash) if hash == receipt.answer => {
                Compared::Equal("the statement gives this answer again".to_owned())
            }
            Self::Unknown(problem) => Compared::Not(problem),
            // Another program may read a statement otherwise, and is no proof of a lie.
            _ if own != receipt.build => other(),
            Self::Answer(hash) => Compared::Different(format!(
                "the statement gives another answer, whose hash is {hash} instead of {}",
                receipt.answer
            )),
            Self::NoAnswer(problem) => Compared::Different(format!("the statement gives no answer: {problem}")),
        }
    }
}

/// Returns the records of a folder that is verified, with the hashes of the blocks of its parts.
async fn records(manifest: Manifest, folder: PathBuf) -> anyhow::Result<VersionRecords> {
    let hashing = tokio::task::spawn_blocking(move || -> anyhow::Result<VersionRecords> {
        let parts = manifest.parts.iter().map(|part| hashed(&folder, part));
        Ok(VersionRecords {
            parts: parts.collect::<anyhow::Result<_>>()?,
            // The documentation of the fields is no part of the table.
            contract: Arc::new(manifest.schema_def.rules()),
        })
    });
    hashing.await.context("the parts could not be read")?
}

fn hashed(folder: &Path, part: &Part) -> anyhow::Result<SandboxPart> {
    let path = folder.join(&part.path);
    let read = || -> std::io::Result<Proof> {
        let mut blocks = Blocks::default();
        let mut file = BufReader::with_capacity(READ_BYTES, File::open(&path)?);
        loop {
            let bytes = file.fill_buf()?;
            if bytes.is_empty() {
                return Ok(blocks.finish());
            }
            blocks.update(bytes);
            let count = bytes.len();
            file.consume(count);
        }
    };
    let proof = read().with_context(|| format!("`{}` could not be read", path.display()))?;
    Ok(SandboxPart {
        path,
        rows: part.rows,
        proof: Arc::new(proof),
    })
}

#[cfg(test)]
mod tests {
    use proof::Root;
    use proof::query_receipt::QueryReceiptFormat;
    use serde_json::json;
    use types::{DatasetId, Timestamp, Version};

    use super::*;

    const OURS: [u8; 32] = [1; 32];

    fn receipt() -> QueryReceipt {
        QueryReceipt {
            format: QueryReceiptFormat::V1,
            dataset: DatasetId::from_bytes([7; 16]),
            slug: "tides".to_owned(),
            version: Version(1),
            root: Root::EMPTY,
            sql: "SELECT 1".to_owned(),
            limit: 10,
            offset: 0,
            next_offset: None,
            now: Timestamp::default(),
            build: BuildId::of_sha256(&OURS),
            row_count: 1,
            answer: AnswerHash::from_bytes([5; 32]),
            reproducible: true,
            why: Vec::new(),
            issued_at: Timestamp::default(),
        }
    }

    #[test]
    fn only_the_same_program_finds_another_answer_to_be_different() {
        let (receipt, other) = (receipt(), AnswerHash::from_bytes([6; 32]));
        let compared = |found: Rerun, build: u8| found.compared(&receipt, BuildId::of_sha256(&[build; 32]));
        for build in [1, 2] {
            let equal = compared(Rerun::Answer(receipt.answer), build);
            assert!(matches!(equal, Compared::Equal(_)), "{equal:?}");
            let late = compared(Rerun::Unknown("too late".to_owned()), build);
            assert_eq!(late, Compared::Not("too late".to_owned()));
        }
        for found in [Rerun::Answer(other), Rerun::NoAnswer("no such column".to_owned())] {
            let said = format!("{found:?}");
            let (same, foreign) = match found {
                Rerun::Answer(hash) => (compared(Rerun::Answer(hash), 1), compared(Rerun::Answer(hash), 2)),
                Rerun::NoAnswer(problem) | Rerun::Unknown(problem) => (
                    compared(Rerun::NoAnswer(problem.clone()), 1),
                    compared(Rerun::NoAnswer(problem), 2),
                ),
            };
            assert!(matches!(same, Compared::Different(_)), "{said}: {same:?}");
            assert!(matches!(foreign, Compared::Not(_)), "{said}: {foreign:?}");
        }
    }

    #[test]
    fn a_file_is_the_answer_by_what_it_means() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("answer.json");
        let columns = json!([{"name": "n", "type": "Int64", "nullable": false}]);
        let row = RawValue::from_string("[1.0]".to_owned()).unwrap();
        let receipt = QueryReceipt {
            answer: AnswerHash::of(&columns, [&*row], false).unwrap(),
            ..receipt()
        };
        let compared = |text: &str| {
            fs::write(&path, text).unwrap();
            answer(&receipt, &path)
        };
        let whole = r#"{"version": 1, "columns": [{"type":"Int64","name":"n","nullable":false}], "rows": [[1]],
                        "rowCount": 1, "truncated": false, "receipt": {"sql": "SELECT 1"}}"#;
        assert!(matches!(compared(whole), Ok(Compared::Equal(_))));
        assert!(matches!(
            compared(&whole.replace("[[1]]", "[[2]]")),
            Ok(Compared::Different(_))
        ));
        assert!(matches!(
            compared(&whole.replace("false}", "true}")),
            Ok(Compared::Different(_))
        ));
        let twice = whole.replace("\"type\":", "\"name\": \"n\", \"type\":");
        assert!(compared(&twice).is_err());
        for cut in [
            &whole[..40],
            "{}",
            "[]",
            &whole.replace("[[1]]", "[[{\"a\":1,\"a\":1}]]"),
        ] {
            let refused = compared(cut).unwrap_err();
            assert!(
                refused.to_string().contains("is not the answer to a query"),
                "{cut}: {refused}"
            );
        }
    }
}
