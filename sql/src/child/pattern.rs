//! Regular expressions of `PostgreSQL` (section 9.7.3 of its manual) in an engine of linear time.
//!
//! A pattern is translated once. `.` and `[^…]` match a line end, and `^` and `$` the ends of the text only, unless a
//! flag says otherwise. Of several matches at one place the longest counts, or the shortest if the first quantifier is
//! not greedy.
//!
//! Invariant: a construct that the engine cannot match, such as a back reference, is an error.

mod bracket;

use std::ops::Range;

use regex_automata::meta::Regex;
use regex_automata::nfa::thompson::pikevm::{self, PikeVM};
use regex_automata::util::captures::Captures;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, Match, MatchKind};

/// Maximum nesting of brackets in a pattern.
const MAX_NESTING: usize = 100;
/// Maximum count of a quantifier.
const MAX_COUNT: u32 = 255;
/// Escape `\s`, as a set.
const SPACE: &str = r"\t\n\x0B\f\r\x20\u{1680}\u{2000}-\u{2006}\u{2008}-\u{200A}\u{2028}\u{2029}\u{205F}\u{3000}";
/// Escape `\w`, as a set.
const WORD: &str = r"\p{Alphabetic}\p{Nd}_";
/// Escape `\d`, as a set.
const DIGIT: &str = "0-9";

/// Flags of a pattern.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a letter of its own")]
pub(super) struct Flags {
    ignore_case: bool,
    /// `.` and `[^…]` match no line end.
    lines_apart: bool,
    /// `^` and `$` match at line ends.
    line_ends: bool,
    expanded: bool,
    literal: bool,
    pub(super) global: bool,
}

impl Flags {
    /// Reads flags such as `gi`.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut flags = Self::default();
        text.chars().try_for_each(|flag| flags.add(flag))?;
        Ok(flags)
    }

    /// Returns the flags of the operators `~*` and `!~*`, or of `~` and `!~`.
    pub(super) fn operator(ignore_case: bool) -> Self {
        Self {
            ignore_case,
            ..Self::default()
        }
    }

    fn add(&mut self, flag: char) -> Result<(), String> {
        match flag {
            'c' => self.ignore_case = false,
            'i' => self.ignore_case = true,
            'm' | 'n' => (self.lines_apart, self.line_ends) = (true, true),
            'p' => (self.lines_apart, self.line_ends) = (true, false),
            's' => (self.lines_apart, self.line_ends) = (false, false),
            'w' => (self.lines_apart, self.line_ends) = (false, true),
            'x' => self.expanded = true,
            't' => self.expanded = false,
            'q' => self.literal = true,
            'g' => self.global = true,
            'e' => {}
            other => return Err(format!("`{other}` is no flag of a regular expression")),
        }
        Ok(())
    }
}

/// Choice between several matches that begin at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// Every match has the same length.
    Only,
    Longest,
    Shortest,
}

/// A translated pattern.
#[derive(Debug)]
pub(super) struct TranslatedPattern {
    /// Pattern in the syntax of the engine, with its flags in it.
    pub(super) text: String,
    extent: Extent,
}

/// Translates a pattern. The error is a sentence about it.
pub(super) fn translate(pattern: &str, flags: Flags) -> Result<TranslatedPattern, String> {
    let mut flags = flags;
    let mut rest = pattern;
    if let Some(text) = rest.strip_prefix("***=") {
        rest = text;
        flags.literal = true;
    } else if let Some(text) = rest.strip_prefix("***:") {
        rest = text;
    } else if rest.starts_with("***") {
        return Err("a quantifier has nothing before it".to_owned());
    }
    if let Some(options) = rest.strip_prefix("(?")
        && options.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && let Some((options, text)) = options.split_once(')')
    {
        options.chars().try_for_each(|flag| flags.add(flag))?;
        rest = text;
    }
    let mut translator = Translator {
        rest,
        flags,
        out: if flags.ignore_case { "(?i)" } else { "" }.to_owned(),
        choice: false,
    };
    if flags.literal {
        rest.chars()
            .for_each(|letter| bracket::literal(&mut translator.out, letter));
        return Ok(TranslatedPattern {
            text: translator.out,
            extent: Extent::Only,
        });
    }
    let greedy = translator.alternatives(0)?;
    if !translator.rest.is_empty() {
        return Err("the brackets ( ) are not balanced".to_owned());
    }
    let extent = match greedy {
        Some(false) => Extent::Shortest,
        _ if translator.choice => Extent::Longest,
        _ => Extent::Only,
    };
    Ok(TranslatedPattern {
        text: translator.out,
        extent,
    })
}

struct Translator<'a> {
    rest: &'a str,
    flags: Flags,
    out: String,
    /// Matches of different lengths may begin at one place, and the engine's first one need not be the longest.
    choice: bool,
}

/// Preference of a part: greedy, not greedy, or none.
type Greedy = Option<bool>;

impl Translator<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    fn take(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn alternatives(&mut self, depth: usize) -> Result<Greedy, String> {
        let mut greedy = self.branch(depth)?;
        while self.take("|") {
            self.out.push('|');
            self.branch(depth)?;
            self.choice = true;
            greedy = Some(true);
        }
        Ok(greedy)
    }

    fn branch(&mut self, depth: usize) -> Result<Greedy, String> {
        let mut greedy = None;
        loop {
            self.blanks();
            match self.peek() {
                None | Some('|') => return Ok(greedy),
                Some(')') if depth > 0 => return Ok(greedy),
                Some(_) => {
                    let of_atom = self.quantified(depth)?;
                    greedy = greedy.or(of_atom);
                }
            }
        }
    }

    /// Skips blanks and comments of an expanded pattern.
    fn blanks(&mut self) {
        while self.flags.expanded {
            let trimmed = self.rest.trim_start();
            let after = trimmed
                .strip_prefix('#')
                .map(|comment| comment.split_once('\n').map_or("", |(_, rest)| rest));
            let next = after.unwrap_or(trimmed);
            if next.len() == self.rest.len() {
                return;
            }
            self.rest = next;
        }
    }

    /// Translates an atom and its quantifier.
    fn quantified(&mut self, depth: usize) -> Result<Greedy, String> {
        // An atom of one character has one match only.
        let (inner, single) = self.atom(depth)?;
        self.blanks();
        let Some((least, most)) = self.counts()? else {
            return Ok(inner);
        };
        let lazy = self.take("?");
        if lazy {
            self.out.push('?');
        }
        if self.counts()?.is_some() {
            return Err("a quantifier follows another one".to_owned());
        }
        self.choice |= lazy || !single;
        Ok(if Some(least) == most { inner } else { Some(!lazy) })
    }

    /// Translates a quantifier. Returns its least and greatest count.
    fn counts(&mut self) -> Result<Option<(u32, Option<u32>)>, String> {
        for (sign, counts) in [("*", (0, None)), ("+", (1, None)), ("?", (0, Some(1)))] {
            if self.take(sign) {
                self.out.push_str(sign);
                return Ok(Some(counts));
            }
        }
        let digits = self
            .rest
            .strip_prefix('{')
            .filter(|text| text.starts_with(|digit: char| digit.is_ascii_digit()));
        let Some(text) = digits else {
            return Ok(None);
        };
        let invalid = || "the counts of { } are not valid: they are numbers from 0 to 255".to_owned();
        let (counts, rest) = text.split_once('}').ok_or_else(invalid)?;
        let (least, most) = counts
            .split_once(',')
            .map_or((counts, Some(counts)), |(least, most)| (least, Some(most)));
        let number = |text: &str| {
            text.parse()
                .ok()
                .filter(|count| *count <= MAX_COUNT)
                .ok_or_else(invalid)
        };
        let least = number(least)?;
        let most = most.filter(|most| !most.is_empty()).map(number).transpose()?;
        if most.is_some_and(|most| most < least) {
            return Err(invalid());
        }
        self.out.push('{');
        self.out.push_str(counts);
        self.out.push('}');
        self.rest = rest;
        Ok(Some((least, most)))
    }

    /// Translates an atom. Returns its preference, and true if it matches exactly one character.
    fn atom(&mut self, depth: usize) -> Result<(Greedy, bool), String> {
        let Some(next) = self.next() else {
            return Ok((None, true));
        };
        match next {
            '(' => {
                if depth == MAX_NESTING {
                    return Err(format!("brackets may nest at most {MAX_NESTING} deep"));
                }
                let plain = self.take("?:");
                if !plain && self.rest.starts_with('?') {
                    return Err("a look ahead or behind is not supported".to_owned());
                }
                self.out.push_str(if plain { "(?:" } else { "(" });
                let greedy = self.alternatives(depth + 1)?;
                if !self.take(")") {
                    return Err("the brackets ( ) are not balanced".to_owned());
                }
                self.out.push(')');
                return Ok((greedy, false));
            }
            ')' => return Err("the brackets ( ) are not balanced".to_owned()),
            '*' | '+' | '?' => return Err("a quantifier has nothing before it".to_owned()),
            '{' if self.rest.starts_with(|digit: char| digit.is_ascii_digit()) => {
                return Err("a quantifier has nothing before it".to_owned());
            }
            '[' => {
                for (word, ends) in [("[:<:]]", r"\b{start}"), ("[:>:]]", r"\b{end}")] {
                    if self.take(word) {
                        self.out.push_str(ends);
                        return Ok((None, true));
                    }
                }
                self.rest = bracket::translate(self.rest, self.flags.lines_apart, &mut self.out)?;
            }
            '.' => self
                .out
                .push_str(if self.flags.lines_apart { r"[^\n]" } else { "(?s:.)" }),
            '^' => self.out.push_str(if self.flags.line_ends { "(?m:^)" } else { "^" }),
            '$' => self.out.push_str(if self.flags.line_ends { "(?m:$)" } else { "$" }),
            '\\' => self.escape()?,
            literal => bracket::literal(&mut self.out, literal),
        }
        Ok((None, true))
    }

    fn escape(&mut self) -> Result<(), String> {
        let set = |out: &mut String, set: &str, negated: bool| {
            out.push_str(if negated { "[^" } else { "[" });
            out.push_str(set);
            out.push(']');
        };
        match self.peek() {
            Some(letter @ ('d' | 'D')) => set(&mut self.out, DIGIT, letter == 'D'),
            Some(letter @ ('s' | 'S')) => set(&mut self.out, SPACE, letter == 'S'),
            Some(letter @ ('w' | 'W')) => set(&mut self.out, WORD, letter == 'W'),
            Some('m') => self.out.push_str(r"\b{start}"),
            Some('M') => self.out.push_str(r"\b{end}"),
            Some('y') => self.out.push_str(r"\b"),
            Some('Y') => self.out.push_str(r"\B"),
            Some('A') => self.out.push_str(r"\A"),
            Some('Z') => self.out.push_str(r"\z"),
            _ => {
                let (letter, rest) = bracket::escaped(self.rest)?;
                self.rest = rest;
                bracket::literal(&mut self.out, letter);
                return Ok(());
            }
        }
        self.next();
        Ok(())
    }
}

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
    extent: Option<Exact>,
    pub(super) global: bool,
}

/// Automata that find the end of the longest or the shortest match.
#[derive(Debug)]
struct Exact {
    shortest: bool,
    ends: PikeVM,
    /// The pattern, up to the end of the text.
    whole: Regex,
}

impl Pattern {
    /// Compiles a pattern. The error is a sentence about it.
    pub(super) fn new(pattern: &str, flags: &str) -> Result<Self, String> {
        let flags = Flags::read(flags)?;
        Self::of(pattern, flags).map_err(|problem| format!("the regular expression is not valid: {problem}"))
    }

    fn of(pattern: &str, flags: Flags) -> Result<Self, String> {
        let TranslatedPattern { text, extent } = translate(pattern, flags)?;
        // The translation is valid, so only its size can be wrong.
        let large = || "it is too large".to_owned();
        let regex = Regex::new(&text).ok().ok_or_else(large)?;
        let extent = if extent == Extent::Only {
            None
        } else {
            let ends = PikeVM::builder()
                .syntax(syntax::Config::new())
                .configure(pikevm::Config::new().match_kind(MatchKind::All))
                .build(&text);
            Some(Exact {
                shortest: extent == Extent::Shortest,
                ends: ends.ok().ok_or_else(large)?,
                whole: Regex::new(&format!(r"(?:{text})\z")).ok().ok_or_else(large)?,
            })
        };
        Ok(Self {
            regex,
            extent,
            global: flags.global,
        })
    }

    /// Returns true if the pattern is in the text.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Returns the first match that begins at `from` or later.
    pub(super) fn find(&self, text: &str, from: usize) -> Option<Range<usize>> {
        let found = self.regex.find(Input::new(text).range(from..))?.range();
        let Some(exact) = &self.extent else {
            return Some(found);
        };
        let input = Input::new(text)
            .range(found.start..)
            .anchored(Anchored::Yes)
            .earliest(exact.shortest);
        let end = exact
            .ends
            .find(&mut exact.ends.create_cache(), input)
            .map(|longest| Match::end(&longest));
        Some(found.start..end.unwrap_or(found.end))
    }

    /// Returns the number of groups.
    pub(super) fn groups(&self) -> usize {
        self.regex.captures_len().saturating_sub(1)
    }

    /// Returns the places of the groups of a match, from the first group.
    pub(super) fn captures(&self, text: &str, found: &Range<usize>) -> Vec<Option<Range<usize>>> {
        let mut captures: Captures = self.regex.create_captures();
        match &self.extent {
            None => self
                .regex
                .captures(Input::new(text).range(found.start..), &mut captures),
            Some(exact) => {
                captures = exact.whole.create_captures();
                let input = Input::new(&text[..found.end])
                    .range(found.start..)
                    .anchored(Anchored::Yes);
                exact.whole.captures(input, &mut captures);
            }
        }
        let group = |index: usize| captures.get_group(index).map(|group| group.start..group.end);
        (1..=self.groups()).map(group).collect()
    }

    /// Returns the matches of a text, each behind the one before.
    pub(super) fn all<'a>(&'a self, text: &'a str, from: usize) -> impl Iterator<Item = Range<usize>> + 'a {
        let mut next = Some(from);
        std::iter::from_fn(move || {
            let found = self.find(text, next?)?;
            next = after(text, &found);
            Some(found)
        })
    }
}

/// Returns where the search for the next match begins, or `None` behind the end of the text.
pub(super) fn after(text: &str, found: &Range<usize>) -> Option<usize> {
    if !found.is_empty() {
        return Some(found.end);
    }
    // An empty match would be found again, so the search goes on behind the next character.
    text[found.end..]
        .chars()
        .next()
        .map(|letter| found.end + letter.len_utf8())
}
