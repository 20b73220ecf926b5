//! Each rule by an example that only it finds or spares, next to its neighbour on the other side of the rule.

use super::kind::Kind;
use super::*;

/// What the kinds in `text` are called, in a field named `field`.
pub(super) fn kinds(field: &str, text: &str) -> String {
    let kinds = Scanner::default().scan(text, ContextFlags::of_field(field));
    kinds.iter().map(Kind::code).collect::<Vec<_>>().join(",")
}

/// `found` are texts of the kind, `spared` are not personal data at all.
pub(super) fn rule(code: &str, found: &[&str], spared: &[&str]) {
    for text in found {
        assert_eq!(kinds("text", text), code, "{text}");
    }
    for text in spared {
        assert_eq!(kinds("text", text), "", "{text}");
    }
}

#[test]
fn an_email_needs_a_mailbox_and_a_domain_that_exists() {
    rule(
        "email",
        &[
            "kim@example.de",
            "a@x.com",
            "kim@example.de.",
            "(kim@example.co.kr)",
            "kim@example.de입니다",
            "kim@예시.한국",
        ],
        &[
            "kim@",
            "@example.de",
            "kim@example",
            "kim@.com",
            "kim@-a.com",
            "kim@example.nonsense",
            "kim@example.c",
            "-@example.de",
        ],
    );
    rule(
        "email",
        &["e-mail kim@example.nonsense"],
        &["e-mail icon@thing.png", "mail kim@printer.local"],
    );
}

#[test]
fn code_is_not_an_email() {
    rule(
        "email",
        &[
            "https://example.de/?m=kim@example.de",
            "mailto://kim@example.de",
            "kim@example.de: see a/b",
        ],
        &[
            "https://kim:pass@example.de/x",
            "git@example.de",
            "kim@example.de:srv/app",
            "curve25519-sha256@libssh.org",
            "icon@2x.com",
            "pkg@1.2.3",
            "kim@example.de1",
        ],
    );
}

#[test]
fn a_masked_or_spaced_email_is_one() {
    rule(
        "email",
        &[
            "kim [at] example [dot] de",
            "kim(at)example.de",
            "kim (골뱅이) example.de",
            "kim%40example.de",
            "kim&#64;example.de",
        ],
        &["look (at) this", "[at] example"],
    );
    rule(
        "email",
        &["kim @ example . de", "mail kim @ example.de"],
        &["lunch @ example.de", "a @ b"],
    );
}

#[test]
fn an_international_phone_has_a_country_code_and_its_length() {
    rule(
        "phone",
        &[
            "+82 10 1234 5678",
            "+821012345678",
            "+1 (415) 555-2671",
            "+44 (0)20 7946 0018",
            "+39 06 1234 5678",
            "+1.415.555.2671",
        ],
        &[
            "+82 10 1234",
            "+1 115 555 2671",
            "+1 415 155 2671",
            "+1 911 555 2671",
            "+210 1234 5678 9",
            "+33 0000000000",
            "+1.4155552671",
        ],
    );
    rule(
        "phone",
        &["tel a+821012345678", "0044 20 7946 0018"],
        &["a+821012345678", "order +821012345678", "00442079460018"],
    );
    rule("phone", &["+82 2 345 6789"], &["+82/2/345/6789"]);
}

#[test]
fn korean_phones_are_found_without_a_word() {
    rule(
        "phone",
        &[
            "010-1234-5678",
            "010 1234 5678",
            "010.1234.5678",
            "01012345678",
            "016-234-5678",
            "02-345-6789",
            "(02) 345-6789",
            "031-234-5678",
            "070-1234-5678",
        ],
        &[
            "012-1234-567",
            "01001234567",
            "01011010111",
            "0101234567",
            "1588-1234",
            "x01012345678",
            "01012345678901",
            "part 010-1234-5678",
            "02 345 6789",
        ],
    );
    assert_eq!(
        (kinds("id", "01012345678"), kinds("id", "010-1234-5678")),
        (String::new(), "phone".to_owned())
    );
}

#[test]
fn north_american_phones_need_separators_and_valid_codes() {
    rule(
        "phone",
        &[
            "415-555-2671",
            "(415) 555-2671",
            "415.555.2671",
            "1-415-555-2671",
            "415-555-2671x12",
        ],
        &[
            "115-555-2671",
            "415-155-2671",
            "411-555-2671",
            "415-911-2671",
            "4155552671",
            "415 555 2671",
            "2-415-555-2671",
            "415-555-2671-3",
            "sku 415-555-2671",
        ],
    );
    assert_eq!(kinds("code", "415-555-2671"), "phone");
    assert_eq!(kinds("order_id", "415-555-2671"), "");
}

#[test]
fn phones_of_other_countries_are_found_in_their_forms() {
    rule(
        "phone",
        &[
            "138-1234-5678",
            "138 1234 5678",
            "03-1234-5678",
            "(02) 9876 5432",
            "(11) 3123-4567",
            "11 91234-5678",
            "06 12 34 56 78",
            "07700 900123",
            "07700 900 123",
            "0161 496 0000",
            "0412 345 678",
            "0120-123-456",
            "044 668 18 00",
            "0532 123 45 67",
            "0470 12 34 56",
            "8 (912) 345-67-89",
            "06-12345678",
            "050-1234567",
            "0171/2345678",
            "0300-1234567",
            "0171-23456789",
            "089/123456",
            "020 7946 0018",
        ],
        &[
            "128-1234-5678",
            "4096 138 1234 5678",
            "00-1234-5678",
            "02 9876 5432",
            "11 3123-4567",
            "11 81234-5678",
            "01 02 03 04 05",
            "00 12 34 56 78",
            "07000 900123",
            "08700 900 123",
            "0261 496 0000",
            "1412 345 678",
            "144 668 18 00",
            "5 (912) 345-67-89",
            "05-12345678",
            "150-1234567",
            "1171/2345678",
            "0300.1234567",
            "0371-23456789",
            "189/123456",
            "010 7946.0018",
        ],
    );
}

#[test]
fn a_word_makes_a_number_a_phone_unless_it_is_a_date_or_an_address() {
    rule(
        "phone",
        &[
            "phone 5553217788",
            "전화 555 3217",
            "my mobile: 98765 43210",
            "call (555) 32177",
        ],
        &[
            "phone 2026-11-21",
            "phone 21/11/2026",
            "phone 192.168.100.200",
            "phone 1990-2020",
            "phone 20261121",
            "phone 1588-1234",
            "phone 3.14159265",
            "phone 55532177",
            "phone 000000000",
            "phone order 5553217788",
            "5553217788",
            "phone 12/345/678",
        ],
    );
    assert_eq!(
        (kinds("phone", "55532177"), kinds("phone_model", "5553217788")),
        ("phone".to_owned(), String::new())
    );
}

#[test]
fn a_card_has_an_issuer_a_length_and_a_check_digit() {
    rule(
        "payment_card",
        &[
            "4824591510225521",
            "4824 5915 1022 5521",
            "4824-5915-1022-5521",
            "372499556697641",
            "3724 995566 97641",
            "3634 096574 5076",
            "6011803937876770",
        ],
        &[
            "4824591510225522",
            "9917951617541245",
            "4824 5915 1022 552",
            "4824-5915 1022 5521",
            "x4824591510225521",
            "0.4824591510225521",
            "48245915102255210",
        ],
    );
}

#[test]
fn a_card_in_another_length_or_near_a_thing_needs_the_word() {
    rule(
        "payment_card",
        &[
            "card 4295655913616",
            "card 4715213350586033921",
            "visa 482459 1510225521",
            "order paid with card 4824591510225521",
        ],
        &[
            "4295655913616",
            "4715213350586033921",
            "482459 1510225521",
            "order 4824591510225521",
            "order 4824 5915 1022 5521",
        ],
    );
    rule(
        "payment_card",
        &["card 1024 4824 5915 1022 5521"],
        &["1024 4824 5915 1022 5521", "4824 5915 1022 5521 1024"],
    );
    // Its letters are no word for a card.
    rule(
        "payment_card",
        &["4621-9865-31098219 cb"],
        &[
            "8f5bbe6e-1e2c-4621-9865-31098219cb65",
            "urn:uuid:8F5BBE6E-1E2C-4621-9865-31098219CB65",
            "of 8f5bbe6e-1e2c-4621-9865-31098219cb65, and 8f5bbe6e-1e2c-4621-9865-31098219cb65",
        ],
    );
    assert_eq!(
        (kinds("id", "4824591510225521"), kinds("id", "4824 5915 1022 5521")),
        (String::new(), "payment_card".to_owned())
    );
}

#[test]
fn an_iban_has_its_countrys_length_and_check_digits() {
    rule(
        "iban",
        &[
            "DE89370400440532013000",
            "DE89 3704 0044 0532 0130 00",
            "de89370400440532013000",
            "GB29-NWBK-6016-1331-9268-19",
            "(DE89370400440532013000)",
            "BE68 5390 0754 7034",
            "FR1420041010050500013M02606",
            "MT84MALT011000012345MTLCAST001S",
            "NO93 8601 1117 947",
            "MU17BOMM0101101030300200000MUR",
        ],
        &[
            // Check digits and length are right, the form is not.
            "be50118de91165c6",
            "ba27bd0a-347a-497b-993f-8381433e947a",
            "DE88370400440532013000",
            "DE8937040044053201300",
            "DE893704004405320130001",
            "QQ89370400440532013000",
            "xDE89370400440532013000",
            "DE893 7040 0440 5320 1300 0",
            "DE89  3704  0044 0532 0130 00",
        ],
    );
}

#[test]
fn a_korean_resident_number_has_a_birth_date() {
    rule(
        "kr_resident_number",
        &[
            "900101-1715162",
            "900101-1439400",
            "880707-5932974",
            "000229-3123456",
            "주민등록번호 9001011439400",
            "주민번호 900101 1439400",
            "part 900101-1715162",
        ],
        &[
            "901301-1715162",
            "900132-1715162",
            "900229-1715162",
            "900101-9715162",
            "900101-0715162",
            "9001011715162",
            "900101 1439400",
            "part 900101-1439400",
            "900101-1715162-1",
        ],
    );
    rule(
        "kr_resident_number",
        &["외국인등록번호 880707-5932974", "part 880707-5932974"],
        &["part 880707-5932972"],
    );
    assert_eq!(
        (
            kinds("timestamp", "1701011234567"),
            kinds("rrn", "1701013234567").as_str()
        ),
        (String::new(), "kr_resident_number")
    );
}

#[test]
fn a_us_ssn_is_in_an_area_group_and_serial_that_exist() {
    rule(
        "us_ssn",
        &[
            "123-45-6789",
            "ssn 123456789",
            "ssn 123 45 6789",
            "social security 123.45.6789",
        ],
        &[
            "000-45-6789",
            "666-45-6789",
            "900-45-6789",
            "123-00-6789",
            "123-45-0000",
            "078-05-1120",
            "219-09-9999",
            "123456789",
            "123 45 6789",
            "part 123-45-6789",
            "a-123-45-6789",
        ],
    );
    assert_eq!(
        (kinds("ssn", "123456789"), kinds("ssn_count", "123456789")),
        ("us_ssn".to_owned(), String::new())
    );
}

#[test]
fn european_numbers_have_check_digits_and_a_form_or_a_word() {
    rule(
        "uk_nino",
        &["MM 17 79 44 A", "NINO MM177944A"],
        &[
            "MM177944A",
            "NINO GB177944A",
            "NINO DM177944A",
            "NINO MM177944E",
            "NINO MMM177944A",
            "MM 17 79 44 AB",
        ],
    );
    rule(
        "es_dni",
        &[
            "47104803-K",
            "47.104.803-K",
            "DNI 47104803K",
            "X-9830036-C",
            "NIE X9830036C",
        ],
        &[
            "47104803K",
            "47104803-L",
            "DNI 47104803L",
            "147104803-K",
            "W-9830036-C",
            "47104803-KX",
            "X9830036C",
        ],
    );
    rule(
        "it_codice_fiscale",
        &["RSSMRA85T10A562S", "rssmra85t10a562s"],
        &[
            "RSSMRA85T10A562T",
            "RSSMRA85F10A562S",
            "RSSMRA85T10A562SX",
            "RSSMR185T10A562S",
        ],
    );
    rule(
        "fr_nir",
        &["2 85 07 75 123 456 55", "sécu 285077512345655", "sécu 2850775123456 55"],
        &[
            "2 85 07 75 123 456 56",
            "285077512345655",
            "2 85 19 75 123 456 53",
            "3 85 07 75 123 456 55",
        ],
    );
    rule(
        "pl_pesel",
        &["PESEL 88051233282"],
        &["88051233282", "PESEL 88051233283", "PESEL 88151233282"],
    );
    rule(
        "se_personnummer",
        &[
            "personnummer 811218-8241",
            "personnummer 19811218-8241",
            "personnummer 8112188241",
        ],
        &["811218-8241", "personnummer 811218-8242", "personnummer 811318-8240"],
    );
}

#[test]
fn numbers_of_other_countries_have_check_digits_and_a_form_or_a_word() {
    rule(
        "br_cpf",
        &["442.818.189-28", "CPF 44281818928", "CPF 442818189-28"],
        &[
            "442.818.189-29",
            "442.818.189-38",
            "44281818928",
            "442-818-189-28",
            "111.111.111-11",
        ],
    );
    rule(
        "ca_sin",
        &["social insurance 674 538 780"],
        &[
            "674 538 780",
            "social insurance 674 538 781",
            "social insurance 874 538 788",
        ],
    );
    rule(
        "in_aadhaar",
        &["aadhaar 5346 1930 9230", "aadhaar 534619309230"],
        &["5346 1930 9230", "aadhaar 5346 1930 9231", "aadhaar 1346 1930 9230"],
    );
    rule(
        "cn_resident_id",
        &["110101199003074354", "11010119900307854X", "身份证 110101199003074354"],
        &[
            "110101199003074355",
            "990101199003074091",
            "110101199013077049",
            "11010119900308854X",
            "order 110101199003074354",
            "11010119900307854XY",
        ],
    );
    rule(
        "jp_my_number",
        &["マイナンバー 7956 1152 1890", "個人番号 795611521890"],
        &["7956 1152 1890", "個人番号 795611521891"],
    );
}

#[test]
fn a_machine_readable_line_has_its_check_digits_or_the_form_of_a_name() {
    rule(
        "passport_mrz",
        &[
            "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<",
            "L898902C36UTO7408122F1204159<<<<<<<<<<<<<<04",
            "I<UTOD231458907<<<<<<<<<<<<<<<",
            "7408122F1204159UTO<<<<<<<<<<<6",
        ],
        &[
            "L898902C37UTO7408122F1204159<<<<<<<<<<<<<<04",
            "L898902C36UTO7408123F1204159<<<<<<<<<<<<<<04",
            "I<UTOD231458908<<<<<<<<<<<<<<<",
            "7408123F1204159UTO<<<<<<<<<<<6",
            "P<UTOERIKSSON<<ANNA<MARIA",
            "X<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<",
            "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        ],
    );
}

#[test]
fn evasions_are_undone_first() {
    rule(
        "phone",
        &[
            "０１０－１２３４－５６７８",
            "0\u{200b}10-12\u{200b}34-5678",
            "0 1 0 1 2 3 4 5 6 7 8",
            "010\u{a0}1234\u{a0}5678",
            "０１０ー１２３４ー５６７８",
        ],
        &["0 1 0 1 2 3"],
    );
    rule(
        "payment_card",
        &["4 8 2 4 5 9 1 5 1 0 2 2 5 5 2 1", "４８２４５９１５１０２２５５２１"],
        &[],
    );
    rule(
        "email",
        &["ｋｉｍ＠ｅｘａｍｐｌｅ．ｄｅ", "ki\u{ad}m@exam\u{2060}ple.de"],
        &[],
    );
}
