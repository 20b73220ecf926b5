//! The files that a push keeps beside the caller's: its state, and what the file is converted to.
//!
//! Invariant: a converted file has its name only once it is whole, and only as long as a push can go on with it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::Context as _;

use super::FileWork;
use crate::config;

/// Returns the folder that remembers the progress of pushes, and has copies of what has no name.
pub(crate) fn state_folder(named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let default = || config::state_home().map(|state| state.join("sluice/push"));
    let folder = named.or_else(default);
    folder.context("there is no home folder for the state of the push; name a folder with --state")
}

/// Paths of the files of one push.
#[derive(Debug)]
pub(super) struct PushFiles {
    /// The state file.
    pub(super) state: PathBuf,
    /// The converted file.
    pub(super) made: PathBuf,
}

impl PushFiles {
    /// Returns the paths of a push. The state file is the same for the same path, project and service, so a push of a
    /// changed file finds what became of the earlier one. The converted file is also named by size, time of change and
    /// options, which decide its bytes.
    pub(super) fn of(work: &FileWork<'_>, folder: &Path) -> anyhow::Result<Self> {
        let (input, arguments) = (work.input, work.arguments);
        let path = if input.is_spooled() {
            // No other command continues it, whatever it is named.
            PathBuf::from(format!("{}:{}", std::process::id(), input.path().display()))
        } else {
            let path = input.path().canonicalize();
            path.with_context(|| format!("`{}` cannot be read", input.path().display()))?
        };
        let state = hash(&(&path, work.slug, &arguments.remote.server));
        let contract = serde_json::to_string(work.contract)?;
        // With what a person answered, and the content of a saved reading.
        let options = format!("{} {:?}", env!("CARGO_PKG_VERSION"), work.plan.options);
        let bytes = hash(&(input.version(), arguments.gzip, contract, options));
        Ok(Self {
            made: folder.join(format!("{state}-{bytes}")),
            state: folder.join(format!("{state}.json")),
        })
    }

    /// Removes what earlier states of the file were converted to.
    pub(super) fn tidy(&self) -> io::Result<()> {
        let Some(folder) = self.state.parent().filter(|folder| folder.exists()) else {
            return Ok(());
        };
        let stem = self.state.file_stem().unwrap_or_default().as_encoded_bytes();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            let is_of_push = name.strip_prefix(stem).is_some_and(|rest| rest.starts_with(b"-"));
            if is_of_push && path != self.made {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// Removes the converted file of a push that does not take place, unless an earlier one can go on with it.
    pub(super) fn discard_made(&self) -> io::Result<()> {
        if self.state.exists() {
            return Ok(());
        }
        match fs::remove_file(&self.made) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn hash(what: &impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
