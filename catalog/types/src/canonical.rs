//! The canonical form of JSON values (RFC 8785), the input of record keys and content roots.
//!
//! Invariant: equal values give equal bytes, whatever order or spelling they arrived in.

use serde_json::{Map, Number, Value};

/// Appends the canonical form of `value` (RFC 8785 section 3.2).
///
/// Integers that fit 64 bits keep all their digits; every other number is an IEEE 754 double in the ECMAScript form.
pub fn write_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_value(out, item);
            }
            out.push(b']');
        }
        Value::Object(members) => write_object(out, members),
    }
}

/// Appends an object with its members sorted by [`compare_names`].
fn write_object(out: &mut Vec<u8>, members: &Map<String, Value>) {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_unstable_by(|(left, _), (right, _)| compare_names(left, right));
    out.push(b'{');
    for (index, (name, value)) in sorted.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(out, name);
        out.push(b':');
        write_value(out, value);
    }
    out.push(b'}');
}

/// Orders member names by UTF-16 code units (RFC 8785 section 3.2.3).
pub fn compare_names(left: &str, right: &str) -> std::cmp::Ordering {
    // ASCII sorts the same in UTF-8 and UTF-16, and comparing bytes is faster.
    if left.is_ascii() && right.is_ascii() {
        return left.cmp(right);
    }
    left.encode_utf16().cmp(right.encode_utf16())
}

/// Appends a number: an integer if it fits 64 bits, else a double.
fn write_number(out: &mut Vec<u8>, number: &Number) {
    if let Some(integer) = number.as_i64() {
        write_integer(out, integer);
    } else if let Some(integer) = number.as_u64() {
        out.extend_from_slice(integer.to_string().as_bytes());
    } else if let Some(double) = number.as_f64() {
        write_double(out, double);
    }
}

/// Appends a 64-bit integer in decimal.
pub fn write_integer(out: &mut Vec<u8>, integer: i64) {
    // `unsigned_abs` also represents the magnitude of the lowest integer.
    let magnitude = integer.unsigned_abs();
    if integer < 0 {
        out.push(b'-');
    }
    // 20 digits hold every 64-bit integer.
    let mut digits = [0_u8; 20];
    let mut start = digits.len();
    let mut rest = magnitude;
    loop {
        start -= 1;
        digits[start] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// Appends a finite double in the ECMAScript form (RFC 8785 section 3.2.2.3): `1.0` is `1`, `-0.0` is `0`.
pub fn write_double(out: &mut Vec<u8>, double: f64) {
    out.extend_from_slice(ryu_js::Buffer::new().format_finite(double).as_bytes());
}

/// Appends a quoted string with the escapes of RFC 8785 section 3.2.2.2.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let bytes = text.as_bytes();
    // Most strings need no escape; they are copied whole.
    if bytes.chunks(32).all(is_plain) {
        out.extend_from_slice(bytes);
        out.push(b'"');
        return;
    }
    let mut clean = 0;
    // Copies the clean stretches between escapes in one piece each.
    for (index, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[clean..index]);
        clean = index + 1;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0x08 => out.extend_from_slice(b"\\b"),
            0x09 => out.extend_from_slice(b"\\t"),
            0x0a => out.extend_from_slice(b"\\n"),
            0x0c => out.extend_from_slice(b"\\f"),
            0x0d => out.extend_from_slice(b"\\r"),
            control => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(control >> 4)], HEX[usize::from(control & 15)]]);
            }
        }
    }
    out.extend_from_slice(&bytes[clean..]);
    out.push(b'"');
}

/// Returns true if no byte needs an escape. The loop has no branch, so it compiles to vector instructions.
fn is_plain(bytes: &[u8]) -> bool {
    let escaped = |byte: u8| u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\');
    bytes.iter().fold(0, |seen, &byte| seen | escaped(byte)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(json: &str) -> String {
        let value: Value = serde_json::from_str(json).unwrap();
        let mut out = Vec::new();
        write_value(&mut out, &value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn follows_the_example_of_rfc_8785() {
        let input = r#"{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],
            "string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#;
        let expected = r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#;
        assert_eq!(canonical(input), expected);
    }

    #[test]
    fn names_sort_by_utf16_code_units() {
        let input = r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#;
        let expected = "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\u{fb33}\":3}";
        assert_eq!(canonical(input), expected);
    }

    #[test]
    fn spellings_of_a_number_meet() {
        assert_eq!(canonical("[1.0,1,1e0,-0.0,-0,1E2]"), "[1,1,1,0,0,100]");
        assert_eq!(
            canonical("[9223372036854775807,-9223372036854775808]"),
            "[9223372036854775807,-9223372036854775808]"
        );
    }
}
