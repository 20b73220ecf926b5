//! Serde functions for instants as text.
//!
//! Invariant: an instant has one text, that of `Timestamp`'s `Display`, so a text that was read is written again
//! unchanged.

use serde::{Deserialize as _, Deserializer, Serializer};
use types::Timestamp;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's `with` calls it so")]
pub(crate) fn serialize<S: Serializer>(instant: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(instant)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    parse(&String::deserialize(deserializer)?)
}

fn parse<E: serde::de::Error>(text: &str) -> Result<Timestamp, E> {
    let instant = text.parse::<Timestamp>().ok();
    // A text in another form is refused, since signatures cover the text.
    let instant = instant.filter(|instant| instant.to_string() == text);
    instant.ok_or_else(|| {
        E::custom(format!(
            "`{text}` is not RFC 3339 in UTC with `Z` and no digit too many"
        ))
    })
}

/// The same functions for an optional instant.
pub(crate) mod optional {
    use serde::{Deserialize as _, Deserializer, Serializer};
    use types::Timestamp;

    #[expect(clippy::ref_option, reason = "serde's `with` calls it so")]
    pub(crate) fn serialize<S: Serializer>(instant: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
        match instant {
            Some(instant) => super::serialize(instant, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.as_deref().map(super::parse).transpose()
    }
}
