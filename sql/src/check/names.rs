//! Resolution of names without regard to case: `deviceid` and `DEVICEID` mean a field `deviceId`.
//!
//! Invariants: only the spelling of a name changes, never the number or the order of tokens. Field names of a contract
//! differ in more than case, so a name matches at most one field.

use std::collections::HashMap;

use datafusion::sql::sqlparser::ast::Ident;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Word};
use types::Contract;

use super::RECORDS_TABLE;

/// Replaces every unquoted name by the field that it matches without regard to case. Returns the positions of names
/// that were [`RECORDS_TABLE`].
pub(super) fn resolve(tokens: &mut [TokenWithSpan], contract: &Contract) -> Vec<Location> {
    let mut tables = Vec::new();
    let fields: HashMap<String, &str> = contract
        .fields()
        .iter()
        .map(|field| (field.name.to_lowercase(), field.name.as_str()))
        .collect();
    for index in 0..tokens.len() {
        let call = matches!(tokens.get(index + 1), Some(next) if next.token == Token::LParen);
        let place = tokens[index].span.start;
        let Token::Word(word) = &mut tokens[index].token else {
            continue;
        };
        // A keyword may be syntax here, such as DATE in a literal, and a name before a bracket is a function.
        if word.quote_style.is_some() || word.keyword != Keyword::NoKeyword || call {
            continue;
        }
        // Both sides are folded, so the contract decides the spelling.
        let lower = word.value.to_lowercase();
        // A field in lower case needs no change, because the engine folds unquoted names to lower case.
        if let Some(name) = fields.get(&lower).filter(|name| **name != lower) {
            *word = Word {
                value: (*name).to_owned(),
                quote_style: Some('"'),
                keyword: Keyword::NoKeyword,
            };
            if lower == RECORDS_TABLE {
                tables.push(place);
            }
        }
    }
    tables
}

/// Returns the normal form of an identifier: unchanged if quoted, otherwise in lower case.
pub(super) fn normal(ident: &Ident) -> String {
    if ident.quote_style.is_some() {
        ident.value.clone()
    } else {
        ident.value.to_lowercase()
    }
}
