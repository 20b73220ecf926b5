//! Checks where injected bugs stand.
//!
//! Invariant: the product without its `mutate!` statements reads as if there were no bugs, and no bug is forgotten.

use super::{none, product_sources, sources};

/// The functions of the product that say who has a right. No other begins with `may_`, so none is taken for one.
const RIGHTS: [&str; 9] = [
    "may_act",
    "may_comment",
    "may_grant",
    "may_rate",
    "may_read",
    "may_redirect_to",
    "may_replay",
    "may_review",
    "may_sign",
];

/// File that declares the bugs and the macro.
const FAULT: &str = "catalog/types/src/fault.rs";

/// The names of the bugs, with those of the list that processes are started with.
fn bugs(text: &str) -> (Vec<&str>, Vec<&str>) {
    let between = |start: &str, end: &str| text.split_once(start).unwrap().1.split_once(end).unwrap().0;
    let names = between("pub enum InjectedBug {", "\n}").lines().map(str::trim);
    let names = names.filter_map(|line| line.strip_suffix(',').filter(|name| !name.contains(' ')));
    let listed = between("pub const ALL:", "];").lines();
    let listed = listed.filter_map(|line| Some(line.split_once("Self::")?.1.split_once(')')?.0));
    (names.collect(), listed.collect())
}

#[test]
fn every_injected_bug_stands_in_the_product_and_in_a_test() {
    let (all, product) = (sources(), product_sources());
    let (_, fault) = all.iter().find(|(name, _)| name == FAULT).unwrap();
    let (names, listed) = bugs(fault);
    assert!(
        names.len() > listed.len() && !listed.is_empty(),
        "{names:?}, {listed:?}"
    );
    let mut problems = Vec::new();
    for bug in names {
        let mutation = format!("mutate!(Bug::{bug} => ");
        if !product
            .iter()
            .any(|(name, text)| name != FAULT && text.contains(&mutation))
        {
            problems.push(format!("`{bug}` is in no `mutate!` of the product"));
        }
        // The crash tests go through the listed ones.
        let planted = format!("InjectedBug::{bug}");
        let is_planted = |(name, text): &(String, String)| name.contains("tests") && text.contains(&planted);
        if !listed.contains(&bug) && !all.iter().any(is_planted) {
            problems.push(format!("`{bug}` is planted by no test"));
        }
    }
    none(&problems);
}

#[test]
fn only_mutations_ask_for_an_injected_bug() {
    let asking = product_sources().into_iter();
    let asking = asking.filter(|(name, text)| name != FAULT && text.contains("is_injected("));
    let asking = asking.map(|(name, _)| format!("{name}: asks for an injected bug, and is no `mutate!`"));
    none(&asking.collect::<Vec<_>>());
}

#[test]
fn only_rights_are_named_may() {
    let mut problems = Vec::new();
    for (name, text) in product_sources() {
        for found in text.split("fn may_").skip(1) {
            let end = found.find(|letter: char| letter != '_' && !letter.is_alphanumeric());
            let function = format!("may_{}", &found[..end.unwrap_or(found.len())]);
            if !RIGHTS.contains(&&*function) {
                problems.push(format!("{name}: `{function}` is no right"));
            }
        }
    }
    none(&problems);
}
