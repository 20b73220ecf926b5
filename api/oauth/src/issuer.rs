//! The issuer, its endpoints, and the resources that tokens are for.
//!
//! Invariant: a token is for exactly one resource, and `spend` exists for [`Resource::Mcp`] only.

use std::str::FromStr;

use url::Url;

use crate::redirect::LOOPBACK_ORIGINS;
use crate::scope::{Scope, Scopes};

/// A server that takes tokens of this issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// `/mcp`, which has all tools.
    Mcp,
    /// `/mcp/directory`, which has no tool that spends.
    Directory,
}

impl Resource {
    /// Every resource of the service.
    pub const ALL: [Self; 2] = [Self::Mcp, Self::Directory];

    /// Returns the path of the resource.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Mcp => "/mcp",
            Self::Directory => "/mcp/directory",
        }
    }

    /// Returns the scopes that a token for the resource can have.
    pub const fn scopes(self) -> Scopes {
        match self {
            Self::Mcp => Scopes::ALL,
            Self::Directory => Scopes::of(&[Scope::Read, Scope::Write]),
        }
    }
}

/// A text is the path of no resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the resources are `/mcp` and `/mcp/directory`")]
pub struct UnknownResource;

impl FromStr for Resource {
    type Err = UnknownResource;

    fn from_str(path: &str) -> Result<Self, UnknownResource> {
        let found = Self::ALL.into_iter().find(|resource| resource.path() == path);
        found.ok_or(UnknownResource)
    }
}

/// The issuer identifier: the public URL of the service without a last slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issuer(String);

/// The public URL of the service cannot be an issuer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` cannot be an issuer: it has to be a URL with a host, without a path, a query, a fragment and a user")]
pub struct IssuerError(String);

impl Issuer {
    /// Creates an issuer. Its well-known documents are at the root, so that a path is refused.
    ///
    /// # Errors
    /// [`IssuerError`] for a text that is no URL, or one with a path, a query, a fragment or a user.
    pub fn new(public_url: &str) -> Result<Self, IssuerError> {
        let refuse = || IssuerError(public_url.to_owned());
        let url = Url::parse(public_url).map_err(|_error| refuse())?;
        // A URL without a path is written with a slash, which identifiers do not have.
        let text = url.as_str().strip_suffix('/').ok_or_else(refuse)?;
        let origin = url.origin();
        // The text of an origin has neither user, path, query nor fragment.
        if !origin.is_tuple() || origin.ascii_serialization() != text {
            return Err(refuse());
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the issuer as it is in `iss` and in the metadata.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the URL of a path, which begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }

    /// Returns the URL of a resource, which is its identifier (RFC 8707).
    pub fn resource_url(&self, resource: Resource) -> String {
        self.url(resource.path())
    }

    /// Returns the resource with this identifier. Scheme and host are compared without regard to case, the path exactly
    /// but for a slash at its end, which people write. At a loopback address each of its names stands for the others.
    pub fn resource(&self, identifier: &str) -> Option<Resource> {
        let path_at = identifier.match_indices('/').nth(2)?.0;
        let (origin, path) = identifier.split_at(path_at);
        let path = path.strip_suffix('/').unwrap_or(path);
        let found = Resource::ALL.into_iter().find(|resource| resource.path() == path)?;
        self.has_origin(origin).then_some(found)
    }

    /// Returns true if an origin (RFC 6454 section 6.2) is that of the issuer.
    fn has_origin(&self, origin: &str) -> bool {
        match (loopback_port(origin), loopback_port(&self.0)) {
            (Some(asked), Some(own)) => asked == own,
            _ => origin.eq_ignore_ascii_case(&self.0),
        }
    }
}

/// Returns the port of an origin at a loopback address, with its colon.
fn loopback_port(origin: &str) -> Option<&str> {
    let rest = LOOPBACK_ORIGINS
        .into_iter()
        .find_map(|host| origin.strip_prefix(host))?;
    (rest.is_empty() || rest.starts_with(':')).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_is_an_origin() {
        for good in [
            "https://Sluice.Example/",
            "https://sluice.example",
            "https://sluice.example:443",
        ] {
            assert_eq!(Issuer::new(good).unwrap().as_str(), "https://sluice.example");
        }
        assert_eq!(
            Issuer::new("http://127.0.0.1:8080").unwrap().as_str(),
            "http://127.0.0.1:8080"
        );
        for bad in [
            "",
            "sluice.example",
            "https://a.example/b",
            "https://a.example/?b",
            "https://a@b.example/",
            "data:a",
        ] {
            assert!(Issuer::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_resource_is_named_by_its_exact_url() {
        let issuer = Issuer::new("https://sluice.example").unwrap();
        assert_eq!(issuer.resource("https://sluice.example/mcp"), Some(Resource::Mcp));
        assert_eq!(issuer.resource("HTTPS://Sluice.Example/mcp"), Some(Resource::Mcp));
        assert_eq!(
            issuer.resource("https://sluice.example/mcp/directory"),
            Some(Resource::Directory)
        );
        assert_eq!(issuer.resource("https://sluice.example/mcp/"), Some(Resource::Mcp));
        let wrong = "https://sluice.example https://sluice.example/ https://sluice.example/mcp// https://sluice.example/MCP \
             https://sluice.example/mcp?a https://sluice.example/mcp#a https://sluice.example/x/../mcp /mcp mcp \
             https://sluice.example.evil.example/mcp https://evil.example/mcp http://sluice.example/mcp \
             https://sluice.example:443/mcp https://sluice.exampl\u{e9}/mcp";
        for wrong in wrong.split_whitespace() {
            assert_eq!(issuer.resource(wrong), None, "{wrong}");
        }
        let local = Issuer::new("http://127.0.0.1:8080").unwrap();
        for host in ["127.0.0.1", "localhost", "[::1]"] {
            let resource = format!("http://{host}:8080/mcp");
            assert_eq!(local.resource(&resource), Some(Resource::Mcp), "{resource}");
            assert_eq!(issuer.resource(&resource), None, "{resource}");
        }
        for wrong in
            "http://localhost/mcp http://localhost:8081/mcp https://localhost:8080/mcp http://127.0.0.2:8080/mcp \
                      http://localhost.evil.example:8080/mcp http://localhost@evil.example/mcp"
                .split_whitespace()
        {
            assert_eq!(local.resource(wrong), None, "{wrong}");
        }
    }
}
