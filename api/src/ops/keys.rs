//! Operation that publishes the keys for verifying manifests.

use proof::KeysDocument;

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
}

async fn keys(cx: Cx, _: NoInput) -> Result<JsonReply<KeysDocument>, ApiError> {
    let ring = KeyRing::load(&cx.app.store, &*cx.app.clock).await?;
    Ok(JsonReply::ok(ring.document(ring.issued_at(cx.now))?))
}

#[cfg(test)]
mod tests;
