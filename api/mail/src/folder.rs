//! Letters as files: for a service without a mail server.
//!
//! Invariant: a file gets its name once it is complete and durable. The same letter sent again is the same file.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use lettre::message::Mailbox;

use crate::{Error, Letter, Mailer};

/// A folder that gets a file `<id>.eml` for each letter.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    from: Mailbox,
}

impl Folder {
    /// Opens the folder at `path` and creates it if it is missing. `from` is the sender, such as
    /// `Sluice <sluice@example.org>`. Blocks.
    ///
    /// # Errors
    /// [`Error::Options`] if the folder cannot be created or the sender is no address.
    pub fn open(path: impl Into<PathBuf>, from: &str) -> Result<Self, Error> {
        let path = path.into();
        fs::create_dir_all(&path).map_err(|error| Error::Options(format!("`{}`: {error}", path.display())))?;
        Ok(Self {
            from: sender(from)?,
            path,
        })
    }
}

/// Parses the sender of letters.
pub(crate) fn sender(text: &str) -> Result<Mailbox, Error> {
    text.parse()
        .map_err(|error| Error::Options(format!("the sender `{text}` is not an address: {error}")))
}

#[async_trait]
impl Mailer for Folder {
    async fn send(&self, letter: &Letter) -> Result<(), Error> {
        let message = letter.message(&self.from)?.formatted();
        let (folder, name) = (self.path.clone(), format!("{}.eml", letter.id));
        let target = folder.join(&name);
        let written = tokio::task::spawn_blocking(move || write(&folder, &name, &message)).await;
        match written {
            Ok(Ok(())) => {
                tracing::info!(file = %target.display(), "letter written");
                Ok(())
            }
            Ok(Err(error)) => Err(Error::Unavailable(error.into())),
            Err(error) => Err(Error::Unavailable(error.into())),
        }
    }
}

/// Writes a file under another name, makes it durable, and gives it its own.
fn write(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    // The name begins with a dot, so readers of the folder skip it. It has the process id, so two processes that write the
    // same letter do not write into one file.
    let unfinished = folder.join(format!(".{name}.{}", std::process::id()));
    let mut file = File::create(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_data()?;
    fs::rename(&unfinished, folder.join(name))?;
    // The new name is durable only once its folder is.
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{self, Arrived, Fixture};

    struct Files {
        folder: tempfile::TempDir,
        mailer: Folder,
    }

    #[async_trait]
    impl Fixture for Files {
        fn mailer(&self) -> &dyn Mailer {
            &self.mailer
        }

        async fn arrived(&self) -> Vec<Arrived> {
            let mut arrived = Vec::new();
            for entry in fs::read_dir(self.folder.path()).unwrap() {
                let text = fs::read_to_string(entry.unwrap().path()).unwrap();
                arrived.push(Arrived { recipients: None, text });
            }
            arrived
        }
    }

    #[tokio::test]
    async fn a_folder_is_a_mailer() {
        let fixture = async || {
            let folder = tempfile::tempdir().unwrap();
            let mailer = Folder::open(folder.path(), "Sluice <sluice@example.org>").unwrap();
            Files { folder, mailer }
        };
        conformance::all(fixture).await;
    }

    #[test]
    fn a_sender_that_is_no_address_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(Folder::open(folder.path(), "sluice"), Err(Error::Options(_))));
    }
}
