//! Output of the program: results go to standard output, everything else to standard error.
//!
//! Invariant: nothing else in the product writes to standard output, so a script reads results only.

use std::io::{self, ErrorKind, IsTerminal, Write};

use serde::Serialize;

/// Writes a line of a result to standard output.
pub fn line(text: &str) -> io::Result<()> {
    write(&mut io::stdout().lock(), text)
}

/// Writes the bytes of a result to standard output, without a line end.
pub fn bytes(result: &[u8]) -> io::Result<()> {
    all(&mut io::stdout().lock(), result)
}

/// Writes a result to standard output as indented JSON.
pub fn json(value: &impl Serialize) -> io::Result<()> {
    line(&serde_json::to_string_pretty(value)?)
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
