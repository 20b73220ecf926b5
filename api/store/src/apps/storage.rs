//! The storage of the authorization server.
//!
//! Invariant: one method is one transaction. What the database has that this build did not write is an error and never a
//! default.

use async_trait::async_trait;
use oauth::client::{ClientAuth, OAuthClient};
use oauth::family::{Family, RotatedFamily};
use oauth::redirect::Application;
use oauth::{
    Access, AppBudget, Challenge, Code, Connection, ConnectionId, Grant, Hash, Redeemed, Resource, Scopes, Storage,
    StorageError, StoredCode,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use types::{AgentId, OperatorId, Timestamp};

use super::{CONNECTIONS_KEPT, TOKENS_KEPT};
use crate::accounts::lock_suspended;
use crate::money::{self, SpendLimits, SpendOwner};
use crate::query::{sql, text, tx};
use crate::row::{Columns, bytes, json, json_text, parsed_column, texts};
use crate::writer::Change;
use crate::{Error, Store};

/// Columns of a connection.
const CONNECTION: &str = "c.id AS id, c.client_id AS client_id, c.operator_id AS operator_id, c.agent_id AS agent_id,
    c.resource AS resource, c.scopes AS scopes, c.began_at AS began_at, c.ends_at AS ends_at,
    c.current_number AS current_number, c.rotated_at AS rotated_at, c.salt AS salt, c.ended_at AS ended_at";

parsed_column! { Resource Scopes }

/// Metadata of a registered client, as they are stored.
#[derive(Debug, Serialize, Deserialize)]
struct ClientMetadata {
    name: Option<String>,
    uri: Option<String>,
    redirect_uris: Vec<String>,
    is_web: bool,
    scopes: String,
    may_refresh: bool,
}

#[async_trait]
impl Storage for Store {
    async fn add_client(&self, client: &OAuthClient) -> Result<(), StorageError> {
        let metadata = json_text(
            "metadata",
            &ClientMetadata {
                name: client.name.clone(),
                uri: client.uri.clone(),
                redirect_uris: client.redirect_uris.clone(),
                is_web: client.application == Application::Web,
                scopes: client.scopes.to_string(),
                may_refresh: client.may_refresh,
            },
        )?;
        texts(&[("id", &client.id), ("metadata", &metadata)])?;
        let (id, registered_at) = (client.id.clone(), client.registered_at);
        self.write_aside(tx!(async move |cx| {
            sql!(
                "INSERT INTO oauth_clients (id, metadata, registered_at) VALUES ($1, $2, $3)",
                id,
                metadata,
                registered_at
            )
            .run(cx)
            .await?;
            Ok(Change::Keep(()))
        }))
        .await?;
        Ok(())
    }

    async fn client(&self, id: &str) -> Result<Option<OAuthClient>, StorageError> {
        // An id that no database can store is the id of no client.
        if texts(&[("id", id)]).is_err() {
            return Ok(None);
        }
        let found = self
            .read(async {
                sql!("SELECT metadata, registered_at FROM oauth_clients WHERE id = $1", id)
                    .row_if_any(&mut self.readers())
                    .await?
                    .map(|row| Ok((json("metadata", row.value("metadata")?)?, row.get("registered_at")?)))
                    .transpose()
            })
            .await?;
        let Some((metadata, registered_at)): Option<(ClientMetadata, Timestamp)> = found else {
            return Ok(None);
        };
        Ok(Some(OAuthClient {
            id: id.to_owned(),
            name: metadata.name,
            uri: metadata.uri,
            redirect_uris: metadata.redirect_uris,
            application: if metadata.is_web {
                Application::Web
            } else {
                Application::Native
            },
            scopes: Scopes::parse(&metadata.scopes)?,
            may_refresh: metadata.may_refresh,
            // Clients with keys have a document and are not registered.
            auth: ClientAuth::None,
            registered_at,
        }))
    }

    /// Adds a code that was not redeemed.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such agent, [`Error::Text`].
    async fn add_code(&self, hash: Hash, code: &Code) -> Result<(), StorageError> {
        texts(&[
            ("client_id", &code.grant.client_id),
            ("redirect_uri", &code.redirect_uri),
        ])?;
        let code = code.clone();
        self.write_aside(tx!(async move |cx| {
            sql!(
                "INSERT INTO oauth_codes
                     (code_hash, client_id, operator_id, agent_id, resource, scopes, redirect_uri, challenge,
                      expires_at, per_month, approve_above)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
                hash.0,
                code.grant.client_id,
                code.grant.operator,
                code.grant.agent,
                code.grant.resource.path(),
                code.grant.scopes.to_string(),
                code.redirect_uri,
                code.challenge.as_bytes(),
                code.expires_at,
                code.budget.per_month.map(|limit| limit.0),
                code.budget.approve_above.map(|limit| limit.0)
            )
            .run(cx)
            .await?;
            Ok(Change::Keep(()))
        }))
        .await?;
        types::fault::point("consent.code");
        Ok(())
    }

    async fn code(&self, hash: Hash) -> Result<Option<StoredCode>, StorageError> {
        let found = self.read(async {
            let row = sql!(
                "SELECT client_id, operator_id, agent_id, resource, scopes, redirect_uri, challenge, expires_at,
                        connection_id, per_month, approve_above
                 FROM oauth_codes WHERE code_hash = $1",
                hash.0
            )
            .row_if_any(&mut self.readers())
            .await?;
            let Some(row) = row else { return Ok(None) };
            Ok(Some(StoredCode {
                redeemed_as: row.get("connection_id")?,
                code: Code {
                    grant: grant(&row)?,
                    redirect_uri: row.get("redirect_uri")?,
                    challenge: Challenge::from_bytes(row.get("challenge")?),
                    budget: budget(&row)?,
                    expires_at: row.get("expires_at")?,
                },
            }))
        });
        Ok(found.await?)
    }

    async fn redeem(
        &self,
        code: Hash,
        connection: &Connection,
        refresh: Option<Hash>,
        (access_hash, access): (Hash, &Access),
    ) -> Result<Redeemed, StorageError> {
        texts(&[("client_id", &connection.grant.client_id)])?;
        let (connection, access) = (connection.clone(), access.clone());
        let redeemed = self.write_aside(tx!(async move |cx| {
            let Connection { id, grant, family } = &connection;
            // The lock comes first, as in a suspension, which then ends this connection or is seen here.
            if lock_suspended(cx, grant.operator).await? || is_removed(cx, grant.operator, grant.agent).await? {
                return Ok(Change::Undo(Redeemed::Unknown));
            }
            let row = sql!(
                "UPDATE oauth_codes SET expires_at = expires_at WHERE code_hash = $1
                 RETURNING connection_id, per_month, approve_above",
                code.0
            )
            .row_if_any(cx)
            .await?;
            let Some(row) = row else {
                return Ok(Change::Undo(Redeemed::Unknown));
            };
            if let Some(before) = row.get("connection_id")? {
                return Ok(Change::Undo(Redeemed::Before(before)));
            }
            sql!(
                "INSERT INTO oauth_connections
                     (id, client_id, operator_id, agent_id, resource, scopes, began_at, ends_at, current_number)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)",
                id,
                grant.client_id.as_str(),
                grant.operator,
                grant.agent,
                grant.resource.path(),
                grant.scopes.to_string(),
                family.began_at,
                family.expires_at()
            )
            .run(cx)
            .await?;
            sql!(
                "UPDATE oauth_codes SET connection_id = $2 WHERE code_hash = $1",
                code.0,
                id
            )
            .run(cx)
            .await?;
            let AppBudget {
                per_month,
                approve_above,
            } = budget(&row)?;
            let limits = SpendLimits {
                per_month,
                approve_above,
                ..SpendLimits::default()
            };
            if limits != SpendLimits::default() {
                money::set_limits(cx, grant.operator, SpendOwner::App(*id), limits, family.began_at).await?;
            }
            if let Some(refresh) = refresh {
                insert_refresh(cx, refresh, *id, 0).await?;
            }
            insert_access(cx, access_hash, &access).await?;
            types::fault::point("token.rows");
            Ok(Change::Keep(Redeemed::Now))
        }));
        let redeemed = redeemed.await?;
        types::fault::point("token.commit");
        Ok(redeemed)
    }

    async fn refresh(&self, hash: Hash) -> Result<Option<(Connection, u32)>, StorageError> {
        let found = self.read(async {
            sql!(
                text!(
                    "SELECT ",
                    CONNECTION,
                    ", t.number AS number
                     FROM oauth_refresh_tokens t JOIN oauth_connections c ON c.id = t.connection_id
                     WHERE t.token_hash = $1"
                ),
                hash.0
            )
            .row_if_any(&mut self.readers())
            .await?
            .map(|row| Ok((connection(&row)?, row.get("number")?)))
            .transpose()
        });
        Ok(found.await?)
    }

    async fn rotate(
        &self,
        connection: ConnectionId,
        next: &Family,
        refresh: Hash,
        (access_hash, access): (Hash, &Access),
    ) -> Result<bool, StorageError> {
        // A family without a rotation has its first token, which replaces none.
        let (Some(rotated), Some(before)) = (next.rotated.clone(), next.current.checked_sub(1)) else {
            return Ok(false);
        };
        let (number, access) = (next.current, access.clone());
        let rotating = self.write_aside(tx!(async move |cx| {
            let moved = sql!(
                "UPDATE oauth_connections SET current_number = $2, rotated_at = $3, salt = $4
                 WHERE id = $1 AND current_number = $5 AND ended_at IS NULL",
                connection,
                number,
                rotated.at,
                rotated.salt,
                before
            )
            .run(cx)
            .await?;
            if moved == 0 {
                return Ok(Change::Undo(false));
            }
            insert_refresh(cx, refresh, connection, number).await?;
            insert_access(cx, access_hash, &access).await?;
            Ok(Change::Keep(true))
        }));
        Ok(rotating.await?)
    }

    async fn add_access(&self, hash: Hash, access: &Access) -> Result<bool, StorageError> {
        let access = access.clone();
        let adding = self.write_aside(tx!(async move |cx| {
            // The write locks the connection, so that it does not end meanwhile.
            let alive = sql!(
                "UPDATE oauth_connections SET current_number = current_number
                 WHERE id = $1 AND ended_at IS NULL",
                access.connection
            )
            .run(cx)
            .await?;
            if alive == 0 {
                return Ok(Change::Undo(false));
            }
            insert_access(cx, hash, &access).await?;
            Ok(Change::Keep(true))
        }));
        Ok(adding.await?)
    }

    async fn access(&self, hash: Hash) -> Result<Option<(Connection, Access)>, StorageError> {
        let found = self.read(async {
            let row = sql!(
                text!(
                    "SELECT ",
                    CONNECTION,
                    ", t.scopes AS token_scopes, t.expires_at AS expires_at
                     FROM oauth_access_tokens t JOIN oauth_connections c ON c.id = t.connection_id
                     WHERE t.token_hash = $1"
                ),
                hash.0
            )
            .row_if_any(&mut self.readers())
            .await?;
            let Some(row) = row else { return Ok(None) };
            let access = Access {
                connection: row.get("id")?,
                scopes: row.get("token_scopes")?,
                expires_at: row.get("expires_at")?,
            };
            Ok(Some((connection(&row)?, access)))
        });
        Ok(found.await?)
    }

    async fn end(&self, connection: ConnectionId, now: Timestamp) -> Result<(), StorageError> {
        let ending = self.write_aside(tx!(async move |cx| {
            sql!(
                "UPDATE oauth_connections SET ended_at = $2 WHERE id = $1 AND ended_at IS NULL",
                connection,
                now
            )
            .run(cx)
            .await?;
            Ok(Change::Keep(()))
        }));
        Ok(ending.await?)
    }

    async fn use_jti(&self, client_id: &str, jti: &str, until: Timestamp) -> Result<bool, StorageError> {
        texts(&[("client_id", client_id)])?;
        let client_id = client_id.to_owned();
        // The client chooses the id and its length; the hash has a fixed one.
        let hash: [u8; 32] = Sha256::digest(jti.as_bytes()).into();
        let using = self.write_aside(tx!(async move |cx| {
            let used = sql!(
                "INSERT INTO oauth_assertions (client_id, jti_hash, until_at) VALUES ($1, $2, $3)
                 ON CONFLICT (client_id, jti_hash) DO NOTHING",
                client_id,
                hash,
                until
            )
            .run(cx)
            .await?;
            Ok(Change::Keep(used > 0))
        }));
        Ok(using.await?)
    }

    async fn prune(&self, now: Timestamp) -> Result<(), StorageError> {
        let (kept, remembered) = (now.minus(TOKENS_KEPT), now.minus(CONNECTIONS_KEPT));
        self.oauth().prune(now, kept, remembered).await?;
        Ok(())
    }
}

/// Returns true if an agent was removed or taken down, or is of another operator.
pub(crate) async fn is_removed(cx: &mut AnyConnection, operator: OperatorId, agent: AgentId) -> Result<bool, Error> {
    let agent: Option<i64> = sql!(
        "SELECT created_at FROM agents
         WHERE id = $1 AND operator_id = $2 AND removed_at IS NULL AND taken_down_at IS NULL",
        agent,
        operator
    )
    .scalar_if_any(cx)
    .await?;
    Ok(agent.is_none())
}

async fn insert_refresh(
    cx: &mut AnyConnection,
    hash: Hash,
    connection: ConnectionId,
    number: u32,
) -> Result<(), Error> {
    sql!(
        "INSERT INTO oauth_refresh_tokens (token_hash, connection_id, number) VALUES ($1, $2, $3)",
        hash.0,
        connection,
        number
    )
    .run(cx)
    .await?;
    Ok(())
}

async fn insert_access(cx: &mut AnyConnection, hash: Hash, access: &Access) -> Result<(), Error> {
    sql!(
        "INSERT INTO oauth_access_tokens (token_hash, connection_id, scopes, expires_at) VALUES ($1, $2, $3, $4)",
        hash.0,
        access.connection,
        access.scopes.to_string(),
        access.expires_at
    )
    .run(cx)
    .await?;
    Ok(())
}

fn budget(row: &AnyRow) -> Result<AppBudget, Error> {
    Ok(AppBudget {
        per_month: row.get("per_month")?,
        approve_above: row.get("approve_above")?,
    })
}

fn grant(row: &AnyRow) -> Result<Grant, Error> {
    Ok(Grant {
        client_id: row.get("client_id")?,
        operator: row.get("operator_id")?,
        agent: row.get("agent_id")?,
        resource: row.get("resource")?,
        scopes: row.get("scopes")?,
    })
}

fn connection(row: &AnyRow) -> Result<Connection, Error> {
    let salt: Option<Vec<u8>> = row.get("salt")?;
    let salt = salt.map(|salt| bytes("salt", salt)).transpose()?;
    let rotated = row.get::<Option<Timestamp>>("rotated_at")?.zip(salt);
    Ok(Connection {
        id: row.get("id")?,
        grant: grant(row)?,
        family: Family {
            began_at: row.get("began_at")?,
            current: row.get("current_number")?,
            rotated: rotated.map(|(at, salt)| RotatedFamily { at, salt }),
            ended_at: row.get("ended_at")?,
        },
    })
}
