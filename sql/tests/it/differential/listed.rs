//! The differences from `PostgreSQL` that `deploy/sluice/API.md` lists.

const API: &str = include_str!("../../../../deploy/sluice/API.md");
/// The most lines that the list may have.
const MOST: usize = 20;

/// A kind of statement that the sandbox refuses or fails and `PostgreSQL` answers.
#[derive(Debug)]
pub(super) struct Refused {
    /// Words of the error.
    pub(super) words: &'static str,
    /// The beginning of its line in the list.
    row: &'static str,
    /// Generated statements have it.
    pub(super) generated: bool,
}

const fn generated(words: &'static str, row: &'static str) -> Refused {
    Refused {
        words,
        row,
        generated: true,
    }
}

/// Every kind there may be.
pub(super) const REFUSED: &[Refused] = &[
    generated("`SIMILAR TO` is refused", "`SIMILAR TO`"),
    generated("INTERSECT ALL` is refused", "`INTERSECT ALL`"),
    generated("EXCEPT ALL` is refused", "`INTERSECT ALL`"),
    generated("JOIN … USING` is refused", "`RIGHT` and `FULL JOIN … USING`"),
    generated("NATURAL ", "`RIGHT` and `FULL JOIN … USING`"),
    generated(" ANY` is refused", "`<`, `<=`, `>`"),
    generated(" ALL` is refused", "`<`, `<=`, `>`"),
    generated("a window cannot extend another one", "`OVER (w …)`"),
    generated("NOT IN (SELECT …) is supported as", "`NOT IN (SELECT …)`"),
    generated("does not support a subquery here", "`(SELECT …) IN (…)`"),
    generated("cast one of them, such as x::numeric", "`1_000`, `0x10`"),
    generated(
        "write brackets around `… IS DISTINCT FROM …`",
        "`a IS DISTINCT FROM b AND c`",
    ),
];

/// Returns the words of a listed kind that this error has.
pub(super) fn words_of(error: &str) -> Option<&'static str> {
    REFUSED
        .iter()
        .map(|listed| listed.words)
        .find(|words| error.contains(words))
}

/// Returns the first cell of each line of the list.
pub(super) fn rows() -> Vec<String> {
    let section = API
        .split("## SQL dialect")
        .nth(1)
        .unwrap()
        .split("\n## ")
        .next()
        .unwrap();
    let lines = section.lines().filter(|line| line.starts_with("| "));
    // A cell may have a `|` in a text, but none of the first cells does.
    let cells = lines.map(|line| line[2..].split(" | ").next().unwrap().to_owned());
    cells
        .filter(|cell| !matches!(&**cell, "Refused" | "Answered otherwise"))
        .collect()
}

#[test]
fn every_difference_is_a_line_of_the_list() {
    let rows = rows();
    assert!(rows.len() <= MOST, "{} lines", rows.len());
    for listed in REFUSED {
        assert!(
            rows.iter().any(|row| row.starts_with(listed.row)),
            "no line for {listed:?}"
        );
    }
}
