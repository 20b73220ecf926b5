//! Statements of strangers are checked in time that is linear in their text.

use growth::{SHAPES, Shape, consume, is_linear_in};

use types::Contract;

use super::super::{MAX_CHARACTERS, STACK_BYTES, parse};

/// Statements that are hard to a parser.
const STATEMENTS: &[Shape] = &[
    Shape::of("a+"),
    Shape::of("a,"),
    Shape::of("a OR "),
    Shape::of("a AND b OR "),
    Shape::of("NOT "),
    Shape::of("a."),
    Shape::of("-"),
    Shape::of("- "),
    Shape::of("a::int,"),
    Shape::of("a::int::"),
    Shape::of("f("),
    Shape::of("f(a),"),
    Shape::of("f(f(1),"),
    Shape::of("(a,"),
    Shape::of("(select "),
    Shape::of("a in ("),
    Shape::of("a[1]"),
    Shape::of("a["),
    Shape::of("case when a then "),
    Shape::of("case "),
    Shape::of("'a' || "),
    Shape::of("a between 1 and "),
    Shape::of("a is null and "),
    Shape::of("a like 'b' or "),
    Shape::of("interval '1 day' + "),
    Shape::of("date '2020-01-01',"),
    Shape::of("x'41',"),
    Shape::of("U&'\\0041',"),
    Shape::of("$$a$$,"),
    Shape::of("$a$"),
    Shape::of("a over (partition by b),"),
    Shape::of("1 union select "),
    Shape::of("1 from records, "),
    Shape::of("1 from records join "),
    Shape::of("1 from (records join "),
    Shape::of("a# as b#,"),
    Shape::of("a# + b# * "),
    Shape::of("'a#',"),
    Shape::of("\"a#\","),
];

#[test]
fn a_statement_is_checked_in_linear_time() {
    // The parser recurses, as it does for a statement of the service.
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    thread.spawn(check_all).unwrap().join().unwrap();
}

fn check_all() {
    let fields = r#"{"fields": [{"name": "a", "type": "integer"}, {"name": "B", "type": "string"}]}"#;
    let contract: Contract = serde_json::from_str(fields).unwrap();
    let bytes = MAX_CHARACTERS / 2 - 40;
    for (before, after) in [
        ("", ""),
        ("select ", ""),
        ("select ", " 1 from records"),
        ("select '", "'"),
        ("with ", ""),
    ] {
        for shapes in [SHAPES, STATEMENTS] {
            let statement = |text: String| format!("{before}{text}{after}");
            is_linear_in(&format!("{before}…{after}"), bytes, shapes, statement, |sql| {
                consume(parse(sql, Some(&contract)));
            });
        }
    }
}
