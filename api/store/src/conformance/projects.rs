//! Scenarios about projects.

use std::time::Duration;

use types::{Classify, DatasetId, Kind, OperatorId, Version};

use super::fixture::{World, agent, at, new_project, open, operator, project};
use crate::query::{sql, tx};
use crate::writer::Change;
use crate::{
    Access, Error, NewContribution, NewProject, Project, ProjectChanges, ProjectCreated, ProjectCursor, ProjectFilter,
    ProjectStatus, ProjectSummary, ProjectUpdated, Store, Visibility,
};

const DAY: Duration = Duration::from_hours(24);

/// Every field comes back as it was given.
pub async fn a_project_is_found_as_it_was_created(url: &str) {
    let store = open(url).await;
    let ada = operator(&store, "ada@example.org").await;
    let new = NewProject {
        access: Access::Paid,
        price_micro: Some(250_000),
        trial_sale: true,
        created_by_agent: Some(agent(&store, ada, "collector").await),
        ..new_project(ada, "weather")
    };
    let given = new.clone();
    assert_eq!(store.project_create(new, 3).await.unwrap(), ProjectCreated::Created);

    let found = store.project_by_slug("weather", None).await.unwrap().unwrap();
    assert_eq!(
        (found.id, found.operator, found.created_by_agent),
        (given.id, ada, given.created_by_agent)
    );
    assert_eq!(
        (&found.title, &found.readme, &found.tags),
        (&given.title, &given.readme, &given.tags)
    );
    assert_eq!(
        (&found.contract_json, &found.license),
        (&given.contract_json, &given.license)
    );
    assert_eq!((found.access, found.visibility), (Access::Paid, Visibility::Public));
    assert_eq!((found.price_micro, found.trial_sale), (Some(250_000), true));
    assert_eq!(
        (found.status, found.version.0, found.record_count),
        (ProjectStatus::Open, 0, 0)
    );
    assert_eq!((found.created_at, found.updated_at), (given.now, given.now));
    assert_eq!(store.project_by_slug("climate", None).await.unwrap(), None);
}

/// A number that no column holds, and a stored one that is out of its range, are errors with the name of the column.
pub async fn a_number_out_of_range_names_its_column(url: &str) {
    let store = open(url).await;
    let ada = operator(&store, "ada@example.org").await;
    let id = project(&store, new_project(ada, "weather")).await;
    let beyond = Version(1 << 63);
    let refused = [
        store.project_versions(id, Some(beyond), 1).await.unwrap_err(),
        store
            .project_versions_between(id, Version::EMPTY, beyond, 1)
            .await
            .unwrap_err(),
    ];
    for error in refused {
        assert!(
            matches!(error, Error::Range { column: "version", value } if value == beyond.0),
            "{error}"
        );
    }
    let planted = store.write(tx!(async move |cx| {
        let changed = sql!("UPDATE projects SET record_count = -1 WHERE id = $1", id)
            .run(cx)
            .await?;
        Ok(Change::Keep(changed))
    }));
    assert_eq!(planted.await.unwrap(), 1);
    let error = store.project_by_slug("weather", None).await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::Malformed {
                column: "record_count",
                ..
            }
        ),
        "{error}"
    );
}

/// A slug stays taken after its project is archived.
pub async fn a_slug_is_never_freed(url: &str) {
    let store = open(url).await;
    let ada = operator(&store, "ada@example.org").await;
    let eve = operator(&store, "eve@example.org").await;
    let id = project(&store, new_project(ada, "weather")).await;
    assert_eq!(
        store.project_create(new_project(eve, "weather"), 3).await.unwrap(),
        ProjectCreated::SlugTaken
    );
    set_status(&store, id, ProjectStatus::Archived).await;
    assert_eq!(
        store.project_create(new_project(eve, "weather"), 3).await.unwrap(),
        ProjectCreated::SlugTaken
    );
}

/// Paused projects count as active, archived ones do not.
pub async fn archiving_makes_room_for_another(url: &str) {
    let store = open(url).await;
    let ada = operator(&store, "ada@example.org").await;
    let first = project(&store, new_project(ada, "first")).await;
    project(&store, new_project(ada, "second")).await;
    set_status(&store, first, ProjectStatus::Paused).await;
    assert_eq!(
        store.project_create(new_project(ada, "third"), 2).await.unwrap(),
        ProjectCreated::LimitReached
    );
    set_status(&store, first, ProjectStatus::Archived).await;
    assert_eq!(
        store.project_create(new_project(ada, "third"), 2).await.unwrap(),
        ProjectCreated::Created
    );
}

/// A private project is in its operator's list and in nobody else's.
pub async fn private_projects_are_listed_for_their_operator_only(url: &str) {
    let store = open(url).await;
    let ada = operator(&store, "ada@example.org").await;
    let eve = operator(&store, "eve@example.org").await;
    project(&store, new_project(ada, "open-data")).await;
    let hidden = NewProject {
        visibility: Visibility::Private,
        now: at(1),
        ..new_project(ada, "hidden-data")
    };
    project(&store, hidden).await;

    assert_eq!(slugs(&store, None, None).await, ["open-data"]);
    assert_eq!(slugs(&store, None, Some(eve)).await, ["open-data"]);
    assert_eq!(slugs(&store, None, Some(ada)).await, ["hidden-data", "open-data"]);
    assert_eq!(slugs(&store, Some("hidden"), Some(eve)).await, [""; 0]);
}

/// `%`, `_` and `\` in a search are literal.
pub async fn a_search_takes_its_text_literally(url: &str) {
    let store = open(url).await;
    let ada = operator(&store, "ada@example.org").await;
    for (slug, title) in [
        ("percent", "Shares of 100% and more"),
        ("underscore", "What snake_case is"),
        ("backslash", r"Paths with \ in them"),
        ("plain", "Nothing of the kind"),
    ] {
        let titled = NewProject {
            title: title.to_owned(),
            ..new_project(ada, slug)
        };
        project(&store, titled).await;
    }
    for (q, expected) in [
        ("0%", "percent"),
        ("e_c", "underscore"),
        (r"\", "backslash"),
        ("plai", "plain"),
    ] {
        assert_eq!(slugs(&store, Some(q), None).await, [expected], "{q}");
    }
    for q in ["%g", "n_t", "'", "\"", "plain%"] {
        assert_eq!(slugs(&store, Some(q), None).await, [""; 0], "{q}");
    }
    assert_eq!(slugs(&store, Some(""), None).await.len(), 4);
}

/// Case does not matter, in any script.
pub async fn a_search_ignores_case_beyond_ascii(url: &str) {
    let store = open(url).await;
    let ada = operator(&store, "ada@example.org").await;
    for (slug, title) in [
        ("greek", "ΟΔΥΣΣΕΑΣ"),
        ("german", "Straßen und Übergänge"),
        ("korean", "서울 날씨"),
        ("turkish", "Iğdır"),
    ] {
        let titled = NewProject {
            title: title.to_owned(),
            ..new_project(ada, slug)
        };
        project(&store, titled).await;
    }
    for (q, expected) in [
        ("δυσ", "greek"),
        ("έας", ""),
        ("ΕΑς", "greek"),
        ("STRASSEN", "german"),
        ("übergänge", "german"),
        ("울 날", "korean"),
        ("IĞD", "turkish"),
        ("GREE", "greek"),
    ] {
        let expected: Vec<_> = Some(expected).into_iter().filter(|slug| !slug.is_empty()).collect();
        assert_eq!(slugs(&store, Some(q), None).await, expected, "{q}");
    }
}

/// Paging through projects of one instant shows each once, newest first, also when one is added in between.
pub async fn pages_neither_repeat_nor_skip(url: &str) {
    let store = open(url).await;
    let ada = operator(&store, "ada@example.org").await;
    for number in 0..7 {
        let dated = NewProject {
            now: at(number / 3),
            ..new_project(ada, &format!("project-{number}"))
        };
        project(&store, dated).await;
    }
    let by_age = async |after, limit| -> Vec<DatasetId> {
        let filter = ProjectFilter {
            q: Some("project".to_owned()),
            viewer: None,
            after,
            limit,
        };
        let found = store.projects_by_age(&filter).await.unwrap();
        found.iter().map(|project| project.id).collect()
    };
    let all = by_age(None, 50).await;
    assert_eq!(all.len(), 7);
    assert!(all.is_sorted_by(|newer, older| newer.to_string() > older.to_string()));
    let after = ProjectCursor {
        updated_at: at(0),
        id: all[2],
    };
    assert_eq!(by_age(Some(after), 2).await, all[3..5]);
    let mut after = None;
    let mut seen: Vec<ProjectSummary> = Vec::new();
    for _ in 0..9 {
        let page = store
            .projects(&ProjectFilter {
                q: None,
                viewer: None,
                after,
                limit: 2,
            })
            .await
            .unwrap();
        let Some(last) = page.last() else { break };
        after = Some(ProjectCursor::from(last).to_string().parse().unwrap());
        seen.extend(page);
        let newer = NewProject {
            now: at(100),
            ..new_project(ada, &format!("newer-{}", seen.len()))
        };
        project(&store, newer).await;
    }
    let places: Vec<_> = seen.iter().map(|project| (project.updated_at, project.id)).collect();
    assert_eq!(seen.len(), 7);
    assert!(places.is_sorted_by(|newer, older| newer > older));
}

/// Open and paused may alternate; archived stays, whatever else is asked.
pub async fn archived_is_final(url: &str) {
    let store = open(url).await;
    let ada = operator(&store, "ada@example.org").await;
    let id = project(&store, new_project(ada, "weather")).await;
    for status in [
        ProjectStatus::Paused,
        ProjectStatus::Paused,
        ProjectStatus::Open,
        ProjectStatus::Paused,
        ProjectStatus::Archived,
        ProjectStatus::Archived,
    ] {
        assert_eq!(set_status(&store, id, status).await.status, status);
    }
    for to in [ProjectStatus::Open, ProjectStatus::Paused] {
        let changes = ProjectChanges {
            title: Some("Another title".to_owned()),
            status: Some(to),
            ..ProjectChanges::default()
        };
        assert_eq!(
            store.project_update(id, changes, at(9), DAY).await.unwrap(),
            ProjectUpdated::StatusConflict {
                from: ProjectStatus::Archived,
                to
            }
        );
    }
    let found = store.project_by_slug("weather", None).await.unwrap().unwrap();
    assert_eq!(
        (found.title.as_str(), found.status),
        ("Title of weather", ProjectStatus::Archived)
    );

    let nowhere = store
        .project_update(DatasetId::new(at(0)), ProjectChanges::default(), at(9), DAY)
        .await
        .unwrap_err();
    assert_eq!(nowhere.kind(), Kind::NotFound);
}

/// A second change within the window is refused. A change to the same price does not count.
pub async fn a_price_changes_once_per_window(url: &str) {
    let store = open(url).await;
    let ada = operator(&store, "ada@example.org").await;
    let paid = NewProject {
        access: Access::Paid,
        price_micro: Some(100_000),
        ..new_project(ada, "weather")
    };
    let id = project(&store, paid).await;
    let set = async |price: Option<i64>, seconds: i64| {
        let changes = ProjectChanges {
            price: Some(price),
            ..ProjectChanges::default()
        };
        store.project_update(id, changes, at(seconds), DAY).await.unwrap()
    };
    let price = |updated: ProjectUpdated| match updated {
        ProjectUpdated::Updated(project) => Ok(project.price_micro),
        ProjectUpdated::PriceTooSoon { retry_after } => Err(retry_after),
        ProjectUpdated::StatusConflict { .. } | ProjectUpdated::Edited(_) => Err(Duration::ZERO),
    };
    assert_eq!(price(set(Some(100_000), 0).await), Ok(Some(100_000)));
    assert_eq!(price(set(Some(200_000), 1).await), Ok(Some(200_000)));
    assert_eq!(price(set(Some(200_000), 2).await), Ok(Some(200_000)));
    assert_eq!(price(set(None, 3).await), Err(Duration::from_secs(86_398)));
    assert_eq!(price(set(Some(0), 86_400).await), Err(Duration::from_secs(1)));
    assert_eq!(price(set(None, 86_401).await), Ok(None));
    assert_eq!(price(set(Some(0), 86_402).await), Err(Duration::from_secs(86_399)));
}

/// A change refused for its price changes nothing else, and a change made shows in the search.
pub async fn a_refused_change_changes_nothing(url: &str) {
    let store = open(url).await;
    let ada = operator(&store, "ada@example.org").await;
    let id = project(&store, new_project(ada, "weather")).await;
    let changes = ProjectChanges {
        title: Some("Ωρολόγιο".to_owned()),
        readme: Some("Another readme, as long as it must be.".to_owned()),
        tags: Some(vec!["clocks".to_owned()]),
        price: Some(Some(300_000)),
        trial_sale: Some(true),
        status: Some(ProjectStatus::Paused),
        preview_rows: Some(Some(3)),
        seen: None,
    };
    let ProjectUpdated::Updated(updated) = store.project_update(id, changes, at(5), DAY).await.unwrap() else {
        unreachable!("the first change of a price is allowed")
    };
    let found = store.project_by_slug("weather", None).await.unwrap().unwrap();
    assert_eq!(found, updated);
    assert_eq!(
        (found.title.as_str(), found.tags.as_slice()),
        ("Ωρολόγιο", ["clocks".to_owned()].as_slice())
    );
    assert_eq!((found.created_at, found.updated_at), (at(0), at(0)));
    assert_eq!(slugs(&store, Some("ΩΡΟΛΌΓΙΟ"), None).await, ["weather"]);
    assert_eq!(slugs(&store, Some("title of"), None).await, [""; 0]);

    let refused = ProjectChanges {
        title: Some("Yet another".to_owned()),
        price: Some(None),
        ..ProjectChanges::default()
    };
    let outcome = store.project_update(id, refused, at(6), DAY).await.unwrap();
    assert!(matches!(outcome, ProjectUpdated::PriceTooSoon { .. }), "{outcome:?}");
    assert_eq!(store.project_by_slug("weather", None).await.unwrap().unwrap(), updated);
}

async fn set_status(store: &Store, id: DatasetId, status: ProjectStatus) -> Project {
    let changes = ProjectChanges {
        status: Some(status),
        ..ProjectChanges::default()
    };
    match store.project_update(id, changes, at(1), DAY).await.unwrap() {
        ProjectUpdated::Updated(project) => project,
        other => unreachable!("{other:?}"),
    }
}

async fn slugs(store: &Store, q: Option<&str>, viewer: Option<OperatorId>) -> Vec<String> {
    let filter = ProjectFilter {
        q: q.map(str::to_owned),
        viewer,
        after: None,
        limit: 50,
    };
    let found = store.projects(&filter).await.unwrap();
    found.into_iter().map(|project| project.slug).collect()
}

/// U+0000 in input is refused with an error of its own, and a search with it finds nothing.
pub async fn a_text_that_not_every_engine_holds_is_refused(url: &str) {
    let store = open(url).await;
    let world = World::new(&store).await;
    let mut new = new_project(world.operator, "other");
    "a\0b".clone_into(&mut new.title);
    let error = store.project_create(new, 5).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
    assert_eq!(error.to_string(), "`title` must not contain the character U+0000");
    let changes = ProjectChanges {
        readme: Some("\0".to_owned()),
        ..ProjectChanges::default()
    };
    let changed = store
        .project_update(world.project, changes, at(1), Duration::ZERO)
        .await;
    assert_eq!(changed.unwrap_err().kind(), Kind::Invalid);
    let contribution = NewContribution {
        source_declaration: Some("\0".to_owned()),
        ..world.contribution()
    };
    let submitted = store.contribution_submit(contribution).await;
    assert_eq!(submitted.unwrap_err().kind(), Kind::Invalid);

    assert_eq!(store.project_by_slug("weath\0er", None).await.unwrap(), None);
    assert_eq!(store.operator_by_email("ada\0@example.org").await.unwrap(), None);
    let filter = ProjectFilter {
        q: Some("\0".to_owned()),
        viewer: None,
        after: None,
        limit: 10,
    };
    assert_eq!(store.projects(&filter).await.unwrap(), []);
}

/// Texts are ordered by their bytes in any language of the database.
pub async fn texts_are_ordered_by_their_bytes(url: &str) {
    let store = open(url).await;
    let ada = operator(&store, "ada@example.org").await;
    for slug in ["b", "a-b", "ab", "a", "a_b", "B", "é"] {
        project(&store, new_project(ada, slug)).await;
    }
    let slugs: Vec<_> = store
        .check_projects()
        .await
        .unwrap()
        .into_iter()
        .map(|project| project.slug)
        .collect();
    assert_eq!(slugs, ["B", "a", "a-b", "a_b", "ab", "b", "é"]);
}
