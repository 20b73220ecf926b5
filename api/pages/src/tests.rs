use crate::testing::samples;

#[test]
fn every_sample_renders_and_none_has_a_script_or_a_style_of_its_own() {
    let samples = samples().unwrap();
    assert!(samples.len() > 80);
    for sample in samples {
        assert!(!sample.html.contains("<style"), "{}", sample.name);
        assert!(!sample.html.contains("<script>"), "{}", sample.name);
    }
}
