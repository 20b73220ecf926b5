//! Roles: the part of the service that a process runs.
//!
//! Invariant: a backend that only one process can use (a folder, a file) is used by one process. A role that is a part
//! of the service is refused if other processes cannot reach a backend it needs.

use clap::ValueEnum;

use crate::config::{Backend, Config, LogBackend};

/// The part of the service that a process runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ProcessRole {
    /// The whole service
    #[default]
    All,
    /// The interface: requests, and outcomes into the database
    Api,
    /// The pipeline: contributions into versions
    Worker,
    /// The collectors: public facts into contributions
    Collector,
}

/// The error of a role that needs backends other processes can reach.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`serve --role {role}` shares its parts with other processes, but no other process can use {} in `{directory}`; \
     configure {}, or serve with `--role all`",
    listed(parts.iter().map(|part| part.what)),
    listed(parts.iter().map(|part| part.instead))
)]
pub struct RoleError {
    /// The name of the role.
    pub role: &'static str,
    /// The data folder, which has the backends.
    pub directory: String,
    /// The backends that only one process can use.
    pub parts: Vec<EmbeddedBackend>,
}

/// A backend that only one process can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbeddedBackend {
    /// Its name for the error message, with the article.
    pub what: &'static str,
    /// The backend to configure in its place, with the key.
    pub instead: &'static str,
}

/// The event log in the data folder.
const EMBEDDED_LOG: EmbeddedBackend = EmbeddedBackend {
    what: "the event log",
    instead: "Kafka (`log.backend`)",
};
/// The database in the data folder.
const EMBEDDED_DATABASE: EmbeddedBackend = EmbeddedBackend {
    what: "the database",
    instead: "PostgreSQL (`database.url`)",
};
/// The tables in the data folder.
const EMBEDDED_TABLES: EmbeddedBackend = EmbeddedBackend {
    what: "the tables",
    instead: "an S3 bucket (`objects.backend`)",
};

impl ProcessRole {
    /// Returns true if the process serves the API.
    pub const fn serves(self) -> bool {
        matches!(self, Self::All | Self::Api)
    }

    /// Returns true if the process runs a worker.
    pub const fn works(self) -> bool {
        matches!(self, Self::All | Self::Worker)
    }

    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Api => "api",
            Self::Worker => "worker",
            Self::Collector => "collector",
        }
    }

    /// Checks that processes with other roles can reach every backend.
    pub fn check(self, config: &Config) -> Result<(), RoleError> {
        let parts = match self {
            // One process may use every backend. A collector uses the database, which many processes of one machine may
            // open, and the interface.
            Self::All | Self::Collector => Vec::new(),
            Self::Api | Self::Worker => embedded(config),
        };
        // Refused at the start: the processes would otherwise run, each with parts of its own, and miss what the
        // others do.
        if parts.is_empty() {
            return Ok(());
        }
        Err(RoleError {
            role: self.name(),
            directory: config.data.dir.display().to_string(),
            parts,
        })
    }
}

/// Returns the backends that this configuration keeps in the data folder.
pub fn embedded(config: &Config) -> Vec<EmbeddedBackend> {
    let parts = [
        (EMBEDDED_LOG, config.log.backend == LogBackend::Embedded),
        (EMBEDDED_DATABASE, config.database.url.is_empty()),
        (EMBEDDED_TABLES, config.objects.backend == Backend::Local),
    ];
    parts
        .into_iter()
        .filter_map(|(part, is_embedded)| is_embedded.then_some(part))
        .collect()
}

/// Joins words as in `a`, `a and b`, `a, b and c`.
fn listed(words: impl Iterator<Item = &'static str>) -> String {
    let words: Vec<_> = words.collect();
    match words.split_last() {
        None => String::new(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::LoadedConfig;

    #[test]
    fn a_share_of_the_service_is_refused_where_its_parts_are_of_one_process() {
        let config = LoadedConfig::load(None, &[("data.dir", "/srv/data".to_owned())])
            .unwrap()
            .config;
        assert_eq!(ProcessRole::All.check(&config), Ok(()));
        let mut shared = config.clone();
        shared.database.url = "postgres://db.example/sluice".to_owned();
        let message = ProcessRole::Api.check(&shared).unwrap_err().to_string();
        assert!(message.contains("the event log and the tables in"), "{message}");
        assert!(!message.contains("PostgreSQL"), "{message}");
        for role in [ProcessRole::Api, ProcessRole::Worker] {
            let message = role.check(&config).unwrap_err().to_string();
            let expected = format!(
                "`serve --role {}` shares its parts with other processes, but no other process can use the event log, the \
                 database and the tables in `/srv/data`; configure Kafka (`log.backend`), PostgreSQL (`database.url`) and an S3 \
                 bucket (`objects.backend`), or serve with `--role all`",
                role.name()
            );
            assert_eq!(message, expected);
        }
    }
}
