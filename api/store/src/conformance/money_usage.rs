//! Scenarios about what storage and egress cost, and that nothing changes what was posted.

use pay::BLOCK_BYTES;
use types::money::MicroUsdc;
use types::{LedgerEventId, OperatorId};

use super::fixture::{at, open, operator, race};
use super::money::{ASSET, FREE, balances, give, sound};
use crate::{EgressLease, EgressLeased, StorageCharged};

fn lease(payer: Option<OperatorId>, bytes: u64) -> EgressLease {
    EgressLease {
        account: "op:1".to_owned(),
        month: 682,
        bytes,
        free: FREE,
        platform: 1 << 40,
        payer,
        asset: ASSET.to_owned(),
        block: MicroUsdc(1_250),
        event: LedgerEventId::new(at(0)),
        spender: None,
        now: at(0),
    }
}

/// Bytes are leased up to the free figure, then a block is paid for; without credits, or permission, nothing is leased.
pub async fn egress_is_paid_before_it_is_leased(url: &str) {
    let store = open(url).await;
    let bob = operator(&store, "bob@example.org").await;
    give(&store, bob, 2_000, false, "g").await;
    let money = store.money();
    let take = async |payer, bytes| money.egress_lease(lease(payer, bytes)).await.unwrap();
    assert_eq!(take(None, FREE).await, EgressLeased::Leased);
    let refused = EgressLeased::Short {
        need: MicroUsdc(1_250),
        balance: MicroUsdc(0),
    };
    assert_eq!(take(None, 1).await, refused);
    assert_eq!(take(Some(bob), 1).await, EgressLeased::Leased);
    assert_eq!(take(None, BLOCK_BYTES - 1).await, EgressLeased::Leased);
    let short = EgressLeased::Short {
        need: MicroUsdc(1_250),
        balance: MicroUsdc(750),
    };
    assert_eq!(take(Some(bob), 1).await, short);
    assert_eq!(money.egress_month("op:1", 682).await.unwrap(), (FREE + BLOCK_BYTES, 1));
    money.egress_return("op:1", 682, 100).await.unwrap();
    assert_eq!(take(None, 100).await, EgressLeased::Leased);
    assert_eq!(money.platform_month(682).await.unwrap(), FREE + BLOCK_BYTES);
    let full = EgressLease {
        platform: FREE + BLOCK_BYTES,
        account: "op:2".to_owned(),
        ..lease(None, 1)
    };
    assert_eq!(money.egress_lease(full).await.unwrap(), EgressLeased::PlatformFull);
    assert_eq!(money.egress_month("op:2", 682).await.unwrap(), (0, 0));
    sound(&store).await;
}

/// Of many leases of the last bytes, those are given that fit.
pub async fn the_last_bytes_are_leased_once(url: &str) {
    let stores = [open(url).await, open(url).await];
    let leased = race(stores.clone(), 40, |store, _| async move {
        store.money().egress_lease(lease(None, FREE / 10)).await.unwrap()
    })
    .await;
    let given = leased.iter().filter(|leased| **leased == EgressLeased::Leased);
    assert_eq!(given.count(), 10);
    sound(&stores[0]).await;
}

/// A day of storage is charged once, or written off if credits do not cover it.
pub async fn a_day_of_storage_is_charged_once(url: &str) {
    let store = open(url).await;
    let bob = operator(&store, "bob@example.org").await;
    give(&store, bob, 100, false, "g").await;
    let charge = async |day, amount| {
        store
            .money()
            .storage_charge(ASSET, bob, day, 5, MicroUsdc(amount), at(0))
            .await
            .unwrap()
    };
    assert_eq!(charge(1, 80).await, StorageCharged::Charged);
    assert_eq!(charge(1, 80).await, StorageCharged::Already);
    assert_eq!(charge(2, 80).await, StorageCharged::WrittenOff);
    give(&store, bob, 100, false, "h").await;
    assert_eq!(charge(2, 80).await, StorageCharged::Already);
    assert_eq!(balances(&store, bob).await.credits.0, 120);
    sound(&store).await;
}

/// The journal cannot be changed, and a balance cannot be made negative, even by a statement of this program.
pub async fn the_journal_is_final(url: &str) {
    let store = open(url).await;
    let bob = operator(&store, "bob@example.org").await;
    give(&store, bob, 100, false, "g").await;
    for text in [
        "UPDATE ledger_transfers SET amount = 5",
        "DELETE FROM ledger_transfers",
        "UPDATE ledger_events SET kind = 'given'",
        "DELETE FROM ledger_events",
        "UPDATE ledger_accounts SET balance = balance - 1000",
    ] {
        let changed = store
            .write_aside(move |cx| {
                Box::pin(async move {
                    sqlx::query(text).execute(cx).await?;
                    Ok(crate::writer::Change::Keep(()))
                })
            })
            .await;
        assert!(changed.is_err(), "{text}");
    }
    sound(&store).await;
}
