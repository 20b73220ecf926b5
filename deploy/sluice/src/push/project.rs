//! The project that a push or `create` makes: its names and texts, the limit of active ones, and one that is there already.
//!
//! Invariant: nothing is created before its contract is known and a person, or the command line, agreed. Contract, slug and
//! visibility never change.

use std::fs;

use anyhow::{Context as _, anyhow, bail};
use client::model::{Me, NewProject, Project};
use client::{Client, RetryBudget};
use indicatif::HumanCount;
use serde_json::Value;
use types::Contract;

use crate::cli::{ProjectArgs, ReadingArgs};
use crate::exit::{FileRefused, NotAllowed, Unanswered, WrongUsage};
use crate::terminal::{self, plain, shown};

/// Bounds on the length of a slug, in characters.
const SLUG_CHARS: std::ops::RangeInclusive<usize> = 3..=60;
/// Bounds on the length of a title, in characters.
const TITLE_CHARS: std::ops::RangeInclusive<usize> = 4..=140;
/// The longest readme, in characters.
const MAX_README_CHARS: usize = 20_000;
/// Ends of names of files that say their form and nothing about their records.
const FORM_ENDS: [&str; 21] = [
    "csv", "tsv", "psv", "tab", "txt", "dat", "json", "jsonl", "ndjson", "geojson", "parquet", "pq", "arrow", "arrows",
    "feather", "ipc", "xlsx", "xlsm", "gz", "zst", "zstd",
];

/// A new project without its contract.
#[derive(Clone, Debug)]
pub(crate) struct ProjectPlan {
    pub(crate) slug: String,
    title: String,
    /// The readme of the command line. Without one it is made of the file.
    readme: Option<String>,
    license: Option<String>,
    tags: Vec<String>,
    /// The price of a paid project; an empty text for the platform's.
    paid: Option<String>,
    is_public: bool,
}

impl ProjectPlan {
    /// Returns the plan of the arguments for a file of this name. Reads the readme.
    pub(crate) fn of(slug: Option<&str>, file: Option<&str>, arguments: &ProjectArgs) -> anyhow::Result<Self> {
        let made = || file.and_then(slug_of);
        let slug = slug.map(str::to_owned).or_else(made).ok_or_else(|| {
            WrongUsage("no name for the project can be made of that of the file; give one with --project".to_owned())
        })?;
        let named = match (&arguments.title, file.map(title_of)) {
            (Some(title), _) => title.clone(),
            (None, Some(title)) if !title.is_empty() => title,
            (None, _) => title_of(&slug),
        };
        let readme = match &arguments.readme {
            None => None,
            Some(path) => {
                let text = fs::read_to_string(path);
                Some(text.with_context(|| format!("the readme `{}` cannot be read", path.display()))?)
            }
        };
        Ok(Self {
            slug,
            title: within(&named, "Dataset"),
            readme,
            license: arguments.license.clone(),
            tags: arguments.tags.clone(),
            paid: arguments.paid.clone(),
            is_public: arguments.public || arguments.paid.is_some(),
        })
    }

    /// Returns the words for its visibility and access.
    pub(crate) fn visibility(&self) -> String {
        match (&self.paid, self.is_public) {
            (Some(price), _) if price.is_empty() => "paid, at the platform's price".to_owned(),
            (Some(price), _) => format!("paid, {} dollars a version", shown(price)),
            (None, true) => "public".to_owned(),
            (None, false) => "private".to_owned(),
        }
    }

    /// Returns the body of the request that creates it. `made` is the readme without one of the command line.
    pub(crate) fn project(&self, contract: &Contract, made: String) -> anyhow::Result<NewProject> {
        Ok(NewProject {
            slug: self.slug.clone(),
            title: self.title.clone(),
            readme: self.readme.clone().unwrap_or(made),
            schema_def: serde_json::to_value(contract)?,
            license: self.license.clone(),
            tags: self.tags.clone(),
            access: self.paid.as_ref().map(|_| "paid".to_owned()),
            visibility: Some(if self.is_public { "public" } else { "private" }.to_owned()),
            price: self.paid.clone().filter(|price| !price.is_empty()),
        })
    }

    /// Asks whether to create it, unless `yes`. `what` completes the question, as "and send the records".
    pub(crate) fn confirm(&self, yes: bool, what: &str) -> anyhow::Result<()> {
        if yes {
            return Ok(());
        }
        let (slug, visibility) = (shown(&self.slug), self.visibility());
        let question = format!("Create `{slug}`, {visibility}{what}? Fields and visibility never change. [Y/n] ");
        match terminal::ask(&question)?.map(|typed| typed.to_lowercase()).as_deref() {
            Some("" | "y" | "yes") => Ok(()),
            Some(_) => bail!(Unanswered("Nothing was created.".to_owned())),
            None => bail!(Unanswered(format!(
                "Nothing was created: `{slug}` would be {visibility}, and fields and visibility never change. Say --yes"
            ))),
        }
    }
}

/// Fails if arguments of a new project are given where none is made.
pub(crate) fn check_unused(arguments: &ProjectArgs) -> anyhow::Result<()> {
    let flags = [
        ("--title", arguments.title.is_some()),
        ("--readme", arguments.readme.is_some()),
        ("--license", arguments.license.is_some()),
        ("--tags", !arguments.tags.is_empty()),
        ("--public", arguments.public),
        ("--paid", arguments.paid.is_some()),
    ];
    match flags.iter().find(|(_, given)| *given) {
        Some((flag, _)) => bail!(WrongUsage(format!("{flag} is for a new project: add --create"))),
        None => Ok(()),
    }
}

/// Returns what the service says about the caller. `None` without a key, or if the service cannot be reached now.
pub(crate) async fn caller_if_reachable(client: &Client, has_key: bool) -> Option<Me> {
    if !has_key {
        return None;
    }
    client.clone().with_retry_budget(RetryBudget::NONE).me().await.ok()
}

/// Returns what is active and the ways to make room, if the caller is at the limit of active projects and has none of this
/// name.
pub(crate) fn at_limit(caller: &Me, slug: Option<&str>) -> Option<(String, String)> {
    let projects = &caller.projects;
    let is_own = |slug: &str| projects.active.iter().any(|project| project.slug == slug);
    if (projects.active.len() as u64) < projects.limit || slug.is_some_and(is_own) {
        return None;
    }
    let listed: Vec<String> = projects
        .active
        .iter()
        .map(|project| match project.visibility.as_str() {
            "private" => format!("{} (private)", shown(&project.slug)),
            _ => shown(&project.slug),
        })
        .collect();
    let mut ways = Vec::new();
    // Archiving is possible for each of them, deletion for private ones only.
    if let Some(first) = projects.active.first().and_then(|project| quoted_slug(&project.slug)) {
        ways.push(format!("sluice archive {first} (for good)"));
    }
    let private = projects.active.iter().find(|project| project.visibility == "private");
    if let Some(private) = private.and_then(|project| quoted_slug(&project.slug)) {
        ways.push(format!("sluice delete {private}"));
    }
    let active = format!(
        "{} of {} projects are active: {}.",
        HumanCount(projects.active.len() as u64),
        HumanCount(projects.limit),
        listed.join(", "),
    );
    Some((active, format!("Make room: {}.", ways.join(", or "))))
}

/// Fails if the caller cannot create another project, before anything is read.
pub(crate) async fn check_limit(client: &Client, slug: Option<&str>) -> anyhow::Result<Me> {
    let caller = client.me().await?;
    match at_limit(&caller, slug) {
        Some((active, room)) => bail!(NotAllowed(format!("{active} Nothing was read.\n{room}"))),
        None => Ok(caller),
    }
}

/// Returns a slug for a command to paste, or `None` for one that the service would not have.
fn quoted_slug(slug: &str) -> Option<String> {
    is_slug(slug).then(|| slug.to_owned())
}

/// Returns true if there is a project of this slug, and false if there is none.
///
/// # Errors
/// If it is not the caller's own and active one, with equal rules, visibility and access.
pub(crate) async fn own_equal(
    client: &Client,
    caller: &Me,
    plan: &ProjectPlan,
    contract: &Contract,
) -> anyhow::Result<bool> {
    let project = match client.project(&plan.slug).await {
        Ok(project) => project,
        Err(error) if error.problem().is_some_and(|problem| problem.status == 404) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    let is_own = caller.projects.active.iter().any(|own| own.slug == plan.slug);
    let word = |name: &str| project.more.get(name).and_then(Value::as_str).unwrap_or_default();
    let (visibility, access) = (
        if plan.is_public { "public" } else { "private" },
        if plan.paid.is_some() { "paid" } else { "public" },
    );
    let has_same_rules = contract_of(&project).is_ok_and(|found| found.rules() == contract.rules());
    if is_own && has_same_rules && word("visibility") == visibility && word("access") == access {
        return Ok(true);
    }
    let slug = shown(&plan.slug);
    let append = if is_own {
        format!("Append with --project {slug}, or name another: --create --project NAME")
    } else {
        "Name another: --create --project NAME".to_owned()
    };
    bail!(Unanswered(format!("`{slug}` exists. {append}")))
}

/// Returns the contract of a project.
pub(crate) fn contract_of(project: &Project) -> anyhow::Result<Contract> {
    let schema = project
        .more
        // The client's type of a project has no contract, so it is read from the other fields.
        .get("schemaDef")
        .context("the service's answer has no `schemaDef` for the project")?;
    Ok(serde_json::from_value(schema.clone())?)
}

/// Explains a refusal to create a project: a name that is taken, by a project that the caller does not see.
pub(crate) fn explained(error: client::Error, slug: &str) -> anyhow::Error {
    let slug = shown(slug);
    match error.problem().map(|problem| problem.code.as_str()) {
        Some("slug_taken") => anyhow!(Unanswered(format!(
            "`{slug}` exists or existed. Name another: --create --project NAME"
        ))),
        _ => error.into(),
    }
}

/// Returns the slug that the name of a file gives, or `None` if it has nothing for one.
pub(crate) fn slug_of(file: &str) -> Option<String> {
    let mut slug = String::new();
    for character in stem(file).chars() {
        let character = character.to_ascii_lowercase();
        if character.is_ascii_alphanumeric() {
            slug.push(character);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(*SLUG_CHARS.end());
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() {
        return None;
    }
    // A short name gets a word that says nothing more.
    Some(if slug.len() < *SLUG_CHARS.start() {
        format!("{slug}-data")
    } else {
        slug.to_owned()
    })
}

/// Returns true if the service can have a project of this slug.
fn is_slug(slug: &str) -> bool {
    SLUG_CHARS.contains(&slug.len())
        && slug
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !slug.starts_with('-')
        && !slug.ends_with('-')
}

/// Returns the title that a name gives: words with blanks between them, the first with a capital letter.
fn title_of(file: &str) -> String {
    let words = stem(file).replace(['_', '-'], " ");
    let clean: String = words
        .chars()
        .filter(|character| !terminal::is_obeyed(*character))
        .collect();
    let clean = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut characters = clean.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => clean,
    }
}

/// Returns a text as a title: of a length that the service takes, with a word before a short one.
fn within(title: &str, word: &str) -> String {
    if title.chars().count() < *TITLE_CHARS.start() {
        return format!("{word} {title}").trim_end().to_owned();
    }
    title.chars().take(*TITLE_CHARS.end()).collect()
}

/// Returns the name of a file without its folder and without ends that say its form.
fn stem(file: &str) -> &str {
    let mut name = file.rsplit('/').next().unwrap_or(file);
    while let Some((stem, end)) = name.rsplit_once('.')
        && !stem.is_empty()
        && FORM_ENDS.contains(&end.to_ascii_lowercase().as_str())
    {
        name = stem;
    }
    name
}

/// Returns the readme of a project that is made of a file: source, rows and fields.
pub(crate) fn readme_of(source: &str, form: &str, records: Option<u64>, contract: &Contract) -> String {
    let rows = records.map_or_else(String::new, |records| format!(", {} records", HumanCount(records)));
    let mut readme = format!("Made from {}: {}{rows}.\n\nFields:\n\n", plain(source), plain(form));
    for field in contract.fields() {
        let described = [&field.title, &field.unit, &field.description];
        let described: Vec<String> = described.into_iter().flatten().map(|text| plain(text)).collect();
        let described = if described.is_empty() {
            String::new()
        } else {
            format!(": {}", described.join(", "))
        };
        let line = format!("- `{}` ({}){described}\n", plain(&field.name), type_name(field.kind));
        if readme.chars().count() + line.chars().count() > MAX_README_CHARS - 100 {
            readme.push_str("- … and more, as the contract says\n");
            break;
        }
        readme.push_str(&line);
    }
    readme
}

/// Returns the name of a type, with the scale of a decimal.
pub(crate) fn type_name(kind: types::FieldType) -> String {
    match kind {
        types::FieldType::Decimal(scale) => format!("{}({scale})", kind.name()),
        kind => kind.name().to_owned(),
    }
}

/// Returns the contract of `--schema`: a file, or the JSON itself.
pub(crate) fn schema_of(argument: &str) -> anyhow::Result<Contract> {
    let text = if argument.trim_start().starts_with('{') {
        argument.to_owned()
    } else {
        fs::read_to_string(argument).with_context(|| format!("`{argument}` cannot be read"))?
    };
    let contract: Result<Contract, _> = serde_json::from_str(&text);
    contract.map_err(|error| FileRefused::mark(anyhow!("--schema is no contract: {error}")))
}

/// Fails if flags of reading are given where no file is read.
pub(crate) fn check_no_reading(arguments: &ReadingArgs) -> anyhow::Result<()> {
    if arguments.flags().is_empty() && arguments.reading.is_none() {
        return Ok(());
    }
    bail!(WrongUsage(
        "flags of reading are for a file: add --like FILE".to_owned()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_and_a_title_come_from_the_name_of_the_file() {
        for (file, slug, title) in [
            ("stations.csv", Some("stations"), "Stations"),
            (
                "/data/Tide_Levels 2024.csv.gz",
                Some("tide-levels-2024"),
                "Tide Levels 2024",
            ),
            ("a.b.json", Some("a-b"), "Dataset A.b"),
            ("x.parquet", Some("x-data"), "Dataset X"),
            ("온도.csv", None, "Dataset 온도"),
            (".csv", Some("csv"), ".csv"),
            ("csv", Some("csv"), "Dataset Csv"),
            ("--v--.csv", Some("v-data"), "Dataset V"),
            ("a\u{202e}b\u{1b}.csv", Some("a-b"), "Dataset Ab"),
        ] {
            assert_eq!(slug_of(file).as_deref(), slug, "{file}");
            assert_eq!(within(&title_of(file), "Dataset"), title, "{file}");
        }
        let long = "x".repeat(300);
        assert!(slug_of(&long).is_some_and(|slug| is_slug(&slug)));
        assert_eq!(within(&title_of(&long), "Dataset").chars().count(), 140);
    }
}
