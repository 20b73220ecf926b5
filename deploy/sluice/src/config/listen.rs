//! An address to listen on, or none.

use std::net::SocketAddr;

use serde::Deserialize;

/// An address and port; none where the text is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Listen(pub Option<SocketAddr>);

/// Why a text is not an address.
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
