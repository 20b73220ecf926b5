//! Output of the program: results go to standard output, everything else to standard error.
//!
//! Invariant: nothing else in the product writes to standard output, so a script reads results only.

use std::io::{self, BufRead as _, ErrorKind, IsTerminal, Write};
use std::path::Path;

use serde::Serialize;

/// Writes a line of a result to standard output.
pub fn line(text: &str) -> io::Result<()> {
    write(&mut io::stdout().lock(), text)
}

/// Writes the bytes of a result to standard output, without a line end.
pub fn bytes(result: &[u8]) -> io::Result<()> {
    all(&mut io::stdout().lock(), result)
}

/// Writes a result to standard output as indented JSON. Characters that a terminal would obey are escaped as `\uXXXX`.
pub fn json(value: &impl Serialize) -> io::Result<()> {
    line(&escaped_json(&serde_json::to_string_pretty(value)?))
}

/// Escapes the characters of indented JSON that a terminal would obey. They stand in strings only, but for the line feeds
/// between tokens, which stay.
fn escaped_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        if character != '\n' && is_obeyed(character) {
            let mut units = [0; 2];
            let units = character.encode_utf16(&mut units).iter();
            escaped.extend(units.map(|unit| format!("\\u{unit:04x}")));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// Writes a line about the progress to standard error. An error is ignored, since a closed standard error does not
/// affect the result.
pub fn note(text: &str) {
    write(&mut io::stderr().lock(), text).unwrap_or_default();
}

/// Returns true if standard error is a terminal.
pub fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Asks a question on standard error and returns the line that a person types, without blanks around it. `None` if nobody
/// is there to answer: standard input or standard error is no terminal, or the input ended.
pub fn ask(question: &str) -> io::Result<Option<String>> {
    let input = io::stdin();
    if !input.is_terminal() || !is_watched() {
        return Ok(None);
    }
    all(&mut io::stderr().lock(), question.as_bytes())?;
    let mut typed = String::new();
    let read = input.lock().read_line(&mut typed)?;
    Ok((read > 0).then(|| typed.trim().to_owned()))
}

/// The most characters of a text of others that are printed.
const MOST_SHOWN: usize = 80;

/// Returns a text of others (of a file, an archive or an answer) as it is printed: characters that a terminal would obey
/// as `\u{…}`, and at most 80 characters.
pub fn shown(text: &str) -> String {
    cut(text, MOST_SHOWN)
}

/// Returns a text of others as it is printed, with at most `most` of its characters.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => plain(text),
        Some((end, _)) => plain(&text[..end]) + "…",
    }
}

/// Returns a line with texts of others as it is printed: whole, with the characters that a terminal would obey as `\u{…}`.
pub fn plain(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    for character in line.chars() {
        if is_obeyed(character) {
            plain.extend(character.escape_unicode());
        } else {
            plain.push(character);
        }
    }
    plain
}

/// Returns lines with texts of others as they are printed, one below the other.
pub fn plain_lines<'a>(lines: impl IntoIterator<Item = &'a str>) -> String {
    let lines: Vec<String> = lines.into_iter().map(plain).collect();
    lines.join("\n")
}

/// Returns a text of others for a command to paste, in single quotes; `None` if a shell or the program could take it for
/// something else than this text. The remedy then names the place in the file and the flag instead.
pub fn quoted(text: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" ._,/-".contains(&byte);
    let is_text = !text.is_empty() && !text.starts_with('-') && text.bytes().all(is_plain);
    is_text.then(|| format!("'{text}'"))
}

/// Returns a path for a command to paste, as [`quoted`] does.
pub fn quoted_path(path: &Path) -> Option<String> {
    path.to_str().and_then(quoted)
}

/// Returns true for controls, line and paragraph separators, and format characters (Unicode general categories Cc, Zl,
/// Zp and Cf), which hide or reorder the text around them.
pub(crate) fn is_obeyed(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
            | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0001}' | '\u{e0020}'..='\u{e007f}')
}

fn write(to: &mut impl Write, text: &str) -> io::Result<()> {
    all(to, format!("{text}\n").as_bytes())
}

/// Writes all bytes. A closed pipe is no error: a reader such as `head` has read enough.
fn all(to: &mut impl Write, result: &[u8]) -> io::Result<()> {
    // Flushing here makes each line appear at once and reports its error to the caller.
    match to.write_all(result).and_then(|()| to.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_others_does_not_command_the_terminal() {
        for (text, expected) in [
            ("\u{1b}]0;x\u{7}", "\\u{1b}]0;x\\u{7}"),
            ("a\u{202e}b\u{feff}", "a\\u{202e}b\\u{feff}"),
            ("$(id) 온도 \u{1f600}", "$(id) 온도 \u{1f600}"),
            ("a\r\nb\u{2028}", "a\\u{d}\\u{a}b\\u{2028}"),
        ] {
            assert_eq!(shown(text), expected);
            assert_eq!(plain(&text.repeat(100)), expected.repeat(100));
        }
        assert_eq!(shown(&"x".repeat(81)), format!("{}…", "x".repeat(80)));
        assert_eq!(shown(&"x".repeat(80)), "x".repeat(80));
    }

    #[test]
    fn json_of_others_says_the_same_and_commands_no_terminal() {
        let value = serde_json::json!({"a\u{9b}": ["\u{1b}[2J\u{7f}\u{202e}\u{e0041}", "온도\n"]});
        let text = escaped_json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(
            !text.chars().any(|character| character != '\n' && is_obeyed(character)),
            "{text:?}"
        );
        assert!(text.contains("\\u009b") && text.contains("온도"), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn a_command_to_paste_has_a_text_of_others_only_if_it_can_be_nothing_else() {
        for text in ["Station ID", "levels", "a_1/b-2.csv", "a, b", " x"] {
            assert_eq!(quoted(text), Some(format!("'{text}'")));
        }
        for text in [
            "",
            "-rf",
            "--yes",
            "$(id)",
            "a'b",
            "a`id`",
            "a;b",
            "a\nb",
            "a\u{1b}[2J",
            "온도",
            "a\u{202e}",
            "a|b",
            "~",
            "!1",
            "*",
        ] {
            assert_eq!(quoted(text), None, "{text:?}");
        }
        assert_eq!(
            quoted_path(Path::new("/home/ada/.config")),
            Some("'/home/ada/.config'".to_owned())
        );
    }
}
