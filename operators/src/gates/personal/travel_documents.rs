//! The machine-readable zone of passports and identity cards (ICAO Doc 9303).
//!
//! Invariant: a line is recognised by its length and its check digits, or as the line of a name by its form.

/// Returns true if `text` has a line of a machine-readable zone.
pub(super) fn has_zone(text: &[u8]) -> bool {
    text.split(|byte| !(byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'<'))
        .any(is_line)
}

fn is_line(line: &[u8]) -> bool {
    match line.len() {
        44 | 36 => {
            is_name_line(line) || (is_checked(line, 0, 9) && is_checked(line, 13, 19) && is_checked(line, 21, 27))
        }
        30 => {
            let first = matches!(line[0], b'A' | b'C' | b'I') && line[2..5].iter().all(|byte| !byte.is_ascii_digit());
            (first && is_checked(line, 5, 14))
                || (matches!(line[7], b'M' | b'F' | b'<') && is_checked(line, 0, 6) && is_checked(line, 8, 14))
        }
        // Two or three lines whose ends are lost.
        88 | 72 => line.contains(&b'<') && line.chunks(line.len() / 2).any(is_line),
        90 => line.contains(&b'<') && line.chunks(30).any(is_line),
        _ => false,
    }
}

/// Recognises `P<UTOERIKSSON<<ANNA<MARIA<<<…`: document, issuer, surname, given names, filler. A line whose letters are
/// all from A to K is the qualities of a DNA read.
fn is_name_line(line: &[u8]) -> bool {
    matches!(line[0], b'P' | b'V' | b'I' | b'A' | b'C')
        && !line.iter().any(u8::is_ascii_digit)
        && line.iter().any(|byte| (b'L'..=b'Z').contains(byte))
        && line[2..5].iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'<')
        && line[5].is_ascii_uppercase()
        && line[5..]
            .windows(3)
            .any(|pair| matches!(pair, [before, b'<', b'<'] if *before != b'<'))
        && line.ends_with(b"<")
}

/// Returns true if the digit at `end` is the check digit of the characters from `start`: weights 7, 3, 1 modulo 10.
fn is_checked(line: &[u8], start: usize, end: usize) -> bool {
    let sum: u32 = line[start..end]
        .iter()
        .zip([7, 3, 1].into_iter().cycle())
        .map(|(byte, weight)| {
            weight
                * match byte {
                    b'0'..=b'9' => u32::from(byte - b'0'),
                    b'A'..=b'Z' => u32::from(byte - b'A') + 10,
                    _ => 0,
                }
        })
        .sum();
    let informative = line[start..end].iter().any(u8::is_ascii_digit);
    informative && line[end].is_ascii_digit() && u32::from(line[end] - b'0') == sum % 10
}
