//! Queries: what is typed, and the terms it stands for.
//!
//! Invariant: no text is an error. Quotes make phrases; there is no other syntax.

use models::tokens::{StemLanguages, TokenKind, identifiers, tokens};
use tantivy::Term;
use tantivy::query::{BooleanQuery, BoostQuery, DisjunctionMaxQuery, Occur, PhraseQuery, Query, TermQuery};
use tantivy::schema::IndexRecordOption;

use crate::facets::SearchFilter;
use crate::schema::DocumentFields;

/// The most words of a query; the rest is ignored.
const MAX_QUERY_WORDS: usize = 64;
/// Weight of a document that has most words of a query, added once more to that of its words.
const MOST_WORDS_WEIGHT: f32 = 1.0;
/// Weight of an identifier as a whole, beside its words.
const IDENTIFIER_WEIGHT: f32 = 1.5;

/// The way of searching.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SearchMode {
    /// Both of the others, fused.
    Auto,
    /// Search by words and their parts only.
    Keyword,
    /// Search by the likeness of vectors only; by words and their parts where the query has no vector.
    Semantic,
}

impl SearchMode {
    /// Returns `auto`, `keyword` or `semantic`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Keyword => "keyword",
            Self::Semantic => "semantic",
        }
    }
}

/// The order of hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SearchOrder {
    /// Best hit first; without words the newest.
    #[default]
    Best,
    /// Newest first.
    Newest,
    /// Cheapest first.
    Cheapest,
    /// Highest score first; datasets, which have none, come last.
    Score,
}

/// Text, conditions and page of one search.
#[derive(Clone, Debug)]
pub struct SearchQuery {
    /// Text; empty finds everything, the newest first.
    pub text: String,
    /// Vector of the text by the model of the index, if it has one and the model answered.
    pub vector: Option<Vec<f32>>,
    /// Way of searching: by words, by vectors or by both.
    pub mode: SearchMode,
    /// Conditions on the facts.
    pub filter: SearchFilter,
    /// Order of the hits.
    pub order: SearchOrder,
    /// Hits to leave out.
    pub offset: usize,
    /// The most hits to return.
    pub limit: usize,
}

/// The words of a query.
#[derive(Debug)]
pub(crate) struct ParsedQuery {
    /// Matches each document with all phrases; without phrases, each with a word that is not common.
    pub(crate) words: BooleanQuery,
    /// Matches each document with a common word, if there are any and no phrases: for when nothing else matches.
    pub(crate) common: Option<BooleanQuery>,
    pub(crate) has_phrases: bool,
}

/// Returns the query of a text over the words of documents, or `None` if the text has no word.
pub(crate) fn parsed(text: &str, fields: &DocumentFields) -> Option<ParsedQuery> {
    let mut counted: Vec<Box<dyn Query>> = Vec::new();
    let mut extra: Vec<Box<dyn Query>> = Vec::new();
    let mut musts: Vec<Box<dyn Query>> = Vec::new();
    let languages = StemLanguages::of_query(text);
    // A part between two quotes has an odd number. The last part has no second quote.
    let parts: Vec<&str> = text.split('"').collect();
    for (index, part) in parts.iter().enumerate() {
        if index % 2 == 1 && index + 1 < parts.len() {
            musts.extend(phrase(part, fields));
        } else {
            words(part, languages, fields, &mut counted, &mut extra);
        }
    }
    counted.truncate(MAX_QUERY_WORDS);
    extra.truncate(MAX_QUERY_WORDS);
    if counted.is_empty() && extra.is_empty() && musts.is_empty() {
        return None;
    }
    let has_phrases = !musts.is_empty();
    let common = (!has_phrases && !extra.is_empty()).then(|| BooleanQuery::union(copies(&extra)));
    let mut clauses: Vec<(Occur, Box<dyn Query>)> = musts.into_iter().map(|clause| (Occur::Must, clause)).collect();
    // Every word may be missing, because a question has words that its answer lacks. A document with three of five
    // goes before one with a single rare word.
    let least = (counted.len() * 3).div_ceil(5);
    if counted.len() > 1 {
        let most = BooleanQuery::union_with_minimum_required_clauses(copies(&counted), least);
        clauses.push((Occur::Should, boosted(Box::new(most), MOST_WORDS_WEIGHT)));
    }
    if !counted.is_empty() {
        let any: Box<dyn Query> = Box::new(BooleanQuery::union(counted));
        clauses.push((if has_phrases { Occur::Should } else { Occur::Must }, any));
    }
    clauses.extend(extra.into_iter().map(|clause| (Occur::Should, clause)));
    Some(ParsedQuery {
        words: BooleanQuery::new(clauses),
        common,
        has_phrases,
    })
}

fn copies(clauses: &[Box<dyn Query>]) -> Vec<Box<dyn Query>> {
    clauses.iter().map(|clause| clause.box_clone()).collect()
}

/// The spellings at a position of a query, each with its weight.
#[derive(Debug, Default)]
struct QueryWord {
    spellings: Vec<(String, f32)>,
    /// True if a spelling has no part of a particle.
    is_whole: bool,
    is_common: bool,
}

/// Adds one clause for each position of a text: any spelling of it in any field.
fn words(
    text: &str,
    languages: StemLanguages,
    fields: &DocumentFields,
    counted: &mut Vec<Box<dyn Query>>,
    extra: &mut Vec<Box<dyn Query>>,
) {
    let mut positions: Vec<QueryWord> = Vec::new();
    tokens(text, languages, &mut |token| {
        let at = usize::try_from(token.position).unwrap_or(usize::MAX);
        if at >= MAX_QUERY_WORDS {
            return;
        }
        if positions.len() <= at {
            positions.resize_with(at + 1, QueryWord::default);
        }
        // The exact spelling of a word counts beside its stem, a whole run of syllables beside its pairs.
        let weight = match token.kind {
            TokenKind::Word => 0.5,
            TokenKind::Run => 1.5,
            _ => 1.0,
        };
        let word = &mut positions[at];
        word.spellings.push((token.text.to_owned(), weight));
        word.is_whole |= !token.is_particle;
        // A stem by the rules of another language may be a common word by chance.
        word.is_common |= token.kind != TokenKind::Stem && models::tokens::is_common(token.text);
    });
    for word in positions.into_iter().filter(|word| !word.spellings.is_empty()) {
        let has_stem = word.spellings.len() > 1;
        let of_spelling = word.spellings.iter().map(|(spelling, weight)| {
            let weight = if has_stem { *weight } else { 1.0 };
            boosted(any_field(spelling, fields), weight)
        });
        let clause: Box<dyn Query> = Box::new(BooleanQuery::union(of_spelling.collect()));
        // A word such as "when" tells little of what is meant.
        if word.is_common || !word.is_whole {
            extra.push(clause);
        } else {
            counted.push(clause);
        }
    }
    identifiers(text, &mut |name, is_whole| {
        if is_whole {
            let term = Term::from_field_text(fields.code, name);
            let named = TermQuery::new(term, IndexRecordOption::Basic);
            extra.push(boosted(Box::new(named), IDENTIFIER_WEIGHT));
        }
    });
}

/// Returns the query of one term in any field, which scores as the best field does.
fn any_field(spelling: &str, fields: &DocumentFields) -> Box<dyn Query> {
    let of_field = fields.texts().map(|(field, weight)| {
        let term = Term::from_field_text(field, spelling);
        boosted(Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)), weight)
    });
    Box::new(DisjunctionMaxQuery::with_tie_breaker(Vec::from(of_field), 0.3))
}

fn boosted(query: Box<dyn Query>, weight: f32) -> Box<dyn Query> {
    Box::new(BoostQuery::new(query, weight))
}

/// Returns the query of a phrase in the title or the body, or `None` if the phrase has no word.
fn phrase(text: &str, fields: &DocumentFields) -> Option<Box<dyn Query>> {
    let mut terms: Vec<(usize, String)> = Vec::new();
    // Stems are not asked for, so the language is of no account.
    tokens(text, StemLanguages::ENGLISH, &mut |token| {
        let at = usize::try_from(token.position).unwrap_or(usize::MAX);
        let is_first = terms.last().is_none_or(|(last, _)| *last != at);
        // One spelling stands for each position: the word, or the pair and not the run.
        match token.kind {
            TokenKind::Run | TokenKind::Stem => {}
            _ if is_first && terms.len() < MAX_QUERY_WORDS => terms.push((at, token.text.to_owned())),
            _ => {}
        }
    });
    let in_field = |field, weight| -> Option<Box<dyn Query>> {
        let mut of_field: Vec<(usize, Term)> = Vec::new();
        of_field.extend(terms.iter().map(|(at, text)| (*at, Term::from_field_text(field, text))));
        let query: Box<dyn Query> = if of_field.len() > 1 {
            Box::new(PhraseQuery::new_with_offset(of_field))
        } else {
            Box::new(TermQuery::new(of_field.pop()?.1, IndexRecordOption::WithFreqs))
        };
        Some(boosted(query, weight))
    };
    let found: Vec<_> = [in_field(fields.title, 3.0), in_field(fields.body, 1.0)]
        .into_iter()
        .flatten()
        .collect();
    (!found.is_empty()).then(|| Box::new(BooleanQuery::union(found)) as Box<dyn Query>)
}
