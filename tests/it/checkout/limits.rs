//! Limits that a person gives with a consent and with a claim.

use serde_json::json;
use tests::apps::{App, REDIRECT, Wish};

use super::{Scene, place, send};
use crate::accounts::on_each;
use crate::sql_page::text;

/// Approves a claim with a cap; without an amount nothing is approved.
async fn claim_with_a_cap(scene: &Scene) {
    let buyer = &scene.buyer;
    let code = scene.site.code(buyer.operator).await;
    let claim = json!({"code": code, "name": "newcomer"});
    let claimed = scene.site.http.post("/agents/claim", &claim).await.expect(202);
    let html = text(&buyer.open("/console/agents").await.expect(200));
    let (_, rest) = html.split_once("/console/claims/").unwrap();
    let (claim, _) = rest.split_once('/').unwrap();
    let path = format!("/console/claims/{claim}/approve");
    let phrase = claimed.text("/phrase");
    let refused = send(buyer, &path, &[("phrase", phrase), ("sp", "cap"), ("cap", "")]).await;
    assert_eq!(refused.code(), 400, "{}", text(&refused));
    assert!(
        text(&refused).contains(&format!("id=\"cap-{claim}-error\"")),
        "{}",
        text(&refused)
    );
    let agent = scene.site.http.with(claimed.text("/key"));
    agent.get("/me").await.expect(401);
    let done = send(buyer, &path, &[("phrase", phrase), ("sp", "cap"), ("cap", "2")]).await;
    assert_eq!(place(&done), "/console/agents");
    let limits = agent.get("/credits").await.expect(200).body["limits"]["agent"].clone();
    assert_eq!(limits["month"]["capMicro"], 2_000_000, "{limits}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consent_and_a_claim_set_what_may_be_spent() {
    on_each(async |url| {
        let scene = Scene::start(url.as_deref()).await;
        let buyer = &scene.buyer;
        scene.on_sale("tides").await;
        let app = App::register(scene.site.http.base(), "Tide desk").await;
        let wish = Wish {
            resource: "/mcp",
            scopes: "read spend",
            agent: &buyer.agent.id,
        };
        let path = App::path(&app.query(&wish));
        let html = text(&app.browse(&buyer.session, &path, None).await.expect(200));
        assert!(
            html.contains("name=\"cap\"") && html.contains("may spend without a limit") && html.contains("$5.00"),
            "{html}"
        );
        let mut consent = app.consent(&buyer.session, &wish).await;
        consent.push(("cap", "a dollar".to_owned()));
        consent.push(("ask_above", "0.40".to_owned()));
        let agree = async |fields: &[(&str, String)]| {
            let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
            app.browse(&buyer.session, "/oauth/authorize", Some(&fields)).await
        };
        let refused = agree(&consent).await;
        let html = text(&refused);
        assert_eq!(refused.code(), 400, "{html}");
        assert!(
            html.contains("id=\"cap-error\"") && html.contains("value=\"a dollar\""),
            "{html}"
        );
        for (name, value) in &mut consent {
            if *name == "cap" {
                "0.80".clone_into(value);
            }
        }
        let back = place(&agree(&consent).await);
        assert!(back.starts_with(REDIRECT), "{back}");
        let code = reqwest::Url::parse(&back).unwrap();
        let code = code
            .query_pairs()
            .find(|(name, _)| name == "code")
            .unwrap()
            .1
            .into_owned();
        let tokens = app.send("/oauth/token", &app.exchange(&code)).await.expect(200);
        let through_app = scene.site.http.with(tokens.text("/access_token"));
        let buy = async || {
            let params = json!({"name": "buy_dataset", "arguments": {"slug": "tides", "reason": "Needed <now>."}});
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
            through_app.post("/mcp", &message).await.expect(200).body["result"]["structuredContent"].clone()
        };
        // Above the app's line: it waits, the person hears why and through which app, and decides.
        let asked = buy().await;
        assert_eq!(asked["status"], "waiting", "{asked}");
        let row = format!("/console/approvals/{}", asked["approval"]["id"].as_str().unwrap());
        let html = text(&buyer.open(&row).await.expect(200));
        assert!(
            html.contains("<bdi>Tide desk</bdi>") && html.contains("Needed &#60;now&#62;."),
            "{html}"
        );
        assert!(html.contains("$0.80 left this month, $0.30 after it"), "{html}");
        for page in ["/console", "/console/money"] {
            let html = text(&buyer.open(page).await.expect(200));
            assert!(html.contains(&row) && html.contains("need you"), "{page}: {html}");
        }
        let receipt = place(&send(buyer, &format!("{row}/yes"), &[]).await);
        assert!(receipt.starts_with("/console/receipts/"), "{receipt}");
        let completed = buy().await;
        assert_eq!(
            (&completed["charged"], &completed["approval"]["status"]),
            (&json!(false), &json!("bought")),
            "{completed}"
        );
        let html = text(&buyer.open("/console/apps").await.expect(200));
        assert!(html.contains("$0.50 of $0.80"), "{html}");
        // What counts for the app counts for its agent.
        let html = text(&buyer.open("/console/money").await.expect(200));
        assert!(
            html.contains("$0.50, no limit") && !html.contains("Waits for your yes"),
            "{html}"
        );
        claim_with_a_cap(&scene).await;
        scene.check();
    })
    .await;
}
