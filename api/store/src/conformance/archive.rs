//! Scenarios about months of the ledger that are archived.

use std::collections::BTreeSet;

use types::money::MicroUsdc;
use types::{LedgerEventId, OperatorId, Timestamp};

use super::fixture::{at, open, operator};
use super::money::{ASSET, Market, balances, faults, give, sound};
use super::seals::{run, seal};
use crate::{
    ArchiveProof, EntryCursor, EntryFilter, Granted, LedgerMovement, MoneyFault, MonthArchived, NewGrant, Store,
};

/// Seconds of a day, and from the beginning of the scenarios to the first of the next months.
const DAY: i64 = 86_400;
const DECEMBER: i64 = 16 * DAY + 6_400;
const JANUARY: i64 = DECEMBER + 31 * DAY;

fn month(now: i64) -> i64 {
    at(now).month()
}

async fn granted(store: &Store, operator: OperatorId, now: i64) {
    let new = NewGrant {
        event: LedgerEventId::new(at(now)),
        asset: ASSET.to_owned(),
        operator,
        amount: MicroUsdc(100),
        given: false,
        reference: format!("at {now}"),
        now: at(now),
    };
    assert_eq!(store.money().grant(new).await.unwrap(), Granted::Done);
}

/// Seals every day before an instant.
async fn sealed_before(store: &Store, now: i64) {
    while let Some(closed) = store.money().seal_next(at(now).day() - 1).await.unwrap() {
        assert!(store.money().seal_put(seal(closed)).await.unwrap());
    }
}

/// Returns the movements of a month, as a file has them.
async fn read(store: &Store, month: i64) -> Vec<LedgerMovement> {
    let mut movements = Vec::new();
    for seal in store.money().month_seals(month).await.unwrap().unwrap() {
        let mut last = String::new();
        loop {
            let (page, next) = store.money().day_movements(seal.closed.day, &last).await.unwrap();
            movements.extend(page);
            let Some(next) = next else { break };
            last = next;
        }
    }
    movements
}

/// Archives the oldest month and returns its file.
async fn archived(store: &Store) -> (i64, Vec<LedgerMovement>) {
    let month = store.money().next_to_archive().await.unwrap().unwrap();
    let file = read(store, month).await;
    let archived = store.money().archive(month).await.unwrap();
    assert_eq!(archived, MonthArchived::Archived(file.len() as u64));
    (month, file)
}

/// Returns what breaks a rule of archived months that have these files.
async fn broken(store: &Store, files: &[(i64, Vec<LedgerMovement>)]) -> Vec<MoneyFault> {
    let (mut proof, mut found) = (ArchiveProof::default(), Vec::new());
    let money = store.money();
    for (month, file) in files {
        let mut movements = file.iter().cloned();
        let days = money.archived_days(*month, "a file", &mut movements, &mut proof).await;
        found.extend(days.unwrap());
        found.extend(money.archived_openings(*month, &proof).await.unwrap());
    }
    found.extend(money.archived_sums(proof).await.unwrap());
    found
}

fn rules(faults: &[MoneyFault]) -> BTreeSet<&'static str> {
    faults.iter().map(|fault| fault.rule).collect()
}

/// A market whose buyer bought in two months, with a release and a refund, and that goes on in a third.
async fn market(store: &Store) -> Market {
    let market = Market::new(store, 300_000, false).await;
    give(store, market.buyer, 5_000_000, false, "g").await;
    market.buy(store, 10).await;
    // More than a page of events on a day.
    for second in 0..600 {
        granted(store, market.buyer, DAY + 600 - second).await;
    }
    super::money::merge(store, market.seller, market.item, 2).await;
    market.buy(store, DECEMBER + 20).await;
    store.money().release(ASSET, at(DECEMBER + 3 * DAY), 10).await.unwrap();
    super::money::merge(store, market.seller, market.item, 3).await;
    market.buy(store, JANUARY + 20).await;
    market
}

/// Months leave the database one after the other. What stays is proven from there on, and the journal ends there.
pub async fn a_month_leaves_the_database_whole(url: &str) {
    let store = open(url).await;
    let market = market(&store).await;
    let before = balances(&store, market.buyer).await;
    sealed_before(&store, JANUARY).await;
    sound(&store).await;
    assert_eq!(store.money().archived_before(ASSET, market.buyer).await.unwrap(), None);
    let mut files = Vec::new();
    for (begin, end) in [(0, DECEMBER), (DECEMBER, JANUARY)] {
        let (archived, file) = archived(&store).await;
        assert_eq!(archived, month(begin));
        assert!(!file.is_empty());
        files.push((archived, file));
        sound(&store).await;
        assert_eq!(broken(&store, &files).await, []);
        assert_eq!(balances(&store, market.buyer).await, before);
        let money = store.money();
        let journal = money.journal(ASSET, market.buyer, EntryFilter::default(), EntryCursor::NEWEST, 50);
        let (entries, next) = journal.await.unwrap();
        assert!(
            entries.iter().all(|entry| entry.at >= at(end)) && next.is_none(),
            "{entries:?}"
        );
        assert!(!entries.is_empty());
        let ends = store.money().archived_before(ASSET, market.buyer).await.unwrap();
        assert_eq!(ends, Some(Timestamp::of_month(month(end))));
    }
    assert_eq!(
        store.money().archived_months().await.unwrap(),
        [month(0), month(DECEMBER)]
    );
    assert_eq!(store.money().next_to_archive().await.unwrap(), Some(month(JANUARY)));
    // It goes on, and who was never archived has no opening.
    let carol = operator(&store, "carol@example.org").await;
    granted(&store, carol, JANUARY + 50).await;
    granted(&store, market.buyer, JANUARY + 60).await;
    assert_eq!(store.money().archived_before(ASSET, carol).await.unwrap(), None);
    sound(&store).await;
    assert_eq!(broken(&store, &files).await, []);
    // An event that was archived stays one event.
    let again = super::money::grant(&store, market.buyer, 5_000_000, false, "g").await;
    assert_eq!(again, Granted::Repeated);
}

/// A month that is not sealed to its last day stays, one is archived once, and no other movement can be deleted.
pub async fn only_a_sealed_month_leaves_the_database(url: &str) {
    let store = open(url).await;
    let bob = operator(&store, "bob@example.org").await;
    assert_eq!(store.money().next_to_archive().await.unwrap(), None);
    for now in [0, DECEMBER - 1, DECEMBER, JANUARY] {
        granted(&store, bob, now).await;
    }
    sealed_before(&store, DECEMBER - DAY).await;
    let november = month(0);
    assert_eq!(store.money().month_seals(november).await.unwrap(), None);
    assert_eq!(store.money().archive(november).await.unwrap(), MonthArchived::Unsealed);
    sealed_before(&store, JANUARY).await;
    // Twelve at once, and one of them does it.
    let stores = [store.clone(), open(url).await];
    let archiving = super::fixture::race(stores, 12, move |store, _| async move {
        store.money().archive(november).await.unwrap()
    });
    let done = archiving.await;
    let once = done.iter().filter(|done| **done == MonthArchived::Archived(2)).count();
    assert_eq!(once, 1, "{done:?}");
    assert!(done.iter().all(|done| *done != MonthArchived::Unsealed), "{done:?}");
    for text in [
        "DELETE FROM ledger_transfers",
        "DELETE FROM ledger_events",
        "DELETE FROM ledger_openings",
        "UPDATE ledger_openings SET balance = balance + 1",
    ] {
        let changing = store.write_aside(move |cx| {
            Box::pin(async move {
                sqlx::query(text).execute(cx).await?;
                Ok(crate::writer::Change::Keep(()))
            })
        });
        assert!(changing.await.is_err(), "{text}");
    }
    sound(&store).await;
}

/// Two processes whose clocks differ post around midnight of the month, so the numbers of an account do not follow its
/// days: the rest is proven all the same.
pub async fn a_month_ends_although_its_numbers_do_not(url: &str) {
    let store = open(url).await;
    let bob = operator(&store, "bob@example.org").await;
    for now in [
        0,
        DECEMBER + 1,
        DECEMBER - 1,
        DECEMBER + 2,
        JANUARY + 1,
        JANUARY - 1,
        JANUARY + 2,
    ] {
        granted(&store, bob, now).await;
    }
    sealed_before(&store, JANUARY + DAY).await;
    let mut files = Vec::new();
    for _ in 0..2 {
        files.push(archived(&store).await);
        sound(&store).await;
        assert_eq!(broken(&store, &files).await, []);
    }
    granted(&store, bob, JANUARY + 2 * DAY).await;
    sound(&store).await;
    // A movement of the open month that came before the last archived one is proven by the sum.
    unlock(&store, url, "ledger_transfers").await;
    let early = format!("month = {} AND credit_seq = 5", month(JANUARY));
    run(
        &store,
        format!("UPDATE ledger_transfers SET amount = amount + 1 WHERE {early}"),
    )
    .await;
    assert!(rules(&broken(&store, &files).await).contains("M2"));
}

/// Whoever can alter the journal can drop its triggers first.
async fn unlock(store: &Store, url: &str, table: &str) {
    let on = if url.starts_with("sqlite:") {
        String::new()
    } else {
        format!("ON {table}")
    };
    for action in ["update", "delete"] {
        run(store, format!("DROP TRIGGER {table}_no_{action} {on}")).await;
    }
}

/// What is changed in a file, in an opening or in what the movements were of is found.
pub async fn an_altered_archive_is_found(url: &str) {
    let store = open(url).await;
    let market = market(&store).await;
    sealed_before(&store, JANUARY).await;
    let files = vec![archived(&store).await, archived(&store).await];
    assert_eq!(broken(&store, &files).await, []);
    let sound_file = &files[0].1;
    let mut altered: Vec<Vec<LedgerMovement>> = Vec::new();
    let mut alter = |change: &dyn Fn(&mut Vec<LedgerMovement>)| {
        let mut file = sound_file.clone();
        change(&mut file);
        assert_ne!(file, *sound_file);
        altered.push(file);
    };
    alter(&|file| file.clear());
    alter(&|file| drop(file.pop()));
    alter(&|file| drop(file.remove(0)));
    alter(&|file| file.push(file[0].clone()));
    alter(&|file| file.swap(0, 5));
    alter(&|file| file[3].amount += 1);
    alter(&|file| file[3].debit_after += 1);
    alter(&|file| file[3].credit_seq += 1);
    alter(&|file| file[3].line += 1);
    alter(&|file| file[3].event = file[4].event.clone());
    alter(&|file| file[3].credit_account = file[0].debit_account.clone());
    for file in altered {
        let found = broken(&store, &[(files[0].0, file), files[1].clone()]).await;
        let of_file = |fault: &MoneyFault| fault.rule == "M4" && fault.subject == "a file";
        assert!(found.iter().any(of_file), "{found:?}");
    }
    // The file of another month.
    let found = broken(&store, &[(files[0].0, files[1].1.clone()), files[1].clone()]).await;
    assert!(rules(&found).contains("M4"), "{found:?}");
    let shared = format!("month = {}", files[0].0);
    unlock(&store, url, "ledger_openings").await;
    unlock(&store, url, "ledger_events").await;
    for (rule, alter, undo) in [
        (
            "M2",
            format!("UPDATE ledger_openings SET balance = balance + 1 WHERE {shared}"),
            format!("UPDATE ledger_openings SET balance = balance - 1 WHERE {shared}"),
        ),
        (
            "M2",
            format!("UPDATE ledger_openings SET seq = seq + 1 WHERE {shared}"),
            format!("UPDATE ledger_openings SET seq = seq - 1 WHERE {shared}"),
        ),
        (
            "M4",
            "UPDATE ledger_events SET subject = 'x' || subject WHERE key = 'g'".to_owned(),
            "UPDATE ledger_events SET subject = SUBSTR(subject, 2) WHERE key = 'g'".to_owned(),
        ),
        (
            "M6",
            "UPDATE sales SET price = price + 1, share = share + 1 WHERE version = 1".to_owned(),
            "UPDATE sales SET price = price - 1, share = share - 1 WHERE version = 1".to_owned(),
        ),
        (
            "M12",
            "UPDATE sales SET share = share + 1, fee = fee - 1 WHERE version = 1".to_owned(),
            "UPDATE sales SET share = share - 1, fee = fee + 1 WHERE version = 1".to_owned(),
        ),
    ] {
        run(&store, alter.clone()).await;
        let found = broken(&store, &files).await;
        assert!(rules(&found).contains(rule), "{alter}: {found:?}");
        run(&store, undo).await;
        assert_eq!(broken(&store, &files).await, []);
    }
    an_altered_opening_is_found(&store, &market, &files).await;
}

/// What is changed where the proof in the database begins, at the newest opening, is found.
async fn an_altered_opening_is_found(store: &Store, market: &Market, files: &[(i64, Vec<LedgerMovement>)]) {
    let shared = format!("month = {}", files[0].0);
    let newest = format!("month = {}", files[1].0);
    run(
        store,
        format!("UPDATE ledger_openings SET balance = balance + 1 WHERE {newest}"),
    )
    .await;
    assert!(rules(&faults(store, 0).await).contains("M2"));
    run(
        store,
        format!("UPDATE ledger_openings SET balance = balance - 1 WHERE {newest}"),
    )
    .await;
    // An opening that is removed, and a movement that is put back.
    let account = format!("{ASSET}|credits:{}", market.buyer);
    run(
        store,
        format!("DELETE FROM ledger_openings WHERE {shared} AND account = '{account}'"),
    )
    .await;
    assert!(rules(&broken(store, files).await).contains("M2"));
    let back = &files[1].1[0];
    run(
        store,
        format!(
            "INSERT INTO ledger_transfers (event_id, line, amount, debit_account, debit_seq, debit_after, credit_account,
                                           credit_seq, credit_after, month)
             VALUES ('{}', {}, {}, '{}', {}, {}, '{}', {}, {}, {})",
            back.event,
            back.line,
            back.amount,
            back.debit_account,
            back.debit_seq,
            back.debit_after,
            back.credit_account,
            back.credit_seq,
            back.credit_after,
            files[1].0
        ),
    )
    .await;
    assert!(rules(&faults(store, 0).await).contains("M4"));
}
