//! Addresses that only their domain or what follows them tells from code.

use super::rules::rule;

#[test]
fn an_email_is_under_any_domain_that_is_delegated() {
    rule(
        "email",
        &[
            "kim@acme.technology",
            "kim@acme.international",
            "kim@acme.one",
            "kim@acme.plus",
            "kim@acme.NGO",
            "kim@acme.direct",
            "kim@acme.training",
            "kim@acme.institute",
            "kim@acme.tools",
            "kim@acme.photo",
            "kim@acme.ist",
            "kim@acme.moe",
            "kim@acme.versicherung",
            "kim@пример.рус",
            "kim@ПРИМЕР.РУС",
            "kim@例え.ストア",
            "kim@ఉదాహరణ.భారత్",
            "kim@பரிட்சை.சிங்கப்பூர்",
            "kim@beispiel.vermögensberatung",
            "kim@예시.닷컴입니다",
            "메일 kim@예시.삼성입니다",
        ],
        &[
            "kim@acme.zip",
            "C = A@B.data",
            "a@b.map(c)",
            "root@fritz.box",
            "전시@서울·삼성동",
            "開催@渋谷・ファッションビル",
            "kim@пример.руска",
        ],
    );
    rule("email", &["e-mail kim@acme.mov"], &["e-mail kim@acme.zip"]);
}

#[test]
fn only_a_path_after_a_colon_makes_an_address_a_place_to_copy_to() {
    rule(
        "email",
        &[
            "Contact: kim@example.com:/",
            "Contact: kim@example.com:/.",
            "Mail kim@example.com:http://a/b",
            "Mail kim@example.com:https://example.com",
        ],
        &[
            "scp a kim@example.com:/srv",
            "scp a kim@example.com:a/",
            "rsync kim@example.com:~/b://c",
        ],
    );
}
