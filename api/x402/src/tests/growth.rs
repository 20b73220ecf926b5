use ::growth::{consume, is_linear};

use super::*;
use crate::sign_in::signer;
use crate::signature::WalletSignature;

#[test]
fn what_a_payer_sends_takes_time_that_is_linear_in_its_text() {
    let asset = asset();
    for protocol in [Protocol::V1, Protocol::V2] {
        is_linear("a header", 4_000, |text| consume(read_header(protocol, text, &asset)));
        is_linear("a payment in base64", 4_000, |text| {
            let header = BASE64.encode(json!({"payload": text, "scheme": text}).to_string().as_bytes());
            consume(read_header(protocol, &header, &asset));
        });
    }
    is_linear("a signature", 4_000, |text| consume(WalletSignature::read(text)));
    is_linear("a text to sign in with", 4_000, |text| {
        signer(text, "0x");
    });
}
