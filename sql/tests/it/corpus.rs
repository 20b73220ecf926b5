//! Statements of the corpus, one per line: what to expect, a tab, the statement.

/// The lines of a corpus, written out.
pub(crate) fn read(text: &str) -> Vec<(&str, String)> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let (expected, statement) = line.split_once('\t').expect(line);
            (expected, characters(&repeated(statement)))
        })
        .collect()
}

/// Writes every `{{text*n}}` out.
fn repeated(statement: &str) -> String {
    let mut out = String::new();
    let mut rest = statement;
    while let Some((before, (inside, after))) = rest
        .split_once("{{")
        .and_then(|(before, after)| Some((before, after.split_once("}}")?)))
    {
        out += before;
        match inside.rsplit_once('*').map(|(text, count)| (text, count.parse())) {
            Some((text, Ok(count))) => out += &text.repeat(count),
            _ => out = format!("{out}{{{{{inside}}}}}"),
        }
        rest = after;
    }
    out + rest
}

/// Writes every `\u{…}` out.
fn characters(statement: &str) -> String {
    let mut pieces = statement.split("\\u{");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (number, after) = piece.split_once('}').expect(statement);
        out.push(char::from_u32(u32::from_str_radix(number, 16).unwrap()).unwrap());
        out += after;
    }
    out
}
