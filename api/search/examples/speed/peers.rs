//! Two other indexes, used as plainly as their documentation shows, over the same documents.
//!
//! Invariant: each keeps ids and texts in its own form, and answers with the best 20 ids.

use std::error::Error;

use search::Document;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use tantivy::collector::TopDocs;
use tantivy::query::QueryParser;
use tantivy::schema::{Field, STORED, STRING, Schema, TEXT, Value as _};
use tantivy::{Index, Searcher, TantivyDocument, doc};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// Hits of an answer.
const LIMIT: usize = 20;

/// An index that answers with ids.
pub(crate) trait Peer {
    fn search(&mut self, text: &str) -> Result<Vec<String>, Box<dyn Error>>;
}

/// `tantivy` with its default tokens, parser and order.
pub(crate) struct Tantivy {
    searcher: Searcher,
    parser: QueryParser,
    id: Field,
}

impl Tantivy {
    pub(crate) fn of(documents: &[Document]) -> Result<Self, Box<dyn Error>> {
        let mut schema = Schema::builder();
        let id = schema.add_text_field("id", STRING | STORED);
        let (title, body) = (
            schema.add_text_field("title", TEXT),
            schema.add_text_field("body", TEXT),
        );
        let index = Index::create_in_ram(schema.build());
        let mut writer = index.writer(64 << 20)?;
        for document in documents {
            writer.add_document(doc!(
                id => document.key.id.clone(), title => document.title.clone(), body => document.body.clone()
            ))?;
        }
        writer.commit()?;
        Ok(Self {
            searcher: index.reader()?.searcher(),
            parser: QueryParser::for_index(&index, vec![title, body]),
            id,
        })
    }
}

impl Peer for Tantivy {
    fn search(&mut self, text: &str) -> Result<Vec<String>, Box<dyn Error>> {
        let (query, _) = self.parser.parse_query_lenient(text);
        let top = TopDocs::with_limit(LIMIT).order_by_score();
        let mut ids = Vec::new();
        for (_, address) in self.searcher.search(&query, &top)? {
            let found: TantivyDocument = self.searcher.doc(address)?;
            let id = found
                .get_first(self.id)
                .and_then(|id| id.as_str().map(ToOwned::to_owned));
            ids.extend(id);
        }
        Ok(ids)
    }
}

/// FTS5 of `SQLite` with one of its tokenizers, in a file.
pub(crate) struct Fts5 {
    runtime: Runtime,
    connection: SqliteConnection,
    /// Characters of the shortest token.
    shortest: usize,
    _folder: TempDir,
}

impl Fts5 {
    pub(crate) fn of(documents: &[Document], tokenizer: &str) -> Result<Self, Box<dyn Error>> {
        let (runtime, folder) = (Builder::new_current_thread().enable_all().build()?, TempDir::new()?);
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("fts5.db"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Off)
            .synchronous(SqliteSynchronous::Off);
        let connection = runtime.block_on(async {
            let mut connection = options.connect().await?;
            let table =
                format!("CREATE VIRTUAL TABLE units USING fts5(id UNINDEXED, title, body, tokenize = '{tokenizer}')");
            sqlx::query(sqlx::AssertSqlSafe(table)).execute(&mut connection).await?;
            let mut all = connection.begin().await?;
            for document in documents {
                sqlx::query("INSERT INTO units (id, title, body) VALUES ($1, $2, $3)")
                    .bind(&document.key.id)
                    .bind(&document.title)
                    .bind(&document.body)
                    .execute(&mut *all)
                    .await?;
            }
            all.commit().await?;
            Ok::<_, sqlx::Error>(connection)
        })?;
        Ok(Self {
            runtime,
            connection,
            shortest: if tokenizer == "trigram" { 3 } else { 1 },
            _folder: folder,
        })
    }
}

impl Peer for Fts5 {
    fn search(&mut self, text: &str) -> Result<Vec<String>, Box<dyn Error>> {
        // Shorter words have no token.
        let words = text.split(|character: char| !character.is_alphanumeric());
        let words = words.filter(|word| word.chars().count() >= self.shortest);
        let any = words.map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" OR ");
        if any.is_empty() {
            return Ok(Vec::new());
        }
        let found = sqlx::query_scalar("SELECT id FROM units WHERE units MATCH $1 ORDER BY rank LIMIT 20")
            .bind(any)
            .fetch_all(&mut self.connection);
        Ok(self.runtime.block_on(found)?)
    }
}
