//! The records of the server, and what a database has to do with them.
//!
//! Invariant: each method is one transaction. [`conformance`](crate::conformance) proves of a storage that a code is
//! redeemed once, a family rotates once per token, and a `jti` is used once, also when many try at the same instant.

use std::fmt::{self, Debug};
use std::str::FromStr;

use async_trait::async_trait;
use types::money::MicroUsdc;
use types::{AgentId, OperatorId, Timestamp};
use uuid::Uuid;

use crate::client::OAuthClient;
use crate::family::Family;
use crate::issuer::Resource;
use crate::pkce::Challenge;
use crate::scope::Scopes;
use crate::secret::Hash;

/// Error of a storage: the state is not known, and the same call may succeed later.
pub type StorageError = Box<dyn std::error::Error + Send + Sync>;

/// Id of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(Uuid);

impl ConnectionId {
    /// Creates an id that sorts by `now`.
    pub fn new(now: Timestamp) -> Self {
        // Ids of version 7 begin with the time.
        let seconds = u64::try_from(now.micros().div_euclid(1_000_000)).unwrap_or(0);
        let nanos = u32::try_from(now.micros().rem_euclid(1_000_000) * 1_000).unwrap_or(0);
        Self(Uuid::new_v7(uuid::Timestamp::from_unix(
            uuid::NoContext,
            seconds,
            nanos,
        )))
    }

    /// Returns the instant at which the id was made, to the millisecond.
    pub fn made_at(self) -> Timestamp {
        let (seconds, nanos) = self.0.get_timestamp().map_or((0, 0), |made| made.to_unix());
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        Timestamp::from_micros(
            seconds
                .saturating_mul(1_000_000)
                .saturating_add(i64::from(nanos / 1_000)),
        )
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.hyphenated(), f)
    }
}

impl FromStr for ConnectionId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(Self)
    }
}

/// The agreement of a person: this app may act as this agent, here, so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Identifier of the client.
    pub client_id: String,
    /// Operator who agreed to the connection.
    pub operator: OperatorId,
    /// Agent that the app acts as.
    pub agent: AgentId,
    /// Resource that tokens are for.
    pub resource: Resource,
    /// Scopes that the operator agreed to.
    pub scopes: Scopes,
}

/// Money that a person lets an app spend. None is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppBudget {
    /// Most that is spent in a UTC month, in micro-USDC.
    pub per_month: Option<MicroUsdc>,
    /// Price above which a purchase waits for the person, in micro-USDC.
    pub approve_above: Option<MicroUsdc>,
}

/// An authorization code. Its hash is its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// Agreement that the code stands for.
    pub grant: Grant,
    /// Redirect URI of the authorization request.
    pub redirect_uri: String,
    /// Challenge of the authorization request.
    pub challenge: Challenge,
    /// Money that the app may spend.
    pub budget: AppBudget,
    /// Instant at which the code ends.
    pub expires_at: Timestamp,
}

/// A code as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCode {
    /// The code as it was added.
    pub code: Code,
    /// Connection that its use has made.
    pub redeemed_as: Option<ConnectionId>,
}

/// One app that acts as one agent, from the redeemed code to the end of the family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Id of the connection.
    pub id: ConnectionId,
    /// Agreement that it stands for.
    pub grant: Grant,
    /// State of its refresh tokens. A connection without refresh tokens has one too, which limits its life.
    pub family: Family,
}

/// An access token. Its hash is its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Connection of the token.
    pub connection: ConnectionId,
    /// Scopes of the token: those of the grant, or fewer.
    pub scopes: Scopes,
    /// Instant at which the token ends.
    pub expires_at: Timestamp,
}

/// Outcome of the redemption of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redeemed {
    /// The connection is made.
    Now,
    /// The code had made this connection before. Nothing was changed.
    Before(ConnectionId),
    /// There is no such code.
    Unknown,
}

/// A database of clients, codes, connections, tokens and used `jti`.
#[async_trait]
pub trait Storage: Debug + Send + Sync {
    /// Adds a registered client.
    async fn add_client(&self, client: &OAuthClient) -> Result<(), StorageError>;

    /// Returns the registered client with this identifier.
    async fn client(&self, id: &str) -> Result<Option<OAuthClient>, StorageError>;

    /// Adds a code that was not redeemed.
    async fn add_code(&self, hash: Hash, code: &Code) -> Result<(), StorageError>;

    /// Returns a code, also if it was redeemed or has ended.
    async fn code(&self, hash: Hash) -> Result<Option<StoredCode>, StorageError>;

    /// Redeems a code: adds the connection with the budget of the code, its first refresh token, if it has one, and its
    /// first access token.
    async fn redeem(
        &self,
        code: Hash,
        connection: &Connection,
        refresh: Option<Hash>,
        access: (Hash, &Access),
    ) -> Result<Redeemed, StorageError>;

    /// Returns the connection and the number of a refresh token, also if the token is old or the family has ended.
    async fn refresh(&self, hash: Hash) -> Result<Option<(Connection, u32)>, StorageError>;

    /// Rotates: stores the family `next`, its current refresh token, and an access token. Changes nothing and returns
    /// false unless the stored family is alive and its current token is the one before `next.current`.
    async fn rotate(
        &self,
        connection: ConnectionId,
        next: &Family,
        refresh: Hash,
        access: (Hash, &Access),
    ) -> Result<bool, StorageError>;

    /// Adds an access token to a connection. Changes nothing and returns false if the connection has ended.
    async fn add_access(&self, hash: Hash, access: &Access) -> Result<bool, StorageError>;

    /// Returns an access token with its connection, also if either has ended.
    async fn access(&self, hash: Hash) -> Result<Option<(Connection, Access)>, StorageError>;

    /// Ends a connection with all its tokens. An end that exists stays as it is.
    async fn end(&self, connection: ConnectionId, now: Timestamp) -> Result<(), StorageError>;

    /// Uses a `jti` of a client. Returns false if it was used before. It is remembered until `until` at least.
    async fn use_jti(&self, client_id: &str, jti: &str, until: Timestamp) -> Result<bool, StorageError>;

    /// Removes what nobody can use any more: ended codes, access tokens and `jti`, and connections that ended a day ago.
    ///
    /// A code that was redeemed stays as long as its connection, so that its reuse is seen.
    async fn prune(&self, now: Timestamp) -> Result<(), StorageError>;
}
