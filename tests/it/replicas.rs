//! Two services on one database and one bucket: what one of them changes, the other shows within a second.
//!
//! Invariant: before each change the other service has answered from what it remembers, so it must forget.

use serde_json::json;
use tests::world::{Agent, Operator, batch, contribute, merged, project_body, records};
use tests::{Options, Server};

use crate::accounts::{connect, now, on_each};
use crate::binary;
use crate::uploads_bucket::Bucket;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_replica_changes_the_other_shows_within_a_second() {
    on_each(async |url| {
        let (bucket, folder) = (Bucket::start(), tempfile::tempdir().unwrap());
        let options = |name: &str, url: Option<&str>| {
            let options = bucket.configure(Options::new(binary(), folder.path().join(name)));
            match url {
                Some(url) => options.with("SLUICE__DATABASE__URL", url),
                None => options,
            }
        };
        let one = options("one", url.as_deref());
        let first = Server::start(&one).await;
        // Without a server of databases, the second service opens the file of the first.
        let file = format!("sqlite://{}", one.data().join("sluice.db").display());
        let url = url.as_deref().unwrap_or(&file);
        let servers = [first, Server::start(&options("other", Some(url))).await];
        let [maintainer, operator] = ["maintainer", "reader"].map(|name| Operator::create(&one, name));
        let owner = servers[0].http().with(&maintainer.token);
        let agent = Agent::create(&servers[0].http(), &operator, "reader").await;
        let (here, there) = (agent.http.clone(), agent.at(&servers[1].http()).http);

        let body = json!({"access": "paid", "price": 0, "title": "Paid records"});
        owner
            .post("/projects", &merged(project_body("weather"), body))
            .await
            .expect(201);
        contribute(&here, "weather", &records("a", 3)).await;
        let (info, data) = ("/projects/weather", "/projects/weather/data");
        there.soon_shows(data, |answer| answer.body["version"] == 1).await;

        owner.patch(info, &json!({"title": "Other records"})).await.expect(200);
        there
            .soon_shows(info, |answer| answer.text("/title") == "Other records")
            .await;
        contribute(&here, "weather", &records("b", 3)).await;
        there.soon_shows(info, |answer| answer.body["latestVersion"] == 2).await;
        there.soon_shows(data, |answer| answer.body["version"] == 2).await;
        owner.patch(info, &json!({"price": "0.5"})).await.expect(200);
        there.soon(data, 402).await;
        owner.patch(info, &json!({"status": "paused"})).await.expect(200);
        there
            .soon_shows(info, |answer| answer.text("/status") == "paused")
            .await;
        let refused = there
            .post(&format!("{info}/contribute"), &batch(&records("c", 1)))
            .await;
        assert_eq!(refused.code(), 409, "{}", refused.body);

        one.admin(&["operator", "suspend", &operator.id, "--reason", "a test"]);
        for http in [&here, &there] {
            assert_eq!(http.soon(info, 401).await.error(), "account_suspended");
        }
        one.admin(&["operator", "restore", &operator.id]);
        for http in [&here, &there] {
            http.soon(info, 200).await;
        }

        // What the console does is done on the database here.
        let store = connect(url).await;
        let (accounts, by) = (store.accounts(), operator.id.parse().unwrap());
        let removed = accounts.agents_of(by, now()).await.unwrap()[0].id;
        assert!(accounts.agent_remove(by, removed, now()).await.unwrap());
        for http in [&here, &there] {
            assert_eq!(http.soon(info, 401).await.error(), "unauthenticated");
        }
    })
    .await;
}
