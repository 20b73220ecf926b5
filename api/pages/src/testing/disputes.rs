//! Samples of the pages of disputes.

use types::money::MicroUsdc;
use types::vocabulary::{DisputeState, ItemKind};
use types::{DisputeId, SaleId, Timestamp};

use super::{Book, Texts, ago, ahead, person};
use crate::console::{
    DecideDisputePage, DisputePage, DisputeReader, DisputeView, DisputesPage, DisputesPart, OpenDisputePage,
};
use crate::{Error, FieldError, Instant};

const PATH: &str = "/console/disputes/0b0b0b0b-0b0b-0b0b-0b0b-0b0b0b0b0b0b";
/// Time in which a sale can be disputed.
const WINDOW: &str = "7 days";

fn time(at: Instant) -> Timestamp {
    Timestamp::from_micros(at.0)
}

/// Returns a dispute.
fn dispute(texts: &Texts, number: u8, reader: DisputeReader, state: DisputeState) -> DisputeView {
    let is_open = state == DisputeState::Open;
    DisputeView {
        id: DisputeId::from_bytes([number; 16]),
        sale: SaleId::from_bytes([number; 16]),
        reader,
        kind: if number.is_multiple_of(2) {
            ItemKind::Unit
        } else {
            ItemKind::Dataset
        },
        title: texts.text.clone(),
        href: "/projects/tide-levels".to_owned(),
        version: 1_242,
        price: MicroUsdc(1_000_000),
        share: MicroUsdc(730_000),
        is_trial: number == 4,
        sold_at: time(ago(4_000)),
        opened_at: time(ago(1_600)),
        is_opened_by_administrator: number == 5,
        due: Some(time(ahead(2_700))),
        reason: texts.text.clone(),
        reply: (!is_open).then(|| (time(ago(900)), texts.text.clone())),
        state,
        ended_at: (!is_open).then(|| time(ago(100))),
        is_given_back: number == 6,
        decision: if is_open { String::new() } else { texts.text.clone() },
    }
}

/// Returns disputes of an account, in every state.
pub(super) fn some(texts: &Texts) -> DisputesPart {
    let answered = DisputeView {
        reply: Some((time(ago(20)), texts.text.clone())),
        ..dispute(texts, 2, DisputeReader::Seller, DisputeState::Open)
    };
    let late = DisputeView {
        due: Some(time(ago(10))),
        ..dispute(texts, 3, DisputeReader::Seller, DisputeState::Open)
    };
    let disputes = [
        dispute(texts, 1, DisputeReader::Seller, DisputeState::Open),
        answered,
        late,
        dispute(texts, 4, DisputeReader::Buyer, DisputeState::Open),
        dispute(texts, 5, DisputeReader::Seller, DisputeState::Refunded),
        dispute(texts, 6, DisputeReader::Buyer, DisputeState::Refunded),
        dispute(texts, 7, DisputeReader::Seller, DisputeState::Released),
        dispute(texts, 8, DisputeReader::Buyer, DisputeState::Released),
    ];
    DisputesPart::of(disputes, WINDOW.to_owned())
}

pub(super) fn add(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    let list = |to_decide: Option<Vec<DisputeView>>, is_later: bool| DisputesPage {
        chrome: person("/console/disputes", texts, 2),
        disputes: some(texts),
        to_decide,
        next: is_later.then(|| "/console/disputes?cursor=0b".to_owned()),
        is_later,
    };
    let to_decide = dispute(texts, 9, DisputeReader::Administrator, DisputeState::Open);
    book.add("console-disputes", &list(None, true))?;
    book.add(
        "console-disputes-administrator",
        &list(Some(vec![to_decide.clone()]), false),
    )?;
    let page = |dispute: DisputeView, decides: bool| DisputePage {
        chrome: person(PATH, texts, 1),
        dispute,
        decides,
        answer: String::new(),
        errors: Vec::new(),
    };
    let states = [DisputeState::Open, DisputeState::Refunded, DisputeState::Released];
    let names = ["open", "refunded", "released"];
    for (name, state) in names.into_iter().zip(states) {
        let seller = page(dispute(texts, 1, DisputeReader::Seller, state), false);
        book.add(&format!("console-dispute-seller-{name}"), &seller)?;
        let buyer = page(dispute(texts, 6, DisputeReader::Buyer, state), false);
        book.add(&format!("console-dispute-buyer-{name}"), &buyer)?;
    }
    let refused = DisputePage {
        answer: texts.text.clone(),
        errors: vec![FieldError::new("answer", "Must say something.")],
        ..page(dispute(texts, 4, DisputeReader::Seller, DisputeState::Open), false)
    };
    book.add("console-dispute-refused", &refused)?;
    book.add("console-dispute-administrator", &page(to_decide.clone(), true))?;
    let open = |until: Option<Timestamp>, errors: Vec<FieldError>| OpenDisputePage {
        chrome: person("/console/sales/0b0b0b0b-0b0b-0b0b-0b0b-0b0b0b0b0b0b/dispute", texts, 0),
        sale: SaleId::from_bytes([11; 16]),
        title: texts.text.clone(),
        href: "/projects/tide-levels".to_owned(),
        price: MicroUsdc(500_000),
        sold_at: time(ago(4_000)),
        until,
        reason: texts.text.clone(),
        errors,
    };
    let until = Some(time(ahead(6_000)));
    book.add("console-dispute-new", &open(until, Vec::new()))?;
    let wrong = vec![FieldError::new("reason", "Must say something.")];
    book.add("console-dispute-new-refused", &open(until, wrong))?;
    book.add("console-dispute-too-late", &open(None, Vec::new()))?;
    let decide = |end: Option<DisputeState>, errors: Vec<FieldError>| DecideDisputePage {
        chrome: person(&format!("{PATH}/decide"), texts, 1),
        dispute: to_decide.clone(),
        end,
        words: texts.text.clone(),
        errors,
    };
    book.add("console-dispute-decide", &decide(None, Vec::new()))?;
    let wrong = vec![
        FieldError::new("end", "Must be chosen."),
        FieldError::new("words", "Must say something."),
    ];
    book.add(
        "console-dispute-decide-refused",
        &decide(Some(DisputeState::Released), wrong),
    )
}

pub(super) fn add_empty(book: &mut Book) -> Result<(), Error> {
    let page = DisputesPage {
        chrome: person("/console/disputes", &Texts::usual(), 0),
        disputes: DisputesPart::of([], WINDOW.to_owned()),
        to_decide: Some(Vec::new()),
        next: None,
        is_later: false,
    };
    book.add("console-disputes", &page)
}
