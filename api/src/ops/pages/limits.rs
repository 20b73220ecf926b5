//! The limits in force, as tables in Markdown.
//!
//! Invariant: every figure is read from the configuration, from the table of operations or from the constant that is
//! enforced; none is written here. A test notices a limit of the configuration that is not told.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use pay::Tariff;
use serde_json::Value;
use types::knowledge::{AXES, MAX_TENTHS, PASS_MARK};

use crate::call::operation::{Operation, Operations};
use crate::call::spec::{ApiKind, ParamLocation};
use crate::config::Limits;
use crate::ops::{accounts, console};
use crate::rules::accounts::entry;
use crate::rules::settlement::faucet;
use crate::spans::{hours, span};

/// Returns the limits: those of the review, of use, and of each member of an input.
pub(super) fn markdown(limits: &Limits, tariff: &Tariff, table: &Operations) -> String {
    [
        review(),
        rows("Limit", &usage(limits, table)),
        rows("Time or amount", &times(limits, tariff)),
        members(table),
    ]
    .join("\n\n")
}

/// Returns what a review asks of a text.
fn review() -> String {
    let axes: Vec<String> = AXES
        .iter()
        .map(|(name, meaning)| format!("| `{name}` | {meaning} |"))
        .collect();
    let axes = axes.join("\n");
    let most = MAX_TENTHS / 10;
    format!(
        "A text is published from a total of {PASS_MARK} of 100 on (`passMark`). The total is computed from four axes, each of 0 to {most}:\n\n\
         | Axis | Meaning |\n|-|-|\n{axes}\n\n\
         Before the score, a text with personal data and a copy of a published one, in other words too, are rejected. Government \
         identity numbers are never taken. So is a text whose figures contradict each other: the reason names both. Evidence counts as a share \
         of the text and by what it belongs to, so a sentence of figures in a text without any adds little."
    )
}

/// Returns the limits on sizes and rates.
fn usage(limits: &Limits, table: &Operations) -> Vec<(String, String)> {
    let mut rows = numbers(limits);
    rows.extend(sizes(limits));
    rows.extend(declared(limits, table));
    rows
}

/// Returns the limits that are numbers.
fn numbers(limits: &Limits) -> Vec<(String, String)> {
    let of = |most: u32, usual: u32| format!("{most}; {usual} where not given");
    let rows = [
        (
            "Calls of one address in a minute",
            limits.calls_per_ip_per_minute.get().to_string(),
        ),
        (
            "Agents of an operator, waiting claims counted",
            limits.agents_per_operator.to_string(),
        ),
        (
            "Active projects of an operator",
            limits.active_projects_per_operator.to_string(),
        ),
        (
            "Contributions of an operator to public projects in a UTC day",
            limits.public_contributions_per_day.to_string(),
        ),
        (
            "Units that an operator submits and revises in a UTC day",
            limits.knowledge_per_day.to_string(),
        ),
        (
            "Units that an agent submits in an hour",
            limits.submissions_per_agent_per_hour.to_string(),
        ),
        (
            "Units that an agent revises in an hour",
            limits.revisions_per_agent_per_hour.to_string(),
        ),
        (
            "Records of a contribution",
            limits.records_per_contribution.get().to_string(),
        ),
        ("Open uploads of an operator", limits.open_uploads.to_string()),
        (
            "Records on a page",
            of(limits.page_records.get(), limits.default_page_records.get()),
        ),
        (
            "Records of a page of a diff",
            of(limits.diff_records.get(), limits.default_diff_records.get()),
        ),
        ("Characters of a statement", limits.query_characters.get().to_string()),
        (
            "Rows of an answer to a query",
            of(limits.query_rows.get(), limits.default_query_rows.get()),
        ),
        (
            "Seconds of a query, one at a time for an operator",
            limits.query_timeout.seconds().to_string(),
        ),
        ("Wrong tries that lock a claim code", store::MAX_WRONG_TRIES.to_string()),
        (
            "Test USDC of a wallet from the faucet in a UTC day",
            faucet::MOST_OF_WALLET.to_string(),
        ),
        (
            "Test USDC that an operator or an address asks of the faucet in a UTC day",
            faucet::MOST_OF_CALLER.to_string(),
        ),
    ];
    rows.map(|(what, value)| (what.to_owned(), value)).into()
}

/// Returns the limits that are sizes.
fn sizes(limits: &Limits) -> Vec<(String, String)> {
    let wide = |bytes: usize| size(u64::try_from(bytes).unwrap_or(u64::MAX));
    let rows = [
        (
            "Body of a contribution or a dry run",
            wide(limits.contribution_body.bytes()),
        ),
        (
            "File that `/files/infer` or `/files/convert` reads",
            wide(limits.file_body.bytes()),
        ),
        ("Body of any other call", wide(limits.body.bytes())),
        (
            "Bodies of an operator at the same time",
            wide(limits.bodies_per_operator.bytes()),
        ),
        ("Upload", size(limits.upload.0)),
        (
            "Storage of an operator that is free",
            size(limits.storage_per_operator.0),
        ),
        ("Version that is queried here", size(limits.query_version.0)),
    ];
    rows.map(|(what, value)| (what.to_owned(), value)).into()
}

/// Returns the limits that operations declare, each once.
fn declared(limits: &Limits, table: &Operations) -> Vec<(String, String)> {
    let mut seen = BTreeSet::new();
    let all = table.iter().flat_map(|operation| operation.spec.limits);
    all.filter(|limit| seen.insert(limit.counted))
        .map(|limit| {
            let mut counted = limit.counted.to_owned();
            if let Some(first) = counted.get_mut(..1) {
                first.make_ascii_uppercase();
            }
            (counted, (limit.most)(limits).to_string())
        })
        .collect()
}

/// Returns how long things last, and amounts of money.
fn times(limits: &Limits, tariff: &Tariff) -> Vec<(String, String)> {
    let micros = |micros: i64| span(micros.unsigned_abs() / 1_000_000);
    let long = |time: Duration| span(time.as_secs());
    let rows = [
        ("The longest `wait` for an outcome", span(limits.wait.seconds().into())),
        (
            "An `Idempotency-Key` is remembered",
            hours(limits.idempotency_window.hours()),
        ),
        (
            "Between two changes of a price",
            hours(limits.price_change_window.hours()),
        ),
        ("A changed price is still taken", span(tariff.quote_seconds.into())),
        ("An upload expires after", span(limits.upload_window.seconds().into())),
        ("The address of a part works", span(limits.part_urls.seconds().into())),
        ("A claim code works, once", long(console::CODE_LASTS)),
        ("A claim waits for its approval", micros(accounts::DECISION)),
        ("Between two calls for the status of a claim", long(accounts::POLL)),
        ("A link that verifies an address works", micros(entry::VERIFY)),
        ("A link that signs in works", micros(entry::SIGN_IN)),
        (
            "A sign-up that was not verified is deleted after",
            micros(entry::UNVERIFIED),
        ),
        ("Access of an app", long(oauth::ACCESS_TOKEN_LIFE)),
        ("Renewal of that access", long(oauth::family::FAMILY_LIFE)),
        ("The same report is one report within", long(store::SAME_REPORT)),
        ("A sale can be disputed", span(tariff.dispute_window_seconds.into())),
        ("Payout from a balance of", format!("${}", tariff.payout_threshold)),
        ("Pack of credits", format!("${}", tariff.pack)),
        (
            "Egress of an operator that is free in a UTC month",
            size(tariff.free_egress_bytes),
        ),
    ];
    rows.map(|(what, value)| (what.to_owned(), value)).into()
}

/// Returns the lengths and ranges of the members of each body and query, as the schemas have them.
fn members(table: &Operations) -> String {
    let mut text = "| Call | Members, with characters, items or values allowed |\n|-|-|".to_owned();
    let programs = table.iter().filter(|operation| operation.spec.surface == ApiKind::Rest);
    for operation in programs {
        let members: Vec<String> = operation
            .input
            .properties()
            .filter(|(name, _)| operation.spec.location_of(name) != ParamLocation::Path)
            .filter_map(|(name, schema)| Some(format!("`{name}` {}", bounds(schema)?)))
            .collect();
        if !members.is_empty() {
            // Writing to a string does not fail.
            let _written = write!(text, "\n| {} | {} |", call(operation), members.join(", "));
        }
    }
    text
}

fn call(operation: &Operation) -> String {
    format!("`{} {}`", operation.spec.method, operation.spec.path)
}

/// Returns the bounds in a schema: the least and the most; `None` if it has none.
fn bounds(schema: &Value) -> Option<String> {
    let pairs = [
        ("minLength", "maxLength"),
        ("minItems", "maxItems"),
        ("minimum", "maximum"),
    ];
    pairs.into_iter().find_map(|(least, most)| {
        let (least, most) = (schema.get(least).and_then(Value::as_u64), schema.get(most)?.as_u64()?);
        Some(format!("{} to {most}", least.unwrap_or(0)))
    })
}

fn rows(head: &str, rows: &[(String, String)]) -> String {
    let lines = rows.iter().map(|(limit, value)| format!("| {limit} | {value} |"));
    format!("| {head} | In force |\n|-|-|\n{}", lines.collect::<Vec<_>>().join("\n"))
}

/// Returns a size in the greatest unit that divides it.
fn size(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = units
        .into_iter()
        .find(|(_, shift)| bytes >= 1_u64 << *shift && bytes.trailing_zeros() >= *shift);
    unit.map_or_else(
        || format!("{bytes} B"),
        |(name, shift)| format!("{} {name}", bytes >> shift),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members of the configuration that limit the service as a whole and no caller.
    const OF_THE_SERVICE: [&str; 6] = [
        "open_contributions",
        "open_bytes",
        "bodies",
        "remembered",
        "body_patience",
        "platform_egress_per_month",
    ];
    /// Member that the page takes from the tariff instead.
    const OF_THE_TARIFF: &str = "egress_per_operator";

    /// Returns a multiple of a limit as the configuration writes it, given the debug text of its type.
    fn times(factor: u64, text: &str) -> Value {
        let number = |digits: &str| factor * digits.parse::<u64>().unwrap();
        let within = |name: &str| text.strip_prefix(name)?.strip_suffix(')');
        match (within("Size("), within("HumanDuration(")) {
            (Some(bytes), _) => Value::from(format!("{}B", number(bytes))),
            (_, Some(time)) => Value::from(format!("{}s", number(time.strip_suffix('s').unwrap()))),
            _ => Value::from(number(text)),
        }
    }

    #[test]
    fn every_limit_of_the_configuration_is_told() {
        let usual = crate::testing::limits();
        let (table, tariff) = (crate::operations(&usual), crate::testing::tariff());
        let told = |limits: &Limits| markdown(limits, &tariff, &table);
        let before = told(&usual);
        let names = format!("{usual:?}");
        let (_, members) = names.trim_end_matches('}').split_once('{').unwrap();
        let members = members
            .split(", ")
            .map(|member| member.trim().split_once(": ").unwrap());
        let mut count = 0;
        for (name, value) in members.clone() {
            // The struct is made anew from its own text, with one member changed.
            let text = members.clone().map(|(other, value)| {
                let factor = if other == name { 2 } else { 1 };
                (other.to_owned(), times(factor, value.trim()))
            });
            let changed: Limits = serde_json::from_value(Value::Object(text.collect())).unwrap();
            let is_told = told(&changed) != before;
            let is_expected = name != OF_THE_TARIFF && !OF_THE_SERVICE.contains(&name);
            assert_eq!(is_told, is_expected, "{name} is {value}");
            count += 1;
        }
        assert!(count > 30, "{names}");
    }

    #[test]
    fn sizes_are_told_in_whole_units() {
        for (bytes, told) in [(5 << 30, "5 GiB"), (4 << 20, "4 MiB"), (1_500, "1500 B"), (0, "0 B")] {
            assert_eq!(size(bytes), told);
        }
    }
}
