//! Documents that have parts of the words of a query: misspelled words, other forms, and words within words.
//!
//! Invariant: each part counts once in a document, so a score is the share of the query that the document has, less the
//! longer its text is.

use models::tokens::word_parts;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet, Searcher, SegmentReader, TERMINATED, Term};

use crate::schema::DocumentFields;

/// The most parts of a query; the rest is ignored.
const MAX_QUERY_PARTS: usize = 256;
/// The least share of a query that a hit has.
const MIN_COVERAGE: f32 = 0.3;
/// Weight of the parts that a title has, beside those of the whole text.
const TITLE_PARTS_WEIGHT: f32 = 0.5;
/// Saturation of BM25, which here only scales its normalisation by length.
const SATURATION: f32 = 1.2;
/// Share of the length in the normalisation of BM25.
const LENGTH_SHARE: f32 = 0.75;

/// A document that has parts of a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PartMatch {
    pub(crate) slot: usize,
    pub(crate) score: f32,
    /// Share of the query's parts that the document has, each weighed by how rare it is.
    pub(crate) coverage: f32,
}

/// Returns the documents that have enough of the parts of a text.
pub(crate) fn part_matches(
    text: &str,
    fields: &DocumentFields,
    searcher: &Searcher,
) -> tantivy::Result<Vec<PartMatch>> {
    let mut parts: Vec<String> = Vec::new();
    word_parts([text], &mut |part| {
        if parts.len() < MAX_QUERY_PARTS {
            parts.push(part.to_owned());
        }
    });
    let whole = WeighedField::new(fields.parts, &parts, searcher)?;
    let titles = WeighedField::new(fields.title_parts, &parts, searcher)?;
    let total: f32 = whole.terms.iter().map(|(_, rarity)| rarity).sum();
    let mut found = Vec::new();
    if total <= 0.0 {
        return Ok(found);
    }
    for segment in searcher.segment_readers() {
        let slots = segment.fast_fields().u64("slot")?;
        let (of_whole, of_titles) = (whole.sums(segment)?, titles.sums(segment)?);
        let (whole_norms, title_norms) = (
            segment.get_fieldnorms_reader(whole.field)?,
            segment.get_fieldnorms_reader(titles.field)?,
        );
        for (document, (sum, title_sum)) in (0..segment.max_doc()).zip(of_whole.into_iter().zip(of_titles)) {
            let coverage = sum / total;
            if coverage < MIN_COVERAGE {
                continue;
            }
            let Some(slot) = slots.first(document).and_then(|slot| usize::try_from(slot).ok()) else {
                continue;
            };
            let of_whole = sum * whole.norm(whole_norms.fieldnorm(document));
            let of_title = title_sum * titles.norm(title_norms.fieldnorm(document));
            found.push(PartMatch {
                slot,
                score: of_whole + TITLE_PARTS_WEIGHT * of_title,
                coverage,
            });
        }
    }
    Ok(found)
}

/// The parts of a query in a field, each with its rarity there.
struct WeighedField {
    field: Field,
    terms: Vec<(Term, f32)>,
    /// Number of parts that a document has on average.
    length: f32,
}

impl WeighedField {
    #[expect(clippy::cast_precision_loss, reason = "a logarithm needs few digits")]
    fn new(field: Field, parts: &[String], searcher: &Searcher) -> tantivy::Result<Self> {
        let segments = searcher.segment_readers();
        let documents: u64 = segments.iter().map(|segment| u64::from(segment.max_doc())).sum();
        let mut tokens = 0;
        for segment in segments {
            tokens += segment.inverted_index(field)?.total_num_tokens();
        }
        let mut terms = Vec::with_capacity(parts.len());
        for part in parts {
            let term = Term::from_field_text(field, part);
            let found = searcher.doc_freq(&term)?;
            let rarity = (1.0 + (documents.saturating_sub(found) as f32 + 0.5) / (found as f32 + 0.5)).ln();
            terms.push((term, rarity));
        }
        Ok(Self {
            field,
            terms,
            length: (tokens as f32 / documents.max(1) as f32).max(1.0),
        })
    }

    /// Returns the sum of the rarities of the parts that each document of a segment has.
    fn sums(&self, segment: &SegmentReader) -> tantivy::Result<Vec<f32>> {
        let inverted = segment.inverted_index(self.field)?;
        let mut sums = vec![0.0; usize::try_from(segment.max_doc()).unwrap_or(0)];
        for (term, rarity) in &self.terms {
            let Some(mut postings) = inverted.read_postings(term, IndexRecordOption::Basic)? else {
                continue;
            };
            // A part is in a large share of the documents, so adding to each is less than keeping a heap of lists.
            let mut document = postings.doc();
            while document != TERMINATED {
                if let Some(sum) = sums.get_mut(usize::try_from(document).unwrap_or(usize::MAX)) {
                    *sum += rarity;
                }
                document = postings.advance();
            }
        }
        Ok(sums)
    }

    /// Returns the factor of BM25 for one occurrence in a text with a number of parts.
    #[expect(clippy::cast_precision_loss, reason = "a length has few digits")]
    fn norm(&self, parts: u32) -> f32 {
        let length = 1.0 - LENGTH_SHARE + LENGTH_SHARE * parts as f32 / self.length;
        (SATURATION + 1.0) / (1.0 + SATURATION * length)
    }
}
