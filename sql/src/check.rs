//! Check of a statement: an allow list over its syntax tree, applied before a child gets the statement and again in the
//! child.
//!
//! Invariant: the check destructures every struct of the tree field by field. So syntax that a later parser adds is a
//! compile error here and not a hole. Anything that the check does not name is refused.

pub(crate) mod alike;
mod ambiguous;
mod bounded;
mod expression;
mod formats;
pub(crate) mod functions;
mod names;
mod numbers;
mod query;
mod rewrite;
pub(crate) mod scope;
mod times;

use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use tokio::sync::oneshot;
use types::Contract;

use self::bounded::BoundedDialect;

use crate::Error;

/// Name of the only table.
pub const RECORDS_TABLE: &str = "records";
/// Maximum length of a statement in characters.
pub const MAX_CHARACTERS: usize = 4_000;
/// Maximum number of tokens of a statement, without blanks and comments.
pub const MAX_TOKENS: usize = 2_000;
/// Maximum nesting depth of parentheses and brackets.
pub const MAX_NESTING: usize = 24;
/// Maximum nesting depth of expressions and queries.
pub const MAX_DEPTH: usize = 200;
/// Maximum number of expressions and tables of a statement, with its WITH queries expanded at every use.
pub const MAX_SIZE: usize = 4_000;
/// Maximum number of table reads of a statement, with its WITH queries expanded at every use.
pub const MAX_TABLES: usize = 32;
/// Maximum number of grouping sets of a SELECT.
pub const MAX_GROUPING_SETS: usize = 64;

/// Stack size in bytes that the parser and the check need.
pub(crate) const STACK_BYTES: usize = 32 << 20;
/// Maximum number of characters of the statement that a refusal quotes.
const MAX_SHOWN_CHARS: usize = 80;
/// Longest text with which the parser names a line and a column, in bytes.
const MAX_PLACE_BYTES: usize = 40;

/// Reason why a statement is not run: the refused part, and the rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} is refused: {rule}")]
pub struct Refusal {
    /// Refused part of the statement, quoted and shortened.
    pub what: String,
    /// Rule that the part breaks.
    pub rule: String,
}

impl Refusal {
    #[expect(
        clippy::needless_pass_by_value,
        reason = "parts are named by texts, numbers and nodes of the tree alike"
    )]
    pub(crate) fn new(what: impl ToString, rule: impl Into<String>) -> Self {
        let what = what.to_string();
        let mut shown: String = what.chars().take(MAX_SHOWN_CHARS).collect();
        if shown.len() < what.len() {
            shown.push('…');
        }
        Self {
            what: shown,
            rule: rule.into(),
        }
    }

    /// Refuses a part and quotes it.
    pub(crate) fn of(part: impl ToString, rule: impl Into<String>) -> Self {
        let quoted = Self::new(part, rule);
        Self {
            what: format!("`{}`", quoted.what),
            ..quoted
        }
    }
}

/// Checks that a statement may be run: one SELECT over the table `records`.
///
/// Takes milliseconds, whatever the text, on a thread of its own. Opens no file.
///
/// # Errors
/// [`Error::Refused`] if the statement may not be run, [`Error::Process`] if no thread can be started.
pub async fn check(sql: &str) -> Result<(), Error> {
    let (sender, checked) = oneshot::channel();
    let statement = sql.to_owned();
    // The parser and the check recurse. A separate stack is large enough for every statement within the bounds.
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let walk = move || drop(sender.send(parse(&statement, None).map(drop)));
    thread
        .spawn(walk)
        .map_err(Error::process("cannot start a thread to check the statement"))?;
    // A panic of the parser refuses the statement and harms nothing else.
    let panicked = |_| Err(Refusal::new("the statement", "it could not be checked"));
    Ok(checked.await.unwrap_or_else(panicked)?)
}

/// Parses and checks a statement on the stack of the caller, which must have [`STACK_BYTES`] bytes.
///
/// With a contract, unquoted names match its fields without regard to case.
pub(crate) fn parse(sql: &str, contract: Option<&Contract>) -> Result<Statement, Refusal> {
    let characters = sql.chars().count();
    if characters == 0 || characters > MAX_CHARACTERS {
        let rule = format!("it must have 1 to {MAX_CHARACTERS} characters");
        return Err(Refusal::new(format!("a statement of {characters} characters"), rule));
    }
    let dialect = GenericDialect {};
    let mut tokens = Tokenizer::new(&dialect, sql)
        .tokenize_with_location()
        .map_err(|error| unreadable(&error))?;
    // Blanks still count here: a blank between a number and a word makes them two tokens.
    digits(&tokens)?;
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    // The bounds hold before parsing, because the time of the parser depends on them.
    bound(&tokens)?;
    let tables = contract.map_or_else(Vec::new, |contract| names::resolve(&mut tokens, contract));
    // The tokenizer takes linear time, so only the parser needs the bound.
    let dialect = BoundedDialect::new();
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(tokens);
    let mut statements = parser.parse_statements().map_err(|error| {
        if dialect.is_spent() {
            return Refusal::new("the statement", "it is too ambiguous to parse: nest it less");
        }
        unreadable(&error)
    })?;
    let mut statement = match (statements.pop(), statements.is_empty()) {
        // A trailing semicolon gives no second statement.
        (Some(statement), true) => statement,
        (None, _) => return Err(Refusal::new("an empty statement", "it must be one SELECT")),
        (Some(_), false) => return Err(Refusal::new("more than one statement", "it must be one SELECT")),
    };
    // The rewrite comes before the check, so its result is checked too.
    rewrite::rewrite(&mut statement, &tables);
    match &statement {
        Statement::Query(select) => query::statement(select)?,
        other => return Err(Refusal::of(other, "only SELECT is allowed")),
    }
    if let Some(contract) = contract {
        scope::rewrite(&mut statement, contract)?;
    }
    Ok(statement)
}

/// Refuses a text that is no SQL. The place that the parser names stays, however long the text before it is.
fn unreadable(problem: &dyn ToString) -> Refusal {
    let problem = problem.to_string();
    let at = problem.rfind(" at Line: ");
    let (said, place) = at.map_or((&*problem, ""), |at| problem.split_at(at));
    // A text of the statement may read like a place.
    let place = if place.len() <= MAX_PLACE_BYTES { place } else { "" };
    let said = Refusal::new(said, "").what;
    Refusal::new("the statement", format!("it is not valid SQL: {said}{place}"))
}

/// Refuses a number that is followed by a word without a space: the parser would take the rest for a column name.
fn digits(tokens: &[TokenWithSpan]) -> Result<(), Refusal> {
    let runs_on = |pair: &&[TokenWithSpan]| match pair {
        [number, next] => {
            matches!(number.token, Token::Number(..))
                && matches!(
                    next.token,
                    Token::Word(_) | Token::Number(..) | Token::SingleQuotedString(_)
                )
        }
        _ => false,
    };
    let rule = "write a number in digits, with at most a point and an exponent, and a space after it";
    tokens.windows(2).find(runs_on).map_or(Ok(()), |pair| {
        Err(Refusal::of(format!("{}{}", pair[0].token, pair[1].token), rule))
    })
}

/// Checks the number of tokens and the nesting of brackets.
fn bound(tokens: &[TokenWithSpan]) -> Result<(), Refusal> {
    if tokens.len() > MAX_TOKENS {
        let rule = format!("it must have at most {MAX_TOKENS}");
        return Err(Refusal::new(format!("a statement of {} tokens", tokens.len()), rule));
    }
    let mut nesting = 0_usize;
    for token in tokens {
        match token.token {
            Token::LParen | Token::LBracket | Token::LBrace => nesting += 1,
            Token::RParen | Token::RBracket | Token::RBrace => nesting = nesting.saturating_sub(1),
            _ => {}
        }
        if nesting > MAX_NESTING {
            let rule = format!("brackets may nest at most {MAX_NESTING} deep");
            return Err(Refusal::new("the nesting of brackets", rule));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
