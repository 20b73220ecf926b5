//! Scopes: the kinds of act that a token allows.

use std::fmt;
use std::str::FromStr;

/// A kind of act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Reading units, datasets, points and quota.
    Read,
    /// Submitting, revising, retiring, contributing and updating.
    Write,
    /// Buying with prepaid credits.
    Spend,
}

impl Scope {
    /// Every scope, in the order in which they are written.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Spend];

    /// Returns the word of the scope.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Spend => "spend",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scopes(u8);

/// A text names a scope that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the scopes are `read`, `write` and `spend`")]
pub struct UnknownScope;

impl Scopes {
    /// The set without any scope.
    pub const NONE: Self = Self(0);
    /// The set of every scope.
    pub const ALL: Self = Self(0b111);

    /// Creates the set of these scopes.
    pub const fn of(scopes: &[Scope]) -> Self {
        let mut bits = 0;
        let mut at = 0;
        while at < scopes.len() {
            bits |= scopes[at].bit();
            at += 1;
        }
        Self(bits)
    }

    /// Parses scopes that are separated by single spaces (RFC 6749 section 3.3). The order has no meaning.
    ///
    /// # Errors
    /// [`UnknownScope`] for any other word, which includes an empty one.
    pub fn parse(text: &str) -> Result<Self, UnknownScope> {
        // Blanks at the ends and doubled ones give an empty word, which no scope has.
        text.split(' ').try_fold(Self::NONE, |set, word| {
            let scope = Scope::ALL.into_iter().find(|scope| scope.word() == word);
            scope.map(|scope| Self(set.0 | scope.bit())).ok_or(UnknownScope)
        })
    }

    /// Returns the scopes that are known among the words of a text.
    #[must_use]
    pub fn known(text: &str) -> Self {
        let words = text.split_ascii_whitespace().map(Self::parse);
        Self(words.flatten().fold(0, |bits, set| bits | set.0))
    }

    /// Returns the scopes that are in this set and in the other.
    #[must_use]
    pub const fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns true if the set has this scope.
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Returns true if every scope of this set is in the other.
    pub const fn is_subset(self, of: Self) -> bool {
        self.0 & !of.0 == 0
    }

    /// Returns true if the set has no scope.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the words of the scopes, in a fixed order.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        let kept = Scope::ALL.into_iter().filter(move |scope| self.contains(*scope));
        kept.map(Scope::word)
    }
}

impl FromStr for Scopes {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        Self::parse(text)
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words().collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_parsed_strictly_and_written_in_one_order() {
        let parsed = Scopes::parse("spend read").unwrap();
        assert_eq!(parsed, Scopes::of(&[Scope::Read, Scope::Spend]));
        assert_eq!(parsed.to_string(), "read spend");
        assert_eq!(Scopes::parse("read read"), Ok(Scopes::of(&[Scope::Read])));
        for wrong in [
            "",
            " ",
            "read ",
            "read  write",
            "Read",
            "admin",
            "read,write",
            "read\twrite",
        ] {
            assert_eq!(Scopes::parse(wrong), Err(UnknownScope), "{wrong:?}");
        }
        assert_eq!(Scopes::known("openid read offline_access"), Scopes::of(&[Scope::Read]));
    }

    #[test]
    fn subsets_are_those_of_sets() {
        let read = Scopes::of(&[Scope::Read]);
        assert!(Scopes::NONE.is_subset(read) && read.is_subset(Scopes::ALL));
        assert!(!Scopes::ALL.is_subset(read) && !read.is_subset(Scopes::of(&[Scope::Write])));
        assert_eq!(Scopes::ALL.both(read), read);
        assert_eq!(Scopes::of(&[Scope::Write]).both(read), Scopes::NONE);
    }
}
