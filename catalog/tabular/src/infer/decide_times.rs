//! The form of the dates and times of a column.
//!
//! Invariant: a date whose day and month could be either way is a text or a question, and a time without a zone has a
//! note.

use types::FieldType;

use super::answer::{Note, Question, shown};
use super::decide::{DecidedColumn, OpenColumn, Remarks};
use super::options::names_column;
use super::times::TimeFacts;

impl OpenColumn<'_> {
    pub(super) fn time_kind(&self) -> FieldType {
        if self.profile.time.times > 0 {
            FieldType::Timestamp
        } else {
            FieldType::Date
        }
    }

    pub(super) fn decide_times(&self, remarks: &mut Remarks) -> DecidedColumn {
        let time = &self.profile.time;
        match pattern_of(time) {
            Ok(parse) => {
                let mut decided = DecidedColumn::of(self.time_kind());
                decided.parse = parse;
                if time.times > 0 {
                    self.take_zone(&mut decided, remarks);
                    self.take_fine(&mut decided, remarks);
                }
                decided
            }
            Err([first, second]) => {
                let message = format!(
                    "`{}` is kept as text: the day or the month may come first in its dates",
                    shown(self.name)
                );
                let kind = self.time_kind().name();
                let note = Note::new("day_or_month", message)
                    .column(self.name)
                    .remedy("--types", &[self.name], &format!("={kind}:{first}"))
                    .remedy("--types", &[self.name], &format!("={kind}:{second}"));
                remarks.note(note);
                DecidedColumn::of(FieldType::String)
            }
        }
    }

    pub(super) fn ask_day_or_month(&self, [first, second]: &[String; 2], kind: FieldType, remarks: &mut Remarks) {
        let message = format!(
            "the day or the month may come first in the dates of `{}`",
            shown(self.name)
        );
        let kind = kind.name();
        let question = Question::new("day_or_month", message)
            .column(self.name)
            .remedy("--types", &[self.name], &format!("={kind}:{first}"))
            .remedy("--types", &[self.name], &format!("={kind}:{second}"));
        remarks.ask(question);
    }

    pub(super) fn take_zone(&self, decided: &mut DecidedColumn, remarks: &mut Remarks) {
        let time = &self.profile.time;
        let has_offsets = time.offsets > 0 || decided.parse.as_deref().is_some_and(is_instant);
        if has_offsets || time.dates + time.times == 0 && decided.parse.is_none() {
            return;
        }
        let given = self.options.reading_of(self.name);
        decided.zone = self
            .options
            .zone
            .clone()
            .or_else(|| given.and_then(|column| column.zone.clone()));
        if decided.zone.is_none() {
            let message = format!("times in `{}` have no zone and are taken as UTC", shown(self.name));
            remarks.note(
                Note::new("zone", message)
                    .column(self.name)
                    .remedy("--zone", &[], "Europe/Oslo"),
            );
        }
    }

    pub(super) fn take_fine(&self, decided: &mut DecidedColumn, remarks: &mut Remarks) {
        decided.round = names_column(&self.options.rounded, self.name, Some(self.field))
            || self.options.reading_of(self.name).is_some_and(|column| column.round);
        let fine = &self.profile.time.fine;
        if fine.is_none() || decided.round {
            return;
        }
        let message = format!(
            "times in `{}` are finer than a microsecond, as `{}` on line {}",
            shown(self.name),
            fine.value,
            fine.line
        );
        let question = Question::new("finer_than_microseconds", message)
            .column(self.name)
            .line(fine.line)
            .remedy("--round", &[self.name], "")
            .remedy("--types", &[self.name], "=string");
        remarks.ask(question);
    }
}

/// Returns the pattern of dates or times, none if they are written as a contract takes them, or the two patterns that
/// differ in the order of day and month.
pub(super) fn pattern_of(time: &TimeFacts) -> Result<Option<String>, [String; 2]> {
    if time.is_usual {
        return Ok(None);
    }
    let mut patterns = time.forms.patterns().map(|date| match time.clock {
        Some(clock) => clock.pattern_after(date),
        None => date.to_owned(),
    });
    match (patterns.next(), patterns.next()) {
        (Some(first), Some(second)) => Err([first, second]),
        (first, _) => Ok(first),
    }
}

/// Returns true if a form of times gives instants, whatever the zone.
fn is_instant(parse: &str) -> bool {
    parse.starts_with("unix-") || parse == "rfc2822" || parse.contains("%z")
}

/// Returns the type of the values that a form gives.
pub(super) fn kind_of_form(parse: &str) -> FieldType {
    let has_time = ["%H", "%I", "%T", "%R"].iter().any(|hour| parse.contains(hour));
    if has_time || is_instant(parse) {
        FieldType::Timestamp
    } else {
        FieldType::Date
    }
}
