//! Encoding of an upload's rows that keeps nothing, for a process that tries the upload out.

use std::io::{self, Sink};
use std::path::PathBuf;

use proof::Suffix;
use types::{AgentId, Batch, Contract, ContributionId, Version, fault};

use super::file::{CommonValues, PartWriter};
use super::writing::failure;
use crate::{Error, Root, part};

/// Encodes the rows of an upload as [`Stager`](crate::Stager) does, and keeps nothing.
#[derive(Debug)]
pub struct DryRunStager {
    common: CommonValues,
    /// The file so far. It begins with the first rows.
    writer: Option<PartWriter<Sink>>,
    suffix: Suffix,
    rows: u64,
}

impl DryRunStager {
    /// Begins an upload without rows.
    pub fn new(contract: &Contract, contribution: ContributionId, agent: AgentId) -> Self {
        Self {
            common: CommonValues {
                schema: part::schema(contract),
                contribution,
                agent,
                version: Version::EMPTY.next(),
            },
            writer: None,
            suffix: Suffix::new(),
            rows: 0,
        }
    }

    /// Encodes rows that passed the gates.
    pub fn push(&mut self, batch: &Batch) -> Result<(), Error> {
        if batch.is_empty() {
            return Ok(());
        }
        fault::crash_encoder_on(batch);
        for row in 0..batch.len() {
            self.suffix.push(batch.canonical(row));
        }
        let columns = part::varying(batch, self.rows);
        self.rows += batch.len() as u64;
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => PartWriter::over(io::sink(), PathBuf::new(), self.common.clone(), &columns).map_err(failure)?,
        };
        writer.write(&columns).map_err(failure)?;
        self.writer = Some(writer);
        Ok(())
    }

    /// Encodes what is left, and returns the content root of the rows.
    pub fn finish(self) -> Result<Root, Error> {
        if let Some(mut writer) = self.writer {
            writer.end().map_err(failure)?;
        }
        Ok(self.suffix.after(&Root::EMPTY))
    }
}
