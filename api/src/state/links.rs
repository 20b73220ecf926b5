//! Signed addresses of parts, valid for a limited time.
//!
//! Invariant: the signature covers the dataset, the part, the operator it was made for and the expiry, so none of them
//! can be exchanged. The secret is known only to the database and this process.

use std::fmt;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Deserialize;
use sha2::Sha256;
use store::{EmailLink, LinkPurpose, Store};
use tokio::sync::OnceCell;
use types::{ContributionId, DatasetId, LinkId, OperatorId, ReportId, Timestamp};

use crate::error::ApiError;

/// Name of the secret in the database.
const SECRET: &str = "part-links";
// Distinct contexts separate the kinds of addresses: a signature for one is never valid for another.
const CONTEXT: &str = "sluice-part-1";
const UPLOAD_CONTEXT: &str = "sluice-upload-1";
const MAIL_CONTEXT: &str = "sluice-mail-1";
const WALLET_CONTEXT: &str = "sluice-wallet-1";
const SIGN_IN_CONTEXT: &str = "sluice-sign-in-1";
const REPORT_CONTEXT: &str = "sluice-report-1";
const REPORTER_CONTEXT: &str = "sluice-reporter-1";

/// Signer of addresses with a lazily loaded secret: it is read from the database, or created there, at the first use.
#[derive(Default)]
pub(crate) struct PartUrlSigner {
    secret: OnceCell<[u8; 32]>,
}

impl fmt::Debug for PartUrlSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Links")
    }
}

/// Account that bytes count toward.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum GrantAccount {
    /// Operator that the bytes count toward.
    Operator(OperatorId),
    /// A wallet that bought something, as `{network}:{address}`.
    Wallet(String),
}

impl GrantAccount {
    /// Returns the operator; `None` for a wallet.
    pub(crate) const fn operator(&self) -> Option<OperatorId> {
        match self {
            Self::Operator(operator) => Some(*operator),
            Self::Wallet(_) => None,
        }
    }
}

impl fmt::Display for GrantAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operator(operator) => fmt::Display::fmt(operator, f),
            Self::Wallet(wallet) => write!(f, "w:{wallet}"),
        }
    }
}

impl TryFrom<String> for GrantAccount {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.strip_prefix("w:") {
            Some(wallet) => Ok(Self::Wallet(wallet.to_owned())),
            None => text
                .parse()
                .map(Self::Operator)
                .map_err(|_error| "must be the id of an operator, or `w:` and a wallet"),
        }
    }
}

/// Contents of a signed address to a part of a dataset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartGrant<'a> {
    /// Dataset of the part.
    pub(crate) dataset: DatasetId,
    /// Name of the part file.
    pub(crate) part: &'a str,
    /// Account that the download counts toward.
    pub(crate) account: &'a GrantAccount,
    /// Expiry in seconds since the epoch.
    pub(crate) expires: u64,
}

/// HMAC-SHA256 over addresses, keyed with the service's secret.
pub(crate) struct AddressSigner(Hmac<Sha256>);

impl PartUrlSigner {
    /// Returns the signer, loading the secret first if needed.
    pub(crate) async fn signer(&self, store: &Store, now: Timestamp) -> Result<AddressSigner, ApiError> {
        // Replicas race to store a secret of their own. The database keeps the first and returns it to all.
        let read = || async {
            let mut fresh = [0; 32];
            getrandom::fill(&mut fresh).map_err(ApiError::unavailable)?;
            Ok::<_, ApiError>(store.secret(SECRET, fresh, now).await?)
        };
        let secret = self.secret.get_or_try_init(read).await?;
        let keyed = Hmac::new_from_slice(secret).map_err(ApiError::internal)?;
        Ok(AddressSigner(keyed))
    }
}

impl AddressSigner {
    fn over(&self, grant: &PartGrant<'_>) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        let PartGrant {
            dataset,
            part,
            account,
            expires,
        } = grant;
        mac.update(format!("{CONTEXT}\n{dataset}\n{part}\n{account}\n{expires}").as_bytes());
        mac
    }

    /// Returns the signed address, below `base`, of a part of a dataset.
    pub(crate) fn address(&self, base: &str, grant: &PartGrant<'_>) -> String {
        let PartGrant {
            dataset,
            part,
            account,
            expires,
        } = grant;
        let signature = BASE64URL_NOPAD.encode(&self.over(grant).finalize().into_bytes());
        format!("{base}/parts/{dataset}/{part}?account={account}&expires={expires}&signature={signature}")
    }

    fn over_upload(&self, upload: ContributionId, n: u32, expires: u64) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(format!("{UPLOAD_CONTEXT}\n{upload}\n{n}\n{expires}").as_bytes());
        mac
    }

    /// Returns the signed address, below `base`, to which a part of an upload is sent. `expires` is in seconds since
    /// the epoch.
    pub(crate) fn upload_address(&self, base: &str, upload: ContributionId, n: u32, expires: u64) -> String {
        let signature = self.over_upload(upload, n, expires).finalize().into_bytes();
        let signature = BASE64URL_NOPAD.encode(&signature);
        format!("{base}/uploads/{upload}/{n}?expires={expires}&signature={signature}")
    }

    /// Verifies the signature of a part of an upload, in constant time. Does not look at the expiry.
    pub(crate) fn upload_signed(&self, upload: ContributionId, n: u32, expires: u64, signature: &str) -> bool {
        // A signature that cannot be decoded becomes the empty one, which is never valid, so there is no second branch.
        let signature = BASE64URL_NOPAD.decode(signature.as_bytes()).unwrap_or_default();
        self.over_upload(upload, n, expires).verify_slice(&signature).is_ok()
    }

    /// Returns the nonce of the message that proves a wallet to be an operator's. It follows from both, so nothing has to
    /// be kept.
    pub(crate) fn wallet_nonce(&self, operator: OperatorId, wallet: &str) -> String {
        let mut mac = self.0.clone();
        mac.update(format!("{WALLET_CONTEXT}\n{operator}\n{wallet}").as_bytes());
        HEXLOWER.encode(&mac.finalize().into_bytes()[..16])
    }

    fn over_sign_in(&self, random: &str, issued_at: Timestamp) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        let minute = issued_at.micros().div_euclid(60_000_000);
        mac.update(format!("{SIGN_IN_CONTEXT}\n{random}\n{minute}").as_bytes());
        mac
    }

    /// Returns the nonce of a challenge to sign in with a wallet: random bytes, and a proof that they are of this service and
    /// of this minute. So no challenge has to be kept.
    pub(crate) fn sign_in_nonce(&self, random: [u8; 8], issued_at: Timestamp) -> String {
        let random = HEXLOWER.encode(&random);
        let mac = self.over_sign_in(&random, issued_at).finalize().into_bytes();
        format!("{random}{}", HEXLOWER.encode(&mac[..8]))
    }

    /// Verifies such a nonce, in constant time. Does not look at the age.
    pub(crate) fn is_sign_in_nonce(&self, nonce: &str, issued_at: Timestamp) -> bool {
        let Some((random, mac)) = nonce.split_at_checked(16) else {
            return false;
        };
        let mac = HEXLOWER.decode(mac.as_bytes()).unwrap_or_default();
        // A shorter proof would be a part of a good one.
        mac.len() == 8 && self.over_sign_in(random, issued_at).verify_truncated_left(&mac).is_ok()
    }

    /// Returns the token of a link that is mailed. It follows from the link's id, so no job has to keep it, and each
    /// try of a letter has the same one.
    pub(crate) fn mail_token(&self, purpose: LinkPurpose, link: LinkId) -> String {
        let mut mac = self.0.clone();
        mac.update(format!("{MAIL_CONTEXT}\n{purpose}\n{link}").as_bytes());
        // 192 bits are enough, and the address fits a line of a letter.
        BASE64URL_NOPAD.encode(&mac.finalize().into_bytes()[..24])
    }

    /// Returns the token of a link about another address of an account. Its purposes have words of their own, so it is never that
    /// of a link which signs in.
    pub(crate) fn email_token(&self, purpose: EmailLink, link: LinkId) -> String {
        let mut mac = self.0.clone();
        mac.update(format!("{MAIL_CONTEXT}\n{purpose}\n{link}").as_bytes());
        BASE64URL_NOPAD.encode(&mac.finalize().into_bytes()[..24])
    }

    fn over_report(&self, report: ReportId) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(format!("{REPORT_CONTEXT}\n{report}").as_bytes());
        mac
    }

    /// Returns the token of the address at which the outcome of a report is read without a key.
    pub(crate) fn report_token(&self, report: ReportId) -> String {
        BASE64URL_NOPAD.encode(&self.over_report(report).finalize().into_bytes())
    }

    /// Verifies the token of a report, in constant time.
    pub(crate) fn is_report_token(&self, report: ReportId, token: &str) -> bool {
        let token = BASE64URL_NOPAD.decode(token.as_bytes()).unwrap_or_default();
        self.over_report(report).verify_slice(&token).is_ok()
    }

    /// Returns a text that stands for who reports without a key, and says nothing of them to who lacks the secret.
    pub(crate) fn reporter(&self, who: &str) -> String {
        let mut mac = self.0.clone();
        mac.update(format!("{REPORTER_CONTEXT}\n{who}").as_bytes());
        HEXLOWER.encode(&mac.finalize().into_bytes()[..16])
    }

    /// Verifies the signature of `grant`, in constant time. Does not look at the expiry.
    pub(crate) fn signed(&self, grant: &PartGrant<'_>, signature: &str) -> bool {
        let signature = BASE64URL_NOPAD.decode(signature.as_bytes()).unwrap_or_default();
        self.over(grant).verify_slice(&signature).is_ok()
    }
}
