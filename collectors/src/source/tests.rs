use super::*;
use crate::BUNDLED;

const SOURCE: &str = r#"
name = "tides"
dataset = "tides"
title = "Tides of a harbour"
publisher = "Harbour"
license = "CC0-1.0"
terms = "https://harbour.example/terms"
description = "Levels of the tide at a harbour, hourly."
schedule = "0 */6 * * *"
[fetch]
url = "https://harbour.example/tides.json"
format = "json"
[[fields]]
name = "at"
from = "/at"
type = "timestamp"
required = true
"#;

#[test]
fn every_source_that_comes_with_the_service_is_sound_and_says_that_it_was_not_tried() {
    assert!(BUNDLED.len() >= 8);
    for (name, text) in BUNDLED {
        let source = CollectorSource::parse(text, None).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(source.name(), *name);
        assert!(text.contains("\n# Untried against the live source"), "{name}");
        assert!(text.contains("\n# Documentation: https://"), "{name}");
        let url = source.text.fetch.url.clone().unwrap();
        assert!(url.starts_with("https://"), "{name}");
        assert!(source.declaration().len() <= 500, "{name}");
        assert!(["CC0-1.0", "CC-BY-4.0"].contains(&source.license()), "{name}");
    }
}

#[test]
fn a_definition_that_breaks_a_rule_names_the_key() {
    assert!(CollectorSource::parse(SOURCE, None).is_ok());
    for (from, to, key) in [
        ("name = \"tides\"\n", "name = \"Tides\"\n", "name"),
        ("title = \"Tides of a harbour\"", "title = \"T\"", "title"),
        ("0 */6 * * *", "0 * * * *", "schedule"),
        ("https://harbour.example/terms", "terms", "terms"),
        (
            "url = \"https://harbour.example/tides.json\"",
            "url = \"ftp://harbour.example\"",
            "fetch.url",
        ),
        ("url = \"https://harbour.example/tides.json\"", "", "fetch"),
        (
            "url = \"https://harbour.example/tides.json\"",
            "file = \"/etc/passwd\"",
            "fetch.file",
        ),
        (
            "format = \"json\"",
            "format = \"json\"\nrecords = \"items\"",
            "fetch.records",
        ),
        (
            "format = \"json\"",
            "format = \"json\"\nmax_mib = 4096",
            "fetch.max_mib",
        ),
        (
            "format = \"json\"",
            "format = \"json\"\ntimeout_seconds = 0",
            "fetch.timeout_seconds",
        ),
        (
            "format = \"json\"",
            "format = \"csv\"\npages = { next = \"/next\" }",
            "fetch.pages.next",
        ),
        ("format = \"json\"", "format = \"json\"\npages = { }", "fetch.pages"),
        (
            "format = \"json\"",
            "format = \"json\"\npages = { next = \"/n\", max = 9999 }",
            "fetch.pages.max",
        ),
        ("from = \"/at\"", "from = \"at\"", "fields.at.from"),
        ("from = \"/at\"", "from = \"/at\"\nconstant = 5", "fields.at.from"),
        (
            "type = \"timestamp\"",
            "type = \"string\"\nformat = \"date\"",
            "fields.at.format",
        ),
        ("required = true", "", "fields"),
        ("name = \"at\"", "name = \"a b\"", "fields"),
        ("format = \"json\"", "format = \"json\"\nfromat = 1", ""),
        ("format = \"json\"", "format = \"xlsx\"", ""),
    ] {
        let text = SOURCE.replace(from, to);
        assert_ne!(text, SOURCE, "{from}");
        let error = CollectorSource::parse(&text, None).unwrap_err();
        assert_eq!(error.key, key, "{to}: {error}");
    }
}

#[test]
fn a_file_is_read_below_the_folder_of_its_definition() {
    let text = SOURCE.replace("url = \"https://harbour.example/tides.json\"", "file = \"tides.json\"");
    let source = CollectorSource::parse(&text, Some(Path::new("/srv/sources"))).unwrap();
    assert_eq!(source.file().unwrap(), Path::new("/srv/sources/tides.json"));
}
