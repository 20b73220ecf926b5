//! Blocks of a letter that was written as text.

use super::LetterBlock;

/// Words on the button of an address that stands alone.
const OPEN: &str = "Open this page";

/// Returns the blocks of a text, paragraph by paragraph.
pub(super) fn blocks(text: &str) -> Vec<LetterBlock> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let mut blocks = Vec::new();
    for paragraph in lines.split(|line| line.is_empty()).filter(|lines| !lines.is_empty()) {
        let has_button = blocks.iter().any(|block| matches!(block, LetterBlock::Button(..)));
        blocks.push(block(paragraph, has_button));
    }
    blocks
}

fn block(lines: &[&str], has_button: bool) -> LetterBlock {
    match lines {
        [address] if is_address(address) && !has_button => LetterBlock::Button(OPEN.to_owned(), (*address).to_owned()),
        [first, ..] if first.starts_with("- ") => LetterBlock::Items(items(lines)),
        _ if lines.iter().all(|line| line.starts_with("  ")) => {
            let quoted: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("  ")).collect();
            LetterBlock::Quote(quoted.join("\n"))
        }
        _ => LetterBlock::Paragraph(lines.join(" ")),
    }
}

fn is_address(line: &str) -> bool {
    let is_web = line.starts_with("https://") || line.starts_with("http://");
    is_web && !line.contains(char::is_whitespace)
}

/// Returns the items of a list. A line without a hyphen goes on with the item before it.
fn items(lines: &[&str]) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for line in lines {
        match (line.strip_prefix("- "), items.last_mut()) {
            (None, Some(item)) => {
                item.push(' ');
                item.push_str(line.trim_start());
            }
            (item, _) => items.push(item.unwrap_or(line).to_owned()),
        }
    }
    items
}
