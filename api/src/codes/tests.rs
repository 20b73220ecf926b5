use super::*;

#[test]
fn codes_are_listed_once_in_order() {
    for pair in CODES.windows(2) {
        let order = |row: &ErrorCodeRow| (row.status, row.word);
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
fn a_code_has_the_status_of_its_row_and_the_kind_of_its_status() {
    let codes = [
        (ErrorCode::InvalidRequest, StatusCode::BAD_REQUEST, Kind::Invalid),
        (
            ErrorCode::MethodNotAllowed,
            StatusCode::METHOD_NOT_ALLOWED,
            Kind::Invalid,
        ),
        (ErrorCode::TokenExpired, StatusCode::GONE, Kind::Conflict),
        (ErrorCode::TableDamaged, StatusCode::SERVICE_UNAVAILABLE, Kind::Damaged),
        (
            ErrorCode::Unavailable,
            StatusCode::SERVICE_UNAVAILABLE,
            Kind::Unavailable,
        ),
    ];
    for (code, status, kind) in codes {
        assert_eq!((code.status(), code.kind()), (status, kind), "{}", code.word());
    }
    for row in CODES {
        assert!(StatusCode::from_u16(row.status).is_ok(), "{}", row.word);
    }
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
