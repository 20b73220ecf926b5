//! Codes, and the tokens that they are exchanged for.

use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use types::Timestamp;

use super::{OAuthAccess, OAuthCode, OAuthConnection, OAuthGrant, OAuthRedeemed, OAuthRotation};
use crate::accounts::lock_suspended;
use crate::row::{Columns, bytes, texts};
use crate::writer::Change;
use crate::{Error, OAuth};

/// Columns of a connection.
const CONNECTION: &str = "c.id AS id, c.client_id AS client_id, c.operator_id AS operator_id, c.agent_id AS agent_id,
    c.resource AS resource, c.scopes AS scopes, c.began_at AS began_at, c.ends_at AS ends_at,
    c.current_number AS current_number, c.rotated_at AS rotated_at, c.salt AS salt, c.ended_at AS ended_at";

impl OAuth<'_> {
    /// Adds a code.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such agent, [`Error::Text`].
    pub async fn code_add(&self, hash: [u8; 32], code: OAuthCode) -> Result<(), Error> {
        let OAuthCode {
            grant,
            redirect_uri,
            challenge,
            expires_at,
        } = code;
        texts(&[("client_id", &grant.client_id), ("redirect_uri", &redirect_uri)])?;
        self.0
            .write_aside(move |cx| {
                Box::pin(async move {
                    sqlx::query(
                        "INSERT INTO oauth_codes
                             (code_hash, client_id, operator_id, agent_id, resource, scopes, redirect_uri, challenge,
                              expires_at)
                         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
                    )
                    .bind(hash.to_vec())
                    .bind(grant.client_id)
                    .bind(grant.operator.to_string())
                    .bind(grant.agent.to_string())
                    .bind(grant.resource)
                    .bind(grant.scopes)
                    .bind(redirect_uri)
                    .bind(challenge.to_vec())
                    .bind(expires_at.micros())
                    .execute(cx)
                    .await?;
                    Ok(Change::Keep(()))
                })
            })
            .await
    }

    /// Returns a code, also if it was used or its time is over, and the connection that it was used for.
    pub async fn code(&self, hash: [u8; 32]) -> Result<Option<(OAuthCode, Option<String>)>, Error> {
        self.0
            .read(async {
                let row = sqlx::query(
                    "SELECT client_id, operator_id, agent_id, resource, scopes, redirect_uri, challenge, expires_at,
                            connection_id
                     FROM oauth_codes WHERE code_hash = $1",
                )
                .bind(hash.to_vec())
                .fetch_optional(self.0.readers())
                .await?;
                let Some(row) = row else { return Ok(None) };
                let code = OAuthCode {
                    grant: grant(&row)?,
                    redirect_uri: row.value("redirect_uri")?,
                    challenge: bytes("challenge", row.value("challenge")?)?,
                    expires_at: row.time("expires_at")?,
                };
                Ok(Some((code, row.value("connection_id")?)))
            })
            .await
    }

    /// Uses a code: adds the connection with its first refresh token, if it has one, and its first access token.
    pub async fn redeem(
        &self,
        code: [u8; 32],
        connection: OAuthConnection,
        refresh: Option<[u8; 32]>,
        access_hash: [u8; 32],
        access: OAuthAccess,
    ) -> Result<OAuthRedeemed, Error> {
        texts(&[("client_id", &connection.grant.client_id)])?;
        self.0
            .write_aside(move |cx| {
                Box::pin(async move {
                    let OAuthConnection { id, grant, .. } = &connection;
                    // The lock comes first, as in a suspension, which then ends this connection or is seen here.
                    if lock_suspended(cx, grant.operator).await? || is_removed(cx, grant).await? {
                        return Ok(Change::Undo(OAuthRedeemed::Unknown));
                    }
                    let row = sqlx::query(
                        "UPDATE oauth_codes SET expires_at = expires_at WHERE code_hash = $1 RETURNING connection_id",
                    )
                    .bind(code.to_vec())
                    .fetch_optional(&mut *cx)
                    .await?;
                    let Some(row) = row else {
                        return Ok(Change::Undo(OAuthRedeemed::Unknown));
                    };
                    if let Some(before) = row.value("connection_id")? {
                        return Ok(Change::Undo(OAuthRedeemed::Before(before)));
                    }
                    sqlx::query(
                        "INSERT INTO oauth_connections
                             (id, client_id, operator_id, agent_id, resource, scopes, began_at, ends_at, current_number)
                         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)",
                    )
                    .bind(id.clone())
                    .bind(grant.client_id.clone())
                    .bind(grant.operator.to_string())
                    .bind(grant.agent.to_string())
                    .bind(grant.resource.clone())
                    .bind(grant.scopes.clone())
                    .bind(connection.began_at.micros())
                    .bind(connection.ends_at.micros())
                    .execute(&mut *cx)
                    .await?;
                    sqlx::query("UPDATE oauth_codes SET connection_id = $2 WHERE code_hash = $1")
                        .bind(code.to_vec())
                        .bind(id.clone())
                        .execute(&mut *cx)
                        .await?;
                    if let Some(refresh) = refresh {
                        insert_refresh(cx, refresh, id, 0).await?;
                    }
                    insert_access(cx, access_hash, &access).await?;
                    types::fault::point("token.rows");
                    Ok(Change::Keep(OAuthRedeemed::Now))
                })
            })
            .await
    }

    /// Returns the connection and the number of a refresh token, also if the token is old or the connection has ended.
    pub async fn refresh(&self, hash: [u8; 32]) -> Result<Option<(OAuthConnection, u32)>, Error> {
        self.0
            .read(async {
                let statement = format!(
                    "SELECT {CONNECTION}, t.number AS number
                     FROM oauth_refresh_tokens t JOIN oauth_connections c ON c.id = t.connection_id
                     WHERE t.token_hash = $1"
                );
                sqlx::query(sqlx::AssertSqlSafe(statement))
                    .bind(hash.to_vec())
                    .fetch_optional(self.0.readers())
                    .await?
                    .map(|row| Ok((connection(&row)?, row.number("number")?)))
                    .transpose()
            })
            .await
    }

    /// Replaces the current refresh token, and adds an access token. Changes nothing and returns false unless the
    /// connection is alive and its current token is the one before `rotation.number`.
    pub async fn rotate(
        &self,
        rotation: OAuthRotation,
        access_hash: [u8; 32],
        access: OAuthAccess,
    ) -> Result<bool, Error> {
        let Some(before) = rotation.number.checked_sub(1) else {
            return Ok(false);
        };
        self.0
            .write_aside(move |cx| {
                Box::pin(async move {
                    let rotated = sqlx::query(
                        "UPDATE oauth_connections SET current_number = $2, rotated_at = $3, salt = $4
                         WHERE id = $1 AND current_number = $5 AND ended_at IS NULL",
                    )
                    .bind(rotation.connection.clone())
                    .bind(i64::from(rotation.number))
                    .bind(rotation.at.micros())
                    .bind(rotation.salt.to_vec())
                    .bind(i64::from(before))
                    .execute(&mut *cx)
                    .await?;
                    if rotated.rows_affected() == 0 {
                        return Ok(Change::Undo(false));
                    }
                    insert_refresh(cx, rotation.refresh, &rotation.connection, rotation.number).await?;
                    insert_access(cx, access_hash, &access).await?;
                    Ok(Change::Keep(true))
                })
            })
            .await
    }

    /// Adds an access token. Changes nothing and returns false if its connection has ended.
    pub async fn access_add(&self, hash: [u8; 32], access: OAuthAccess) -> Result<bool, Error> {
        self.0
            .write_aside(move |cx| {
                Box::pin(async move {
                    // The write locks the connection, so that it does not end meanwhile.
                    let alive = sqlx::query(
                        "UPDATE oauth_connections SET current_number = current_number
                         WHERE id = $1 AND ended_at IS NULL",
                    )
                    .bind(access.connection.clone())
                    .execute(&mut *cx)
                    .await?;
                    if alive.rows_affected() == 0 {
                        return Ok(Change::Undo(false));
                    }
                    insert_access(cx, hash, &access).await?;
                    Ok(Change::Keep(true))
                })
            })
            .await
    }

    /// Returns an access token with its connection, also if either is over.
    pub async fn access(&self, hash: [u8; 32]) -> Result<Option<(OAuthConnection, OAuthAccess)>, Error> {
        self.0
            .read(async {
                let statement = format!(
                    "SELECT {CONNECTION}, t.scopes AS token_scopes, t.expires_at AS expires_at
                     FROM oauth_access_tokens t JOIN oauth_connections c ON c.id = t.connection_id
                     WHERE t.token_hash = $1"
                );
                let row = sqlx::query(sqlx::AssertSqlSafe(statement))
                    .bind(hash.to_vec())
                    .fetch_optional(self.0.readers())
                    .await?;
                let Some(row) = row else { return Ok(None) };
                let access = OAuthAccess {
                    connection: row.value("id")?,
                    scopes: row.value("token_scopes")?,
                    expires_at: row.time("expires_at")?,
                };
                Ok(Some((connection(&row)?, access)))
            })
            .await
    }

    /// Ends a connection. An end that exists stays as it is.
    pub async fn connection_end(&self, id: String, now: Timestamp) -> Result<(), Error> {
        self.0
            .write_aside(move |cx| {
                Box::pin(async move {
                    sqlx::query("UPDATE oauth_connections SET ended_at = $2 WHERE id = $1 AND ended_at IS NULL")
                        .bind(id)
                        .bind(now.micros())
                        .execute(cx)
                        .await?;
                    Ok(Change::Keep(()))
                })
            })
            .await
    }
}

/// Returns true if the agent of a grant was removed or taken down, or is of another operator.
async fn is_removed(cx: &mut AnyConnection, grant: &OAuthGrant) -> Result<bool, Error> {
    let agent: Option<i64> = sqlx::query_scalar(
        "SELECT created_at FROM agents
         WHERE id = $1 AND operator_id = $2 AND removed_at IS NULL AND taken_down_at IS NULL",
    )
    .bind(grant.agent.to_string())
    .bind(grant.operator.to_string())
    .fetch_optional(cx)
    .await?;
    Ok(agent.is_none())
}

async fn insert_refresh(cx: &mut AnyConnection, hash: [u8; 32], connection: &str, number: u32) -> Result<(), Error> {
    sqlx::query("INSERT INTO oauth_refresh_tokens (token_hash, connection_id, number) VALUES ($1, $2, $3)")
        .bind(hash.to_vec())
        .bind(connection.to_owned())
        .bind(i64::from(number))
        .execute(cx)
        .await?;
    Ok(())
}

async fn insert_access(cx: &mut AnyConnection, hash: [u8; 32], access: &OAuthAccess) -> Result<(), Error> {
    sqlx::query(
        "INSERT INTO oauth_access_tokens (token_hash, connection_id, scopes, expires_at) VALUES ($1, $2, $3, $4)",
    )
    .bind(hash.to_vec())
    .bind(access.connection.clone())
    .bind(access.scopes.clone())
    .bind(access.expires_at.micros())
    .execute(cx)
    .await?;
    Ok(())
}

fn grant(row: &AnyRow) -> Result<OAuthGrant, Error> {
    Ok(OAuthGrant {
        client_id: row.value("client_id")?,
        operator: row.parsed("operator_id")?,
        agent: row.parsed("agent_id")?,
        resource: row.value("resource")?,
        scopes: row.value("scopes")?,
    })
}

fn connection(row: &AnyRow) -> Result<OAuthConnection, Error> {
    let salt: Option<Vec<u8>> = row.value("salt")?;
    let salt = salt.map(|salt| bytes("salt", salt)).transpose()?;
    let rotated_at: Option<Timestamp> = row.time_optional("rotated_at")?;
    Ok(OAuthConnection {
        id: row.value("id")?,
        grant: grant(row)?,
        began_at: row.time("began_at")?,
        ends_at: row.time("ends_at")?,
        current: row.number("current_number")?,
        rotated: rotated_at.zip(salt),
        ended_at: row.time_optional("ended_at")?,
    })
}
