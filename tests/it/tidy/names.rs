//! Names of types: a name stands for one type of a package.

use std::collections::BTreeMap;
use std::path::Path;

use super::{none, product_sources, root};

/// Returns the names of the types that a file defines outside of functions and inner modules.
fn types(text: &str) -> Vec<&str> {
    let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let defined = product.lines().filter_map(|line| {
        let item = match line.strip_prefix("pub(") {
            Some(rest) => rest.split_once(") ")?.1,
            None => line.strip_prefix("pub ").unwrap_or(line),
        };
        let kinds = ["struct ", "enum ", "trait "];
        let name = kinds.iter().find_map(|kind| item.strip_prefix(kind))?;
        name.split(|letter: char| !letter.is_alphanumeric()).next()
    });
    defined.collect()
}

/// Returns the folder of the package that a file belongs to.
fn package(file: &str) -> String {
    let mut folders = Path::new(file).ancestors().skip(1);
    let home = folders.find(|folder| root().join(folder).join("Cargo.toml").exists());
    home.unwrap().display().to_string()
}

#[test]
fn a_package_has_each_type_name_once() {
    let sources = product_sources();
    let mut homes: BTreeMap<(String, &str), Vec<&str>> = BTreeMap::new();
    for (file, text) in &sources {
        for name in types(text) {
            // Every package has one, and a name of its module before it where there are more.
            if name != "Error" {
                homes.entry((package(file), name)).or_default().push(file);
            }
        }
    }
    homes.retain(|_, files| files.len() > 1);
    let twice = homes.into_iter();
    let problems: Vec<_> = twice
        .map(|((package, name), files)| format!("{package}: `{name}` is defined in {}", files.join(" and ")))
        .collect();
    none(&problems);
}

#[test]
fn types_are_found_in_a_source() {
    let text = "pub(crate) struct One<T>(T);\n    struct Inner;\npub enum Two {}\ntrait Three: Sized {}\n\
                impl One {}\n#[cfg(test)]\nmod tests {\nstruct Four;\n}\n";
    assert_eq!(types(text), ["One", "Two", "Three"]);
}
