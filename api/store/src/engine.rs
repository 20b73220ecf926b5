//! The differences between database engines: connecting, beginning and writing transactions, and migrations.
//!
//! Invariant: no other file depends on the engine in use. A further engine is a further variant here, a folder of
//! migrations, and one line in the tests.

use std::str::FromStr;
use std::time::Duration;

use sqlx::any::AnyConnectOptions;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AnyConnection, ConnectOptions, Connection, Executor, SqlSafeStr};

use crate::connections::{Connections, Limits};
use crate::writer::Writing;
use crate::{Error, Options, Schema};

/// The engines of this build, as an error names them.
pub(crate) const NAMES: &str = if cfg!(feature = "postgres") {
    "`sqlite:` and `postgres:`"
} else {
    "`sqlite:`"
};

/// The attempts for a change that loses a race with another process each time.
const ATTEMPTS: u32 = 8;

/// The supported engines. A build without the feature `postgres` never creates that variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

/// Overwrites deleted rows with zeros in pages that are written anyway. A page that becomes free as a whole keeps its
/// content (<https://www.sqlite.org/pragma.html#pragma_secure_delete>).
const OVERWRITE_IN_PLACE: &str = "PRAGMA secure_delete = FAST";

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Reader,
    Writer,
}

/// Migrations from 8 on, of which there is one text for all engines, with `{{text}}`, `{{bytes}}` and `{{position}}` in place of what differs.
const SHARED_MIGRATIONS: [(i64, &str, &str); 30] = [
    (8, "accounts", include_str!("../migrations/0008_accounts.sql")),
    (9, "flow", include_str!("../migrations/0009_flow.sql")),
    (10, "limits", include_str!("../migrations/0010_limits.sql")),
    (11, "oauth", include_str!("../migrations/0011_oauth.sql")),
    (12, "console", include_str!("../migrations/0012_console.sql")),
    (13, "knowledge", include_str!("../migrations/0013_knowledge.sql")),
    (14, "money", include_str!("../migrations/0014_money.sql")),
    (15, "community", include_str!("../migrations/0015_community.sql")),
    (16, "collectors", include_str!("../migrations/0016_collectors.sql")),
    (17, "moderation", include_str!("../migrations/0017_moderation.sql")),
    (18, "wallets", include_str!("../migrations/0018_wallets.sql")),
    (19, "summaries", include_str!("../migrations/0019_summaries.sql")),
    (20, "seals", include_str!("../migrations/0020_seals.sql")),
    (22, "mailboxes", include_str!("../migrations/0022_mailboxes.sql")),
    (
        23,
        "dates_and_readers",
        include_str!("../migrations/0023_dates_and_readers.sql"),
    ),
    (24, "call_keys", include_str!("../migrations/0024_call_keys.sql")),
    (25, "unit_vectors", include_str!("../migrations/0025_unit_vectors.sql")),
    (26, "near_units", include_str!("../migrations/0026_near_units.sql")),
    (27, "trust", include_str!("../migrations/0027_trust.sql")),
    (28, "logins", include_str!("../migrations/0028_logins.sql")),
    (
        29,
        "deleted_datasets",
        include_str!("../migrations/0029_deleted_datasets.sql"),
    ),
    (30, "profiles", include_str!("../migrations/0030_profiles.sql")),
    (31, "spending", include_str!("../migrations/0031_spending.sql")),
    (32, "openings", include_str!("../migrations/0032_openings.sql")),
    (33, "library", include_str!("../migrations/0033_library.sql")),
    (34, "statements", include_str!("../migrations/0034_statements.sql")),
    (35, "people", include_str!("../migrations/0035_people.sql")),
    (36, "staff", include_str!("../migrations/0036_staff.sql")),
    (37, "sides", include_str!("../migrations/0037_sides.sql")),
    (
        38,
        "ratings_of_operators",
        include_str!("../migrations/0038_ratings_of_operators.sql"),
    ),
];

impl Engine {
    /// Returns the engine named by the scheme of `url`.
    pub(crate) fn of(url: &str) -> Result<Self, Error> {
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        match scheme {
            // Every connection to an in-memory database has a database of its own.
            "sqlite" if url.contains(":memory:") || url.contains("mode=memory") => Err(Error::Url {
                reason:
                    "an in-memory database is not supported, because each connection would have a database of its own"
                        .to_owned(),
            }),
            "sqlite" => Ok(Self::Sqlite),
            "postgres" | "postgresql" if cfg!(feature = "postgres") => Ok(Self::Postgres),
            other => Err(Error::Scheme {
                scheme: other.to_owned(),
            }),
        }
    }

    /// Returns the way that changes are written.
    ///
    /// `SQLite` has one writer: changes queue up for it, and those that queue up during a commit share the next one.
    ///
    /// `PostgreSQL` has as many writers as connections, here and in other replicas. Each change is a transaction of its
    /// own, and the server shares the cost of making commits durable between them. Sharing a transaction as on `SQLite`
    /// would hold the row locks of one change until the last of its group is done, in an arbitrary order: groups of two
    /// replicas would regularly dead-lock, each time for a second (`deadlock_timeout`).
    ///
    /// `READ COMMITTED` is enough, because every decision is made on locked rows: limits are counted under the lock of
    /// the operator's row by a later statement of the same transaction (a snapshot of the whole transaction would be
    /// older than the lock); uniqueness, allowances, leases and first outcomes are one statement whose condition is
    /// evaluated on the locked row. `SERIALIZABLE` would refuse concurrent changes of one hot row instead of letting
    /// them wait. A dead-lock between changes of several rows is still possible: the server ends one of them, and it is
    /// repeated.
    ///
    /// A statement cannot be cancelled if the server does not answer, so a transaction there has a time limit, after
    /// which its connection is dropped.
    pub(crate) fn writing(self, options: &Options) -> Writing {
        match self {
            Self::Sqlite => Writing {
                begin: "BEGIN IMMEDIATE",
                writers: 1,
                group: options.group.max(1),
                attempts: 1,
                limit: None,
            },
            Self::Postgres => Writing {
                begin: "BEGIN ISOLATION LEVEL READ COMMITTED",
                writers: options.writers.max(1),
                group: 1,
                attempts: ATTEMPTS,
                limit: Some(options.timeout),
            },
        }
    }

    /// Returns the statement that begins a transaction whose reads all see one state.
    pub(crate) const fn begin_snapshot(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN DEFERRED",
            Self::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        }
    }

    /// Returns the statement that waits for every transaction that writes to a table, and lets no other write to it
    /// until the transaction ends. `SQLite` needs none, because it has one writer.
    pub(crate) fn lock_out_writers(self, table: &str) -> Option<String> {
        match self {
            Self::Sqlite => None,
            Self::Postgres => Some(format!("LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")),
        }
    }

    /// Returns the statement after which what is deleted is overwritten in the file too, or not if it costs a write of its
    /// own. `PostgreSQL` has none: it removes old rows when it vacuums.
    pub(crate) const fn overwriting(self, whole_pages: bool) -> Option<&'static str> {
        match (self, whole_pages) {
            (Self::Sqlite, true) => Some("PRAGMA secure_delete = ON"),
            (Self::Sqlite, false) => Some(OVERWRITE_IN_PLACE),
            (Self::Postgres, _) => None,
        }
    }

    /// Creates the pool for `role`, without opening a connection.
    pub(crate) fn connections(self, role: Role, url: &str, options: &Options) -> Result<Connections, Error> {
        #[cfg(feature = "postgres")]
        if self == Self::Postgres {
            crate::tls::check(url)?;
        }
        sqlx::any::install_default_drivers();
        let connect = AnyConnectOptions::from_str(&self.address(url, role, options))
            .map_err(|error| Error::Url {
                reason: error.to_string(),
            })?
            .disable_statement_logging();
        let limits = Limits {
            slots: match role {
                Role::Reader => options.readers.max(1),
                Role::Writer => self.writing(options).writers,
            },
            waiting: options.timeout,
            // Half of the time is left for the statement itself.
            connecting: options.timeout / 2,
        };
        Ok(Connections::new(connect, self.settings(role, options), limits))
    }

    /// Checks the server's durability settings, and warns about those that this package cannot make up for.
    pub(crate) async fn examine(self, connection: &mut AnyConnection) -> Result<(), Error> {
        match self {
            Self::Sqlite => {}
            Self::Postgres => {
                let fsync: String = sqlx::query_scalar("SELECT current_setting('fsync')")
                    .fetch_one(&mut *connection)
                    .await?;
                if fsync != "on" {
                    tracing::warn!(
                        "`fsync` is off on the database server: a power failure loses acknowledged contributions"
                    );
                }
            }
        }
        Ok(())
    }

    /// Brings the schema to the one of this build, in one transaction, one process at a time.
    pub(crate) async fn migrate(self, connection: &mut AnyConnection, options: &Options) -> Result<(), Error> {
        /// The number of the advisory lock that migrating processes share; arbitrary.
        const LOCK: i64 = 0x51_75_1c_e0;
        let schema = options.schema;
        let (mut transaction, table) = match self {
            Self::Sqlite => {
                let begin = if schema == Schema::Current {
                    "BEGIN"
                } else {
                    "BEGIN IMMEDIATE"
                };
                // Another process may migrate now, which takes longer than a change.
                busy_timeout(connection, options.migration_timeout).await?;
                let table = "SELECT name FROM sqlite_master WHERE type = 'table' AND name = '_sqlx_migrations'";
                (connection.begin_with(begin).await?, table)
            }
            Self::Postgres => {
                let mut transaction = connection.begin_with("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
                // The lock is held until the transaction ends. The migrator's own lock is
                // released before the commit, when the next process does not see the tables
                // yet.
                let begin = format!(
                    "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock({LOCK})"
                );
                transaction.execute(sqlx::AssertSqlSafe(begin)).await?;
                let table = "SELECT CAST(to_regclass('_sqlx_migrations') AS TEXT) AS name
                             WHERE to_regclass('_sqlx_migrations') IS NOT NULL";
                (transaction, table)
            }
        };
        let table: Option<String> = sqlx::query_scalar(table).fetch_optional(&mut *transaction).await?;
        let mut migrator = self.migrator();
        match table {
            // A caller that may not change the database needs existing tables.
            None if schema == Schema::Current => return Err(Error::Absent),
            Some(_) if schema != Schema::Migrated => {
                let newest: Option<i64> = sqlx::query_scalar("SELECT MAX(version) FROM _sqlx_migrations")
                    .fetch_one(&mut *transaction)
                    .await?;
                // A newer schema than this build's is reported by the migrator itself.
                if newest < migrator.iter().map(|migration| migration.version).max() {
                    return Err(Error::Outdated);
                }
            }
            _ => {}
        }
        // The transaction holds a lock already.
        migrator.set_locking(false);
        migrator.run_direct(None, &mut *transaction, false).await?;
        transaction.commit().await?;
        if self == Self::Sqlite {
            busy_timeout(connection, options.busy_timeout).await?;
        }
        Ok(())
    }

    fn address(self, url: &str, role: Role, options: &Options) -> String {
        match self {
            Self::Sqlite if !url.contains("mode=") => {
                let separator = if url.contains('?') { '&' } else { '?' };
                // Only the writer may create the file, and only when the caller allows it.
                let mode = if options.schema != Schema::Current && role == Role::Writer {
                    "rwc"
                } else {
                    "rw"
                };
                format!("{url}{separator}mode={mode}")
            }
            Self::Sqlite | Self::Postgres => url.to_owned(),
        }
    }

    /// Returns the statements that are run on every new connection.
    fn settings(self, role: Role, options: &Options) -> Vec<String> {
        match self {
            Self::Sqlite => sqlite_settings(role, options),
            Self::Postgres => vec![postgres_settings(role, options)],
        }
    }

    /// Replaces `{{append_only_until TABLE COLUMN OTHER}}`: a row of an append-only table may be deleted once the column has
    /// the same value in a row of the other table, whose rows never change.
    fn append_only_until(self, text: &str) -> String {
        let mut parts = text.split("{{append_only_until ");
        let mut made = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (names, rest) = part.split_once("}}").unwrap_or((part, ""));
            let mut names = names.split(' ');
            let mut name = || names.next().unwrap_or_default();
            made += &self.rows_until(name(), name(), name());
            made += rest;
        }
        made
    }

    fn rows_until(self, table: &str, column: &str, other: &str) -> String {
        let is_named = format!("EXISTS (SELECT 1 FROM {other} WHERE {other}.{column} = OLD.{column})");
        let refusal = format!("a row of {table} is deleted only with a row of {other}");
        let (drop, create) = match self {
            Self::Sqlite => (
                format!("DROP TRIGGER {table}_no_delete;"),
                format!(
                    "CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} WHEN NOT {is_named}
                     BEGIN SELECT RAISE(ABORT, '{refusal}'); END;"
                ),
            ),
            Self::Postgres => (
                format!("DROP TRIGGER {table}_no_delete ON {table};"),
                format!(
                    "CREATE FUNCTION {table}_until() RETURNS trigger LANGUAGE plpgsql AS
                     $$ BEGIN
                         IF NOT {is_named} THEN RAISE EXCEPTION '{refusal}'; END IF;
                         RETURN OLD;
                     END $$;
                     CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table}
                     FOR EACH ROW EXECUTE FUNCTION {table}_until();"
                ),
            ),
        };
        format!("{} {drop} {create}", self.fixed_rows(other))
    }

    /// Replaces each `{{append_only TABLE}}` by triggers that refuse to change or delete a row of the table.
    fn append_only(self, text: &str) -> String {
        let mut parts = text.split("{{append_only ");
        let mut made = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (table, rest) = part.split_once("}}").unwrap_or((part, ""));
            made += &self.fixed_rows(table);
            made += rest;
        }
        made
    }

    /// Returns the statements that make the rows of a table fixed.
    fn fixed_rows(self, table: &str) -> String {
        let triggers = |action: &str| {
            format!(
                "CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} {action};
                 CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} {action};"
            )
        };
        match self {
            Self::Sqlite => triggers(&format!(
                "BEGIN SELECT RAISE(ABORT, 'a row of {table} never changes'); END"
            )),
            Self::Postgres => format!(
                "CREATE FUNCTION {table}_fixed() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN RAISE EXCEPTION 'a row of {table} never changes'; END $$;
                 {}",
                triggers(&format!("FOR EACH ROW EXECUTE FUNCTION {table}_fixed()"))
            ),
        }
    }

    fn migrator(self) -> Migrator {
        /// Version, name and text of each migration. A released text never changes.
        type Texts = [(i64, &'static str, &'static str); 7];
        const SQLITE: Texts = [
            (
                1,
                "marketplace",
                include_str!("../migrations/sqlite/0001_marketplace.sql"),
            ),
            (2, "reads", include_str!("../migrations/sqlite/0002_reads.sql")),
            (3, "uploads", include_str!("../migrations/sqlite/0003_uploads.sql")),
            (4, "egress", include_str!("../migrations/sqlite/0004_egress.sql")),
            (
                5,
                "contributors",
                include_str!("../migrations/sqlite/0005_contributors.sql"),
            ),
            (
                6,
                "look_alikes",
                include_str!("../migrations/sqlite/0006_look_alikes.sql"),
            ),
            (7, "losses", include_str!("../migrations/sqlite/0007_losses.sql")),
        ];
        const POSTGRES: Texts = [
            (
                1,
                "marketplace",
                include_str!("../migrations/postgres/0001_marketplace.sql"),
            ),
            (2, "reads", include_str!("../migrations/postgres/0002_reads.sql")),
            (3, "uploads", include_str!("../migrations/postgres/0003_uploads.sql")),
            (4, "egress", include_str!("../migrations/postgres/0004_egress.sql")),
            (
                5,
                "contributors",
                include_str!("../migrations/postgres/0005_contributors.sql"),
            ),
            (
                6,
                "look_alikes",
                include_str!("../migrations/postgres/0006_look_alikes.sql"),
            ),
            (7, "losses", include_str!("../migrations/postgres/0007_losses.sql")),
        ];
        let (texts, text_type, bytes_type, position) = match self {
            Self::Sqlite => (SQLITE, "TEXT", "BLOB", "INSTR"),
            Self::Postgres => (POSTGRES, "TEXT COLLATE \"C\"", "BYTEA", "STRPOS"),
        };
        let shared = SHARED_MIGRATIONS.into_iter().map(|(version, name, text)| {
            let text = self.append_only_until(&self.append_only(text));
            let text = text.replace("{{text}}", text_type).replace("{{bytes}}", bytes_type);
            let text = text.replace("{{position}}", position);
            let text = sqlx::AssertSqlSafe(text).into_sql_str();
            Migration::new(version, name.into(), MigrationType::Simple, text, false)
        });
        Migrator::with_migrations(
            texts
                .into_iter()
                .map(|(version, name, text)| {
                    Migration::new(version, name.into(), MigrationType::Simple, text.into_sql_str(), false)
                })
                .chain(shared)
                .collect(),
        )
    }
}

/// Sets how long a statement of a connection to `SQLite` waits for another process.
async fn busy_timeout(connection: &mut AnyConnection, limit: Duration) -> Result<(), Error> {
    let text = format!("PRAGMA busy_timeout = {}", limit.as_millis());
    connection.execute(sqlx::AssertSqlSafe(text)).await?;
    Ok(())
}

/// `synchronous=FULL` makes every commit in the write-ahead log durable before it returns
/// (<https://www.sqlite.org/pragma.html#pragma_synchronous>).
fn sqlite_settings(role: Role, options: &Options) -> Vec<String> {
    let own = match role {
        Role::Reader => "PRAGMA query_only = ON",
        Role::Writer => "PRAGMA journal_mode = WAL",
    };
    // The time limit comes first, so that it holds for the statements after it.
    vec![
        format!("PRAGMA busy_timeout = {}", options.busy_timeout.as_millis()),
        "PRAGMA foreign_keys = ON".to_owned(),
        "PRAGMA synchronous = FULL".to_owned(),
        // Sorting and temporary tables stay in memory.
        "PRAGMA temp_store = MEMORY".to_owned(),
        // The unit is pages. A checkpoint makes one commit slow, so checkpoints are rare.
        "PRAGMA wal_autocheckpoint = 4000".to_owned(),
        own.to_owned(),
        OVERWRITE_IN_PLACE.to_owned(),
    ]
}

/// Returns all settings as one round trip. With the time limits the server itself ends work whose client is gone or
/// silent: a statement, a wait for a lock, an idle transaction, a lost connection
/// (<https://www.postgresql.org/docs/current/runtime-config-client.html>).
fn postgres_settings(role: Role, options: &Options) -> String {
    let millis = |limit: Duration| limit.as_millis().max(1);
    let own = match role {
        Role::Reader => "SET default_transaction_read_only = on",
        // A setting stricter than `on` is kept as the server has it.
        Role::Writer => {
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        }
    };
    format!(
        "SET application_name = 'sluice'; SET client_min_messages = warning; SET statement_timeout = {timeout};
         SET lock_timeout = {waiting}; SET idle_in_transaction_session_timeout = {timeout};
         SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3;
         SET tcp_user_timeout = 30000; {own}",
        timeout = millis(options.timeout),
        waiting = millis(options.busy_timeout),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_that_the_build_lacks_is_named() {
        let error = Engine::of("mysql://localhost/sluice").unwrap_err();
        let named = format!("this build has no database engine for `mysql:`; it has {NAMES}");
        assert_eq!(error.to_string(), named);
        assert!(matches!(Engine::of("sluice.db"), Err(Error::Scheme { .. })));
        let scale = Engine::of("postgres://localhost/sluice");
        assert_eq!(scale.is_ok(), cfg!(feature = "postgres"), "{scale:?}");
    }

    #[test]
    fn a_database_in_memory_is_refused() {
        assert!(matches!(Engine::of("sqlite::memory:"), Err(Error::Url { .. })));
        assert_eq!(Engine::of("sqlite:///data/sluice.db").unwrap(), Engine::Sqlite);
    }
}
