//! Check of the length of response bodies.
//!
//! Invariant: a stream that is shorter or longer than announced ends with an error.

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use object_store::{GetResult, GetResultPayload, Result};

use super::failed;

/// Returns the same response with a body that fails if its length differs from the announced range.
pub(super) fn whole_or_error(found: GetResult) -> GetResult {
    let GetResult {
        payload,
        meta,
        range,
        attributes,
    } = found;
    // The range comes from the response's head and not from the request, which may reach beyond the end.
    let expected = range.end.saturating_sub(range.start);
    let path = meta.location.clone();
    let payload = match payload {
        GetResultPayload::Stream(body) => {
            let checked = stream::unfold((body, 0_u64, false), move |(mut body, had, over)| {
                let path = path.clone();
                async move {
                    if over {
                        return None;
                    }
                    match body.next().await {
                        Some(Ok(piece)) => {
                            let had = had + piece.len() as u64;
                            Some((Ok(piece), (body, had, false)))
                        }
                        Some(Err(error)) => Some((Err(error), (body, had, true))),
                        None if had == expected => None,
                        None => {
                            let problem = format!("`{path}` ended after {had} bytes of {expected}");
                            let error: Result<Bytes> = Err(failed(problem));
                            Some((error, (body, had, true)))
                        }
                    }
                }
            });
            // Callers that collect a body poll once more after its end.
            GetResultPayload::Stream(checked.fuse().boxed())
        }
        file @ GetResultPayload::File(..) => file,
    };
    GetResult {
        payload,
        meta,
        range,
        attributes,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt as _;
    use object_store::ObjectMeta;
    use object_store::path::Path;

    use super::*;

    async fn read(pieces: &[&'static str], said: u64) -> Result<usize> {
        let pieces: Vec<_> = pieces
            .iter()
            .map(|piece| Ok(Bytes::from_static(piece.as_bytes())))
            .collect();
        let found = GetResult {
            payload: GetResultPayload::Stream(stream::iter(pieces).boxed()),
            meta: ObjectMeta {
                location: Path::from("a/b"),
                last_modified: std::time::SystemTime::UNIX_EPOCH.into(),
                size: 100,
                e_tag: None,
                version: None,
            },
            range: 10..10 + said,
            attributes: object_store::Attributes::new(),
        };
        let pieces: Vec<Bytes> = whole_or_error(found).into_stream().try_collect().await?;
        Ok(pieces.iter().map(Bytes::len).sum())
    }

    #[tokio::test]
    async fn a_body_of_another_length_is_an_error() {
        assert_eq!(read(&["ab", "cd"], 4).await.unwrap(), 4);
        assert_eq!(read(&[], 0).await.unwrap(), 0);
        for (pieces, said) in [(&["ab"][..], 4), (&[][..], 1), (&["abc", "de"][..], 4)] {
            let error = read(pieces, said).await.unwrap_err();
            assert!(error.to_string().contains("`a/b` ended after"), "{error}");
        }
    }
}
