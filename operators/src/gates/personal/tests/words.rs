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

#[test]
fn a_word_for_a_phone_makes_none_of_dates_decimals_and_counts() {
    rule(
        "phone",
        &[
            "tel 412 34 567",
            "mobile: 412 34 567",
            "SMS 0791234567",
            "fax no. 555 3217",
            "call Ana on 654 321 987",
            "mobile of Ana: 0532 123 45 67",
            "contact Ana (555) 32177",
            "call Ana, 555-3217",
            "Contact: Ana Silva, 555 3217",
            "sms to 412 34 567",
            "mobile number for Ana is 412 34 567",
            "412 34 567 (mobile)",
            "phone 1:555-321-7788",
            "tel 415 555.2671",
            "tel 1 415.555.2671",
            "tel 030.1234 567",
            "tel 201 02 34 567 890",
            "tel 55 11 2045 6789",
            "fax a+821012345678",
        ],
        &[
            "{\"last_call\":\"2026-11-21 07:10:20\"}",
            "{\"last_call\":\"21.11.2026 07:10\"}",
            "last call: 07:10:20 2026-11-21",
            "last call 20261121 071020",
            "last call 20261121071020",
            "last call 21.11.26 07:10",
            "call 2026-11-00123",
            "call for papers 2026-11-21 23:59",
            "Tel Aviv 32.0853 34.7818",
            "Mobile, Alabama 30.6954 88.0399",
            "contact angle 102.3 98.7 101.2",
            "contact angle 102.35-108.75",
            "call option strike 150.00 155.00",
            "call option strikes 150 155 160",
            "mob spawn 100 64 200",
            "SMS 160 140 70",
            "phone specs 160 1400 700",
            "Mobile subscribers: 56 000 000 in 2020",
            "Mobile: 56 000 000",
            "12 345 678 mobile subscribers",
            "fax 10.1038/s41586-020-2649-2",
            "tel 1.234.567",
        ],
    );
    for text in [
        "2026-11-21 07:10:20",
        "21.11.2026 07:10",
        "20261121071020",
        "07:10:20 2026-11-21",
    ] {
        assert_eq!(kinds("last_call", text), "", "{text}");
    }
    for text in ["55532177", "412 34 567", "0791234567"] {
        assert_eq!(kinds("mobile", text), "phone", "{text}");
    }
}

#[test]
fn a_korean_word_for_a_message_is_not_one_for_a_character() {
    rule(
        "phone",
        &[
            "문자 010 12345678",
            "문자: 0161234567",
            "문자는 0212345678",
            "x01012345678로 문자 주세요",
            "(x01012345678) 문자메시지",
            "x01012345678 문자",
            "4155552671로 문자 주세요",
            "문자 보내주세요 555 3217",
        ],
        &[
            "주문자 번호 202600012345",
            "영문자 2026-11-21 07:10",
            "문자 123456789",
            "문자로 바꾼 5553217788",
            "영문자 0123456789",
            "문자열 0123456789",
            "x01012345678 문자열",
            "4155552671 주문자 주세요",
        ],
    );
}

#[test]
fn the_window_before_a_number_cuts_no_word() {
    // The window begins within the word for each of these lengths, if it does not begin before it.
    for length in 20..60 {
        let filler = format!("{}x", ".,".repeat(length));
        for (word, number) in [
            ("hotel", "4155552671"),
            ("motel", "030 1234567"),
            ("callus", "4155552671"),
            ("rappel", "4155552671"),
            ("Überfax", "4155552671"),
            ("hôtel", "4155552671"),
            ("discard", "4222222222222"),
        ] {
            let before = format!("{word} {filler} {number}");
            assert_eq!(kinds("text", &before), "", "{before}");
            let after = format!("{number} {} {word}", ".".repeat(length % 24));
            assert_eq!(kinds("text", &after), "", "{after}");
        }
    }
}

#[test]
fn a_word_that_introduces_a_number_is_a_word_of_its_own_right_before_it() {
    rule(
        "phone",
        &[
            "call 0123456789",
            "phone_number=5553217788",
            "owner_phone: 5553217788",
            "phone_no_2 5553217788",
            "phone 2: 5553217788",
            "tel 5553217788, 5553217789",
        ],
        &[
            "call_in 5553217788",
            "call_in 0123456789",
            "phone_model 5553217788",
            "call-graph 5553217788",
            "call 500 of 5553217788",
            "call 5 of 5553217788",
            "call 5 5553217788",
            "phone 2019 sales 5553217788",
            "call 503, 5553217788 bytes",
            "5553217788 call_in",
            "Châtel 5553217788",
            "Téléfax 5553217788",
            "http://a.example/polls/2007/4187/,telephone",
        ],
    );
}
