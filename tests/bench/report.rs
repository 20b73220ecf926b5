//! What was measured, as tables in Markdown and as a plot in SVG.
//!
//! Invariant: a table is printed when it is there; the files are written at the end of a run that was told where to.

use std::fs;
use std::path::Path;

/// Width of the plot, of the names at its left and of the values at its right, in pixels.
const WIDTH: f64 = 760.0;
const NAMES: f64 = 210.0;
const VALUES: f64 = 90.0;
/// Height of a bar with the space below it, and of a title.
const BAR: f64 = 22.0;
const TITLE: f64 = 40.0;

/// Bars of one unit; less is better.
#[derive(Clone, Debug)]
struct Chart {
    title: String,
    unit: &'static str,
    bars: Vec<(String, f64)>,
}

/// Everything that a run measured.
#[derive(Debug, Default)]
pub(crate) struct Report {
    tables: String,
    charts: Vec<Chart>,
}

impl Report {
    /// Adds a table of two columns and prints it.
    pub(crate) fn table(&mut self, title: &str, rows: &[(String, String)]) {
        let rows = rows.iter().map(|(name, value)| format!("| {name} | {value} |\n"));
        let table = format!("\n| {title} | |\n|-|-|\n{}", rows.collect::<String>());
        print!("{table}");
        self.tables += &table;
    }

    /// Adds bars, of which the first is ours; those that are not numbers are left out.
    pub(crate) fn chart(&mut self, title: &str, unit: &'static str, bars: &[(&str, Option<f64>)]) {
        let bars = bars
            .iter()
            .filter_map(|(name, value)| Some(((*name).to_owned(), (*value)?)));
        self.charts.push(Chart {
            title: title.to_owned(),
            unit,
            bars: bars.collect(),
        });
    }

    /// Writes `bench.md` and `bench.svg` into a folder.
    pub(crate) fn write(&self, folder: &Path) {
        fs::write(folder.join("bench.md"), self.tables.trim_start()).unwrap();
        fs::write(folder.join("bench.svg"), self.plot()).unwrap();
    }

    fn plot(&self) -> String {
        let mut body = Vec::new();
        let mut y = 0.0;
        for Chart { title, unit, bars } in &self.charts {
            let most = bars.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
            let top = y + TITLE - 14.0;
            body.push(format!(
                "<text class=\"t\" x=\"8\" y=\"{top:.0}\">{title}, {unit}</text>\n"
            ));
            y += TITLE;
            for (index, (name, value)) in bars.iter().enumerate() {
                let length = (WIDTH - NAMES - VALUES) * value / most;
                let class = if index == 0 { "ours" } else { "theirs" };
                let text = y + BAR - 8.0;
                let (left, right, height) = (NAMES - 8.0, NAMES + length + 6.0, BAR - 6.0);
                let value = digits(*value);
                body.push(format!(
                    "<text x=\"{left:.0}\" y=\"{text:.0}\" text-anchor=\"end\">{name}</text>\
                     <rect class=\"{class}\" x=\"{NAMES}\" y=\"{y:.0}\" width=\"{length:.1}\" height=\"{height:.0}\"/>\
                     <text x=\"{right:.1}\" y=\"{text:.0}\">{value}</text>\n"
                ));
                y += BAR;
            }
        }
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {:.0}" font-family="system-ui, sans-serif" font-size="13">
<style>text {{ fill: #333 }} .t {{ font-weight: 600 }} .ours {{ fill: #0a7d5a }} .theirs {{ fill: #b8bec6 }}</style>
<rect width="100%" height="100%" fill="white"/>
{}</svg>
"#,
            y + 12.0,
            body.concat()
        )
    }
}

/// Three digits that count.
fn digits(value: f64) -> String {
    match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
