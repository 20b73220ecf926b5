//! Rows that come to a dataset by day.

use std::fmt::Write as _;

use askama::Template;
use askama::filters::HtmlSafe;

use crate::number::{counted, grouped};

/// Width of the drawing in tenths of its unit.
const WIDTH_TENTHS: u64 = 880;
/// Places of the least and of the greatest value in tenths of the unit, from the top.
const LOW_TENTHS: u64 = 200;
const HIGH_TENTHS: u64 = 20;

/// Rows that were added in the last days, with a line for the days.
#[derive(Clone, Debug, Template)]
#[template(path = "dataset/pace.html")]
pub(crate) struct RowsADay {
    /// Rows of each day, oldest day first.
    days: Vec<u64>,
}

impl HtmlSafe for RowsADay {}

impl RowsADay {
    /// Creates the fact from the rows of each day, oldest day first; nothing if none came.
    pub(crate) fn new(days: Vec<u64>) -> Option<Self> {
        days.iter().any(|rows| *rows > 0).then_some(Self { days })
    }

    /// Returns the mean of the days, in words.
    fn mean(&self) -> String {
        let total: u64 = self.days.iter().sum();
        let days = self.days.len().max(1) as u64;
        match total / days {
            // Less than one a day is no number of rows.
            0 => format!("{} in {}", grouped(total), counted(days, "day", "days")),
            mean => grouped(mean),
        }
    }

    fn label(&self) -> String {
        let most = self.days.iter().max().copied().unwrap_or_default();
        let days = counted(self.days.len() as u64, "day", "days");
        format!("Rows a day in {days}: {} on the fullest", grouped(most))
    }

    /// Returns the points of the line.
    fn points(&self) -> String {
        let most = self.days.iter().max().copied().unwrap_or_default().max(1);
        let steps = self.days.len().saturating_sub(1).max(1) as u64;
        let mut points = String::new();
        for (at, rows) in self.days.iter().enumerate() {
            let x = at as u64 * WIDTH_TENTHS / steps;
            // In 128 bits, since a day can have any number of rows.
            let rise = u128::from(*rows) * u128::from(LOW_TENTHS - HIGH_TENTHS) / u128::from(most);
            let y = LOW_TENTHS - u64::try_from(rise).unwrap_or_default();
            write!(points, "{}.{},{}.{} ", x / 10, x % 10, y / 10, y % 10).ok();
        }
        points.truncate(points.trim_end().len());
        points
    }
}

#[cfg(test)]
mod tests {
    use super::RowsADay;

    #[test]
    fn days_are_drawn_from_the_lowest_to_the_highest() {
        let pace = RowsADay::new(vec![0, 50, 100]).unwrap();
        assert_eq!(pace.points(), "0.0,20.0 44.0,11.0 88.0,2.0");
        assert_eq!(pace.mean(), "50");
        assert_eq!(pace.label(), "Rows a day in 3 days: 100 on the fullest");
        assert_eq!(RowsADay::new(vec![1]).unwrap().points(), "0.0,2.0");
        assert!(RowsADay::new(vec![u64::MAX]).unwrap().points().ends_with("2.0"));
    }

    #[test]
    fn less_than_a_row_a_day_is_said_in_rows() {
        assert_eq!(RowsADay::new(vec![0, 1, 0]).unwrap().mean(), "1 in 3 days");
        assert!(RowsADay::new(vec![0, 0]).is_none());
        assert!(RowsADay::new(Vec::new()).is_none());
    }
}
