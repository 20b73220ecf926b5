//! Scenarios about the seals of the ledger.

use types::money::MicroUsdc;
use types::{LedgerEventId, OperatorId, Timestamp};

use super::fixture::{at, open, operator, race};
use super::money::{ASSET, faults, give, grant, sound};
use crate::{ClosedDay, EntryCursor, EntryFilter, Error, Granted, NewGrant, Seal, Store};

/// Seconds of a day.
const DAY: i64 = 86_400;

pub(super) fn seal(closed: ClosedDay) -> Seal {
    Seal {
        closed,
        key_id: "key".to_owned(),
        signature: [7; 64],
        sealed_at: at(0),
    }
}

/// Grants credits at a time, under a reference of its own.
async fn granted(store: &Store, operator: OperatorId, now: i64) -> Result<(), Error> {
    let new = NewGrant {
        event: LedgerEventId::new(at(now)),
        asset: ASSET.to_owned(),
        operator,
        amount: MicroUsdc(100),
        given: false,
        reference: format!("at {now}"),
        now: at(now),
    };
    assert_eq!(store.money().grant(new).await?, Granted::Done);
    Ok(())
}

/// Seals the next day. Returns it, or `None` if no day is due.
async fn sealed(store: &Store, due: i64) -> Option<ClosedDay> {
    let closed = store.money().seal_next(due).await.unwrap()?;
    assert!(store.money().seal_put(seal(closed)).await.unwrap());
    Some(closed)
}

/// Days are sealed one after the other, those without movements too, and each names the hash of the day before.
pub async fn days_are_sealed_in_order(url: &str) {
    let store = open(url).await;
    let bob = operator(&store, "bob@example.org").await;
    let today = at(0).day();
    assert_eq!(sealed(&store, today).await, None, "no event");
    give(&store, bob, 100, false, "g").await;
    // More than a page of events.
    for number in 0..600 {
        granted(&store, bob, 3 * DAY + 600 - number).await.unwrap();
    }
    assert_eq!(sealed(&store, today - 1).await, None, "the day is not due");
    let mut before = [0; 32];
    for day in today..today + 5 {
        let closed = sealed(&store, today + 4).await.unwrap();
        assert_eq!((closed.day, closed.before), (day, before));
        before = closed.hash;
    }
    assert_eq!(sealed(&store, today + 4).await, None);
    let seals = store.money().seals(today, 2).await.unwrap();
    let days: Vec<i64> = seals.iter().map(|seal| seal.closed.day).collect();
    assert_eq!(days, [today + 1, today + 2]);
    sound(&store).await;
}

/// A closed day takes no event: one of that day is of the next, and a repeated event of a closed day is no error.
pub async fn a_sealed_day_takes_no_event(url: &str) {
    let store = open(url).await;
    let bob = operator(&store, "bob@example.org").await;
    let today = at(0).day();
    give(&store, bob, 100, false, "g").await;
    // Closed, and the process ended before the signature.
    let closed = store.money().seal_next(today).await.unwrap().unwrap();
    for now in [1, -DAY] {
        granted(&store, bob, now).await.unwrap();
    }
    assert_eq!(grant(&store, bob, 100, false, "g").await, Granted::Repeated);
    granted(&store, bob, DAY + 5).await.unwrap();
    let opened = Timestamp::of_day(today + 1);
    assert_eq!(times(&store, bob).await, [at(DAY + 5), opened, opened, at(0)]);
    // The next process goes on with the closed day, and finds the same hash.
    assert_eq!(store.money().seal_next(today + 9).await.unwrap(), Some(closed));
    assert!(store.money().seal_put(seal(closed)).await.unwrap());
    sealed(&store, today + 1).await.unwrap();
    sound(&store).await;
}

/// A clock that ran ahead, even for a year, and is set back stops nothing: what happens then is of the first open day,
/// until the clock is there again.
pub async fn a_clock_that_is_set_back_does_not_stop_the_ledger(url: &str) {
    const AHEAD: i64 = 400;
    let store = open(url).await;
    let bob = operator(&store, "bob@example.org").await;
    let today = at(0).day();
    give(&store, bob, 100, false, "g").await;
    while sealed(&store, today + AHEAD - 1).await.is_some() {}
    assert_eq!(
        store.money().newest_closed_day().await.unwrap(),
        Some(today + AHEAD - 1)
    );
    let opened = Timestamp::of_day(today + AHEAD);
    for now in 10..20 {
        granted(&store, bob, now).await.unwrap();
    }
    let found = times(&store, bob).await;
    assert!(found[..10].iter().all(|at| *at == opened), "{found:?}");
    // The clock is wrong once more, for a day; that one is sealed like any other.
    assert_eq!(sealed(&store, today + AHEAD).await.unwrap().day, today + AHEAD);
    granted(&store, bob, 30).await.unwrap();
    assert_eq!(times(&store, bob).await[0], Timestamp::of_day(today + AHEAD + 1));
    let caught_up = (AHEAD + 2) * DAY + 7;
    granted(&store, bob, caught_up).await.unwrap();
    assert_eq!(times(&store, bob).await[0], at(caught_up));
    sound(&store).await;
}

/// Times of the events of an operator's credits, the newest first.
async fn times(store: &Store, operator: OperatorId) -> Vec<Timestamp> {
    let money = store.money();
    let reading = money.journal(ASSET, operator, EntryFilter::default(), EntryCursor::NEWEST, 50);
    reading.await.unwrap().0.iter().map(|entry| entry.at).collect()
}

/// Of many processes that seal a day, one puts the seal, and all find the same hash.
pub async fn one_of_many_seals_a_day(url: &str) {
    let store = open(url).await;
    let bob = operator(&store, "bob@example.org").await;
    let today = at(0).day();
    give(&store, bob, 100, false, "g").await;
    let stores = [store.clone(), open(url).await];
    let sealing = race(stores, 8, move |store, _| async move {
        match store.money().seal_next(today).await.unwrap() {
            Some(closed) => store.money().seal_put(seal(closed)).await.unwrap(),
            // The seal of another was there before this one began.
            None => false,
        }
    });
    assert_eq!(sealing.await.into_iter().filter(|put| *put).count(), 1);
    sound(&store).await;
}

/// What is changed in a sealed day, or in its seals, is found.
pub async fn an_altered_day_breaks_its_seal(url: &str) {
    let store = open(url).await;
    let bob = operator(&store, "bob@example.org").await;
    let today = at(0).day();
    give(&store, bob, 100, false, "g").await;
    granted(&store, bob, DAY).await.unwrap();
    for _ in 0..2 {
        sealed(&store, today + 1).await.unwrap();
    }
    sound(&store).await;
    // Whoever can alter the journal can drop its triggers first.
    for table in ["ledger_events", "ledger_transfers"] {
        let on = if url.starts_with("sqlite:") {
            String::new()
        } else {
            format!("ON {table}")
        };
        for action in ["update", "delete"] {
            run(&store, format!("DROP TRIGGER {table}_no_{action} {on}")).await;
        }
    }
    let first = "day = (SELECT MIN(day) FROM ledger_seals)";
    let altered = [
        (
            "UPDATE ledger_transfers SET amount = amount + 1 WHERE debit_seq = 1".to_owned(),
            "UPDATE ledger_transfers SET amount = amount - 1 WHERE debit_seq = 1".to_owned(),
        ),
        (
            "UPDATE ledger_events SET subject = 'x' || subject".to_owned(),
            "UPDATE ledger_events SET subject = SUBSTR(subject, 2)".to_owned(),
        ),
        (
            format!("UPDATE ledger_events SET at = at + {DAY}000000 WHERE key = 'g'"),
            format!("UPDATE ledger_events SET at = at - {DAY}000000 WHERE key = 'g'"),
        ),
        (
            format!("UPDATE ledger_events SET at = at - {DAY}000000 WHERE key = 'g'"),
            format!("UPDATE ledger_events SET at = at + {DAY}000000 WHERE key = 'g'"),
        ),
        (
            format!("UPDATE ledger_seals SET day = day - 1 WHERE {first}"),
            format!("UPDATE ledger_seals SET day = day + 1 WHERE {first}"),
        ),
    ];
    for (alter, undo) in altered {
        run(&store, alter.clone()).await;
        let found = faults(&store, 2 * DAY).await;
        assert!(found.iter().any(|fault| fault.rule == "M4"), "{alter}: {found:?}");
        run(&store, undo).await;
        sound(&store).await;
    }
    // A day that lost its events, its seal included, breaks the seal after it.
    run(&store, format!("DELETE FROM ledger_seals WHERE {first}")).await;
    let found = faults(&store, 2 * DAY).await;
    assert!(found.iter().any(|fault| fault.rule == "M4"), "{found:?}");
}

/// The movements of a day come in pages, in the order in which they are hashed, and no other day's.
pub async fn the_movements_of_a_day_are_those_that_are_sealed(url: &str) {
    let store = open(url).await;
    let bob = operator(&store, "bob@example.org").await;
    let today = at(0).day();
    for number in 0..600 {
        granted(&store, bob, 600 - number).await.unwrap();
    }
    granted(&store, bob, DAY).await.unwrap();
    let closed = sealed(&store, today).await.unwrap();
    let (mut after, mut found) = (String::new(), Vec::new());
    loop {
        let page = store.money().movements(today, &after).await.unwrap();
        let Some(last) = page.last() else { break };
        after.clone_from(&last.id);
        found.extend(page);
    }
    assert_eq!(found.len(), 600);
    assert!(found.is_sorted_by(|one, next| (&one.id, one.line) < (&next.id, next.line)));
    // As the format has it.
    let mut hasher = blake3::Hasher::new();
    hasher
        .update(b"sluice-ledger-day-1\n")
        .update(&closed.before)
        .update(&today.to_le_bytes());
    for moved in &found {
        for text in [
            &moved.id,
            &moved.asset,
            &moved.kind,
            &moved.key,
            &moved.subject,
            &moved.actor,
            &moved.debit_account,
            &moved.credit_account,
        ] {
            hasher
                .update(&(text.len() as u64).to_le_bytes())
                .update(text.as_bytes());
        }
        for number in [
            moved.at,
            moved.line,
            moved.amount,
            moved.debit_seq,
            moved.debit_after,
            moved.credit_seq,
            moved.credit_after,
        ] {
            hasher.update(&number.to_le_bytes());
        }
    }
    assert_eq!(*hasher.finalize().as_bytes(), closed.hash);
}

pub(super) async fn run(store: &Store, text: String) {
    let running = store.write_aside(move |cx| {
        Box::pin(async move {
            sqlx::query(sqlx::AssertSqlSafe(text)).execute(cx).await?;
            Ok(crate::writer::Change::Keep(()))
        })
    });
    running.await.unwrap();
}
