//! Tariff: fees, free amounts and waiting times of the platform. The configuration is the only source of these values.

use std::time::Duration;

use types::money::MicroUsdc;

use crate::Brackets;

/// Price of a unit without a price of its own.
pub const UNIT_DEFAULT: MicroUsdc = MicroUsdc(10_000);
/// Price of a version of a paid dataset without a price of its own.
pub const DEFAULT_DATASET_PRICE: MicroUsdc = MicroUsdc(100_000);
/// Least price that is not free.
pub const MIN_PRICE: MicroUsdc = MicroUsdc(10_000);
/// Bytes of a block of storage or egress.
pub const BLOCK_BYTES: u64 = 64 * 1024 * 1024;

/// Prices of the platform, its fee, and the times of the business. Amounts are in micro-USDC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tariff {
    /// Asset of the ledger: network and address of the token, such as `eip155:84532/0x…`.
    pub asset: String,
    /// Brackets of the fee.
    pub fee: Brackets,
    /// Price and content of a pack of credits.
    pub pack: MicroUsdc,
    /// Price of a block of egress beyond the free bytes.
    pub egress_block: MicroUsdc,
    /// Price of a block of storage for a day, beyond the free bytes.
    pub storage_block_day: MicroUsdc,
    /// Free bytes of egress of an operator in a UTC month.
    pub free_egress_bytes: u64,
    /// Bytes of egress of the whole platform in a UTC month.
    pub platform_egress_bytes: u64,
    /// Credits that an operator is given at sign-up, for trial sales only.
    pub given_at_sign_up: MicroUsdc,
    /// Seconds after a sale in which it can be disputed.
    pub dispute_window_seconds: u32,
    /// Seconds for which a price that has changed is still taken.
    pub quote_seconds: u32,
    /// Balance at which a seller is paid out.
    pub payout_threshold: MicroUsdc,
}

impl Tariff {
    /// Returns the time after a sale in which it can be disputed.
    pub fn dispute_window(&self) -> Duration {
        Duration::from_secs(self.dispute_window_seconds.into())
    }

    /// Returns the time for which a price that has changed is still taken.
    pub fn quote_window(&self) -> Duration {
        Duration::from_secs(self.quote_seconds.into())
    }

    /// Returns the charge for a day of storage.
    pub fn storage_day(&self, stored: u64, free: u64) -> MicroUsdc {
        // A block that was begun counts as a whole, as in the price list.
        let blocks = stored.saturating_sub(free).div_ceil(BLOCK_BYTES);
        let blocks = i64::try_from(blocks).unwrap_or(i64::MAX);
        MicroUsdc(blocks.saturating_mul(self.storage_block_day.0))
    }

    /// Returns the bytes that are free or of which `credits` cover a day.
    pub fn storage_covered(&self, credits: MicroUsdc, free: u64) -> u64 {
        // Without a price every size is covered.
        let blocks = credits.0.checked_div(self.storage_block_day.0).unwrap_or(i64::MAX);
        let blocks = u64::try_from(blocks).unwrap_or(0);
        free.saturating_add(blocks.saturating_mul(BLOCK_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tariff() -> Tariff {
        Tariff {
            asset: String::new(),
            fee: Brackets::default(),
            pack: MicroUsdc(1_000_000),
            egress_block: MicroUsdc(1_250),
            storage_block_day: MicroUsdc(40),
            free_egress_bytes: 0,
            platform_egress_bytes: 0,
            given_at_sign_up: MicroUsdc(0),
            dispute_window_seconds: 7 * 86_400,
            quote_seconds: 300,
            payout_threshold: MicroUsdc(50_000),
        }
    }

    #[test]
    fn a_day_of_storage_costs_by_started_blocks() {
        let free = 1_000;
        for (stored, cost) in [
            (0, 0),
            (1_000, 0),
            (1_001, 40),
            (1_000 + BLOCK_BYTES, 40),
            (1_001 + BLOCK_BYTES, 80),
            (
                u64::MAX,
                40 * i64::try_from((u64::MAX - free).div_ceil(BLOCK_BYTES)).unwrap(),
            ),
        ] {
            assert_eq!(tariff().storage_day(stored, free).0, cost, "{stored}");
        }
    }

    #[test]
    fn credits_cover_what_a_day_of_it_costs() {
        for credits in [0, 39, 40, 79, 80, 1_000_000] {
            let covered = tariff().storage_covered(MicroUsdc(credits), 1_000);
            assert!(tariff().storage_day(covered, 1_000).0 <= credits, "{credits}");
            assert!(tariff().storage_day(covered + 1, 1_000).0 > credits, "{credits}");
        }
    }
}
