//! Vectors of refresh families, of revocation, and of the use of tokens.

use super::{World, changed, refused};
use crate::challenge::DenialReason;
use crate::token::{self, TokenError};
use crate::{Error, OAuthSecret, Resource, Scope};

#[tokio::test]
async fn a_refresh_rotates_and_a_reuse_ends_the_family() {
    let world = World::new().await;
    let first = world.connect().await;
    world.wait(1_800);
    let second = world.refresh(&first["refresh_token"], &[]).await.unwrap();
    assert_ne!(first["refresh_token"], second["refresh_token"]);
    assert_ne!(first["access_token"], second["access_token"]);
    assert!(world.works(&first).await && world.works(&second).await);
    world.wait(31);
    assert_eq!(
        refused(world.refresh(&first["refresh_token"], &[]).await),
        "invalid_grant"
    );
    for answer in [&first, &second] {
        assert!(!world.works(answer).await);
        assert_eq!(
            refused(world.refresh(&answer["refresh_token"], &[]).await),
            "invalid_grant"
        );
    }
}

#[tokio::test]
async fn a_lost_answer_is_repeated_within_the_grace() {
    let world = World::new().await;
    let first = world.connect().await;
    let lost = world.refresh(&first["refresh_token"], &[]).await.unwrap();
    world.wait(29);
    let repeated = world.refresh(&first["refresh_token"], &[]).await.unwrap();
    assert_eq!(
        lost["refresh_token"], repeated["refresh_token"],
        "there is one successor"
    );
    assert!(world.works(&lost).await && world.works(&repeated).await);
    let next = world.refresh(&repeated["refresh_token"], &[]).await.unwrap();
    assert!(world.works(&next).await);
    // The successor was used, so the first token has no grace any more.
    assert_eq!(
        refused(world.refresh(&first["refresh_token"], &[]).await),
        "invalid_grant"
    );
    assert!(!world.works(&next).await);
}

#[tokio::test]
async fn a_thief_within_the_grace_is_seen_at_the_next_rotation() {
    let world = World::new().await;
    let stolen = world.connect().await["refresh_token"].clone();
    let owner = world.refresh(&stolen, &[]).await.unwrap();
    let thief = world.refresh(&stolen, &[]).await.unwrap();
    assert!(world.refresh(&thief["refresh_token"], &[]).await.is_ok());
    world.wait(1_800);
    assert_eq!(
        refused(world.refresh(&owner["refresh_token"], &[]).await),
        "invalid_grant"
    );
    assert!(!world.works(&thief).await);
}

#[tokio::test]
async fn many_refreshes_at_once_get_the_same_successor() {
    let world = World::new().await;
    let token = world.connect().await["refresh_token"].clone();
    let one = world.refresh(&token, &[]);
    let other = world.refresh(&token, &[]);
    let (one, other) = tokio::join!(one, other);
    assert_eq!(one.unwrap()["refresh_token"], other.unwrap()["refresh_token"]);
}

#[tokio::test]
async fn a_refresh_gives_no_more_than_was_agreed_to() {
    let world = World::new().await;
    let token = world.connect().await["refresh_token"].clone();
    let cases = [
        ("no token", &["-refresh_token"][..], "invalid_request"),
        ("an access token", &["refresh_token=wta_a"], "invalid_grant"),
        ("another token", &["refresh_token=wtr_a"], "invalid_grant"),
        ("two tokens", &["+refresh_token=wtr_a"], "invalid_request"),
        ("one scope more", &["scope=read write spend"], "invalid_scope"),
        ("another scope", &["scope=spend"], "invalid_scope"),
        (
            "the other resource",
            &["resource=https://sluice.example/mcp/directory"],
            "invalid_target",
        ),
        ("another resource", &["resource=https://evil.example"], "invalid_target"),
    ];
    for (name, changes, expected) in cases {
        assert_eq!(refused(world.refresh(&token, changes).await), expected, "{name}");
    }
    let less = world
        .refresh(&token, &["scope=read", "resource=https://sluice.example/mcp"])
        .await
        .unwrap();
    assert_eq!(less["scope"], "read");
    let write = world
        .server
        .check(less["access_token"].as_str().unwrap(), Resource::Mcp, Scope::Write);
    assert_eq!(write.await.unwrap(), Err(DenialReason::InsufficientScope));
    // The family keeps what was agreed to.
    let all = world.refresh(&less["refresh_token"], &[]).await.unwrap();
    assert_eq!(all["scope"], "read write");
}

#[tokio::test]
async fn a_token_of_another_client_is_none_and_does_its_owner_no_harm() {
    let world = World::new().await;
    let answer = world.connect().await;
    let form = [
        ("grant_type", "refresh_token"),
        ("client_id", &world.other.id),
        ("refresh_token", answer["refresh_token"].as_str().unwrap()),
    ];
    assert_eq!(
        refused(world.post(&world.other, &changed(&form, &[])).await),
        "invalid_grant"
    );
    let token = OAuthSecret::read(crate::OAuthSecretKind::Access, answer["access_token"].as_str().unwrap());
    let outcome = world.server.revoke(&world.other, token.as_ref()).await;
    assert!(matches!(
        outcome,
        Err(Error::Refused(TokenError {
            code: "invalid_grant",
            ..
        }))
    ));
    assert!(world.works(&answer).await);
}

#[tokio::test]
async fn access_lasts_an_hour_and_the_family_thirty_days() {
    let world = World::new().await;
    let mut answer = world.connect().await;
    world.wait(3_599);
    assert!(world.works(&answer).await);
    world.wait(1);
    assert!(!world.works(&answer).await);
    for day in 1..30 {
        world.wait(if day == 1 { 86_400 - 3_600 } else { 86_400 });
        answer = world.refresh(&answer["refresh_token"], &[]).await.unwrap();
    }
    world.wait(86_400 - 600);
    answer = world.refresh(&answer["refresh_token"], &[]).await.unwrap();
    assert_eq!(answer["expires_in"], 600, "no token outlives its connection");
    world.wait(600);
    assert!(!world.works(&answer).await);
    assert_eq!(
        refused(world.refresh(&answer["refresh_token"], &[]).await),
        "invalid_grant"
    );
}

#[tokio::test]
async fn a_client_without_the_grant_gets_no_refresh_token() {
    let mut world = World::new().await;
    world.client.may_refresh = false;
    let code = world.code(&[]).await;
    let answer = world.exchange(&code, &[]).await.unwrap();
    assert_eq!(answer.get("refresh_token"), None);
    assert!(world.works(&answer).await);
    world.wait(30);
    assert_eq!(refused(world.exchange(&code, &[]).await), "invalid_grant");
    assert!(!world.works(&answer).await);
}

#[tokio::test]
async fn a_token_works_where_it_was_issued_for_and_as_far_as_its_scopes() {
    let world = World::new().await;
    let answer = world.connect().await;
    let token = answer["access_token"].as_str().unwrap();
    let check = async |token: &str, resource, scope| world.server.check(token, resource, scope).await.unwrap();
    let (connection, access) = check(token, Resource::Mcp, Scope::Write).await.unwrap();
    assert_eq!(
        (connection.grant.client_id, connection.id),
        (world.client.id.clone(), access.connection)
    );
    let denied = async |token: &str, resource, scope| check(token, resource, scope).await.unwrap_err();
    assert_eq!(
        denied(token, Resource::Directory, Scope::Read).await,
        DenialReason::InvalidToken
    );
    assert_eq!(
        denied(token, Resource::Mcp, Scope::Spend).await,
        DenialReason::InsufficientScope
    );
    for wrong in [
        "",
        "km_a",
        "wta_a",
        answer["refresh_token"].as_str().unwrap(),
        &token[1..],
        &token.to_uppercase(),
    ] {
        assert_eq!(
            denied(wrong, Resource::Mcp, Scope::Read).await,
            DenialReason::InvalidToken,
            "{wrong}"
        );
    }
    world.server.end(access.connection).await.unwrap();
    assert_eq!(
        denied(token, Resource::Mcp, Scope::Read).await,
        DenialReason::InvalidToken
    );
}

#[tokio::test]
async fn revoking_either_token_ends_both() {
    for member in ["access_token", "refresh_token"] {
        let world = World::new().await;
        let answer = world.connect().await;
        let revoke = async |form: &[(&str, &str)]| {
            let token = token::revocation(&changed(form, &[])).unwrap();
            world.server.revoke(&world.client, token.as_ref()).await
        };
        // Tokens that nobody has are revoked already, whatever their form and hint.
        for unknown in ["wta_a", "wtr_a", "km_a", "a b"] {
            revoke(&[("token", unknown), ("token_type_hint", "refresh_token")])
                .await
                .unwrap();
        }
        assert!(world.works(&answer).await);
        revoke(&[
            ("token", answer[member].as_str().unwrap()),
            ("token_type_hint", "unknown"),
        ])
        .await
        .unwrap();
        assert!(!world.works(&answer).await);
        assert_eq!(
            refused(world.refresh(&answer["refresh_token"], &[]).await),
            "invalid_grant"
        );
        revoke(&[("token", answer[member].as_str().unwrap())]).await.unwrap();
    }
    assert_eq!(
        token::revocation(&changed(&[], &[])).unwrap_err().code,
        "invalid_request"
    );
    assert_eq!(
        token::revocation(&changed(&[("token", "a")], &["+token=b"]))
            .unwrap_err()
            .code,
        "invalid_request"
    );
}
