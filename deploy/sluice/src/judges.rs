//! The judges of units and datasets, the maker of vectors and the writer of summaries: of the configured provider, else
//! fixed rules and no summaries.
//!
//! Invariant: what is configured judges. While it does not answer, nothing else judges in its place.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use api::rules::previews::StoredPreviews;
use async_trait::async_trait;
use bytes::Bytes;
use catalog::storage::DurableStore;
use http::header::RETRY_AFTER;
use models::remote::{
    ChatModel, CompleteScreener, LeaseError, NoReply, Provider, ProviderReply, RemoteEmbedder, TextPrefixes,
    TokenBudget, TokenLeases, Transport, Waits,
};
use models::rubric::{ArithmeticFinder, RubricScorer};
use models::screen::UnitScreener;
use models::sentences::SentenceEmbedder;
use object_store::path::Path;
use object_store::{ObjectStore as _, PutMode};
use operators::knowledge::{Comparer, Embedder, Previews, Scorer};
use operators::screen::{LocalScreener, Screener};
use operators::summary::Summariser;
use outbound::{ClientOptions, OutboundClient, Ports, RequestLimits};
use store::Store;
use types::{Backoff, Clock};

use crate::config;

/// The longest time to connect to a provider.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The most bytes of headers of an answer.
const MAX_HEADER_BYTES: usize = 32 << 10;

/// The part of the tokens of a day that searches have, as a divisor.
const SEARCH_SHARE: u64 = 10;
/// The part of the tokens of a day that summaries have, as a divisor.
const SUMMARY_SHARE: u64 = 10;
/// The most characters of a dataset that a summary is written from.
const SUMMARY_CHARACTERS: usize = 12_000;

/// The judges of this process.
#[derive(Clone, Debug)]
pub(crate) struct AllJudges {
    /// Screener of the records of public datasets.
    pub(crate) datasets: Arc<dyn Screener>,
    /// Judges of the versions of knowledge units.
    pub(crate) units: pipelines::knowledge::Judges,
    /// Maker of the vectors of the search.
    pub(crate) embedder: Arc<dyn Embedder>,
    /// Writer of summaries; none without a chat model.
    pub(crate) summariser: Option<Arc<dyn Summariser>>,
}

/// Returns the judges of units that ask nobody: fixed rules, and the encoder of the program.
///
/// # Errors
/// A program whose weights are damaged.
pub(crate) fn of_units() -> anyhow::Result<pipelines::knowledge::Judges> {
    Ok(pipelines::knowledge::Judges {
        screeners: vec![Arc::new(LocalScreener), Arc::new(UnitScreener)],
        contradictions: Arc::new(ArithmeticFinder),
        scorer: Arc::new(RubricScorer),
        embedder: Some(Arc::new(SentenceEmbedder::open()?)),
        comparer: None,
        appeal: None,
    })
}

/// Builds the judges that the configuration names. `store` has the previews that the chat model compares with; a worker
/// has none, and a fixed rule compares there.
///
/// # Errors
/// A key that cannot be a header, trusted certificates that cannot be read, or a program whose weights are damaged.
pub(crate) fn build(
    config: &config::Models,
    objects: &Arc<dyn DurableStore>,
    store: Option<&Store>,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<AllJudges> {
    let mut judges = AllJudges {
        datasets: Arc::new(LocalScreener),
        units: of_units()?,
        // Apart from that of the reviews, which can keep its threads busy.
        embedder: Arc::new(SentenceEmbedder::open()?),
        summariser: None,
    };
    if config.url.is_empty() {
        return Ok(judges);
    }
    // Anybody can search, so searches have a budget of their own and cannot spend that of the reviews.
    let of_search = config.tokens_per_day / SEARCH_SHARE;
    // Anybody can merge often, so summaries have one too.
    let has_chat = !config.chat.is_empty();
    let of_summaries = if has_chat {
        config.tokens_per_day / SUMMARY_SHARE
    } else {
        0
    };
    let budget = |name: &'static str, tokens: u64| {
        (config.tokens_per_day > 0).then(|| {
            let leases = ObjectLeases {
                objects: Arc::clone(objects),
                name,
            };
            TokenBudget::new(Arc::new(leases), tokens)
        })
    };
    let waits = Waits {
        retry_first: config.retry_first.0,
        hold: Backoff {
            first: config.hold_first.0,
            most: config.hold_most.0,
        },
    };
    let transport = HttpTransport::new(config).context("the provider of models cannot be used")?;
    let transport: Arc<dyn Transport> = Arc::new(transport);
    let provider = |budget| Arc::new(Provider::new(Arc::clone(&transport), Arc::clone(clock), budget, waits));
    // One provider for scores, screens and vectors of the review: they share a circuit, so a provider that is down is
    // found once.
    let reviewing = provider(budget("reviews", config.tokens_per_day - of_search - of_summaries));
    let chat_model = |name: &str| {
        let previews = store.map(|store| Arc::new(StoredPreviews::new(store.clone())) as Arc<dyn Previews>);
        let characters = config.context_characters;
        Arc::new(ChatModel::new(Arc::clone(&reviewing), name, characters, previews))
    };
    let rules = judges.units.clone();
    if has_chat {
        let most = config.context_characters.min(SUMMARY_CHARACTERS);
        let writing = provider(budget("summaries", of_summaries));
        judges.summariser = Some(Arc::new(ChatModel::new(writing, config.chat.as_str(), most, None)));
        let chat = chat_model(config.chat.as_str());
        judges.units = judged_by(judges.units, &chat);
        judges.datasets = Arc::new(CompleteScreener::new(
            judges.datasets,
            chat,
            config.questions_per_contribution,
        ));
    }
    // Another model than the one that rejected, or a model after the rules did.
    let mut second = (!config.appeal.is_empty()).then(|| judged_by(rules, &chat_model(config.appeal.as_str())));
    if !config.embeddings.is_empty() {
        let prefixes = TextPrefixes {
            query: config.query_prefix.clone(),
            document: config.document_prefix.clone(),
        };
        let (model, dimensions) = (config.embeddings.as_str(), config.dimensions);
        let embedder = |provider| RemoteEmbedder::new(provider, model, dimensions, prefixes.clone());
        judges.units.embedder = Some(Arc::new(embedder(Arc::clone(&reviewing))));
        if let Some(second) = &mut second {
            second.embedder.clone_from(&judges.units.embedder);
        }
        let searching = provider(budget("search", of_search));
        judges.embedder = Arc::new(embedder(searching));
    }
    judges.units.appeal = second.map(Arc::new);
    Ok(judges)
}

/// Returns the judges with a chat model that screens after the rules, scores and compares.
fn judged_by(mut judges: pipelines::knowledge::Judges, chat: &Arc<ChatModel>) -> pipelines::knowledge::Judges {
    judges.screeners.push(Arc::clone(chat) as Arc<dyn Screener>);
    judges.scorer = Arc::clone(chat) as Arc<dyn Scorer>;
    judges.comparer = Some(Arc::clone(chat) as Arc<dyn Comparer>);
    judges
}

/// Sends requests over HTTP to the address that the administrator named.
#[derive(Debug)]
struct HttpTransport {
    client: OutboundClient,
    base: String,
    key: JudgeSecret,
    timeout: Duration,
}

/// A text that no output shows.
struct JudgeSecret(String);

impl std::fmt::Debug for JudgeSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

impl HttpTransport {
    fn new(config: &config::Models) -> anyhow::Result<Self> {
        // An administrator names the server, which is often one of the own network.
        let mut options = ClientOptions::new("sluice");
        options.allow_private = true;
        options.ports = Ports::Any;
        Ok(Self {
            client: OutboundClient::new(options)?,
            base: config.url.trim_end_matches('/').to_owned(),
            key: JudgeSecret(config.key.clone()),
            timeout: config.timeout.0,
        })
    }
}

#[async_trait]
impl Transport for HttpTransport {
    async fn post(&self, path: &str, body: Bytes, most: u64) -> Result<ProviderReply, NoReply> {
        let limits = RequestLimits {
            connect: CONNECT_TIMEOUT.min(self.timeout),
            whole: self.timeout * 2,
            headers: MAX_HEADER_BYTES,
            body: most,
            redirects: 0,
        };
        let url = format!("{}/{path}", self.base);
        let key = Some(self.key.0.as_str()).filter(|key| !key.is_empty());
        // An answer that begins later is dropped with its connection.
        let posted = self.client.post_json_with_key(&url, body, limits, key);
        let answer = tokio::time::timeout(self.timeout, posted)
            .await
            .map_err(|_late| NoReply("no answer began in time".to_owned()))?
            .map_err(|failed| NoReply(failed.error.to_string()))?;
        let seconds = answer.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        Ok(ProviderReply {
            status: answer.status.as_u16(),
            retry_after: seconds
                .and_then(|text| text.trim().parse().ok())
                .map(Duration::from_secs),
            body: answer.bytes().await.map_err(|error| NoReply(error.to_string()))?,
        })
    }
}

/// Leases of tokens as objects beside the tables, each of which one process can create.
#[derive(Debug)]
struct ObjectLeases {
    objects: Arc<dyn DurableStore>,
    /// Name of the budget.
    name: &'static str,
}

#[async_trait]
impl TokenLeases for ObjectLeases {
    async fn take(&self, day: i64, number: u64) -> Result<bool, LeaseError> {
        let path = Path::from(format!("platform/budget/{day}/{}-{number}", self.name));
        let put = self
            .objects
            .put_opts(&path, Bytes::new().into(), PutMode::Create.into());
        match put.await {
            Ok(_) => Ok(true),
            // Stores of the S3 API answer a put that exists with either error.
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => Ok(false),
            Err(error) => Err(LeaseError(error.to_string())),
        }
    }
}
