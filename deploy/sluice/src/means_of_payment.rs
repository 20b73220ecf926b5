//! Payments by x402: the facilitator, the view of the chain and the treasury that the configuration names.
//!
//! Invariants:
//! - Only test networks start.
//! - The key of the treasury on a chain is a file that only the service's user reads. That of the built-in ledger, whose
//!   money is worth nothing, is in the database, so that all replicas are paid at one address.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use api::rules::settlement::{PATIENCE, StoredWallets};
use api::state::payment_services::PaymentServices;
use outbound::{ClientOptions, OutboundClient, Ports};
use store::Store;
use types::Clock;
use x402::builtin::BuiltIn;
use x402::chain::{ChainClient, RpcNode};
use x402::remote::RemoteFacilitator;
use x402::wire::Protocol;
use x402::{Address, Facilitator, Network, PaymentAsset, WalletKey};

use crate::config::Config;
use crate::layout::DataLayout;

/// Value of `pay.facilitator` that means the ledger in the database.
const BUILT_IN: &str = "builtin";
/// Name of the built-in treasury's key among the secrets of the database.
const TREASURY_SECRET: &str = "treasury";

/// Returns true if the configuration names the built-in ledger.
pub(crate) fn is_built_in(config: &Config) -> bool {
    config.pay.facilitator == BUILT_IN
}

/// Returns the asset of the configuration, paid at this address.
fn asset(config: &Config, pay_to: Address) -> anyhow::Result<PaymentAsset> {
    let pay = &config.pay;
    let network: Network = pay.network.parse().context("`pay.network`")?;
    let address: Address = pay.asset.parse().context("`pay.asset`")?;
    // A signature for a token that exists could be sent to it by anybody who sees it.
    if is_built_in(config) && address != PaymentAsset::BUILT_IN {
        bail!(
            "`pay.asset` must be {} with the built-in ledger",
            PaymentAsset::BUILT_IN.checksum()
        );
    }
    // Without a node the facilitator may be a service like this one, which has the ledger.
    if !is_built_in(config) && !pay.rpc_url.is_empty() && address == PaymentAsset::BUILT_IN {
        bail!("`pay.asset` is the token of the built-in ledger, which is on no chain: name the token of `pay.rpc_url`");
    }
    Ok(PaymentAsset {
        network,
        address,
        name: pay.asset_name.clone(),
        version: pay.asset_version.clone(),
        pay_to,
    })
}

/// Returns the built-in ledger of a database.
///
/// # Errors
/// A configuration of another facilitator, or a database that does not answer.
pub(crate) async fn built_in(config: &Config, store: &Store, clock: &Arc<dyn Clock>) -> anyhow::Result<BuiltIn> {
    if !is_built_in(config) {
        bail!("`pay.facilitator` is not \"{BUILT_IN}\", so there is no built-in ledger");
    }
    ledger(config, store, clock, &stored_key(store, clock).await?)
}

/// Returns the ledger whose treasury has this key.
fn ledger(config: &Config, store: &Store, clock: &Arc<dyn Clock>, key: &WalletKey) -> anyhow::Result<BuiltIn> {
    let wallets = Arc::new(StoredWallets(store.clone()));
    Ok(BuiltIn::new(wallets, asset(config, key.address())?, Arc::clone(clock)))
}

/// Returns what the service is paid with. Asks the facilitator what it settles.
///
/// # Errors
/// A configuration that cannot be used, a facilitator or a node of another chain.
pub(crate) async fn plane(
    config: &Config,
    layout: &DataLayout,
    store: &Store,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<PaymentServices> {
    let tariff = Arc::new(config.tariff());
    let payout_every = config.pay.payout_every.0;
    if is_built_in(config) {
        let key = stored_key(store, clock).await?;
        let ledger = Arc::new(ledger(config, store, clock, &key)?);
        let asset = asset(config, key.address())?;
        let has_v1 = asset.network.v1_name().is_some();
        return Ok(PaymentServices {
            asset,
            facilitator: Arc::clone(&ledger) as _,
            chain: Some(ledger),
            is_built_in: true,
            has_v1,
            treasury: Some(key),
            tariff,
            payout_every,
            patience: PATIENCE,
        });
    }
    // With a shifted clock the service would take authorizations that are over on the chain, or refuse
    // valid ones.
    if !config.clock.offset.0.is_zero() {
        bail!("`clock.offset` must be 0s with a facilitator by URL, whose clock is that of the chain");
    }
    let (pay_to, treasury) = treasury(config, &layout.treasury())?;
    let asset = asset(config, pay_to)?;
    let client = Arc::new(client(config)?);
    let facilitator = RemoteFacilitator::new(Arc::clone(&client), &config.pay.facilitator, asset.clone());
    // Asked at the start: a challenge must not offer a version that the facilitator would then refuse.
    let has_v1 = settles(&facilitator, &asset).await?;
    let chain: Option<Arc<dyn ChainClient>> = if config.pay.rpc_url.is_empty() {
        tracing::warn!(
            "`pay.rpc_url` is not set: a payment whose settlement is not known stays so until an administrator decides"
        );
        None
    } else {
        let node = RpcNode::new(client, config.pay.rpc_url.clone(), asset.clone());
        // A node of another chain sees none of our payments, and "not used" would be believed.
        node.check().await.context("the node of `pay.rpc_url` cannot be used")?;
        Some(Arc::new(node))
    };
    if treasury.is_none() {
        tracing::warn!("there is no key of the treasury: this process makes no payouts");
    }
    Ok(PaymentServices {
        asset,
        facilitator: Arc::new(facilitator),
        chain,
        is_built_in: false,
        has_v1,
        treasury,
        tariff,
        payout_every,
        patience: PATIENCE,
    })
}

/// Returns the view of the chain and the address of the treasury; `None` where no chain can be read, or where there was
/// never a treasury. Makes nothing and asks no facilitator.
///
/// # Errors
/// A configuration that cannot be used, or a database that does not answer.
pub(crate) async fn treasury_on_chain(
    config: &Config,
    layout: &DataLayout,
    store: &Store,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<Option<(Arc<dyn ChainClient>, Address)>> {
    if is_built_in(config) {
        let Some(secret) = store.known_secret(TREASURY_SECRET).await? else {
            return Ok(None);
        };
        let key = WalletKey::from_bytes(&secret).context("the stored key of the treasury is no key")?;
        let chain: Arc<dyn ChainClient> = Arc::new(ledger(config, store, clock, &key)?);
        return Ok(Some((chain, key.address())));
    }
    let file = layout.treasury();
    if config.pay.rpc_url.is_empty() || (config.pay.receiver.is_empty() && !file.exists()) {
        return Ok(None);
    }
    let (address, _key) = treasury(config, &file)?;
    let node = RpcNode::new(
        Arc::new(client(config)?),
        config.pay.rpc_url.clone(),
        asset(config, address)?,
    );
    let chain: Arc<dyn ChainClient> = Arc::new(node);
    Ok(Some((chain, address)))
}

/// Returns the client for the facilitator and the node. An administrator names both, so they may be private.
fn client(config: &Config) -> anyhow::Result<OutboundClient> {
    for (key, url) in [
        ("pay.facilitator", &config.pay.facilitator),
        ("pay.rpc_url", &config.pay.rpc_url),
    ] {
        if url.starts_with("http://") && !config.outbound.allow_private {
            bail!("`{key}` must be an address of https; `outbound.allow_private` permits http");
        }
    }
    let mut options = ClientOptions::new("sluice");
    // Both URLs are the administrator's. A facilitator beside the service is private, and no caller can
    // choose an address here.
    options.allow_private = true;
    options.ports = Ports::Any;
    Ok(OutboundClient::new(options)?)
}

/// Checks that the facilitator settles version 2 on our network, and returns true if it settles version 1 too.
async fn settles(facilitator: &RemoteFacilitator, asset: &PaymentAsset) -> anyhow::Result<bool> {
    let kinds = facilitator
        .supported()
        .await
        .context("the facilitator of `pay.facilitator` does not say what it settles")?;
    let settles = |protocol: Protocol| {
        let network = protocol.network(asset);
        kinds.iter().any(|kind| {
            (kind.version, kind.scheme.as_str(), &kind.network) == (protocol.number().into(), "exact", &network)
        })
    };
    // Version 2 is what challenges offer in their header, so a start without it would sell nothing.
    if !settles(Protocol::V2) {
        bail!(
            "the facilitator of `pay.facilitator` does not settle `exact` on {}",
            asset.network
        );
    }
    Ok(asset.network.v1_name().is_some() && settles(Protocol::V1))
}

/// Returns the key of the built-in treasury, which is made at its first use.
async fn stored_key(store: &Store, clock: &Arc<dyn Clock>) -> anyhow::Result<WalletKey> {
    // The database keeps the first key that any replica brings, and returns that one to all.
    let secret = store.secret(TREASURY_SECRET, WalletKey::random()?, clock.now()).await?;
    WalletKey::from_bytes(&secret).context("the stored key of the treasury is no key")
}

/// Returns the address that is paid, and the key of the treasury if this process has it.
fn treasury(config: &Config, file: &Path) -> anyhow::Result<(Address, Option<WalletKey>)> {
    let pay_to = &config.pay.receiver;
    let key = match std::fs::read_to_string(file) {
        Ok(text) => {
            let word: x402::Bytes32 = text
                .trim()
                .parse()
                .with_context(|| format!("the key in `{}`", file.display()))?;
            Some(WalletKey::from_bytes(&word.0).with_context(|| format!("`{}` has no key", file.display()))?)
        }
        // A key is made only where no address is configured. With one, a new key could not spend what
        // is paid there, and the mistake would show at the first payout.
        Err(error) if error.kind() == ErrorKind::NotFound && pay_to.is_empty() => Some(new_key(file)?),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("`{}` cannot be read", file.display())),
    };
    if pay_to.is_empty() {
        let address = key.as_ref().map(WalletKey::address).context("`pay.pay_to` is empty")?;
        return Ok((address, key));
    }
    let address: Address = pay_to.parse().context("`pay.pay_to`")?;
    match key {
        Some(key) if key.address() != address => {
            bail!("`{}` has the key of another address than `pay.pay_to`", file.display())
        }
        key => Ok((address, key)),
    }
}

/// Makes the key of the treasury, which only the service's user can read.
fn new_key(file: &Path) -> anyhow::Result<WalletKey> {
    let bytes = WalletKey::random()?;
    let key = WalletKey::from_bytes(&bytes).context("the new key of the treasury is no key")?;
    if let Some(folder) = file.parent() {
        catalog::storage::create_directory(folder)
            .with_context(|| format!("cannot create the folder `{}`", folder.display()))?;
    }
    // The mode is given at the creation: set afterwards, there would be a moment in which others can
    // read the key. `create_new` never replaces a key that has money.
    let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let written = written.and_then(|mut opened| {
        writeln!(opened, "{}", x402::Bytes32(bytes))?;
        // Synced before anybody is told the address, since money at the address of a lost key is lost.
        opened.sync_all()
    });
    written.with_context(|| format!("cannot write the key of the treasury to `{}`", file.display()))?;
    Ok(key)
}
