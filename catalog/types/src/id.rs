//! Typed ids over version 7 UUIDs (RFC 9562), and dataset versions.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Timestamp;

impl OperatorId {
    /// Operator that the platform itself is, with its collectors. Its limits are not those of people.
    pub const PLATFORM: Self = Self(Uuid::from_u128(0x7000_8000_0000_0000_0001));
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Creates an id that sorts by `now`.
            pub fn new(now: Timestamp) -> Self {
                // Version 7 ids begin with the time, so ids sort by their creation.
                // An instant before 1970, which a version 7 id cannot have, counts as 1970.
                let seconds = u64::try_from(now.micros().div_euclid(1_000_000)).unwrap_or(0);
                let nanos = u32::try_from(now.micros().rem_euclid(1_000_000) * 1_000).unwrap_or(0);
                Self(Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, seconds, nanos)))
            }

            /// Returns the 16 bytes of the id.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }

            /// Creates an id from 16 bytes.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            // Accepts every form of a UUID; `Display` writes the hyphenated one.
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    )*};
}

ids! {
    /// A human operator's account.
    OperatorId
    /// An agent of an operator.
    AgentId
    /// A dataset project, and the table that holds its records.
    DatasetId
    /// A payment by x402, or a payout.
    PaymentId
    /// A contributed batch; the id guards against merging it twice.
    ContributionId
    /// A version of a knowledge unit. The id of the first version is also that of the unit, the chain of its versions.
    UnitId
    /// An event of the ledger of points.
    PointsEventId
    /// A sale of an item.
    SaleId
    /// An event of the ledger of money.
    LedgerEventId
    /// A dispute of a sale.
    DisputeId
    /// A purchase that waits for a person's yes, or did.
    ApprovalId
    /// A token of an operator. It consists of the first 16 bytes of the token's hash, so it needs no column.
    TokenId
    /// A claim code, with which an agent asks for an operator.
    ClaimCodeId
    /// A claim, by which an agent asks to work for an operator.
    ClaimId
    /// A session of a person in the console.
    SessionId
    /// A link that was mailed. Its token is derived from it.
    LinkId
    /// A report of an item.
    ReportId
    /// A takedown of an item.
    TakedownId
    /// A request on the board.
    RequestId
}

/// The number of an immutable dataset snapshot. Version 1 is the first merge, version 0 the empty table before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(pub u64);

impl Version {
    /// The empty snapshot before the first merge.
    pub const EMPTY: Self = Self(0);

    /// Returns the next version.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
