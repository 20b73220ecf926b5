//! Words for true and false.

/// Returns the truth value of `true`, `yes`, `t`, `y`, `1`, `false`, `no`, `f`, `n` or `0`, in any case.
pub fn truth(word: &[u8]) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(word));
    if is(&["true", "t", "yes", "y", "1"]) {
        Some(true)
    } else if is(&["false", "f", "no", "n", "0"]) {
        Some(false)
    } else {
        None
    }
}
