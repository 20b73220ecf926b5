//! The built-in ledger in the database.
//!
//! Invariant: this file converts; the rules are those of [`x402::builtin`] and of the store.

use async_trait::async_trait;
use store::{Store, WalletMoved, WalletSpent, WalletTransfer};
use types::Timestamp;
use x402::builtin::{Spent, TransferOutcome, Wallets, WalletsError};
use x402::{Address, Authorization, Bytes32};

/// Wallets of the built-in ledger.
#[derive(Clone, Debug)]
pub struct StoredWallets(pub Store);

fn spent(stored: &WalletSpent) -> Result<Spent, WalletsError> {
    Ok(match stored {
        WalletSpent::Cancelled => Spent::Cancelled,
        WalletSpent::Used(transaction) => Spent::Used(transaction.parse()?),
    })
}

#[async_trait]
impl Wallets for StoredWallets {
    async fn balance(&self, wallet: Address) -> Result<u64, WalletsError> {
        Ok(u64::try_from(self.0.wallets().balance(&wallet.to_string()).await?)?)
    }

    async fn spent(&self, wallet: Address, nonce: Bytes32) -> Result<Option<Spent>, WalletsError> {
        let found = self.0.wallets().spent(&wallet.to_string(), &nonce.to_string()).await?;
        found.as_ref().map(spent).transpose()
    }

    async fn transfer(&self, transfer: &Authorization, at: Timestamp) -> Result<TransferOutcome, WalletsError> {
        let new = WalletTransfer {
            from: transfer.from.to_string(),
            to: transfer.to.to_string(),
            amount: i64::try_from(transfer.value)?,
            nonce: transfer.nonce.to_string(),
            transaction: transfer.transaction().to_string(),
            now: at,
        };
        Ok(match self.0.wallets().transfer(new).await? {
            WalletMoved::Done => TransferOutcome::Done,
            WalletMoved::Short => TransferOutcome::Short,
            WalletMoved::Spent(found) => TransferOutcome::Spent(spent(&found)?),
        })
    }

    async fn cancel(&self, wallet: Address, nonce: Bytes32, at: Timestamp) -> Result<bool, WalletsError> {
        let wallets = self.0.wallets();
        Ok(wallets.cancel(&wallet.to_string(), &nonce.to_string(), at).await?)
    }
}
