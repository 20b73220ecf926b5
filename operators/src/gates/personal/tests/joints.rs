//! Numbers and lines that are joined or parted in another way than is usual.

use super::rules::rule;

#[test]
fn a_number_may_stick_to_its_area_code_in_parentheses() {
    rule(
        "phone",
        &[
            "(415)5552671",
            "call Kim: (415)5552671.",
            "1(415)5552671",
            "1-415-5552671",
        ],
        &[
            "(115)5552671",
            "f(415)5552671",
            "sku (415)5552671",
            "415)5552671",
            "4155552671",
        ],
    );
}

#[test]
fn a_card_may_be_parted_by_lines_or_tabs() {
    rule(
        "payment_card",
        &[
            "4111\n1111\n1111\n1111",
            "4111\r\n1111\r\n1111\r\n1111",
            "4111\t1111\t1111\t1111",
            "3724\n995566\n97641",
            "3634\n096574\n5076",
            "Ana\n4111\n1111\n1111\n1111\n12/27",
            "2027\n4111 1111 1111 1111\n2027",
            "card\t4111\t1111\t1111\t1111\tAna",
        ],
        &[
            "4111\n1111\n1111\n1112",
            "4111\t1111\n1111\t1111",
            "4111\n\n1111\n1111\n1111",
            "1024\n4111\n1111\n1111\n1111",
            "4111\t1111\t1111\t1111\n1024\t1111\t1111\t1111",
            "mean\t4111\t1111\t1111\t1111",
        ],
    );
    rule(
        "phone",
        &["138 1234 5678\n2026"],
        &["phone 415\n555\n2671", "+82\n10\n1234\n5678"],
    );
}

#[test]
fn the_lines_of_a_machine_readable_zone_may_be_joined() {
    let name = "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<";
    let number = "L898902C36UTO7408122F1204159<<<<<<<<<<<<<<04";
    let card = "I<UTOD231458907<<<<<<<<<<<<<<<7408122F1204159UTO<<<<<<<<<<<6ERIKSSON<<ANNA<MARIA<<<<<<<<<<";
    let visa = "V<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<L8988901C4XXX4009078F9612109<<<<<<<<";
    let wrong = "L898902C37UTO7408122F1204159<<<<<<<<<<<<<<04";
    rule(
        "passport_mrz",
        &[
            &format!("{name}{number}"),
            &format!("see {number}{number}."),
            card,
            visa,
        ],
        &[&format!("{wrong}{wrong}"), &format!("{name}{number}X")],
    );
}
