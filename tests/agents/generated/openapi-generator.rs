//! Seven calls with the Rust client of openapi-generator.
//!
//! The key is a header of the HTTP client: the generated one sends its token once for each kind of credential that a
//! call takes, and a service refuses two of them.

use std::collections::HashMap;

use openapi::apis::{configuration::Configuration, datasets_api, service_api};
use openapi::models::{
    ContributeRecordsRequest, CreateDatasetFieldType, CreateDatasetRequest, QueryDatasetRequest, SchemaDefInput,
    SchemaFieldInput,
};
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, base, key, slug] = arguments.as_slice() else {
        return Err("base, key and slug".into());
    };
    let headers = HeaderMap::from_iter([(AUTHORIZATION, format!("Bearer {key}").parse()?)]);
    let configuration = Configuration {
        base_path: base.clone(),
        client: reqwest::Client::builder().default_headers(headers).build()?,
        ..Configuration::new()
    };

    let terms = service_api::terms_version(&configuration).await?;
    let mut gauge = SchemaFieldInput::new("gauge".to_owned(), CreateDatasetFieldType::String);
    gauge.required = Some(true);
    let metres = SchemaFieldInput::new("metres".to_owned(), CreateDatasetFieldType::Number);
    let contract = SchemaDefInput::new(vec![gauge, metres]);
    let readme = "Water levels read from gauges on site.".to_owned();
    let project = CreateDatasetRequest::new(readme, contract, slug.clone(), "Tide levels".to_owned());
    datasets_api::create_dataset(&configuration, project, None).await?;
    let record = HashMap::from([
        ("gauge".to_owned(), json!("Hook of Holland")),
        ("metres".to_owned(), json!(0.83)),
    ]);
    let batch = ContributeRecordsRequest::new(vec![record]);
    let sent = datasets_api::contribute_records(&configuration, slug, batch, None, Some(20)).await?;
    let page = datasets_api::read_dataset(&configuration, slug, None, None, None).await?;
    let question = QueryDatasetRequest::new("SELECT count(*) AS n FROM records".to_owned());
    let asked = datasets_api::query_dataset(&configuration, slug, question).await?;
    let manifest = datasets_api::dataset_manifest(&configuration, slug, None).await?;
    let listed = datasets_api::list_datasets(&configuration, None, Some(5), None).await?;
    let said = json!({
        "status": sent.status,
        "gauge": page.items[0]["gauge"],
        "rows": asked.rows,
        "parts": manifest.parts.len(),
        "listed": listed.items.iter().any(|item| item.slug == *slug),
        "terms": if terms.version.is_empty() { "other" } else { "string" },
    });
    println!("{said}");
    Ok(())
}
