//! Proof of a wallet: a message by EIP-4361 that its key signed (EIP-191), as a page asks for it, and as the extension
//! `sign-in-with-x` carries it in a header.
//!
//! Invariant: a message begins with the domain of the service, and has a nonce of the service. A signature of another text
//! recovers to another address.

use std::time::Duration;

use data_encoding::BASE64;
use serde::Deserialize;
use types::Timestamp;

use super::address::keccak;
use super::{Address, Bytes32, MAX_HEADER, Network, WalletSignature};

/// Time for which a message can be used after it was made.
pub const SIGN_IN_LIFE: Duration = Duration::from_mins(5);
/// Time by which the clocks of two replicas may differ.
const CLOCK_SKEW: Duration = Duration::from_secs(10);
/// Version of the messages.
const MESSAGE_VERSION: &str = "1";
/// Kind of the signature.
pub(crate) const SIGNATURE_KIND: &str = "eip191";

/// Message that a wallet signs.
#[derive(Clone, Debug)]
pub struct Statement<'a> {
    /// Host of the service, with its port unless it is the usual one.
    pub domain: &'a str,
    /// Wallet that proves itself.
    pub wallet: Address,
    /// One line for people.
    pub purpose: &'a str,
    /// Address of the page.
    pub uri: &'a str,
    /// Network of the wallet.
    pub network: Network,
    /// Text that no other message has.
    pub nonce: &'a str,
    /// Time, by RFC 3339.
    pub issued_at: &'a str,
}

impl Statement<'_> {
    /// Returns the text of the message.
    pub fn text(&self) -> String {
        let Self {
            domain,
            wallet,
            purpose,
            uri,
            network,
            nonce,
            issued_at,
        } = self;
        let wallet = wallet.checksum();
        format!(
            "{}\n\n{purpose}\n\n{}",
            opening(domain, &wallet),
            facts(uri, network.chain_id(), nonce, issued_at)
        )
    }
}

fn opening(domain: &str, wallet: &str) -> String {
    format!("{domain} wants you to sign in with your Ethereum account:\n{wallet}")
}

fn facts(uri: &str, chain: u64, nonce: &str, issued_at: &str) -> String {
    format!("URI: {uri}\nVersion: {MESSAGE_VERSION}\nChain ID: {chain}\nNonce: {nonce}\nIssued At: {issued_at}")
}

/// Returns the digest of a personal message (EIP-191).
pub fn digest(text: &str) -> Bytes32 {
    // The first byte cannot begin an encoded transaction (EIP-191), so the signature of a text is never
    // one of a transfer.
    let prefix = format!("\u{19}Ethereum Signed Message:\n{}", text.len());
    keccak(&[prefix.as_bytes(), text.as_bytes()])
}

/// Returns the wallet whose key signed a text.
pub fn signer(text: &str, signature: &str) -> Option<Address> {
    WalletSignature::read(signature).ok()?.signer(digest(text))
}

/// Returns the host of an origin, with its port unless it is the usual one of its scheme, as browsers name it.
pub fn host_of(origin: &str) -> &str {
    let (scheme, rest) = origin.split_once("://").unwrap_or(("", origin));
    let host = rest.split('/').next().unwrap_or_default();
    let usual = match scheme {
        "https" => ":443",
        _ => ":80",
    };
    host.strip_suffix(usual).unwrap_or(host)
}

/// Reason for which a header proves no wallet. Its word is that of the packages of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignInProblem {
    /// The header is no Base64 of strict JSON with the members of the extension.
    Header,
    /// It was made for another domain.
    Domain,
    /// It was made for the address of another origin.
    Uri,
    /// The wallet is of another chain, or the signature of another kind.
    Chain,
    /// It has no time that can be read.
    IssuedAt,
    /// It is too old.
    TooOld,
    /// It is from the future.
    Future,
    /// Its own end is over, or its beginning is to come.
    Expired,
    /// The nonce is not of the service, or was used.
    Nonce,
    /// The wallet did not sign it.
    Signature,
}

impl SignInProblem {
    /// Returns the word of the reason.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Header => "invalid_siwx_header",
            Self::Domain => "invalid_siwx_domain_mismatch",
            Self::Uri => "invalid_siwx_uri_mismatch",
            Self::Chain => "invalid_siwx_chain_id",
            Self::IssuedAt => "invalid_siwx_issued_at",
            Self::TooOld => "invalid_siwx_issued_at_too_old",
            Self::Future => "invalid_siwx_issued_at_in_future",
            Self::Expired => "invalid_siwx_expired",
            Self::Nonce => "invalid_siwx_nonce",
            Self::Signature => "invalid_siwx_signature",
        }
    }

    /// Returns the rule that is broken, as a part of a sentence.
    pub const fn rule(self) -> &'static str {
        match self {
            Self::Header => "the header must be Base64 of the JSON that the extension `sign-in-with-x` describes",
            Self::Domain => "`domain` must be that of the challenge",
            Self::Uri => "`uri` must be an address of this service",
            Self::Chain => "`chainId` must be that of the challenge, with the type `eip191`",
            Self::IssuedAt => "`issuedAt`, `expirationTime` and `notBefore` must be times (RFC 3339)",
            Self::TooOld => "`issuedAt` must be at most 5 minutes ago; take a new challenge",
            Self::Future => "`issuedAt` must not be in the future",
            Self::Expired => "the message must be in force; take a new challenge",
            Self::Nonce => "`nonce` must be one of this service that was not used; take a new challenge",
            Self::Signature => "`signature` must be that of the wallet `address` over the message",
        }
    }
}

/// Content of the header. Members that this build does not know are ignored, as other servers do.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SignInMembers {
    domain: String,
    address: String,
    statement: Option<String>,
    uri: String,
    version: String,
    chain_id: String,
    #[serde(rename = "type")]
    kind: String,
    nonce: String,
    issued_at: String,
    expiration_time: Option<String>,
    not_before: Option<String>,
    request_id: Option<String>,
    resources: Option<Vec<String>>,
    signature: String,
}

/// Wallet that a header proves, with the message that it signed. If the nonce is of the service is still to be checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIn {
    /// Wallet whose key signed.
    pub wallet: Address,
    /// Nonce of the message.
    pub nonce: String,
    /// Time of the challenge.
    pub issued_at: Timestamp,
}

impl SignedIn {
    /// Reads a header for the service at `origin`, and checks everything but its nonce.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn read(header: &str, origin: &str, network: Network, now: Timestamp) -> Result<Self, SignInProblem> {
        if header.len() > MAX_HEADER {
            return Err(SignInProblem::Header);
        }
        let text = BASE64
            .decode(header.as_bytes())
            .map_err(|_error| SignInProblem::Header)?;
        let value = types::json::parse(&text).map_err(|_error| SignInProblem::Header)?;
        let members: SignInMembers = serde_json::from_value(value).map_err(|_error| SignInProblem::Header)?;
        if members.domain != host_of(origin) {
            return Err(SignInProblem::Domain);
        }
        let is_below = |uri: &str| {
            uri.strip_prefix(origin)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if !is_below(&members.uri) {
            return Err(SignInProblem::Uri);
        }
        let is_ours = members.chain_id == network.to_string() && members.kind == SIGNATURE_KIND;
        if !is_ours || members.version != MESSAGE_VERSION {
            return Err(SignInProblem::Chain);
        }
        let issued_at = members.in_force(now)?;
        let wallet: Address = members.address.parse().map_err(|_error| SignInProblem::Signature)?;
        // A line break in a member could make one message look like another.
        let text = members.text(network).ok_or(SignInProblem::Header)?;
        if signer(&text, &members.signature) != Some(wallet) {
            return Err(SignInProblem::Signature);
        }
        Ok(Self {
            wallet,
            nonce: members.nonce,
            issued_at,
        })
    }
}

impl SignInMembers {
    /// Checks the times, and returns that of the challenge.
    fn in_force(&self, now: Timestamp) -> Result<Timestamp, SignInProblem> {
        let time = |text: &str| text.parse::<Timestamp>().map_err(|_error| SignInProblem::IssuedAt);
        let issued_at = time(&self.issued_at)?;
        if issued_at > now.plus(CLOCK_SKEW) {
            return Err(SignInProblem::Future);
        }
        if issued_at.plus(SIGN_IN_LIFE) < now {
            return Err(SignInProblem::TooOld);
        }
        let ends = self.expiration_time.as_deref().map(time).transpose()?;
        let begins = self.not_before.as_deref().map(time).transpose()?;
        if ends.is_some_and(|ends| ends < now) || begins.is_some_and(|begins| begins > now) {
            return Err(SignInProblem::Expired);
        }
        Ok(issued_at)
    }

    /// Returns the message that was signed; `None` if a member has a control character.
    fn text(&self, network: Network) -> Option<String> {
        let mut lines = vec![opening(&self.domain, &self.address), String::new()];
        lines.extend(self.statement.clone());
        lines.push(String::new());
        lines.push(facts(&self.uri, network.chain_id(), &self.nonce, &self.issued_at));
        let further = [
            ("Expiration Time", &self.expiration_time),
            ("Not Before", &self.not_before),
            ("Request ID", &self.request_id),
        ];
        let given = further
            .iter()
            .filter_map(|(name, value)| Some(format!("{name}: {}", value.as_ref()?)));
        lines.extend(given);
        let resources = self.resources.as_deref();
        lines.extend(resources.map(|_| "Resources:".to_owned()));
        lines.extend(resources.into_iter().flatten().map(|resource| format!("- {resource}")));
        let members = [&self.domain, &self.address, &self.uri, &self.nonce, &self.issued_at]
            .into_iter()
            .chain(&self.statement)
            .chain(further.into_iter().filter_map(|(_, value)| value.as_ref()))
            .chain(resources.into_iter().flatten());
        let is_plain = members
            .flat_map(|member| member.chars())
            .all(|letter| !letter.is_control());
        is_plain.then(|| lines.join("\n"))
    }
}
