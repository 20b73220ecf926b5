//! The service of the table, its callers, and the items in their states.

use std::cell::Cell;
use std::time::Duration;

use serde_json::{Value, json};
use store::{OutcomeRow, Resolution};
use types::unit::UnitResolution;
use types::vocabulary::{ReportKind, ReportReason};
use types::{Clock as _, HumanDuration, OperatorId, UnitId};

use super::calls::{By, Call};
use crate::config::Limits;
use crate::ops::knowledge::tests::World;
use crate::testing::{Got, count, limits};

/// Id of nothing.
const ABSENT: &str = "01890000-0000-7000-8000-000000000000";
/// Number of no comment.
const NO_NUMBER: i64 = 999_999_999;

/// An operator with its agent.
#[derive(Clone, Debug)]
struct Agent {
    name: String,
    key: String,
    token: String,
    operator: OperatorId,
}

/// An item in a state.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) kind: &'static str,
    pub(super) state: &'static str,
    /// Slug, id or name; of what is said about a dataset, the slug of that.
    pub(super) name: String,
    /// Number of the comment, review or answer.
    pub(super) number: i64,
    /// Word of its title that no other item has.
    pub(super) word: String,
    /// Text by which it shows in lists.
    pub(super) mark: String,
    /// Texts that no answer contains.
    pub(super) hidden: Vec<String>,
    /// Version that is the latest.
    pub(super) versions: u64,
    /// Contribution of another operator's agent, or of the owner's to a private dataset.
    pub(super) batch: String,
    /// Pages with the name of the agent.
    pub(super) places: Vec<String>,
    /// Signed addresses of a part by the caller that got them.
    addresses: Vec<(&'static str, String)>,
    owner: Agent,
    /// Key of the caller `other`.
    other: String,
}

impl Item {
    /// Returns an item that does not exist, in the place of one that a caller may not know of.
    pub(super) fn absent(&self) -> Self {
        let mut absent = self.clone();
        match self.kind {
            // Of a dataset that is shown, what is missing is the contribution.
            "dataset" if !self.state.contains("private") && !self.state.contains("taken down") => {
                absent.batch = ABSENT.to_owned();
            }
            "comment" | "review (community)" if self.state == "taken down" => absent.number = NO_NUMBER,
            "answer" => absent.number = NO_NUMBER,
            "dataset" | "comment" | "review (community)" | "agent" => absent.name = "absent".to_owned(),
            _ => absent.name = ABSENT.to_owned(),
        }
        if !matches!(self.kind, "dataset" | "agent") {
            absent.number = NO_NUMBER;
        }
        absent
    }

    /// Returns a text about the item as it is about one that does not exist.
    pub(super) fn renamed(&self, text: &str) -> String {
        let absent = self.absent();
        let text = text.replace(&self.name, &absent.name);
        if self.batch.is_empty() {
            return text;
        }
        text.replace(&self.batch, &absent.batch)
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.state.contains("suspended")
    }

    /// Returns the address of a part that a caller got, or that somebody gave it.
    pub(super) fn address(&self, caller: &str) -> String {
        let own = self.addresses.iter().find(|(got, _)| *got == caller);
        let (_, address) = own.or_else(|| self.addresses.first()).unwrap();
        address.clone()
    }
}

pub(super) struct Scene {
    world: World,
    owner: Agent,
    buyer: Agent,
    other: Agent,
    /// Posts the requests that items answer, and answers those that are chosen.
    third: Agent,
    made: Cell<u32>,
}

impl Scene {
    pub(super) async fn set() -> Self {
        const MANY: u32 = 1_000_000;
        let world = World::with(Limits {
            calls_per_ip_per_minute: count(MANY),
            agent_registrations_per_ip_per_hour: MANY,
            active_projects_per_operator: MANY,
            public_contributions_per_day: MANY,
            knowledge_per_day: MANY,
            submissions_per_agent_per_hour: MANY,
            revisions_per_agent_per_hour: MANY,
            ratings_per_agent_per_hour: MANY,
            validations_per_agent_per_hour: MANY,
            comments_per_agent_per_hour: MANY,
            reports_per_ip_per_hour: MANY,
            requests_per_agent_per_hour: MANY,
            answers_per_agent_per_hour: MANY,
            decisions_per_agent_per_hour: MANY,
            reviews_per_agent_per_hour: MANY,
            open_uploads: MANY,
            price_change_window: HumanDuration(Duration::ZERO),
            ..limits()
        })
        .await;
        let made = Cell::new(0);
        let scene = Self {
            owner: newcomer(&world, &made).await,
            buyer: newcomer(&world, &made).await,
            other: newcomer(&world, &made).await,
            third: newcomer(&world, &made).await,
            world,
            made,
        };
        for agent in [&scene.buyer, &scene.other] {
            scene.world.service.granted(agent.operator, 1_000_000_000).await;
        }
        scene
            .world
            .service
            .project(&scene.third.key, "offered-by-third", &json!({}))
            .await;
        scene
    }

    /// Returns a text that nothing else here has.
    pub(super) fn fresh(&self, word: &str) -> String {
        fresh(&self.made, word)
    }

    /// Returns the credential of a caller.
    pub(super) fn key<'a>(&'a self, item: &'a Item, caller: &str) -> Option<&'a str> {
        match caller {
            "none" => None,
            "owner" => Some(&item.owner.key),
            "buyer" => Some(&self.buyer.key),
            "other" => Some(&item.other),
            other => panic!("{other}"),
        }
    }

    pub(super) async fn send(&self, call: &Call, key: Option<&str>) -> Got {
        let key = match call.by {
            By::Caller => key,
            By::Nobody => None,
            By::Person => Some(self.third.token.as_str()),
        };
        let body = if call.body.is_null() {
            String::new()
        } else {
            call.body.to_string()
        };
        self.world.service.call(call.method, &call.path, key, &body).await
    }

    /// Sends what makes an item, which succeeds.
    async fn sent(&self, agent: &Agent, path: &str, body: &Value) -> Value {
        let got = self.world.post(path, Some(&agent.key), body).await;
        assert!(got.status.is_success(), "{path}: {}", got.text());
        got.json()
    }

    pub(super) async fn refresh(&self) {
        let app = &self.world.service.app;
        app.process.searching.refresh(&app.store).await.unwrap();
    }

    /// Lets the time pass for which a ranking is remembered.
    pub(super) fn wait_for_ranking(&self) {
        self.world.service.clock.advance(Duration::from_secs(61));
    }

    /// Posts a request that the items of others may answer, and returns its id.
    pub(super) async fn request(&self, kind: &str) -> String {
        let body = json!({"title": "Something to buy", "body": "Whatever there is of it.", "kind": kind});
        let made = self.sent(&self.third, "/community/requests", &body).await;
        made["id"].as_str().unwrap().to_owned()
    }

    /// Makes an item in a state.
    pub(super) async fn item(&self, kind: &'static str, state: &'static str) -> Item {
        let word = self.fresh("zebra");
        let is_newcomer = state.contains("suspended") || kind == "agent";
        let owner = if is_newcomer {
            newcomer(&self.world, &self.made).await
        } else {
            self.owner.clone()
        };
        let mut item = Item {
            kind,
            state,
            name: word.clone(),
            number: NO_NUMBER,
            mark: word.clone(),
            word,
            hidden: Vec::new(),
            versions: 1,
            batch: String::new(),
            places: Vec::new(),
            addresses: Vec::new(),
            owner,
            other: self.other.key.clone(),
        };
        match kind {
            "dataset" => self.dataset(&mut item).await,
            "unit" => self.unit(&mut item).await,
            "comment" | "review (community)" => self.said(&mut item).await,
            "request" => self.requested(&mut item).await,
            "answer" => self.answer(&mut item).await,
            "agent" => self.agent(&mut item).await,
            other => panic!("{other}"),
        }
        if item.is_suspended() {
            let (store, now) = (&self.world.service.app.store, self.world.service.clock.now());
            let suspended = store.operator_suspend(item.owner.operator, "spam".to_owned(), now);
            suspended.await.unwrap();
        }
        // Longer than anything of an item is remembered.
        self.world.service.clock.advance(Duration::from_secs(1));
        item
    }

    async fn project(&self, owner: &Agent, slug: &str, more: &Value) {
        let service = &self.world.service;
        let mut members = json!({"title": format!("Title {slug}")});
        members
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        service.project(&owner.key, slug, &members).await;
        service.merged(&owner.key, slug, &[json!({"name": "a"})]).await;
    }

    async fn dataset(&self, item: &mut Item) {
        let (owner, slug, state) = (item.owner.clone(), item.name.clone(), item.state);
        let (is_paid, is_private) = (state.contains("paid"), state.starts_with("private"));
        let more = match (is_paid, is_private) {
            (true, _) => json!({"access": "paid", "price": "0.10"}),
            (_, true) => json!({"visibility": "private"}),
            _ => json!({}),
        };
        self.project(&owner, &slug, &more).await;
        let contributor = if is_private { &owner } else { &self.other };
        item.batch = self.rejected(contributor, &slug).await;
        if state.contains("bought by buyer") {
            self.sent(&self.buyer, &format!("/projects/{slug}/buy"), &json!({}))
                .await;
        }
        if state.contains("older version") {
            let more = [json!({"name": "b"})];
            self.world.service.merged(&owner.key, &slug, &more).await;
            item.versions = 2;
        }
        // A suspended operator gets no address.
        let owners = (!item.is_suspended()).then_some(("owner", owner.key.as_str()));
        let others = [("buyer", self.buyer.key.as_str()), ("other", item.other.as_str())];
        for (caller, key) in owners.into_iter().chain(others) {
            let manifest = format!("/projects/{slug}/manifest?version=1");
            let got = self.world.get(&manifest, Some(key)).await;
            if got.status == 200 {
                item.addresses.push((caller, part(&got.json())));
            }
        }
        for (word, status) in [(", paused", "paused"), (", archived", "archived")] {
            if state.ends_with(word) {
                let path = format!("/projects/{slug}");
                let body = json!({"status": status}).to_string();
                let got = self.world.service.call("PATCH", &path, Some(&owner.key), &body).await;
                assert_eq!(got.status, 200, "{}", got.text());
            }
        }
        if let Some(reason) = reason(state) {
            let project = self.world.service.app.store.project_by_slug(&slug, None).await;
            let id = project.unwrap().unwrap().id.to_string();
            self.hide(ReportKind::Dataset, id, reason).await;
        }
    }

    /// Contributes a batch that is refused, and returns its id.
    async fn rejected(&self, contributor: &Agent, slug: &str) -> String {
        let service = &self.world.service;
        let body = json!({"records": [{"name": self.fresh("record")}]});
        let sent = self
            .sent(contributor, &format!("/projects/{slug}/contribute"), &body)
            .await;
        let id = sent["id"].as_str().unwrap().to_owned();
        let outcome = OutcomeRow {
            id: id.parse().unwrap(),
            generation: 0,
            at: service.clock.now(),
            resolution: Resolution::Rejected {
                code: "refused".to_owned(),
                message: "1 of 1 records".to_owned(),
            },
            tallies: "[]".to_owned(),
            verdicts: "[]".to_owned(),
        };
        assert!(service.app.store.outcomes_apply(vec![outcome]).await.unwrap()[0].changed);
        id
    }

    async fn hide(&self, kind: ReportKind, item: String, reason: ReportReason) {
        let (store, now) = (&self.world.service.app.store, self.world.service.clock.now());
        let hidden = store.moderation().hide(kind, item, Some(reason), now).await;
        assert!(hidden.unwrap());
    }

    /// Submits a unit and returns its id.
    async fn submitted(&self, owner: &Agent, word: &str, price: &Value) -> String {
        let body = json!({
            "title": format!("Title {word}"),
            "body": format!("Measured {word} here."),
            "category": "tool-usage",
            "sourceDeclaration": "Ran here today.",
            "price": price,
        });
        let made = self.sent(owner, "/knowledge", &body).await;
        made["id"].as_str().unwrap().to_owned()
    }

    async fn unit(&self, item: &mut Item) {
        let (owner, state) = (item.owner.clone(), item.state);
        let price = match state {
            state if state.contains("priced 0") => json!("0"),
            "queued" | "waiting" | "rejected" => Value::Null,
            state if state.contains("unpriced") => Value::Null,
            _ => json!("0.25"),
        };
        let id = self.submitted(&owner, &item.word, &price).await;
        item.name.clone_from(&id);
        item.mark.clone_from(&id);
        match state {
            "queued" => return,
            "waiting" => {
                let waiting = UnitResolution::Waiting {
                    reason: "provider".to_owned(),
                    resumes_after: None,
                };
                assert!(self.world.apply(&id, waiting).await);
                return;
            }
            "rejected" => return self.world.reject(&id).await,
            _ => self.world.publish(&id, 60).await,
        }
        if state.contains("bought by buyer") {
            self.sent(&self.buyer, &format!("/knowledge/{id}/buy"), &json!({}))
                .await;
        }
        if state.contains("other read it before") {
            let read = self
                .world
                .get(&format!("/knowledge/{id}/full"), Some(&item.other))
                .await;
            assert_eq!(read.status, 200, "{}", read.text());
        }
        if state.starts_with("retired") {
            self.sent(&owner, &format!("/knowledge/{id}/retire"), &json!({})).await;
        }
        if state.starts_with("superseded") {
            let body = json!({"body": format!("Measured {} again.", item.word)});
            let next = self.sent(&owner, &format!("/knowledge/{id}/revise"), &body).await;
            self.world.publish(next["id"].as_str().unwrap(), 61).await;
        }
        if let Some(reason) = reason(state) {
            let id: UnitId = id.parse().unwrap();
            let unit = self.world.service.app.store.knowledge().unit(id).await;
            let chain = unit.unwrap().unwrap().chain.id.to_string();
            self.hide(ReportKind::Unit, chain, reason).await;
        }
    }

    /// Makes a comment of the owner on its dataset, or a review of the owner, which bought another's.
    async fn said(&self, item: &mut Item) {
        let (slug, state) = (self.fresh("stripe"), item.state);
        let body = format!("It holds, says {}.", item.word);
        item.name.clone_from(&slug);
        if item.kind == "comment" {
            let more = match state {
                "on a private project (owner = maintainer)" => json!({"visibility": "private"}),
                _ => json!({}),
            };
            self.project(&item.owner, &slug, &more).await;
            let path = format!("/projects/{slug}/comments");
            let made = self.sent(&item.owner, &path, &json!({"body": body})).await;
            item.number = made["id"].as_i64().unwrap();
        } else {
            let paid = json!({"access": "paid", "price": "0.10"});
            self.project(&self.owner, &slug, &paid).await;
            self.sent(&self.buyer, &format!("/projects/{slug}/buy"), &json!({}))
                .await;
            item.owner = self.buyer.clone();
            let review = json!({"dataset": slug, "body": body});
            let made = self.sent(&item.owner, "/community/reviews", &review).await;
            item.number = made["id"].as_i64().unwrap();
        }
        let kind = match item.kind {
            "comment" => ReportKind::Comment,
            _ => ReportKind::Review,
        };
        match state {
            "taken down" => self.hide(kind, item.number.to_string(), ReportReason::Spam).await,
            "on an item taken down" => {
                let project = self.world.service.app.store.project_by_slug(&slug, None).await;
                let id = project.unwrap().unwrap().id.to_string();
                self.hide(ReportKind::Dataset, id, ReportReason::Spam).await;
            }
            _ => {}
        }
    }

    /// Posts a request and returns its id.
    async fn posted(&self, agent: &Agent, word: &str, more: &Value) -> String {
        let mut body = json!({"title": format!("Wanted {word}"), "body": "Something to buy.", "kind": "dataset"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let made = self.sent(agent, "/community/requests", &body).await;
        made["id"].as_str().unwrap().to_owned()
    }

    /// Answers a request with a dataset and returns the number.
    async fn answered(&self, agent: &Agent, request: &str, slug: &str, note: &str) -> i64 {
        let path = format!("/community/requests/{request}/answers");
        let made = self.sent(agent, &path, &json!({"dataset": slug, "note": note})).await;
        made["id"].as_i64().unwrap()
    }

    async fn requested(&self, item: &mut Item) {
        let (owner, state) = (item.owner.clone(), item.state);
        let clock = &self.world.service.clock;
        let more = match state {
            "expired" => json!({"deadline": clock.now().plus(Duration::from_mins(1)).to_string()}),
            _ => json!({}),
        };
        let id = self.posted(&owner, &item.word, &more).await;
        item.name.clone_from(&id);
        item.mark.clone_from(&id);
        if !matches!(state, "open" | "of a suspended operator") {
            item.number = self.answered(&self.third, &id, "offered-by-third", "Mine.").await;
        }
        let path = |rest: &str| format!("/community/requests/{id}{rest}");
        match state {
            "fulfilled" => {
                self.sent(&owner, &path("/choose"), &json!({"answerId": item.number}))
                    .await;
            }
            "closed" => {
                self.sent(&owner, &path("/close"), &json!({})).await;
            }
            "expired" => clock.advance(Duration::from_mins(2)),
            "taken down" => self.hide(ReportKind::Topic, id, ReportReason::Spam).await,
            _ => {}
        }
    }

    /// Makes an answer of the owner to a request of the caller `other`.
    async fn answer(&self, item: &mut Item) {
        let slug = self.fresh("stripe");
        self.project(&item.owner, &slug, &json!({})).await;
        item.name = self.posted(&self.other, "an answer", &json!({})).await;
        let note = format!("See {}.", item.word);
        item.number = self.answered(&item.owner, &item.name, &slug, &note).await;
        match item.state {
            "taken down" => {
                let number = item.number.to_string();
                self.hide(ReportKind::Comment, number, ReportReason::Spam).await;
            }
            "links an item that was taken down" => {
                let project = self.world.service.app.store.project_by_slug(&slug, None).await;
                let id = project.unwrap().unwrap().id.to_string();
                self.hide(ReportKind::Dataset, id, ReportReason::Spam).await;
                item.hidden.push(slug);
            }
            _ => {}
        }
    }

    /// Makes an agent that sells, contributes, comments, reviews and answers.
    async fn agent(&self, item: &mut Item) {
        let (agent, word) = (item.owner.clone(), item.word.clone());
        item.name.clone_from(&agent.name);
        item.mark.clone_from(&agent.name);
        let unit = self.submitted(&agent, &word, &Value::Null).await;
        self.world.publish(&unit, 90).await;
        self.project(&agent, &word, &json!({})).await;
        let comments = format!("/knowledge/{unit}/comments");
        self.sent(&agent, &comments, &json!({"body": "A comment."})).await;
        let sold = self.fresh("stripe");
        let paid = json!({"access": "paid", "price": "0.10"});
        self.project(&self.owner, &sold, &paid).await;
        self.world.service.granted(agent.operator, 1_000_000).await;
        self.sent(&agent, &format!("/projects/{sold}/buy"), &json!({})).await;
        let review = json!({"dataset": sold, "body": "It holds; I ran it twice."});
        self.sent(&agent, "/community/reviews", &review).await;
        let request = self.request("dataset").await;
        self.answered(&agent, &request, &word, "Mine.").await;
        item.places = vec![
            comments,
            format!("/projects/{word}"),
            format!("/projects/{word}/diff?to=1&limit=0"),
            format!("/community/reviews?dataset={sold}"),
            format!("/community/requests/{request}"),
            format!("/community/t/{request}/comments"),
            "/activity?limit=100".to_owned(),
            "/activity.atom".to_owned(),
        ];
        if item.state == "taken down" {
            for place in &item.places {
                let shown = self.world.get(place, None).await.text();
                assert!(shown.contains(&agent.name), "{place}: {shown}");
            }
            let moderation = self.world.service.app.store.moderation();
            let id = moderation.agent_named(&agent.name).await.unwrap().unwrap();
            self.hide(ReportKind::Agent, id.to_string(), ReportReason::Spam).await;
        }
    }
}

fn fresh(made: &Cell<u32>, word: &str) -> String {
    made.set(made.get() + 1);
    format!("{word}{:05}", made.get())
}

async fn newcomer(world: &World, made: &Cell<u32>) -> Agent {
    let service = &world.service;
    let token = service.operator().await;
    let name = fresh(made, "gauge");
    let key = service.agent(&token, &name).await;
    let hash = crate::secrets::hash(&key);
    let principal = service.app.store.accounts().principal(&hash, service.clock.now()).await;
    let operator = principal.unwrap().unwrap().operator().unwrap();
    Agent {
        name,
        key,
        token,
        operator,
    }
}

/// Returns the reason in the name of a state.
fn reason(state: &str) -> Option<ReportReason> {
    let (_, rest) = state.split_once("taken down (")?;
    Some(rest.trim_end_matches(')').parse().unwrap())
}

/// Returns the path of the first part in a manifest.
fn part(manifest: &Value) -> String {
    let url = manifest["urls"][0]["url"]
        .as_str()
        .or_else(|| manifest["parts"][0]["url"].as_str())
        .unwrap();
    url.strip_prefix("http://sluice.test").unwrap().to_owned()
}
