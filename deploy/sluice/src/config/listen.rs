//! An optional address to listen on.

use std::net::SocketAddr;

use serde::Deserialize;

/// An address and port. An empty text means `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Listen(pub Option<SocketAddr>);

/// The error of a text that is neither an address with a port nor empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an address and a port, such as `127.0.0.1:9090`, nor empty")]
pub struct ListenError(String);

impl TryFrom<String> for Listen {
    type Error = ListenError;

    fn try_from(text: String) -> Result<Self, ListenError> {
        if text.is_empty() {
            return Ok(Self(None));
        }
        text.parse()
            .map(|address| Self(Some(address)))
            .map_err(|_error| ListenError(text))
    }
}
