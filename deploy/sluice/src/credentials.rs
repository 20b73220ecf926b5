//! Keys that `sluice login` got: one for each origin of a service, in a file of the user.
//!
//! Invariants:
//! - A key is sent to the origin that gave it, and to no other.
//! - Nobody else on the machine reads the file: a folder or a file that others may read is refused, not repaired, since
//!   they may have read it already.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use serde::{Deserialize, Serialize};

use crate::config;
use crate::terminal::quoted_path;

/// Name of the file in its folder.
const FILE_NAME: &str = "credentials.json";
/// Permissions of other users, none of which the folder or the file may have.
const OF_OTHERS: u32 = 0o077;

/// File with the keys of services, as indented JSON: `{"services": {"https://…": {"key": "km_…", "agent": "tide-gauge",
/// "operator": "Harbour Lab", "expiresAt": "2027-02-23T10:00:00Z"}}}`.
#[derive(Clone, Debug)]
pub struct CredentialsFile {
    folder: PathBuf,
}

/// Key of an agent for one service.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SavedKey {
    /// The key of the agent.
    pub key: String,
    /// Name of the agent when the key was given.
    pub agent: String,
    /// Display name of its operator when the key was given.
    pub operator: String,
    /// Instant from which the key no longer works (RFC 3339), if the service said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// Shows whose the key is, never the key.
impl std::fmt::Debug for SavedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SavedKey")
            .field("agent", &self.agent)
            .field("operator", &self.operator)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedKeys {
    services: BTreeMap<String, SavedKey>,
}

impl CredentialsFile {
    /// Returns the file in `$XDG_CONFIG_HOME/sluice`, or else in `.config/sluice` of the home folder. `None` if there is
    /// neither.
    pub fn of_user() -> Option<Self> {
        Some(Self::within(config::config_home()?.join("sluice")))
    }

    /// Returns the file in `folder`, which need not exist.
    pub const fn within(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> PathBuf {
        self.folder.join(FILE_NAME)
    }

    /// Returns the key for a service of this origin, if there is one.
    ///
    /// # Errors
    /// Others may read the file or its folder, or it has another form.
    pub fn key_for(&self, origin: &str) -> anyhow::Result<Option<SavedKey>> {
        Ok(self.read()?.services.remove(origin))
    }

    /// Keeps a key for a service of this origin, in the place of an earlier one.
    ///
    /// # Errors
    /// Others may read the file or its folder, it has another form, or it cannot be written.
    pub fn keep(&self, origin: &str, key: SavedKey) -> anyhow::Result<()> {
        let unwritable = || format!("`{}` cannot be written", self.path().display());
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        made.with_context(unwritable)?;
        refuse_if_shared(&self.folder, 0o700)?;
        // Two logins at once must not lose each other's keys. The lock ends with the handle.
        let folder = File::open(&self.folder).with_context(unwritable)?;
        folder.lock().with_context(unwritable)?;
        let mut keys = self.read()?;
        keys.services.insert(origin.to_owned(), key);
        self.replace(&serde_json::to_vec_pretty(&keys)?)
            .with_context(unwritable)
    }

    fn read(&self) -> anyhow::Result<SavedKeys> {
        let path = self.path();
        let unreadable = || format!("`{}` cannot be read", path.display());
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(SavedKeys::default()),
            Err(error) => return Err(error).with_context(unreadable),
        };
        refuse_if_shared(&self.folder, 0o700)?;
        refuse_if_shared(&path, 0o600)?;
        serde_json::from_slice(&text).map_err(|error| {
            // The error of the parser quotes no value, so no key is shown.
            anyhow!(
                "`{}` is no file of keys (line {}): remove it, and `sluice login` again",
                path.display(),
                error.line()
            )
        })
    }

    /// Writes the file beside its place, private from its first byte, and moves it there.
    fn replace(&self, text: &[u8]) -> io::Result<()> {
        let beside = self.folder.join(format!("{FILE_NAME}.new"));
        // The folder is locked, so only a killed process leaves one behind.
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&beside)?;
        file.write_all(text)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&beside, self.path())
    }
}

/// Refuses a folder or a file that others may read or change.
fn refuse_if_shared(path: &Path, mode: u32) -> anyhow::Result<()> {
    let found = fs::metadata(path).with_context(|| format!("`{}` cannot be read", path.display()))?;
    if found.mode() & OF_OTHERS == 0 {
        return Ok(());
    }
    let shown = path.display();
    // A name that a shell could take for something else is in no command.
    let remedy = match quoted_path(path) {
        Some(quoted) => format!("chmod {mode:o} {quoted}"),
        None => format!("set its mode to {mode:o}"),
    };
    bail!(
        "`{shown}` is open to other users of this machine (mode {:o}), so its keys are not used: {remedy}",
        found.mode() & 0o777
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn key(text: &str) -> SavedKey {
        SavedKey {
            key: text.to_owned(),
            agent: "tide-gauge".to_owned(),
            operator: "Harbour Lab".to_owned(),
            expires_at: None,
        }
    }

    fn file() -> (tempfile::TempDir, CredentialsFile) {
        let home = tempfile::tempdir().unwrap();
        let file = CredentialsFile::within(home.path().join("new/sluice"));
        (home, file)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    fn found(file: &CredentialsFile, origin: &str) -> Option<String> {
        file.key_for(origin).unwrap().map(|saved| saved.key)
    }

    #[test]
    fn a_key_is_for_its_origin_and_for_the_user_alone() {
        let (_home, file) = file();
        assert_eq!(found(&file, "http://127.0.0.1:8080"), None);
        file.keep("http://127.0.0.1:8080", key("km_one")).unwrap();
        file.keep("https://example.org", key("km_two")).unwrap();
        file.keep("https://example.org", key("km_three")).unwrap();
        for (origin, expected) in [
            ("http://127.0.0.1:8080", Some("km_one")),
            ("https://example.org", Some("km_three")),
            ("http://example.org", None),
            ("https://example.org:8443", None),
            ("http://127.0.0.1:8081", None),
        ] {
            assert_eq!(found(&file, origin).as_deref(), expected, "{origin}");
        }
        assert_eq!((mode(&file.path()), mode(&file.folder)), (0o600, 0o700));
        assert!(!format!("{:?}", key("km_one")).contains("km_"));
    }

    #[test]
    fn what_others_may_read_is_refused_with_the_command_that_repairs_it() {
        let (_home, file) = file();
        file.keep("https://example.org", key("km_one")).unwrap();
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        for (path, wide, narrow) in [(file.path(), 0o644, 0o600), (file.folder.clone(), 0o750, 0o700)] {
            set(&path, wide);
            let refused = [
                file.key_for("https://example.org").unwrap_err().to_string(),
                file.keep("https://example.org", key("km_two")).unwrap_err().to_string(),
            ];
            for refused in refused {
                assert!(refused.contains(&format!("chmod {narrow:o} ")), "{refused}");
                assert!(!refused.contains("km_"), "{refused}");
            }
            set(&path, narrow);
            assert_eq!(found(&file, "https://example.org").as_deref(), Some("km_one"));
        }
    }

    #[test]
    fn a_file_of_another_form_is_an_error_without_its_text() {
        let (_home, file) = file();
        file.keep("https://example.org", key("km_one")).unwrap();
        fs::write(file.path(), "{\"services\": {\"https://example.org\": \"km_secret\"}}").unwrap();
        let refused = format!("{:#}", file.key_for("https://example.org").unwrap_err());
        assert!(
            refused.contains("sluice login") && !refused.contains("km_secret"),
            "{refused}"
        );
    }
}
