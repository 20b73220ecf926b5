use super::html::{Element, elements};
use crate::testing::samples;

#[test]
fn text_of_somebody_else_never_becomes_markup() {
    let samples = samples().unwrap();
    let hostile: Vec<_> = samples
        .iter()
        .filter(|sample| sample.name.starts_with("hostile-"))
        .collect();
    assert!(hostile.len() > 40);
    let mut carried = 0;
    for sample in hostile {
        let elements = elements(&sample.html);
        let scripts = elements
            .iter()
            .filter(|element| element.name == "script" && element.get("type") != Some("application/ld+json"))
            .count();
        assert_eq!(scripts, 1, "{}", sample.name);
        assert!(!elements.iter().any(|element| element.name == "img"), "{}", sample.name);
        assert!(!sample.html.contains("<script>alert"), "{}", sample.name);
        carried += usize::from(sample.html.contains("&#60;script&#62;alert(1)"));
    }
    assert!(carried > 20, "the hostile text stands on {carried} pages");
}

#[test]
fn a_page_is_the_same_but_for_the_texts() {
    let samples = samples().unwrap();
    for sample in samples.iter().filter(|sample| sample.name.starts_with("hostile-")) {
        let name = sample.name.trim_start_matches("hostile-");
        // The text of a unit is Markdown: its blocks follow the text.
        if name == "unit" || name.starts_with("unit-") {
            continue;
        }
        let usual = samples.iter().find(|other| other.name == name).unwrap();
        let names = |html: &str| -> Vec<String> { elements(html).into_iter().map(|element| element.name).collect() };
        assert_eq!(names(&sample.html), names(&usual.html), "{name}");
    }
}

#[test]
fn text_of_somebody_else_is_isolated_in_its_direction() {
    let mut problems = Vec::new();
    for sample in samples()
        .unwrap()
        .iter()
        .filter(|sample| sample.name.starts_with("hostile-"))
    {
        let elements = elements(&sample.html);
        // The letter turns the direction of what follows it. A title has no markup, and a picture is no text.
        let turned = elements
            .iter()
            .filter(|element| element.own.contains('\u{202e}') && element.name != "title");
        let isolates = |element: &Element| element.name == "bdi" || element.get("dir") == Some("auto");
        let bare =
            turned.filter(|element| !isolates(element) && !element.around.iter().any(|at| isolates(&elements[*at])));
        problems.extend(bare.map(|element| format!("{}: {} {:?}", sample.name, element.name, element.attributes)));
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}
