//! Numbers and texts that machines write, next to what people write in nearly the same form.

use super::rules::{kinds, rule};

#[test]
fn a_decimal_or_a_version_is_not_dialled_out() {
    rule(
        "phone",
        &[
            "00 49 30 5550143",
            "0049-30-5550143",
            "0049.30.5550143",
            "loss=0.03 0049 30 5550143",
        ],
        &[
            "loss=0.0355743205",
            "loss=0.0049305550143",
            "0.0.20130228-6.3",
            "0.0.4930555-0143",
            "00.0339123456789",
            "00331200  12 34 56 78 90",
        ],
    );
}

#[test]
fn a_version_is_no_phone_next_to_a_word_for_one() {
    rule(
        "phone",
        &[
            "call 415.555.0143",
            "mobile 1.415.555.0143",
            "celular 56.9.6123.4501",
            "415 34 567 (mobile/home)",
        ],
        &["call 135.0.7049.83", "tel 20.1.4155.55", "phone 10.0.19045.3693"],
    );
}

#[test]
fn the_name_of_a_program_is_no_word_for_a_phone() {
    rule(
        "phone",
        &["415 34 567 Mobile", "tel/5553217788", "Mobile/WhatsApp 412 34 567"],
        &["415 34 567 Mobile/15E148", "Mobile/15E148 415 34 567"],
    );
}

#[test]
fn a_word_in_a_path_is_one_only_before_its_number() {
    rule(
        "phone",
        &[
            "tel./fax 555 3217",
            "GET /phone/5553217788",
            "open /contact: 412 34 567",
            "(wa.me/14155550143)",
        ],
        &[
            "GET /contact HTTP/1.1\" 200 5316",
            "GET /phone HTTP/1.1\" 200 5316",
            "/call 7, then 200 5316",
        ],
    );
}

#[test]
fn coordinates_with_signs_are_no_phone_but_next_to_a_word_for_one() {
    rule(
        "phone",
        &[
            "tel +4916-12307",
            // Minutes, degrees and lengths of none.
            "+4960-12307",
            "+4916-18107",
            "+4916-12360",
            "+49305-550143",
            "+4916 12307",
            "+82-2-345-6789",
        ],
        &[
            "+3217-06446",
            "BM\t+3217-06446\tAtlantic/Bermuda",
            "+394606-0860929",
            "+43.6532-079.3832/",
            "+4916-12307",
        ],
    );
    rule("kr_resident_number", &["330512-1105930"], &["-330512-1105930"]);
}

#[test]
fn a_plus_before_a_code_that_no_country_has_is_no_phone() {
    rule(
        "phone",
        &[
            "+420 601 123 456",
            "+385 91 234 5678",
            "+971 50 123 4567",
            "+998901234567",
        ],
        &["+4294967295", "+384 91 234 5678", "+978 50 123 4567", "+997901234567"],
    );
}

#[test]
fn a_row_of_a_dump_of_bytes_is_no_phone_and_no_card() {
    rule(
        "phone",
        &[
            "appel de 06 98 76 54 32",
            "bât 2a 06 98 76 54 32",
            "48 89 e5, ring 06 98 76 54 32",
            "c0 e1 tel 06 98 76 54 32",
            "06 98 76 54 32 06 98 76 54 33",
            "c0 e1 06 98 76 54 32 tel",
        ],
        &[
            "c0 e1 06 98 76 54 32",
            "06 98 76 54 32 c0 e1",
            "c0 06 98 76 54 32 e1",
            "3f 11 06 98 76 54 32",
            "69 06 98 76 54 32 11 22 33 44 55 66",
            "00000010  03 00 3e 00 06 12 34 56  78 10 00 00",
        ],
    );
    rule(
        "payment_card",
        &["4824 5915 1022 5521 ab cd", "abcd ef 4824 5915 1022 5521"],
        &["4824 5915 1022 5521 8af0 b0c1", "8af0 b0c1 4824 5915 1022 5521"],
    );
}

#[test]
fn the_qualities_of_a_read_are_no_email_and_no_passport() {
    rule(
        "email",
        &[
            "KIM.BAKER@EXAMPLE.SE",
            "FADI@BAGHDADI.AE",
            "{\"EMAIL\":\"HEDI@ACME.DE\",\"CITY\":\"GABES\"}",
            "BCCFFDEFHHHHHJJJIJJ HIIJ@F.DE",
            "BCCFFDEFHHHHHJJJiJJJJJJIIJ@F.DE",
        ],
        &[
            "BCCFFDEFHHHHHJJJIJJJJJJIIJ@F.DE:?FGIIJJ",
            "$%&+33,..=@=ED@KKS.SE{@??>=<;:9/,)(''&%%$#",
        ],
    );
    rule(
        "passport_mrz",
        &["I<UTOSTEVENSON<<PETER<JOHN<<<<<<<<<<"],
        &["IIIIIIIIIIIIIIIIIIIIIIIIIIIIIIIIII<<"],
    );
}

#[test]
fn an_encoded_plus_begins_a_phone() {
    rule(
        "phone",
        &["fax=%2B4930555014", "x=%2b821055501234"],
        &["fax=%2C4930555014"],
    );
    assert_eq!(kinds("phone", "%2B14155550143"), "phone");
}

#[test]
fn the_digits_behind_a_decimal_point_are_no_number_of_their_own() {
    rule(
        "payment_card",
        &["see it.4111111111111111", "4111111111111111.", "(4111111111111111)"],
        &[
            ".4111111111111111",
            "-.4111111111111111",
            "+.4111111111111111",
            "e=.4111111111111111",
            "(.4111111111111111)",
            "[.2261750669081127, .4111111111111111]",
            "1,.4111111111111111,2",
            ".4111111111111111e-05",
            "0.4111111111111111",
            "4.111111111111111",
            "card 4.111111111111111",
            "1.5e-07,.3782822463100051",
        ],
    );
    rule(
        "phone",
        &["tel.0301234567", "call 0301234567"],
        &[
            "tel .0301234567",
            "fax -.4155552671",
            "dial=.4155552671e+03",
            "phone 1.5E+03 0301234",
        ],
    );
    for (field, text) in [
        ("card", ".4111111111111111"),
        ("phone", "-.4155552671"),
        ("ssn", "1.512447714"),
    ] {
        assert_eq!(kinds(field, text), "", "{field} {text}");
    }
}

#[test]
fn a_catalogue_of_stars_has_no_phones() {
    rule(
        "phone",
        &[
            "+33 1 23 45 67 89",
            "00 49 23 12345678",
            "+41 16 092 68 12",
            "10 23 44.3; tel +41 16 092 68 12",
        ],
        &[
            "+33 12 34.56789",
            "00 49 23.12345678",
            "00 33 12 34.56789",
            "00 42 44.33 +41 16 09 268 12",
            "00:42:44,+41 16 092 68 12",
            "+52 31.2345678",
        ],
    );
}

#[test]
fn a_hash_under_a_name_for_a_phone_is_none() {
    assert_eq!(kinds("contact", "7f521ca403540f81ec99daec7da19c2788393880"), "");
    assert_eq!(kinds("contact", "a2788393880"), "phone");
}

#[test]
fn the_number_of_another_thing_is_no_phone_by_its_form_alone() {
    for (field, text) in [
        ("lot_number", "017-053-0017"),
        ("icoNumber", "002/1251/0073"),
        ("part_no", "212-555-0143"),
    ] {
        assert_eq!(kinds(field, text), "", "{field}");
    }
    for (field, text) in [
        ("home_number", "017-053-0017"),
        ("lot_number", "phone 017-053-0017"),
        ("lot_number", "+44 20 7946 0958"),
        ("number", "(415) 555-0132"),
        ("phone_number", "212-555-0143"),
    ] {
        assert_eq!(kinds(field, text), "phone", "{field}");
    }
}

#[test]
fn columns_of_numbers_are_not_dialled_out() {
    rule(
        "phone",
        &[
            "00 44 20 7946 0958",
            "0049 30 5550143",
            "00351 912 345 678",
            "Fax 004930 5550143",
        ],
        &[
            "000123 000456",
            "004412 345678",
            "0049 3055 5014 3000",
            "0044207 9460958",
            "004930 5550143",
        ],
    );
}
