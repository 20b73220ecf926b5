//! Proof of a wallet: a message by EIP-4361 that its key signed (EIP-191).
//!
//! Invariant: the service writes the message, with its own domain and a nonce of its own; a signature of another text
//! recovers to another address.

use super::address::keccak;
use super::{Address, Bytes32, Network, WalletSignature};

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
        let (wallet, chain) = (wallet.checksum(), network.chain_id());
        format!(
            "{domain} wants you to sign in with your Ethereum account:\n{wallet}\n\n{purpose}\n\nURI: {uri}\n\
             Version: 1\nChain ID: {chain}\nNonce: {nonce}\nIssued At: {issued_at}"
        )
    }
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
