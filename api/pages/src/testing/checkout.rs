//! Samples of the pages of a purchase, and of limits on what is spent.

use types::money::MicroUsdc;
use types::vocabulary::{AskedBy, PaidWith, StaleReason};
use types::{AgentId, ApprovalId, SaleId, UnitId, Version};

use super::{Book, Texts, ago, ahead, person, visitor};
use crate::console::{
    ApprovalChange, ApprovalPage, LimitsForm, LimitsPage, ReceiptPage, ShownApproval, WaitingPurchase,
};
use crate::{
    BuyPage, BuyerAccount, BuyingAgent, Checkout, CheckoutState, CheckoutThing, CreditBalance, Error, FieldError,
    PaymentWay, SpendLine, SpendOwnerName, SpendRow, WalletOffer,
};

/// Id of a form.
const FORM: &str = "5c3e90d7-f214-7d2e-8f40-a6b1019b0c11";

pub(super) fn add(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    buying(book, texts)?;
    questions(book, texts)?;
    receipts(book, texts)?;
    limits_pages(book, texts)
}

/// Returns the limits of an agent, or none.
pub(super) fn spent(is_capped: bool) -> SpendLine {
    let cap = |micro: i64| is_capped.then_some(MicroUsdc(micro));
    SpendLine {
        per_purchase: cap(3_000_000),
        per_day: cap(4_000_000),
        per_month: cap(5_000_000),
        approve_above: cap(1_000_000),
        on_day: MicroUsdc(250_000),
        in_month: MicroUsdc(1_761_250),
    }
}

/// Returns limits that let nothing pass.
fn closed() -> SpendLine {
    SpendLine {
        per_month: Some(MicroUsdc(0)),
        ..SpendLine::default()
    }
}

/// Returns the limits of agents and apps.
pub(super) fn limits(texts: &Texts) -> Vec<SpendRow> {
    let agent = |name: &str| SpendOwnerName::Agent {
        id: name.chars().filter(char::is_ascii_alphanumeric).take(40).collect(),
        name: name.to_owned(),
    };
    let row = |owner: SpendOwnerName, line: SpendLine| SpendRow { owner, line };
    let app = SpendOwnerName::App {
        id: FORM.to_owned(),
        client: texts.name.clone(),
        agent: texts.name.clone(),
    };
    vec![
        row(agent("loess-9"), spent(true)),
        row(agent(&texts.name), closed()),
        row(agent("dune-walker"), SpendLine::default()),
        row(app, spent(true)),
    ]
}

/// Returns a purchase that waits.
pub(super) fn waiting(texts: &Texts, version: Option<u64>, reason: Option<String>) -> WaitingPurchase {
    WaitingPurchase {
        id: ApprovalId::from_bytes([if version.is_some() { 5 } else { 6 }; 16]),
        agent: texts.name.clone(),
        href: "/projects/tide-levels".to_owned(),
        title: texts.text.clone(),
        version,
        price: MicroUsdc(2_500_000),
        reason,
        asked_at: ago(128),
        expires_at: ahead(1_312),
    }
}

/// Returns the credits of an account.
pub(super) const fn credits() -> CreditBalance {
    CreditBalance {
        bought: MicroUsdc(2_850_000),
        given: MicroUsdc(400_000),
    }
}

/// Returns what a wallet is offered.
pub(super) fn wallet(texts: &Texts) -> WalletOffer {
    WalletOffer {
        price: MicroUsdc(500_000),
        network: "eip155:84532".to_owned(),
        asset: "0x5111cE0000000000000000000000000000000402".to_owned(),
        pay_to: "0x7a3F0b6E5d2C4A19885fE0C3B8d1F6a2E4b591cE".to_owned(),
        url: "https://sluice.example/paid/dataset?slug=tide-levels".to_owned(),
        terms: format!("{{\"description\": \"{}\"}}", texts.text),
        faucet: Some(5),
    }
}

fn dataset(texts: &Texts, price: i64) -> Checkout {
    Checkout {
        thing: CheckoutThing::Dataset {
            slug: "tide-levels".to_owned(),
            version: Version(1_242),
            records: Some(839_412),
            bytes: Some(6_396_313),
        },
        title: texts.text.clone(),
        agent: None,
        license: Some("CC-BY-4.0".to_owned()),
        price: MicroUsdc(price),
        takes_trial_credit: true,
    }
}

fn unit(texts: &Texts) -> Checkout {
    Checkout {
        thing: CheckoutThing::Unit {
            id: UnitId::from_bytes([9; 16]),
            length: Some(3_218),
        },
        title: texts.text.clone(),
        agent: Some(texts.name.clone()),
        license: None,
        price: MicroUsdc(2_860_000),
        takes_trial_credit: false,
    }
}

fn account(texts: &Texts, count: usize) -> BuyerAccount {
    let agent = |number: u8, name: &str, line: SpendLine| BuyingAgent {
        id: AgentId::from_bytes([number; 16]),
        name: name.to_owned(),
        line,
    };
    let mut agents = vec![
        agent(1, "silt-2", closed()),
        agent(2, &texts.name, spent(true)),
        agent(3, "dune-walker", SpendLine::default()),
    ];
    agents.truncate(count);
    BuyerAccount {
        credits: credits(),
        agents,
        top_up: format!("/paid/credits?operator={FORM}"),
    }
}

fn buying(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    let path = "/projects/tide-levels/buy?version=1242";
    let page = |checkout: Checkout, state: CheckoutState, way: PaymentWay, agents: Option<usize>| BuyPage {
        chrome: if agents.is_some() {
            person(path, texts, 0)
        } else {
            visitor(path)
        },
        price_before: (agents == Some(2)).then_some(MicroUsdc(90_000)),
        sign_in: "/signin?next=/projects/tide-levels/buy%3Fversion%3D1242".to_owned(),
        form: FORM.to_owned(),
        wallet: (way == PaymentWay::Wallet).then(|| wallet(texts)),
        account: agents.map(|count| account(texts, count)),
        checkout,
        state,
        way,
    };
    let sold = CheckoutState::OnSale;
    let pages = [
        ("buy", page(dataset(texts, 100_000), sold, PaymentWay::Credits, Some(3))),
        (
            "buy-risen",
            page(dataset(texts, 500_000), sold, PaymentWay::Credits, Some(2)),
        ),
        (
            "buy-capped",
            page(dataset(texts, 500_000), sold, PaymentWay::Credits, Some(1)),
        ),
        ("buy-short", page(unit(texts), sold, PaymentWay::Credits, Some(3))),
        ("buy-no-agent", page(unit(texts), sold, PaymentWay::Credits, Some(0))),
        ("buy-visitor", page(unit(texts), sold, PaymentWay::Credits, None)),
        (
            "buy-wallet",
            page(dataset(texts, 500_000), sold, PaymentWay::Wallet, None),
        ),
        ("buy-agent", page(unit(texts), sold, PaymentWay::Agent, Some(3))),
        (
            "buy-agent-visitor",
            page(dataset(texts, 500_000), sold, PaymentWay::Agent, None),
        ),
        (
            "buy-bought",
            page(
                dataset(texts, 500_000),
                CheckoutState::Bought(SaleId::from_bytes([7; 16])),
                PaymentWay::Credits,
                Some(3),
            ),
        ),
        (
            "buy-own",
            page(unit(texts), CheckoutState::Own, PaymentWay::Credits, Some(3)),
        ),
        (
            "buy-free",
            page(unit(texts), CheckoutState::Free, PaymentWay::Credits, Some(3)),
        ),
        (
            "buy-unsold",
            page(unit(texts), CheckoutState::Unsold, PaymentWay::Wallet, None),
        ),
        (
            "buy-empty",
            page(dataset(texts, 500_000), CheckoutState::Empty, PaymentWay::Credits, None),
        ),
    ];
    for (name, page) in &pages {
        book.add(name, page)?;
    }
    Ok(())
}

fn questions(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    let id = ApprovalId::from_bytes([5; 16]);
    let page = |state: ShownApproval, checkout: Checkout, by_app: bool| ApprovalPage {
        chrome: person(&format!("/console/approvals/{id}"), texts, 1),
        id,
        state,
        checkout,
        changed: None,
        asked_by: if by_app { AskedBy::Agent } else { AskedBy::Person },
        agent: texts.name.clone(),
        app: by_app.then(|| texts.name.clone()),
        account: texts.name.clone(),
        reason: by_app.then(|| texts.text.clone()),
        asked_at: ago(128),
        expires_at: ahead(1_312),
        credits: credits(),
        line: spent(by_app),
        app_line: by_app.then(|| spent(true)),
        top_up: format!("/paid/credits?operator={FORM}"),
    };
    let waiting = ShownApproval::Waiting;
    book.add("console-approval", &page(waiting, dataset(texts, 2_500_000), true))?;
    book.add(
        "console-approval-person",
        &page(waiting, dataset(texts, 100_000), false),
    )?;
    book.add("console-approval-short", &page(waiting, unit(texts), false))?;
    let capped = ApprovalPage {
        changed: Some(ApprovalChange::Price(MicroUsdc(3_900_000))),
        ..page(waiting, dataset(texts, 3_800_000), true)
    };
    book.add("console-approval-capped", &capped)?;
    for (name, changed) in [
        ("console-approval-unsold", ApprovalChange::Item),
        (
            "console-approval-owned",
            ApprovalChange::Owned(SaleId::from_bytes([7; 16])),
        ),
    ] {
        let page = ApprovalPage {
            changed: Some(changed),
            ..page(waiting, dataset(texts, 100_000), false)
        };
        book.add(name, &page)?;
    }
    let ends = [
        (
            "console-approval-bought",
            ShownApproval::Bought(SaleId::from_bytes([7; 16])),
        ),
        ("console-approval-denied", ShownApproval::Denied(Some(ago(4)))),
        ("console-approval-expired", ShownApproval::Expired),
        (
            "console-approval-stale",
            ShownApproval::Stale(StaleReason::Price, Some(id)),
        ),
        ("console-approval-gone", ShownApproval::Stale(StaleReason::Item, None)),
    ];
    for (name, state) in ends {
        book.add(name, &page(state, unit(texts), true))?;
    }
    Ok(())
}

fn receipts(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    let sale = SaleId::from_bytes([7; 16]);
    let page = |checkout: Checkout, is_refunded: bool| ReceiptPage {
        chrome: person(&format!("/console/receipts/{sale}"), texts, 0),
        sale,
        checkout,
        paid_with: if is_refunded {
            PaidWith::Credits
        } else {
            PaidWith::Given
        },
        account: texts.name.clone(),
        agent: Some(texts.name.clone()),
        is_approved: !is_refunded,
        sold_at: ago(2),
        disputed_until: (!is_refunded).then(|| ahead(10_078)),
        is_disputed: is_refunded,
        is_refunded,
        fingerprint: Some("83b419ccc5d9ef72d7f35b587261a0f083b419ccc5d9ef72d7f35b587261a0f0".to_owned()),
        key: "557eb63353d68c62".to_owned(),
        document: format!("{{\n  \"item\": \"{}\"\n}}", texts.word),
    };
    book.add("console-receipt", &page(dataset(texts, 100_000), false))?;
    book.add("console-receipt-refunded", &page(unit(texts), true))
}

fn limits_pages(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    let page = |row: SpendRow, errors: Vec<FieldError>| LimitsPage {
        chrome: person(&row.owner.form(), texts, 0),
        form: LimitsForm {
            errors,
            ..LimitsForm::of(&row.line)
        },
        owner: row.owner,
        line: row.line,
    };
    let mut rows = limits(texts);
    let errors = vec![FieldError::new("per_day", "per_day: must be dollars from 0 on")];
    let app = rows.pop();
    if let Some(app) = app {
        book.add("console-limits-app", &page(app, errors))?;
    }
    for (name, row) in ["console-limits", "console-limits-closed", "console-limits-none"]
        .into_iter()
        .zip(rows)
    {
        book.add(name, &page(row, Vec::new()))?;
    }
    Ok(())
}
