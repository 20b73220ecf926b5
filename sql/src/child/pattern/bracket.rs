//! Bracket expressions, literals and escapes of characters.

use super::{DIGIT, SPACE, WORD};

/// Writes a character that stands for itself, in a set or outside of one.
pub(super) fn literal(out: &mut String, letter: char) {
    if letter.is_ascii_punctuation() {
        out.push('\\');
    }
    out.push(letter);
}

/// Reads an escape of a character behind its `\`. Returns the character and the rest.
pub(super) fn escaped(text: &str) -> Result<(char, &str), String> {
    let Some(letter) = text.chars().next() else {
        return Err("it ends with a single \\".to_owned());
    };
    let rest = &text[letter.len_utf8()..];
    let code = |digits: &str, radix: u32| {
        let code = u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
        code.ok_or_else(|| format!("`\\{letter}{digits}` is no character"))
    };
    let hexadecimal = |most: usize| {
        let end = rest
            .find(|digit: char| !digit.is_ascii_hexdigit())
            .unwrap_or(rest.len())
            .min(most);
        rest.split_at(end)
    };
    Ok(match letter {
        'a' => ('\x07', rest),
        'b' => ('\x08', rest),
        'B' => ('\\', rest),
        'e' => ('\x1b', rest),
        'f' => ('\x0c', rest),
        'n' => ('\n', rest),
        'r' => ('\r', rest),
        't' => ('\t', rest),
        'v' => ('\x0b', rest),
        'c' => {
            let control = rest.chars().next().ok_or_else(|| "`\\c` has no letter".to_owned())?;
            let low = char::from_u32(u32::from(control) & 0x1f).unwrap_or_default();
            (low, &rest[control.len_utf8()..])
        }
        'u' | 'U' => {
            let length = if letter == 'u' { 4 } else { 8 };
            let (digits, rest) = hexadecimal(length);
            if digits.len() < length {
                return Err(format!("`\\{letter}` needs {length} hexadecimal digits"));
            }
            (code(digits, 16)?, rest)
        }
        'x' => {
            let (digits, rest) = hexadecimal(rest.len());
            (code(digits, 16)?, rest)
        }
        '0' => {
            let end = rest
                .find(|digit: char| !('0'..='7').contains(&digit))
                .unwrap_or(rest.len())
                .min(2);
            let (digits, rest) = rest.split_at(end);
            (if digits.is_empty() { '\0' } else { code(digits, 8)? }, rest)
        }
        '1'..='9' => return Err(format!("the back reference `\\{letter}` is not supported")),
        letter if letter.is_ascii_alphanumeric() => return Err(format!("`\\{letter}` is no escape")),
        letter => (letter, rest),
    })
}

/// Returns the characters of a named class, as a set.
fn class(name: &str) -> Result<&'static str, String> {
    Ok(match name {
        "alpha" => r"\p{Alphabetic}",
        "alnum" => r"\p{Alphabetic}\p{Nd}",
        "blank" => r"\t\x20",
        "cntrl" => r"\p{Cc}",
        "digit" => DIGIT,
        "graph" => r"[^\p{Z}\p{C}]",
        "lower" => r"\p{Lowercase}",
        "print" => r"[^\p{Zl}\p{Zp}\p{C}]",
        "punct" => r"\p{P}\p{S}",
        "space" => SPACE,
        "upper" => r"\p{Uppercase}",
        "word" => WORD,
        "xdigit" => "0-9A-Fa-f",
        other => return Err(format!("`[:{other}:]` is no class of characters")),
    })
}

/// One item of a bracket expression.
enum BracketItem<'a> {
    One(char),
    Set(&'a str, bool),
}

fn item(text: &str) -> Result<(BracketItem<'static>, &str), String> {
    let open = || "the brackets [ ] are not balanced".to_owned();
    if let Some(named) = text.strip_prefix("[:") {
        let (name, rest) = named.split_once(":]").ok_or_else(open)?;
        return Ok((BracketItem::Set(class(name)?, false), rest));
    }
    for (begin, end) in [("[.", ".]"), ("[=", "=]")] {
        if let Some(named) = text.strip_prefix(begin) {
            let (name, rest) = named.split_once(end).ok_or_else(open)?;
            let mut letters = name.chars();
            return match (letters.next(), letters.next()) {
                (Some(letter), None) => Ok((BracketItem::One(letter), rest)),
                _ => Err(format!("`{begin}{name}{end}` is no character")),
            };
        }
    }
    let letter = text.chars().next().ok_or_else(open)?;
    let rest = &text[letter.len_utf8()..];
    if letter != '\\' {
        return Ok((BracketItem::One(letter), rest));
    }
    let set = match rest.chars().next() {
        Some(letter @ ('d' | 'D')) => Some((DIGIT, letter == 'D')),
        Some(letter @ ('s' | 'S')) => Some((SPACE, letter == 'S')),
        Some(letter @ ('w' | 'W')) => Some((WORD, letter == 'W')),
        _ => None,
    };
    if let Some((set, negated)) = set {
        return Ok((BracketItem::Set(set, negated), &rest[1..]));
    }
    let (letter, rest) = escaped(rest)?;
    Ok((BracketItem::One(letter), rest))
}

/// Translates a bracket expression behind its `[`. Returns the rest behind its `]`.
pub(super) fn translate<'a>(text: &'a str, lines_apart: bool, out: &mut String) -> Result<&'a str, String> {
    let negated = text.strip_prefix('^');
    let mut rest = negated.unwrap_or(text);
    out.push_str(if negated.is_some() { "[^" } else { "[" });
    if negated.is_some() && lines_apart {
        out.push_str(r"\n");
    }
    let mut first = true;
    loop {
        if let Some(after) = rest.strip_prefix(']')
            && !first
        {
            out.push(']');
            return Ok(after);
        }
        first = false;
        let (one, after) = item(rest)?;
        rest = after;
        match one {
            BracketItem::Set(set, false) => out.push_str(set),
            BracketItem::Set(set, true) => {
                out.push_str("[^");
                out.push_str(set);
                out.push(']');
            }
            BracketItem::One(from) => {
                literal(out, from);
                let to = rest.strip_prefix('-').filter(|to| !to.starts_with(']'));
                if let Some(to) = to {
                    let (BracketItem::One(to), after) = item(to)? else {
                        return Err("a class of characters is no end of a range".to_owned());
                    };
                    if to < from {
                        return Err(format!("the range `{from}-{to}` is empty"));
                    }
                    out.push('-');
                    literal(out, to);
                    rest = after;
                }
            }
        }
    }
}
