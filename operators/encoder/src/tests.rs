use std::fmt::Write as _;

use serde::Deserialize;

use super::*;

/// What the published implementation makes of a text, as `golden/oracle.py` wrote it.
#[derive(Deserialize)]
struct KnownTokens {
    text: String,
    times: Option<usize>,
    ids: Option<Vec<u32>>,
    count: Option<usize>,
    blake3: Option<String>,
}

const TOKENS: &str = include_str!("../golden/tokens.jsonl");
const TEXTS: &str = include_str!("../golden/texts.txt");
const COSINES: &str = include_str!("../golden/cosines.txt");
/// BLAKE3 of the vector of each text, as the first build made it: numbers of 32 bits, little-endian.
const VECTORS: &str = include_str!("../golden/vectors.txt");

fn encoder() -> &'static Encoder {
    Encoder::shared().unwrap()
}

fn texts() -> Vec<&'static str> {
    TEXTS.lines().map(|line| line.split_once('\t').unwrap().1).collect()
}

fn bytes(ids: &[u32]) -> Vec<u8> {
    ids.iter().flat_map(|id| id.to_le_bytes()).collect()
}

fn bits(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn tokens_are_those_of_the_published_implementation() {
    let mut problems = String::new();
    for line in TOKENS.lines() {
        let known: KnownTokens = serde_json::from_str(line).unwrap();
        let ids = encoder().tokens(&known.text.repeat(known.times.unwrap_or(1)));
        let is_known = known.ids.is_none_or(|known| known == ids)
            && known.count.is_none_or(|known| known == ids.len())
            && known
                .blake3
                .is_none_or(|known| known == blake3::hash(&bytes(&ids)).to_hex().as_str());
        if !is_known {
            writeln!(problems, "{line}\n  {:?}", &ids[..ids.len().min(20)]).unwrap();
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
    assert_eq!(TOKENS.lines().count(), 118);
}

#[test]
fn vectors_are_as_near_to_each_other_as_those_of_the_published_implementation() {
    let vectors: Vec<Vec<f32>> = texts()
        .iter()
        .map(|text| encoder().encode(text, PIECE_TOKENS))
        .collect();
    let (mut most, mut sum, mut count) = (0.0_f64, 0.0, 0);
    for (one, line) in vectors.iter().zip(COSINES.lines()) {
        for (other, known) in vectors.iter().zip(line.split_whitespace()) {
            let products = one
                .iter()
                .zip(other)
                .map(|(one, other)| f64::from(*one) * f64::from(*other));
            let error = (products.sum::<f64>() - known.parse::<f64>().unwrap() / 10_000.0).abs();
            most = most.max(error);
            (sum, count) = (sum + error, count + 1);
        }
    }
    assert_eq!(count, 1_225);
    let mean = sum / f64::from(count);
    // The known ones are rounded to 0.0001.
    assert!(most <= 0.000_5 && mean <= 0.000_1, "{most} {mean}");
}

#[test]
fn vectors_are_the_same_bits_with_every_set_of_instructions() {
    let known: Vec<&str> = VECTORS.lines().collect();
    let mut all = vec![Instructions::Plain];
    let best = Instructions::best();
    if !matches!(best, Instructions::Plain) {
        all.push(best);
    }
    for instructions in all {
        let made = texts().into_iter().map(|text| {
            let vector = encoder().encode_with(instructions, text, PIECE_TOKENS);
            assert_eq!(vector.len(), ENCODED_DIMENSIONS);
            blake3::hash(&bits(&vector)).to_hex().to_string()
        });
        let made: Vec<String> = made.collect();
        assert_eq!(known, made, "{instructions:?}:\n{}", made.join("\n"));
    }
    // A long text and an empty one have other shapes of work.
    for text in [texts().join("\n"), String::new()] {
        let plain = encoder().encode_with(Instructions::Plain, &text, 400);
        assert_eq!(bits(&plain), bits(&encoder().encode_with(best, &text, 400)));
    }
}

#[test]
fn a_vector_has_length_one_and_depends_on_the_first_tokens_only() {
    let text = texts().join(" ");
    for text in ["", "a", "\u{1}", "\u{fdfa}", &text] {
        let vector = encoder().encode(text, QUERY_TOKENS);
        let square: f32 = vector.iter().map(|value| value * value).sum();
        assert!((square - 1.0).abs() < 1e-5, "{text:?}: {square}");
    }
    let words = "word ".repeat(200);
    assert_eq!(
        encoder().encode(&words[..5 * QUERY_TOKENS], QUERY_TOKENS),
        encoder().encode(&words, QUERY_TOKENS)
    );
    assert_ne!(
        encoder().encode(&words[..5 * 10], QUERY_TOKENS),
        encoder().encode(&words, QUERY_TOKENS)
    );
}

#[test]
fn pieces_follow_each_other_and_have_few_tokens() {
    let odd = "\u{fdfa}".repeat(200);
    let long = format!("{}{odd}{}", texts().join("\n"), "x".repeat(3_000));
    for text in [long.as_str(), &odd, "\n\n one piece \n", " \n"] {
        let pieces = encoder().pieces(text);
        let joined: String = pieces.iter().map(|piece| &text[piece.clone()]).collect();
        assert_eq!(joined, if text == " \n" { "" } else { text });
        for piece in &pieces {
            // Alone, a piece gets a sign of its beginning, which may be a token more.
            let tokens = encoder().tokens(&text[piece.clone()]).len();
            assert!(tokens <= PIECE_TOKENS + 1, "{tokens}: {:?}", &text[piece.clone()]);
        }
    }
    // No piece can take the whole next line too.
    let lines = texts().join("\n");
    let pieces = encoder().pieces(&lines);
    assert!(pieces.len() > 10, "{}", pieces.len());
    for pair in pieces.windows(2) {
        assert!(lines[pair[1].start..].starts_with('\n') || lines[..pair[1].start].ends_with(['\n', '。']));
        let next = lines[pair[1].clone()].trim_start().lines().next().unwrap();
        let both = format!("{}\n{next}", &lines[pair[0].clone()]);
        assert!(encoder().tokens(&both).len() >= PIECE_TOKENS, "{both}");
    }
}
