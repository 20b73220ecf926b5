//! Verification of a run of parts, from the content root before it to the one after.
//!
//! Invariant: the rows of a version end where the next begins, and each version's rows extend the root by one step.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::PageIndexPolicy;
use sha2::{Digest as _, Sha256};
use types::Contract;

use crate::pace::rows_at_once;
use crate::row::{self, PartRows};
use crate::{Error, Extension, FileHash, Part, Root};

/// The bytes that are hashed at a time.
const HASHED_BYTES: usize = 256 << 10;

/// Verifies a run of parts and calls `verified` with the number of rows of each.
pub(super) fn verify(
    contract: &Contract,
    folder: &Path,
    before: Root,
    parts: &[Part],
    verified: &(dyn Fn(u64) + Sync),
) -> Result<(), Error> {
    let Some(first) = parts.first() else { return Ok(()) };
    let mut chain = RootChain {
        parts,
        version: first.first_version.0,
        rows: 0,
        root: before.extension(),
    };
    for part in parts {
        let file = open(folder, part)?;
        chain.part(contract, part, file).map_err(|error| error.of(part))?;
        verified(part.rows);
    }
    chain.end().map_err(|error| error.of(&parts[parts.len() - 1]))
}

/// An error of a part, before its name is added.
enum PartProblem {
    Rows(String),
    Proof(Error),
}

impl PartProblem {
    fn of(self, part: &Part) -> Error {
        match self {
            Self::Proof(error) => error,
            Self::Rows(problem) => Error::PartRows {
                part: part.path.clone(),
                problem,
            },
        }
    }
}

/// Opens the file of a part, if its size and SHA-256 are the signed ones.
fn open(folder: &Path, part: &Part) -> Result<File, Error> {
    let path = folder.join(&part.path);
    let hashed = || -> io::Result<(File, u64, FileHash)> {
        let mut file = File::open(&path)?;
        let (mut hasher, mut bytes) = (Sha256::new(), 0);
        let mut chunk = vec![0; HASHED_BYTES];
        loop {
            let read = file.read(&mut chunk)?;
            if read == 0 {
                break;
            }
            bytes += read as u64;
            hasher.update(&chunk[..read]);
        }
        // The same open file is read again as Parquet, so it cannot be swapped after the check.
        file.rewind()?;
        Ok((file, bytes, FileHash::from_bytes(hasher.finalize().into())))
    };
    let (file, bytes, hash) = hashed().map_err(|source| Error::File {
        path: path.clone(),
        source,
    })?;
    // A wrong size gives a clearer error than a wrong hash.
    if bytes != part.size {
        return Err(Error::PartSize {
            part: part.path.clone(),
            expected: part.size,
            found: bytes,
        });
    }
    if hash != part.sha256 {
        return Err(Error::PartHash {
            part: part.path.clone(),
            expected: part.sha256,
            found: hash,
        });
    }
    Ok(file)
}

/// The state of reading: the current version, its rows so far, and its root.
struct RootChain<'a> {
    parts: &'a [Part],
    version: u64,
    rows: u64,
    root: Extension,
}

impl RootChain<'_> {
    /// Reads a part and extends the root by its rows.
    fn part(&mut self, contract: &Contract, part: &Part, file: File) -> Result<(), PartProblem> {
        let unreadable = |error: &dyn ToString| PartProblem::Rows(error.to_string());
        // The page index gives a better estimate of decoded sizes; files without it are read
        // too.
        let options = ArrowReaderOptions::new().with_offset_index_policy(PageIndexPolicy::Optional);
        let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options);
        let builder = builder.map_err(|error| unreadable(&error))?;
        let rows = builder.metadata().file_metadata().num_rows();
        if u64::try_from(rows) != Ok(part.rows) {
            return Err(PartProblem::Rows(format!(
                "it has {rows} rows, and {} are named",
                part.rows
            )));
        }
        // Only the columns of the contract are read; their hash was checked as part of the
        // file.
        let names = row::columns(contract);
        let columns = builder.schema().fields().iter().enumerate();
        let wanted: Vec<_> = columns
            .filter(|(_, column)| names.contains(&column.name().as_str()))
            .map(|(index, _)| index)
            .collect();
        let mask = ProjectionMask::roots(builder.parquet_schema(), wanted);
        let at_once = rows_at_once(builder.metadata(), |column| mask.leaf_included(column), &(0..part.rows));
        let reader = builder.with_projection(mask).with_batch_size(at_once).build();
        let mut last = None;
        for batch in reader.map_err(|error| unreadable(&error))? {
            let batch = batch.map_err(|error| unreadable(&error))?;
            let rows = PartRows::new(contract, &batch).map_err(PartProblem::Rows)?;
            for row in 0..batch.num_rows() {
                let version = rows.version(row);
                let wrong =
                    || PartProblem::Rows(format!("row {row} of a page is of version {version:?}, out of order"));
                let version = version.ok_or_else(wrong)?;
                if last.is_none() && version != part.first_version.0 {
                    return Err(wrong());
                }
                last = Some(version);
                // A version may end only after at least one row.
                if version == self.version + 1 && self.rows > 0 {
                    self.step()?;
                }
                if version != self.version {
                    return Err(wrong());
                }
                let mut written = Ok(());
                self.root.push(|out| written = rows.write(out, row));
                written.map_err(PartProblem::Rows)?;
                self.rows += 1;
            }
        }
        if last == Some(part.last_version.0) {
            Ok(())
        } else {
            Err(PartProblem::Rows(format!(
                "its last row is not of version {}",
                part.last_version
            )))
        }
    }

    /// Completes the current version and starts the next.
    fn step(&mut self) -> Result<(), PartProblem> {
        let root = self.checked()?;
        self.root = root.extension();
        self.version += 1;
        self.rows = 0;
        Ok(())
    }

    /// Completes the last version.
    fn end(self) -> Result<(), PartProblem> {
        self.checked().map(|_| ())
    }

    /// Returns the root of the current version, after comparing it with every part that ends with this version.
    fn checked(&self) -> Result<Root, PartProblem> {
        let root = self.root.clone().finish();
        let mut ending = self.parts.iter().filter(|part| part.last_version.0 == self.version);
        match ending.find(|part| part.root != root) {
            None => Ok(root),
            Some(part) => Err(PartProblem::Proof(Error::ContentRoot {
                part: part.path.clone(),
                expected: part.root,
                found: root,
            })),
        }
    }
}
