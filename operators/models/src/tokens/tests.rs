use std::fmt::Write;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

const ENGLISH: StemLanguages = StemLanguages::ENGLISH;

fn told(text: &str) -> String {
    let mut out = String::new();
    tokens(text, ENGLISH, &mut |token| {
        let particle = if token.is_particle { "?" } else { "" };
        write!(out, "{}:{}{particle} ", token.position, token.text).unwrap();
    });
    out.trim_end().to_owned()
}

fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    tokens(text, ENGLISH, &mut |token| found.push(token.text.to_owned()));
    found
}

#[test]
fn words_have_their_stems_at_the_same_position() {
    assert_eq!(
        told("Running latencies, fast"),
        "0:running 0:run 1:latencies 1:latenc 2:fast"
    );
    assert_eq!(
        told("Café ＮＡＩＶＥ straße"),
        "0:cafe 1:naive 1:naiv 2:strasse 2:strass"
    );
    assert_eq!(told("p95 of h264 A1B2C3"), "0:p95 1:of 2:h264 3:a1b2c3");
}

#[test]
fn numbers_versions_and_units_are_found_in_each_spelling() {
    assert_eq!(told("1,500 rows"), "0:1500 1:rows 1:row");
    assert_eq!(told("v 55.2.0"), "0:v 1:55.2.0 1:55.2 1:55");
    assert_eq!(told("10ms"), told("10 ms"));
    assert_eq!(told("1,2,3"), "0:1 1:2 2:3");
    assert_eq!(told("3fa4b"), "0:3fa4b");
}

#[test]
fn hangul_is_found_by_pairs_with_and_without_its_particle() {
    assert_eq!(
        told("지하철에서"),
        "0:지하철에서 0:지하철 0:지하 1:하철 2:철에? 3:에서?"
    );
    assert_eq!(told("서울 지하철"), "0:서울 1:지하철 1:지하 2:하철");
    assert_eq!(told("회의"), "0:회의");
    assert_eq!(told("물"), "0:물");
    // Parts of syllables compose, and a lone one is dropped.
    assert_eq!(told("\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}"), "0:한글");
    assert_eq!(told("지하처ㄹ"), "0:지하처 0:지하 1:하처");
    assert_eq!(told("ㅋㅋㅋ"), "");
}

#[test]
fn han_and_kana_are_found_by_pairs() {
    assert_eq!(told("東京都"), "0:東京 1:京都");
    assert_eq!(told("水"), "0:水");
    assert_eq!(told("データ"), "0:データ 0:デー 1:ータ");
}

#[test]
fn identifiers_are_found_whole_and_in_parts() {
    let found = |text: &str| {
        let mut out = Vec::new();
        identifiers(text, &mut |text, whole| {
            out.push(format!("{}{text}", if whole { "=" } else { "" }));
        });
        out.join(" ")
    };
    assert_eq!(found("set max_wal_size now"), "=max_wal_size max wal size");
    assert_eq!(found("readFileSync HTTPServer"), "=readfilesync read file sync");
    assert_eq!(found("a plain well-known word. End"), "");
    assert_eq!(
        found("/v1/projects, std::fs."),
        "=v1/projects v1 projects =std::fs std fs"
    );
    assert_eq!(found("E0277 and 1.2.3"), "=e0277");
}

#[test]
fn hostile_texts_are_read_in_time() {
    let parts = [
        "[",
        "9",
        "1,234,567.",
        "a",
        "aA",
        "\u{1100}",
        "ㅏ",
        "\u{301}",
        "가",
        "가은",
        "`",
        "http://a.b/",
        "a_",
        "漢",
        "ア",
        "\u{FDFA}",
        "\u{200b}x",
        "ß",
        "İ",
        "1a",
    ];
    for part in parts {
        let text: String = part.chars().cycle().take(50_000).collect();
        let start = Instant::now();
        let mut count = 0;
        tokens(&text, ENGLISH, &mut |_| count += 1);
        identifiers(&text, &mut |_, _| count += 1);
        let took = start.elapsed();
        // Without optimisation, the same takes about ten times as long.
        let most = if cfg!(debug_assertions) { 1_000 } else { 50 };
        assert!(
            took < Duration::from_millis(most),
            "{part:?}: {took:?} for {count} tokens"
        );
    }
}

fn parts(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    word_parts([text], &mut |part| found.push(part.to_owned()));
    found
}

#[test]
fn stems_are_those_of_the_language_of_a_document() {
    let stems = |text: &str, languages| {
        let mut found = Vec::new();
        tokens(text, languages, &mut |token| {
            if token.kind == TokenKind::Stem {
                found.push(token.text.to_owned());
            }
        });
        found
    };
    let german = StemLanguages::of_document("Die Kündigung einer Wohnung", "Der Brief wurde nicht angenommen.");
    assert_eq!(stems("Kündigungen", german), ["kundig"]);
    assert_eq!(stems("Kuendigungen", german), ["kundig"]);
    assert_eq!(stems("queues", StemLanguages::ENGLISH), ["queue"]);
    let french = StemLanguages::of_document("Une requête lente", "Le temps de réponse est de 48 ms avec un index.");
    assert_eq!(stems("requêtes", french), stems("requête", french));
    // A query that shows no language has the stems of each.
    assert!(stems("Kündigungen", StemLanguages::of_query("Kündigungen")).contains(&"kundig".to_owned()));
    assert_eq!(StemLanguages::of_document("", ""), StemLanguages::ENGLISH);
    // A script of one language needs no guess.
    assert_eq!(stems("серверами", StemLanguages::ENGLISH), ["сервер"]);
    assert_eq!(StemLanguages::from_bits(german.bits()), Some(german));
    assert_eq!(StemLanguages::from_bits(u16::MAX), None);
}

#[test]
fn letters_and_digits_that_differ_in_form_only_are_one() {
    for (one, other) in [
        ("Straße", "STRASSE"),
        ("مستشفى", "مستشفي"),
        ("ک", "ك"),
        ("٢٠٢٤", "2024"),
        ("۲۰۲۴", "2024"),
        ("२०२४", "2024"),
        ("ısı", "isi"),
        ("İstanbul", "istanbul"),
        ("مـــرحبا", "مرحبا"),
    ] {
        assert_eq!(words(one), words(other), "{one}");
        assert_eq!(parts(one), parts(other), "{one}");
    }
}

#[test]
fn parts_of_words_are_distinct_and_framed() {
    assert_eq!(parts("Banana"), ["_ba", "ana", "ban", "na_", "nan"]);
    assert_eq!(parts("a"), ["_a_"]);
    assert_eq!(parts("猫"), ["猫"]);
    assert_eq!(parts("黒猫"), ["猫", "黒", "黒猫"]);
    // One wrong vowel leaves the parts of the other syllables.
    let common = |one: &str, other: &str| {
        let others = parts(other);
        parts(one).into_iter().filter(|part| others.contains(part)).count()
    };
    assert!(common("인덱스", "인뎃스") >= 2);
    assert_eq!(parts("!?"), Vec::<String>::new());
}

proptest! {
    #[test]
    fn any_text_has_stems_in_every_language(text in "\\PC{0,40}|[a-zäöüßéçñışğåøæаяεωبىதா]{0,30}") {
        tokens(&text, StemLanguages::ALL, &mut |_| {});
        parts(&text);
    }

    #[test]
    fn two_texts_side_by_side_have_the_tokens_of_both(one in "\\PC{0,40}", other in "\\PC{0,40}") {
        let mut both = words(&one);
        both.extend(words(&other));
        prop_assert_eq!(words(&format!("{one}\n{other}")), both);
    }

    #[test]
    fn positions_rise_by_at_most_one(text in "\\PC{0,80}|[가-힣a-z0-9., ]{0,80}") {
        let mut last = 0;
        let mut is_sound = true;
        tokens(&text, ENGLISH, &mut |token| {
            is_sound &= token.position >= last && token.position <= last + 1;
            is_sound &= !token.text.is_empty() && token.text.chars().count() <= MAX_TOKEN_CHARACTERS;
            last = token.position;
        });
        prop_assert!(is_sound);
    }
}
