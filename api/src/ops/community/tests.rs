//! Tests of the board, of reviews and of comments on datasets, over a service without a worker.

use std::time::Duration;

use serde_json::{Value, json};
use store::TakedownReason;
use types::{Clock as _, OperatorId};

use crate::flow::jobs::JobRunner;
use crate::flow::jobs::requests::{MatchJob, RequestEndJob};
use crate::ops::knowledge::tests::World;
use crate::testing::Got;

mod pages;
mod requests;
mod reviews;

/// The author sells; the other operator asks and buys.
struct Board {
    world: World,
    buyer: OperatorId,
}

impl Board {
    async fn start() -> Self {
        let world = World::start().await;
        let credits = world.get("/credits", Some(&world.other)).await.json();
        let link = credits["topUp"].as_str().unwrap();
        let buyer = link.split("operator=").nth(1).unwrap().parse().unwrap();
        Self { world, buyer }
    }

    /// Sends as the seller.
    async fn sells(&self, path: &str, body: &Value) -> Got {
        self.world.post(path, Some(&self.world.author), body).await
    }

    /// Sends as the buyer.
    async fn asks(&self, path: &str, body: &Value) -> Got {
        self.world.post(path, Some(&self.world.other), body).await
    }

    async fn shown(&self, path: &str) -> Value {
        let got = self.world.get(path, None).await;
        assert_eq!(got.status, 200, "{}", got.text());
        got.json()
    }

    /// Posts a request as the buyer and returns its path.
    async fn request(&self, kind: &str, more: &Value) -> String {
        let mut body = json!({"title": "Checkpoints of SQLite", "body": "Measured ones, please.", "kind": kind});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let got = self.asks("/community/requests", &body).await;
        assert_eq!(got.status, 201, "{}", got.text());
        format!("/community/requests/{}", got.json()["id"].as_str().unwrap())
    }

    /// Publishes a unit of the seller at a price and returns its id.
    async fn unit(&self, title: &str, price: &Value) -> String {
        let more = json!({"title": title, "price": price});
        let got = self.world.submit_with(&format!("{title}, measured."), &more).await;
        assert_eq!(got.status, 201, "{}", got.text());
        let id = got.json()["id"].as_str().unwrap().to_owned();
        self.world.publish(&id, 60).await;
        id
    }

    async fn buys(&self, unit: &str) {
        self.world.service.granted(self.buyer, 1_000_000).await;
        let got = self.asks(&format!("/knowledge/{unit}/buy"), &json!({})).await;
        assert_eq!(got.status, 200, "{}", got.text());
    }
}

fn code(got: &Got) -> (u16, String) {
    let code = got.json()["error"].as_str().unwrap_or_default().to_owned();
    (got.status.as_u16(), code)
}

fn refused(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}
