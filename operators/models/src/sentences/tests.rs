use super::*;

fn text<'a>(title: &'a str, body: &'a str) -> EmbeddedText<'a> {
    EmbeddedText { title, body }
}

fn cosine(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

fn embed(texts: &[EmbeddedText<'_>], role: TextRole) -> Vec<Vec<Vector>> {
    runtime()
        .block_on(SentenceEmbedder::open().unwrap().embed(texts, role))
        .unwrap()
}

/// Sentences without a figure, about as many tokens as a piece has.
const PLAIN: &str = "It is generally a good idea to think about the design of a system before it is built. Many people agree \
    that this saves time later on, and that a good plan is worth the effort that it takes to make it. Others say that a plan \
    is only a beginning, and that what matters is to learn from what goes wrong and to try again with an open mind.\n";
const TOLD: &str = "The index on order_date cut the p95 of 12 runs from 812 ms to 90 ms on PostgreSQL 16.3.\n";

#[test]
fn a_document_has_a_vector_of_its_title_and_of_the_pieces_that_tell_most() {
    let body = format!("{}{TOLD}{}{TOLD}{}", PLAIN.repeat(4), PLAIN.repeat(4), PLAIN.repeat(4));
    let documents = embed(
        &[text("An index on the date", &body), text("A title", "")],
        TextRole::Document,
    );
    let [vectors, title] = documents.as_slice() else {
        panic!("{}", documents.len())
    };
    assert_eq!((vectors.len(), title.len()), (5, 1));
    for vector in vectors {
        assert_eq!(vector.len(), ENCODED_DIMENSIONS);
        assert!((cosine(vector, vector) - 1.0).abs() < 1e-5);
    }
    let queries = embed(&[text("Why is order_date indexed?", "")], TextRole::Query);
    assert_eq!((queries.len(), queries[0].len()), (1, 1));
    let query = &queries[0][0];
    let [_, first, ..] = vectors.as_slice() else {
        panic!("{}", vectors.len())
    };
    let best = vectors[2..]
        .iter()
        .map(|vector| cosine(query, vector))
        .fold(0.0, f32::max);
    assert!(best > cosine(query, first), "{best}");
}

#[test]
fn a_piece_is_chosen_by_its_facts_and_the_first_of_equal_ones() {
    let body = "a b c 42 d e k_x f g";
    let pieces = |ends: &[usize]| {
        let starts = [0].into_iter().chain(ends.iter().copied());
        starts
            .zip(ends.iter().copied())
            .map(|(from, to)| from..to)
            .collect::<Vec<_>>()
    };
    // a | b | c 42 | d | e k_x | f | g
    let all = pieces(&[2, 4, 9, 11, 17, 19, 20]);
    assert_eq!(telling(body, all), [0..2, 4..9, 11..17, 17..19]);
    assert_eq!(telling(body, pieces(&[2, 20])), [0..2, 2..20]);
    assert!(telling(body, Vec::new()).is_empty());
    // A figure that is told twice is one.
    let all = pieces(&[2, 11, 17, 19, 21, 23, 24]);
    assert_eq!(telling("x 42 42 42 23 54 a b c d", all), [0..2, 11..17, 17..19, 21..23]);
}

#[test]
fn a_query_finds_no_thread_while_two_documents_have_them() {
    let embedder = SentenceEmbedder::open().unwrap();
    runtime().block_on(async {
        let busy = Arc::clone(&embedder.threads).acquire_many_owned(2).await.unwrap();
        let query = [text("an index", "")];
        assert_eq!(embedder.embed(&query, TextRole::Query).await, Err(unavailable()));
        let document = embedder.embed(&query, TextRole::Document);
        // It waits until a thread is free, and then it is embedded.
        let (vectors, ()) = tokio::join!(document, async { drop(busy) });
        assert_eq!(vectors.unwrap().len(), 1);
        assert_eq!(embedder.embed(&query, TextRole::Query).await.unwrap().len(), 1);
    });
}

#[test]
fn a_translation_is_nearer_than_another_text() {
    let title = |title| text(title, "");
    let texts = [
        title("Why did the certificate expire without an alert?"),
        title("왜 인증서가 경고 없이 만료되었나?"),
        title("Warum lief das Zertifikat ohne Warnung ab?"),
        title("The median latency fell by a third after the upgrade."),
    ];
    let vectors = embed(&texts, TextRole::Document);
    let near = |at: usize| cosine(&vectors[0][0], &vectors[at][0]);
    assert!(
        near(1) > near(3) + 0.2 && near(2) > near(3) + 0.2,
        "{} {} {}",
        near(1),
        near(2),
        near(3)
    );
}
