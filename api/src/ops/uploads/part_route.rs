//! Route of the parts of uploads, as the published document describes it.
//!
//! Invariant: it is no operation, since the bodies of parts are streamed and are no JSON.

use serde_json::{Value, json};

use crate::call::answer::JSON;

/// Path of the route.
pub(crate) const UPLOAD_PART_PATH: &str = "/uploads/{id}/{n}";
/// Returns the description of the route for the published document. `refusal` describes an error status.
pub(crate) fn described(refusal: impl Fn(u16, &str) -> Value) -> Value {
    let parameter = |name: &str, place: &str, schema: Value, description: &str| json!({"name": name, "in": place, "required": true, "schema": schema, "description": description});
    let text = |description: &str| json!({"type": "string", "description": description});
    let taken = json!({
        "type": "object",
        "required": ["n", "etag"],
        "properties": {
            "n": {"type": "integer", "description": "The part's number."},
            "etag": text("Its tag, to complete the upload with."),
        },
    });
    let mut responses = json!({"200": {
        "description": "The part is there; `ETag` is its tag.",
        "headers": {"ETag": {"description": "The part's tag.", "schema": {"type": "string"}}},
        "content": {JSON: {"schema": taken}},
    }});
    for (status, meaning) in [
        (
            400,
            "The part has another length (`length_mismatch`) or did not arrive whole (`part_broken`).",
        ),
        (
            403,
            "The address is not one of an upload (`link_invalid`), its time is over (`link_expired`), or the operator that \
             it was handed out to is suspended (`account_suspended`).",
        ),
        (
            404,
            "There is no such upload, or the id or the number is not spelt as in the address that was given.",
        ),
        (408, "The part came too slowly."),
        (409, "The upload is completed, cancelled or expired (`upload_closed`)."),
        (411, "The request has no `Content-Length`; `expected` says which."),
        (
            429,
            "Other bodies of the operator leave no room (`bodies_of_one`); `Retry-After` says when to come back.",
        ),
        (500, "The service failed to answer; `requestId` names the call."),
        (
            503,
            "There is no room on the disk or in memory (`bodies_of_all`), or a part of the service is not available.",
        ),
    ] {
        responses[status.to_string()] = refusal(status, meaning);
    }
    json!({"put": {
        "operationId": "put_upload_part",
        "summary": "Send a part of an upload, by its address in the answer that began it",
        "description": "The address is the credential; its transfers do not count as calls. Where parts go to a bucket, its \
                        addresses are the bucket's.",
        "tags": ["datasets"],
        "security": [],
        "parameters": [
            parameter("id", "path", json!({"type": "string", "format": "uuid"}), "The upload's id."),
            parameter("n", "path", json!({"type": "integer", "minimum": 1}), "The part's number."),
            parameter("expires", "query", json!({"type": "integer"}), "Until when it is good, in seconds since 1970."),
            parameter("signature", "query", json!({"type": "string"}), "What proves the rest of it."),
        ],
        "requestBody": {"required": true, "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}},
        "responses": responses,
    }})
}
