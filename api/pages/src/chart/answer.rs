//! Chart of the answer to a query: one series of numbers along texts or times.
//!
//! Invariants: what is no finite number is a gap and never a zero. A chart that is not drawn says why.

use askama::Template;

use super::HtmlSafe;
use super::scale::Scale;
use crate::cell::{self, TableCell, cut};
use crate::number::counted;
use crate::sql::{AnswerColumn, AnswerColumnKind};
use crate::words::isolate;

/// The most rows of a chart.
pub(crate) const MAX_CHART_ROWS: usize = 200;
/// The most bars that stand below each other, each with its words. Of more texts there are the first; more times stand
/// side by side.
const MAX_NAMED_BARS: usize = 30;
/// The fewest numbers of a chart.
const MIN_CHART_NUMBERS: usize = 2;
/// Longest word beside a chart, in characters.
const MAX_LABEL_CHARS: usize = 40;
/// Height of a row of a bar, in units of its drawing.
const BAR_ROW_HEIGHT: usize = 24;

/// Form of a chart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChartForm {
    /// A line over times, bars over texts.
    #[default]
    Fitting,
    /// No chart.
    Unwanted,
    /// Bars.
    Bars,
    /// A line.
    Line,
}

impl ChartForm {
    /// Forms in the order of their buttons.
    pub(crate) const CHOICES: &[Self] = &[Self::Fitting, Self::Unwanted, Self::Bars, Self::Line];

    /// Returns the value of the form field.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fitting => "auto",
            Self::Unwanted => "none",
            Self::Bars => "bars",
            Self::Line => "line",
        }
    }

    /// Returns the form of a word, [`Self::Fitting`] for any other word.
    pub fn of(word: &str) -> Self {
        // The word comes from an address, which anybody can write.
        let named = Self::CHOICES.iter().find(|form| form.word() == word);
        named.copied().unwrap_or_default()
    }

    /// Returns the words of the button.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Fitting => "Auto",
            Self::Unwanted => "Table",
            Self::Bars => "Bars",
            Self::Line => "Line",
        }
    }
}

/// Chart of an answer, or the reason why there is none.
pub(crate) enum AnswerChart {
    /// The chart.
    Drawn(Box<DrawnAnswer>),
    /// The sentence that says why there is none.
    Absent(String),
    /// Nobody wants one.
    Unwanted,
}

/// Point of a series.
struct ChartPoint {
    /// Text or time that the number belongs to.
    label: String,
    /// Instant of a time, in microseconds since 1970.
    at: Option<i64>,
    /// The number; `None` for a gap.
    value: Option<f64>,
    /// The number as it is written in the answer.
    written: String,
}

/// Bar with the words beside it.
struct NamedBar {
    label: String,
    written: String,
    /// Place and size of the bar in its drawing; `None` for a gap.
    drawn: Option<BarSides>,
    y: usize,
}

/// Place of a bar along the axis of numbers, in hundredths of the drawing.
struct BarSides {
    from: String,
    size: String,
}

/// Column of bars that stand side by side.
struct SideBar {
    title: String,
    x: String,
    y: String,
    height: String,
}

/// Drawing of a series.
enum ChartShape {
    /// Bars below each other, and where zero is.
    Named { bars: Vec<NamedBar>, zero: String },
    /// Bars side by side.
    Side {
        bars: Vec<SideBar>,
        width: String,
        zero: String,
    },
    /// Path of a line, and the place of zero if it is within the drawing.
    Line(String),
}

/// Chart of an answer.
#[derive(Template)]
#[template(path = "part/answer-chart.html")]
pub(crate) struct DrawnAnswer {
    /// Name of the column of numbers.
    measure: String,
    /// Name of the column along which they stand.
    along: String,
    /// Sentence that says what the chart shows.
    label: String,
    /// Remarks about what the chart leaves out, and the time zone.
    notes: Vec<String>,
    shape: ChartShape,
    /// Marks of the axis of numbers, from above.
    marks: Vec<String>,
    /// Places of the lines at the marks.
    lines: Vec<String>,
    /// Words below the drawing.
    ticks: Vec<String>,
}

impl HtmlSafe for DrawnAnswer {}

impl DrawnAnswer {
    /// Returns the height of the drawing of bars that stand below each other.
    fn height(&self) -> usize {
        match &self.shape {
            ChartShape::Named { bars, .. } => bars.len() * BAR_ROW_HEIGHT,
            ChartShape::Side { .. } | ChartShape::Line(_) => 100,
        }
    }
}

/// Returns the indexes of the first column of numbers and of the first of texts or times, of columns of these kinds.
pub(crate) fn chart_columns(kinds: impl Iterator<Item = AnswerColumnKind> + Clone) -> [Option<usize>; 2] {
    let (mut numbers, mut others) = (kinds.clone(), kinds);
    [
        numbers.position(|kind| kind == AnswerColumnKind::Number),
        others.position(|kind| matches!(kind, AnswerColumnKind::Text | AnswerColumnKind::Time)),
    ]
}

impl AnswerChart {
    /// Draws the first column of numbers over the first of texts or times. An answer that takes no chart has this number of
    /// rows, and true if there are more.
    pub(crate) fn of(
        columns: &[AnswerColumn],
        rows: &[Vec<TableCell>],
        (count, is_cut): (usize, bool),
        form: ChartForm,
    ) -> Self {
        if form == ChartForm::Unwanted {
            return Self::Unwanted;
        }
        let [measure, along] = chart_columns(columns.iter().map(|column| column.kind));
        let Some(measure) = measure else {
            return Self::Absent("No chart: the answer has no column of numbers.".to_owned());
        };
        let Some(along) = along else {
            return Self::Absent("No chart: the answer has no column of texts or times beside the numbers.".to_owned());
        };
        if count > MAX_CHART_ROWS {
            let least = if is_cut { "more than " } else { "" };
            let rows = counted(count as u64, "row", "rows");
            return Self::Absent(format!(
                "No chart: the answer has {least}{rows}, and a chart takes {MAX_CHART_ROWS}. Group them, or add LIMIT \
                 {MAX_CHART_ROWS}."
            ));
        }
        let is_time = columns[along].kind == AnswerColumnKind::Time;
        let is_line = match form {
            ChartForm::Line => true,
            ChartForm::Bars => false,
            ChartForm::Fitting | ChartForm::Unwanted => is_time,
        };
        let mut points: Vec<_> = rows.iter().map(|row| point(row, along, measure, is_time)).collect();
        let mut notes = Vec::new();
        if is_line && is_time {
            let all = points.len();
            points.retain(|point| point.at.is_some());
            points.sort_by_key(|point| point.at);
            let lost = all - points.len();
            if lost > 0 {
                notes.push(format!(
                    "{} without a time left out",
                    counted(lost as u64, "row", "rows")
                ));
            }
        }
        let mut of_what = "the answer has";
        if !is_line && !is_time && points.len() > MAX_NAMED_BARS {
            of_what = "the beginning of the answer has";
            let rows = counted(points.len() as u64, "row", "rows");
            notes.push(format!("the first {MAX_NAMED_BARS} of {rows}"));
            points.truncate(MAX_NAMED_BARS);
        }
        let found = points.iter().filter(|point| point.value.is_some()).count();
        if found < MIN_CHART_NUMBERS {
            let found = counted(found as u64, "row", "rows");
            return Self::Absent(format!(
                "No chart: it takes at least {MIN_CHART_NUMBERS} rows with a number, and {of_what} {found}."
            ));
        }
        let gaps = points.len() - found;
        if gaps > 0 {
            notes.push(format!("{} no number", counted(gaps as u64, "gap has", "gaps have")));
        }
        let in_utc = |row: &Vec<TableCell>| row.get(along).is_some_and(|cell| cell.written().ends_with('Z'));
        if is_time && rows.iter().any(in_utc) {
            notes.push("UTC".to_owned());
        }
        let (measure, along) = (&columns[measure].name, &columns[along].name);
        Self::Drawn(Box::new(DrawnAnswer::new(
            &points, measure, along, notes, is_line, is_time,
        )))
    }
}

/// Returns the point of a row. A row that lacks a cell has no number.
fn point(row: &[TableCell], along: usize, measure: usize, is_time: bool) -> ChartPoint {
    let cell_at = |place: usize| row.get(place).unwrap_or(&TableCell::Null);
    let value = match cell_at(measure) {
        TableCell::Null => None,
        // Decimals and sums beyond 64 bits are texts. So are infinities, which parse and are no finite numbers.
        TableCell::Text(text) | TableCell::Literal(text) => text.parse().ok().filter(|value: &f64| value.is_finite()),
    };
    let label = match cell_at(along) {
        TableCell::Text(text) if text.is_empty() => "\"\"".to_owned(),
        TableCell::Text(text) if is_time => cell::instant(text),
        other => other.written().to_owned(),
    };
    ChartPoint {
        label: cut(&label, MAX_LABEL_CHARS),
        at: is_time.then(|| instant(cell_at(along).written())).flatten(),
        value,
        written: cut(cell_at(measure).written(), MAX_LABEL_CHARS),
    }
}

/// Returns the instant of a time of an answer: with a zone, without one, or a day.
fn instant(text: &str) -> Option<i64> {
    use jiff::civil::{Date, DateTime};
    use jiff::tz::TimeZone;
    if let Ok(instant) = text.parse::<jiff::Timestamp>() {
        return Some(instant.as_microsecond());
    }
    let local = text
        .parse::<DateTime>()
        .or_else(|_no_time| text.parse::<Date>().map(DateTime::from));
    // Local times stand as far from each other as if they were UTC.
    let zoned = local.ok()?.to_zoned(TimeZone::UTC).ok()?;
    Some(zoned.timestamp().as_microsecond())
}

/// Returns a place in a drawing.
fn drawn(place: f64) -> String {
    format!("{:.2}", place * 100.0)
}

impl DrawnAnswer {
    fn new(
        points: &[ChartPoint],
        measure: &str,
        along: &str,
        notes: Vec<String>,
        is_line: bool,
        is_time: bool,
    ) -> Self {
        let values = || points.iter().filter_map(|point| point.value);
        let is_named = !is_line && points.len() <= MAX_NAMED_BARS;
        // Bars with their numbers beside them need no marks, so the longest takes the whole width.
        let scale = if is_named {
            Scale::within(values())
        } else {
            Scale::of(values())
        };
        let label = sentence(points, measure, along);
        let shape = if is_line {
            ChartShape::Line(path(points, &scale, is_time))
        } else if is_named {
            named(points, &scale)
        } else {
            side(points, &scale)
        };
        let ticks = match &shape {
            ChartShape::Named { .. } => Vec::new(),
            ChartShape::Line(_) if is_time => times(points),
            ChartShape::Line(_) | ChartShape::Side { .. } => {
                let ends = [points.first(), points.last()];
                ends.into_iter().flatten().map(|point| point.label.clone()).collect()
            }
        };
        Self {
            measure: cut(measure, MAX_LABEL_CHARS),
            along: cut(along, MAX_LABEL_CHARS),
            label,
            notes,
            shape,
            marks: scale.marks.iter().map(|mark| mark.text.clone()).collect(),
            lines: scale.marks.iter().map(|mark| drawn(1.0 - mark.place)).collect(),
            ticks,
        }
    }
}

/// Returns what a chart shows in a sentence, with its highest and its lowest number.
fn sentence(points: &[ChartPoint], measure: &str, along: &str) -> String {
    let found = || points.iter().filter_map(|point| Some((point, point.value?)));
    let compare = |(_, left): &(&ChartPoint, f64), (_, right): &(&ChartPoint, f64)| left.total_cmp(right);
    let name = |text: &str| isolate(&cut(text, MAX_LABEL_CHARS));
    let end = |word: &str, end: Option<(&ChartPoint, f64)>| {
        end.map_or_else(String::new, |(point, _)| {
            format!("; {word} {} at {}", point.written, isolate(&point.label))
        })
    };
    format!(
        "{} by {}: {}{}{}",
        name(measure),
        name(along),
        counted(found().count() as u64, "number", "numbers"),
        end("highest", found().max_by(compare)),
        end("lowest", found().min_by(compare)),
    )
}

/// Returns the path of a line with its gaps.
fn path(points: &[ChartPoint], scale: &Scale, is_time: bool) -> String {
    let ends = points.first().zip(points.last());
    let ends = ends.and_then(|(first, last)| Some((first.at?, last.at?)));
    let last = points.len().saturating_sub(1).max(1);
    let across = |place: usize, point: &ChartPoint| match (is_time, ends, point.at) {
        (true, Some((begin, end)), Some(at)) => share(begin, at, end),
        _ => number(place) / number(last),
    };
    let (mut path, mut is_open, mut is_alone) = (String::new(), false, false);
    for (place, point) in points.iter().enumerate() {
        let Some(value) = point.value else {
            if is_alone {
                // A line without length is a dot, by its round ends.
                path.push_str("h0");
            }
            (is_open, is_alone) = (false, false);
            continue;
        };
        let step = if is_open { "L" } else { "M" };
        let (x, y) = (drawn(across(place, point)), drawn(1.0 - scale.place(value)));
        path.extend([step, &x, " ", &y]);
        (is_alone, is_open) = (!is_open, true);
    }
    if is_alone {
        path.push_str("h0");
    }
    path
}

/// Returns the place of an instant between two others, from 0 to 1.
fn share(begin: i64, at: i64, end: i64) -> f64 {
    let span = end.saturating_sub(begin);
    if span <= 0 {
        return 0.5;
    }
    micros(at.saturating_sub(begin)) / micros(span)
}

#[expect(clippy::cast_precision_loss, reason = "a place in a drawing has three digits")]
const fn micros(span: i64) -> f64 {
    span as f64
}

#[expect(clippy::cast_precision_loss, reason = "a chart has at most 200 points")]
const fn number(count: usize) -> f64 {
    count as f64
}

fn named(points: &[ChartPoint], scale: &Scale) -> ChartShape {
    let bar = |(place, point): (usize, &ChartPoint)| NamedBar {
        label: point.label.clone(),
        written: point.written.clone(),
        drawn: point.value.map(|value| sides(value, scale)),
        y: place * BAR_ROW_HEIGHT + 5,
    };
    ChartShape::Named {
        bars: points.iter().enumerate().map(bar).collect(),
        zero: drawn(scale.place(0.0)),
    }
}

/// Returns where the bar of a number begins, and how long it is. It goes to zero.
fn sides(value: f64, scale: &Scale) -> BarSides {
    let (zero, end) = (scale.place(0.0), scale.place(value));
    BarSides {
        from: drawn(zero.min(end)),
        size: drawn((zero - end).abs()),
    }
}

fn side(points: &[ChartPoint], scale: &Scale) -> ChartShape {
    let pitch = 1.0 / number(points.len().max(1));
    let bar = |(place, point): (usize, &ChartPoint)| {
        let value = point.value?;
        let (zero, end) = (scale.place(0.0), scale.place(value));
        Some(SideBar {
            title: format!("{}: {}", isolate(&point.label), point.written),
            // The rest is the gap between two bars.
            x: drawn((number(place) + 0.14) * pitch),
            y: drawn(1.0 - zero.max(end)),
            height: drawn((zero - end).abs()),
        })
    };
    ChartShape::Side {
        bars: points.iter().enumerate().filter_map(bar).collect(),
        width: drawn(pitch * 0.72),
        zero: drawn(1.0 - scale.place(0.0)),
    }
}

/// Words below a line over times: its begin, its end, and two instants between.
fn times(points: &[ChartPoint]) -> Vec<String> {
    const DAY: i64 = 86_400_000_000;
    let instants = || points.iter().filter_map(|point| point.at);
    let (Some(begin), Some(end)) = (instants().next(), instants().next_back()) else {
        return Vec::new();
    };
    let span = end.saturating_sub(begin);
    let pattern = match span {
        _ if span >= 400 * DAY => "%b %Y",
        _ if span >= 4 * DAY => "%-d %b %Y",
        _ if span >= DAY / 1_440 * 4 => "%-d %b, %H:%M",
        _ => "%H:%M:%S%.f",
    };
    let at = |third: i64| begin.saturating_add(span / 3 * third);
    let instants = [begin, at(1), at(2), end];
    let mut words: Vec<_> = instants
        .into_iter()
        .map(|at| crate::Instant(at).text(pattern))
        .collect();
    words.dedup();
    words
}
