//! Chains on which the service is paid, and the asset that it takes.
//!
//! Invariant: a chain whose money is worth something is not in the list, so nothing here can be configured for it.

use std::fmt;
use std::str::FromStr;

use super::Address;

/// Test networks: the id of the chain, and the name that version 1 of the protocol has for it.
const TEST_NETWORKS: [(u64, Option<&str>); 6] = [
    (84_532, Some("base-sepolia")),
    (11_155_111, None),
    (31_337, None),
    (43_113, Some("avalanche-fuji")),
    (80_002, Some("polygon-amoy")),
    (1_328, Some("sei-testnet")),
];

/// Test network on which payments settle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    chain_id: u64,
}

/// Text that names no test network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no test network; {list} are", list = known())]
pub struct NoTestNetwork(String);

fn known() -> String {
    TEST_NETWORKS.map(|(id, _)| format!("eip155:{id}")).join(", ")
}

impl Network {
    /// The test network of Base.
    pub const BASE_SEPOLIA: Self = Self { chain_id: 84_532 };

    /// Returns the id of the chain (EIP-155).
    pub const fn chain_id(self) -> u64 {
        self.chain_id
    }

    /// Returns the name that version 1 of the protocol has for the network, if there is one.
    pub fn v1_name(self) -> Option<&'static str> {
        let found = TEST_NETWORKS.iter().find(|(id, _)| *id == self.chain_id);
        found.and_then(|(_, name)| *name)
    }
}

impl FromStr for Network {
    type Err = NoTestNetwork;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = text.strip_prefix("eip155:").and_then(|id| id.parse().ok());
        let found = TEST_NETWORKS.into_iter().find(|(known, _)| Some(*known) == id);
        // The parsed number could have been spelled in another way.
        found
            .map(|(chain_id, _)| Self { chain_id })
            .filter(|network| network.to_string() == text)
            .ok_or_else(|| NoTestNetwork(text.to_owned()))
    }
}

/// As CAIP-2 spells it, such as `eip155:84532`.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "eip155:{}", self.chain_id)
    }
}

/// The token that the service takes, and where it is paid to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentAsset {
    /// Network of the token.
    pub network: Network,
    /// Address of the token's contract.
    pub address: Address,
    /// Name of the token in its EIP-712 domain.
    pub name: String,
    /// Version of the token in its EIP-712 domain.
    pub version: String,
    /// Address that is paid.
    pub pay_to: Address,
}

impl PaymentAsset {
    /// Address of the asset of the built-in ledger. No contract is there, so a signature for it moves nothing on the
    /// real network.
    pub const BUILT_IN: Address = Address([
        0x51, 0x11, 0xce, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x04, 0x02,
    ]);

    /// Returns the id under which the ledger keeps the asset.
    pub fn id(&self) -> String {
        format!("{}/{}", self.network, self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_test_networks_are_networks() {
        let network: Network = "eip155:84532".parse().unwrap();
        assert_eq!(
            (network, network.v1_name()),
            (Network::BASE_SEPOLIA, Some("base-sepolia"))
        );
        for text in [
            "eip155:1",
            "eip155:8453",
            "base-sepolia",
            "eip155:+84532",
            "eip155:084532",
            "",
        ] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_built_in_asset_has_the_address_of_the_documentation() {
        assert_eq!(
            PaymentAsset::BUILT_IN.checksum(),
            "0x5111cE0000000000000000000000000000000402"
        );
    }
}
