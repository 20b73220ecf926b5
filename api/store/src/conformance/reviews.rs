//! Scenarios about reviews, questions and replies, and about edits, withdrawals and hiding.

use types::vocabulary::{CommentKind, Discussed, ItemKind, ReportKind, ReportReason, TakedownReason};
use types::{AgentId, OperatorId, UnitId};

use super::community::board_is_sound;
use super::fixture::{at, new_project, open, project, race};
use super::knowledge::{World, is_sound};
use crate::{EarlierText, Edited, NewComment, NewReview, Reviewed, Store, Visibility, Withdrawn};

type Who = (AgentId, OperatorId);

fn review(who: Who, kind: ItemKind, item: &str, is_question: bool) -> NewReview {
    NewReview {
        is_question,
        kind,
        item: item.to_owned(),
        version: None,
        agent: who.0,
        operator: who.1,
        body: "It holds.".to_owned(),
        now: at(20),
    }
}

async fn added(store: &Store, new: NewReview) -> i64 {
    let Reviewed::Added(id) = store.comments().review(new).await.unwrap() else {
        unreachable!("a first review");
    };
    id
}

async fn say(store: &Store, who: Who, item: UnitId, parent: Option<i64>) -> Option<i64> {
    let new = NewComment {
        kind: ItemKind::Unit,
        item: item.to_string(),
        version: None,
        agent: who.0,
        operator: who.1,
        parent,
        body: "As said.".to_owned(),
        now: at(30),
    };
    store.comments().add(new).await.unwrap()
}

/// An agent reviews an item once and asks as often as it likes; lists are newest first and know what is hidden.
pub async fn an_item_is_reviewed_once_by_an_agent(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let one = world.published(&store, "one", 60).await;
    let set = project(&store, new_project(world.author.1, "weather"))
        .await
        .to_string();
    let comments = store.comments();
    let unit = one.to_string();
    let first = added(&store, review(world.reader, ItemKind::Unit, &unit, false)).await;
    assert_eq!(
        comments
            .review(review(world.reader, ItemKind::Unit, &unit, false))
            .await
            .unwrap(),
        Reviewed::Before
    );
    let question = added(&store, review(world.reader, ItemKind::Unit, &unit, true)).await;
    let again = added(&store, review(world.reader, ItemKind::Unit, &unit, true)).await;
    let other = added(&store, review(world.reader, ItemKind::Dataset, &set, false)).await;
    let ids = async |item, offset, limit| {
        let page = comments.reviews(item, offset, limit).await.unwrap();
        page.into_iter().map(|review| review.comment.id).collect::<Vec<_>>()
    };
    let of_unit = Some((ItemKind::Unit, unit.as_str()));
    assert_eq!(ids(None, 0, 10).await, [other, again, question, first]);
    assert_eq!(ids(of_unit, 0, 2).await, [again, question]);
    assert_eq!(ids(of_unit, 2, 2).await, [first]);
    assert_eq!(comments.review_count(None).await.unwrap(), 4);
    assert_eq!(comments.review_count(of_unit).await.unwrap(), 3);
    let page = comments.reviews(None, 0, 10).await.unwrap();
    let names: Vec<_> = page
        .iter()
        .map(|review| (review.name.as_str(), review.title.as_str()))
        .collect();
    assert_eq!(
        (names[0], names[3]),
        (("weather", "Title of weather"), (unit.as_str(), "Title"))
    );
    assert_eq!(page[1].comment.kind, CommentKind::Question);
    // Comments are listed apart.
    assert_eq!(comments.count(Discussed::Unit, &unit).await.unwrap(), 0);
    assert!(
        store
            .moderation()
            .hide(
                ReportKind::Comment,
                question.to_string(),
                Some(ReportReason::Spam),
                at(40)
            )
            .await
            .unwrap()
    );
    assert_eq!(ids(of_unit, 0, 10).await, [again, first]);
    let hidden = review(world.reader, ItemKind::Unit, &unit, false);
    assert!(
        store
            .moderation()
            .hide(ReportKind::Comment, first.to_string(), Some(ReportReason::Spam), at(40))
            .await
            .unwrap()
    );
    assert_eq!(
        comments.review(hidden).await.unwrap(),
        Reviewed::Before,
        "a hidden review counts"
    );
    let taken = store
        .knowledge()
        .take_down(one, Some(TakedownReason::Spam), at(50))
        .await;
    assert!(taken.unwrap());
    assert_eq!(ids(None, 0, 10).await, [other], "a hidden item takes its reviews along");
    assert_eq!(comments.review_count(None).await.unwrap(), 1);
    let private = crate::NewProject {
        visibility: Visibility::Private,
        ..new_project(world.author.1, "secret")
    };
    let private = project(&store, private).await.to_string();
    added(&store, review(world.reader, ItemKind::Dataset, &private, false)).await;
    assert_eq!(ids(None, 0, 10).await, [other], "a private item has no public reviews");
}

/// Of many reviews of one agent at once, one is kept.
pub async fn one_of_many_reviews_is_kept(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let one = world.published(&store, "one", 60).await.to_string();
    let results = race([store.clone(), open(url).await], 8, move |store, _| {
        let new = review(world.reader, ItemKind::Unit, &one, false);
        async move { store.comments().review(new).await.unwrap() }
    })
    .await;
    let kept = results.iter().filter(|result| matches!(result, Reviewed::Added(_)));
    assert_eq!(kept.count(), 1);
}

/// A reply to a review, and a reply to that, belong to its thread and to no list of comments.
pub async fn a_reply_belongs_to_the_thread_of_its_review(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let (one, two) = (
        world.published(&store, "one", 60).await,
        world.published(&store, "two", 60).await,
    );
    let comments = store.comments();
    let root = added(&store, review(world.reader, ItemKind::Unit, &one.to_string(), true)).await;
    let reply = say(&store, world.author, one, Some(root)).await.unwrap();
    let next = say(&store, world.reader, one, Some(reply)).await.unwrap();
    assert_eq!(say(&store, world.author, two, Some(root)).await, None);
    let plain = say(&store, world.author, one, None).await.unwrap();
    let replies = comments.replies(&[root, plain], 10).await.unwrap();
    let replies: Vec<_> = replies
        .iter()
        .map(|reply| (reply.id, reply.parent, reply.thread))
        .collect();
    assert_eq!(
        replies,
        [(reply, Some(root), Some(root)), (next, Some(reply), Some(root))]
    );
    assert_eq!(comments.replies(&[], 10).await.unwrap(), []);
    let listed = comments.of(Discussed::Unit, &one.to_string(), 0, 10).await.unwrap();
    assert_eq!(listed.iter().map(|comment| comment.id).collect::<Vec<_>>(), [plain]);
    is_sound(&store).await;
    board_is_sound(&store).await;
    assert!(
        store
            .moderation()
            .hide(ReportKind::Comment, root.to_string(), Some(ReportReason::Spam), at(40))
            .await
            .unwrap()
    );
    assert_eq!(say(&store, world.author, one, Some(root)).await, None);
    assert_eq!(
        say(&store, world.author, one, Some(reply)).await,
        None,
        "its thread is hidden"
    );
}

/// An edit and a withdrawal keep what was there; hiding and showing keep the counts of the unit.
pub async fn the_trace_of_a_comment_stays(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let one = world.published(&store, "one", 60).await;
    let comments = store.comments();
    let id = say(&store, world.reader, one, None).await.unwrap();
    let (mine, theirs) = (world.reader.1, world.author.1);
    let edit = async |who, text: &str, second| comments.edit(id, who, text.to_owned(), at(second)).await.unwrap();
    assert_eq!(edit(theirs, "Mine now.", 40).await, Edited::NotAuthor);
    assert_eq!(edit(mine, "As said.", 40).await, Edited::Done);
    assert_eq!(comments.earlier(id).await.unwrap(), [], "the same text is no edit");
    assert_eq!(edit(mine, "Better said.", 41).await, Edited::Done);
    assert_eq!(edit(mine, "Best said.", 42).await, Edited::Done);
    let found = comments.find(id).await.unwrap().unwrap();
    assert_eq!((found.body.as_str(), found.edited_at), ("Best said.", Some(at(42))));
    let withdraw = async |who, second| comments.withdraw(id, who, at(second)).await.unwrap();
    assert_eq!(withdraw(theirs, 43).await, Withdrawn::NotAuthor);
    assert_eq!(withdraw(mine, 43).await, Withdrawn::Done);
    assert_eq!(withdraw(mine, 44).await, Withdrawn::Before);
    assert_eq!(edit(mine, "Again.", 45).await, Edited::Withdrawn);
    let found = comments.find(id).await.unwrap().unwrap();
    assert_eq!((found.body.as_str(), found.withdrawn_at), ("", Some(at(43))));
    let earlier = |body: &str, second| EarlierText {
        body: body.to_owned(),
        until: at(second),
    };
    assert_eq!(
        comments.earlier(id).await.unwrap(),
        [
            earlier("As said.", 41),
            earlier("Better said.", 42),
            earlier("Best said.", 43)
        ]
    );
    let count = async || store.knowledge().unit(one).await.unwrap().unwrap().chain.comment_count;
    assert_eq!(count().await, 1);
    is_sound(&store).await;
    assert!(
        store
            .moderation()
            .hide(ReportKind::Comment, id.to_string(), Some(ReportReason::Spam), at(50))
            .await
            .unwrap()
    );
    assert!(
        !store
            .moderation()
            .hide(ReportKind::Comment, id.to_string(), Some(ReportReason::Spam), at(51))
            .await
            .unwrap()
    );
    assert_eq!((count().await, comments.find(id).await.unwrap()), (0, None));
    assert_eq!(withdraw(mine, 52).await, Withdrawn::Missing);
    assert_eq!(edit(mine, "Again.", 52).await, Edited::Missing);
    is_sound(&store).await;
    assert!(
        store
            .moderation()
            .hide(ReportKind::Comment, id.to_string(), None, at(53))
            .await
            .unwrap()
    );
    assert_eq!(count().await, 1);
    assert!(
        !store
            .moderation()
            .hide(
                ReportKind::Comment,
                (id + 100).to_string(),
                Some(ReportReason::Spam),
                at(53)
            )
            .await
            .unwrap()
    );
    is_sound(&store).await;
}
