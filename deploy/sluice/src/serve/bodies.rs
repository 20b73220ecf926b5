//! Bodies that tell the registry of connections what their peer does.
//!
//! Invariant: a request is under way until the last byte of its answer was handed to the connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use hyper::body::{Body as _, Bytes, Frame, Incoming, SizeHint};

use super::connections::{ActiveRequest, ClientShare, PeerState};

/// Body of a request.
#[derive(Debug)]
struct RequestBody {
    body: Incoming,
    peer: Arc<PeerState>,
}

/// Returns the body of a request, which notes pauses of its peer.
pub(super) fn request(body: Incoming, peer: Arc<PeerState>) -> Body {
    if body.is_end_stream() {
        return Body::empty();
    }
    Body::new(RequestBody { body, peer })
}

impl hyper::body::Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        this.peer.stalls(polled.is_pending());
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        // Nobody waits for the rest of it any more.
        self.peer.stalls(false);
    }
}

/// Body of an answer.
#[derive(Debug)]
struct AnswerBody {
    body: Body,
    _active: ActiveRequest,
    _share: Option<ClientShare>,
}

/// Returns an answer that ends its request when it was sent.
pub(super) fn answer(answer: Response, active: ActiveRequest, share: Option<ClientShare>) -> Response {
    answer.map(|body| {
        Body::new(AnswerBody {
            body,
            _active: active,
            _share: share,
        })
    })
}

impl hyper::body::Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
