//! Questions of one contribution, and the end of records that spoil the answers about them.

use operators::screen::Screener;

use super::*;

/// A verdict of the screen.
fn screened(verdict: &'static str, code: &'static str) -> Say {
    content(move |echo| json!({"echo": echo, "verdict": verdict, "code": code, "detail": ""}).to_string())
}

/// Records that are a group each.
fn long_records(count: usize) -> Vec<String> {
    let record = |at: usize| json!({"at": at, "text": format!("n{at} ").repeat(700)}).to_string();
    (0..count).map(record).collect()
}

/// A local screener that has no objection.
#[derive(Debug)]
struct Fine;

#[async_trait]
impl Screener for Fine {
    async fn screen(&self, records: &[&str]) -> Result<Vec<Opinion>, Unavailable> {
        Ok(vec![Opinion::Acceptable; records.len()])
    }
}

fn complete(world: World, most: u32) -> (Arc<Scripted>, CompleteScreener) {
    let screener = CompleteScreener::new(Arc::new(Fine), Arc::new(world.chat), most);
    (world.transport, screener)
}

#[tokio::test]
async fn a_contribution_asks_no_more_than_its_share_and_the_next_has_its_own() {
    let fine = || (0..12).map(|_| screened("acceptable", "none"));
    let (transport, screener) = complete(world(fine().chain(fine()).collect()), 12);
    let (records, mut before) = (long_records(400), 0);
    for contribution in 0..2 {
        let one = screener.for_contribution().unwrap();
        // An upload is judged in parts, which share one bound.
        for part in records.chunks(100) {
            let part: Vec<&str> = part.iter().map(String::as_str).collect();
            assert_eq!(one.screen(&part).await, Ok(vec![Opinion::Acceptable; 100]));
        }
        let asked = transport.requests.lock().len() - before;
        assert!((7..=12).contains(&asked), "{contribution}: {asked}");
        before += asked;
    }
}

#[tokio::test]
async fn an_objection_ends_the_questions_of_a_contribution() {
    let (transport, screener) = complete(world(vec![screened("objectionable", "spam")]), 12);
    let records = long_records(20);
    let records: Vec<&str> = records.iter().map(String::as_str).collect();
    let found = screener.screen(&records).await.unwrap();
    let objections: Vec<usize> = (0..20).filter(|at| found[*at] != Opinion::Acceptable).collect();
    assert_eq!((objections, transport.requests.lock().len()), (vec![0], 1));
}

#[tokio::test]
async fn a_record_that_spoils_the_answers_is_refused_and_its_neighbours_are_not() {
    let rubbish = || [(); 2].map(|()| content(|_| "I cannot say.".to_owned()));
    let fine = || screened("acceptable", "none");
    let mut script = Vec::new();
    // About all three, and a text of our own; about the last two; about the first.
    script.extend(rubbish());
    script.extend([fine(), fine()]);
    script.extend(rubbish());
    script.push(fine());
    let (transport, screener) = complete(world(script), 12);
    let found = screener.screen(&["{\"a\":1}", "{\"a\":2}", "{\"a\":3}"]).await.unwrap();
    let code = |found: &Opinion| match found {
        Opinion::Acceptable => String::new(),
        Opinion::Objectionable { code, .. } => code.clone(),
    };
    assert_eq!(found.iter().map(code).collect::<Vec<_>>(), ["no_verdict", "", ""]);
    assert!(transport.script.lock().is_empty());
    // While it answers about nothing, nothing is refused.
    let all = rubbish().into_iter().chain(rubbish()).collect();
    let (_, screener) = complete(world(all), 12);
    assert_eq!(screener.screen(&["{}"]).await, Err(held(LONG_HOLD)));
}
