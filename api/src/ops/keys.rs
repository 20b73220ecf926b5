//! Operations that publish the keys: for manifests and receipts of this service, and for clients that resolve `did:web`.

use proof::KeysDocument;
use proof::jws::{DidDocument, ServiceDid};

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::Spec;
use crate::call::wire::NoInput;
use crate::error::ApiError;
use crate::keys::KeyRing;

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "service_keys",
            path: "/.well-known/service-keys",
            summary: "Every key that manifests were or are signed with",
            description: "Oldest first, each endorsed by the one before it, the last one current. The document only \
                          grows: pin the first key and the highest `sequence` seen.",
            tag: "service",
            lenient: true,
            success: &[(200, "The keys, signed with the current one.")],
            ..Spec::BASE
        },
        &[],
        keys,
    );
    table.add(
        Spec {
            name: "did_document",
            path: "/.well-known/did.json",
            summary: "The keys that verify offers and receipts of x402 (`did:web`)",
            description: "The current key and the retired ones; a revoked key is left out. They are those of \
                          `/.well-known/service-keys`, which proves more.",
            tag: "service",
            lenient: true,
            success: &[(200, "The document (W3C DID Core 1.0).")],
            ..Spec::BASE
        },
        &[],
        did,
    );
}

async fn did(cx: Cx, _: NoInput) -> Result<JsonReply<DidDocument>, ApiError> {
    let ring = KeyRing::load(&cx.app.store, &*cx.app.clock).await?;
    let did = ServiceDid::of_origin(&cx.app.config.public_url);
    Ok(JsonReply::ok(DidDocument::of_keys(&did, ring.keys())))
}

async fn keys(cx: Cx, _: NoInput) -> Result<JsonReply<KeysDocument>, ApiError> {
    let ring = KeyRing::load(&cx.app.store, &*cx.app.clock).await?;
    Ok(JsonReply::ok(ring.document(ring.issued_at(cx.now))?))
}

#[cfg(test)]
mod tests;
