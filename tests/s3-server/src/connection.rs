//! Connections: HTTP/1.1 in front of the backend, where faults happen.
//!
//! Invariant: a request that was read whole and whose fault says "executed" is executed, whatever becomes of its
//! connection; one whose fault says "not executed" never reaches the backend.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, IF_NONE_MATCH};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use s3s::service::S3Service;
use tokio::net::TcpListener;

use crate::{Fault, Faults};

type Problem = Box<dyn std::error::Error + Send + Sync>;
type Body = UnsyncBoxBody<Bytes, Problem>;

/// Accepts connections for as long as it is polled.
pub(crate) async fn serve(listener: TcpListener, service: S3Service, faults: Arc<Faults>) {
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            continue;
        };
        // Why: a small answer must not wait for the acknowledgement of the one before it.
        drop(socket.set_nodelay(true));
        let (service, faults) = (service.clone(), Arc::clone(&faults));
        tokio::spawn(async move {
            let answer = service_fn(|request| answer(&service, &faults, request));
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(socket), answer);
            // A client that goes away, or an answer that is not given, is no matter of the server's.
            drop(connection.await);
        });
    }
}

async fn answer(service: &S3Service, faults: &Faults, request: Request<Incoming>) -> Result<Response<Body>, Problem> {
    let conditional = request.headers().contains_key(IF_NONE_MATCH);
    let uri = request.uri();
    let query = uri.query().unwrap_or_default();
    let fault = faults.decide(request.method().as_str(), uri.path(), query, conditional);
    let refused = match fault {
        Some(Fault::Internal) => Some((StatusCode::INTERNAL_SERVER_ERROR, "InternalError")),
        Some(Fault::SlowDown) => Some((StatusCode::SERVICE_UNAVAILABLE, "SlowDown")),
        Some(Fault::Conflict) => Some((StatusCode::CONFLICT, "ConditionalRequestConflict")),
        _ => None,
    };
    if let (Some((status, code)), Some(fault)) = (refused, fault) {
        faults.count(fault);
        // Why: a request whose body is left unread ends its connection, which would be another fault.
        drop(request.into_body().collect().await);
        return Ok(problem(status, code));
    }
    // Why on its own: S3 makes an object of parts though nobody waits for it any more, and `s3s-fs`, dropped half way,
    // would have neither the object nor the parts.
    let service = service.clone();
    let executed = tokio::spawn(async move { service.call(request.map(s3s::Body::from)).await });
    let answered = executed.await?;
    let answered = answered.map_err(|error| Problem::from(format!("{error:?}")))?;
    let Some(fault) = fault else {
        return Ok(answered.map(|body| body.map_err(Problem::from).boxed_unsync()));
    };
    match fault {
        Fault::DoneThenInternal => {
            faults.count(fault);
            Ok(problem(StatusCode::INTERNAL_SERVER_ERROR, "InternalError"))
        }
        Fault::LostAnswer => {
            faults.count(fault);
            Err("the answer is lost".into())
        }
        Fault::Silence => {
            faults.count(fault);
            std::future::pending().await
        }
        Fault::Slow(delay) => {
            faults.count(fault);
            tokio::time::sleep(delay).await;
            Ok(answered.map(|body| body.map_err(Problem::from).boxed_unsync()))
        }
        Fault::CutBody | Fault::StalledBody => broken(answered, fault, faults).await,
        Fault::Internal | Fault::SlowDown | Fault::Conflict => Err("refused above".into()),
    }
}

/// The first half of an answer.
async fn broken(answered: Response<s3s::Body>, fault: Fault, faults: &Faults) -> Result<Response<Body>, Problem> {
    let (mut head, body) = answered.into_parts();
    let bytes = BodyExt::collect(body)
        .await
        .map_err(|error| Problem::from(error.to_string()))?
        .to_bytes();
    if bytes.len() < 2 || !head.status.is_success() {
        return Ok(Response::from_parts(head, whole(bytes)));
    }
    faults.count(fault);
    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
    let half = stream::iter([Ok(Frame::data(bytes.slice(..bytes.len() / 2)))]);
    let body = if fault == Fault::CutBody {
        StreamBody::new(half.chain(stream::iter([Err("the body is cut".into())]))).boxed_unsync()
    } else {
        StreamBody::new(half.chain(stream::pending())).boxed_unsync()
    };
    Ok(Response::from_parts(head, body))
}

/// The error document of S3 (*Error responses*, Amazon S3 API Reference).
fn problem(status: StatusCode, code: &str) -> Response<Body> {
    let document = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{code}</Code></Error>");
    let mut response = Response::new(whole(document.into()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    response
}

fn whole(bytes: Bytes) -> Body {
    Full::new(bytes)
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
}
