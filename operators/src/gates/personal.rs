//! The gate that refuses records with personal data.
//!
//! Invariant: a reason names the field, the kind and the rule, never the value. If the name of a member is itself
//! personal data, the path ends before it.
//!
//! Every string column, `json` column and extra member is scanned, names included; integers only if the name of their
//! field names a person's number. Text is first put in plain spelling ([`crate::text`]): full-width forms, digits of
//! other scripts, invisible characters, dashes and spaces of any width, `%40`, `[at]` and `[dot]`, digits written
//! apart. Then each kind has a rule of form, check digits and, if other numbers share the form, words nearby or in the
//! field's name. A pass over the bytes that looks for an `@` or six digits comes first, so most text meets no rule at
//! all. Every rule is linear in the text.
//!
//! Known misses, by design: a value spread over several fields or records; text in base64, in an escape of a
//! programming language, in words ("zero one zero"), in images or reversed; letters of another script that look Latin
//! in a top-level domain; national phone and identity numbers in a bare run of digits without a word for them (except
//! Korean mobile numbers and cards of 15 or 16 digits); a phone or card right after a word for a thing (`order no. …`);
//! phones of fewer than nine digits in an integer, or away from a word that has other meanings too (`call`, `mobile`);
//! a card number under a field named as an id; a phone in a national form in a field named for the numbers of another
//! thing (`lot_number`); a number right behind a point that follows a space; an address below a domain for examples;
//! names, addresses, birth dates, IP addresses (which name machines) and accounts of other services. Without a word for
//! a phone also: an international number in two groups that is also a pair of coordinates (`+4930-12345`) or has the
//! form of an angle (`+33 12 34.56789`); a number among two hexadecimal words of the length of its groups (`c0 06 98 76
//! 54 32 e1`). An address among twenty or more characters without a space, none of which is a small letter or beyond K.
//!
//! Known false alarms: every tenth random number of 16 digits from an issuer's range under a field with a neutral name,
//! also in four lines; a count of nine digits or more next to a word for a phone; a copy to or from the root of a host
//! (`kim@example.de:/`); addresses of organisations; a `+` before an integer that has the length of a country's
//! numbers; the qualities of a DNA read of fewer than 20 bases, or of scores beyond K with few kinds of marks; a row of
//! a dump of bytes in which almost no byte has a letter; five pairs of digits from 01 to 09 on that are another list.

use arrow::array::AsArray;
use arrow::datatypes::{Decimal128Type, Float64Type, Int64Type};
use types::contract::EXTRA_COLUMN;
use types::json::push_pointer;
use types::{Batch, FieldType, decimal};

use self::context::ContextFlags;
pub use self::guide::{guide, instead};
use self::kind::Kinds;
use self::scan::Scanner;
use crate::verdict::Refusals;
use crate::visitor::{JsonVisitor, walk};
use crate::{Gate, GateName, Reason, Verdicts};

mod alphanumeric;
mod card;
mod checksum;
mod context;
mod domains;
mod email;
mod guide;
mod identity;
mod kind;
mod number;
mod phone;
mod prefilter;
mod scan;
mod travel_documents;

/// The path of the rules of this gate in the service.
pub const GUIDE: &str = "/guide/personal-data.md";

/// Refuses the rows with personal data, with one reason per field and kind: code `email`, `phone`, `payment_card`,
/// `iban`, `kr_resident_number`, `us_ssn` or that of another national number; `more` for reasons that are only counted.
#[derive(Clone, Debug, Default)]
pub struct PersonalData {
    scanner: Scanner,
}

impl PersonalData {
    /// Creates a gate with empty buffers.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Gate for PersonalData {
    fn name(&self) -> GateName {
        GateName::PERSONAL_DATA
    }

    fn judge(&mut self, rows: &Batch) -> Verdicts {
        let mut found = Refusals::default();
        let columns = rows.columns();
        for (field, column) in rows.contract().fields().iter().zip(columns.columns()) {
            // Computed once per column instead of once per row.
            let hints = ContextFlags::of_field(&field.name);
            let mut path = String::new();
            push_pointer(&mut path, &field.name);
            match field.kind {
                FieldType::String => {
                    let texts = column.as_string::<i32>();
                    for row in prefilter::suspects(texts) {
                        let kinds = self.scanner.scan(texts.value(row), hints);
                        found.add_all(row, kinds, &path);
                    }
                }
                FieldType::Json => {
                    for (row, json) in column.as_string::<i32>().iter().enumerate() {
                        self.scan_json(row, json.unwrap_or_default(), &path, hints, &mut found);
                    }
                }
                FieldType::Integer if hints.names_a_number() => {
                    for (row, integer) in column.as_primitive::<Int64Type>().iter().enumerate() {
                        let magnitude = integer.unwrap_or_default().unsigned_abs();
                        let kinds = scan_integer(&mut self.scanner, magnitude, hints);
                        found.add_all(row, kinds, &path);
                    }
                }
                FieldType::Number if hints.names_a_number() => {
                    for (row, number) in column.as_primitive::<Float64Type>().iter().enumerate() {
                        if let Some(magnitude) = number.and_then(whole) {
                            let kinds = scan_integer(&mut self.scanner, magnitude, hints);
                            found.add_all(row, kinds, &path);
                        }
                    }
                }
                FieldType::Decimal(scale) if hints.names_a_number() => {
                    let unit = 10_i128.pow(scale.min(decimal::MAX_SCALE).into());
                    for (row, units) in column.as_primitive::<Decimal128Type>().iter().enumerate() {
                        let units = units.filter(|units| units % unit == 0);
                        if let Some(magnitude) =
                            units.and_then(|units| u64::try_from(units.unsigned_abs() / unit.unsigned_abs()).ok())
                        {
                            let kinds = scan_integer(&mut self.scanner, magnitude, hints);
                            found.add_all(row, kinds, &path);
                        }
                    }
                }
                // Plain counts, days and instants are no personal data.
                FieldType::Integer
                | FieldType::Number
                | FieldType::Decimal(_)
                | FieldType::Boolean
                | FieldType::Date
                | FieldType::Timestamp => {}
            }
        }
        if let Some(extras) = columns.column_by_name(EXTRA_COLUMN) {
            for (row, json) in extras.as_string::<i32>().iter().enumerate() {
                self.scan_json(row, json.unwrap_or_default(), "", ContextFlags::NONE, &mut found);
            }
        }
        found.into_verdicts(rows.len())
    }
}

impl PersonalData {
    fn scan_json(&mut self, row: usize, json: &str, path: &str, hints: ContextFlags, found: &mut Refusals) {
        if !Scanner::suspects(json.as_bytes()) {
            return;
        }
        let mut scan = JsonScan {
            scanner: &mut self.scanner,
            path: path.to_owned(),
            frames: vec![Frame {
                length: path.len(),
                hints,
                ..Frame::EMPTY
            }],
            row,
            found,
        };
        // This service wrote the JSON of the column, so parsing does not fail. If it did, the
        // text would be scanned as it is.
        if walk(json, &mut scan).is_err() {
            scan.text(json);
        }
    }
}

/// Returns true if `text`, in the field named `field`, contains personal data.
pub(super) fn is_personal(text: &str, field: &str) -> bool {
    !Scanner::default().scan(text, ContextFlags::of_field(field)).is_empty()
}

/// Returns the magnitude of a number that is an integer and exact as a double.
fn whole(number: f64) -> Option<u64> {
    /// 2^53: every integer up to it is exact as a double.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let magnitude = number.abs();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an integer from 0 to 2^53"
    )]
    (magnitude <= EXACT && magnitude.fract() == 0.0).then_some(magnitude as u64)
}

/// Scans an integer as digits. Its leading zeros are lost, so those of the kind that its field names are put back.
fn scan_integer(scanner: &mut Scanner, magnitude: u64, hints: ContextFlags) -> Kinds {
    let hints = hints.for_integer(magnitude);
    // Integers are mostly counts, so they are scanned only if their field names a person's
    // number.
    if !hints.names_a_number() || magnitude < 1_000_000 {
        return Kinds::default();
    }
    let width = if hints.has(ContextFlags::KR_RESIDENT) {
        13
    } else if hints.has(ContextFlags::US_SSN) {
        9
    } else if hints.has(ContextFlags::BR_CPF.and(ContextFlags::PL_PESEL)) {
        11
    } else {
        0
    };
    scanner.scan(&format!("{magnitude:0width$}"), hints)
}

impl Refusals {
    /// Adds a reason for each kind found at `path`.
    fn add_all(&mut self, row: usize, kinds: Kinds, path: &str) {
        // Nearly every row has no kind, so this common case returns early.
        if kinds.is_empty() {
            return;
        }
        for kind in kinds.iter() {
            self.add(row, || Reason {
                gate: GateName::PERSONAL_DATA,
                code: kind.code().to_owned(),
                path: path.to_owned(),
                expected: format!("no personal data (rule `{}` of {GUIDE})", kind.rule()),
                actual: kind.name().to_owned(),
            });
        }
    }
}

/// A visitor that scans the leaves of one JSON value.
struct JsonScan<'a> {
    scanner: &'a mut Scanner,
    path: String,
    /// The levels from the value to the current position; the first is never left.
    frames: Vec<Frame>,
    row: usize,
    found: &'a mut Refusals,
}

/// One level of nesting in the value.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// The length of the path to this level.
    length: usize,
    /// The hints of the names on the way to this level.
    hints: ContextFlags,
    /// The index of the level whose path is reported here: its own, or an earlier one if a name on the way is personal
    /// data.
    shown: usize,
    /// The kinds that were reported under the path of this level.
    said: Kinds,
}

impl Frame {
    const EMPTY: Self = Self {
        length: 0,
        hints: ContextFlags::NONE,
        shown: 0,
        said: Kinds::NONE,
    };
}

impl JsonScan<'_> {
    fn frame(&self) -> Frame {
        self.frames.last().copied().unwrap_or(Frame::EMPTY)
    }

    /// Returns true if a name on the way is personal data, so that the path ended before it.
    fn hidden(&self) -> bool {
        self.frame().shown + 1 < self.frames.len()
    }

    /// Reports each kind once per path. Members with hidden names share the path of the level above them.
    fn refuse(&mut self, kinds: Kinds) {
        let shown = self.frame().shown;
        if let Some(level) = self.frames.get_mut(shown) {
            let new = kinds.without(level.said);
            level.said = level.said.and(kinds);
            self.found.add_all(self.row, new, &self.path);
        }
    }

    /// Enters a level; its path is its own unless `hidden`.
    fn enter(&mut self, hints: ContextFlags, hidden: bool) {
        let shown = if hidden { self.frame().shown } else { self.frames.len() };
        self.frames.push(Frame {
            length: self.path.len(),
            hints,
            shown,
            said: Kinds::NONE,
        });
    }
}

impl JsonVisitor for JsonScan<'_> {
    fn enter_member(&mut self, name: &str) {
        let kinds = self.scanner.scan(name, ContextFlags::NONE);
        let hidden = self.hidden() || !kinds.is_empty();
        self.refuse(kinds);
        // A path must not contain personal data, so it stays at the level above.
        if !hidden {
            push_pointer(&mut self.path, name);
        }
        // A name without a hint of its own inherits those of the levels above.
        let own = ContextFlags::of_field(name);
        let hints = if matches!(own, ContextFlags::NONE | ContextFlags::CODE) {
            self.frame().hints
        } else {
            own
        };
        self.enter(hints, hidden);
    }

    fn enter_item(&mut self, index: usize) {
        let hidden = self.hidden();
        if !hidden {
            push_pointer(&mut self.path, &index.to_string());
        }
        self.enter(self.frame().hints, hidden);
    }

    fn leave(&mut self) {
        self.frames.pop();
        let length = self.frame().length;
        self.path.truncate(length);
    }

    fn text(&mut self, text: &str) {
        let kinds = self.scanner.scan(text, self.frame().hints);
        self.refuse(kinds);
    }

    fn integer(&mut self, magnitude: u64) {
        let kinds = scan_integer(self.scanner, magnitude, self.frame().hints);
        self.refuse(kinds);
    }
}

#[cfg(test)]
mod tests;
