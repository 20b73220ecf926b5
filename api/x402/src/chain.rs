//! Reading a chain: what became of an authorization.
//!
//! Invariants:
//! - A transfer counts only with both events of our token in one transaction that did not revert: the authorization
//!   used, and the amount moved from the payer to us.
//! - An authorization counts as unused only as of a block, whose time is returned with it.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outbound::{OutboundClient, RequestLimits};
use serde_json::{Value, json};

use super::address::keccak;
use super::facilitator::ExpectedTransfer;
use super::{Address, Bytes32, PaymentAsset, UnusableAnswer};

/// Blocks before the newest in which the events of an authorization are looked for. Authorizations last 15 minutes.
const MAX_SEARCHED_BLOCKS: u64 = 9_000;
/// Time that a question may take.
const NODE_TIMEOUT: Duration = Duration::from_secs(5);
/// Most bytes of an answer.
const MAX_ANSWER: u64 = 1 << 20;

/// Use of an authorization, as the chain shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NonceStatus {
    /// It was used for the expected transfer.
    Used(Bytes32),
    /// It was used, and not for the expected transfer as far as can be seen.
    UsedOtherwise,
    /// The authorization was cancelled before it was used.
    Cancelled,
    /// It was not used at the block of this time, in seconds.
    Unused(u64),
}

/// A view of the chain.
#[async_trait]
pub trait ChainClient: Debug + Send + Sync {
    /// Returns what became of an authorization.
    ///
    /// # Errors
    /// [`UnusableAnswer`] if the node of the chain cannot be reached or answers in another form.
    async fn lookup(&self, expected: &ExpectedTransfer) -> Result<NonceStatus, UnusableAnswer>;

    /// Returns true if a transaction made the expected transfer; false if it reverted, made another, or is not there.
    ///
    /// # Errors
    /// [`UnusableAnswer`] if the node of the chain cannot be reached or answers in another form.
    async fn confirms(&self, transaction: Bytes32, expected: &ExpectedTransfer) -> Result<bool, UnusableAnswer>;

    /// Returns the balance of a wallet.
    ///
    /// # Errors
    /// [`UnusableAnswer`] if the node of the chain cannot be reached or answers in another form.
    async fn balance(&self, wallet: Address) -> Result<u64, UnusableAnswer>;
}

/// Reads a chain through a node's JSON-RPC.
#[derive(Debug)]
pub struct RpcNode {
    client: Arc<OutboundClient>,
    url: String,
    asset: PaymentAsset,
}

impl RpcNode {
    /// Creates a reader of the node at `url`.
    pub const fn new(client: Arc<OutboundClient>, url: String, asset: PaymentAsset) -> Self {
        Self { client, url, asset }
    }

    /// Checks that the node is on the chain of the asset.
    ///
    /// # Errors
    /// [`UnusableAnswer`], also for another chain.
    pub async fn check(&self) -> Result<(), UnusableAnswer> {
        let id = self.call("eth_chainId", json!([])).await?;
        // A node of another chain would answer "not used" for every authorization, which counts as
        // proof that nobody was paid.
        if quantity(&id) == Some(self.asset.network.chain_id()) {
            return Ok(());
        }
        Err(wrong("the node is on another chain"))
    }

    async fn call(&self, method: &str, params: Value) -> Result<Value, UnusableAnswer> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let limits = RequestLimits {
            whole: NODE_TIMEOUT,
            ..RequestLimits::of_body(MAX_ANSWER)
        };
        let answer = self.client.post_json(&self.url, body.into(), limits).await?;
        let bytes = answer.bytes().await?;
        let mut value: Value = serde_json::from_slice(&bytes).map_err(|_error| wrong("the answer is not JSON"))?;
        match value.get_mut("result") {
            Some(result) => Ok(result.take()),
            // The node's own text is left out: it may repeat the request, and the reason ends up in
            // logs and rows.
            None => Err(wrong("the node answers with an error")),
        }
    }

    async fn read(&self, data: &[&[u8]], block: &str) -> Result<Bytes32, UnusableAnswer> {
        let data = format!("0x{}", data_encoding::HEXLOWER.encode(&data.concat()));
        let params = json!([{"to": self.asset.address.to_string(), "data": data}, block]);
        let answer = self.call("eth_call", params).await?;
        let word = answer.as_str().and_then(|text| text.parse().ok());
        word.ok_or_else(|| wrong("the token answers with no word"))
    }

    /// Returns the transaction that has the event about an authorization.
    async fn event(
        &self,
        name: &str,
        expected: &ExpectedTransfer,
        newest: u64,
    ) -> Result<Option<Bytes32>, UnusableAnswer> {
        let params = json!([{
            "address": self.asset.address.to_string(),
            // Public nodes refuse a search over too many blocks, so the range is bounded; it covers the
            // life of an authorization many times over.
            "fromBlock": format!("{:#x}", newest.saturating_sub(MAX_SEARCHED_BLOCKS)),
            "toBlock": "latest",
            "topics": [topic(name).to_string(), expected.payer.word().to_string(), expected.nonce.to_string()],
        }]);
        let logs = self.call("eth_getLogs", params).await?;
        let first = logs.as_array().and_then(|logs| logs.first());
        let hash = first.and_then(|log| log["transactionHash"].as_str());
        Ok(hash.and_then(|hash| hash.parse().ok()))
    }
}

const USED_EVENT: &str = "AuthorizationUsed(address,bytes32)";
const CANCELLED_EVENT: &str = "AuthorizationCanceled(address,bytes32)";
const TRANSFER_EVENT: &str = "Transfer(address,address,uint256)";

#[async_trait]
impl ChainClient for RpcNode {
    async fn lookup(&self, expected: &ExpectedTransfer) -> Result<NonceStatus, UnusableAnswer> {
        let block = self.call("eth_getBlockByNumber", json!(["latest", false])).await?;
        let (number, time) = (quantity(&block["number"]), quantity(&block["timestamp"]));
        let (Some(number), Some(time)) = (number, time) else {
            return Err(wrong("the node's newest block has no number or time"));
        };
        let selector = keccak(&[b"authorizationState(address,bytes32)"]);
        let call: [&[u8]; 3] = [&selector.0[..4], &expected.payer.word().0, &expected.nonce.0];
        // The state as of the block whose time is returned, not as of a later one.
        let state = self.read(&call, &format!("{number:#x}")).await?;
        if state.number() == Some(0) {
            return Ok(NonceStatus::Unused(time));
        }
        if let Some(transaction) = self.event(USED_EVENT, expected, number).await? {
            let is_ours = self.confirms(transaction, expected).await?;
            return Ok(if is_ours {
                NonceStatus::Used(transaction)
            } else {
                NonceStatus::UsedOtherwise
            });
        }
        let cancelled = self.event(CANCELLED_EVENT, expected, number).await?;
        Ok(cancelled.map_or(NonceStatus::UsedOtherwise, |_transaction| NonceStatus::Cancelled))
    }

    async fn confirms(&self, transaction: Bytes32, expected: &ExpectedTransfer) -> Result<bool, UnusableAnswer> {
        let receipt = self
            .call("eth_getTransactionReceipt", json!([transaction.to_string()]))
            .await?;
        // The receipt of a reverted transaction exists too, and moved nothing.
        if receipt["status"].as_str() != Some("0x1") {
            return Ok(false);
        }
        let payer = expected.payer.word();
        let used = [topic(USED_EVENT), payer, expected.nonce];
        let moved = [topic(TRANSFER_EVENT), payer, expected.pay_to.word()];
        let amount = Bytes32::of_number(expected.amount);
        let logs = receipt["logs"].as_array().map(Vec::as_slice).unwrap_or_default();
        // Anybody can deploy a contract that emits these events, so only those of our token count.
        let ours = || logs.iter().filter(|log| self.is_of_token(log));
        // Both events are needed: the use alone does not say how much moved, and the transfer alone
        // could be another payment of the same amount.
        let is_used = ours().any(|log| topics(log) == used);
        let is_moved = ours().any(|log| topics(log) == moved && word(&log["data"]) == Some(amount));
        Ok(is_used && is_moved)
    }

    async fn balance(&self, wallet: Address) -> Result<u64, UnusableAnswer> {
        let selector = keccak(&[b"balanceOf(address)"]);
        let balance = self.read(&[&selector.0[..4], &wallet.word().0], "latest").await?;
        balance.number().ok_or_else(|| wrong("the balance is too large"))
    }
}

impl RpcNode {
    fn is_of_token(&self, log: &Value) -> bool {
        log["address"].as_str().and_then(|text| text.parse().ok()) == Some(self.asset.address)
    }
}

fn topic(event: &str) -> Bytes32 {
    keccak(&[event.as_bytes()])
}

fn topics(log: &Value) -> Vec<Bytes32> {
    let topics = log["topics"].as_array().map(Vec::as_slice).unwrap_or_default();
    topics.iter().filter_map(word).collect()
}

fn word(value: &Value) -> Option<Bytes32> {
    value.as_str()?.parse().ok()
}

/// Reads a number as JSON-RPC of Ethereum spells it.
fn quantity(value: &Value) -> Option<u64> {
    // A number that does not fit is none: amounts and times above 64 bits are not ours to interpret.
    u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok()
}

fn wrong(reason: &str) -> UnusableAnswer {
    UnusableAnswer {
        reason: reason.to_owned(),
        is_unsent: false,
    }
}
