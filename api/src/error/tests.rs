use super::*;
use crate::codes::ErrorCode;

#[test]
fn every_kind_has_the_status_of_the_interface() {
    let expected = [
        (Kind::Invalid, 400),
        (Kind::Unauthenticated, 401),
        (Kind::PaymentRequired, 402),
        (Kind::Forbidden, 403),
        (Kind::NotFound, 404),
        (Kind::Conflict, 409),
        (Kind::TooLarge, 413),
        (Kind::Unprocessable, 422),
        (Kind::Limited, 429),
        (Kind::Internal, 500),
        (Kind::Unavailable, 503),
        (Kind::Damaged, 503),
    ];
    for (kind, code) in expected {
        assert_eq!(status(kind).as_u16(), code, "{kind:?}");
    }
}

#[test]
fn what_went_wrong_inside_never_leaves() {
    let error = ApiError::internal("disk /var/lib/secret is full");
    let body = error.body("r-1");
    assert_eq!(
        body,
        json!({"error": "internal", "message": INTERNAL, "requestId": "r-1"})
    );
    assert_eq!(error.log_context(), Some("disk /var/lib/secret is full"));
}

#[test]
fn an_error_of_the_caller_names_the_field_and_the_rule() {
    let body = ApiError::invalid("/records", "must have at most 500 items").body("r-1");
    assert_eq!(
        body,
        json!({
            "error": "invalid_request",
            "message": "`/records` must have at most 500 items",
            "details": [{"path": "/records", "problem": "must have at most 500 items"}],
        })
    );
}

#[test]
fn a_limit_says_when_to_come_back() {
    let error = ApiError::limited(ErrorCode::RateLimited, "slow down", 0);
    assert_eq!(error.body("r")["retryAfter"], 1);
    assert_eq!(error.headers(), [(header::RETRY_AFTER, HeaderValue::from(1_u64))]);
}

#[test]
fn a_damaged_file_says_when_to_come_back() {
    let error = ApiError::damaged("part 3 has another hash");
    assert_eq!(error.body("r")["retryAfter"], DAMAGED_RETRY_SECONDS);
    assert_eq!(
        error.headers(),
        [(header::RETRY_AFTER, HeaderValue::from(DAMAGED_RETRY_SECONDS))]
    );
}
