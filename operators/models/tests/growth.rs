//! Every judge of a unit takes time that is linear in its text.

#![expect(clippy::tests_outside_test_module, reason = "an integration test is a test module")]

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use growth::is_linear;
use models::rubric;
use models::screen::UnitScreener;
use models::tokens::{StemLanguages, tokens, word_parts};
use operators::knowledge::NearestUnit;
use operators::screen::Screener as _;
use types::knowledge::UnitText;

fn unit(body: &str, source: &str) -> UnitText {
    UnitText {
        title: "A title of some words".to_owned(),
        body: body.to_owned(),
        category: "performance-tuning".to_owned(),
        source_declaration: source.to_owned(),
    }
}

#[test]
fn the_rubric_is_linear_in_a_body() {
    is_linear("the rubric", 2_000, |body| {
        rubric::score(&unit(body, "Measured by us"), &NearestUnit::default());
    });
}

#[test]
fn the_rubric_is_linear_in_a_source() {
    is_linear("the rubric", 1_000, |source| {
        rubric::score(&unit("It took 5 ms.", source), &NearestUnit::default());
    });
}

#[test]
fn the_screen_of_units_is_linear() {
    is_linear("the screen of units", 8_000, |body| {
        let records = [body];
        let screening = pin!(UnitScreener.screen(&records));
        let opinions = screening.poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(opinions, Poll::Ready(Ok(_))));
    });
}

#[test]
fn tokens_are_linear() {
    is_linear("the tokens", 4_000, |body| {
        tokens(body, StemLanguages::ALL, &mut |_| {});
    });
    is_linear("the parts of words", 4_000, |body| word_parts([body], &mut |_| {}));
}
