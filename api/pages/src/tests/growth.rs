use growth::{SHAPES, Shape, is_linear};

use crate::document::RenderedMarkdown;

#[test]
fn markdown_is_rendered_in_linear_time() {
    is_linear("the renderer of Markdown", 4_000, |text| {
        growth::consume(RenderedMarkdown::of(text).to_string());
    });
    // Within the blocks in which a text can stand.
    for block in ["> ", "- ", "# ", "| "] {
        growth::is_linear_in(
            "the renderer of a block",
            2_000,
            SHAPES,
            |text| format!("{block}{}", text.replace('\n', &format!("\n{block}"))),
            |text| {
                growth::consume(RenderedMarkdown::of(text).to_string());
            },
        );
    }
}

#[test]
fn a_document_that_fills_a_page_is_rendered_in_linear_time() {
    is_linear("the renderer of documents", 4_000, |text| {
        growth::consume(RenderedMarkdown::with_places(text).0.to_string());
    });
    let headings = &[Shape::of("# a\n"), Shape::of("# a-1\n# a\n")];
    growth::is_linear_in(
        "the places of headings",
        4_000,
        headings,
        |text| text,
        |text| growth::consume(RenderedMarkdown::with_places(text).0.to_string()),
    );
}

/// Texts that are known to be hard to readers of Markdown.
const MARKDOWN: &[Shape] = &[
    Shape::of("*a **a "),
    Shape::of("a**b*c "),
    Shape::of("[a](<b"),
    Shape::of("[a](b"),
    Shape::of("[a](b \""),
    Shape::of("![[]()"),
    Shape::of("[[a]"),
    Shape::of("[a][b"),
    Shape::of("[ (]("),
    Shape::of("<a b='"),
    Shape::of("<a b=c "),
    Shape::of("<!A "),
    Shape::of("<?a "),
    Shape::of("<![CDATA[a]"),
    Shape::of("a\n===\n"),
    Shape::of("|a\n|-\n"),
    Shape::of("> > a\n"),
    Shape::of("* * * a\n"),
    Shape::of("- - - a\n"),
    Shape::of("1. 1. a\n"),
    Shape::of("    a\n"),
    Shape::of("\t\t- a\n"),
    Shape::of("_ a __ a "),
    Shape::of("*_*_"),
    Shape::of("&#x41;"),
    Shape::of("\\\n"),
    Shape::of("a  \n"),
    Shape::of_halves("links in links", "[", "](a)"),
    Shape::of_halves("emphasis", "*a ", "a*"),
    Shape::of_halves("strong and emphasis", "**a *a ", "a* a** "),
    Shape::of_halves("references without a definition", "[a#]", "[b#]: c\n"),
    Shape::of_halves("a wide table", "|a", "\n|-"),
    Shape::of_halves("rows of a wide table", "|-", "\n|"),
];

#[test]
fn hard_markdown_is_rendered_in_linear_time() {
    growth::is_linear_in(
        "the renderer of Markdown",
        4_000,
        MARKDOWN,
        |text| text,
        |text| {
            growth::consume(RenderedMarkdown::of(text).to_string());
        },
    );
    let table = |text: String| {
        let width = text.matches("|a").count();
        format!(
            "{}|\n{}|\n{}",
            "|a".repeat(width),
            "|-".repeat(width),
            "|b\n".repeat(width)
        )
    };
    growth::is_linear_in("the renderer of a table", 2_000, &[Shape::of("|a")], table, |text| {
        growth::consume(RenderedMarkdown::of(text).to_string());
    });
}
