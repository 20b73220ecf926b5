//! Arguments of client commands: the address of the service and the credential.

use client::Client;

/// Address of a service with the default configuration.
const DEFAULT_URL: &str = "http://127.0.0.1:8080";

/// The service that a client command talks to.
#[derive(Clone, clap::Args)]
pub struct Remote {
    /// Address of the service
    #[arg(long, env = "SLUICE_SERVER", value_name = "URL", default_value = DEFAULT_URL)]
    pub server: String,
    /// Agent key; safer in the environment, where other users of the machine do not see it
    #[arg(long, env = "SLUICE_KEY", value_name = "KEY", hide_env_values = true)]
    pub key: Option<String>,
}

/// Shows the presence of a key, never the key.
impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote")
            .field("server", &self.server)
            .field("key", &self.key.as_ref().map(|_| "…"))
            .finish()
    }
}

impl Remote {
    /// Returns a client of the service, with the key if there is one.
    pub fn client(&self) -> Result<Client, client::Error> {
        match &self.key {
            Some(key) => Client::new(&self.server, key.as_str()),
            // Reads of public projects need no key.
            None => Client::anonymous(&self.server),
        }
    }
}
