//! Tests of bytes that cannot be deleted.

use super::*;

/// A store that deletes the bytes of one upload only.
#[derive(Debug)]
struct Stubborn {
    objects: Arc<dyn UploadStore>,
    lets_go: ContributionId,
}

#[async_trait]
impl UploadStore for Stubborn {
    async fn begin(
        &self,
        cut: &uploads::UploadLayout,
        lasting: Duration,
    ) -> Result<Option<Vec<String>>, uploads::Error> {
        self.objects.begin(cut, lasting).await
    }

    async fn complete(&self, cut: &uploads::UploadLayout, tags: &[uploads::PartTag]) -> Result<(), uploads::Error> {
        self.objects.complete(cut, tags).await
    }

    async fn read(&self, cut: &uploads::UploadLayout, n: u32, range: Range<u64>) -> Result<Bytes, uploads::Error> {
        self.objects.read(cut, n, range).await
    }

    async fn delete(&self, upload: ContributionId) -> Result<(), uploads::Error> {
        if upload == self.lets_go {
            return self.objects.delete(upload).await;
        }
        Err(uploads::Error::Io(std::io::Error::other("it is held")))
    }
}

#[tokio::test]
async fn uploads_that_cannot_be_deleted_keep_no_others() {
    let scene = Scene::set().await;
    let id = scene.begun().await["id"].as_str().unwrap().parse().unwrap();
    let app = &scene.service.app;
    let upload = app.store.upload(id).await.unwrap().unwrap();
    let bounds = store::UploadBounds {
        open: 1_000,
        bytes: u64::MAX,
        allowance: None,
    };
    let mut lets_go = id;
    for _ in 0..150 {
        lets_go = ContributionId::new(app.clock.now());
        let another = store::Upload {
            id: lets_go,
            ..upload.clone()
        };
        let created = app.store.upload_create(another, bounds).await.unwrap();
        assert_eq!(created, store::UploadCreated::Created);
    }
    scene.service.clock.advance(Duration::from_hours(6));
    let objects = Arc::clone(&app.uploads.objects);
    let stubborn = Arc::new(Stubborn { objects, lets_go });
    let reaper = UploadReaper::new(
        app.store.clone(),
        stubborn,
        Arc::clone(&app.clock),
        Duration::from_secs(1),
    );
    assert_eq!(reaper.reap().await, 1);
    assert_eq!(reaper.reap().await, 0);
    assert_eq!(scene.reaper().reap().await, 150);
}
