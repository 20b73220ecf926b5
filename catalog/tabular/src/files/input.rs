//! The bytes of a file that is read in any order.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

/// A file, with a place of its own where it is read. A clone is cheap and begins at the same place.
#[derive(Clone, Debug)]
pub struct FileInput {
    source: FileSource,
    length: u64,
    position: u64,
}

#[derive(Clone, Debug)]
enum FileSource {
    /// Read at places only, since handles of a file share the place where it is read.
    File(Arc<File>),
    Memory(Bytes),
}

impl FileInput {
    /// Returns a file on the disk of so many bytes.
    pub fn of_file(file: File, length: u64) -> Self {
        Self {
            source: FileSource::File(Arc::new(file)),
            length,
            position: 0,
        }
    }

    /// Returns the same file from its begin.
    #[must_use]
    pub fn rewound(&self) -> Self {
        Self {
            position: 0,
            ..self.clone()
        }
    }
}

/// A file whose length cannot be learnt is taken as empty.
impl From<File> for FileInput {
    fn from(file: File) -> Self {
        let length = file.metadata().map_or(0, |found| found.len());
        Self::of_file(file, length)
    }
}

impl From<Bytes> for FileInput {
    fn from(bytes: Bytes) -> Self {
        Self {
            length: bytes.len() as u64,
            source: FileSource::Memory(bytes),
            position: 0,
        }
    }
}

impl Read for FileInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match &self.source {
            FileSource::File(file) => file.read_at(buffer, self.position)?,
            FileSource::Memory(bytes) => {
                let at = usize::try_from(self.position).unwrap_or(usize::MAX);
                let rest = bytes.get(at..).unwrap_or_default();
                let read = rest.len().min(buffer.len());
                buffer[..read].copy_from_slice(&rest[..read]);
                read
            }
        };
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for FileInput {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(offset) => self.length.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = to.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

impl Length for FileInput {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for FileInput {
    type T = BufReader<Self>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BufReader::new(Self {
            position: start,
            ..self.clone()
        }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        // Before memory is taken for bytes that the file only claims to have.
        let end = start.checked_add(length as u64).filter(|end| *end <= self.length);
        let end = end.ok_or_else(|| ParquetError::EOF("the file ends within a column".to_owned()))?;
        if let FileSource::Memory(bytes) = &self.source {
            let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
            return Ok(bytes.slice(at(start)..at(end)));
        }
        let mut bytes = vec![0; length];
        self.get_read(start)?.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}
