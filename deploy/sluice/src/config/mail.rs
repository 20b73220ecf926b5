//! The section `mail`: the delivery of letters.
//!
//! Invariant: no output shows the password.

use std::fmt;

use serde::Deserialize;

use types::HumanDuration;

/// Way to deliver letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MailBackend {
    /// A file per letter in a folder.
    Folder,
    /// A mail server.
    Smtp,
}

/// Protection of the connection to the mail server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MailSecurity {
    /// None.
    None,
    /// TLS that starts after the greeting.
    StartTls,
    /// TLS from the first byte.
    Tls,
}

impl From<MailSecurity> for mail::Security {
    fn from(security: MailSecurity) -> Self {
        match security {
            MailSecurity::None => Self::None,
            MailSecurity::StartTls => Self::StartTls,
            MailSecurity::Tls => Self::Tls,
        }
    }
}

/// Section `mail`: the delivery of letters.
#[derive(Clone, Deserialize)]
pub struct Mail {
    /// The way to deliver letters.
    pub backend: MailBackend,
    /// The folder of the files. Empty means the folder `mail` of the data.
    pub folder: String,
    /// The sender, such as `Sluice <sluice@example.org>`.
    pub from: String,
    /// The name or address of the mail server.
    pub server: String,
    /// The TCP port of the mail server.
    pub port: u16,
    /// The protection of the connection.
    pub security: MailSecurity,
    /// The name for the mail server. Empty for a server that asks for none.
    pub user: String,
    /// The password for the mail server.
    pub password: String,
    /// The longest time of one exchange with the mail server.
    pub timeout: HumanDuration,
    /// The number of letters of a UTC day that anybody can cause.
    pub per_day: u32,
    /// The address that is told of disputes, and of reports while no operator is a moderator. Empty for nobody.
    pub administrator: String,
}

impl fmt::Debug for Mail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mail")
            .field("backend", &self.backend)
            .field("folder", &self.folder)
            .field("from", &self.from)
            .field("server", &self.server)
            .field("port", &self.port)
            .field("security", &self.security)
            .field("timeout", &self.timeout)
            .field("per_day", &self.per_day)
            .field("administrator", &self.administrator)
            .finish_non_exhaustive()
    }
}
