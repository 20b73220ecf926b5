//! Where the program speaks: results go to standard output, everything else to standard error.
//!
//! Invariant: nothing else in the product writes to standard output, so a script reads results and nothing else.

use std::io::{self, ErrorKind, IsTerminal, Write};

use serde::Serialize;

/// Writes a line of a result.
pub fn line(text: &str) -> io::Result<()> {
    write(&mut io::stdout().lock(), text)
}

/// Writes a result as it is.
pub fn bytes(result: &[u8]) -> io::Result<()> {
    all(&mut io::stdout().lock(), result)
}

/// Writes a result as indented JSON.
pub fn json(value: &impl Serialize) -> io::Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// Writes a line about how things go. A closed standard error is nobody's concern.
pub fn note(text: &str) {
    write(&mut io::stderr().lock(), text).unwrap_or_default();
}

/// Whether somebody watches standard error.
pub fn is_watched() -> bool {
    io::stderr().is_terminal()
}

fn write(to: &mut impl Write, text: &str) -> io::Result<()> {
    all(to, format!("{text}\n").as_bytes())
}

/// A reader that went away, such as `head`, has read enough.
fn all(to: &mut impl Write, result: &[u8]) -> io::Result<()> {
    match to.write_all(result).and_then(|()| to.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
