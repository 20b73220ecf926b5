//! What differs between database engines: how to connect, how to begin, which migrations to run.
//!
//! Invariant: no other file asks which engine it talks to. A further engine is a further variant here, a folder of
//! migrations, and one line in the tests.

use std::str::FromStr;

use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AnyConnection, AnyPool, ConnectOptions, Connection, Executor, SqlSafeStr};

use crate::{Error, Options};

/// The engines this build has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Reader,
    Writer,
}

impl Engine {
    /// The engine that the scheme of `url` names.
    pub(crate) fn of(url: &str) -> Result<Self, Error> {
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        match scheme {
            "sqlite" if url.contains(":memory:") || url.contains("mode=memory") => Err(Error::Url {
                reason: "readers and writer are separate connections, so an in-memory database cannot serve".to_owned(),
            }),
            "sqlite" => Ok(Self::Sqlite),
            other => Err(Error::Scheme {
                scheme: other.to_owned(),
            }),
        }
    }

    /// The statement that begins a transaction that writes. `SQLite` takes its write lock here and not at the first
    /// write, where it could no longer be waited for.
    pub(crate) const fn begin_write(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN IMMEDIATE",
        }
    }

    /// The statement that begins a transaction whose reads all see one state.
    pub(crate) const fn begin_snapshot(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN DEFERRED",
        }
    }

    /// How many write transactions can be under way at once.
    const fn writers(self) -> u32 {
        match self {
            Self::Sqlite => 1,
        }
    }

    /// A pool of connections for `role`, and the proof that one can be had.
    pub(crate) async fn pool(self, role: Role, url: &str, options: &Options) -> Result<AnyPool, Error> {
        sqlx::any::install_default_drivers();
        let connect = AnyConnectOptions::from_str(&self.address(url, role, options))
            .map_err(|error| Error::Url {
                reason: error.to_string(),
            })?
            .disable_statement_logging();
        let settings = self.settings(role, options);
        let pool = AnyPoolOptions::new()
            .max_connections(match role {
                Role::Reader => options.readers.max(1),
                Role::Writer => self.writers(),
            })
            .acquire_timeout(options.timeout)
            .idle_timeout(None)
            .max_lifetime(None)
            .test_before_acquire(false)
            .after_connect(move |connection, _| {
                let settings = settings.clone();
                Box::pin(async move {
                    for setting in settings {
                        connection.execute(sqlx::AssertSqlSafe(setting)).await?;
                    }
                    Ok(())
                })
            })
            .connect_with(connect)
            .await?;
        Ok(pool)
    }

    /// Brings the schema up to this build's in one transaction, so that two processes that start at once do not meet.
    pub(crate) async fn migrate(self, connection: &mut AnyConnection) -> Result<(), Error> {
        let mut transaction = connection.begin_with(self.begin_write()).await?;
        self.migrator().run_direct(None, &mut *transaction, false).await?;
        transaction.commit().await?;
        Ok(())
    }

    fn address(self, url: &str, role: Role, options: &Options) -> String {
        match self {
            Self::Sqlite if url.contains("mode=") => url.to_owned(),
            Self::Sqlite => {
                let separator = if url.contains('?') { '&' } else { '?' };
                let mode = if options.create && role == Role::Writer {
                    "rwc"
                } else {
                    "rw"
                };
                format!("{url}{separator}mode={mode}")
            }
        }
    }

    /// The settings of a fresh connection. `synchronous=FULL` makes every commit in the write-ahead log durable before
    /// it returns (<https://www.sqlite.org/pragma.html#pragma_synchronous>).
    fn settings(self, role: Role, options: &Options) -> Vec<String> {
        match self {
            Self::Sqlite => {
                let mut settings = vec![
                    format!("PRAGMA busy_timeout = {}", options.busy_timeout.as_millis()),
                    "PRAGMA foreign_keys = ON".to_owned(),
                    "PRAGMA synchronous = FULL".to_owned(),
                    "PRAGMA temp_store = MEMORY".to_owned(),
                    // In pages: a checkpoint is the one slow commit among many, so it comes seldom.
                    "PRAGMA wal_autocheckpoint = 4000".to_owned(),
                ];
                settings.push(match role {
                    Role::Reader => "PRAGMA query_only = ON".to_owned(),
                    Role::Writer => "PRAGMA journal_mode = WAL".to_owned(),
                });
                settings
            }
        }
    }

    fn migrator(self) -> Migrator {
        /// Version, name and text; a text that was released never changes.
        const SQLITE: [(i64, &str, &str); 3] = [
            (
                1,
                "marketplace",
                include_str!("../migrations/sqlite/0001_marketplace.sql"),
            ),
            (2, "reads", include_str!("../migrations/sqlite/0002_reads.sql")),
            (3, "uploads", include_str!("../migrations/sqlite/0003_uploads.sql")),
        ];
        let texts = match self {
            Self::Sqlite => SQLITE,
        };
        Migrator::with_migrations(
            texts
                .into_iter()
                .map(|(version, name, text)| {
                    Migration::new(version, name.into(), MigrationType::Simple, text.into_sql_str(), false)
                })
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_that_the_build_lacks_is_named() {
        let error = Engine::of("postgres://localhost/sluice").unwrap_err();
        assert_eq!(
            error.to_string(),
            "this build has no database engine for `postgres:`; it has `sqlite:`"
        );
        assert!(matches!(Engine::of("sluice.db"), Err(Error::Scheme { .. })));
    }

    #[test]
    fn a_database_in_memory_is_refused() {
        assert!(matches!(Engine::of("sqlite::memory:"), Err(Error::Url { .. })));
        assert_eq!(Engine::of("sqlite:///data/sluice.db").unwrap(), Engine::Sqlite);
    }
}
