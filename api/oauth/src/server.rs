//! The authorization server over a [`Storage`]: registration, codes, tokens, revocation, and the check of a token.
//!
//! Invariant: tokens exist only after [`Storage::redeem`] or [`Storage::rotate`] has said so. Every decision about a
//! refresh token is one of [`Family::present`].

use std::sync::Arc;
use std::time::Duration;

use types::{AgentId, Classify, Clock, Kind, OperatorId, Retry, Timestamp};

use crate::assertion;
use crate::authorize::AuthorizeRequest;
use crate::challenge::DenialReason;
use crate::client::{ClientAuth, MetadataError, OAuthClient};
use crate::family::{Family, ROTATION_GRACE, RefreshUse};
use crate::issuer::{Issuer, Resource};
use crate::jwk::JwkSet;
use crate::registration::{self, RegistrationError};
use crate::scope::{Scope, Scopes};
use crate::secret::{Hash, OAuthSecret, OAuthSecretKind, random};
use crate::storage::{Access, AppBudget, Code, Connection, ConnectionId, Grant, Redeemed, Storage, StorageError};
use crate::token::{Credentials, TokenAnswer, TokenError, TokenRequest};

/// Life of a code. A client exchanges it at once.
const CODE_LIFE: Duration = Duration::from_mins(1);
/// Life of an access token.
pub const ACCESS_TOKEN_LIFE: Duration = Duration::from_hours(1);
/// Tries to rotate, each of which another request of the same client may win.
const MAX_ROTATION_TRIES: usize = 4;
/// Prefix of the identifiers of registered clients.
const CLIENT_PREFIX: &str = "app_";

/// Failure of the server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request is refused.
    #[error("{0}")]
    Refused(#[from] TokenError),
    /// The metadata of a client are refused.
    #[error("{0}")]
    Registration(#[from] RegistrationError),
    /// A person agreed to scopes that the client did not ask for.
    #[error("the scopes are not among those that the app asks for")]
    Scopes,
    /// The database failed; the same call may succeed later.
    #[error("the state of OAuth connections is not available")]
    Storage(#[source] StorageError),
    /// The system has no random numbers.
    #[error("no random numbers are available: {0}")]
    Random(getrandom::Error),
}

impl From<getrandom::Error> for Error {
    fn from(error: getrandom::Error) -> Self {
        Self::Random(error)
    }
}

impl From<StorageError> for Error {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl Classify for Error {
    fn kind(&self) -> Kind {
        match self {
            // Only a client that did not prove its identity is refused with 401; every other refusal is about the
            // request.
            Self::Refused(error) if error.status() == 401 => Kind::Unauthenticated,
            Self::Refused(_) | Self::Registration(_) | Self::Scopes => Kind::Invalid,
            Self::Storage(_) | Self::Random(_) => Kind::Unavailable,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Refused(_) | Self::Registration(_) | Self::Scopes => Retry::Never,
            Self::Storage(_) | Self::Random(_) => Retry::Backoff,
        }
    }
}

/// The authorization server. Cheap to clone.
#[derive(Clone, Debug)]
pub struct AuthorizationServer {
    issuer: Issuer,
    storage: Arc<dyn Storage>,
    clock: Arc<dyn Clock>,
    is_reserved: fn(&str) -> bool,
}

impl AuthorizationServer {
    /// Creates a server that keeps its state in `storage`.
    pub fn new(issuer: Issuer, storage: Arc<dyn Storage>, clock: Arc<dyn Clock>) -> Self {
        Self {
            issuer,
            storage,
            clock,
            is_reserved: |_name| false,
        }
    }

    /// Refuses clients with a name for which `is_reserved` is true.
    #[must_use]
    pub fn reserving(self, is_reserved: fn(&str) -> bool) -> Self {
        Self { is_reserved, ..self }
    }

    /// Returns true if a client has a name that no app may have. The rule may be younger than the client.
    pub fn has_reserved_name(&self, client: &OAuthClient) -> bool {
        client.name.as_deref().is_some_and(self.is_reserved)
    }

    /// Returns the issuer of the tokens.
    pub const fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// Registers a public client from its metadata. [`registration::answer`] is the answer, with status 201.
    ///
    /// # Errors
    /// [`Error::Registration`], or the database failed.
    pub async fn register(&self, metadata: &[u8]) -> Result<OAuthClient, Error> {
        // 128 random bits: nobody meets the identifier of another client by chance, and it is no secret.
        let id = data_encoding::BASE64URL_NOPAD.encode(&random()?[..16]);
        let client = registration::register(metadata, format!("{CLIENT_PREFIX}{id}"), self.clock.now())?;
        if self.has_reserved_name(&client) {
            return Err(RegistrationError::from(MetadataError::ReservedName).into());
        }
        // The client is stored before it is answered, so it can be used at once.
        self.storage.add_client(&client).await?;
        Ok(client)
    }

    /// Returns the registered client with this identifier. Clients with a metadata document are not registered.
    ///
    /// # Errors
    /// The database failed.
    pub async fn registered(&self, id: &str) -> Result<Option<OAuthClient>, Error> {
        // URLs and long texts are no ids of the service, so the database is not asked.
        if !id.starts_with(CLIENT_PREFIX) || id.len() > 64 {
            return Ok(None);
        }
        Ok(self.storage.client(id).await?)
    }

    /// Makes a code after a person agreed, and returns the URL to redirect the browser to.
    ///
    /// # Errors
    /// [`Error::Scopes`] if the scopes are not among those of the request, or the database failed.
    pub async fn grant(
        &self,
        request: &AuthorizeRequest,
        operator: OperatorId,
        agent: AgentId,
        scopes: Scopes,
        budget: AppBudget,
    ) -> Result<String, Error> {
        // The choice of the person comes from a form, which a browser can change, so it is held against the request.
        if !request.may_grant(scopes) {
            return Err(Error::Scopes);
        }
        let secret = OAuthSecret::generate(OAuthSecretKind::Code)?;
        let code = Code {
            grant: Grant {
                client_id: request.client_id.clone(),
                operator,
                agent,
                resource: request.resource,
                scopes,
            },
            // Both are part of the code, so that the token request cannot bring others.
            redirect_uri: request.redirect_uri.clone(),
            challenge: request.challenge,
            budget,
            expires_at: self.clock.now().plus(CODE_LIFE),
        };
        self.storage.add_code(secret.hash(), &code).await?;
        Ok(request.code_url(&self.issuer, &secret))
    }

    /// Verifies that a request is from this client. `keys` are those of [`ClientAuth::KeysAt`], which the caller fetched.
    ///
    /// # Errors
    /// `invalid_client`, or the database failed.
    pub async fn authenticate(
        &self,
        credentials: &Credentials,
        client: &OAuthClient,
        keys: Option<&JwkSet>,
    ) -> Result<(), Error> {
        if credentials.client_id != client.id {
            return Err(TokenError::client("the client is not known").into());
        }
        let keys = match (&client.auth, keys) {
            (ClientAuth::None, _) if credentials.assertion.is_none() => return Ok(()),
            // An assertion of a client without keys proves nothing, and to ignore it would hide a wrong registration.
            (ClientAuth::None, _) => {
                return Err(TokenError::client("the client did not register private_key_jwt").into());
            }
            (ClientAuth::Keys(keys), _) | (ClientAuth::KeysAt(_), Some(keys)) => keys,
            (ClientAuth::KeysAt(_), None) => {
                return Err(TokenError::client("the keys of the client cannot be read").into());
            }
        };
        let refuse = || TokenError::client("client_assertion is missing: the client registered private_key_jwt");
        let assertion = credentials.assertion.as_deref().ok_or_else(refuse)?;
        let now = self.clock.now();
        let verified = assertion::verify(assertion, &client.id, &self.issuer, keys, now);
        // The identifier is used up only after the signature is good, or strangers could use it up before the client.
        let claims = verified.map_err(|error| TokenError::client(error.description()))?;
        let is_first = self
            .storage
            .use_jti(&client.id, &claims.jti, claims.remembered_until)
            .await?;
        // An assertion is good once: whoever saw it in a log cannot send it again.
        if !is_first {
            return Err(TokenError::client("the jti of client_assertion was used before").into());
        }
        Ok(())
    }

    /// Answers a token request of an authenticated client.
    ///
    /// # Errors
    /// [`Error::Refused`], or the database failed.
    pub async fn token(&self, client: &OAuthClient, request: &TokenRequest) -> Result<TokenAnswer, Error> {
        match request {
            TokenRequest::Code {
                code,
                verifier,
                redirect_uri,
                resource,
            } => {
                self.exchange(client, code, verifier, redirect_uri.as_deref(), *resource)
                    .await
            }
            TokenRequest::Refresh {
                token,
                scopes,
                resource,
            } => self.refresh(client, token, *scopes, *resource).await,
        }
    }

    async fn exchange(
        &self,
        client: &OAuthClient,
        code: &OAuthSecret,
        verifier: &str,
        redirect_uri: Option<&str>,
        resource: Option<Resource>,
    ) -> Result<TokenAnswer, Error> {
        // One answer for unknown, ended and foreign codes.
        let invalid = TokenError::grant("code is not valid");
        let now = self.clock.now();
        let stored = self.storage.code(code.hash()).await?.ok_or(invalid)?;
        let Code { grant, .. } = &stored.code;
        // Another client changes nothing, or anybody who saw a code could end the connection of its owner.
        if grant.client_id != client.id {
            return Err(invalid.into());
        }
        // The second use is looked for before the end of the code and before its verifier: both holders of the code
        // have had their use, and one of them is a thief. Only the client itself has the verifier, and may have sent
        // its request twice.
        if let Some(connection) = stored.redeemed_as {
            let is_own = stored.code.challenge.is_of(verifier);
            return Err(self.used(connection, is_own, now).await?.into());
        }
        if now >= stored.code.expires_at {
            return Err(invalid.into());
        }
        // None of the next errors uses the code up, since a thief could then keep it from its client.
        if redirect_uri.is_some_and(|uri| uri != stored.code.redirect_uri) {
            return Err(TokenError::grant("redirect_uri is not that of the authorization request").into());
        }
        if !stored.code.challenge.is_of(verifier) {
            return Err(TokenError::grant("code_verifier does not match code_challenge").into());
        }
        if resource.is_some_and(|resource| resource != grant.resource) {
            return Err(TokenError::TARGET.into());
        }
        let connection = Connection {
            id: ConnectionId::new(now),
            grant: grant.clone(),
            family: Family::new(now),
        };
        let refresh = client
            .may_refresh
            .then(|| OAuthSecret::generate(OAuthSecretKind::Refresh))
            .transpose()?;
        let (secret, access) = new_access(&connection, grant.scopes, now)?;
        // The database gets hashes only. The texts leave the process with the answer and are nowhere else.
        let refresh_hash = refresh.as_ref().map(OAuthSecret::hash);
        let redeemed = self
            .storage
            .redeem(code.hash(), &connection, refresh_hash, (secret.hash(), &access))
            .await?;
        match redeemed {
            Redeemed::Now => Ok(answer(&secret, &access, refresh.as_ref(), now)),
            // Two requests with the same code and its verifier ran at once.
            Redeemed::Before(connection) => Err(self.used(connection, true, now).await?.into()),
            Redeemed::Unknown => Err(invalid.into()),
        }
    }

    /// Refuses a code that was used. Its connection ends, unless the client of the code repeats its exchange before
    /// [`ROTATION_GRACE`] is over.
    async fn used(&self, connection: ConnectionId, is_own: bool, now: Timestamp) -> Result<TokenError, StorageError> {
        if is_own && now < connection.made_at().plus(ROTATION_GRACE) {
            return Ok(TokenError::grant("code was used a moment ago"));
        }
        self.reused(connection, now).await
    }

    /// Ends a connection whose code or refresh token was used twice.
    async fn reused(&self, connection: ConnectionId, now: Timestamp) -> Result<TokenError, StorageError> {
        self.storage.end(connection, now).await?;
        Ok(TokenError::grant("it was used before, and the connection has ended"))
    }

    async fn refresh(
        &self,
        client: &OAuthClient,
        token: &OAuthSecret,
        scopes: Option<Scopes>,
        resource: Option<Resource>,
    ) -> Result<TokenAnswer, Error> {
        let invalid = TokenError::grant("refresh_token is not valid");
        for _ in 0..MAX_ROTATION_TRIES {
            let now = self.clock.now();
            let found = self.storage.refresh(token.hash()).await?;
            // Old tokens are found too, which is how their reuse is seen.
            let (connection, number) = found.ok_or(invalid)?;
            let Connection { id, grant, family } = &connection;
            if grant.client_id != client.id {
                return Err(invalid.into());
            }
            let (salt, rotates) = match family.present(number, now) {
                RefreshUse::Ended => return Err(invalid.into()),
                RefreshUse::Reused => return Err(self.reused(*id, now).await?.into()),
                RefreshUse::Repeat(salt) => (salt, false),
                RefreshUse::Rotate => (random()?, true),
            };
            // The wish is checked after the token, so that a reuse is seen whatever else is wrong.
            // The metadata of the client may have changed since the token was made.
            if !client.may_refresh {
                return Err(TokenError::NO_REFRESH.into());
            }
            if resource.is_some_and(|resource| resource != grant.resource) {
                return Err(TokenError::TARGET.into());
            }
            let scopes = scopes.unwrap_or(grant.scopes);
            // A refresh can take less than was agreed to, and never more (RFC 6749 section 6).
            if !scopes.is_subset(grant.scopes) {
                return Err(TokenError::SCOPE.into());
            }
            // A repeated answer has an access token of its own, because only the hash of the first one is left.
            let (secret, access) = new_access(&connection, scopes, now)?;
            // The successor is computed and not stored, so a repeated answer has the same one.
            let successor = token.successor(&salt);
            let is_stored = if rotates {
                let (hash, next) = (successor.hash(), family.rotate(salt, now));
                self.storage.rotate(*id, &next, hash, (secret.hash(), &access)).await?
            } else {
                self.storage.add_access(secret.hash(), &access).await?
            };
            if is_stored {
                return Ok(answer(&secret, &access, Some(&successor), now));
            }
            // Another request of the client has rotated meanwhile, which the next round reads.
        }
        Err(Error::Storage(
            "a refresh token is used by many requests at once".into(),
        ))
    }

    /// Revokes a token of this client: ends its connection, with the access tokens and the refresh tokens. A token that
    /// nobody has is revoked already (RFC 7009 section 2.2).
    ///
    /// # Errors
    /// `invalid_grant` if the token is of another client, or the database failed.
    pub async fn revoke(&self, client: &OAuthClient, token: Option<&OAuthSecret>) -> Result<(), Error> {
        let Some(token) = token else { return Ok(()) };
        let Some(connection) = self.connection_of(token.hash()).await? else {
            return Ok(());
        };
        // A client that could revoke the tokens of another could end connections that it only heard of.
        if connection.grant.client_id != client.id {
            return Err(TokenError::grant("token is not of this client").into());
        }
        Ok(self.storage.end(connection.id, self.clock.now()).await?)
    }

    /// Returns what a code or a token was given for, also if it has ended. By it a caller knows, before it fetches the
    /// document of a client, that a request can be from that client.
    ///
    /// # Errors
    /// The database failed.
    pub async fn granted(&self, secret: &OAuthSecret) -> Result<Option<Grant>, Error> {
        if let Some(stored) = self.storage.code(secret.hash()).await? {
            return Ok(Some(stored.code.grant));
        }
        let connection = self.connection_of(secret.hash()).await?;
        Ok(connection.map(|connection| connection.grant))
    }

    async fn connection_of(&self, token: Hash) -> Result<Option<Connection>, StorageError> {
        if let Some((connection, _)) = self.storage.access(token).await? {
            return Ok(Some(connection));
        }
        Ok(self.storage.refresh(token).await?.map(|(connection, _)| connection))
    }

    /// Ends a connection, as its operator wishes.
    ///
    /// # Errors
    /// The database failed.
    pub async fn end(&self, connection: ConnectionId) -> Result<(), Error> {
        Ok(self.storage.end(connection, self.clock.now()).await?)
    }

    /// Checks the token of a call of this resource that needs this scope. The operator of the connection can be
    /// suspended, and its agent revoked, which the caller checks.
    ///
    /// # Errors
    /// The database failed.
    pub async fn check(
        &self,
        token: &str,
        resource: Resource,
        needed: Scope,
    ) -> Result<Result<(Connection, Access), DenialReason>, Error> {
        // A text of another form cannot be a token, so the database is not asked.
        let Some(token) = OAuthSecret::read(OAuthSecretKind::Access, token) else {
            return Ok(Err(DenialReason::InvalidToken));
        };
        let Some((connection, access)) = self.storage.access(token.hash()).await? else {
            return Ok(Err(DenialReason::InvalidToken));
        };
        let now = self.clock.now();
        let is_alive = now < access.expires_at && connection.family.is_alive(now);
        // A token for the other resource is as good as none: its person agreed to less there, or to more.
        Ok(if !is_alive || connection.grant.resource != resource {
            Err(DenialReason::InvalidToken)
        } else if !access.scopes.contains(needed) {
            Err(DenialReason::InsufficientScope)
        } else {
            Ok((connection, access))
        })
    }
}

/// Makes an access token, which does not outlive its connection.
fn new_access(connection: &Connection, scopes: Scopes, now: Timestamp) -> Result<(OAuthSecret, Access), Error> {
    let access = Access {
        connection: connection.id,
        scopes,
        // A connection ends at a fixed time, and nothing of it may work afterwards.
        expires_at: now.plus(ACCESS_TOKEN_LIFE).min(connection.family.expires_at()),
    };
    Ok((OAuthSecret::generate(OAuthSecretKind::Access)?, access))
}

fn answer(secret: &OAuthSecret, access: &Access, refresh: Option<&OAuthSecret>, now: Timestamp) -> TokenAnswer {
    TokenAnswer {
        access_token: secret.reveal().to_owned(),
        token_type: "Bearer",
        expires_in: access.expires_at.since(now).as_secs(),
        refresh_token: refresh.map(|refresh| refresh.reveal().to_owned()),
        scope: access.scopes.to_string(),
    }
}
