//! The encoder takes time that is linear in a text, however hard the text is.

#![expect(clippy::tests_outside_test_module, reason = "an integration test is a test module")]

use encoder::{Encoder, PIECE_TOKENS};
use growth::{SHAPES, Shape, consume, is_linear_in};

/// Texts that get longer or shorter when they are normalised, and texts of which nothing is left.
const HARD: [Shape; 8] = [
    Shape::of("\u{fdfa}"),
    Shape::of("\u{fdfa} "),
    Shape::of("\u{1f468}\u{200d}\u{1f469}\u{200d}"),
    Shape::of("a\u{301}\u{323}"),
    Shape::of("\u{ad}"),
    Shape::of("\u{2581}"),
    Shape::of(").”"),
    Shape::of_halves("spaces and a word", " ", "a"),
];

#[test]
fn tokens_and_pieces_are_linear() {
    let encoder = Encoder::shared().unwrap();
    let shapes = [SHAPES, &HARD].concat();
    is_linear_in(
        "the tokens",
        8_000,
        &shapes,
        |text| text,
        |text| consume(encoder.tokens(text)),
    );
    is_linear_in(
        "the pieces",
        8_000,
        &shapes,
        |text| text,
        |text| consume(encoder.pieces(text)),
    );
}

#[test]
fn a_vector_takes_the_tokens_of_a_text_and_the_work_of_a_piece() {
    let encoder = Encoder::shared().unwrap();
    is_linear_in(
        "the vector of a piece",
        100_000,
        &HARD,
        |text| text,
        |text| consume(encoder.encode(text, PIECE_TOKENS)),
    );
}
