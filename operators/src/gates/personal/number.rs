//! Numbers as people write them: groups of digits with single separators.
//!
//! Invariant: a [`Number`] begins and ends with the number that was written, never inside a longer run of groups joined
//! by hyphens, dots or slashes, such as a UUID, a version, a date or a decimal fraction.

use std::cell::OnceCell;

use self::edges::{Left, Right};
use super::checksum;
use super::context::ContextFlags;

mod edges;

/// The most digits a number of any kind has.
const MAX_DIGITS: usize = 20;
/// The most groups a number of any kind is written in.
const MAX_GROUPS: usize = 8;
/// The fewest digits: a local phone number.
const MIN_DIGITS: usize = 7;
/// The fewest digits of a number that is split over lines or cells: a card.
const MIN_DIGITS_PARTED: usize = 14;

/// The separator between two groups of digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// Anything else: the groups are not one number.
    Break,
    Space,
    Hyphen,
    Dot,
    Slash,
    /// The end of a line.
    Line,
    Tab,
    /// A parenthesis that opens or closes an area code.
    Paren,
}

/// A maximal run of ASCII digits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The separator between this group and the next.
    pub(super) gap: Gap,
}

impl Group {
    pub(super) const fn len(&self) -> usize {
        self.end - self.start
    }
}

impl Gap {
    /// Returns true if it separates the cells of a table or the lines of a list.
    pub(super) const fn is_of_table(self) -> bool {
        matches!(self, Self::Line | Self::Tab)
    }

    /// Returns true if it may separate two numbers of a list whose groups are separated by `own`.
    fn lists(self, own: Self) -> bool {
        self == Self::Space || (self.is_of_table() && own.is_of_table())
    }
}

/// Finds the groups of digits in `text`.
pub(super) fn groups(text: &[u8], out: &mut Vec<Group>) {
    out.clear();
    let mut index = 0;
    while index < text.len() {
        if !text[index].is_ascii_digit() {
            index += 1;
            continue;
        }
        let start = index;
        while index < text.len() && text[index].is_ascii_digit() {
            index += 1;
        }
        if let Some(last) = out.last_mut() {
            let gap = gap(&text[last.end..start]);
            // Only these shapes are joined: columns of other numbers are common and are no
            // cards.
            let parted = !gap.is_of_table() || matches!((last.len(), index - start), (4, 4 | 6) | (6, 4 | 5));
            last.gap = if parted { gap } else { Gap::Break };
        }
        out.push(Group {
            start,
            end: index,
            gap: Gap::Break,
        });
    }
}

fn gap(between: &[u8]) -> Gap {
    match between {
        b" " | b"  " => Gap::Space,
        b"-" | b" - " => Gap::Hyphen,
        b"." => Gap::Dot,
        b"/" | b" / " => Gap::Slash,
        b"\n" | b"\r\n" => Gap::Line,
        b"\t" => Gap::Tab,
        b")" | b") " | b")-" | b") - " | b" (" | b"(" | b"-(" => Gap::Paren,
        _ => Gap::Break,
    }
}

/// One to eight groups that may be one number.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "separate facts about what stands around it"
)]
pub(super) struct Number<'a> {
    text: &'a [u8],
    start: usize,
    end: usize,
    digits: [u8; MAX_DIGITS],
    count: usize,
    lengths: [u8; MAX_GROUPS],
    groups: &'a [Group],
    /// True if a `+` comes before the first digit.
    pub(super) plus: bool,
    /// True if a `-` comes before the first digit.
    minus: bool,
    /// True if the first group is in parentheses.
    pub(super) area: bool,
    /// True if a letter, sign or mark touches either end, or the number is part of a dump of bytes, so that only a word
    /// nearby makes it a person's number.
    pub(super) tight: bool,
    /// True if a group of four digits is next to it, or its groups are only some cells of a row: the number may be part
    /// of a list.
    pub(super) in_list: bool,
    /// True if a colon joins it to other digits, as in a time.
    pub(super) timed: bool,
    field: ContextFlags,
    near: OnceCell<ContextFlags>,
}

impl Number<'_> {
    /// Returns the values of the digits.
    pub(super) fn digits(&self) -> &[u8] {
        &self.digits[..self.count]
    }

    /// Returns the lengths of the groups.
    pub(super) fn shape(&self) -> &[u8] {
        &self.lengths[..self.groups.len()]
    }

    /// Returns true if every two groups are separated by `gap`, and for a single group.
    pub(super) fn joined_by(&self, gap: Gap) -> bool {
        self.gaps().all(|other| other == gap)
    }

    /// Returns the separators between the groups.
    pub(super) fn gaps(&self) -> impl Iterator<Item = Gap> {
        self.groups.iter().take(self.groups.len() - 1).map(|group| group.gap)
    }

    /// Returns true if a word near the number or the field's name has the flag.
    pub(super) fn called(&self, hint: ContextFlags) -> bool {
        self.near().has(hint) || (!self.near().has(ContextFlags::THING) && self.field.has(hint))
    }

    /// Returns true if the field's name names phone numbers.
    pub(super) const fn field_names_phone(&self) -> bool {
        self.field.has(ContextFlags::PHONE)
    }

    /// Returns true if the word before the number names a thing.
    pub(super) fn of_thing(&self) -> bool {
        self.near().has(ContextFlags::THING)
    }

    /// Returns true if the word before the number names a specific thing, not only an id.
    pub(super) fn of_named_thing(&self) -> bool {
        self.near().has_all(ContextFlags::THING)
    }

    /// Returns true if the word before the number, or the field's name, names a thing.
    pub(super) fn of_thing_or_field(&self) -> bool {
        self.of_thing() || self.in_field_of_things()
    }

    /// Returns true if no word near the number tells its kind, and the field's name names a thing.
    pub(super) fn in_field_of_things(&self) -> bool {
        self.near() == ContextFlags::NONE && self.field.has_all(ContextFlags::THING)
    }

    /// Returns true if the number is a pair of coordinates as in ISO 6709: latitude and longitude with signs and
    /// leading zeros, in degrees, minutes and seconds with or without decimals, as in `+4024-00341`.
    pub(super) fn is_coordinates(&self) -> bool {
        let (latitude, start, longitude) = match *self.shape() {
            [latitude, longitude] if self.joined_by(Gap::Hyphen) => (latitude, latitude, longitude),
            [latitude, fraction, longitude, _] if self.gaps().eq([Gap::Dot, Gap::Hyphen, Gap::Dot]) => {
                (latitude, latitude + fraction, longitude)
            }
            _ => return false,
        };
        let digits = |start: u8, length: u8| &self.digits()[usize::from(start)..usize::from(start + length)];
        (self.plus || self.minus)
            && matches!((latitude, longitude), (2, 3) | (4, 5) | (6, 7))
            && is_angle(digits(0, latitude), 2, 90)
            && is_angle(digits(start, longitude), 3, 180)
    }

    /// Returns true if the number is an angle or an hour angle in parts of sixty, as catalogues of stars have them: its only
    /// dot is before its last group, and behind seconds or minutes, as in `+33 12 34.56789`; or it is a declination, with
    /// a sign, right behind an hour angle.
    pub(super) fn is_sexagesimal(&self) -> bool {
        let sixtieth = |group: &Group| group.len() == 2 && self.text[group.start] < b'6';
        let dotted = match self.groups {
            [first, middle @ .., before, _] => {
                first.len() <= 3
                    && sixtieth(before)
                    && middle.iter().all(sixtieth)
                    && before.gap == Gap::Dot
                    && [first].into_iter().chain(middle).all(|group| group.gap == Gap::Space)
            }
            _ => false,
        };
        dotted
            || ((self.plus || self.minus) && self.digits().len() > 2 && follows_an_hour_angle(&self.text[..self.start]))
    }

    /// Returns true if the field's name says that its values are the numbers or codes of something else, and no word near
    /// the number tells its kind.
    pub(super) fn in_field_of_codes(&self) -> bool {
        self.near() == ContextFlags::NONE && self.field.has(ContextFlags::CODE)
    }

    /// Returns true if the number is a decimal: two groups with a dot between them.
    pub(super) fn is_decimal(&self) -> bool {
        self.groups.len() == 2 && self.joined_by(Gap::Dot)
    }

    fn near(&self) -> ContextFlags {
        *self
            .near
            .get_or_init(|| ContextFlags::near(self.text, self.start, self.end))
    }
}

/// Returns true if the digits are whole degrees with `places` digits, up to `most`, then minutes and seconds of two
/// digits each.
fn is_angle(digits: &[u8], places: usize, most: u64) -> bool {
    let (degrees, parts) = digits.split_at(places);
    checksum::number(degrees) <= most && parts.chunks(2).all(|part| checksum::number(part) < 60)
}

/// Calls `judge` for every number in `text` of at least seven digits.
pub(super) fn each<'a>(text: &'a [u8], groups: &'a [Group], field: ContextFlags, mut judge: impl FnMut(&Number<'_>)) {
    for first in 0..groups.len() {
        // Checked first, because it is cheap and most groups of digits are short and alone.
        if !has_digits(&groups[first..]) {
            continue;
        }
        // A number cannot begin inside a longer run such as a date or a version.
        let Some(left) = Left::of(text, groups, first) else {
            continue;
        };
        let own = groups[first].gap;
        let mut digits = [0; MAX_DIGITS];
        let mut lengths = [0; MAX_GROUPS];
        let mut count = 0;
        for (index, group) in groups[first..].iter().take(MAX_GROUPS).enumerate() {
            // No kind has more digits, so no longer candidate that begins here can match.
            if count + group.len() > MAX_DIGITS {
                break;
            }
            for (digit, byte) in digits[count..].iter_mut().zip(&text[group.start..group.end]) {
                *digit = byte - b'0';
            }
            count += group.len();
            lengths[index] = u8::try_from(group.len()).unwrap_or(u8::MAX);
            let members = &groups[first..=first + index];
            // Columns of numbers are common, so a number over several cells or lines needs the
            // length of a card.
            let fewest = if index > 0 && own.is_of_table() {
                MIN_DIGITS_PARTED
            } else {
                MIN_DIGITS
            };
            if count >= fewest
                && !(index == 0 && (is_within_a_word(text, *group) || is_within_a_hash(text, *group)))
                && !is_within_a_uuid(text, left.start)
                && let Some(right) = Right::of(text, groups, first + index, own, left.area, index > 0)
            {
                judge(&Number {
                    text,
                    start: left.start,
                    end: group.end,
                    digits,
                    count,
                    lengths,
                    groups: members,
                    plus: left.plus,
                    minus: left.minus,
                    area: left.area,
                    tight: left.tight || right.tight || (left.minus && index == 0) || is_dumped(text, members),
                    in_list: left.in_list || right.in_list,
                    timed: left.timed || right.timed,
                    field,
                    near: OnceCell::new(),
                });
            }
            // A number keeps to one kind of separator: within a line, or between cells or
            // lines.
            if group.gap == Gap::Break || group.gap.is_of_table() != own.is_of_table() {
                break;
            }
        }
    }
}

/// Returns true if an hour angle ends `before`, as in `00 42 44.3` or `00:42:44`, with at most a few signs after it.
fn follows_an_hour_angle(before: &[u8]) -> bool {
    const SIGNS: usize = 4;
    const FRACTION: usize = 12;
    let signs = before
        .iter()
        .rev()
        .take(SIGNS)
        .take_while(|byte| b" ,;|\t\"-".contains(byte))
        .count();
    let digits = |text: &[u8], most: usize| {
        text.iter()
            .rev()
            .take(most)
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let mut rest = &before[..before.len() - signs];
    if let Some(seconds) = rest[..rest.len() - digits(rest, FRACTION)].strip_suffix(b".") {
        rest = seconds;
    }
    for most in [b'6', b'6', b'3'] {
        let [ahead @ .., ten, one] = rest else { return false };
        if !(ten.is_ascii_digit() && *ten < most && one.is_ascii_digit()) {
            return false;
        }
        rest = match ahead {
            [ahead @ .., b' ' | b':'] if most == b'6' => ahead,
            [.., b'0'..=b'9'] => return false,
            _ if most == b'6' => return false,
            _ => ahead,
        };
    }
    signs > 0
}

/// Returns true if a group touches a letter within a long hexadecimal word: it is part of a hash or of another id.
fn is_within_a_hash(text: &[u8], group: Group) -> bool {
    const LONG: usize = 20;
    const REACH: usize = 64;
    let letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphabetic);
    if !letter(text[..group.start].last()) && !letter(text.get(group.end)) {
        return false;
    }
    let is_hex = |byte: &&u8| byte.is_ascii_hexdigit();
    let before = text[..group.start].iter().rev().take(REACH).take_while(is_hex).count();
    let after = text[group.end..].iter().take(REACH).take_while(is_hex).count();
    before + group.len() + after >= LONG
}

/// Returns true if letters touch a group on both sides: it is part of a hexadecimal number or another id.
fn is_within_a_word(text: &[u8], group: Group) -> bool {
    let letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphabetic);
    letter(text[..group.start].last()) && letter(text.get(group.end))
}

/// Returns true if the groups stand in a row of a dump of bytes: the words beside them are hexadecimal numbers of as
/// many digits as the group next to them, and two of these have letters, or one in a row of seven words. Pairs of
/// digits are in a row also where there are more of them than two phone numbers of France have.
fn is_dumped(text: &[u8], groups: &[Group]) -> bool {
    /// The words of a row that are read to either side: all others of sixteen bytes.
    const REACH: usize = 15;
    const ROW: usize = 7;
    const PAIRS: usize = 12;
    let [first, .., last] = groups else { return false };
    let mut lettered = 0;
    let mut words = groups.len();
    let mut rest = &text[..first.start];
    for _ in 0..REACH {
        let Some((before, word)) = last_hex_word(rest, first.len()) else {
            break;
        };
        lettered += usize::from(!word.iter().all(u8::is_ascii_digit));
        words += 1;
        rest = before;
    }
    let mut rest = &text[last.end..];
    for _ in 0..REACH {
        let Some((word, after)) = first_hex_word(rest, last.len()) else {
            break;
        };
        lettered += usize::from(!word.iter().all(u8::is_ascii_digit));
        words += 1;
        rest = after;
    }
    let pairs = words >= PAIRS && groups.iter().all(|group| group.len() == 2);
    pairs || lettered >= 2 || (lettered == 1 && words >= ROW)
}

/// Splits off a hexadecimal word of this length before one or two spaces at the end of `text`.
fn last_hex_word(text: &[u8], length: usize) -> Option<(&[u8], &[u8])> {
    let text = text.strip_suffix(b" ")?;
    let text = text.strip_suffix(b" ").unwrap_or(text);
    let (before, word) = text.split_at_checked(text.len().checked_sub(length)?)?;
    let bounded = before.last().is_none_or(|byte| *byte == b' ');
    (bounded && word.iter().all(u8::is_ascii_hexdigit)).then_some((before, word))
}

/// Splits off a hexadecimal word of this length after one or two spaces at the beginning of `text`.
fn first_hex_word(text: &[u8], length: usize) -> Option<(&[u8], &[u8])> {
    let text = text.strip_prefix(b" ")?;
    let text = text.strip_prefix(b" ").unwrap_or(text);
    let (word, after) = text.split_at_checked(length)?;
    let bounded = after.first().is_none_or(u8::is_ascii_whitespace);
    (bounded && word.iter().all(u8::is_ascii_hexdigit)).then_some((word, after))
}

/// Returns true if a number begins within a UUID (RFC 9562), whose letters may look like the word for a number.
fn is_within_a_uuid(text: &[u8], start: usize) -> bool {
    const LENGTH: usize = 36;
    let is_of = |byte: &&u8| byte.is_ascii_hexdigit() || **byte == b'-';
    // Reading further is useless, because a longer run is no UUID, and would make the scan
    // quadratic.
    let before = text[..start].iter().rev().take(LENGTH).take_while(is_of).count();
    let after = text[start..].iter().take(LENGTH + 1).take_while(is_of).count();
    before + after == LENGTH
        && text[start - before..start + after]
            .iter()
            .enumerate()
            .all(|(place, byte)| (*byte == b'-') == matches!(place, 8 | 13 | 18 | 23))
}

/// Returns true if the groups that may form one number with the first have enough digits.
fn has_digits(groups: &[Group]) -> bool {
    let mut digits = 0;
    for group in groups.iter().take(MAX_GROUPS) {
        digits += group.len();
        if digits >= MIN_DIGITS || group.gap == Gap::Break {
            break;
        }
    }
    digits >= MIN_DIGITS
}

/// Joins digits that are written apart, if at least seven single digits stand apart: `0 1 0 - 1 2 3 4`.
pub(super) fn collapse_spaced_digits(text: &[u8], groups: &[Group]) -> Option<Vec<u8>> {
    const APART: usize = 7;
    let single = |group: &Group| group.len() == 1;
    let mut run = 0;
    // Fewer single digits in a row are common in ordinary lists.
    let apart = groups.iter().any(|group| {
        let apart = matches!(group.gap, Gap::Space | Gap::Hyphen | Gap::Break) || group.gap.is_of_table();
        run = if single(group) && apart { run + 1 } else { 0 };
        run >= APART
    });
    if !apart {
        return None;
    }
    let mut closed = Vec::with_capacity(text.len());
    let mut copied = 0;
    for pair in groups.windows(2) {
        if pair[0].gap == Gap::Space && single(&pair[0]) && single(&pair[1]) {
            closed.extend_from_slice(&text[copied..pair[0].end]);
            copied = pair[1].start;
        }
    }
    closed.extend_from_slice(&text[copied..]);
    Some(closed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(text: &str) -> Vec<(Vec<u8>, bool)> {
        let mut found = Vec::new();
        let mut grouped = Vec::new();
        groups(text.as_bytes(), &mut grouped);
        each(text.as_bytes(), &grouped, ContextFlags::NONE, |number| {
            found.push((number.shape().to_vec(), number.tight));
        });
        found
    }

    #[test]
    fn a_number_is_not_a_part_of_a_longer_one() {
        assert_eq!(shapes("010-1234-5678"), [(vec![3, 4, 4], false)]);
        assert!(
            shapes("550e8400-e29b-41d4-a716-446655440000")
                .iter()
                .all(|(_, tight)| *tight)
        );
        assert_eq!(shapes("0.4111111111111111"), [(vec![1, 16], false)]);
        assert_eq!(shapes("ab1234567cd"), []);
        assert_eq!(shapes("ev_cb4420877344610d"), []);
        assert_eq!(shapes("cb4420877344610"), [(vec![13], true)]);
        assert_eq!(shapes("1,234,567,8901234"), [(vec![7], true)]);
        assert_eq!(shapes("홍길동01012345678입니다"), [(vec![11], false)]);
        assert_eq!(shapes("12:34:5678901"), [(vec![7], true)]);
    }

    #[test]
    fn an_area_code_may_be_in_parentheses() {
        assert!(shapes("(415) 555-2671").contains(&(vec![3, 3, 4], false)));
        assert!(shapes("2026 (415) 555-2671").contains(&(vec![3, 3, 4], false)));
        assert!(shapes("tel (010-1234-5678) 2026").contains(&(vec![3, 4, 4], false)));
    }

    #[test]
    fn digits_apart_are_closed_up() {
        let closed = |text: &str| {
            let mut grouped = Vec::new();
            groups(text.as_bytes(), &mut grouped);
            collapse_spaced_digits(text.as_bytes(), &grouped).map(|closed| String::from_utf8(closed).unwrap())
        };
        assert_eq!(
            closed("tel 0 1 0 - 1 2 3 4 - 5 6 7 8").unwrap(),
            "tel 010 - 1234 - 5678"
        );
        assert_eq!(closed("1 2 3 4"), None);
        assert_eq!(closed("12 34 56 78 90 12 34 56"), None);
    }
}
