//! Equality of the engines' schemas, apart from the names of types.
//!
//! Invariant: tables, columns, types, nullability, keys, indexes and references are read from the databases themselves.
//! Conditions (`CHECK`) are read from the migrations, because engines show them in different forms.

use std::collections::BTreeSet;

const SQLITE: [&str; 2] = [
    include_str!("../../migrations/sqlite/0001_marketplace.sql"),
    include_str!("../../migrations/sqlite/0002_reads.sql"),
];
const POSTGRES: [&str; 2] = [
    include_str!("../../migrations/postgres/0001_marketplace.sql"),
    include_str!("../../migrations/postgres/0002_reads.sql"),
];

/// Every condition of a migration, without its spaces.
fn conditions(text: &str) -> BTreeSet<String> {
    let lines = text.lines().map(|line| line.split("--").next().unwrap_or_default());
    let text: String = lines
        .flat_map(str::chars)
        .filter(|character| !character.is_whitespace())
        .collect();
    text.match_indices("CHECK(")
        .map(|(start, _)| {
            let mut depth = 0;
            let end = text[start..].char_indices().find(|(_, character)| {
                match character {
                    '(' => depth += 1,
                    ')' => depth -= 1,
                    _ => return false,
                }
                depth == 0
            });
            text[start..=start + end.unwrap().0].to_owned()
        })
        .collect()
}

#[test]
fn migrations_have_the_same_conditions() {
    for (sqlite, postgres) in SQLITE.into_iter().zip(POSTGRES) {
        assert_eq!(conditions(sqlite), conditions(postgres));
    }
    let told = conditions("CHECK (a IN (1, 2)), -- CHECK (c)\n b CHECK ((a = 1) = (b = 2)))");
    let expected = ["CHECK(aIN(1,2))", "CHECK((a=1)=(b=2))"];
    assert_eq!(told, expected.map(str::to_owned).into());
}

#[cfg(feature = "postgres")]
mod databases {
    use std::collections::BTreeSet;

    use sqlx::AnyConnection;

    use crate::tests::{fresh_file, server};
    use crate::{Options, Store};

    /// One line for everything there is.
    type Schema = BTreeSet<String>;

    async fn told(connection: &mut AnyConnection, question: &'static str) -> Schema {
        let lines: Vec<String> = sqlx::query_scalar(question).fetch_all(connection).await.unwrap();
        lines.into_iter().collect()
    }

    async fn sqlite(connection: &mut AnyConnection) -> [Schema; 4] {
        [
            told(
                connection,
                "SELECT t.name || '.' || c.name || ' ' || replace(c.type, 'BLOB', 'BYTES')
                        || CASE c.\"notnull\" WHEN 1 THEN ' NOT NULL' ELSE '' END
                 FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
                 WHERE t.type = 'table' AND t.name NOT LIKE '%sqlx%' AND t.name NOT LIKE 'sqlite%'",
            )
            .await,
            told(
                connection,
                "SELECT t.name || CASE i.\"unique\" WHEN 1 THEN ' unique (' ELSE ' index (' END
                        || COALESCE((SELECT group_concat(k.name, ', ')
                                     FROM (SELECT name FROM pragma_index_info(i.name) ORDER BY seqno) AS k),
                                    'an expression')
                        || ')'
                 FROM sqlite_schema AS t, pragma_index_list(t.name) AS i
                 WHERE t.type = 'table' AND t.name NOT LIKE '%sqlx%' AND t.name NOT LIKE 'sqlite%'
                 UNION
                 SELECT t.name || ' unique (' || c.name || ')'
                 FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
                 WHERE t.type = 'table' AND t.name NOT LIKE '%sqlx%' AND c.pk = 1 AND c.type = 'BIGINT'
                   AND (SELECT COUNT(*) FROM pragma_table_info(t.name) WHERE pk > 0) = 1",
            )
            .await,
            told(
                connection,
                "SELECT t.name || ' key ' || c.pk || ' ' || c.name
                 FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
                 WHERE t.type = 'table' AND t.name NOT LIKE '%sqlx%' AND t.name NOT LIKE 'sqlite%' AND c.pk > 0",
            )
            .await,
            told(
                connection,
                "SELECT t.name || '.' || r.\"from\" || ' references ' || r.\"table\" || '.' || r.\"to\"
                 FROM sqlite_schema AS t, pragma_foreign_key_list(t.name) AS r
                 WHERE t.type = 'table' AND t.name NOT LIKE '%sqlx%'",
            )
            .await,
        ]
    }

    async fn postgres(connection: &mut AnyConnection) -> [Schema; 4] {
        [
            told(
                connection,
                "SELECT table_name || '.' || column_name || ' '
                        || CASE data_type WHEN 'text' THEN 'TEXT' WHEN 'bigint' THEN 'BIGINT' WHEN 'bytea' THEN 'BYTES'
                                          ELSE data_type END
                        || CASE WHEN data_type = 'text' AND collation_name IS DISTINCT FROM 'C' THEN ' by language'
                                ELSE '' END
                        || CASE is_nullable WHEN 'NO' THEN ' NOT NULL' ELSE '' END
                 FROM information_schema.columns WHERE table_schema = 'public' AND table_name NOT LIKE '%sqlx%'",
            )
            .await,
            told(
                connection,
                "SELECT CAST(t.relname AS TEXT) || CASE WHEN i.indisunique THEN ' unique (' ELSE ' index (' END
                        || COALESCE((SELECT string_agg(CAST(a.attname AS TEXT), ', ' ORDER BY k.place)
                                     FROM unnest(i.indkey) WITH ORDINALITY AS k (number, place)
                                     JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum = k.number),
                                    'an expression')
                        || ')'
                 FROM pg_index AS i JOIN pg_class AS t ON t.oid = i.indrelid
                 WHERE t.relnamespace = CAST('public' AS regnamespace) AND t.relname NOT LIKE '%sqlx%'",
            )
            .await,
            told(
                connection,
                "SELECT CAST(t.relname AS TEXT) || ' key ' || k.place || ' ' || CAST(a.attname AS TEXT)
                 FROM pg_constraint AS c JOIN pg_class AS t ON t.oid = c.conrelid
                 CROSS JOIN LATERAL unnest(c.conkey) WITH ORDINALITY AS k (number, place)
                 JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum = k.number
                 WHERE c.contype = 'p' AND t.relname NOT LIKE '%sqlx%'
                   AND t.relnamespace = CAST('public' AS regnamespace)",
            )
            .await,
            told(
                connection,
                "SELECT CAST(t.relname AS TEXT) || '.' || CAST(a.attname AS TEXT) || ' references '
                        || CAST(o.relname AS TEXT) || '.' || CAST(b.attname AS TEXT)
                 FROM pg_constraint AS c JOIN pg_class AS t ON t.oid = c.conrelid JOIN pg_class AS o ON o.oid = c.confrelid
                 JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum = c.conkey[1]
                 JOIN pg_attribute AS b ON b.attrelid = o.oid AND b.attnum = c.confkey[1]
                 WHERE c.contype = 'f' AND t.relnamespace = CAST('public' AS regnamespace)",
            )
            .await,
        ]
    }

    #[tokio::test]
    async fn both_engines_have_the_same_tables() {
        let Some((postgres_url, ())) = server::fresh() else {
            return;
        };
        let (sqlite_url, _folder) = fresh_file();
        for url in [&postgres_url, &sqlite_url] {
            Store::connect(url, Options::default()).await.unwrap().close().await;
        }
        let known = sqlite(&mut server::beside(&sqlite_url).await).await;
        let other = postgres(&mut server::beside(&postgres_url).await).await;
        assert!(known.iter().all(|lines| !lines.is_empty()));
        for (known, other) in known.iter().zip(&other) {
            let (missing, beyond): (Vec<_>, Vec<_>) =
                (known.difference(other).collect(), other.difference(known).collect());
            assert!(
                missing.is_empty() && beyond.is_empty(),
                "PostgreSQL lacks {missing:?} and adds {beyond:?}"
            );
        }
    }
}
