use std::sync::Arc;

use futures_util::future::join_all;
use object_store::{Error, ObjectStoreExt as _, PutMode};
use s3_server::{ACCESS_KEY, BUCKET, ConditionalPuts, Fault, REGION, Rule, SECRET_KEY, Server};
use types::{Classify as _, Kind};

use super::*;

mod faults;
mod link_file;
mod uploads;

/// A server over a folder of its own.
struct Place {
    folder: tempfile::TempDir,
    server: Server,
}

impl Place {
    fn new() -> Self {
        Self::with(ConditionalPuts::Atomic)
    }

    fn with(puts: ConditionalPuts) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start_with(folder.path(), puts, 0).unwrap();
        Self { folder, server }
    }

    fn config(&self) -> S3Config {
        config(&self.server)
    }

    async fn open(&self) -> S3 {
        S3::open(&self.config()).await.unwrap()
    }
}

/// How to reach the bucket of a server. An attempt takes long enough that a busy machine does not end it.
fn config(server: &Server) -> S3Config {
    S3Config {
        endpoint: server.endpoint(),
        region: REGION.to_owned(),
        bucket: BUCKET.to_owned(),
        prefix: "some/tables".to_owned(),
        access_key: ACCESS_KEY.to_owned(),
        secret_key: Secret::new(SECRET_KEY.to_owned()),
        path_style: true,
        attempt: Duration::from_secs(5),
        patience: Duration::from_mins(1),
    }
}

async fn create(store: &S3, path: &str, text: &'static str) -> Result<PutResult> {
    let payload = PutPayload::from_static(text.as_bytes());
    store.put_opts(&Path::from(path), payload, PutMode::Create.into()).await
}

async fn text(store: &S3, path: &str) -> String {
    let bytes = store.get(&Path::from(path)).await.unwrap().bytes().await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

mod conformance {
    use super::*;

    #[async_trait]
    impl crate::storage::conformance::Fixture for Place {
        async fn open(&mut self) -> Result<Arc<dyn DurableStore>> {
            Ok(Arc::new(S3::open(&self.config()).await.unwrap()))
        }
    }

    crate::conformance!(Place::new());
}

#[tokio::test]
async fn a_store_that_ignores_conditions_is_refused() {
    let place = Place::with(ConditionalPuts::Ignored);
    let refused = S3::open(&place.config()).await.unwrap_err();
    assert!(matches!(refused, OpenError::Unconditional { .. }), "{refused:?}");
    let told = refused.to_string();
    assert!(
        told.contains("`sluice-tests/some/tables`") && told.contains("If-None-Match"),
        "{told}"
    );
}

#[tokio::test]
async fn a_probe_leaves_nothing_behind() {
    let place = Place::new();
    let store = place.open().await;
    let listed = store.list_with_delimiter(None).await.unwrap();
    assert_eq!(
        (listed.objects.len(), listed.common_prefixes.len()),
        (0, 0),
        "{listed:?}"
    );
}

#[tokio::test]
async fn what_does_not_fit_is_refused_by_name() {
    type Change = fn(&mut S3Config);
    let place = Place::new();
    let changes: [(&str, Change); 7] = [
        ("endpoint", |config| config.endpoint = "ftp://127.0.0.1".to_owned()),
        ("endpoint", |config| config.endpoint = "no address".to_owned()),
        ("bucket", |config| config.bucket = String::new()),
        ("bucket", |config| config.bucket = "a/b".to_owned()),
        ("prefix", |config| config.prefix = "/a".to_owned()),
        ("region", |config| config.region = String::new()),
        ("secret_key", |config| config.secret_key = Secret::new(String::new())),
    ];
    for (named, change) in changes {
        let mut config = place.config();
        change(&mut config);
        let refused = S3::open(&config).await.unwrap_err();
        assert!(
            matches!(refused, OpenError::Config { field, .. } if field == named),
            "{named}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn a_wrong_key_a_wrong_bucket_and_a_store_that_is_gone_are_told_without_the_secret() {
    let place = Place::new();
    let mut wrong_key = place.config();
    wrong_key.secret_key = Secret::new("another-secret".to_owned());
    let mut wrong_bucket = place.config();
    wrong_bucket.bucket = "nowhere".to_owned();
    let mut gone = place.config();
    gone.endpoint = "http://127.0.0.1:9".to_owned();
    gone.patience = Duration::from_millis(300);
    for config in [wrong_key, wrong_bucket, gone] {
        let refused = S3::open(&config).await.unwrap_err();
        assert!(matches!(refused, OpenError::Unusable { .. }), "{refused:?}");
        let told = format!("{refused:?} {config:?}");
        assert!(
            !told.contains(config.secret_key.reveal()) && !told.contains(SECRET_KEY),
            "{told}"
        );
    }
}

#[tokio::test]
async fn prefixes_of_a_bucket_share_nothing() {
    let place = Place::new();
    let one = place.open().await;
    let mut config = place.config();
    config.prefix = String::new();
    let all = S3::open(&config).await.unwrap();
    config.prefix = "other".to_owned();
    let other = S3::open(&config).await.unwrap();
    create(&one, "a/one", "1").await.unwrap();
    create(&other, "a/one", "2").await.unwrap();
    assert_eq!(
        (text(&one, "a/one").await, text(&other, "a/one").await),
        ("1".into(), "2".into())
    );
    assert_eq!(text(&all, "some/tables/a/one").await, "1");
    let client = s3_server::caller().build().unwrap();
    let read = |store: &S3| {
        let url = store.presigner().read(&Path::from("a/one"), Duration::from_mins(1));
        client.get(url).send()
    };
    assert_eq!(read(&one).await.unwrap().text().await.unwrap(), "1");
    assert_eq!(read(&other).await.unwrap().text().await.unwrap(), "2");
}

#[tokio::test]
async fn an_address_is_good_for_its_object_its_method_and_its_time() {
    let place = Place::new();
    let store = place.open().await;
    create(&store, "a/one", "some text").await.unwrap();
    create(&store, "a/two", "other text").await.unwrap();
    let url = store.presigner().read(&Path::from("a/one"), Duration::from_mins(15));
    let client = s3_server::caller().build().unwrap();
    let got = client.get(&url).send().await.unwrap();
    assert_eq!(
        (got.status().as_u16(), got.text().await.unwrap()),
        (200, "some text".into())
    );
    let part = client.get(&url).header("range", "bytes=5-8").send().await.unwrap();
    assert_eq!(
        (part.status().as_u16(), part.text().await.unwrap()),
        (206, "text".into())
    );
    let elsewhere = url.replace("a/one", "a/two");
    assert_eq!(client.get(&elsewhere).send().await.unwrap().status(), 403);
    assert_eq!(client.put(&url).body("mine").send().await.unwrap().status(), 403);
    assert_eq!(client.delete(&url).send().await.unwrap().status(), 403);
    let longer = url.replace("X-Amz-Expires=900", "X-Amz-Expires=90000");
    assert_ne!(longer, url);
    assert_eq!(client.get(&longer).send().await.unwrap().status(), 403);
    // Its time is over where it never began.
    let over = store.presigner().read(&Path::from("a/one"), Duration::ZERO);
    assert_eq!(client.get(&over).send().await.unwrap().status(), 403);
    assert_eq!(text(&store, "a/one").await, "some text");
}

#[tokio::test]
async fn objects_outlive_the_server() {
    let Place { folder, server } = Place::new();
    let store = S3::open(&config(&server)).await.unwrap();
    create(&store, "a/one", "1").await.unwrap();
    let port = server.address().port();
    drop(server);
    assert!(store.get(&Path::from("a/one")).await.is_err());
    let again = Server::start_with(folder.path(), ConditionalPuts::Atomic, port).unwrap();
    assert_eq!(again.address().port(), port);
    assert_eq!(text(&store, "a/one").await, "1");
    assert!(matches!(
        create(&store, "a/one", "2").await,
        Err(Error::AlreadyExists { .. })
    ));
}
