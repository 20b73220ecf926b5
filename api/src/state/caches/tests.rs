use std::time::Duration;

use serde_json::{Value, json};
use store::{Agent, NewOperator, OperatorCreated, ProjectChanges, ProjectStatus, Store};

use super::*;
use crate::call::room::PageRoom;
use crate::secrets::{Secret, SecretKind};
use crate::testing::{Got, Service};

const INFO: &str = "/projects/weather";
const DATA: &str = "/projects/weather/data";
/// Time within which a change must reach every replica.
const SECOND: Duration = Duration::from_secs(1);

/// A service with a project of one version, its maintainer and an agent of another operator.
struct Scene {
    service: Service,
    maintainer: OperatorId,
    owner: String,
    operator: OperatorId,
    agent: Agent,
    reader: String,
}

impl Scene {
    async fn set(more: Value) -> Self {
        let service = Service::start().await;
        let (owner, other) = (service.operator().await, service.operator().await);
        let reader = service.agent(&other, "reader").await;
        service.project(&owner, "weather", &more).await;
        let key = service.agent(&owner, "contributor").await;
        service.merged(&key, "weather", &[json!({"name": "a"})]).await;
        let of = async |credential: &str| {
            let principal = service.app.principal(crate::secrets::hash(credential)).await;
            principal.unwrap().unwrap().operator().unwrap()
        };
        let (maintainer, operator) = (of(&owner).await, of(&reader).await);
        let agents = service
            .app
            .store
            .accounts()
            .agents_of(operator, service.app.clock.now())
            .await
            .unwrap();
        Self {
            service,
            maintainer,
            owner,
            operator,
            agent: agents.into_iter().next().unwrap(),
            reader,
        }
    }

    async fn get(&self, path: &str) -> Got {
        self.service.get(path, Some(&self.reader)).await
    }

    /// Makes a change as another process would. Checks that `read` shows it within a second, and that it is remembered
    /// until then.
    async fn reaches(&self, what: &str, change: impl AsyncFnOnce(&Store), read: impl AsyncFn() -> Value) {
        let before = read().await;
        change(&self.service.other_store().await).await;
        assert_eq!(read().await, before, "{what}: nothing was remembered");
        self.service.clock.advance(SECOND);
        assert_ne!(read().await, before, "{what}: not seen after a second");
    }

    async fn update(&self, store: &Store, changes: ProjectChanges) {
        let project = store.project_by_slug("weather", Some(self.maintainer)).await.unwrap();
        let now = self.service.app.clock.now();
        let id = project.unwrap().id;
        let updated = store.project_update(id, changes, now, Duration::ZERO).await.unwrap();
        assert!(matches!(updated, store::ProjectUpdated::Updated(_)), "{updated:?}");
    }

    async fn remove(&self, store: &Store) {
        let now = self.service.app.clock.now();
        assert!(
            store
                .accounts()
                .agent_remove(self.operator, self.agent.id, now)
                .await
                .unwrap()
        );
    }

    async fn suspend(&self, store: &Store) {
        let now = self.service.app.clock.now();
        store
            .operator_suspend(self.operator, "a test".to_owned(), now)
            .await
            .unwrap();
    }
}

fn paused() -> ProjectChanges {
    ProjectChanges {
        status: Some(ProjectStatus::Paused),
        ..ProjectChanges::default()
    }
}

fn priced(micro: i64) -> ProjectChanges {
    ProjectChanges {
        price: Some(Some(micro)),
        ..ProjectChanges::default()
    }
}

#[tokio::test]
async fn a_change_of_another_process_reaches_every_read_within_a_second() {
    let scene = Scene::set(json!({"access": "paid", "price": 0})).await;
    let status = async |path: &str| json!(scene.get(path).await.status.as_u16());
    let info = async || scene.get(INFO).await.json();
    scene
        .reaches("a status", async |store| scene.update(store, paused()).await, info)
        .await;
    scene
        .reaches(
            "a price",
            async |store| scene.update(store, priced(7)).await,
            async || status(DATA).await,
        )
        .await;
    scene
        .reaches(
            "a shown price",
            async |store| scene.update(store, priced(8)).await,
            info,
        )
        .await;
    scene
        .reaches(
            "a suspension",
            async |store| scene.suspend(store).await,
            async || status(INFO).await,
        )
        .await;
    scene
        .reaches(
            "the end of a suspension",
            async |store| store.operator_restore(scene.operator).await.unwrap(),
            async || status(INFO).await,
        )
        .await;
    scene
        .reaches(
            "a removal",
            async |store| scene.remove(store).await,
            async || status(INFO).await,
        )
        .await;
}

#[tokio::test]
async fn a_version_of_another_process_reaches_every_read_within_a_second() {
    let scene = Scene::set(json!({})).await;
    let merge = async |store: &Store, name: &str| {
        let records = [json!({"name": name})];
        scene.service.merged_by(store, &scene.reader, "weather", &records).await;
    };
    let info = async || scene.get(INFO).await.json()["latestVersion"].clone();
    scene
        .reaches("a version", async |store| merge(store, "b").await, info)
        .await;
    assert_eq!(info().await, 2);
    assert_eq!(scene.get(DATA).await.json()["version"], 2);
}

#[tokio::test]
async fn who_is_told_of_a_merge_by_another_process_finds_its_version_at_once() {
    let scene = Scene::set(json!({})).await;
    assert_eq!(scene.get(INFO).await.json()["latestVersion"], 1);
    let records = [json!({"name": "b"})];
    let other = scene.service.other_store().await;
    scene
        .service
        .merged_by(&other, &scene.reader, "weather", &records)
        .await;
    let versions = other.project_by_slug("weather", None).await.unwrap().unwrap().id;
    let merged = other.project_versions(versions, None, 1).await.unwrap();
    let path = format!("{INFO}/contributions/{}", merged[0].contribution);
    assert_eq!(scene.get(&path).await.json()["mergedVersion"], 2);
    assert_eq!(scene.get(INFO).await.json()["latestVersion"], 2);
}

#[tokio::test]
async fn a_change_of_this_process_is_in_every_later_read() {
    let scene = Scene::set(json!({"access": "paid", "price": 0})).await;
    let (service, store) = (&scene.service, &scene.service.app.store);
    assert_eq!(scene.get(INFO).await.json()["status"], "open");
    let body = r#"{"status": "paused"}"#;
    assert_eq!(service.call("PATCH", INFO, Some(&scene.owner), body).await.status, 200);
    assert_eq!(scene.get(INFO).await.json()["status"], "paused");
    assert_eq!(scene.get(DATA).await.status, 200);
    scene.update(store, priced(7)).await;
    assert_eq!(scene.get(DATA).await.status, 402);
    scene
        .update(
            store,
            ProjectChanges {
                status: Some(ProjectStatus::Open),
                ..priced(0)
            },
        )
        .await;
    service.merged(&scene.reader, "weather", &[json!({"name": "b"})]).await;
    assert_eq!(scene.get(INFO).await.json()["latestVersion"], 2);
    assert_eq!(scene.get(DATA).await.json()["version"], 2);
    scene.suspend(store).await;
    assert_eq!(scene.get(INFO).await.status, 401);
    store.operator_restore(scene.operator).await.unwrap();
    assert_eq!(scene.get(INFO).await.status, 200);
    scene.remove(store).await;
    assert_eq!(scene.get(INFO).await.status, 401);
}

#[tokio::test]
async fn a_key_that_was_just_made_works_at_once_wherever_it_was_made() {
    let scene = Scene::set(json!({})).await;
    let (service, now) = (&scene.service, scene.service.app.clock.now());
    let secret = Secret::generate(SecretKind::OperatorToken).unwrap();
    let new = NewOperator {
        id: OperatorId::new(now),
        email: "new@example.org".to_owned(),
        display_name: "Somebody".to_owned(),
        terms_version: "2026-11-01".to_owned(),
        token_hash: secret.hash(),
        now,
    };
    let token = secret.reveal();
    assert_eq!(service.get("/projects", Some(&token)).await.status, 401);
    let created = service.other_store().await.operator_create(new).await.unwrap();
    assert_eq!(created, OperatorCreated::Created);
    assert_eq!(service.get("/projects", Some(&token)).await.status, 200);
}

#[tokio::test]
async fn a_private_project_is_remembered_for_its_operator_alone() {
    let scene = Scene::set(json!({"visibility": "private"})).await;
    let service = &scene.service;
    for _ in 0..2 {
        for path in [INFO, DATA] {
            let stranger = scene.get(path).await;
            assert_eq!(stranger.status, 404, "{path}");
        }
        assert_eq!(service.get(INFO, None).await.status, 404);
        let own = service.get(INFO, Some(&scene.owner)).await;
        assert_eq!((own.status.as_u16(), &own.json()["slug"]), (200, &json!("weather")));
        // Access is decided after this, so what is remembered must be right by itself.
        for viewer in [None, Some(scene.operator)] {
            assert_eq!(service.app.project("weather", viewer).await.unwrap(), None);
        }
    }
}

#[tokio::test]
async fn reads_that_are_repeated_ask_no_database_whatever_they_show() {
    let scene = Scene::set(json!({})).await;
    let paths = [INFO, DATA, "/projects/weather/data?limit=1", "/licenses"];
    let mut before = Vec::new();
    for path in paths {
        before.push(scene.get(path).await.bytes);
    }
    scene.service.app.store.close().await;
    for (path, before) in paths.iter().zip(before) {
        let got = scene.get(path).await;
        assert_eq!((got.status.as_u16(), &got.bytes), (200, &before), "{path}");
    }
    scene.service.clock.advance(SECOND);
    assert_eq!(
        scene.get(INFO).await.status,
        503,
        "the database is asked after a second"
    );
}

#[tokio::test]
async fn a_page_that_was_answered_needs_no_file() {
    let scene = Scene::set(json!({})).await;
    let before = scene.get(DATA).await;
    assert_eq!(before.status, 200);
    let mut parts = 0;
    for table in std::fs::read_dir(scene.service.tables()).unwrap().map(Result::unwrap) {
        for file in std::fs::read_dir(table.path()).unwrap().map(Result::unwrap) {
            if file.path().extension().is_some_and(|extension| extension == "parquet") {
                std::fs::remove_file(file.path()).unwrap();
                parts += 1;
            }
        }
    }
    assert_eq!(parts, 1);
    assert_eq!(scene.get(DATA).await.bytes, before.bytes);
    assert_ne!(scene.get("/projects/weather/data?limit=9").await.status, 200);
}

#[tokio::test]
async fn a_page_is_of_one_version_and_place_only() {
    let scene = Scene::set(json!({})).await;
    let caches = &scene.service.app.process.caches;
    let page = Bytes::from_static(b"{}");
    let key = PageKey {
        dataset: DatasetId::new(scene.service.app.clock.now()),
        version: Version(1),
        root: Root::EMPTY,
        offset: 0,
        limit: 10,
        size: PageSize::LARGE,
    };
    caches.remember_page(key, &page);
    assert_eq!(caches.page(&key), Some(page));
    let others = [
        PageKey {
            version: Version(2),
            ..key
        },
        PageKey { offset: 1, ..key },
        PageKey { limit: 11, ..key },
        PageKey {
            size: PageRoom::of_tools().page_size(),
            ..key
        },
        PageKey {
            dataset: DatasetId::from_bytes([7; 16]),
            ..key
        },
    ];
    for other in others {
        assert_eq!(caches.page(&other), None, "{other:?}");
    }
}
