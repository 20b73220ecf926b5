//! Scenarios about sign-up, links, sessions, invitations and letters.

use types::vocabulary::LinkPurpose;
use types::{LinkId, OperatorId, SessionId, Timestamp};

use super::fixture::{at, fresh_hash, job, mail, open, race};
use crate::{InviteRequest, LinkRefused, LinkRequest, LinkRequested, NewLink, NewSession, NewSignUp, SignedUp, Store};

const HOUR: i64 = 3_600;

pub(crate) fn new_link(now: Timestamp) -> NewLink {
    NewLink {
        id: LinkId::new(now),
        token_hash: fresh_hash(),
        expires_at: Timestamp::from_micros(now.micros() + 24 * HOUR * 1_000_000),
    }
}

fn sign_up_at(email: &str, seconds: i64) -> NewSignUp {
    let now = at(seconds);
    NewSignUp {
        id: OperatorId::new(now),
        email: email.to_owned(),
        display_name: "Ada".to_owned(),
        terms_version: "2026-11".to_owned(),
        by_invitation: false,
        link: new_link(now),
        mail: mail(now, Some(100)),
        stale: at(seconds - 72 * HOUR),
        now,
    }
}

fn request_at(email: &str, seconds: i64) -> LinkRequest {
    let now = at(seconds);
    LinkRequest {
        email: email.to_owned(),
        link: new_link(now),
        mail: mail(now, Some(100)),
        blank: job(now),
        now,
    }
}

fn session_at(seconds: i64) -> NewSession {
    NewSession {
        id: SessionId::new(at(seconds)),
        token_hash: fresh_hash(),
        expires_at: at(seconds + 12 * HOUR),
        address: "192.0.2.7".to_owned(),
        user_agent: "Browser".to_owned(),
    }
}

/// Signs up and verifies, and returns the operator.
async fn verified(store: &Store, email: &str) -> OperatorId {
    let new = sign_up_at(email, 0);
    let link = new.link.token_hash;
    assert_eq!(store.accounts().sign_up(new).await.unwrap(), SignedUp::Created);
    let verified = store.accounts().verify(link, "2026-11".to_owned(), None, at(1)).await;
    verified.unwrap().unwrap()
}

/// Signs up with an address.
pub(crate) async fn signs_up(store: &Store, email: &str) -> SignedUp {
    store.accounts().sign_up(sign_up_at(email, 0)).await.unwrap()
}

/// Asks for a link to sign in, and returns true if one is mailed to the address as it was written.
pub(crate) async fn gets_a_link(store: &Store, email: &str) -> bool {
    let accounts = store.accounts();
    let request = request_at(email, 0);
    let hash = request.link.token_hash;
    let requested = accounts.link_request(request, LinkPurpose::SignIn).await.unwrap();
    let link = accounts.mail_link(&hash, LinkPurpose::SignIn, at(1)).await.unwrap();
    requested == LinkRequested::Taken && link.is_ok_and(|link| link.email == email)
}

/// A mailbox signs up once, however its address is written; the address stays as it was written.
pub async fn a_mailbox_signs_up_once(url: &str) {
    let store = open(url).await;
    for (email, others, further) in [
        (
            "A.da+tides@GoogleMail.com",
            ["ada@gmail.com", "a.d.a@googlemail.com", "ADA+x+y@gmail.com"],
            "adab@gmail.com",
        ),
        (
            "eve.hill@example.org",
            [
                "eve.hill+1@example.org",
                "Eve.Hill@EXAMPLE.org",
                "eve.hill+@example.org",
            ],
            "evehill@example.org",
        ),
    ] {
        let id = verified(&store, email).await;
        assert_eq!(store.operator(id).await.unwrap().unwrap().email, email);
        for other in others {
            assert_eq!(signs_up(&store, other).await, SignedUp::EmailTaken, "{other}");
        }
        assert_eq!(signs_up(&store, further).await, SignedUp::Created, "{further}");
        assert!(gets_a_link(&store, email).await);
    }
    // An administrator may add a spelling, which signs in as well.
    super::fixture::operator(&store, "ada@gmail.com").await;
    assert!(gets_a_link(&store, "ada@gmail.com").await);
    // A sign-up that was never verified frees its mailbox.
    assert_eq!(signs_up(&store, "bob+1@example.org").await, SignedUp::Created);
    let later = sign_up_at("bob@example.org", 73 * HOUR);
    assert_eq!(store.accounts().sign_up(later).await.unwrap(), SignedUp::Created);
}

/// Sign-ups with spellings of one mailbox at once: one wins.
pub async fn one_of_many_wins_a_mailbox(url: &str) {
    let stores = [open(url).await, open(url).await];
    let made = race(stores, 20, |store, number| async move {
        signs_up(&store, &format!("ada+{number}@example.org")).await
    })
    .await;
    assert_eq!(
        made.iter().filter(|made| **made == SignedUp::Created).count(),
        1,
        "{made:?}"
    );
}

/// A sign-up is not verified until its link is used, and the use is noted with the statement of age.
pub async fn a_sign_up_is_verified_by_its_link(url: &str) {
    let store = open(url).await;
    let new = sign_up_at("Ada@example.org", 0);
    let (id, link) = (new.id, new.link.token_hash);
    assert_eq!(store.accounts().sign_up(new).await.unwrap(), SignedUp::Created);
    let twin = store.accounts().sign_up(sign_up_at("ada@EXAMPLE.org", 5)).await;
    assert_eq!(twin.unwrap(), SignedUp::EmailTaken);
    let before = store.operator(id).await.unwrap().unwrap();
    assert_eq!((before.verified_at, before.adult_stated_at), (None, None));

    let found = store
        .accounts()
        .mail_link(&link, LinkPurpose::Verify, at(9))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((found.operator, found.email.as_str()), (id, "Ada@example.org"));
    let other = store.accounts().mail_link(&link, LinkPurpose::SignIn, at(9)).await;
    assert_eq!(other.unwrap(), Err(LinkRefused::Unknown));

    let verified = store.accounts().verify(link, "2026-12".to_owned(), None, at(10)).await;
    assert_eq!(verified.unwrap(), Ok(id));
    let after = store.operator(id).await.unwrap().unwrap();
    assert_eq!((after.verified_at, after.adult_stated_at), (Some(at(10)), Some(at(10))));
    assert_eq!(after.terms_version, "2026-12");
    let again = store.accounts().verify(link, "2026-12".to_owned(), None, at(11)).await;
    assert_eq!(again.unwrap(), Err(LinkRefused::Used));
}

/// A link works for a day; a resend makes another, and the first use ends them all.
pub async fn a_link_ends_after_a_day_and_a_resend_makes_another(url: &str) {
    let store = open(url).await;
    let accounts = store.accounts();
    let new = sign_up_at("ada@example.org", 0);
    let (id, first) = (new.id, new.link.token_hash);
    assert_eq!(accounts.sign_up(new).await.unwrap(), SignedUp::Created);
    let late = accounts
        .verify(first, String::new(), None, at(24 * HOUR))
        .await
        .unwrap();
    assert_eq!(late, Err(LinkRefused::Expired));
    let unknown = accounts.verify(fresh_hash(), String::new(), None, at(1)).await.unwrap();
    assert_eq!(unknown, Err(LinkRefused::Unknown));

    let mut links = Vec::new();
    for seconds in [30 * HOUR, 31 * HOUR] {
        let request = request_at("ADA@example.org", seconds);
        links.push(request.link.token_hash);
        let requested = accounts.link_request(request, LinkPurpose::Verify).await.unwrap();
        assert_eq!(requested, LinkRequested::Taken);
    }
    let now = at(32 * HOUR);
    assert_eq!(
        accounts.verify(links[0], String::new(), None, now).await.unwrap(),
        Ok(id)
    );
    let second = accounts.verify(links[1], String::new(), None, now).await.unwrap();
    assert_eq!(second, Err(LinkRefused::Used));
}

/// A request for a link is answered the same for every address, and uses a letter up for every address.
pub async fn a_request_for_a_link_reveals_no_account(url: &str) {
    let store = open(url).await;
    let accounts = store.accounts();
    verified(&store, "ada@example.org").await;
    let asked = async |email: &str, purpose| {
        let mut request = request_at(email, 100);
        request.mail.budget = Some(5);
        let link = request.link.token_hash;
        let requested = accounts.link_request(request, purpose).await.unwrap();
        let works = accounts.mail_link(&link, purpose, at(101)).await.unwrap().is_ok();
        (requested, works)
    };
    // The letter of the sign-up was the first of the day.
    let taken = LinkRequested::Taken;
    assert_eq!(asked("ada@example.org", LinkPurpose::Verify).await, (taken, false));
    assert_eq!(asked("eve@example.org", LinkPurpose::Verify).await, (taken, false));
    assert_eq!(asked("eve@example.org", LinkPurpose::SignIn).await, (taken, false));
    assert_eq!(asked("ada@example.org", LinkPurpose::SignIn).await, (taken, true));
    for email in ["ada@example.org", "eve@example.org", "a\0b"] {
        let spent = asked(email, LinkPurpose::SignIn).await;
        assert_eq!(spent, (LinkRequested::MailSpent, false), "{email}");
    }
}

/// When the letters of the day are spent, no account is made.
pub async fn no_account_is_made_when_the_letters_are_spent(url: &str) {
    let store = open(url).await;
    let accounts = store.accounts();
    let within = |email: &str, budget| {
        let mut new = sign_up_at(email, 0);
        new.mail.budget = Some(budget);
        new
    };
    assert_eq!(
        accounts.sign_up(within("a@example.org", 0)).await.unwrap(),
        SignedUp::MailSpent
    );
    assert_eq!(
        accounts.sign_up(within("a@example.org", 1)).await.unwrap(),
        SignedUp::Created
    );
    assert_eq!(
        accounts.sign_up(within("b@example.org", 1)).await.unwrap(),
        SignedUp::MailSpent
    );
    assert_eq!(store.operator_by_email("b@example.org").await.unwrap(), None);
    let tomorrow = NewSignUp {
        mail: mail(at(24 * HOUR), Some(1)),
        ..sign_up_at("b@example.org", 24 * HOUR)
    };
    assert_eq!(accounts.sign_up(tomorrow).await.unwrap(), SignedUp::Created);
}

/// Of thirty sign-ups at once under a budget of ten letters, ten are made.
pub async fn the_letters_of_a_day_are_exact_under_contention(url: &str) {
    let stores = [open(url).await, open(url).await];
    let outcomes = race(stores, 30, |store, number| async move {
        let mut new = sign_up_at(&format!("{number}@example.org"), 0);
        new.mail.budget = Some(10);
        store.accounts().sign_up(new).await.unwrap()
    })
    .await;
    let count = |expected| outcomes.iter().filter(|outcome| **outcome == expected).count();
    assert_eq!((count(SignedUp::Created), count(SignedUp::MailSpent)), (10, 20));
}

/// Of twenty sign-ups of one address at once, one is made.
pub async fn one_of_many_wins_an_address(url: &str) {
    let stores = [open(url).await, open(url).await];
    let outcomes = race(stores, 20, |store, _| async move {
        store
            .accounts()
            .sign_up(sign_up_at("ada@example.org", 0))
            .await
            .unwrap()
    })
    .await;
    let count = |expected| outcomes.iter().filter(|outcome| **outcome == expected).count();
    assert_eq!((count(SignedUp::Created), count(SignedUp::EmailTaken)), (1, 19));
}

/// Of twenty uses of one link at once, one succeeds and begins one session.
pub async fn one_of_many_uses_of_a_link_succeeds(url: &str) {
    let stores = [open(url).await, open(url).await];
    let new = sign_up_at("ada@example.org", 0);
    let (id, link) = (new.id, new.link.token_hash);
    assert_eq!(stores[0].accounts().sign_up(new).await.unwrap(), SignedUp::Created);
    let outcomes = race(stores.clone(), 20, |store, _| async move {
        let session = Some(session_at(1));
        store
            .accounts()
            .verify(link, String::new(), session, at(1))
            .await
            .unwrap()
    })
    .await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Ok(id)).count(), 1);
    let used = Err(LinkRefused::Used);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == used).count(), 19);
    assert_eq!(stores[1].accounts().sessions_of(id, at(2)).await.unwrap().len(), 1);
}

/// A sign-up that is not verified in 72 hours is deleted with its link, and its address is free; a verified one stays.
pub async fn an_unverified_sign_up_is_deleted(url: &str) {
    let store = open(url).await;
    let accounts = store.accounts();
    let ada = verified(&store, "ada@example.org").await;
    let mut links = Vec::new();
    for (email, seconds) in [
        ("bob@example.org", 0),
        ("eve@example.org", HOUR),
        ("dan@example.org", 0),
    ] {
        let new = sign_up_at(email, seconds);
        links.push(new.link.token_hash);
        assert_eq!(accounts.sign_up(new).await.unwrap(), SignedUp::Created);
    }
    // The address is free at its time, whether or not the deletion has run.
    let again = accounts.sign_up(sign_up_at("bob@example.org", 72 * HOUR)).await;
    assert_eq!(again.unwrap(), SignedUp::Created);
    let gone = accounts.mail_link(&links[0], LinkPurpose::Verify, at(1)).await.unwrap();
    assert_eq!(gone, Err(LinkRefused::Unknown));
    assert_eq!(accounts.unverified_delete(at(0)).await.unwrap(), 1);
    assert_eq!(accounts.unverified_delete(at(0)).await.unwrap(), 0);
    assert_eq!(store.operator_by_email("dan@example.org").await.unwrap(), None);
    for email in ["ada@example.org", "bob@example.org", "eve@example.org"] {
        assert!(store.operator_by_email(email).await.unwrap().is_some(), "{email}");
    }
    assert!(store.operator(ada).await.unwrap().is_some());
}

/// Without an open sign-up only an invited address signs up, whatever its case.
pub async fn an_invitation_admits_an_address(url: &str) {
    let store = open(url).await;
    let accounts = store.accounts();
    let invited = || NewSignUp {
        by_invitation: true,
        ..sign_up_at("Ada@example.org", 0)
    };
    assert_eq!(accounts.sign_up(invited()).await.unwrap(), SignedUp::NotInvited);
    let request = |note: &str, seconds| InviteRequest {
        email: "ada@example.org".to_owned(),
        note: note.to_owned(),
        created_at: at(seconds),
    };
    accounts.invite_request(request("please", 1)).await.unwrap();
    accounts.invite_request(request("I measure tides", 2)).await.unwrap();
    assert_eq!(
        accounts.invite_requests(9).await.unwrap(),
        [request("I measure tides", 2)]
    );
    assert!(accounts.invite("ADA@example.org", at(3)).await.unwrap());
    assert!(!accounts.invite("ada@example.org", at(4)).await.unwrap());
    assert_eq!(accounts.invite_requests(9).await.unwrap(), []);
    assert_eq!(accounts.sign_up(invited()).await.unwrap(), SignedUp::Created);
    assert_eq!(accounts.sign_up(invited()).await.unwrap(), SignedUp::EmailTaken);
}

/// A session begins with a link, is found by its token, and ends when asked, when over and when suspended.
pub async fn a_session_ends_when_asked_when_over_and_when_suspended(url: &str) {
    let store = open(url).await;
    let accounts = store.accounts();
    let ada = verified(&store, "ada@example.org").await;
    let sign_in = async |seconds| {
        let request = request_at("ada@example.org", seconds);
        let link = request.link.token_hash;
        let requested = accounts.link_request(request, LinkPurpose::SignIn).await.unwrap();
        assert_eq!(requested, LinkRequested::Taken);
        let session = session_at(seconds);
        let (id, token) = (session.id, session.token_hash);
        assert_eq!(accounts.sign_in(link, session, at(seconds)).await.unwrap(), Ok(ada));
        let again = accounts.sign_in(link, session_at(seconds), at(seconds)).await.unwrap();
        assert_eq!(again, Err(LinkRefused::Used));
        (id, token)
    };
    let mut sessions = Vec::new();
    for seconds in [10, 20, 30, 40] {
        sessions.push(sign_in(seconds).await);
    }
    let found = accounts.session(&sessions[0].1, at(50)).await.unwrap().unwrap();
    assert_eq!((found.operator, found.created_at, found.seen_at), (ada, at(10), at(10)));
    accounts.session_seen(sessions[0].0, at(50)).await.unwrap();
    let seen = accounts.session(&sessions[0].1, at(51)).await.unwrap().unwrap();
    assert_eq!((seen.created_at, seen.seen_at), (at(10), at(50)));
    assert_eq!(
        accounts.session(&sessions[0].1, at(10 + 12 * HOUR)).await.unwrap(),
        None
    );
    assert_eq!(accounts.session(&fresh_hash(), at(50)).await.unwrap(), None);

    // A stranger's session cannot be ended.
    assert!(
        !accounts
            .session_end(OperatorId::new(at(0)), sessions[0].0)
            .await
            .unwrap()
    );
    assert!(accounts.session_end(ada, sessions[0].0).await.unwrap());
    assert_eq!(accounts.session(&sessions[0].1, at(51)).await.unwrap(), None);
    assert_eq!(accounts.sessions_end(ada, Some(sessions[1].0)).await.unwrap(), 2);
    let left = accounts.sessions_of(ada, at(51)).await.unwrap();
    assert_eq!(
        left.iter().map(|session| session.id).collect::<Vec<_>>(),
        [sessions[1].0]
    );

    let waiting = request_at("ada@example.org", 60);
    let link = waiting.link.token_hash;
    assert_eq!(
        accounts.link_request(waiting, LinkPurpose::SignIn).await.unwrap(),
        LinkRequested::Taken
    );
    store.operator_suspend(ada, "spam".to_owned(), at(61)).await.unwrap();
    assert_eq!(accounts.session(&sessions[1].1, at(62)).await.unwrap(), None);
    let late = accounts.sign_in(link, session_at(62), at(62)).await.unwrap();
    assert_eq!(late, Err(LinkRefused::Unknown));
    store.operator_restore(ada).await.unwrap();
    assert_eq!(accounts.session(&sessions[1].1, at(63)).await.unwrap(), None);
}

/// What is over is removed, and nothing else.
pub async fn tidying_removes_what_is_over(url: &str) {
    let store = open(url).await;
    let accounts = store.accounts();
    let new = sign_up_at("ada@example.org", 0);
    let link = new.link.token_hash;
    assert_eq!(accounts.sign_up(new).await.unwrap(), SignedUp::Created);
    let session = session_at(1);
    let token = session.token_hash;
    let verified = accounts
        .verify(link, String::new(), Some(session), at(1))
        .await
        .unwrap();
    verified.unwrap();
    assert_eq!(accounts.tidy(at(12 * HOUR)).await.unwrap(), 0);
    assert!(accounts.session(&token, at(12 * HOUR)).await.unwrap().is_some());
    assert_eq!(accounts.tidy(at(12 * HOUR + 1)).await.unwrap(), 1);
    // The link is remembered for a day after its end, and the day of its letter until two days later.
    assert_eq!(accounts.tidy(at(48 * HOUR)).await.unwrap(), 2);
    assert_eq!(accounts.tidy(at(96 * HOUR)).await.unwrap(), 0);
}
