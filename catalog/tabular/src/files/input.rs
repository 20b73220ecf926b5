//! The bytes of a file that is read in any order.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

/// A file on the disk, or its bytes.
#[derive(Debug)]
pub enum FileInput {
    /// A file on the disk.
    File(File),
    /// The bytes of a file.
    Memory(Cursor<Bytes>),
}

impl From<File> for FileInput {
    fn from(file: File) -> Self {
        Self::File(file)
    }
}

impl From<Bytes> for FileInput {
    fn from(bytes: Bytes) -> Self {
        Self::Memory(Cursor::new(bytes))
    }
}

impl FileInput {
    /// Returns another handle. Handles of a file share the place where they read.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::File(file) => Self::File(file.try_clone()?),
            Self::Memory(bytes) => Self::Memory(bytes.clone()),
        })
    }
}

impl Read for FileInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Memory(bytes) => bytes.read(buffer),
        }
    }
}

impl Seek for FileInput {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::File(file) => file.seek(to),
            Self::Memory(bytes) => bytes.seek(to),
        }
    }
}

impl Length for FileInput {
    fn len(&self) -> u64 {
        match self {
            Self::File(file) => file.len(),
            Self::Memory(bytes) => bytes.get_ref().len() as u64,
        }
    }
}

impl ChunkReader for FileInput {
    type T = Box<dyn Read + Send>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(match self {
            Self::File(file) => Box::new(file.get_read(start)?),
            Self::Memory(bytes) => {
                let mut bytes = bytes.clone();
                bytes.set_position(start);
                Box::new(bytes)
            }
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        match self {
            Self::File(file) => file.get_bytes(start, length),
            Self::Memory(bytes) => bytes.get_ref().get_bytes(start, length),
        }
    }
}
