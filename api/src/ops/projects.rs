//! Operations on dataset projects: create, list, read, update and delete.

use std::borrow::Cow;

use http::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use store::{Access, Visibility};

use crate::call::operation::Operations;
use crate::call::schema::NULL_COUNTS;
use crate::call::spec::{Effect, GuardedItem, KEY_OR_OPERATOR, OPTIONAL, Scope, Spec};
use crate::error::ApiError;
use crate::rules::profiles::{MOST_FREE_ROWS, MOST_PAID_ROWS};

mod create;
mod delete;
mod read;
mod update;
mod view;

pub(super) use create::contract_of;
pub(in crate::ops) use delete::delete_project;
pub(in crate::ops) use update::{ProjectEdit, archive, edit, set_preview_rows};
pub(super) use view::SchemaDef;

const TAG: &str = "datasets";
/// Pattern of a slug in a body.
pub(super) const SLUG: &str = r"^[a-z0-9][a-z0-9-]{1,58}[a-z0-9]$";
const TAG_PATTERN: &str = "^[a-z0-9-]{2,30}$";
/// Example of a request body.
const EXAMPLE: &str = r#"{
    "slug": "tide-gauges",
    "title": "Tide gauge readings",
    "readme": "Sea level at harbour gauges, one record per gauge and hour.",
    "schemaDef": {"fields": [
        {"name": "gauge", "type": "string", "required": true},
        {"name": "at", "type": "timestamp", "required": true},
        {"name": "metres", "type": "number", "required": true}
    ]},
    "license": "CC0-1.0",
    "tags": ["sea-level", "hourly"]
}"#;

/// Returns the fields that the entries of this file share.
fn base() -> Spec {
    Spec { tag: TAG, ..Spec::BASE }
}

pub(super) fn add(table: &mut Operations) {
    table.add_making(
        Spec {
            name: "create_dataset",
            method: Method::POST,
            path: "/projects",
            summary: "Create a dataset project",
            description: "The schema, the access and the visibility never change. A private project is visible to the \
                          operator and its agents only and cannot be paid.",
            accepts: KEY_OR_OPERATOR,
            scope: Scope::Write,
            effect: Effect::Write,
            success: &[(201, "The project.")],
            failure: &[
                (403, "The credential may not create projects."),
                (
                    409,
                    "The slug is taken, or the operator has as many active projects as it may.",
                ),
            ],
            example: EXAMPLE,
            ..base()
        },
        &[],
        create::create,
        create::again,
    );
    table.add(
        Spec {
            name: "list_datasets",
            path: "/projects",
            summary: "List dataset projects, the latest merge first",
            description: "Public projects; with a credential also the operator's private ones. Up to 1000 unless `limit` \
                          says fewer; `total` says how many there are, and more are those of the same call with `cursor` \
                          set to `nextCursor`.",
            accepts: OPTIONAL,
            ..base()
        },
        &[],
        read::list,
    );
    table.add(
        Spec {
            name: "dataset_info",
            path: "/projects/{slug}",
            summary: "One project with its readme, schema, versions and contributors",
            description: "A readme that does not fit goes on with `offset` set to `nextOffset`.",
            accepts: OPTIONAL,
            item: GuardedItem::Project,
            failure: &[(404, "There is no such project, or it is private to others.")],
            ..base()
        },
        &[],
        read::get,
    );
    table.add(
        Spec {
            name: "update_dataset",
            method: Method::PATCH,
            path: "/projects/{slug}",
            summary: "Change a project of the caller's operator",
            description: "At least one property. An archived project stays archived; a price changes once a day.",
            accepts: KEY_OR_OPERATOR,
            scope: Scope::Write,
            effect: Effect::Write,
            item: GuardedItem::OwnProject,
            immutable: &["schemaDef", "access", "visibility", "license"],
            success: &[(200, "The project as it is now.")],
            failure: &[
                (403, "The project is another operator's."),
                (404, "There is no such project, or it is private to others."),
                (409, "The project is archived."),
                (
                    429,
                    "Too many calls, or the price changed less than a day ago; `retryAfter` says when to come back.",
                ),
            ],
            example: r#"{"status": "paused"}"#,
            ..base()
        },
        &[],
        update::update,
    );
    delete::add(table);
}

/// Returns true if a project may have a price: only public, paid ones may.
pub(in crate::ops) const fn can_have_price(access: Access, visibility: Visibility) -> bool {
    // A private project has no buyers, because no other operator can see it.
    matches!((access, visibility), (Access::Paid, Visibility::Public))
}

/// Number of rows that anybody is to see, or null, in a request. The bound of a paid project is checked later.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(transparent)]
struct PreviewRows(Option<u32>);

impl JsonSchema for PreviewRows {
    fn schema_name() -> Cow<'static, str> {
        "PreviewRows".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["integer", "null"], "minimum": 0, "maximum": MOST_FREE_ROWS, NULL_COUNTS: true})
    }
}

/// Returns the most rows that anybody sees of a project with this access.
pub(in crate::ops) const fn most_preview_rows(access: Access) -> u32 {
    match access {
        Access::Public => MOST_FREE_ROWS,
        Access::Paid => MOST_PAID_ROWS,
    }
}

/// Checks the number of rows that anybody is to see of a project.
fn checked_preview_rows(given: Option<u32>, access: Access) -> Result<Option<u32>, ApiError> {
    let problem = match (given, access) {
        (None, Access::Public) => format!("must be a number from 0 to {MOST_FREE_ROWS} for a project that is not paid"),
        (Some(rows), _) if rows > most_preview_rows(access) => {
            format!("must be at most {}, with access `{access}`", most_preview_rows(access))
        }
        _ => return Ok(given),
    };
    Err(ApiError::invalid("/previewRows", problem))
}

/// Deserializes a member that is present, so that null differs from an absent member.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests;
