//! Beginning of a text that is closed, and an outline of the rest.
//!
//! Invariants:
//! - The beginning ends where a block of the document ends. Where not even the first one fits, it is the first words of
//!   that, without markup.
//! - Of the rest nothing is said but its headings, and how much there is of what.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::document::shallow;
use crate::number::counted;

/// The most sections of an outline.
const MOST_SECTIONS: usize = 24;
/// The most parts that a section names.
const MOST_PARTS: usize = 4;
/// The most characters of a heading in an outline.
const MOST_OF_HEADING: usize = 90;
/// The most characters of the name of a language.
const MOST_OF_LANGUAGE: usize = 20;

/// Beginning of a document that anybody reads, and what the rest consists of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenBeginning {
    /// Markdown of whole blocks.
    pub(crate) markdown: String,
    /// First words of a block that does not fit, where no block with a text does.
    pub(crate) words: Option<String>,
    /// Sections of the rest.
    pub(crate) sections: Vec<OutlineSection>,
    /// Sections that the outline leaves out.
    pub(crate) more: u64,
}

/// Section of a text that is not shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutlineSection {
    /// Heading; absent for the rest of a section whose heading is shown, and before the first heading.
    pub(crate) heading: Option<String>,
    /// Number of paragraphs in the section.
    pub(crate) paragraphs: u64,
    /// Tables, blocks of code and lists.
    pub(crate) parts: Vec<OutlinePart>,
}

/// Part of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OutlinePart {
    /// Table with this number of rows below its head.
    Table(u64),
    /// Block of code.
    Code {
        /// Language, as the author names it.
        language: Option<String>,
        /// Number of lines.
        lines: u64,
    },
    /// Numbered list with this number of items.
    Steps(u64),
    /// List with this number of items.
    Points(u64),
}

impl OutlinePart {
    /// Returns the word for the part.
    pub(crate) const fn word(&self) -> &'static str {
        match self {
            Self::Table(_) => "table",
            Self::Code { .. } => "code",
            Self::Steps(_) => "steps",
            Self::Points(_) => "list",
        }
    }

    /// Returns its size in words, such as `4 rows`.
    pub(crate) fn size(&self) -> String {
        match self {
            Self::Table(rows) => counted(*rows, "row", "rows"),
            Self::Code { lines, .. } => counted(*lines, "line", "lines"),
            Self::Steps(items) => counted(*items, "step", "steps"),
            Self::Points(items) => counted(*items, "point", "points"),
        }
    }

    /// Returns the language of a block of code.
    pub(crate) fn language(&self) -> Option<&str> {
        match self {
            Self::Code { language, .. } => language.as_deref(),
            _ => None,
        }
    }

    /// Returns true for what a reader looks for: figures and code.
    pub(crate) const fn is_strong(&self) -> bool {
        matches!(self, Self::Table(_) | Self::Code { .. })
    }
}

impl OutlineSection {
    /// Returns the number of paragraphs in words.
    pub(crate) fn paragraphs_in_words(&self) -> String {
        counted(self.paragraphs, "paragraph", "paragraphs")
    }

    fn add(&mut self, block: TextBlock) {
        self.paragraphs += u64::from(block.kind == BlockKind::Paragraph);
        let room = MOST_PARTS.saturating_sub(self.parts.len());
        self.parts.extend(block.parts.into_iter().take(room));
    }
}

/// Kind of a block, as far as it matters where a beginning may end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum BlockKind {
    Heading,
    Paragraph,
    #[default]
    Other,
}

/// Block of the document that is within no other.
#[derive(Debug, Default)]
struct TextBlock {
    kind: BlockKind,
    /// Place after its last byte.
    end: usize,
    /// Text without markup: all of a heading, and as much of others as a beginning could show.
    text: String,
    parts: Vec<OutlinePart>,
}

/// Reader of the blocks of a document.
#[derive(Debug, Default)]
struct BlockReader {
    blocks: Vec<TextBlock>,
    open: TextBlock,
    depth: u32,
    /// Lists that are open.
    lists: u32,
    /// Place of the outermost one among the parts of the block.
    list: usize,
    in_code: bool,
    /// Characters of text that are kept of a block.
    most: usize,
    kept: usize,
}

impl BlockReader {
    fn read(&mut self, event: &Event<'_>, range: &Range<usize>) {
        match event {
            Event::Start(tag) => {
                self.begin(tag);
                self.depth += 1;
            }
            Event::End(tag) => {
                self.depth = self.depth.saturating_sub(1);
                match tag {
                    TagEnd::List(_) => self.lists = self.lists.saturating_sub(1),
                    TagEnd::CodeBlock => self.in_code = false,
                    _ => {}
                }
                if self.depth == 0 {
                    self.close(range.end);
                }
            }
            Event::Text(text) if self.in_code => self.count_lines(text),
            Event::Text(text) | Event::Code(text) => self.keep(text),
            Event::SoftBreak | Event::HardBreak => self.keep(" "),
            Event::Rule if self.depth == 0 => self.close(range.end),
            _ => {}
        }
    }

    fn begin(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Heading { .. } if self.depth == 0 => self.open.kind = BlockKind::Heading,
            Tag::Paragraph if self.depth == 0 => self.open.kind = BlockKind::Paragraph,
            Tag::CodeBlock(kind) => {
                self.in_code = true;
                let language = match kind {
                    CodeBlockKind::Fenced(info) => language(info),
                    CodeBlockKind::Indented => None,
                };
                self.open.parts.push(OutlinePart::Code { language, lines: 0 });
            }
            Tag::List(first) => {
                self.lists += 1;
                // Lists within lists are counted as their items are.
                if self.lists == 1 {
                    self.list = self.open.parts.len();
                    self.open.parts.push(if first.is_some() {
                        OutlinePart::Steps(0)
                    } else {
                        OutlinePart::Points(0)
                    });
                }
            }
            Tag::Item if self.lists == 1 => {
                if let Some(OutlinePart::Steps(items) | OutlinePart::Points(items)) = self.open.parts.get_mut(self.list)
                {
                    *items += 1;
                }
            }
            Tag::Table(_) => self.open.parts.push(OutlinePart::Table(0)),
            Tag::TableRow => {
                if let Some(OutlinePart::Table(rows)) = self.open.parts.last_mut() {
                    *rows += 1;
                }
            }
            _ => {}
        }
    }

    fn count_lines(&mut self, text: &str) {
        if let Some(OutlinePart::Code { lines, .. }) = self.open.parts.last_mut() {
            let breaks = text.bytes().filter(|byte| *byte == b'\n').count();
            *lines = lines.saturating_add(u64::try_from(breaks).unwrap_or(u64::MAX));
        }
    }

    fn keep(&mut self, text: &str) {
        let room = self.most.saturating_sub(self.kept);
        let taken: String = text.chars().take(room).collect();
        self.kept += taken.chars().count();
        self.open.text.push_str(&taken);
    }

    fn close(&mut self, end: usize) {
        self.open.end = end;
        self.kept = 0;
        self.blocks.push(std::mem::take(&mut self.open));
    }
}

/// Returns the first word of the note at the begin of a block of code, as far as it can be a language.
fn language(info: &str) -> Option<String> {
    let word = info.split([' ', ',', '{']).next().unwrap_or_default();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '#' | '-' | '.');
    (!word.is_empty() && word.len() <= MOST_OF_LANGUAGE && word.chars().all(is_plain)).then(|| word.to_owned())
}

/// Returns a text cut after at most `most` characters, at a word where there is one near, with an ellipsis if it was cut.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most) else {
        return text.to_owned();
    };
    let head = &text[..end];
    let at = head.rfind(' ').filter(|at| *at > end / 2).unwrap_or(end);
    format!("{}…", head[..at].trim_end())
}

impl OpenBeginning {
    /// Splits a document: at most `most` characters of it are shown.
    pub(crate) fn of(markdown: &str, most: usize) -> Self {
        let text = shallow(markdown);
        let mut reader = BlockReader {
            // What an outline shows of a heading may be more than what is left to show of the text.
            most: most.max(MOST_OF_HEADING + 1),
            ..BlockReader::default()
        };
        for (event, range) in Parser::new_ext(&text, Options::ENABLE_TABLES).into_offset_iter() {
            reader.read(&event, &range);
        }
        let blocks = reader.blocks;
        let (shown, words) = shown(&text, &blocks, most);
        let end = shown.checked_sub(1).map_or(0, |last| blocks[last].end);
        let mut beginning = Self {
            markdown: text[..end].to_owned(),
            words,
            ..Self::default()
        };
        for block in blocks.into_iter().skip(shown) {
            beginning.outline(block);
        }
        beginning
    }

    /// Adds a block that is not shown to the outline.
    fn outline(&mut self, block: TextBlock) {
        if block.kind == BlockKind::Heading {
            if self.sections.len() == MOST_SECTIONS {
                self.more += 1;
                return;
            }
            let heading = cut(block.text.trim(), MOST_OF_HEADING);
            self.sections.push(OutlineSection {
                heading: Some(heading).filter(|heading| !heading.is_empty()),
                ..OutlineSection::default()
            });
        } else if self.more == 0 {
            if self.sections.is_empty() {
                self.sections.push(OutlineSection::default());
            }
            if let Some(last) = self.sections.last_mut() {
                last.add(block);
            }
        }
    }
}

/// Returns the number of blocks that fit, and the first words of the next one if none with a text does.
fn shown(text: &str, blocks: &[TextBlock], most: usize) -> (usize, Option<String>) {
    let (mut count, mut begin, mut used) = (0, 0, 0);
    for block in blocks {
        let length = text[begin..block.end].chars().count();
        if used + length > most {
            break;
        }
        (count, begin, used) = (count + 1, block.end, used + length);
    }
    // A heading belongs to what stands below it.
    while count > 0 && blocks[count - 1].kind == BlockKind::Heading {
        count -= 1;
    }
    if count > 0 {
        return (count, None);
    }
    let first = blocks.iter().find(|block| block.kind == BlockKind::Paragraph);
    let words = first.map(|block| cut(block.text.trim(), most.saturating_sub(1)));
    // A word is worth showing, a letter is not.
    (0, words.filter(|words| words.chars().count() > 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "A query is **not** stopped by the pool.\n\n## What was run\n\nOn one thread.\n\nAgain.\n\n\
                        | a | b |\n|-|-|\n| 1 | 2 |\n| 3 | 4 |\n\n## What to do\n\n1. Refuse it.\n2. Kill it.\n   - at once\n\n\
                        ```rust\nlet a = 1;\nlet b = 2;\n```\n";

    fn outline(beginning: &OpenBeginning) -> Vec<String> {
        let parts = |section: &OutlineSection| {
            let parts = section.parts.iter();
            let words: Vec<_> = parts.map(|part| format!(" {} {}", part.word(), part.size())).collect();
            words.concat()
        };
        let line = |section: &OutlineSection| {
            let heading = section.heading.as_deref().unwrap_or("-");
            format!("{heading}: {}{}", section.paragraphs, parts(section))
        };
        beginning.sections.iter().map(line).collect()
    }

    #[test]
    fn a_beginning_ends_at_a_block_and_the_rest_is_outlined() {
        let beginning = OpenBeginning::of(TEXT, 60);
        assert_eq!(beginning.markdown.trim(), "A query is **not** stopped by the pool.");
        assert_eq!(beginning.words, None);
        assert_eq!(
            outline(&beginning),
            [
                "What was run: 2 table 2 rows",
                "What to do: 0 steps 2 steps code 2 lines"
            ]
        );
        assert_eq!(beginning.sections[1].parts[1].language(), Some("rust"));
        // The rest of a section whose heading is shown has none.
        let beginning = OpenBeginning::of(TEXT, 85);
        assert!(beginning.markdown.contains("On one thread."), "{}", beginning.markdown);
        assert_eq!(outline(&beginning)[0], "-: 0 table 2 rows");
        assert_eq!(OpenBeginning::of(TEXT, 10_000).sections, []);
    }

    #[test]
    fn a_block_that_does_not_fit_gives_its_first_words() {
        let beginning = OpenBeginning::of(TEXT, 25);
        assert_eq!(beginning.markdown, "");
        assert_eq!(beginning.words.as_deref(), Some("A query is not stopped…"));
        assert_eq!(outline(&beginning)[0], "-: 1");
        for text in ["", "```\nlong code\n```", "# A heading"] {
            let beginning = OpenBeginning::of(text, 3);
            assert_eq!((beginning.markdown.as_str(), beginning.words), ("", None), "{text}");
        }
        // No more is shown than may be.
        for most in 0..80 {
            let beginning = OpenBeginning::of(TEXT, most);
            let words = beginning.words.unwrap_or_default();
            assert!((beginning.markdown + &words).chars().count() <= most, "{most}");
        }
    }

    #[test]
    fn an_outline_is_short_whatever_the_text_has() {
        let text = format!("Begin.\n\n{}", "## A heading\n\n- a\n- b\n\n".repeat(100));
        let beginning = OpenBeginning::of(&text, 10);
        assert_eq!((beginning.sections.len(), beginning.more), (MOST_SECTIONS, 76));
        let heading = format!("# {}\n\n", "word ".repeat(500));
        let beginning = OpenBeginning::of(&heading, 0);
        let heading = beginning.sections[0].heading.as_deref().unwrap();
        assert!(heading.chars().count() <= MOST_OF_HEADING + 1 && heading.ends_with('…'));
        assert_eq!(language("<script>"), None);
        assert_eq!(language("c++ title=x"), Some("c++".to_owned()));
    }

    #[test]
    fn an_outline_takes_time_that_is_linear_in_the_text() {
        growth::is_linear("an outline", 4_000, |text| {
            growth::consume(OpenBeginning::of(text, 600));
        });
    }
}
