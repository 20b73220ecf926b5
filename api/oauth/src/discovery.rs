//! Metadata of the authorization server (RFC 8414) and of the resources (RFC 9728).
//!
//! Invariant: `issuer` and `resource` are exactly the texts that tokens and answers have.

use serde_json::{Value, json};

use crate::issuer::{Issuer, Resource};
use crate::jwk::JwkAlgorithm;
use crate::scope::Scopes;

/// Path of the metadata of the authorization server.
pub const SERVER_METADATA_PATH: &str = "/.well-known/oauth-authorization-server";
/// Path of the authorization endpoint.
pub const AUTHORIZE_PATH: &str = "/oauth/authorize";
/// Path of the token endpoint.
pub const TOKEN_PATH: &str = "/oauth/token";
/// Path of the revocation endpoint.
pub const REVOKE_PATH: &str = "/oauth/revoke";
/// Path of the registration endpoint.
pub const REGISTER_PATH: &str = "/oauth/register";
/// Path of the guide for agents.
const GUIDE_PATH: &str = "/guide/agents.md";

/// Returns the path of the metadata of a resource: the well-known part goes before the path (RFC 9728 section 3.1).
pub fn resource_metadata_path(resource: Resource) -> String {
    format!("/.well-known/oauth-protected-resource{}", resource.path())
}

/// Returns the metadata of the authorization server.
pub fn server_metadata(issuer: &Issuer) -> Value {
    let methods = json!(["none", "private_key_jwt"]);
    json!({
        "issuer": issuer.as_str(),
        "authorization_endpoint": issuer.url(AUTHORIZE_PATH),
        "token_endpoint": issuer.url(TOKEN_PATH),
        "revocation_endpoint": issuer.url(REVOKE_PATH),
        "registration_endpoint": issuer.url(REGISTER_PATH),
        "scopes_supported": Scopes::ALL.words().collect::<Vec<_>>(),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": methods,
        "token_endpoint_auth_signing_alg_values_supported": JwkAlgorithm::WORDS,
        "revocation_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_signing_alg_values_supported": JwkAlgorithm::WORDS,
        "authorization_response_iss_parameter_supported": true,
        "client_id_metadata_document_supported": true,
        "protected_resources": Resource::ALL.map(|resource| issuer.resource_url(resource)),
        "service_documentation": issuer.url(GUIDE_PATH),
    })
}

/// Returns the metadata of a resource.
pub fn resource_metadata(issuer: &Issuer, resource: Resource) -> Value {
    let name = match resource {
        Resource::Mcp => "Sluice: all tools",
        Resource::Directory => "Sluice: tools that spend nothing",
    };
    json!({
        "resource": issuer.resource_url(resource),
        "authorization_servers": [issuer.as_str()],
        "scopes_supported": resource.scopes().words().collect::<Vec<_>>(),
        "bearer_methods_supported": ["header"],
        "resource_name": name,
        "resource_documentation": issuer.url(GUIDE_PATH),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::challenge::DenialReason;
    use crate::scope::Scope;

    #[test]
    fn the_documents_name_each_other() {
        let issuer = Issuer::new("https://sluice.example").unwrap();
        let server = server_metadata(&issuer);
        assert_eq!(server["issuer"], "https://sluice.example");
        assert_eq!(server["token_endpoint"], "https://sluice.example/oauth/token");
        assert_eq!(server["code_challenge_methods_supported"], json!(["S256"]));
        for (resource, scopes) in [
            (Resource::Mcp, json!(["read", "write", "spend"])),
            (Resource::Directory, json!(["read", "write"])),
        ] {
            let document = resource_metadata(&issuer, resource);
            assert_eq!(document["resource"], issuer.resource_url(resource));
            assert_eq!(document["authorization_servers"], json!([server["issuer"]]));
            assert_eq!(document["scopes_supported"], scopes);
        }
        assert_eq!(
            resource_metadata_path(Resource::Directory),
            "/.well-known/oauth-protected-resource/mcp/directory"
        );
    }

    #[test]
    fn a_challenge_names_the_metadata_and_the_scope() {
        let issuer = Issuer::new("https://sluice.example").unwrap();
        let header = |denied: DenialReason| denied.www_authenticate(&issuer, Resource::Mcp, Scope::Write);
        let at = "resource_metadata=\"https://sluice.example/.well-known/oauth-protected-resource/mcp\"";
        for (denied, expected) in [
            (DenialReason::NoToken, "Bearer scope=\"read write spend\", "),
            (
                DenialReason::InvalidToken,
                "Bearer error=\"invalid_token\", scope=\"read write spend\", ",
            ),
            (
                DenialReason::InsufficientScope,
                "Bearer error=\"insufficient_scope\", scope=\"read write\", ",
            ),
        ] {
            assert_eq!(header(denied), format!("{expected}{at}"));
        }
        let directory = DenialReason::NoToken.www_authenticate(&issuer, Resource::Directory, Scope::Read);
        assert!(directory.starts_with("Bearer scope=\"read write\", "), "{directory}");
        assert_eq!(
            (DenialReason::NoToken.status(), DenialReason::InsufficientScope.status()),
            (401, 403)
        );
    }
}
