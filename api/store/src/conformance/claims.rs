//! Scenarios about claim codes, claims, the keys and tokens that come of them, and payout addresses.

use std::time::Duration;

use types::money::MicroUsdc;
use types::vocabulary::ClaimStatus;
use types::{AgentId, ClaimCodeId, ClaimId, OperatorId, Timestamp, TokenId};

use super::fixture::{agent, at, fresh_hash, mail, new_agent, open, operator, race};
use crate::{
    AgentCreated, Approval, ClaimCodeAdded, Claimed, CodeRefused, MAX_WRONG_TRIES, NewClaim, NewClaimCode, NewToken,
    Payout, Polled, Principal, Rejection, SpendLimits, SpendOwner, Store, TokenAdded,
};

const DAY: i64 = 86_400;
const PHRASE: &str = "amber-canoe-tulip";

/// The two parts of a claim code.
#[derive(Clone, Debug)]
struct Code {
    id: ClaimCodeId,
    lookup: String,
    secret: [u8; 32],
}

async fn code_at(store: &Store, operator: OperatorId, seconds: i64) -> Code {
    let id = ClaimCodeId::new(at(seconds));
    let code = Code {
        id,
        lookup: id.to_string(),
        secret: fresh_hash(),
    };
    let new = NewClaimCode {
        id,
        operator,
        lookup: code.lookup.clone(),
        secret_hash: code.secret,
        expires_at: at(seconds + 900),
        now: at(seconds),
    };
    assert_eq!(
        store.accounts().claim_code_add(new, 99).await.unwrap(),
        ClaimCodeAdded::Added
    );
    code
}

fn claim_at(code: &Code, name: &str, seconds: i64) -> NewClaim {
    NewClaim {
        id: ClaimId::new(at(seconds)),
        agent: AgentId::new(at(seconds)),
        lookup: code.lookup.clone(),
        secret_hash: code.secret,
        name: name.to_owned(),
        skeleton: name.to_lowercase(),
        description: Some("reads gauges".to_owned()),
        key_hash: fresh_hash(),
        phrase: PHRASE.to_owned(),
        expires_at: at(seconds + DAY),
        now: at(seconds),
    }
}

/// Makes a code and a claim with it.
async fn waiting(store: &Store, operator: OperatorId, name: &str, seconds: i64) -> NewClaim {
    let code = code_at(store, operator, seconds).await;
    let new = claim_at(&code, name, seconds);
    assert_eq!(store.accounts().claim(new.clone(), 5).await.unwrap(), Claimed::Waiting);
    new
}

async fn status_of(store: &Store, claim: &NewClaim, now: Timestamp) -> Option<ClaimStatus> {
    match store.accounts().principal(&claim.key_hash, now).await.unwrap() {
        Some(Principal::Claimed { status, .. }) => Some(status),
        Some(Principal::Agent { .. }) => Some(ClaimStatus::Approved),
        _ => None,
    }
}

fn count<T: PartialEq>(outcomes: &[T], expected: &T) -> usize {
    outcomes.iter().filter(|outcome| *outcome == expected).count()
}

/// A claim waits, is approved with its phrase however it is typed, and then is an agent whose key works.
pub async fn an_approved_claim_is_an_agent(url: &str) {
    let store = open(url).await;
    let accounts = store.accounts();
    let ada = operator(&store, "ada@example.org").await;
    let eve = operator(&store, "eve@example.org").await;
    let new = waiting(&store, ada, "Gauge", 0).await;
    assert_eq!(status_of(&store, &new, at(1)).await, Some(ClaimStatus::Pending));
    assert_eq!(
        accounts.claim_by_id(new.id, at(1)).await.unwrap().unwrap().name,
        "Gauge"
    );
    assert_eq!(accounts.agents_of(ada, at(1)).await.unwrap(), []);

    let limits = SpendLimits {
        per_month: Some(MicroUsdc(0)),
        ..SpendLimits::default()
    };
    let approve = async |operator, phrase| {
        accounts
            .claim_approve(operator, new.id, phrase, limits, at(5))
            .await
            .unwrap()
    };
    assert_eq!(approve(eve, PHRASE).await, Approval::Unknown);
    assert_eq!(approve(ada, "amber-canoe").await, Approval::WrongPhrase);
    assert_eq!(approve(ada, "ambercanoetulip").await, Approval::WrongPhrase);
    assert_eq!(
        approve(ada, " Amber canoe  TULIP ").await,
        Approval::Approved(new.agent)
    );
    assert_eq!(approve(ada, PHRASE).await, Approval::Decided(ClaimStatus::Approved));
    let rejected = accounts.claim_reject(ada, new.id, at(6)).await.unwrap();
    assert_eq!(rejected, Rejection::Decided(ClaimStatus::Approved));

    let owner = accounts.principal(&new.key_hash, at(2 * DAY)).await.unwrap();
    let agent = Principal::Agent {
        agent: new.agent,
        operator: ada,
        name: "Gauge".to_owned(),
        suspended: false,
        expires_at: None,
    };
    assert_eq!(owner, Some(agent));
    let spending = store
        .money()
        .spendings(&[SpendOwner::Agent(new.agent)], at(6))
        .await
        .unwrap();
    assert_eq!(spending[0].limits, limits, "it has its limits from the beginning");
    let claim = accounts.claim_of_agent(new.agent, at(2 * DAY)).await.unwrap().unwrap();
    assert_eq!((claim.status, claim.decided_at), (ClaimStatus::Approved, Some(at(5))));
    assert_eq!(accounts.claims_of(ada, 9, at(9)).await.unwrap(), [claim]);
    let created = store.agent_create(new_agent(eve, "gauge"), 5).await.unwrap();
    assert_eq!(created, AgentCreated::NameTaken);
    let made = &accounts.agents_of(ada, at(6)).await.unwrap()[0];
    assert_eq!(
        (made.id, made.description.as_deref()),
        (new.agent, Some("reads gauges"))
    );
}

/// A rejected or expired claim frees its name and its place, and its key tells only that.
pub async fn a_claim_that_is_over_frees_its_name_and_place(url: &str) {
    let store = open(url).await;
    let accounts = store.accounts();
    let ada = operator(&store, "ada@example.org").await;
    let eve = operator(&store, "eve@example.org").await;
    let rejected = waiting(&store, ada, "gauge", 0).await;
    let taken = store.agent_create(new_agent(eve, "gauge"), 5).await.unwrap();
    assert_eq!(taken, AgentCreated::NameTaken);
    assert_eq!(
        accounts.claim_reject(ada, rejected.id, at(1)).await.unwrap(),
        Rejection::Rejected
    );
    let again = accounts
        .claim_approve(ada, rejected.id, PHRASE, SpendLimits::default(), at(2))
        .await
        .unwrap();
    assert_eq!(again, Approval::Decided(ClaimStatus::Rejected));
    assert_eq!(status_of(&store, &rejected, at(3)).await, Some(ClaimStatus::Rejected));

    let expired = waiting(&store, ada, "gauge", 4).await;
    assert_eq!(
        status_of(&store, &expired, at(3 + DAY)).await,
        Some(ClaimStatus::Pending)
    );
    assert_eq!(
        status_of(&store, &expired, at(4 + DAY)).await,
        Some(ClaimStatus::Expired)
    );
    let late = accounts
        .claim_approve(ada, expired.id, PHRASE, SpendLimits::default(), at(4 + DAY))
        .await
        .unwrap();
    assert_eq!(late, Approval::Decided(ClaimStatus::Expired));
    // The name is free at that instant, before any sweep, to anybody; and so is the place.
    let mut new = new_agent(eve, "gauge");
    new.now = at(4 + DAY);
    assert_eq!(store.agent_create(new, 5).await.unwrap(), AgentCreated::Created);
    assert_eq!(accounts.claims_expire(at(4 + DAY)).await.unwrap(), 0);
    let third = waiting(&store, ada, "third", 5 + DAY).await;
    assert_eq!(accounts.claims_expire(at(5 + 2 * DAY)).await.unwrap(), 1);
    assert_eq!(
        status_of(&store, &third, at(5 + 2 * DAY)).await,
        Some(ClaimStatus::Expired)
    );
    assert_eq!(
        store.agent_create(new_agent(ada, "third"), 1).await.unwrap(),
        AgentCreated::Created
    );
}

/// Five wrong tries lock a code. Without its first part nobody can.
pub async fn wrong_tries_lock_a_code(url: &str) {
    let store = open(url).await;
    let accounts = store.accounts();
    let ada = operator(&store, "ada@example.org").await;
    let code = code_at(&store, ada, 0).await;
    let wrong = Code {
        secret: [7; 32],
        ..code.clone()
    };
    let stranger = Code {
        lookup: "another".to_owned(),
        ..wrong.clone()
    };
    let unknown = Claimed::Refused(CodeRefused::Unknown);
    for _ in 0..2 * MAX_WRONG_TRIES {
        assert_eq!(
            accounts.claim(claim_at(&stranger, "gauge", 1), 5).await.unwrap(),
            unknown
        );
    }
    for tries in 0..MAX_WRONG_TRIES {
        assert_eq!(accounts.claim_codes_of(ada, at(1)).await.unwrap()[0].wrong_tries, tries);
        assert_eq!(accounts.claim(claim_at(&wrong, "gauge", 1), 5).await.unwrap(), unknown);
    }
    let locked = Claimed::Refused(CodeRefused::Locked);
    for code in [&wrong, &code] {
        assert_eq!(accounts.claim(claim_at(code, "gauge", 1), 5).await.unwrap(), locked);
    }
    // Wrong tries at once are all counted.
    let code = code_at(&store, ada, 2).await;
    let stores = [open(url).await, open(url).await];
    let outcomes = race(stores, 20, |store, _| {
        let wrong = claim_at(
            &Code {
                secret: [7; 32],
                ..code.clone()
            },
            "gauge",
            3,
        );
        async move { store.accounts().claim(wrong, 5).await.unwrap() }
    })
    .await;
    assert_eq!((count(&outcomes, &unknown), count(&outcomes, &locked)), (5, 15));
}

/// A code works once, for a quarter of an hour, and not once it is withdrawn or its operator suspended. A refused claim
/// leaves it usable.
pub async fn a_code_works_once_and_until_its_end(url: &str) {
    let store = open(url).await;
    let accounts = store.accounts();
    let ada = operator(&store, "ada@example.org").await;
    agent(&store, ada, "taken").await;
    let code = code_at(&store, ada, 0).await;
    assert_eq!(
        accounts.claim(claim_at(&code, "taken", 1), 5).await.unwrap(),
        Claimed::NameTaken
    );
    assert_eq!(
        accounts.claim(claim_at(&code, "free", 1), 1).await.unwrap(),
        Claimed::LimitReached
    );
    let refused = async |new| match accounts.claim(new, 5).await.unwrap() {
        Claimed::Refused(reason) => Some(reason),
        _ => None,
    };
    assert_eq!(refused(claim_at(&code, "free", 900)).await, Some(CodeRefused::Expired));
    assert_eq!(
        accounts.claim(claim_at(&code, "free", 899), 5).await.unwrap(),
        Claimed::Waiting
    );
    assert_eq!(refused(claim_at(&code, "other", 899)).await, Some(CodeRefused::Used));
    assert_eq!(refused(claim_at(&code, "other", 901)).await, Some(CodeRefused::Used));
    assert!(!accounts.claim_code_withdraw(ada, code.id).await.unwrap());

    let code = code_at(&store, ada, 1_000).await;
    assert!(
        !accounts
            .claim_code_withdraw(OperatorId::new(at(0)), code.id)
            .await
            .unwrap()
    );
    assert!(accounts.claim_code_withdraw(ada, code.id).await.unwrap());
    assert_eq!(
        refused(claim_at(&code, "other", 1_001)).await,
        Some(CodeRefused::Unknown)
    );

    let code = code_at(&store, ada, 1_002).await;
    let new = NewClaimCode {
        id: ClaimCodeId::new(at(1_003)),
        operator: ada,
        lookup: "second".to_owned(),
        secret_hash: [1; 32],
        expires_at: at(1_900),
        now: at(1_003),
    };
    let limited = accounts.claim_code_add(new.clone(), 1).await.unwrap();
    assert_eq!(limited, ClaimCodeAdded::LimitReached);
    store.operator_suspend(ada, "spam".to_owned(), at(1_004)).await.unwrap();
    assert_eq!(
        refused(claim_at(&code, "other", 1_005)).await,
        Some(CodeRefused::Unknown)
    );
    assert_eq!(accounts.claim_code_add(new, 1).await.unwrap(), ClaimCodeAdded::Added);
    let made_while_suspended = Code {
        lookup: "second".to_owned(),
        secret: [1; 32],
        ..code
    };
    assert_eq!(
        refused(claim_at(&made_while_suspended, "other", 1_006)).await,
        Some(CodeRefused::Suspended)
    );
}

/// Of 64 identical claims at once one is made.
pub async fn identical_claims_are_one_claim(url: &str) {
    let stores = [open(url).await, open(url).await];
    let ada = operator(&stores[0], "ada@example.org").await;
    let code = code_at(&stores[0], ada, 0).await;
    let outcomes = race(stores.clone(), 64, |store, _| {
        let new = claim_at(&code, "gauge", 1);
        async move { store.accounts().claim(new, 5).await.unwrap() }
    })
    .await;
    assert_eq!(count(&outcomes, &Claimed::Waiting), 1);
    assert_eq!(count(&outcomes, &Claimed::Refused(CodeRefused::Used)), 63);
    assert_eq!(stores[1].accounts().claims_of(ada, 99, at(2)).await.unwrap().len(), 1);
}

/// Claims and new agents with look-alike names at once: one gets the name.
pub async fn a_claim_and_an_agent_never_share_a_name(url: &str) {
    let stores = [open(url).await, open(url).await];
    for round in 0..4 {
        let mut codes = Vec::new();
        let mut operators = Vec::new();
        for number in 0..10 {
            let id = operator(&stores[0], &format!("{round}.{number}@example.org")).await;
            operators.push(id);
            codes.push(code_at(&stores[0], id, 0).await);
        }
        let names = [format!("Gauge-{round}"), format!("gauge-{round}")];
        let won = race(stores.clone(), 10, |store, number| {
            let claim = claim_at(&codes[number], &names[number % 2], 1);
            let agent = new_agent(operators[number], &names[number % 2]);
            async move {
                if number < 5 {
                    store.accounts().claim(claim, 5).await.unwrap() == Claimed::Waiting
                } else {
                    store.agent_create(agent, 5).await.unwrap() == AgentCreated::Created
                }
            }
        })
        .await;
        assert_eq!(count(&won, &true), 1);
    }
}

/// Claims and new agents of one operator at once: never more than five, and five.
pub async fn waiting_claims_count_as_agents(url: &str) {
    let stores = [open(url).await, open(url).await];
    let ada = operator(&stores[0], "ada@example.org").await;
    let mut codes = Vec::new();
    for _ in 0..12 {
        codes.push(code_at(&stores[0], ada, 0).await);
    }
    let made = race(stores.clone(), 24, |store, number| {
        let claim = claim_at(&codes[number / 2], &format!("claim-{number}"), 1);
        let agent = new_agent(ada, &format!("agent-{number}"));
        async move {
            if number % 2 == 0 {
                store.accounts().claim(claim, 5).await.unwrap() == Claimed::Waiting
            } else {
                store.agent_create(agent, 5).await.unwrap() == AgentCreated::Created
            }
        }
    })
    .await;
    assert_eq!(count(&made, &true), 5);
    let counted = stores[0].accounts();
    let agents = counted.agents_of(ada, at(2)).await.unwrap().len();
    let waiting = counted.claims_waiting(ada, at(2)).await.unwrap() as usize;
    assert_eq!(agents + waiting, 5);
    assert_eq!(counted.claims_waiting(ada, at(9 * DAY)).await.unwrap(), 0);
    // Approving them all makes no sixth agent, and a removed one makes room.
    let accounts = stores[0].accounts();
    for claim in accounts.claims_of(ada, 99, at(2)).await.unwrap() {
        let approved = accounts
            .claim_approve(ada, claim.id, PHRASE, SpendLimits::default(), at(3))
            .await
            .unwrap();
        assert_eq!(approved, Approval::Approved(claim.agent));
    }
    let agents = accounts.agents_of(ada, at(4)).await.unwrap();
    assert_eq!(agents.len(), 5);
    let sixth = || stores[0].agent_create(new_agent(ada, "sixth"), 5);
    assert_eq!(sixth().await.unwrap(), AgentCreated::LimitReached);
    assert!(accounts.agent_remove(ada, agents[0].id, at(5)).await.unwrap());
    assert_eq!(sixth().await.unwrap(), AgentCreated::Created);
}

/// Approval, rejection and expiry at once: one decides, and an agent exists exactly if it was the approval.
pub async fn the_first_decision_about_a_claim_stays(url: &str) {
    let stores = [open(url).await, open(url).await];
    let ada = operator(&stores[0], "ada@example.org").await;
    for round in 0..8 {
        let start = round * 2 * DAY;
        let new = waiting(&stores[0], ada, &format!("gauge-{round}"), start).await;
        let (id, end) = (new.id, start + DAY);
        let decided = race(stores.clone(), 6, |store, racer| async move {
            let accounts = store.accounts();
            match racer % 3 {
                // The replica that expires has a clock that is ahead of the others.
                0 => accounts.claims_expire(at(end)).await.unwrap() == 1,
                1 => matches!(
                    accounts
                        .claim_approve(ada, id, PHRASE, SpendLimits::default(), at(end - 1))
                        .await
                        .unwrap(),
                    Approval::Approved(_)
                ),
                _ => accounts.claim_reject(ada, id, at(end - 1)).await.unwrap() == Rejection::Rejected,
            }
        })
        .await;
        assert_eq!(count(&decided, &true), 1);
        let accounts = stores[1].accounts();
        let is_approved = status_of(&stores[1], &new, at(end)).await == Some(ClaimStatus::Approved);
        let agents = accounts.agents_of(ada, at(end)).await.unwrap();
        assert_eq!(agents.iter().any(|agent| agent.id == new.agent), is_approved);
        if is_approved {
            assert!(accounts.agent_remove(ada, new.agent, at(end)).await.unwrap());
        }
    }
}

/// A rotated key stays valid for the time that was given, and a removed agent has no key.
pub async fn a_rotated_key_ends_when_it_was_said_to(url: &str) {
    let store = open(url).await;
    let accounts = store.accounts();
    let ada = operator(&store, "ada@example.org").await;
    let eve = operator(&store, "eve@example.org").await;
    let new = new_agent(ada, "gauge");
    let (agent, first) = (new.id, new.key_hash);
    assert_eq!(store.agent_create(new, 5).await.unwrap(), AgentCreated::Created);
    let works = async |key: &[u8; 32], seconds| accounts.principal(key, at(seconds)).await.unwrap().is_some();
    let hour = Duration::from_hours(1);
    let (second, third) = (fresh_hash(), fresh_hash());
    assert!(
        !accounts
            .agent_key_rotate(eve, agent, second, hour, at(0))
            .await
            .unwrap()
    );
    assert!(
        accounts
            .agent_key_rotate(ada, agent, second, hour, at(0))
            .await
            .unwrap()
    );
    assert!(works(&first, 3_599).await && works(&second, 3_599).await);
    assert!(!works(&first, 3_600).await);
    let keys = accounts.agents_of(ada, at(1)).await.unwrap()[0].keys.clone();
    let ends: Vec<_> = keys.iter().map(|key| key.expires_at).collect();
    assert_eq!(
        (ends.len(), ends.contains(&None), ends.contains(&Some(at(3_600)))),
        (2, true, true)
    );
    // No grace: the present key ends at once, and one replaced before keeps its end.
    assert!(
        accounts
            .agent_key_rotate(ada, agent, third, Duration::ZERO, at(10))
            .await
            .unwrap()
    );
    assert!(works(&third, 10).await && !works(&second, 10).await && !works(&first, 10).await);

    assert!(!accounts.agent_remove(eve, agent, at(11)).await.unwrap());
    assert!(accounts.agent_remove(ada, agent, at(11)).await.unwrap());
    assert!(!accounts.agent_remove(ada, agent, at(12)).await.unwrap());
    assert!(!works(&third, 12).await);
    assert!(
        !accounts
            .agent_key_rotate(ada, agent, fresh_hash(), hour, at(12))
            .await
            .unwrap()
    );
    assert_eq!(
        accounts.agents_of(ada, at(12)).await.unwrap()[0].removed_at,
        Some(at(11))
    );
    let name = store.agent_create(new_agent(eve, "gauge"), 5).await.unwrap();
    assert_eq!(name, AgentCreated::NameTaken);
}

/// A token is listed under its label and revoked by its id, by its operator only.
pub async fn a_revoked_token_is_unknown(url: &str) {
    let store = open(url).await;
    let accounts = store.accounts();
    let ada = operator(&store, "ada@example.org").await;
    let eve = operator(&store, "eve@example.org").await;
    let new = NewToken {
        operator: ada,
        token_hash: fresh_hash(),
        label: "laptop".to_owned(),
        now: at(1),
    };
    let hash = new.token_hash;
    assert_eq!(
        accounts.token_add(new.clone(), 1).await.unwrap(),
        TokenAdded::LimitReached
    );
    let added = accounts.token_add(new, 2).await.unwrap();
    let tokens = accounts.tokens_of(ada).await.unwrap();
    let labels: Vec<_> = tokens.iter().map(|token| token.label.as_deref()).collect();
    assert_eq!(labels, [None, Some("laptop")]);
    let id = tokens[1].id;
    assert_eq!(added, TokenAdded::Added(id));
    let owner = accounts.principal(&hash, at(2)).await.unwrap();
    let expected = Principal::Operator {
        operator: ada,
        suspended: false,
    };
    assert_eq!(owner, Some(expected));
    assert!(!accounts.token_revoke(eve, id).await.unwrap());
    assert!(!accounts.token_revoke(ada, TokenId::from_bytes([0; 16])).await.unwrap());
    assert!(accounts.token_revoke(ada, id).await.unwrap());
    assert!(!accounts.token_revoke(ada, id).await.unwrap());
    assert_eq!(accounts.principal(&hash, at(2)).await.unwrap(), None);
}

/// A change of the payout address waits for its instant, and can be replaced and cancelled until then.
pub async fn a_payout_address_changes_at_its_instant(url: &str) {
    let store = open(url).await;
    let accounts = store.accounts();
    let ada = operator(&store, "ada@example.org").await;
    let set = async |address: &str, seconds| {
        let effective = at(seconds + 3 * DAY);
        let letter = mail(at(seconds), None);
        let set = accounts.payout_set(ada, address.to_owned(), effective, letter, at(seconds));
        set.await.unwrap();
    };
    let address = async |seconds| accounts.payout(ada, at(seconds)).await.unwrap().address;
    assert_eq!(accounts.payout(ada, at(0)).await.unwrap(), Payout::default());
    set("0xa", 0).await;
    assert_eq!(address(3 * DAY - 1).await, None);
    assert_eq!(address(3 * DAY).await.as_deref(), Some("0xa"));
    assert!(!accounts.payout_cancel(ada, at(3 * DAY)).await.unwrap());
    set("0xb", 4 * DAY).await;
    set("0xc", 5 * DAY).await;
    let between = accounts.payout(ada, at(7 * DAY)).await.unwrap();
    let next = Some(("0xc".to_owned(), at(8 * DAY)));
    assert_eq!((between.address.as_deref(), between.next), (Some("0xa"), next));
    assert_eq!(between.changed_at, Some(at(5 * DAY)));
    assert!(accounts.payout_cancel(ada, at(7 * DAY)).await.unwrap());
    assert!(!accounts.payout_cancel(ada, at(7 * DAY)).await.unwrap());
    assert_eq!(address(99 * DAY).await.as_deref(), Some("0xa"));
}

/// The status of a claim is given once per interval, whoever counts.
pub async fn a_status_is_given_once_per_interval(url: &str) {
    let stores = [open(url).await, open(url).await];
    let ada = operator(&stores[0], "ada@example.org").await;
    let new = waiting(&stores[0], ada, "gauge", 0).await;
    let minute = Duration::from_mins(1);
    let id = new.id;
    let polled = race(stores.clone(), 10, |store, _| async move {
        store.accounts().claim_poll(id, minute, at(10)).await.unwrap()
    })
    .await;
    let given = polled
        .iter()
        .filter(|polled| matches!(polled, Polled::Status(_)))
        .count();
    assert_eq!((given, count(&polled, &Polled::TooSoon(at(70)))), (1, 9));
    let accounts = stores[1].accounts();
    let soon = accounts.claim_poll(new.id, minute, at(69)).await.unwrap();
    assert_eq!(soon, Polled::TooSoon(at(70)));
    let again = accounts.claim_poll(new.id, minute, at(70)).await.unwrap();
    assert!(matches!(again, Polled::Status(claim) if claim.status == ClaimStatus::Pending));
    let unknown = accounts.claim_poll(ClaimId::new(at(0)), minute, at(70)).await.unwrap();
    assert_eq!(unknown, Polled::Unknown);
}
