//! Scenarios about the board: requests, answers, choices, and who is told.

use types::vocabulary::{ItemKind, PaidWith, ReportKind, ReportReason, RequestKind, RequestStatus};
use types::{AgentId, OperatorId, RequestId};

use super::fixture::{agent, at, job, new_project, open, operator, project, race};
use super::money::{Market, give};
use crate::{
    Answered, BoardRequest, Chosen, Closed, NewAnswer, NewItemLink, NewRequest, RequestCount, RequestFilter, Store,
    Visibility, Withdrawn,
};

type Who = (AgentId, OperatorId);

/// A requester, and a market whose seller answers.
struct Board {
    market: Market,
    requester: Who,
    seller: Who,
}

impl Board {
    /// The buyer of the market asks.
    async fn new(store: &Store) -> Self {
        let market = Market::new(store, 500_000, false).await;
        Self {
            requester: (market.buyers_agent, market.buyer),
            seller: (market.seller.agent, market.seller.operator),
            market,
        }
    }

    fn request(&self, title: &str, deadline: Option<i64>) -> NewRequest {
        NewRequest {
            id: RequestId::new(at(10)),
            agent: self.requester.0,
            operator: self.requester.1,
            title: title.to_owned(),
            body: "Every Price of the HARBOUR, please: 50%_\\ off.".to_owned(),
            kind: RequestKind::Dataset,
            category: "general".to_owned(),
            budget_micro: Some(250_000),
            deadline: deadline.map(at),
            fields: "[]".to_owned(),
            jobs: Vec::new(),
            now: at(10),
        }
    }

    async fn posted(&self, store: &Store, title: &str, deadline: Option<i64>) -> RequestId {
        let new = self.request(title, deadline);
        let id = new.id;
        store.community().post(new).await.unwrap();
        id
    }

    fn answer(&self, request: RequestId, linked: bool) -> NewAnswer {
        NewAnswer {
            request,
            agent: self.seller.0,
            operator: self.seller.1,
            link: linked.then(|| NewItemLink {
                kind: ItemKind::Dataset,
                item: self.market.item.to_string(),
                version: Some(1),
            }),
            note: "This one.".to_owned(),
            now: at(20),
        }
    }
}

/// Fails if the rows about the board contradict each other.
pub(super) async fn board_is_sound(store: &Store) {
    assert_eq!(store.community().faults(9).await.unwrap(), []);
}

async fn shown(store: &Store, id: RequestId, second: i64) -> BoardRequest {
    store.community().request(id, at(second)).await.unwrap().unwrap()
}

fn number(answered: Answered) -> i64 {
    let Answered::Added(id) = answered else {
        unreachable!("it was refused: {answered:?}");
    };
    id
}

/// A request goes from open over answered to fulfilled, and says what its operator bought.
pub async fn a_request_is_answered_chosen_and_bought(url: &str) {
    let store = open(url).await;
    let board = Board::new(&store).await;
    let id = board.posted(&store, "Prices", None).await;
    let community = store.community();
    let of = shown(&store, id, 11).await;
    assert_eq!(
        (of.status, of.agent_name.as_str(), of.answer_count, of.budget_micro),
        (RequestStatus::Open, "shopper", 0, Some(250_000))
    );
    let own = NewAnswer {
        agent: board.requester.0,
        operator: board.requester.1,
        ..board.answer(id, false)
    };
    assert_eq!(community.answer(own).await.unwrap(), Answered::Own);
    let note = number(community.answer(board.answer(id, false)).await.unwrap());
    let link = number(community.answer(board.answer(id, true)).await.unwrap());
    assert_eq!(
        community.answer(board.answer(id, true)).await.unwrap(),
        Answered::Repeated
    );
    let of = shown(&store, id, 21).await;
    assert_eq!((of.status, of.answer_count), (RequestStatus::Answered, 2));
    let (mine, theirs) = (board.requester.1, board.seller.1);
    let choose = async |answer, who| community.choose(id, answer, who, at(30)).await.unwrap();
    assert_eq!(choose(link, theirs).await, Chosen::NotRequester);
    assert_eq!(choose(note, mine).await, Chosen::NoItem);
    assert_eq!(choose(link + 100, mine).await, Chosen::NoAnswer);
    assert_eq!(choose(link, mine).await, Chosen::Done);
    assert_eq!(choose(link, mine).await, Chosen::Over(RequestStatus::Fulfilled));
    assert_eq!(
        community.close(id, mine, at(31)).await.unwrap(),
        Closed::Over(RequestStatus::Fulfilled)
    );
    assert_eq!(
        community.answer(board.answer(id, false)).await.unwrap(),
        Answered::Over(RequestStatus::Fulfilled)
    );
    assert_eq!(
        store.comments().withdraw(link, theirs, at(32)).await.unwrap(),
        Withdrawn::Chosen
    );
    let of = shown(&store, id, 33).await;
    assert_eq!((of.chosen, of.decided_at), (Some(link), Some(at(30))));
    let bought = async || {
        let answers = community.answers(id, mine, 10).await.unwrap();
        assert_eq!(
            answers.iter().map(|answer| answer.comment.id).collect::<Vec<_>>(),
            [note, link]
        );
        assert_eq!(
            (answers[0].link.as_ref(), answers[0].comment.body.as_str()),
            (None, "This one.")
        );
        let link = answers[1].link.clone().unwrap();
        assert_eq!(
            (link.name.as_str(), link.version, link.price_micro),
            ("prices", Some(1), Some(500_000))
        );
        answers[1].bought_with
    };
    assert_eq!(bought().await, None);
    give(&store, mine, 500_000, false, "a grant").await;
    let _purchased = store.money().purchase(board.market.purchase(40)).await.unwrap();
    assert_eq!(bought().await, Some(PaidWith::Credits));
    assert_eq!(community.answers(id, mine, 1).await.unwrap().len(), 1);
    board_is_sound(&store).await;
}

/// A deadline ends a request at its instant, and the job only writes that down.
pub async fn a_request_is_over_at_its_deadline(url: &str) {
    let store = open(url).await;
    let board = Board::new(&store).await;
    let id = board.posted(&store, "Prices", Some(100)).await;
    let community = store.community();
    assert_eq!(shown(&store, id, 99).await.status, RequestStatus::Open);
    let over = shown(&store, id, 100).await;
    assert_eq!((over.status, over.decided_at), (RequestStatus::Expired, Some(at(100))));
    let late = NewAnswer {
        now: at(100),
        ..board.answer(id, false)
    };
    assert_eq!(
        community.answer(late).await.unwrap(),
        Answered::Over(RequestStatus::Expired)
    );
    assert_eq!(
        community.close(id, board.requester.1, at(100)).await.unwrap(),
        Closed::Over(RequestStatus::Expired)
    );
    assert!(!community.expire(id, at(99)).await.unwrap());
    assert!(community.expire(id, at(101)).await.unwrap());
    assert!(!community.expire(id, at(102)).await.unwrap());
    assert_eq!(shown(&store, id, 200).await.decided_at, Some(at(100)));
    let closed = board.posted(&store, "More", Some(100)).await;
    assert_eq!(
        community.close(closed, board.seller.1, at(50)).await.unwrap(),
        Closed::NotRequester
    );
    assert_eq!(
        community.close(closed, board.requester.1, at(50)).await.unwrap(),
        Closed::Done
    );
    assert!(!community.expire(closed, at(101)).await.unwrap());
    assert_eq!(shown(&store, closed, 101).await.status, RequestStatus::Closed);
    // The jobs of a request are added with it.
    let with_job = NewRequest {
        jobs: vec![job(at(100))],
        ..board.request("With a job", Some(100))
    };
    community.post(with_job).await.unwrap();
    let due = store
        .flow()
        .jobs_lease(at(100), std::time::Duration::from_mins(1), 9)
        .await
        .unwrap();
    assert_eq!(due.len(), 1);
}

/// Words are found whatever their case and literally; counts know statuses that no row has yet.
pub async fn requests_are_found_by_words_and_counted(url: &str) {
    let store = open(url).await;
    let board = Board::new(&store).await;
    let open_one = board.posted(&store, "ÉCOLE prices", None).await;
    let over = board.posted(&store, "Weather", Some(50)).await;
    let community = store.community();
    let found = async |filter: RequestFilter| {
        let page = community.requests(&filter, at(60), 0, 10).await.unwrap();
        page.into_iter().map(|request| request.id).collect::<Vec<_>>()
    };
    let words = |words: &[&str]| RequestFilter {
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        ..RequestFilter::default()
    };
    assert_eq!(found(words(&[])).await.len(), 2);
    assert_eq!(found(words(&["école", "harbour"])).await, [open_one]);
    assert_eq!(found(words(&["école", "weather"])).await, []);
    assert_eq!(found(words(&["50%_\\"])).await.len(), 2);
    assert_eq!(found(words(&["%"])).await.len(), 2);
    assert_eq!(found(words(&["5_%"])).await, []);
    assert_eq!(found(words(&["nul\0"])).await, []);
    let expired = RequestFilter {
        status: Some(RequestStatus::Expired),
        kind: Some(RequestKind::Dataset),
        category: Some("general".to_owned()),
        ..RequestFilter::default()
    };
    assert_eq!(found(expired.clone()).await, [over]);
    let other = RequestFilter {
        category: Some("other".to_owned()),
        ..RequestFilter::default()
    };
    assert_eq!(found(other).await, []);
    let mut counts = community.request_counts(&expired, at(60)).await.unwrap();
    counts.sort_by_key(|count| count.status);
    let count = |status| RequestCount {
        status,
        kind: RequestKind::Dataset,
        category: "general".to_owned(),
        count: 1,
    };
    assert_eq!(counts, [count(RequestStatus::Open), count(RequestStatus::Expired)]);
    // Equal times are ordered by id, newest first, and pages follow each other.
    let all = found(words(&[])).await;
    for (offset, id) in (0..).zip(&all) {
        let page = community.requests(&words(&[]), at(60), offset, 1).await.unwrap();
        assert_eq!(page[0].id, *id);
    }
    assert!(all[0] > all[1]);
    assert!(
        store
            .moderation()
            .hide(ReportKind::Topic, over.to_string(), Some(ReportReason::Spam), at(61))
            .await
            .unwrap()
    );
    assert!(
        !store
            .moderation()
            .hide(ReportKind::Topic, over.to_string(), Some(ReportReason::Spam), at(62))
            .await
            .unwrap()
    );
    assert_eq!(found(words(&[])).await, [open_one]);
    assert_eq!(community.request_counts(&words(&[]), at(60)).await.unwrap().len(), 1);
    assert_eq!(community.request(over, at(63)).await.unwrap(), None);
    assert_eq!(
        community.close(over, board.requester.1, at(63)).await.unwrap(),
        Closed::Missing
    );
    assert!(
        store
            .moderation()
            .hide(ReportKind::Topic, over.to_string(), None, at(64))
            .await
            .unwrap()
    );
    assert_eq!(found(words(&[])).await.len(), 2);
}

/// Of many choices, closes and answers at once, one decides, and an item answers once.
pub async fn one_of_many_decides_a_request(url: &str) {
    let store = open(url).await;
    let board = Board::new(&store).await;
    let id = board.posted(&store, "Prices", None).await;
    let stores = [store.clone(), open(url).await];
    let new = board.answer(id, true);
    let answered = race(stores.clone(), 6, move |store, _| {
        let new = new.clone();
        async move { store.community().answer(new).await.unwrap() }
    })
    .await;
    let added: Vec<_> = answered
        .into_iter()
        .filter_map(|answered| match answered {
            Answered::Added(id) => Some(id),
            _ => None,
        })
        .collect();
    assert_eq!((added.len(), shown(&store, id, 30).await.answer_count), (1, 1));
    let (answer, requester) = (added[0], board.requester.1);
    let decided = race(stores, 6, move |store, number| async move {
        let community = store.community();
        if number % 2 == 0 {
            community.choose(id, answer, requester, at(30)).await.unwrap() == Chosen::Done
        } else {
            community.close(id, requester, at(30)).await.unwrap() == Closed::Done
        }
    })
    .await;
    assert_eq!(decided.into_iter().filter(|done| *done).count(), 1);
    board_is_sound(&store).await;
}

/// An answer that was withdrawn links nothing and makes room; a hidden one is gone; a hidden item is not named.
pub async fn what_is_withdrawn_or_hidden_is_not_chosen(url: &str) {
    let store = open(url).await;
    let board = Board::new(&store).await;
    let id = board.posted(&store, "Prices", None).await;
    let (community, comments) = (store.community(), store.comments());
    let (mine, theirs) = (board.requester.1, board.seller.1);
    let first = number(community.answer(board.answer(id, true)).await.unwrap());
    assert_eq!(
        comments.withdraw(first, mine, at(21)).await.unwrap(),
        Withdrawn::NotAuthor
    );
    assert_eq!(comments.withdraw(first, theirs, at(21)).await.unwrap(), Withdrawn::Done);
    assert_eq!(
        comments.withdraw(first, theirs, at(22)).await.unwrap(),
        Withdrawn::Before
    );
    assert_eq!(community.choose(id, first, mine, at(23)).await.unwrap(), Chosen::NoItem);
    let second = number(community.answer(board.answer(id, true)).await.unwrap());
    assert!(
        store
            .moderation()
            .hide(
                ReportKind::Comment,
                second.to_string(),
                Some(ReportReason::Spam),
                at(24)
            )
            .await
            .unwrap()
    );
    assert_eq!(
        community.choose(id, second, mine, at(25)).await.unwrap(),
        Chosen::NoAnswer
    );
    let answers = community.answers(id, mine, 10).await.unwrap();
    assert_eq!(
        answers
            .iter()
            .map(|answer| (answer.comment.id, answer.link.is_some()))
            .collect::<Vec<_>>(),
        [(first, false)]
    );
    assert_eq!(answers[0].comment.body, "");
    let hidden = NewItemLink {
        kind: ItemKind::Dataset,
        item: {
            let private = crate::NewProject {
                visibility: Visibility::Private,
                ..new_project(theirs, "secret")
            };
            project(&store, private).await.to_string()
        },
        version: None,
    };
    let third = NewAnswer {
        link: Some(hidden),
        ..board.answer(id, true)
    };
    let third = number(community.answer(third).await.unwrap());
    assert_eq!(community.choose(id, third, mine, at(26)).await.unwrap(), Chosen::NoItem);
    let answers = community.answers(id, mine, 10).await.unwrap();
    assert_eq!(
        (answers[1].comment.body.as_str(), answers[1].link.as_ref()),
        ("This one.", None)
    );
    board_is_sound(&store).await;
}

/// An operator is told of a request once, and as long as it takes answers.
pub async fn a_seller_is_told_of_a_request_once(url: &str) {
    let store = open(url).await;
    let board = Board::new(&store).await;
    let id = board.posted(&store, "Prices", Some(100)).await;
    let community = store.community();
    let third = operator(&store, "cy@example.org").await;
    let _agent = agent(&store, third, "cy").await;
    let seller = (board.seller.1, ItemKind::Dataset, board.market.item.to_string());
    let more = vec![seller.clone(), (third, ItemKind::Unit, "unit".to_owned())];
    assert_eq!(community.tell(id, vec![seller], at(20)).await.unwrap(), 1);
    assert_eq!(community.tell(id, more.clone(), at(30)).await.unwrap(), 1);
    assert_eq!(community.tell(id, more, at(40)).await.unwrap(), 0);
    let told = community.told(board.seller.1, at(99), 10).await.unwrap();
    assert_eq!(
        told.iter()
            .map(|told| (told.request, told.title.as_str(), told.at))
            .collect::<Vec<_>>(),
        [(id, "Prices", at(20))]
    );
    assert_eq!(community.told(board.requester.1, at(99), 10).await.unwrap(), []);
    assert_eq!(community.told(board.seller.1, at(100), 10).await.unwrap(), []);
}
