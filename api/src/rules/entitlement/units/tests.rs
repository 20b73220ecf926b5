use store::{Chain, Language, MarkCounts, TakedownReason, UnitAction};
use types::{AgentId, Timestamp};

use super::*;

fn unit(status: UnitStatus, price_micro: Option<i64>) -> Unit {
    let (id, operator) = (UnitId::from_bytes([1; 16]), OperatorId::from_bytes([2; 16]));
    let now = Timestamp::from_micros(0);
    Unit {
        id,
        chain: Chain {
            id,
            operator,
            price_micro,
            price_changed_at: None,
            trial_sale: false,
            license: String::new(),
            latest: Some(id),
            versions: 1,
            best_score: 60,
            retired_at: None,
            taken_down: None,
            erased_at: None,
            readers: 0,
            rating_count: 0,
            rating_sum: 0,
            comment_count: 0,
            sold_count: 0,
            marks: MarkCounts::default(),
        },
        predecessor: None,
        number: Some(1),
        agent: AgentId::from_bytes([3; 16]),
        agent_name: String::new(),
        action: UnitAction::Submit,
        title: String::new(),
        body: String::new(),
        category: String::new(),
        source_declaration: String::new(),
        status,
        generation: 0,
        submitted_at: now,
        decided_at: None,
        published_at: None,
        waiting_reason: None,
        resumes_after: None,
        reject_code: None,
        reject_message: None,
        scores: None,
        language: Language::English,
        length: 1,
        near: None,
        is_of_trusted_seller: false,
    }
}

/// Callers: nobody, a stranger, a reader, a buyer, the owner.
fn callers() -> [UnitRelation; 5] {
    let stranger = UnitRelation {
        has_key: true,
        ..UnitRelation::default()
    };
    let reader = UnitRelation {
        has_read: true,
        ..stranger
    };
    let buyer = UnitRelation {
        has_bought: true,
        ..stranger
    };
    let owner = UnitRelation { owns: true, ..stranger };
    [UnitRelation::default(), stranger, reader, buyer, owner]
}

const fn priced(micro: i64, key_reads: bool) -> FullRead {
    FullRead::Priced {
        price: MicroUsdc(micro),
        key_reads,
    }
}

/// Every cell of the table of full reads.
#[test]
fn a_full_read_has_the_terms_of_its_status_price_and_caller() {
    use FullRead::{Hidden, Open, Permitted, Recorded};
    let [one, cent] = [250_000, 10_000];
    let table = [
        (Some(0), [Open, Permitted, Permitted, Permitted, Open]),
        (None, [priced(cent, true), Recorded, Recorded, Recorded, Open]),
        (
            Some(one),
            [
                priced(one, false),
                priced(one, false),
                priced(one, false),
                Recorded,
                Open,
            ],
        ),
    ];
    for (price, expected) in table {
        for status in [UnitStatus::Published, UnitStatus::Superseded] {
            let told = callers().map(|caller| full_read(&unit(status, price), caller));
            assert_eq!(told, expected, "{status} {price:?}");
        }
        for status in [UnitStatus::Queued, UnitStatus::Waiting, UnitStatus::Rejected] {
            let told = callers().map(|caller| full_read(&unit(status, price), caller));
            assert_eq!(told, [Hidden, Hidden, Hidden, Hidden, Open], "{status} {price:?}");
        }
        let mut retired = unit(UnitStatus::Published, price);
        retired.chain.retired_at = Some(Timestamp::from_micros(1));
        let told = callers().map(|caller| full_read(&retired, caller));
        assert_eq!(told, [Hidden, Hidden, Open, Recorded, Open], "retired {price:?}");
        for reason in TakedownReason::WORDS {
            let reason: TakedownReason = reason.parse().unwrap();
            let mut hidden = unit(UnitStatus::Published, price);
            hidden.chain.taken_down = Some((Timestamp::from_micros(1), reason));
            let buyer = match reason {
                TakedownReason::Spam | TakedownReason::Inaccurate => Open,
                _ => Hidden,
            };
            let told = callers().map(|caller| full_read(&hidden, caller));
            assert_eq!(told, [Hidden, Hidden, Hidden, buyer, Hidden], "{reason} {price:?}");
            hidden.chain.erased_at = Some(Timestamp::from_micros(2));
            let told = callers().map(|caller| full_read(&hidden, caller));
            assert_eq!(told, [Hidden; 5], "erased, {reason} {price:?}");
        }
    }
}

#[test]
fn a_takedown_outranks_a_retirement() {
    let mut unit = unit(UnitStatus::Published, None);
    unit.chain.retired_at = Some(Timestamp::from_micros(1));
    assert_eq!(ShownStatus::of(&unit), ShownStatus::Retired);
    unit.chain.taken_down = Some((Timestamp::from_micros(2), TakedownReason::Checking));
    assert_eq!(ShownStatus::of(&unit), ShownStatus::TakenDown);
}
