//! Keys of test clients, and assertions that they sign.
//!
//! Invariant: the RSA key is the published one of RFC 7515 appendix A.2; the others are made for each test.
#![expect(clippy::unwrap_used, reason = "keys of tests")]

use data_encoding::BASE64URL_NOPAD;
use ring::rand::SystemRandom;
use ring::rsa::{KeyPairComponents, PublicKeyComponents};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};

/// Modulus, private exponent, factors, exponents and coefficient of the RSA key in RFC 7515 appendix A.2.
const RSA: [&str; 7] = [
    "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ",
    "Eq5xpGnNCivDflJsRQBXHx1hdR1k6Ulwe2JZD50LpXyWPEAeP88vLNO97IjlA7_GQ5sLKMgvfTeXZx9SE-7YwVol2NXOoAJe46sui395IW_GO-pWJ1O0BkTGoVEn2bKVRUCgu-GjBVaYLU6f3l9kJfFNS3E0QbVdxzubSu3Mkqzjkn439X0M_V51gfpRLI9JYanrC4D4qAdGcopV_0ZHHzQlBjudU2QvXt4ehNYTCBr6XCLQUShb1juUO1ZdiYoFaFQT5Tw8bGUl_x_jTj3ccPDVZFD9pIuhLhBOneufuBiB4cS98l2SR_RQyGWSeWjnczT0QU91p1DhOVRuOopznQ",
    "4BzEEOtIpmVdVEZNCqS7baC4crd0pqnRH_5IB3jw3bcxGn6QLvnEtfdUdiYrqBdss1l58BQ3KhooKeQTa9AB0Hw_Py5PJdTJNPY8cQn7ouZ2KKDcmnPGBY5t7yLc1QlQ5xHdwW1VhvKn-nXqhJTBgIPgtldC-KDV5z-y2XDwGUc",
    "uQPEfgmVtjL0Uyyx88GZFF1fOunH3-7cepKmtH4pxhtCoHqpWmT8YAmZxaewHgHAjLYsp1ZSe7zFYHj7C6ul7TjeLQeZD_YwD66t62wDmpe_HlB-TnBA-njbglfIsRLtXlnDzQkv5dTltRJ11BKBBypeeF6689rjcJIDEz9RWdc",
    "BwKfV3Akq5_MFZDFZCnW-wzl-CCo83WoZvnLQwCTeDv8uzluRSnm71I3QCLdhrqE2e9YkxvuxdBfpT_PI7Yz-FOKnu1R6HsJeDCjn12Sk3vmAktV2zb34MCdy7cpdTh_YVr7tss2u6vneTwrA86rZtu5Mbr1C1XsmvkxHQAdYo0",
    "h_96-mK1R_7glhsum81dZxjTnYynPbZpHziZjeeHcXYsXaaMwkOlODsWa7I9xXDoRwbKgB719rrmI2oKr6N3Do9U0ajaHF-NKJnwgjMd2w9cjz3_-kyNlxAr2v4IKhGNpmM5iIgOS1VZnOZ68m6_pbLBSp3nssTdlqvd0tIiTHU",
    "IYd7DHOhrWvxkwPQsRM2tOgrjbcrfvtQJipd-DlcxyVuuM9sQLdgjVk2oy26F0EmpScGLq2MowX7fhd_QJQ3ydy5cY7YIBi87w93IKLEdfnbJtoOPLUW0ITrJReOgo1cq9SbsxYawBgfp_gh6A5603k2-ZQwVK0JKSHuLFkuQ3U",
];

/// Type of a key pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    /// P-256, for ES256.
    P256,
    /// RSA of 2,048 bits, for RS256.
    Rsa,
    /// Ed25519, for `EdDSA`.
    Ed25519,
}

#[derive(Debug)]
enum Pair {
    P256(EcdsaKeyPair),
    Rsa(Box<RsaKeyPair>),
    Ed25519(Ed25519KeyPair),
}

/// A key pair of a test client. Its `kid` is `k1`.
#[derive(Debug)]
pub struct KeyPair(Pair);

fn decode(text: &str) -> Vec<u8> {
    BASE64URL_NOPAD.decode(text.as_bytes()).unwrap()
}

impl KeyPair {
    /// Creates a key pair.
    pub fn new(of: KeyType) -> Self {
        let random = SystemRandom::new();
        Self(match of {
            KeyType::P256 => {
                let curve = &ECDSA_P256_SHA256_FIXED_SIGNING;
                let pkcs8 = EcdsaKeyPair::generate_pkcs8(curve, &random).unwrap();
                Pair::P256(EcdsaKeyPair::from_pkcs8(curve, pkcs8.as_ref(), &random).unwrap())
            }
            KeyType::Ed25519 => {
                let pkcs8 = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
                Pair::Ed25519(Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap())
            }
            KeyType::Rsa => {
                let [n, d, p, q, dp, dq, qi] = RSA.map(decode);
                let components = KeyPairComponents {
                    public_key: PublicKeyComponents { n, e: vec![1, 0, 1] },
                    d,
                    p,
                    q,
                    dP: dp,
                    dQ: dq,
                    qInv: qi,
                };
                Pair::Rsa(Box::new(RsaKeyPair::from_components(&components).unwrap()))
            }
        })
    }

    /// Returns the word of the algorithm.
    pub const fn algorithm(&self) -> &'static str {
        match self.0 {
            Pair::P256(_) => "ES256",
            Pair::Rsa(_) => "RS256",
            Pair::Ed25519(_) => "EdDSA",
        }
    }

    /// Returns the public key as a JSON Web Key.
    pub fn jwk(&self) -> Value {
        let encode = |bytes: &[u8]| BASE64URL_NOPAD.encode(bytes);
        match &self.0 {
            Pair::P256(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "x": encode(x), "y": encode(y), "kid": "k1", "use": "sig"})
            }
            Pair::Rsa(_) => json!({"kty": "RSA", "n": RSA[0], "e": "AQAB", "kid": "k1", "alg": "RS256"}),
            Pair::Ed25519(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key().as_ref()), "kid": "k1"})
            }
        }
    }

    /// Returns the signature of a message.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.0 {
            Pair::P256(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Pair::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
                signature
            }
        }
    }

    /// Returns a signed JWT in the compact form.
    pub fn jwt(&self, header: &Value, claims: &Value) -> String {
        let encode = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
        let signed = format!("{}.{}", encode(header), encode(claims));
        let signature = BASE64URL_NOPAD.encode(&self.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}
