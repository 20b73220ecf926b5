use serde_json::json;

use super::*;
use crate::testing::{KeyPair, KeyType};

fn decode(text: &str) -> Vec<u8> {
    BASE64URL_NOPAD.decode(text.as_bytes()).unwrap()
}

fn keys(keys: &[Value]) -> Result<JwkSet, KeysError> {
    JwkSet::from_value(json!({"keys": keys}))
}

/// The payload of RFC 7515 appendix A.2 and A.3.
const PAYLOAD: &str = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";

#[test]
fn the_signatures_of_the_rfcs_verify() {
    let p256 = json!({
        "kty": "EC", "crv": "P-256",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    });
    // RFC 8037 appendix A.4.
    let ed25519 = json!({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
    let cases = [
        (
            KeyPair::new(KeyType::Rsa).jwk(),
            JwkAlgorithm::Rs256,
            format!("eyJhbGciOiJSUzI1NiJ9.{PAYLOAD}"),
            "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw",
        ),
        (
            p256,
            JwkAlgorithm::Es256,
            format!("eyJhbGciOiJFUzI1NiJ9.{PAYLOAD}"),
            "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
        ),
        (
            ed25519,
            JwkAlgorithm::EdDsa,
            "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc".to_owned(),
            "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
        ),
    ];
    for (jwk, algorithm, message, signature) in cases {
        let keys = keys(&[jwk]).unwrap();
        let mut signature = decode(signature);
        assert!(
            keys.verify(None, algorithm, message.as_bytes(), &signature),
            "{algorithm:?}"
        );
        assert!(!keys.verify(None, algorithm, &message.as_bytes()[1..], &signature));
        for other in [JwkAlgorithm::Rs256, JwkAlgorithm::Es256, JwkAlgorithm::EdDsa] {
            assert_eq!(
                keys.verify(None, other, message.as_bytes(), &signature),
                other == algorithm
            );
        }
        signature[3] ^= 1;
        assert!(!keys.verify(None, algorithm, message.as_bytes(), &signature));
        assert!(!keys.verify(None, algorithm, message.as_bytes(), &[]));
        assert!(!keys.verify(None, algorithm, message.as_bytes(), &[0; 64]));
    }
}

#[test]
fn a_key_is_selected_by_its_id() {
    let (one, other) = (KeyPair::new(KeyType::P256), KeyPair::new(KeyType::P256));
    let mut second = other.jwk();
    second["kid"] = json!("k2");
    let keys = keys(&[one.jwk(), second, KeyPair::new(KeyType::Ed25519).jwk()]).unwrap();
    let signature = other.sign(b"message");
    let verify = |id| keys.verify(id, JwkAlgorithm::Es256, b"message", &signature);
    assert!(verify(Some("k2")) && verify(None));
    assert!(!verify(Some("k1")) && !verify(Some("k3")) && !verify(Some("https://evil.example/key")));
}

#[test]
fn sets_with_secrets_are_refused_and_keys_for_other_uses_left_out() {
    let with = |member: &str, value: Value| {
        let mut jwk = KeyPair::new(KeyType::P256).jwk();
        jwk[member] = value;
        jwk
    };
    let rsa = |modulus: &[u8]| json!({"kty": "RSA", "n": BASE64URL_NOPAD.encode(modulus), "e": "AQAB"});
    for secret in [
        with("d", json!("AA")),
        json!({"kty": "oct", "k": "AA"}),
        json!({"kty": "oct"}),
        with("k", json!(1)),
    ] {
        let set = keys(&[KeyPair::new(KeyType::P256).jwk(), secret]);
        assert_eq!(set, Err(KeysError::Secret));
    }
    let unusable = [
        with("use", json!("enc")),
        with("key_ops", json!(["encrypt"])),
        with("alg", json!("ES384")),
        with("alg", json!("HS256")),
        with("alg", json!("none")),
        with("crv", json!("P-384")),
        with("x", json!("AA")),
        with("x", json!("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU=")),
        with("kty", json!("OKP")),
        rsa(&[1; 128]),
        rsa(&[1; 255]),
        rsa(&[0; 256]),
        rsa(&[1; 513]),
        rsa(&[]),
        json!({"kty": "OKP", "crv": "X25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}),
        json!({"kty": "new"}),
    ];
    for jwk in unusable {
        assert_eq!(keys(std::slice::from_ref(&jwk)), Err(KeysError::Unusable), "{jwk}");
        assert!(keys(&[jwk, KeyPair::new(KeyType::Ed25519).jwk()]).is_ok());
    }
    assert!(keys(&[with("key_ops", json!(["verify"]))]).is_ok());
    assert_eq!(keys(&[]), Err(KeysError::Form));
    assert_eq!(keys(&vec![KeyPair::new(KeyType::Rsa).jwk(); 21]), Err(KeysError::Form));
    for form in [
        "",
        "[]",
        "{}",
        r#"{"keys": {}}"#,
        r#"{"keys": [5]}"#,
        r#"[[{"kty": "RSA"}]]"#,
        r#"{"keys": [["RSA"]]}"#,
        r#"{"keys": [{}]}"#,
        r#"{"keys": [{"kty": 1}]}"#,
    ] {
        assert_eq!(JwkSet::parse(form.as_bytes()), Err(KeysError::Form), "{form}");
    }
}
