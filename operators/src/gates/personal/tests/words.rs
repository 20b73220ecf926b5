//! What the words around a number make of it, by examples on both sides of each rule.

use super::rules::{kinds, rule};

#[test]
fn a_thing_hides_only_its_own_number() {
    rule(
        "phone",
        &[
            "Date: 1 May. Name: John Smith, +1 415 555 2671",
            "Type: home 010-1234-5678",
            "Status: active, John, 010-1234-5678",
            "제품 문의 010-1234-5678",
            "注文者 山田 090-1234-5678",
            "Total for Ana: 415-555-2671",
        ],
        &[
            "Total: +821012345678",
            "Item no. 415-555-2671",
            "SKUs: SKU 415-555-2671, 415-555-2672",
            "제품 번호 010-1234-5678",
            "注文番号は090-1234-5678",
        ],
    );
    rule(
        "payment_card",
        &[
            "Invoice for Ana Silva 4111 1111 1111 1111",
            "Invoice, Ana: 4824591510225521",
        ],
        &["Invoice no. 4111 1111 1111 1111", "invoice code is 4824591510225521"],
    );
    rule(
        "us_ssn",
        &[
            "Employee ID 123-45-6789",
            "Status: single. 123-45-6789",
            "id: 123-45-6789",
        ],
        &[
            "Order ID 123-45-6789",
            "Product #123-45-6789",
            "Order 123-45-6789 by card",
        ],
    );
    rule(
        "kr_resident_number",
        &["제품 구매자 900101-1234567", "ID 900101-1234567"],
        &["제품 900101-1234567", "제품 ID: 900101-1234567"],
    );
    rule(
        "cn_resident_id",
        &["ID 110101199003074354"],
        &["order id 110101199003074354"],
    );
    assert_eq!(kinds("id", "110101199003074354"), "");
}
