//! The storage of the authorization server on the database of the marketplace.
//!
//! Invariant: one method is one method of the store, so one transaction. What the database has that this build did not
//! write is an error and never a default.

use std::time::Duration;

use async_trait::async_trait;
use oauth::client::{Auth, Client};
use oauth::family::{Family, Rotated};
use oauth::redirect::Application;
use oauth::{
    Access, Challenge, Code, Connection, ConnectionId, Grant, Hash, Redeemed, Resource, Scopes, Storage, StorageError,
    StoredCode,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use store::{OAuthAccess, OAuthCode, OAuthConnection, OAuthGrant, OAuthRedeemed, OAuthRotation, Store};
use types::Timestamp;

/// Time after the end of a connection until its tokens are removed.
pub(crate) const KEPT: Duration = Duration::from_hours(24);
/// Time after its end until a connection is removed. A registered client stays as long as one of its connections.
pub(crate) const REMEMBERED: Duration = Duration::from_hours(24 * 90);
/// Time for which a registered client may be without any consent. Apps keep their id and register only once, also if the
/// person signs in much later.
pub(crate) const UNUSED: Duration = Duration::from_hours(24 * 90);

/// The storage on a database.
#[derive(Debug)]
pub struct Database {
    store: Store,
}

impl Database {
    /// Creates the storage.
    pub const fn new(store: Store) -> Self {
        Self { store }
    }
}

/// Metadata of a registered client, as they are stored.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    name: Option<String>,
    uri: Option<String>,
    redirect_uris: Vec<String>,
    is_web: bool,
    scopes: String,
    may_refresh: bool,
}

#[async_trait]
impl Storage for Database {
    async fn add_client(&self, client: &Client) -> Result<(), StorageError> {
        let stored = Stored {
            name: client.name.clone(),
            uri: client.uri.clone(),
            redirect_uris: client.redirect_uris.clone(),
            is_web: client.application == Application::Web,
            scopes: client.scopes.to_string(),
            may_refresh: client.may_refresh,
        };
        let metadata = serde_json::to_string(&stored)?;
        let store = self.store.oauth();
        store.client_add(&client.id, &metadata, client.registered_at).await?;
        Ok(())
    }

    async fn client(&self, id: &str) -> Result<Option<Client>, StorageError> {
        let Some((metadata, registered_at)) = self.store.oauth().client(id).await? else {
            return Ok(None);
        };
        let stored: Stored = serde_json::from_str(&metadata)?;
        Ok(Some(Client {
            id: id.to_owned(),
            name: stored.name,
            uri: stored.uri,
            redirect_uris: stored.redirect_uris,
            application: if stored.is_web {
                Application::Web
            } else {
                Application::Native
            },
            scopes: scopes_of(&stored.scopes)?,
            may_refresh: stored.may_refresh,
            // Clients with keys have a document and are not registered.
            auth: Auth::None,
            registered_at,
        }))
    }

    async fn add_code(&self, hash: Hash, code: &Code) -> Result<(), StorageError> {
        let code = OAuthCode {
            grant: lower_grant(&code.grant),
            redirect_uri: code.redirect_uri.clone(),
            challenge: *code.challenge.as_bytes(),
            expires_at: code.expires_at,
        };
        self.store.oauth().code_add(hash.0, code).await?;
        types::fault::point("consent.code");
        Ok(())
    }

    async fn code(&self, hash: Hash) -> Result<Option<StoredCode>, StorageError> {
        let Some((code, connection)) = self.store.oauth().code(hash.0).await? else {
            return Ok(None);
        };
        Ok(Some(StoredCode {
            redeemed_as: connection.map(|id| id.parse()).transpose()?,
            code: Code {
                grant: raise_grant(code.grant)?,
                redirect_uri: code.redirect_uri,
                challenge: Challenge::from_bytes(code.challenge),
                expires_at: code.expires_at,
            },
        }))
    }

    async fn redeem(
        &self,
        code: Hash,
        connection: &Connection,
        refresh: Option<Hash>,
        (hash, access): (Hash, &Access),
    ) -> Result<Redeemed, StorageError> {
        let Connection { id, grant, family } = connection;
        let new = OAuthConnection {
            id: id.to_string(),
            grant: lower_grant(grant),
            began_at: family.began_at,
            ends_at: family.expires_at(),
            current: family.current,
            rotated: None,
            ended_at: None,
        };
        let refresh = refresh.map(|refresh| refresh.0);
        let store = self.store.oauth();
        let redeemed = store.redeem(code.0, new, refresh, hash.0, lower_access(access)).await?;
        types::fault::point("token.commit");
        Ok(match redeemed {
            OAuthRedeemed::Now => Redeemed::Now,
            OAuthRedeemed::Before(id) => Redeemed::Before(id.parse()?),
            OAuthRedeemed::Unknown => Redeemed::Unknown,
        })
    }

    async fn refresh(&self, hash: Hash) -> Result<Option<(Connection, u32)>, StorageError> {
        let found = self.store.oauth().refresh(hash.0).await?;
        found
            .map(|(connection, number)| Ok((raise(connection)?, number)))
            .transpose()
    }

    async fn rotate(
        &self,
        connection: ConnectionId,
        next: &Family,
        refresh: Hash,
        (hash, access): (Hash, &Access),
    ) -> Result<bool, StorageError> {
        // A family without a rotation has its first token, which replaces none.
        let Some(rotated) = &next.rotated else { return Ok(false) };
        let rotation = OAuthRotation {
            connection: connection.to_string(),
            number: next.current,
            at: rotated.at,
            salt: rotated.salt,
            refresh: refresh.0,
        };
        Ok(self
            .store
            .oauth()
            .rotate(rotation, hash.0, lower_access(access))
            .await?)
    }

    async fn add_access(&self, hash: Hash, access: &Access) -> Result<bool, StorageError> {
        Ok(self.store.oauth().access_add(hash.0, lower_access(access)).await?)
    }

    async fn access(&self, hash: Hash) -> Result<Option<(Connection, Access)>, StorageError> {
        let Some((connection, access)) = self.store.oauth().access(hash.0).await? else {
            return Ok(None);
        };
        let connection = raise(connection)?;
        let access = Access {
            connection: connection.id,
            scopes: scopes_of(&access.scopes)?,
            expires_at: access.expires_at,
        };
        Ok(Some((connection, access)))
    }

    async fn end(&self, connection: ConnectionId, now: Timestamp) -> Result<(), StorageError> {
        Ok(self.store.oauth().connection_end(connection.to_string(), now).await?)
    }

    async fn use_jti(&self, client_id: &str, jti: &str, until: Timestamp) -> Result<bool, StorageError> {
        // The client chooses the id and its length; the hash has a fixed one.
        let hash = Sha256::digest(jti.as_bytes()).into();
        Ok(self.store.oauth().assertion_use(client_id, hash, until).await?)
    }

    async fn prune(&self, now: Timestamp) -> Result<(), StorageError> {
        let (kept, remembered) = (now.minus(KEPT), now.minus(REMEMBERED));
        self.store.oauth().prune(now, kept, remembered).await?;
        Ok(())
    }
}

fn lower_grant(grant: &Grant) -> OAuthGrant {
    OAuthGrant {
        client_id: grant.client_id.clone(),
        operator: grant.operator,
        agent: grant.agent,
        resource: grant.resource.path().to_owned(),
        scopes: grant.scopes.to_string(),
    }
}

fn lower_access(access: &Access) -> OAuthAccess {
    OAuthAccess {
        connection: access.connection.to_string(),
        scopes: access.scopes.to_string(),
        expires_at: access.expires_at,
    }
}

fn raise_grant(grant: OAuthGrant) -> Result<Grant, StorageError> {
    Ok(Grant {
        client_id: grant.client_id,
        operator: grant.operator,
        agent: grant.agent,
        resource: resource_of(&grant.resource)?,
        scopes: scopes_of(&grant.scopes)?,
    })
}

fn raise(connection: OAuthConnection) -> Result<Connection, StorageError> {
    Ok(Connection {
        id: connection.id.parse()?,
        grant: raise_grant(connection.grant)?,
        family: Family {
            began_at: connection.began_at,
            current: connection.current,
            rotated: connection.rotated.map(|(at, salt)| Rotated { at, salt }),
            ended_at: connection.ended_at,
        },
    })
}

/// Returns the resource with this path, as it is stored.
fn resource_of(path: &str) -> Result<Resource, StorageError> {
    let found = Resource::ALL.into_iter().find(|resource| resource.path() == path);
    found.ok_or_else(|| format!("`{path}` is no resource").into())
}

/// Returns the scopes of words, as they are stored.
fn scopes_of(words: &str) -> Result<Scopes, StorageError> {
    Scopes::parse(words).map_err(|error| format!("`{words}`: {error}").into())
}
