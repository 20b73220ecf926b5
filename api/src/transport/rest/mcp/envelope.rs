//! Messages of JSON-RPC 2.0, read without the arguments of a tool.
//!
//! Invariant: a member that occurs twice counts once, for everybody who reads the message here.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;

/// A request or a notification.
#[derive(Debug)]
pub(super) struct McpMessage {
    /// Id of a request: a string or an integer. A notification has none.
    pub(super) id: Option<Value>,
    /// Name of the method.
    pub(super) method: String,
    /// Parameters, without the arguments of a tool.
    params: BTreeMap<String, Value>,
    /// Arguments of a tool as the text that arrived; empty if there are none.
    pub(super) arguments: Bytes,
}

/// Reason for which a body is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BrokenMessage {
    NotJson,
    Batch,
    NotAMessage,
}

type Members<'a> = BTreeMap<String, &'a RawValue>;

impl McpMessage {
    /// Reads the message of a body.
    pub(super) fn read(body: &Bytes) -> Result<Self, BrokenMessage> {
        let whole: &RawValue = serde_json::from_slice(body).map_err(|_error| BrokenMessage::NotJson)?;
        if whole.get().starts_with('[') {
            return Err(BrokenMessage::Batch);
        }
        Self::of(whole, body).ok_or(BrokenMessage::NotAMessage)
    }

    fn of(whole: &RawValue, body: &Bytes) -> Option<Self> {
        let members: Members<'_> = serde_json::from_str(whole.get()).ok()?;
        let text = |name: &str| serde_json::from_str::<String>(members.get(name)?.get()).ok();
        text("jsonrpc").filter(|version| version == "2.0")?;
        let id = members.get("id").map(|id| serde_json::from_str::<Value>(id.get()));
        let id = id.transpose().ok()?;
        if !id
            .as_ref()
            .is_none_or(|id| id.is_string() || id.is_i64() || id.is_u64())
        {
            return None;
        }
        let mut params: Members<'_> = match members.get("params") {
            Some(params) if params.get() != "null" => serde_json::from_str(params.get()).ok()?,
            _ => Members::new(),
        };
        // The arguments are the bulk of a message, and are read once, by the rules of their tool.
        let arguments = params.remove("arguments");
        let read = |(name, value): (String, &RawValue)| Some((name, serde_json::from_str(value.get()).ok()?));
        Some(Self {
            id,
            method: text("method")?,
            params: params.into_iter().map(read).collect::<Option<_>>()?,
            arguments: arguments.map_or_else(Bytes::new, |text| body.slice_ref(text.get().as_bytes())),
        })
    }

    /// Returns a parameter that is a text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.params.get(name)?.as_str()
    }

    /// Returns a member of `_meta`.
    pub(super) fn meta(&self, name: &str) -> Option<&Value> {
        self.params.get("_meta")?.get(name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: &str) -> Result<McpMessage, BrokenMessage> {
        McpMessage::read(&Bytes::from(body.to_owned()))
    }

    #[test]
    fn arguments_are_the_text_that_arrived() {
        let params = r#"{"name":"a","arguments":{"n": 1.00, "n": 2},"_meta":{"x":[1]}}"#;
        let body = format!(r#" {{"jsonrpc":"2.0", "id": 7, "method":"tools\/call","params":{params}}} "#);
        let message = read(&body).unwrap();
        assert_eq!((message.id.clone(), message.text("name")), (Some(json!(7)), Some("a")));
        assert_eq!(message.method, "tools/call");
        assert_eq!(&message.arguments[..], br#"{"n": 1.00, "n": 2}"#);
        assert_eq!(message.meta("x"), Some(&json!([1])));
        let notification = read(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).unwrap();
        assert_eq!((notification.id, notification.arguments.len()), (None, 0));
    }

    #[test]
    fn what_is_no_message_is_named() {
        for (body, broken) in [
            ("{", BrokenMessage::NotJson),
            ("", BrokenMessage::NotJson),
            ("[]", BrokenMessage::Batch),
            (r#" [{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, BrokenMessage::Batch),
            ("5", BrokenMessage::NotAMessage),
            ("{}", BrokenMessage::NotAMessage),
            (
                r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
                BrokenMessage::NotAMessage,
            ),
            (
                r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
                BrokenMessage::NotAMessage,
            ),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
                BrokenMessage::NotAMessage,
            ),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, BrokenMessage::NotAMessage),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
                BrokenMessage::NotAMessage,
            ),
        ] {
            assert_eq!(read(body).err(), Some(broken), "{body:?}");
        }
    }
}
