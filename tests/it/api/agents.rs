//! Agents: names, look-alikes, reserved words, and how many an operator may have.

use serde_json::{Value, json};
use tests::Answer;
use tests::world::merged;

use super::{assert_names, text, world};

#[tokio::test]
async fn an_agent_is_created_once_with_a_key_that_works() {
    let world = world().await;
    let body = json!({"name": "Weather.Bot_1-x", "walletAddress": "0x52908400098527886E0F7030069857D2E4169EE7"});
    let answer = world.owner.post("/agents", &body).await.expect(201);
    assert_eq!(answer.text("/name"), "Weather.Bot_1-x");
    assert!(!answer.text("/id").is_empty());
    let key = answer.text("/key");
    assert!(key.starts_with("km_"), "{key}");
    let slug = world.project().await;
    world
        .http
        .with(key)
        .get(&format!("/projects/{slug}/data"))
        .await
        .expect(200);
    world.owner.post("/agents", &body).await.expect(409);
}

#[tokio::test]
async fn names_that_look_alike_are_the_same_name_for_everybody() {
    let world = world().await;
    let (stranger, _) = world.newcomer().await;
    world
        .owner
        .post("/agents", &json!({"name": "kernel-01"}))
        .await
        .expect(201);
    let stranger = world.http.with(&stranger.token);
    for name in [
        "kernel-01",
        "KERNEL-01",
        "kernel-o1",
        "kernel-0l",
        "Kernel-Ol",
        "kemel-01",
    ] {
        let answer = stranger.post("/agents", &json!({"name": name})).await;
        assert_eq!(answer.code(), 409, "{name}: {}", answer.body);
        assert!(!answer.error().is_empty());
    }
    stranger
        .post("/agents", &json!({"name": "kernel-02"}))
        .await
        .expect(201);
}

#[tokio::test]
async fn words_of_the_platform_are_reserved() {
    let world = world().await;
    for name in ["admin", "Admin", "official", "sluice", "SLUICE", "s1uice", "0fficial"] {
        let answer = world.owner.post("/agents", &json!({"name": name})).await;
        assert_eq!(answer.code(), 400, "{name}: {}", answer.body);
        assert!(answer.paths().contains(&"/name"), "{name}: {}", answer.body);
    }
}

#[tokio::test]
async fn every_field_has_its_rule() {
    let world = world().await;
    let bad: [(Value, &str); 11] = [
        (json!({}), "/name"),
        (json!({"name": ""}), "/name"),
        (json!({"name": text(61)}), "/name"),
        (json!({"name": "a b"}), "/name"),
        (json!({"name": "a\u{e9}"}), "/name"),
        (json!({"name": "a/b"}), "/name"),
        (json!({"name": 7}), "/name"),
        (json!({"name": null}), "/name"),
        (json!({"name": "ok-1", "walletAddress": text(101)}), "/walletAddress"),
        (json!({"name": "ok-1", "walletAddress": 5}), "/walletAddress"),
        (json!({"name": "ok-1", "colour": "red"}), "/colour"),
    ];
    for (body, path) in bad {
        assert_names(&world.owner.post("/agents", &body).await, path);
    }
    world
        .owner
        .post("/agents", &json!({"name": text(60)}))
        .await
        .expect(201);
    let fits = json!({"name": "z", "walletAddress": text(100)});
    world.owner.post("/agents", &fits).await.expect(201);
}

#[tokio::test]
async fn an_operator_has_at_most_five_agents_however_fast_they_are_asked_for() {
    let world = world().await;
    let requests = (0..12).map(|number| {
        let owner = world.owner.clone();
        async move {
            owner
                .post("/agents", &json!({"name": format!("helper-{number}x")}))
                .await
        }
    });
    let answers: Vec<Answer> = futures_util::future::join_all(requests).await;
    let created = answers.iter().filter(|answer| answer.code() == 201).count();
    // One agent was there before.
    assert_eq!(created, 4, "{:?}", answers.iter().map(Answer::code).collect::<Vec<_>>());
    for answer in answers.iter().filter(|answer| answer.code() != 201) {
        assert_eq!(answer.code(), 403, "{}", answer.body);
    }
    let (other, _) = world.newcomer().await;
    world
        .http
        .with(&other.token)
        .post("/agents", &json!({"name": "unhindered"}))
        .await
        .expect(201);
}

#[tokio::test]
async fn one_name_asked_for_by_many_at_once_is_given_once() {
    let world = world().await;
    let mut owners = Vec::new();
    for _ in 0..4 {
        owners.push(world.http.with(&world.newcomer().await.0.token));
    }
    let asked = owners
        .iter()
        .flat_map(|owner| ["modern", "M0dern", "modem"].map(|name| (owner, name)));
    let requests = asked.map(|(owner, name)| async move { owner.post("/agents", &json!({"name": name})).await });
    let answers = futures_util::future::join_all(requests).await;
    let mut codes: Vec<_> = answers.iter().map(Answer::code).collect();
    codes.sort_unstable();
    assert_eq!(codes, [&[201][..], &[409; 11]].concat());
}

#[tokio::test]
async fn attempts_to_register_from_one_address_are_limited_in_an_hour() {
    let limit = |options: tests::Options| options.with("SLUICE__LIMITS__AGENT_REGISTRATIONS_PER_IP_PER_HOUR", 3);
    // The world's own agent is the first registration.
    let world = tests::World::start_with(crate::binary(), limit).await;
    world
        .owner
        .post("/agents", &merged(json!({"name": "second"}), json!({})))
        .await
        .expect(201);
    // One that fails is one.
    world
        .owner
        .post("/agents", &json!({"name": "second"}))
        .await
        .expect(409);
    let answer = world.owner.post("/agents", &json!({"name": "third"})).await.expect(429);
    let seconds: u64 = answer.header("retry-after").parse().unwrap();
    assert!((1..=3600).contains(&seconds), "{seconds}");
}
