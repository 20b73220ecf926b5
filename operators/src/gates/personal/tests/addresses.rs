//! Addresses that only their domain or what follows them tells from code.

use super::rules::{kinds, rule};

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
fn an_address_that_a_reader_is_to_replace_is_none() {
    rule(
        "email",
        &[
            "yourij@harbourpost.de",
            "maxx@harbourpost.de",
            "felixxx@harbourpost.de",
            "your@harbourpost.de",
            "kim@acme.xxx",
        ],
        &[
            "uXXXXX@uXXXXX.your-storagebox.de",
            "write to your_email@harbourpost.de",
            "YourName@harbourpost.de",
            "admin@yourdomain.com",
            "xxx@harbourpost.de",
        ],
    );
}

#[test]
fn only_a_path_after_a_colon_makes_an_address_a_place_to_copy_to() {
    rule(
        "email",
        &[
            "Contact: kim@example.de:/",
            "Contact: kim@example.de:/.",
            "Mail kim@example.de:http://a/b",
            "Mail kim@example.de:https://example.de",
        ],
        &[
            "scp a kim@example.de:/srv",
            "scp a kim@example.de:a/",
            "rsync kim@example.de:~/b://c",
        ],
    );
}

#[test]
fn an_address_of_the_domains_for_examples_is_nobodys() {
    rule(
        "email",
        &[
            "kim@example.de",
            "kim@example.com.br",
            "kim@myexample.com",
            "kim@example.community",
            "mail kim@example.community",
            "user@example.com or kim@example.de",
        ],
        &[
            "user@example.com",
            "USER@EXAMPLE.COM.",
            "kim@example.net",
            "kim@mail.example.org",
            "kim@example.com입니다",
            "kim@host.example",
            "e-mail kim@host.test, root@db.invalid",
            "kim@localhost",
            "mail kim@app.localhost",
            "kim [at] example [dot] com",
            "kim @ example . com",
            "mailto:kim%40example.com",
        ],
    );
    assert_eq!(kinds("email", "kim@example.com"), "");
}
