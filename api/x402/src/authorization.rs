//! `TransferWithAuthorization` of EIP-3009: what a wallet signs, by EIP-712.
//!
//! Invariant: the digest covers the chain, the contract and every field, so a signature for another of them recovers
//! to another address.

use super::address::keccak;
use super::{Address, Bytes32, PaymentAsset, WalletKey, WalletSignature};

const DOMAIN_TYPE: &str = "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)";
const TRANSFER_TYPE: &str = "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,\
                             uint256 validBefore,bytes32 nonce)";

/// A transfer that its payer agrees to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorization {
    /// Address of the wallet that pays.
    pub from: Address,
    /// Wallet that is paid.
    pub to: Address,
    /// Amount in the smallest unit of the token.
    pub value: u64,
    /// Second of the Unix epoch after which the transfer can be made.
    pub valid_after: u64,
    /// Second of the Unix epoch before which the transfer can be made.
    pub valid_before: u64,
    /// Number that the payer uses once.
    pub nonce: Bytes32,
}

impl Authorization {
    /// Returns the digest that is signed for a token.
    pub fn digest(&self, asset: &PaymentAsset) -> Bytes32 {
        // The fields follow in the order of the type text, each as a word of 32 bytes: the order is
        // part of the signed hash, and the contract computes it in the same way.
        let transfer = keccak(&[
            &keccak(&[TRANSFER_TYPE.as_bytes()]).0,
            &self.from.word().0,
            &self.to.word().0,
            &Bytes32::of_number(self.value).0,
            &Bytes32::of_number(self.valid_after).0,
            &Bytes32::of_number(self.valid_before).0,
            &self.nonce.0,
        ]);
        // The two bytes of EIP-712 (version 1 of EIP-191) keep the digest apart from those of
        // transactions and of personal messages, so a signature for one cannot be used as another.
        keccak(&[&[0x19, 0x01], &domain(asset).0, &transfer.0])
    }

    /// Returns the address that a signature recovers to, if it is a key's.
    pub fn signer(&self, asset: &PaymentAsset, signature: &WalletSignature) -> Option<Address> {
        signature.signer(self.digest(asset))
    }

    /// Signs the authorization as EIP-712 typed data of the asset.
    pub fn sign(&self, asset: &PaymentAsset, key: &WalletKey) -> WalletSignature {
        key.sign(self.digest(asset))
    }

    /// Returns the hash of the transfer and its nonce, which names it in the built-in ledger.
    pub fn transaction(&self) -> Bytes32 {
        keccak(&[
            &self.from.0,
            &self.nonce.0,
            &self.to.0,
            &Bytes32::of_number(self.value).0,
        ])
    }
}

/// Returns the separator of the token's domain.
fn domain(asset: &PaymentAsset) -> Bytes32 {
    keccak(&[
        &keccak(&[DOMAIN_TYPE.as_bytes()]).0,
        &keccak(&[asset.name.as_bytes()]).0,
        &keccak(&[asset.version.as_bytes()]).0,
        // The chain is part of the domain: without it a payment on a test network could be replayed on
        // a chain where a contract has the same address.
        &Bytes32::of_number(asset.network.chain_id()).0,
        &asset.address.word().0,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_has_the_hash_of_the_contracts() {
        let hash = keccak(&[TRANSFER_TYPE.as_bytes()]).to_string();
        assert_eq!(
            hash,
            "0x7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a2267"
        );
    }
}
