//! Operation that serves part files by signed addresses.
//!
//! Invariant: only addresses that a manifest of this service contained are served, and only until they expire. The
//! caller chooses the range of bytes (RFC 9110 section 14).

mod conditions;

use std::io;
use std::ops::Range;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use http::StatusCode;
use http::header::{self, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use types::{DatasetId, Kind};

use self::conditions::ConditionResult;
use crate::call::answer::{BodyMedia, StreamedAnswer};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{CallRate, Spec};
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::rules::reading::MAX_EXACT_INTEGER;
use crate::rules::standing::{TransferAccount, no_part};
use crate::state::egress::EgressReader;
use crate::state::links::{GrantAccount, PartGrant};
use types::error::with_causes;

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "download_part",
            path: "/parts/{dataset}/{name}",
            headers: &[
                ("range", "Range"),
                ("ifMatch", "If-Match"),
                ("ifNoneMatch", "If-None-Match"),
                ("ifRange", "If-Range"),
            ],
            summary: "A part of a version, by its address in a manifest",
            description: "The address is the credential; its transfers do not count as calls. One byte range is served; \
                          anything else in `Range` is ignored. A part never changes, so its `ETag` is strong; it has no \
                          date, and conditions on one are not met.",
            tag: "datasets",
            rate: CallRate::Exempt,
            success: &[(200, "The file."), (206, "The range of it that was asked for.")],
            empty: &[(304, "The caller has the file: `If-None-Match` names its tag.")],
            failure: &[
                (
                    403,
                    "The address is not one of a manifest (`link_invalid`), it has expired (`link_expired`), or the \
                     operator that it was handed out to is suspended (`account_suspended`).",
                ),
                (404, "The part does not exist any more, or its dataset is taken down."),
                (412, "The file is none of those that `If-Match` names (`precondition_failed`)."),
                (416, "The file has no such range; `Content-Range` says how long it is."),
                (503, "The file is damaged and is not served (`table_damaged`)."),
            ],
            answer_headers: &[
                (&[200, 206, 304], "ETag", "Strong tag of the file."),
                (&[200, 206], "Accept-Ranges", "`bytes`."),
                (&[206], "Content-Range", "The range that the body has."),
                (&[416], "Content-Range", "The length of the file."),
            ],
            ..Spec::BASE
        },
        &[],
        part,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SignedPartPath {
    /// Id of the dataset.
    #[schemars(with = "String", extend("format" = "uuid"))]
    dataset: DatasetId,
    /// Name of the part file.
    #[schemars(length(max = 200))]
    name: String,
    /// Operator that the address was handed out to, or `w:` and the wallet.
    #[schemars(with = "String", length(max = 120))]
    account: GrantAccount,
    /// Expiry of the address, in seconds since 1970.
    #[schemars(range(min = 0, max = MAX_EXACT_INTEGER))]
    expires: u64,
    /// Signature over the other members of the address.
    #[schemars(length(max = 100))]
    signature: String,
    /// A range of bytes, such as `bytes=0-1023`.
    range: Option<String>,
    /// Entity tags, one of which the file must have, or `*`.
    if_match: Option<Vec<String>>,
    /// Entity tags, none of which the file may have, or `*` for any.
    if_none_match: Option<Vec<String>>,
    /// The entity tag that the file must have for a range of it to be sent; otherwise the whole is.
    if_range: Option<String>,
}

/// A file of Apache Parquet (<https://www.iana.org/assignments/media-types/application/vnd.apache.parquet>).
struct ParquetMedia;

impl BodyMedia for ParquetMedia {
    const TYPE: &'static str = "application/vnd.apache.parquet";

    fn schema() -> Value {
        json!({"type": "string", "format": "binary", "description": "An Apache Parquet file."})
    }
}

async fn part(cx: Cx, input: SignedPartPath) -> Result<StreamedAnswer<ParquetMedia>, ApiError> {
    let grant = PartGrant {
        dataset: input.dataset,
        part: &input.name,
        account: &input.account,
        expires: input.expires,
    };
    // The signature is checked before anything is read, so that nobody learns from this address which
    // parts exist.
    let signer = cx.app.process.links.signer(&cx.app.store, cx.now).await?;
    if !signer.signed(&grant, &input.signature) {
        let message = "the address differs from the one in the manifest";
        return Err(ApiError::new(ErrorCode::LinkInvalid, message));
    }
    // The expiry is checked after the signature, since only a signed expiry can be trusted.
    if cx.now.micros().div_euclid(1_000_000) >= i64::try_from(input.expires).unwrap_or(i64::MAX) {
        let message = "the address has expired; get a new one with the manifest";
        return Err(ApiError::new(ErrorCode::LinkExpired, message));
    }
    let operator = input.account.operator();
    let mut standing = TransferAccount::reading(&cx.app.store, &input.account, input.dataset);
    standing.check(cx.now).await?;
    let (catalog, dataset) = (&cx.app.catalog, input.dataset);
    let part = catalog.part(dataset, &input.name).await?;
    let part = part.ok_or_else(no_part)?;
    let size = part.bytes;
    // A part never changes and no two have the same name, so the name is a strong entity tag.
    let tag = HeaderValue::from_str(&format!("\"{}\"", input.name)).ok();
    let tagged = |error: ApiError| match &tag {
        Some(tag) => error.header(header::ETAG, tag.clone()),
        None => error,
    };
    let none_match = input.if_none_match.as_deref();
    match conditions::met(input.if_match.as_deref(), none_match, &input.name)? {
        ConditionResult::All => {}
        ConditionResult::NotModified => {
            let mut answer = StreamedAnswer::ok(stream::empty().boxed());
            answer.status = StatusCode::NOT_MODIFIED;
            answer.headers.extend(tag.map(|tag| (header::ETAG, tag)));
            return Ok(answer);
        }
        ConditionResult::Failed => {
            let message = "the part has none of the entity tags of `If-Match`";
            let failed = ApiError::new(ErrorCode::PreconditionFailed, message);
            return Err(tagged(failed));
        }
    }
    // `Range` applies to GET only (RFC 9110 section 14.2).
    let asked = input.range.as_deref().filter(|_| cx.answer_is_sent);
    let asked = asked.filter(|_| conditions::allows_range(input.if_range.as_deref(), &input.name));
    let (status, range) = match wanted(asked, size) {
        WantedRange::Whole => (StatusCode::OK, 0..size),
        WantedRange::Range(range) => (StatusCode::PARTIAL_CONTENT, range),
        WantedRange::Beyond => return Err(tagged(beyond(size))),
    };
    let mut headers = vec![
        (header::ACCEPT_RANGES, HeaderValue::from_static("bytes")),
        (header::CONTENT_LENGTH, HeaderValue::from(range.end - range.start)),
    ];
    headers.extend(tag.map(|tag| (header::ETAG, tag)));
    if status == StatusCode::PARTIAL_CONTENT {
        let value = format!("bytes {}-{}/{size}", range.start, range.end - 1);
        headers.extend(HeaderValue::from_str(&value).map(|value| (header::CONTENT_RANGE, value)));
    }
    let (egress, now) = (cx.app.egress.clone(), cx.now);
    let sent = if cx.answer_is_sent { range.end - range.start } else { 0 };
    let mut admitted = None;
    if let Some(operator) = operator {
        // An address says nothing about the credential that it was handed out to, so it spends no credits.
        let reader = EgressReader {
            operator,
            spender: None,
            may_spend: false,
        };
        // Nothing is sent yet, so a refusal is an answer in words.
        admitted = Some((operator, egress.admit_body(&cx.app, reader, now, sent).await?));
    }
    let bytes = catalog.part_bytes(dataset, &part, range).await?;
    let clock = Arc::clone(&cx.app.clock);
    let bytes = bytes.map_err(|error| broken(&with_causes(&error)));
    let bytes = stream::try_unfold((bytes.boxed(), standing), move |(mut bytes, mut standing)| {
        let clock = Arc::clone(&clock);
        async move {
            // A download can take long, so a suspension or a takedown must also end one that has begun.
            standing.check_again(clock.now()).await.map_err(|error| ended(&error))?;
            let piece = bytes.try_next().await?;
            Ok::<_, io::Error>(piece.map(|piece| (piece, (bytes, standing))))
        }
    });
    // Counted as it is sent, so that an aborted download counts only what was transferred.
    let body = bytes.inspect_ok(move |piece| {
        if let Some((operator, admitted)) = &mut admitted {
            admitted.sent(piece.len() as u64);
            egress.add(*operator, now, piece.len() as u64);
        }
    });
    let mut answer = StreamedAnswer::ok(body.boxed());
    (answer.status, answer.headers) = (status, headers);
    Ok(answer)
}

/// Logs an error of an answer that has begun, and returns the error that closes the connection, since the status was
/// sent already.
fn broken(error: &str) -> io::Error {
    tracing::error!(
        error,
        "a download of a part failed after its answer had begun; the connection was closed"
    );
    io::Error::other("the download failed")
}

/// Returns the error that ends a download because its operator was suspended or its dataset taken down, or because that
/// could not be determined.
fn ended(error: &ApiError) -> io::Error {
    match error.kind() {
        Kind::Forbidden => io::Error::other("the operator was suspended"),
        Kind::NotFound => io::Error::other("the dataset was taken down"),
        _ => broken(error.reason()),
    }
}

fn beyond(size: u64) -> ApiError {
    let error = ApiError::new(
        ErrorCode::RangeNotSatisfiable,
        format!("the part has {size} bytes, none of them in the range"),
    );
    match HeaderValue::from_str(&format!("bytes */{size}")) {
        Ok(value) => error.header(header::CONTENT_RANGE, value),
        Err(_) => error,
    }
}

/// Range of a file that a `Range` header requests.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WantedRange {
    Whole,
    Range(Range<u64>),
    Beyond,
}

/// Parses a `Range` header. A header that is not understood is ignored, as RFC 9110 section 14.2 requires; so are
/// several ranges.
fn wanted(header: Option<&str>, size: u64) -> WantedRange {
    let ranges = header.and_then(|header| {
        let (unit, ranges) = header.split_once('=')?;
        unit.trim().eq_ignore_ascii_case("bytes").then(|| ranges.trim())
    });
    let Some((first, last)) = ranges.and_then(|ranges| ranges.split_once('-')) else {
        return WantedRange::Whole;
    };
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // A number that does not fit into 64 bits is greater than any file, so the greatest value stands for it.
        digits.then(|| text.parse().unwrap_or(u64::MAX))
    };
    match (first, last, number(first), number(last)) {
        // `bytes=-5` means the last five bytes; the last zero bytes of a file are no range.
        ("", _, None, Some(0)) => WantedRange::Beyond,
        ("", _, None, Some(_)) if size == 0 => WantedRange::Beyond,
        ("", _, None, Some(suffix)) => WantedRange::Range(size.saturating_sub(suffix)..size),
        (_, "", Some(first), None) if first < size => WantedRange::Range(first..size),
        // A range that ends before it begins is invalid, and so ignored.
        (_, _, Some(first), Some(last)) if first > last => WantedRange::Whole,
        (_, _, Some(first), Some(last)) if first < size => WantedRange::Range(first..last.saturating_add(1).min(size)),
        (_, "", Some(_), None) | (_, _, Some(_), Some(_)) => WantedRange::Beyond,
        _ => WantedRange::Whole,
    }
}

#[cfg(test)]
mod tests;
