//! Proof of a payout wallet: the operator signs a message of the service with the wallet's key.
//!
//! Invariant: the message names operator and wallet, so its signature proves one wallet to one operator. Without a proof
//! an address receives payouts and nothing else: anybody could have entered it.

use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use x402::Address;
use x402::sign_in::{Statement, signer};

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{Effect, OPERATOR, Scope, Spec};
use crate::call::wire::NoInput;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::rules::settlement;

const PATH: &str = "/operators/payout-proof";

pub(super) fn add(table: &mut Operations) {
    let base = Spec {
        path: PATH,
        tag: "payments",
        accepts: OPERATOR,
        ..Spec::BASE
    };
    let failure = &[(
        409,
        "The operator has no payout address in force (`no_payout_address`).",
    )];
    table.add(
        Spec {
            name: "payout_proof_message",
            summary: "The message that proves the payout wallet once its key signed it (EIP-4361)",
            failure,
            ..base.clone()
        },
        &[],
        message,
    );
    table.add(
        Spec {
            name: "prove_payout_address",
            method: Method::POST,
            summary: "Proves the payout wallet by a signature, so that its purchases are the operator's",
            scope: Scope::Write,
            effect: Effect::Write,
            failure: &[
                (400, "The signature is not one of the wallet over the message."),
                (
                    409,
                    "The operator has no payout address in force (`no_payout_address`), or another operator proved it \
                     (`address_taken`).",
                ),
            ],
            example: r#"{"signature": "0x…"}"#,
            ..base
        },
        &[],
        prove,
    );
}

/// Message that proves a wallet once signed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ToSign {
    /// Wallet whose key signs.
    address: String,
    /// Text to sign as a personal message (EIP-191).
    message: String,
    /// True if the wallet has proved itself.
    proved: bool,
}

/// Returns the wallet in force and the message that proves it.
async fn to_sign(cx: &Cx) -> Result<(Address, ToSign), ApiError> {
    let operator = cx.the_operator()?;
    let payout = cx.app.store.accounts().payout(operator, cx.now).await?;
    let address = payout.address.ok_or_else(|| {
        ApiError::new(
            ErrorCode::NoPayoutAddress,
            "set a payout address in the console, and wait until it is in force",
        )
    })?;
    let wallet: Address = address.parse().map_err(ApiError::internal)?;
    let links = cx.app.process.links.signer(&cx.app.store, cx.now).await?;
    let base = &cx.app.config.public_url;
    // The time of the change and not of now, so that GET and POST make the same message without keeping
    // it.
    let issued_at = payout.changed_at.unwrap_or_default().to_string();
    let statement = Statement {
        domain: base.split_once("://").map_or(base.as_str(), |(_, host)| host),
        wallet,
        purpose: &format!("This wallet receives the payouts of the operator {operator}, and buys for it."),
        uri: &format!("{base}{PATH}"),
        network: cx.app.payments.asset.network,
        nonce: &links.wallet_nonce(operator, &wallet.to_string()),
        issued_at: &issued_at,
    };
    let message = ToSign {
        address: wallet.checksum(),
        message: statement.text(),
        proved: payout.proved_at.is_some(),
    };
    Ok((wallet, message))
}

async fn message(cx: Cx, _: NoInput) -> Result<JsonReply<ToSign>, ApiError> {
    Ok(JsonReply::ok(to_sign(&cx).await?.1))
}

/// Returns the message that the wallet in force signs; `None` if there is no such wallet, or it has proved itself.
pub(in crate::ops) async fn message_to_sign(cx: &Cx) -> Result<Option<String>, ApiError> {
    match to_sign(cx).await {
        Ok((_, to_sign)) => Ok((!to_sign.proved).then_some(to_sign.message)),
        Err(error) if error.status() == http::StatusCode::CONFLICT => Ok(None),
        Err(error) => Err(error),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SignedWalletInput {
    /// Signature of the wallet over the message: `0x` and hexadecimal digits.
    #[schemars(length(max = 200))]
    signature: String,
}

/// Outcome of a proof.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Proved")]
#[serde(rename_all = "camelCase")]
struct WalletProof {
    /// Wallet that is proved.
    address: String,
    /// Number of earlier purchases of the wallet that are the operator's from now on.
    adopted: u64,
}

async fn prove(cx: Cx, input: SignedWalletInput) -> Result<JsonReply<WalletProof>, ApiError> {
    let (wallet, adopted) = prove_by(&cx, &input.signature).await?;
    Ok(JsonReply::ok(WalletProof {
        address: wallet.checksum(),
        adopted,
    }))
}

/// Proves the wallet in force by a signature, and returns it with the number of its purchases that are the operator's
/// from now on.
pub(in crate::ops) async fn prove_by(cx: &Cx, signature: &str) -> Result<(Address, u64), ApiError> {
    let operator = cx.the_operator()?;
    let (wallet, to_sign) = to_sign(cx).await?;
    // The message is made again here, and nothing of it comes from the caller: a signature of another
    // text recovers to another address.
    if signer(&to_sign.message, signature) != Some(wallet) {
        let problem = "must be the signature of the payout wallet over the message";
        return Err(ApiError::invalid("/signature", problem));
    }
    let accounts = cx.app.store.accounts();
    if !accounts.payout_prove(operator, &wallet.to_string(), cx.now).await? {
        let message = "another operator has proved this wallet, or the payout address has just changed";
        return Err(ApiError::new(ErrorCode::AddressTaken, message));
    }
    let owner = settlement::owner(&cx.app.payments.asset, &wallet);
    // Only after the proof. With a mere address, anybody could claim what a stranger's wallet has
    // bought.
    let adopted = cx.app.store.money().adopt_wallet(&owner, operator).await?;
    Ok((wallet, adopted))
}
