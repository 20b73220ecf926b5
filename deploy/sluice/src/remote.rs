//! Arguments of client commands: the address of the service and the credential.
//!
//! Invariant: a key of the file goes to its origin only; one that is given goes where the caller says.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use client::Client;

use crate::config;
use crate::credentials::{CredentialsFile, SavedKey};
use crate::exit::NotAllowed;
use crate::terminal::shown;

/// Address of a service with the default configuration.
pub(crate) const DEFAULT_URL: &str = "http://127.0.0.1:8080";

/// The service that a client command talks to.
#[derive(Clone, clap::Args)]
pub struct RemoteService {
    /// Address of the service
    #[arg(long, env = "SLUICE_SERVER", value_name = "URL", default_value = DEFAULT_URL)]
    pub server: String,
    /// Agent key [default: the one of `sluice login`]; safer in the environment, where other users of the machine do not see
    /// it
    #[arg(long, env = "SLUICE_KEY", value_name = "KEY", hide_env_values = true)]
    pub key: Option<String>,
}

/// Shows the presence of a key, never the key.
impl std::fmt::Debug for RemoteService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote")
            .field("server", &self.server)
            .field("key", &self.key.as_ref().map(|_| "…"))
            .finish()
    }
}

/// Place that the key of a command is from.
#[derive(Clone, Debug)]
pub enum KeySource {
    /// The flag `--key`.
    Flag,
    /// The environment, `SLUICE_KEY`.
    Environment,
    /// The file of `sluice login`.
    File(PathBuf, SavedKey),
}

impl RemoteService {
    /// Returns a client of the service, with the key if there is one: `--key`, else `SLUICE_KEY`, else the key that `sluice
    /// login` got from the service of this origin.
    pub fn client(&self) -> anyhow::Result<Client> {
        self.client_with_source().map(|(client, _)| client)
    }

    /// Returns a client of the service with its key, and the place that the key is from.
    ///
    /// # Errors
    /// [`NotAllowed`] without a key.
    pub fn client_with_key(&self) -> anyhow::Result<(Client, KeySource)> {
        let (client, source) = self.client_with_source()?;
        let source = source.ok_or_else(|| {
            let origin = shown(&client.origin());
            NotAllowed(format!(
                "there is no key for {origin}; `sluice login` gets one, or name it with --key"
            ))
        })?;
        Ok((client, source))
    }

    /// Returns a client of the service, and the place that its key is from; `None` without a key.
    pub(crate) fn client_with_source(&self) -> anyhow::Result<(Client, Option<KeySource>)> {
        if let Some(key) = &self.key {
            let source = if config::is_key_of_environment(key) {
                KeySource::Environment
            } else {
                KeySource::Flag
            };
            return Ok((Client::new(&self.server, key.as_str())?, Some(source)));
        }
        // Reads of public projects need no key.
        let anonymous = Client::anonymous(&self.server)?;
        let Some(file) = CredentialsFile::of_user() else {
            return Ok((anonymous, None));
        };
        Ok(match file.key_for(&anonymous.origin())? {
            Some(saved) => {
                let client = Client::new(&self.server, saved.key.as_str())?;
                (client, Some(KeySource::File(file.path(), saved)))
            }
            None => (anonymous, None),
        })
    }
}

/// Replaces the address that means all interfaces with the loopback address, which a client can connect to.
pub(crate) fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_means_every_address_is_reached_on_this_machine() {
        for (listened, reached) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("10.1.2.3:80", "10.1.2.3:80"),
        ] {
            assert_eq!(reachable(listened.parse().unwrap()).to_string(), reached);
        }
    }
}
