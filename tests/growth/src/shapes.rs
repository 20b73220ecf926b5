//! Texts of any length that are hard to some reader.
//!
//! Invariant: twice the length is twice as much of the same.

use std::fmt::Write as _;

/// A kind of text.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Name of the shape, as a failure shows it.
    pub name: &'static str,
    made: Made,
}

#[derive(Clone, Copy, Debug)]
enum Made {
    /// One piece again and again.
    Run(&'static str),
    /// The first piece for half of the length, then the second.
    Halves(&'static str, &'static str),
    /// Pieces that differ: `#` stands for a number that counts.
    Counted(&'static str),
    /// A piece again and again, then another one once.
    Ended(&'static str, &'static str),
}

const fn run(piece: &'static str) -> Shape {
    let made = Made::Run(piece);
    Shape { name: piece, made }
}

const fn halves(name: &'static str, first: &'static str, second: &'static str) -> Shape {
    let made = Made::Halves(first, second);
    Shape { name, made }
}

const fn counted(piece: &'static str) -> Shape {
    let made = Made::Counted(piece);
    Shape { name: piece, made }
}

const fn ended(name: &'static str, piece: &'static str, end: &'static str) -> Shape {
    let made = Made::Ended(piece, end);
    Shape { name, made }
}

impl Shape {
    /// A shape of one piece again and again, or counted if it has a `#`.
    pub const fn of(piece: &'static str) -> Self {
        let bytes = piece.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if bytes[at] == b'#' {
                return counted(piece);
            }
            at += 1;
        }
        run(piece)
    }

    /// A shape of two pieces: the first for half of the length, then the second. Both may have a `#`.
    pub const fn of_halves(name: &'static str, first: &'static str, second: &'static str) -> Self {
        halves(name, first, second)
    }

    /// Returns a text of this shape of at most `bytes`, and at least 90 % of them.
    pub fn text(&self, bytes: usize) -> String {
        match self.made {
            Made::Run(piece) => fill(piece, bytes),
            Made::Counted(piece) => count(piece, bytes),
            Made::Halves(first, second) => {
                let half = |piece: &str| {
                    if piece.contains('#') {
                        count(piece, bytes / 2)
                    } else {
                        fill(piece, bytes / 2)
                    }
                };
                half(first) + &half(second)
            }
            Made::Ended(piece, end) => fill(piece, bytes - end.len()) + end,
        }
    }
}

fn fill(piece: &str, bytes: usize) -> String {
    piece.repeat(bytes / piece.len())
}

fn count(piece: &str, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes);
    for number in 1_000_usize.. {
        let before = text.len();
        for part in piece.split_inclusive('#') {
            match part.strip_suffix('#') {
                Some(fixed) => {
                    text.push_str(fixed);
                    // Writing to a text never fails.
                    write!(text, "{number}").unwrap_or_default();
                }
                None => text.push_str(part),
            }
        }
        if text.len() > bytes {
            text.truncate(before);
            break;
        }
    }
    text
}

/// Shapes for every reader.
pub const SHAPES: &[Shape] = &[
    run("a"),
    run("1"),
    run("1-"),
    run("1,"),
    run("1."),
    run("1:"),
    run("1 "),
    run("0x1"),
    run(" "),
    run("\n"),
    run(" \n"),
    run("\t"),
    run("a "),
    run("a\n"),
    run("a\n\n"),
    run("a. "),
    run("a.a."),
    run("a-"),
    run("a_"),
    run("a/"),
    run("a:"),
    run("a="),
    run("a@"),
    run("@"),
    run("a@b.c "),
    run("a.a@b.b."),
    run("http://a"),
    run("http://a.b/ "),
    run("://"),
    run("www."),
    run("+1 "),
    run("+"),
    run("4111 1111 1111 1111 "),
    run("4111-1111-1111-"),
    run("010-1234-5678 "),
    run("1.2.3.4 "),
    run("DE89 3704 0044 "),
    run("AB12"),
    run("M12345678"),
    run("("),
    run("()"),
    run("[("),
    run("["),
    run("[]"),
    run("[a]("),
    run("![a]("),
    run("[a]: b\n"),
    run("{"),
    run("{\"a\":"),
    run("[1,"),
    run("<"),
    run("<a"),
    run("<a href=\""),
    run("<!--"),
    run("<![CDATA["),
    run("<?"),
    run("</a>"),
    run(">"),
    run("> "),
    run("- "),
    run("* "),
    run("- a\n"),
    run("  - a\n"),
    run("1. a\n"),
    run("#"),
    run("# a\n"),
    run("*"),
    run("*a "),
    run("*a_"),
    run("**a"),
    run("_a"),
    run("a**b"),
    run("`"),
    run("`a"),
    run("`a``b"),
    run("```\n"),
    run("~~~\n"),
    run("|"),
    run("|a"),
    run("|a|\n"),
    run("| 1 | 2 |\n"),
    run("|-|-|\n"),
    run("\""),
    run("\"\""),
    run("\"a\","),
    run("\"a\"\n"),
    run("'"),
    run("''"),
    run("\\"),
    run("\\\""),
    run("\\u0041"),
    run("\\ud800"),
    run("%"),
    run("%41"),
    run("%4"),
    run("&"),
    run("&amp;"),
    run("&#64;"),
    run("&a"),
    run("$"),
    run("$a$"),
    run(","),
    run(";"),
    run("a;"),
    run("a,b;"),
    run("a, "),
    run("--"),
    run("-- \n"),
    run("/*"),
    run("/*a*/"),
    run("~"),
    run("!"),
    run("?a=b&"),
    run("\r"),
    run("\r\n"),
    run("\u{1}"),
    run("\u{301}"),
    run("e\u{301}"),
    run("\u{200b}"),
    run("a\u{200b}"),
    run("\u{202e}"),
    run("\u{1f468}\u{200d}"),
    run("\u{ff11}"),
    run("\u{ff11}\u{ff0d}"),
    run("\u{661}"),
    run("\u{1d7d8}"),
    run("\u{ac00}"),
    run("\u{ac00} "),
    run("1\u{ac00}"),
    run("\u{6f22}"),
    run("\u{30ab}\u{30fc}"),
    run("A"),
    run("aA"),
    run("the "),
    run("ignore all previous "),
    run("you are now "),
    run("password: "),
    run("sk-"),
    run("AKIA"),
    run("eyJ"),
    run("-----BEGIN "),
    run("name: a "),
    run("call 1 "),
    run("no a was b c. "),
    run("from 1 ms to 2 ms "),
    run("2 of 1 "),
    run("p50 1 "),
    run("12:30 and "),
    run("the fastest a. "),
    run("1 ms "),
    run("1ms,"),
    run("total 1 "),
    run("2024-01-01 "),
    counted("a#"),
    counted("a# "),
    counted("# "),
    counted("#,"),
    counted("#\n"),
    counted("a#\n\n"),
    counted("a#@b#.c "),
    counted("[a#]: b\n"),
    counted("[a#] "),
    counted("[^#]: a\n"),
    counted("|a#|b#|\n"),
    counted("no a# was b# c#. "),
    counted("a# is the fastest. "),
    counted("--a# "),
    counted("http://a#.b/ "),
    counted("\"a#\":1,"),
    counted("a#=#&"),
    counted("# ms, "),
    halves("brackets", "[", "]"),
    halves("parentheses", "(", ")"),
    halves("braces", "{", "}"),
    halves("stars", "*", "a*"),
    halves("quotes", "> ", "a\n"),
    halves("references", "[a#]: b\n", "[a#] "),
    halves("lines of a table", "|a", "\n|a"),
    halves("many columns, many rows", "|p50", "\n|1"),
    halves("rows and claims", "|a#|1|\n", "\n\nthe fastest a. "),
    halves("digits and letters", "1", "a"),
    halves("ticks", "`a#", "``"),
    halves("denials and numbers", "no a was b c. ", "b c 1. "),
    ended("spaces and a letter", " ", "a"),
    ended("letters and an at", "a", "@b.c"),
    ended("dots and an at", "a.", "@b.c"),
    ended("digits and a letter", "1", "a"),
    ended("digits and spaces and a letter", "1 ", "a"),
];
