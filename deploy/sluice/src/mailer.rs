//! The mailer that the configuration selects.
//!
//! Invariant: a configuration that can deliver no letter ends the start, and names the key.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use mail::{Folder, Mailer, Smtp, SmtpOptions};
use store::Store;

use crate::config::{Mail, MailBackend};

/// Returns the folder of the letters while there is no mail server: the one that is configured, else `folder`.
pub(crate) fn letter_folder(config: &Mail, folder: &Path) -> PathBuf {
    match config.folder.as_str() {
        "" => folder.to_owned(),
        named => PathBuf::from(named),
    }
}

/// Returns the mailer that the configuration selects; `folder` is where letters go that have no other folder. Blocks.
pub fn mailer(config: &Mail, folder: &Path) -> anyhow::Result<Arc<dyn Mailer>> {
    match config.backend {
        MailBackend::Folder => Ok(Arc::new(
            Folder::open(letter_folder(config, folder), &config.from).context("`mail`")?,
        )),
        MailBackend::Smtp if config.server.is_empty() => {
            anyhow::bail!("`mail.server` must name the mail server, or `mail.backend` must be \"folder\"")
        }
        MailBackend::Smtp => {
            let options = SmtpOptions {
                host: config.server.clone(),
                port: config.port,
                security: config.security.into(),
                // Without a user no password is offered: some servers refuse a client that tries.
                credentials: (!config.user.is_empty()).then(|| (config.user.clone(), config.password.clone())),
                from: config.from.clone(),
                timeout: config.timeout.0,
            };
            Ok(Arc::new(Smtp::new(&options).context("`mail`")?))
        }
    }
}

/// Writes to the log that nobody is told of reports, if that is so.
///
/// # Errors
/// The database does not answer.
pub async fn note_if_nobody_is_told(config: &Mail, store: &Store) -> anyhow::Result<()> {
    if config.administrator.is_empty() && !store.moderation().has_moderator().await? {
        tracing::info!("no operator is a moderator and `mail.administrator` is not set: nobody is told of reports");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::MailSecurity;
    use types::HumanDuration;

    fn config(backend: MailBackend) -> Mail {
        Mail {
            backend,
            folder: String::new(),
            from: "Sluice <sluice@example.org>".to_owned(),
            server: String::new(),
            port: 587,
            security: MailSecurity::StartTls,
            user: String::new(),
            password: "hush".to_owned(),
            timeout: HumanDuration(Duration::from_secs(1)),
            per_day: 1,
            administrator: String::new(),
        }
    }

    #[test]
    fn a_mail_server_must_be_named() {
        let error = mailer(&config(MailBackend::Smtp), Path::new("/nowhere")).unwrap_err();
        assert!(error.to_string().contains("`mail.server`"), "{error}");
    }

    #[test]
    fn a_sender_that_is_no_address_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(MailBackend::Folder);
        assert!(mailer(&config, folder.path()).is_ok());
        config.from = "nobody".to_owned();
        let error = mailer(&config, folder.path()).unwrap_err();
        assert!(format!("{error:#}").contains("`nobody`"), "{error:#}");
    }

    #[test]
    fn the_password_is_not_shown() {
        assert!(!format!("{:?}", config(MailBackend::Smtp)).contains("hush"));
    }
}
