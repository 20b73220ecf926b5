use proof::{Keys, SaleReceipt, VerifiedStatement};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use types::{Clock as _, OperatorId, SaleId, Timestamp};

use crate::keys;
use crate::ops::knowledge::tests::World;
use crate::rules::receipts::faults;
use crate::testing::{Got, Service};

/// A version of `weather` that the agent `theirs` has bought for half a dollar.
struct Sold {
    service: Service,
    mine: String,
    theirs: String,
    bought: Value,
}

impl Sold {
    async fn start() -> Self {
        let service = Service::start().await;
        let (owner, other) = (service.operator().await, service.operator().await);
        let (mine, theirs) = (
            service.agent(&owner, "mine").await,
            service.agent(&other, "theirs").await,
        );
        let paid = json!({"access": "paid", "price": "0.50"});
        service.project(&mine, "weather", &paid).await;
        service.merged(&mine, "weather", &[json!({"name": "a"})]).await;
        service.granted(operator_of(&service, &theirs).await, 1_000_000).await;
        let bought = service.call("POST", "/projects/weather/buy", Some(&theirs), "{}").await;
        assert_eq!(bought.status, 200, "{}", bought.text());
        Self {
            bought: bought.json(),
            service,
            mine,
            theirs,
        }
    }

    fn sale(&self) -> SaleId {
        self.bought["saleId"].as_str().unwrap().parse().unwrap()
    }

    async fn receipt(&self, key: &str) -> Got {
        let path = format!("/receipts/{}", self.sale());
        self.service.get(&path, Some(key)).await
    }

    async fn keys(&self) -> Keys {
        keys_of(&self.service).await
    }

    async fn faults(&self) -> usize {
        faults(&self.service.app.store, &*self.service.app.clock, 9)
            .await
            .unwrap()
            .len()
    }
}

async fn keys_of(service: &Service) -> Keys {
    let got = service.get("/.well-known/service-keys", None).await;
    Keys::parse(&got.bytes).unwrap()
}

/// Returns the operator of a key, which the link for credits names.
async fn operator_of(service: &Service, key: &str) -> OperatorId {
    let credits = service.get("/credits", Some(key)).await.json();
    let link = credits["topUp"].as_str().unwrap();
    link.split("operator=").nth(1).unwrap().parse().unwrap()
}

#[track_caller]
fn refused(got: &Got, status: u16, code: &str) {
    assert_eq!(
        (got.status.as_u16(), got.json()["error"].as_str()),
        (status, Some(code)),
        "{}",
        got.text()
    );
}

#[tokio::test]
async fn a_purchase_has_a_receipt_that_a_stranger_can_check() {
    let sold = Sold::start().await;
    let got = sold.receipt(&sold.theirs).await;
    assert_eq!(got.status, 200, "{}", got.text());
    assert_eq!(got.json(), sold.bought["receipt"], "the purchase had it already");
    let verified = VerifiedStatement::<SaleReceipt>::parse(&got.bytes, &sold.keys().await).unwrap();
    let receipt = verified.statement();
    assert_eq!(
        (receipt.sale_id, receipt.item.as_str(), receipt.version),
        (sold.sale(), "dataset:weather", 1)
    );
    assert_eq!((receipt.price_micro, receipt.fee_micro), (500_000, 120_000));
    let manifest = sold
        .service
        .get("/projects/weather/manifest", Some(&sold.theirs))
        .await
        .json();
    assert_eq!(
        receipt.content_root.unwrap().to_string(),
        manifest["root"].as_str().unwrap()
    );
    assert_eq!(receipt.license, manifest["license"].as_str().unwrap());
    assert_eq!(
        receipt.buyer,
        operator_of(&sold.service, &sold.theirs).await.to_string()
    );
    assert!(receipt.agent.is_some() && receipt.approved_by.is_none() && receipt.transaction.is_none());
    assert_eq!(
        (receipt.at, receipt.issued_at),
        (sold.service.clock.now(), sold.service.clock.now())
    );
    // The event of the ledger, as the day of the ledger has it.
    let store = &sold.service.app.store;
    let movements = store.money().movements(receipt.at.day(), "").await.unwrap();
    let moved: Vec<_> = movements
        .iter()
        .filter(|moved| moved.id == receipt.ledger_event.to_string())
        .collect();
    assert_eq!(moved.iter().map(|moved| moved.amount).sum::<i64>(), 500_000);
    assert!(
        moved
            .iter()
            .all(|moved| moved.kind == "sale" && moved.key == receipt.sale_id.to_string())
    );
    assert_eq!(sold.faults().await, 0);
}

#[tokio::test]
async fn a_receipt_is_for_its_buyer() {
    let sold = Sold::start().await;
    let path = format!("/receipts/{}", sold.sale());
    refused(&sold.receipt(&sold.mine).await, 404, "not_found");
    refused(&sold.service.get(&path, None).await, 401, "unauthenticated");
    let operator = sold.service.operator().await;
    refused(&sold.service.get(&path, Some(&operator)).await, 401, "unauthenticated");
    let missing = format!("/receipts/{}", SaleId::new(sold.service.clock.now()));
    let (missing, other) = (
        sold.service.get(&missing, Some(&sold.theirs)).await,
        sold.receipt(&sold.mine).await,
    );
    refused(&missing, 404, "not_found");
    let shape = |got: &Got| got.json()["message"].as_str().unwrap().len();
    assert_eq!(
        shape(&missing),
        shape(&other),
        "a missing one is answered like that of another"
    );
    refused(
        &sold.service.get("/receipts/x", Some(&sold.theirs)).await,
        400,
        "invalid_request",
    );
}

#[tokio::test]
async fn a_receipt_keeps_its_bytes_until_its_key_is_revoked() {
    let sold = Sold::start().await;
    let (store, clock) = (&sold.service.app.store, &*sold.service.app.clock);
    let first = sold.receipt(&sold.theirs).await.bytes;
    sold.service.clock.advance(std::time::Duration::from_mins(1));
    assert_eq!(sold.receipt(&sold.theirs).await.bytes, first);
    let changed = keys::rotate(store, clock).await.unwrap();
    sold.service.clock.advance(std::time::Duration::from_mins(1));
    assert_eq!(sold.receipt(&sold.theirs).await.bytes, first, "a retired key counts");
    VerifiedStatement::<SaleReceipt>::parse(&first, &sold.keys().await).unwrap();
    let revoked = changed.before.key_id.to_string();
    keys::revoke(store, clock, &revoked, "stolen").await.unwrap();
    assert_eq!(sold.faults().await, 0, "it is signed anew when it is asked for");
    // Many that ask at once get one.
    let asked = futures_util::future::join_all((0..20).map(|_| sold.receipt(&sold.theirs))).await;
    let keys = sold.keys().await;
    for got in &asked {
        assert_eq!((got.status.as_u16(), &got.bytes), (200, &asked[0].bytes));
    }
    let statement = |text: &[u8]| serde_json::from_slice::<SaleReceipt>(text).unwrap();
    let anew = VerifiedStatement::<SaleReceipt>::parse(&asked[0].bytes, &keys).unwrap();
    assert_eq!(anew.key(), changed.current.key_id);
    let at = Timestamp::from_micros(0);
    let but_issued = |statement: SaleReceipt| SaleReceipt {
        issued_at: at,
        ..statement
    };
    assert_eq!(
        but_issued(anew.statement().clone()),
        but_issued(statement(&first)),
        "it says the same"
    );
    let refused = VerifiedStatement::<SaleReceipt>::parse(&first, &keys).unwrap_err();
    assert!(matches!(refused, proof::Error::Revoked { .. }), "{refused}");
    assert_eq!(sold.faults().await, 0);
}

#[cfg(feature = "faults")]
#[test]
fn a_receipt_of_each_call_turns_a_test_red() {
    use types::fault::{InjectedBug, turns_red};
    assert!(turns_red(
        InjectedBug::ReceiptOfEachCall,
        a_receipt_keeps_its_bytes_until_its_key_is_revoked
    ));
}

#[tokio::test]
async fn a_receipt_that_is_kept_wrong_is_found() {
    let sold = Sold::start().await;
    let money = sold.service.app.store.money();
    let kept = sold.receipt(&sold.theirs).await.text();
    let replace = async |before: &str, text: &str| {
        let now = money.keep_receipt(sold.sale(), before, text).await.unwrap();
        assert_eq!(now.as_deref(), Some(text));
    };
    // Not signed any more.
    let forged = kept.replace("\"priceMicro\":500000", "\"priceMicro\":400000");
    replace(&kept, &forged).await;
    assert_eq!(sold.faults().await, 1);
    // Signed by the service, for another sale.
    let again = sold
        .service
        .call("POST", "/projects/weather/buy", Some(&sold.theirs), "{}")
        .await;
    assert_eq!(again.json()["charged"], false);
    sold.service
        .merged(&sold.mine, "weather", &[json!({"name": "b"})])
        .await;
    let next = sold
        .service
        .call("POST", "/projects/weather/buy", Some(&sold.theirs), "{}")
        .await;
    let next = next.json();
    let other = sold
        .service
        .get(
            &format!("/receipts/{}", next["saleId"].as_str().unwrap()),
            Some(&sold.theirs),
        )
        .await
        .text();
    replace(&forged, &other).await;
    assert_eq!(sold.faults().await, 1);
    replace(&other, &kept).await;
    assert_eq!(sold.faults().await, 0);
}

#[tokio::test]
async fn the_receipt_of_a_unit_has_the_hash_of_the_text_that_was_sold() {
    let world = World::start().await;
    let body = "Measured on ext4: 4,000-page checkpoints cost 1 in 200 commits 38 ms.";
    let id = world.submit_with(body, &json!({"price": "0.25"})).await.json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    world.publish(&id, 80).await;
    world
        .service
        .granted(operator_of(&world.service, &world.other).await, 1_000_000)
        .await;
    let bought = world
        .post(&format!("/knowledge/{id}/buy"), Some(&world.other), &json!({}))
        .await;
    assert_eq!(bought.status, 200, "{}", bought.text());
    let receipt = &bought.json()["receipt"];
    let hash = data_encoding::HEXLOWER.encode(&Sha256::digest(body.as_bytes()));
    assert_eq!(receipt["bodySha256"], hash.as_str());
    assert_eq!(
        (&receipt["item"], &receipt["version"]),
        (&json!(format!("unit:{id}")), &json!(1))
    );
    VerifiedStatement::<SaleReceipt>::parse(receipt.to_string().as_bytes(), &keys_of(&world.service).await).unwrap();
    // A later version changes nothing of what was sold.
    let next = world.revised(&id, "Another text, with other figures: 41 ms.").await;
    world.publish(&next, 82).await;
    let path = format!("/receipts/{}", bought.json()["saleId"].as_str().unwrap());
    assert_eq!(world.get(&path, Some(&world.other)).await.json(), *receipt);
    let found = faults(&world.service.app.store, &*world.service.app.clock, 9)
        .await
        .unwrap();
    assert_eq!(found, []);
}
