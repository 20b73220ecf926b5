use super::*;

#[test]
fn codes_are_listed_once_in_order() {
    for pair in CODES.windows(2) {
        let order = |code: &ErrorCode| (code.status, code.word);
        assert!(
            order(&pair[0]) < order(&pair[1]),
            "{} and {}",
            pair[0].word,
            pair[1].word
        );
    }
    let mut words: Vec<_> = CODES.iter().map(|code| code.word).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), CODES.len());
}

#[test]
fn the_page_has_a_row_for_each_code() {
    let page = markdown();
    for code in CODES {
        assert!(
            page.contains(&format!("| {} | `{}` |", code.status, code.word)),
            "{}",
            code.word
        );
    }
}
