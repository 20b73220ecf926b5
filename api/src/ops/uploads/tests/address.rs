//! Tests of the canonical form of a part's address.

use super::{Scene, is};

#[tokio::test]
async fn a_part_has_one_address() {
    let scene = Scene::set().await;
    let upload = scene.begun().await;
    let url = upload["partUrls"][0]["url"].as_str().unwrap();
    let id = upload["id"].as_str().unwrap();
    for n in ["01", "+1", "1.0", "-1", "0x1", "%201", "one", "1%00"] {
        let got = scene.put(&url.replace("/1?", &format!("/{n}?")), b"abcd").await;
        is(&got, 404, "not_found");
    }
    for spelt in [id.to_uppercase(), id.replace('-', ""), format!("%7B{id}%7D")] {
        is(&scene.put(&url.replace(id, &spelt), b"abcd").await, 404, "not_found");
    }
    assert_eq!(scene.put(url, b"abcd").await.status, 200);
}
