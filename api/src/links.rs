//! Addresses of parts that are good for a while and for nothing else.
//!
//! Invariant: the signature covers the dataset, the part, the operator it was made for and the end of its time, so
//! none of them can be exchanged. The secret never leaves the database and this process.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use store::Store;
use tokio::sync::OnceCell;
use types::{ContributionId, DatasetId, OperatorId, Timestamp};

use crate::error::ApiError;

/// The name of the secret in the database.
const SECRET: &str = "part-links";
/// Domain separation.
const CONTEXT: &str = "sluice-part-1";
const UPLOAD_CONTEXT: &str = "sluice-upload-1";

/// Signs addresses of parts; the secret is read, or made, when it is first needed.
#[derive(Default)]
pub(crate) struct Links {
    secret: OnceCell<[u8; 32]>,
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Links")
    }
}

/// What an address is good for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant<'a> {
    /// The dataset.
    pub(crate) dataset: DatasetId,
    /// The name of the part.
    pub(crate) part: &'a str,
    /// Whose egress it counts toward.
    pub(crate) account: OperatorId,
    /// Until when, in seconds since the epoch.
    pub(crate) expires: u64,
}

/// The signer of addresses.
pub(crate) struct Signer(Hmac<Sha256>);

impl Links {
    /// The signer with the service's secret.
    pub(crate) async fn signer(&self, store: &Store, now: Timestamp) -> Result<Signer, ApiError> {
        let read = || async {
            let mut fresh = [0; 32];
            getrandom::fill(&mut fresh).map_err(ApiError::unavailable)?;
            Ok::<_, ApiError>(store.secret(SECRET, fresh, now).await?)
        };
        let secret = self.secret.get_or_try_init(read).await?;
        let keyed = Hmac::new_from_slice(secret).map_err(ApiError::internal)?;
        Ok(Signer(keyed))
    }
}

impl Signer {
    fn over(&self, grant: &Grant<'_>) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        let Grant {
            dataset,
            part,
            account,
            expires,
        } = grant;
        mac.update(format!("{CONTEXT}\n{dataset}\n{part}\n{account}\n{expires}").as_bytes());
        mac
    }

    /// The address below `base`.
    pub(crate) fn address(&self, base: &str, grant: &Grant<'_>) -> String {
        let Grant {
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

    /// The address of a part of an upload below `base`, good until `expires`, in seconds since the epoch.
    pub(crate) fn upload_address(&self, base: &str, upload: ContributionId, n: u32, expires: u64) -> String {
        let signature = self.over_upload(upload, n, expires).finalize().into_bytes();
        let signature = BASE64URL_NOPAD.encode(&signature);
        format!("{base}/uploads/{upload}/{n}?expires={expires}&signature={signature}")
    }

    /// Whether `signature` is the one for this part of an upload; takes as long whatever is wrong with it.
    pub(crate) fn upload_signed(&self, upload: ContributionId, n: u32, expires: u64, signature: &str) -> bool {
        let signature = BASE64URL_NOPAD.decode(signature.as_bytes()).unwrap_or_default();
        self.over_upload(upload, n, expires).verify_slice(&signature).is_ok()
    }

    /// Whether `signature` is the one for `grant`; takes as long whatever is wrong with it.
    pub(crate) fn signed(&self, grant: &Grant<'_>, signature: &str) -> bool {
        let signature = BASE64URL_NOPAD.decode(signature.as_bytes()).unwrap_or_default();
        self.over(grant).verify_slice(&signature).is_ok()
    }
}
