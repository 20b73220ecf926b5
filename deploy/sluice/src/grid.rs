//! Rows below each other, for people.

/// Returns the heads, a rule and the rows as lines, with the columns of numbers to the right. Width is counted in
/// characters: wide scripts may misalign columns, which harms nothing.
pub(crate) fn lines(heads: &[String], rows: &[Vec<String>], is_number: impl Fn(usize) -> bool) -> Vec<String> {
    let width = |line: &[String], column: usize| line.get(column).map_or(0, |cell| cell.chars().count());
    let widths: Vec<usize> = (0..heads.len())
        .map(|column| {
            let widest = rows.iter().map(|row| width(row, column)).max().unwrap_or(0);
            widest.max(width(heads, column))
        })
        .collect();
    let aligned = |line: &[String], is_head: bool| {
        let mut text = String::new();
        for (column, &wide) in widths.iter().enumerate() {
            let cell = line.get(column).map_or("", String::as_str);
            let gap = " ".repeat(wide.saturating_sub(width(line, column)));
            let separator = if column == 0 { "" } else { "  " };
            let is_right = !is_head && is_number(column);
            let (left, right) = if is_right {
                (gap.as_str(), "")
            } else {
                ("", gap.as_str())
            };
            text.extend([separator, left, cell, right]);
        }
        // Padding of the last column is removed.
        text.truncate(text.trim_end_matches(' ').len());
        text
    };
    let rules: Vec<String> = widths.iter().map(|&wide| "-".repeat(wide)).collect();
    let rows = rows.iter().map(|row| aligned(row, false));
    [aligned(heads, true), rules.join("  ")]
        .into_iter()
        .chain(rows)
        .collect()
}
