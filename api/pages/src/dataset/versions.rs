//! Versions of a dataset: all of them, and one with the rows that it added.

use askama::Template;
use serde_json::value::RawValue;
use types::{Timestamp, Version};

use super::DatasetTab;
use super::column::ShownColumn;
use super::growth::{GrowthChart, GrowthPoint};
use super::head::{DatasetHead, DatasetOffer};
use super::rows::ColumnChoice;
use crate::cell::{TableCell, escaped};
use crate::chart::{BarCount, Bars};
use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::number::{counted, grouped};

/// Most bytes of a table of added rows as HTML.
const MAX_ADDED_BYTES: usize = 60 << 10;
/// Bytes of an added row beside its cells.
const ROW_BYTES: usize = 120;
/// Letters of the end of the name of a file that are shown.
const FILE_NAME_END: usize = 8;
/// Bytes of the head of a column beside its name.
const HEAD_BYTES: usize = 70;

/// Records of a batch that a merge left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOutRecords {
    /// Records that were there before, or twice in the batch.
    pub copies: u64,
    /// Records that a check refused.
    pub refused: u64,
}

/// Version of a dataset.
#[derive(Clone, Debug)]
pub struct DatasetVersion {
    /// Number of the version.
    pub version: Version,
    /// Records that it added.
    pub added: u64,
    /// Records of its batch that were left out; none where that is not kept.
    pub left_out: Option<LeftOutRecords>,
    /// Records of the version.
    pub records: u64,
    /// Bytes of its files; none where they cannot be read.
    pub bytes: Option<u64>,
    /// Name of the agent that contributed it.
    pub agent: String,
    /// Content root of the version, 64 hexadecimal digits.
    pub root: String,
    /// Time of the merge.
    pub at: Timestamp,
}

/// Page of the list, as the pager shows it.
struct PageOfVersions {
    /// Number of the page, from 1 for the newest versions; none for pages that are left out.
    number: Option<u64>,
    address: String,
    here: bool,
}

/// Page at `GET /projects/{slug}/versions`: all versions.
#[derive(Debug, Template)]
#[template(path = "dataset/versions.html")]
pub struct DatasetVersionsPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Head of the dataset.
    pub head: DatasetHead,
    /// Versions of the page, newest first.
    pub versions: Vec<DatasetVersion>,
    /// Points of the chart, oldest first.
    pub growth: Vec<GrowthPoint>,
}

impl DatasetVersionsPage {
    /// Most versions on a page.
    pub const VERSIONS: u32 = 20;

    fn growth(&self) -> Option<GrowthChart> {
        GrowthChart::of(&self.growth)
    }

    /// Draws the new rows of the versions of the page, oldest first; nothing below two.
    fn additions(&self) -> Option<Bars> {
        let (newest, oldest) = (self.versions.first()?, self.versions.last()?);
        if self.versions.len() < 2 {
            return None;
        }
        let bars = self.versions.iter().rev().map(|version| BarCount {
            name: format!("v{}", grouped(version.version.0)),
            count: version.added,
        });
        let aside = format!("v{} to v{}", grouped(oldest.version.0), grouped(newest.version.0));
        Some(Bars::of_counts("New rows", aside, &bars.collect::<Vec<_>>()))
    }

    /// Returns the address of the versions below one; of the newest if every version is.
    fn below(&self, before: u64) -> String {
        let slug = &self.head.slug;
        if before > self.head.version.0 {
            format!("/projects/{slug}/versions")
        } else {
            format!("/projects/{slug}/versions?before={before}")
        }
    }

    /// Returns the address of the page with later versions.
    fn later(&self) -> Option<String> {
        let newest = self.versions.first()?.version;
        let before = newest.0.saturating_add(u64::from(Self::VERSIONS) + 1);
        (newest < self.head.version).then(|| self.below(before))
    }

    /// Returns the address of the page with earlier versions.
    fn earlier(&self) -> Option<String> {
        let oldest = self.versions.last()?.version.0;
        (oldest > 1).then(|| self.below(oldest))
    }

    /// Returns the first page, the last one, and those around this one.
    fn pages(&self) -> Vec<PageOfVersions> {
        let (all, size) = (self.head.version.0, u64::from(Self::VERSIONS));
        let newest = self.versions.first().map_or(all, |version| version.version.0);
        let last = all.div_ceil(size);
        if last < 2 {
            return Vec::new();
        }
        let here = (all.saturating_sub(newest) / size + 1).min(last);
        let mut numbers = vec![1, here.saturating_sub(1), here, here + 1, last];
        // They are in order already.
        numbers.retain(|number| (1..=last).contains(number));
        numbers.dedup();
        let mut pages: Vec<PageOfVersions> = Vec::with_capacity(numbers.len() + 2);
        let mut before = 0;
        for number in numbers {
            if number > before + 1 {
                pages.push(PageOfVersions {
                    number: None,
                    address: String::new(),
                    here: false,
                });
            }
            pages.push(PageOfVersions {
                number: Some(number),
                address: self.below((all + 1).saturating_sub((number - 1) * size)),
                here: number == here,
            });
            before = number;
        }
        pages
    }

    fn label(&self) -> String {
        match (self.versions.first(), self.versions.last()) {
            (Some(newest), Some(oldest)) if newest.version != oldest.version => format!(
                "v{} to v{} of {}",
                grouped(newest.version.0),
                grouped(oldest.version.0),
                grouped(self.head.version.0)
            ),
            (Some(only), _) => format!("v{} of {}", grouped(only.version.0), grouped(self.head.version.0)),
            _ => String::new(),
        }
    }
}

/// File of a version.
#[derive(Clone, Debug)]
pub struct VersionFile {
    /// Name of the file.
    pub name: String,
    /// Rows of the file.
    pub rows: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Version of its first row.
    pub since: Version,
    /// SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
}

impl VersionFile {
    /// Returns the number of the version in the name and the end of the name; a name of another form as it is.
    fn short_name(&self) -> String {
        let parts = self.name.strip_prefix("part-").zip(self.name.rsplit_once('.'));
        let Some((numbered, (stem, kind))) = parts else {
            return self.name.clone();
        };
        let digits: String = numbered.chars().take_while(char::is_ascii_digit).collect();
        let number = digits.trim_start_matches('0');
        let rest = stem
            .strip_prefix("part-")
            .and_then(|stem| stem.strip_prefix(digits.as_str()));
        let rest: Vec<char> = rest.unwrap_or_default().chars().collect();
        if number.is_empty() || rest.len() <= FILE_NAME_END {
            return self.name.clone();
        }
        let end: String = rest.iter().skip(rest.len() - FILE_NAME_END).collect();
        format!("part-{number}…{end}.{kind}")
    }
}

/// Record that was added after a version.
#[derive(Clone, Debug)]
pub struct AddedRow {
    /// Number of the record in the later version, from 1.
    pub place: u64,
    /// Version that added it.
    pub version: Version,
    /// Agent that contributed it.
    pub agent: String,
    /// Value for each of the columns, as JSON.
    pub values: Vec<Option<Box<RawValue>>>,
}

/// Row with its cells as texts.
#[derive(Clone, Debug)]
struct AddedTextRow {
    place: u64,
    version: Version,
    agent: String,
    cells: Vec<TableCell>,
}

/// Rows that a version has and an earlier one has not, newest first.
#[derive(Clone, Debug)]
pub struct AddedRows {
    columns: Vec<ShownColumn>,
    choices: Vec<ColumnChoice>,
    has_ranges: bool,
    rows: Vec<AddedTextRow>,
    offset: u64,
}

impl AddedRows {
    /// Takes as many of the rows as fit on a page, at least one. `choices` are the columns to choose from, by ranges if
    /// `has_ranges`, and `offset` is the number of newer rows.
    pub fn new(
        columns: Vec<ShownColumn>,
        (choices, has_ranges): (Vec<ColumnChoice>, bool),
        rows: Vec<AddedRow>,
        offset: u64,
    ) -> Self {
        let heads = columns.iter().map(|column| HEAD_BYTES + escaped(&column.field.name));
        let chosen = choices.iter().map(ColumnChoice::weight);
        let mut left = MAX_ADDED_BYTES.saturating_sub(heads.chain(chosen).sum());
        let mut shown: Vec<AddedTextRow> = Vec::with_capacity(rows.len());
        for row in rows {
            let cells = columns.iter().enumerate().map(|(at, column)| {
                let value = row.values.get(at).and_then(Option::as_deref);
                TableCell::of_record(column.field.kind, value)
            });
            let cells: Vec<_> = cells.collect();
            let weight = ROW_BYTES + escaped(&row.agent) + cells.iter().map(TableCell::weight).sum::<usize>();
            if weight > left && !shown.is_empty() {
                break;
            }
            left = left.saturating_sub(weight);
            shown.push(AddedTextRow {
                place: row.place,
                version: row.version,
                agent: row.agent,
                cells,
            });
        }
        Self {
            columns,
            choices,
            has_ranges,
            rows: shown,
            offset,
        }
    }

    /// Returns the offset behind the last of these rows.
    const fn end(&self) -> u64 {
        self.offset.saturating_add(self.rows.len() as u64)
    }

    /// Returns the cells of a row, each with the class of its column.
    fn cells<'a>(&'a self, row: &'a AddedTextRow) -> impl Iterator<Item = (&'a TableCell, &'static str)> {
        self.columns
            .iter()
            .zip(&row.cells)
            .map(|(column, cell)| (cell, column.class()))
    }
}

/// Bar of the records of a batch that were added, were there before, or were refused.
struct OutcomeBar {
    words: &'static str,
    count: u64,
    class: &'static str,
    /// Width in a drawing of 100, with two decimals.
    width: String,
    y: usize,
}

/// Page at `GET /projects/{slug}/versions/{n}`: one version.
#[derive(Debug, Template)]
#[template(path = "dataset/version.html")]
pub struct DatasetVersionPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Head of the dataset.
    pub head: DatasetHead,
    /// The version.
    pub version: DatasetVersion,
    /// Content root of the version before.
    pub root_before: Option<String>,
    /// Versions next to it and the version itself, oldest first.
    pub near: Vec<DatasetVersion>,
    /// Number of its files; none where they cannot be read.
    pub file_count: Option<u64>,
    /// Its files, for who may read it.
    pub files: Vec<VersionFile>,
    /// Source of the records as it was declared, for the account that sent them and that of the dataset.
    pub source: Option<String>,
    /// Id of the key that manifests are signed with.
    pub key: String,
    /// Chosen columns as a member of an address, such as `&cols=a`; empty for the usual ones.
    pub chosen: String,
    /// Version after which the rows begin.
    pub from: Version,
    /// Number of rows after that version.
    pub added: u64,
    /// Those of them that the page has; none where the reader may not read them.
    pub rows: Option<AddedRows>,
    /// Why rows that the reader may read are not shown.
    pub failure: Option<String>,
    /// True if the reader may read them and was led here by another site, so that they are not read yet.
    pub is_offered: bool,
    /// True if the reader asked for all rows, page by page, and not for the first ones alone.
    pub has_all: bool,
}

impl DatasetVersionPage {
    /// Returns the version of all rows that came, if it is one. A page has some of them only.
    fn only_version(&self, rows: &AddedRows) -> Option<Version> {
        let version = self.version.version;
        let is_next = self.from.0.saturating_add(1) == version.0;
        (is_next && rows.rows.iter().all(|row| row.version == version)).then_some(version)
    }

    /// Returns the agent of all rows that came, if it is one.
    fn only_agent<'a>(&self, rows: &'a AddedRows) -> Option<&'a str> {
        self.only_version(rows)?;
        let first = rows.rows.first()?.agent.as_str();
        rows.rows.iter().all(|row| row.agent == first).then_some(first)
    }

    /// Most rows on a page of all of them.
    pub const ROWS: u32 = 50;
    /// Rows that are shown until all are asked for.
    pub const FIRST_ROWS: u32 = 8;

    /// Returns the number of the version before and of the one after.
    fn before(&self) -> Option<Version> {
        (self.version.version.0 > 1).then(|| Version(self.version.version.0 - 1))
    }

    fn after(&self) -> Option<Version> {
        (self.version.version < self.head.version).then(|| Version(self.version.version.0 + 1))
    }

    /// Returns the content root of the version before, with its number.
    fn root_before(&self) -> Option<(Version, &str)> {
        self.before().zip(self.root_before.as_deref())
    }

    fn is_readable(&self) -> bool {
        self.head.readable >= Some(self.version.version)
    }

    /// Returns the newest version that the reader may read, if it is a later one.
    fn newer(&self) -> Option<Version> {
        self.head.readable.filter(|readable| *readable > self.version.version)
    }

    fn verify(&self) -> String {
        let (slug, version) = (&self.head.slug, self.version.version);
        format!("sluice pull {slug} --version {version} && sluice verify {slug}")
    }

    /// Returns the call for the signed manifest.
    fn manifest(&self) -> String {
        let (base, slug, version) = (&self.chrome.base, &self.head.slug, self.version.version);
        format!(
            "curl -s \"{base}/projects/{slug}/manifest?version={version}\" -H \"Authorization: Bearer $SLUICE_KEY\""
        )
    }

    /// Returns the number of records of the batch that became the version.
    fn sent(&self) -> u64 {
        let left_out = self.version.left_out;
        let left_out = left_out.map_or(0, |left| left.copies.saturating_add(left.refused));
        self.version.added.saturating_add(left_out)
    }

    /// Returns what became of the records of the batch, if that is kept.
    fn outcome(&self) -> Option<Vec<OutcomeBar>> {
        let left = self.version.left_out?;
        let sent = self.sent().max(1);
        let bars = [
            ("added", self.version.added, "b1"),
            ("copies, left out", left.copies, "b3"),
            ("refused, left out", left.refused, "b4"),
        ];
        let bar = |(at, (words, count, class)): (usize, (&'static str, u64, &'static str))| {
            let hundredths = u128::from(count) * 10_000 / u128::from(sent);
            OutcomeBar {
                words,
                count,
                class,
                width: format!("{}.{:02}", hundredths / 100, hundredths % 100),
                // A row of words is 24 units high.
                y: at * 24 + 5,
            }
        };
        Some(bars.into_iter().enumerate().map(bar).collect())
    }

    /// Returns the drawing in words.
    fn outcome_words(&self, bars: &[OutcomeBar]) -> String {
        let parts: Vec<_> = bars
            .iter()
            .map(|bar| format!("{} {}", grouped(bar.count), bar.words))
            .collect();
        format!("Of {}: {}", counted(self.sent(), "row", "rows"), parts.join("; "))
    }

    /// Returns the number of files that are not listed.
    fn other_files(&self) -> u64 {
        self.file_count.unwrap_or(0).saturating_sub(self.files.len() as u64)
    }

    /// Returns versions to compare with, each once.
    fn bases(&self) -> Vec<Version> {
        let number = self.version.version.0;
        let mut bases = vec![self.from.0, number.saturating_sub(1), number.saturating_sub(10), 1, 0];
        bases.retain(|base| *base < number);
        bases.sort_unstable_by(|left, right| right.cmp(left));
        bases.dedup();
        bases.into_iter().map(Version).collect()
    }

    /// Returns the words for the rows of the page.
    fn count(&self, rows: &AddedRows) -> String {
        if rows.rows.is_empty() {
            return "No rows".to_owned();
        }
        format!(
            "{} to {} of {}",
            grouped(rows.offset + 1),
            grouped(rows.end()),
            counted(self.added, "new row", "new rows")
        )
    }

    /// Returns the address of other rows of the comparison; of the first ones alone without an offset.
    fn at(&self, offset: Option<u64>) -> String {
        let (slug, version, from) = (&self.head.slug, self.version.version, self.from);
        let offset = offset.map_or_else(String::new, |offset| format!("&offset={offset}"));
        format!("/projects/{slug}/versions/{version}?from={from}{offset}{}", self.chosen)
    }

    /// Returns the address of the rows that another site led to.
    fn offered(&self) -> String {
        self.at(self.has_all.then_some(0))
    }

    /// Returns the address of all rows, unless the page has them or leads to the next ones.
    fn all(&self, rows: &AddedRows) -> Option<String> {
        (!self.has_all && rows.end() < self.added).then(|| self.at(Some(0)))
    }

    fn previous(&self, rows: &AddedRows) -> Option<String> {
        (rows.offset > 0).then(|| self.at(Some(rows.offset.saturating_sub(u64::from(Self::ROWS)))))
    }

    fn next(&self, rows: &AddedRows) -> Option<String> {
        let has_next = self.has_all && !rows.rows.is_empty() && rows.end() < self.added;
        has_next.then(|| self.at(Some(rows.end())))
    }
}
