//! A provider of models that a test directs: it judges by words of the text, or misbehaves in a given way.
//!
//! Invariant: it knows nothing of the service but the requests that it gets, so what holds against it holds against any
//! server of this interface.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Numbers of a vector.
pub const DIMENSIONS: usize = 8;
/// A text with these words gets no vector, nor does any that is sent with it.
pub const NO_VECTOR: &str = "spoils the vectors";
/// Name of the model that finds more texts good, for appeals.
pub const SECOND_JUDGE: &str = "judge-y";
/// Name of the schema of summaries.
pub const SUMMARY: &str = "summary_1";
/// Words of one meaning in two languages, each of which is a direction.
const MEANINGS: [&[&str]; DIMENSIONS - 1] = [
    &["checkpoint", "체크포인트"],
    &["database", "sqlite", "데이터베이스"],
    &["slow", "latency", "느린", "지연"],
    &["disk", "디스크"],
    &["network", "네트워크"],
    &["memory", "메모리"],
    &["price", "가격"],
];

/// Ways to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// As asked for, but in prose about a text that is `baffling`.
    Sound,
    /// A status and nothing else.
    Status(u16),
    /// A web page.
    Page,
    /// The object, in prose.
    Prose,
    /// The object twice.
    Twice,
    /// Another number than the one to repeat.
    WrongEcho,
    /// Four scores instead of claims.
    FourScores,
    /// Answer as the text states it.
    Obedient,
    /// Nothing until [`Provider::release`], then a sound answer.
    Late,
}

#[derive(Debug)]
struct Shared {
    manner: Mutex<Manner>,
    requests: Mutex<Vec<Value>>,
    released: Notify,
}

/// A running provider; ended when dropped.
#[derive(Debug)]
pub struct Provider {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: Option<JoinHandle<()>>,
}

impl Provider {
    /// Starts one.
    pub async fn start(manner: Manner) -> Self {
        let shared = Arc::new(Shared {
            manner: Mutex::new(manner),
            requests: Mutex::default(),
            released: Notify::new(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut provider = Self {
            address: listener.local_addr().unwrap(),
            shared,
            server: None,
        };
        provider.serve(listener);
        provider
    }

    fn serve(&mut self, listener: TcpListener) {
        let router = Router::new()
            .route("/v1/chat/completions", post(chat))
            .route("/v1/embeddings", post(embeddings))
            .with_state(Arc::clone(&self.shared));
        self.server = Some(tokio::spawn(async move {
            axum::serve(listener, router).await.unwrap();
        }));
    }

    /// The address for `models.url`.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Answers in another way from now on.
    pub fn behave(&self, manner: Manner) {
        *self.shared.manner.lock() = manner;
    }

    /// Gives the late answers.
    pub fn release(&self) {
        self.shared.released.notify_waiters();
    }

    /// Ends the server: its port refuses connections.
    pub async fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.abort();
            server.await.ok();
        }
    }

    /// Starts it again at its port.
    pub async fn restart(&mut self, manner: Manner) {
        self.stop().await;
        self.behave(manner);
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.serve(listener);
    }

    /// The number of requests so far, but for those of summaries, which come when they like.
    pub fn asked(&self) -> usize {
        let requests = self.shared.requests.lock();
        requests.iter().filter(|request| schema(request) != SUMMARY).count()
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.shared.requests.lock().clone()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            server.abort();
        }
    }
}

/// Returns the name of the schema that a request asks for; empty for that of a vector.
pub fn schema(request: &Value) -> &str {
    request["response_format"]["json_schema"]["name"]
        .as_str()
        .unwrap_or_default()
}

/// Misbehaves, or returns the manner in which to answer.
async fn manner(shared: &Shared, request: Value) -> Result<Manner, Box<Response>> {
    shared.requests.lock().push(request);
    let manner = *shared.manner.lock();
    match manner {
        Manner::Status(status) => Err(Box::new(StatusCode::from_u16(status).unwrap().into_response())),
        Manner::Page => Err(Box::new(
            "<html><body>Scheduled maintenance</body></html>".into_response(),
        )),
        Manner::Late => {
            shared.released.notified().await;
            Ok(Manner::Sound)
        }
        _ => Ok(manner),
    }
}

fn json_of(value: &Value) -> Response {
    ([("content-type", "application/json")], value.to_string()).into_response()
}

async fn chat(State(shared): State<Arc<Shared>>, body: String) -> Response {
    let request: Value = serde_json::from_str(&body).unwrap();
    let text = |at: usize| request["messages"][at]["content"].as_str().unwrap().to_owned();
    let (data, last) = (text(1), text(2));
    let manner = match manner(&shared, request.clone()).await {
        Ok(manner) => manner,
        Err(response) => return *response,
    };
    let echo = match manner {
        Manner::WrongEcho => "0123456789abcdef0123456789abcdef",
        _ => last.split_whitespace().last().unwrap(),
    };
    let unit: Value = serde_json::from_str(data.lines().nth(1).unwrap()).unwrap();
    let answer = match schema(&request) {
        SUMMARY => json!({"echo": echo, "summary": format!("What a model says of {}.", unit["title"])}),
        "screen_1" => screened(echo, &unit),
        "distinct_1" => json!({"echo": echo, "distinct": true, "adds": "Another machine."}),
        question => scored(echo, question, &data, manner, request["model"] == SECOND_JUDGE),
    };
    let object = answer.to_string();
    let content = match manner {
        Manner::Sound if data.contains("baffling") => "I cannot say.".to_owned(),
        Manner::Prose => format!("Here is my verdict, the total is 100: {object}"),
        Manner::Twice => format!("{object}{object}"),
        Manner::Obedient => unit["body"].as_str().unwrap_or_default().to_owned(),
        _ => object,
    };
    json_of(&json!({
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1_000},
    }))
}

fn screened(echo: &str, unit: &Value) -> Value {
    if unit.to_string().contains("lottery") {
        return json!({"echo": echo, "verdict": "objectionable", "code": "spam", "detail": "It sells tickets."});
    }
    json!({"echo": echo, "verdict": "acceptable", "code": "none", "detail": ""})
}

/// A text with something measured is good, to the second judge also one of what was tried: each of its sentences is a step that a reader could try, though nothing says how it
/// is known. Any other text claims nothing.
fn scored(echo: &str, schema: &str, data: &str, manner: Manner, is_second: bool) -> Value {
    let line = |at: usize| data.lines().nth(at).unwrap_or_default();
    if manner == Manner::FourScores {
        let axis = json!({"score": 10, "evidence": line(1).chars().take(200).collect::<String>(), "fix": ""});
        return json!({
            "echo": echo, "accuracy": axis, "novelty": axis, "reproducibility": axis, "specificity": axis,
            "language": "en",
        });
    }
    // `CLAIMS`, the mark, and the list.
    let claims: Value = serde_json::from_str(line(3).splitn(3, ' ').nth(2).unwrap_or("[]")).unwrap();
    let each = |answer: Value| -> Vec<Value> {
        let claims = claims.as_array().unwrap().iter();
        claims
            .map(|claim| {
                let mut answer = answer.clone();
                answer["claim"] = claim["claim"].clone();
                answer
            })
            .collect()
    };
    match schema {
        "score_2_claims" => {
            let unit: Value = serde_json::from_str(line(1)).unwrap();
            let body = unit["body"].as_str().unwrap();
            let step = |quote: &str| {
                let none = "";
                json!({"quote": quote, "kind": "step", "subject": none, "figure": none, "condition": none, "method": none})
            };
            let is_good = body.contains("measured") || (is_second && body.contains("tried"));
            let sentences = body.split(". ").filter(|_| is_good);
            json!({"echo": echo, "claims": sentences.take(20).map(step).collect::<Vec<_>>()})
        }
        "score_2_tests" => json!({"echo": echo, "tests": each(json!({"missing": "nothing"}))}),
        "score_2_contradiction" => json!({"echo": echo, "contradiction": false, "first": "", "second": ""}),
        _ => json!({"echo": echo, "additions": each(json!({"adds": true, "passage": ""}))}),
    }
}

async fn embeddings(State(shared): State<Arc<Shared>>, body: String) -> Response {
    let request: Value = serde_json::from_str(&body).unwrap();
    if let Err(response) = manner(&shared, request.clone()).await {
        return *response;
    }
    let texts = request["input"].as_array().unwrap();
    if request["input"].to_string().contains(NO_VECTOR) {
        return json_of(&json!({"data": [], "usage": {"total_tokens": 10}}));
    }
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| json!({"index": index, "embedding": vector(text.as_str().unwrap())}))
        .collect();
    json_of(&json!({"data": data, "usage": {"total_tokens": 10}}))
}

/// A vector by the meanings that a text names. The last direction is that of texts that name none.
fn vector(text: &str) -> Vec<f64> {
    let text = text.to_lowercase();
    let mut vector: Vec<f64> = MEANINGS
        .iter()
        .map(|words| f64::from(u8::from(words.iter().any(|word| text.contains(word)))))
        .collect();
    vector.push(0.2);
    vector
}

/// Time that the service of these tests waits for an answer.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// The options that have a service judge by this provider, and lose patience soon.
pub fn judged_by(provider: &Provider, options: crate::Options) -> crate::Options {
    options
        .with("SLUICE__MODELS__URL", provider.url())
        .with("SLUICE__MODELS__KEY", "a-key-of-a-test")
        .with("SLUICE__MODELS__CHAT", "judge-x")
        .with("SLUICE__MODELS__TIMEOUT", format!("{}s", PATIENCE.as_secs()))
        .with("SLUICE__MODELS__RETRY_FIRST", "10ms")
        .with("SLUICE__MODELS__HOLD_FIRST", "1s")
        .with("SLUICE__MODELS__HOLD_MOST", "1s")
        .with("SLUICE__LIMITS__KNOWLEDGE_PER_DAY", 1_000)
        .with("SLUICE__LIMITS__SUBMISSIONS_PER_AGENT_PER_HOUR", 1_000)
}
