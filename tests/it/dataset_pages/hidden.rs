//! A private dataset has the pages of a missing one for everybody but its account.

use serde_json::json;
use tests::Answer;

use super::{from_elsewhere, opened, rows, samples};
use crate::sql_page::{project, start, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_dataset_has_the_pages_of_a_missing_one_for_others() {
    let (_site, owner, other) = start().await;
    project(&owner, "secret", json!({"visibility": "private"})).await;
    let seen = |answer: &Answer, slug: &str| {
        let id = answer.header("x-request-id").to_owned();
        (answer.code(), text(answer).replace(&id, "").replace(slug, "missing"))
    };
    for session in ["", &other.session] {
        for door in [
            "",
            "/rows",
            "/rows?version=1",
            "/rows?version=no",
            "/rows?row=1",
            "/rows?f1=station&o1=is&v1=a",
            "/rows?sort=nothing",
            "/versions",
            "/versions?before=0",
            "/versions/1",
            "/versions/99",
            "/versions/1?from=5",
        ] {
            let open = async |slug: &str| {
                let path = format!("/projects/{slug}{door}");
                seen(&from_elsewhere(&other, session, &path).await, slug)
            };
            let accept = door.is_empty();
            let (private, missing) = (open("secret").await, open("missing").await);
            assert_eq!(private, missing, "{door}");
            assert!(private.0 == 404 || accept, "{door}: {}", private.0);
        }
    }
    assert_eq!(samples(&opened(&owner, &rows("secret", "")).await), [0, 1, 2]);
    let own = text(&owner.open("/projects/secret/versions/1").await.expect(200));
    assert!(own.contains("3 new rows"), "{own}");
}
