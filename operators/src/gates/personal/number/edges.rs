//! What stands right before and right after a number.
//!
//! Invariant: a number never begins or ends inside a longer one.

use super::{Gap, Group};

/// The text before a number; `None` if a number cannot begin here.
#[expect(
    clippy::struct_excessive_bools,
    reason = "separate facts about what stands before it"
)]
pub(super) struct Left {
    pub(super) start: usize,
    pub(super) plus: bool,
    pub(super) area: bool,
    pub(super) minus: bool,
    pub(super) tight: bool,
    pub(super) in_list: bool,
    pub(super) timed: bool,
}

impl Left {
    pub(super) fn of(text: &[u8], groups: &[Group], first: usize) -> Option<Self> {
        let mut start = groups[first].start;
        let mut take = |mark: u8| {
            let taken = start > 0 && text[start - 1] == mark;
            start -= usize::from(taken);
            taken
        };
        // `+(49)`, `(+49)` and `(030)` are all in use.
        let area = take(b'(');
        let plus = take(b'+');
        let area = area || (plus && take(b'('));
        let previous = first.checked_sub(1).map(|previous| groups[previous]);
        match previous.map_or(Gap::Break, |group| group.gap) {
            // The group continues the one before, so no number begins here.
            Gap::Hyphen | Gap::Dot => return None,
            Gap::Slash if groups[first].len() < 2 => return None,
            Gap::Paren if !area => return None,
            _ => {}
        }
        if is_fraction(&text[..start]) || (groups[first].len() <= 3 && is_exponent(&text[..start])) {
            return None;
        }
        let before = text[..start].last().copied();
        let second = text[..start].iter().nth_back(1).copied();
        let after_word = second.is_some_and(|byte| byte.is_ascii_alphanumeric());
        let after_digit = second.is_some_and(|byte| byte.is_ascii_digit());
        // Two colons are needed, because one may follow a counter, as in `phone 1:`.
        let timed = before == Some(b':') && after_digit && text[..start - 2].last().is_some_and(u8::is_ascii_digit);
        // An amount of money is a count, not a person's number.
        let currency = ["₩", "€", "£", "¥", "₹", "￦"]
            .iter()
            .any(|sign| text[..start].ends_with(sign.as_bytes()));
        let tight = currency
            || before.is_some_and(|byte| match byte {
                b'_' | b'#' | b'$' | b'@' | b'%' | b'&' | b'~' | b'^' | b'*' | b'\\' => true,
                b'-' | b'/' => after_word,
                // After a digit these signs belong to a decimal, a time or a version; elsewhere
                // they end a clause.
                b',' | b':' | b'.' => after_digit,
                byte => byte.is_ascii_alphanumeric(),
            });
        let own = groups[first].gap;
        let in_list = previous.is_some_and(|group| group.gap.lists(own) && group.len() == 4)
            || (own == Gap::Tab && before == Some(b'\t'));
        Some(Self {
            start,
            plus,
            area,
            minus: before == Some(b'-'),
            tight,
            in_list,
            timed,
        })
    }
}

/// Returns true if the digits after `before` are the fraction of a decimal without a zero before its point, as in
/// `e=.4111`. After a word or another sign of a sentence a point is a full stop.
fn is_fraction(before: &[u8]) -> bool {
    let [rest @ .., b'.'] = before else { return false };
    rest.last()
        .is_none_or(|byte| byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b".)!?_".contains(byte))
}

/// Returns true if the digits after `before` are the exponent of a number, as in `1.5E-07`.
fn is_exponent(before: &[u8]) -> bool {
    let before = before
        .strip_suffix(b"+")
        .or_else(|| before.strip_suffix(b"-"))
        .unwrap_or(before);
    matches!(before, [.., b'0'..=b'9' | b'.', b'e' | b'E'])
}

/// The text after a number; `None` if a number cannot end here.
pub(super) struct Right {
    pub(super) tight: bool,
    pub(super) in_list: bool,
    pub(super) timed: bool,
}

impl Right {
    pub(super) fn of(text: &[u8], groups: &[Group], last: usize, own: Gap, area: bool, several: bool) -> Option<Self> {
        let group = groups[last];
        let next = groups.get(last + 1);
        let after = &text[group.end..];
        match group.gap {
            // The next group continues this one, so the number does not end here.
            Gap::Hyphen | Gap::Dot => return None,
            Gap::Slash if !several || next.is_some_and(|next| next.len() < 2) => return None,
            Gap::Paren if after.first() != Some(&b' ') && !(area && several) => return None,
            _ => {}
        }
        let second = after.get(1);
        let digit_next = second.is_some_and(u8::is_ascii_digit);
        let tight = after.first().is_some_and(|byte| match byte {
            b'_' | b'%' | b'@' => true,
            // `x` before digits is an extension, as in `555-0100 x12`.
            b'x' if several => !digit_next,
            b',' | b':' | b'.' => digit_next,
            b'-' => second.is_some_and(u8::is_ascii_alphanumeric),
            byte => byte.is_ascii_alphanumeric(),
        });
        Some(Self {
            tight,
            in_list: (group.gap.lists(own) && next.is_some_and(|next| next.len() == 4))
                || (own == Gap::Tab && after.first() == Some(&b'\t')),
            timed: digit_next && after.first() == Some(&b':'),
        })
    }
}
