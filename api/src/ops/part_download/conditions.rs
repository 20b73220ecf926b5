//! Conditions on a part (RFC 9110 section 13).
//!
//! Invariant: conditions compare with the part's one entity tag, which is strong because a part never changes.
//! Conditions on a date are ignored: a part has none.

use crate::error::ApiError;

/// The result of the conditions of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConditionResult {
    /// All conditions hold.
    All,
    /// The caller has the part already: 304.
    NotModified,
    /// The part is another than the caller expects: 412.
    Failed,
}

/// Entity tag (section 8.8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EntityTag<'a> {
    is_weak: bool,
    opaque: &'a str,
}

/// List of entity tags in a header, or `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ListedTags<'a> {
    Any,
    Tags(Vec<EntityTag<'a>>),
}

/// Holds `If-Match` and `If-None-Match`, each as the lines it was sent in, against the tag of a part, in the order of
/// section 13.2.2.
pub(super) fn met(
    if_match: Option<&[String]>,
    if_none_match: Option<&[String]>,
    tag: &str,
) -> Result<ConditionResult, ApiError> {
    // `If-Match` comes first: if it fails, `If-None-Match` is not evaluated.
    if let Some(lines) = if_match {
        let is_met = match listed(lines).ok_or_else(|| malformed("/ifMatch"))? {
            ListedTags::Any => true,
            // The strong comparison of section 8.8.3.2.
            ListedTags::Tags(tags) => tags.iter().any(|given| !given.is_weak && given.opaque == tag),
        };
        if !is_met {
            return Ok(ConditionResult::Failed);
        }
    }
    if let Some(lines) = if_none_match {
        let is_known = match listed(lines).ok_or_else(|| malformed("/ifNoneMatch"))? {
            ListedTags::Any => true,
            // The weak comparison ignores `W/` (section 8.8.3.2).
            ListedTags::Tags(tags) => tags.iter().any(|given| given.opaque == tag),
        };
        if is_known {
            return Ok(ConditionResult::NotModified);
        }
    }
    Ok(ConditionResult::All)
}

/// Returns true if a range may be served: there is no `If-Range`, or it is the part's tag. A date or a weak tag never
/// matches (section 13.1.5).
pub(super) fn allows_range(if_range: Option<&str>, tag: &str) -> bool {
    let strong =
        |text: &str| matches!(first_tag(text), Some((EntityTag { is_weak: false, opaque }, "")) if opaque == tag);
    if_range.is_none_or(|text| strong(text.trim()))
}

fn malformed(path: &str) -> ApiError {
    ApiError::invalid(
        path,
        "must be `*` or entity tags in double quotes, separated by commas (RFC 9110 section 13.1)",
    )
}

/// Parses the lines of a list; `None` if they break its grammar. Empty elements are skipped (section 5.6.1).
fn listed(lines: &[String]) -> Option<ListedTags<'_>> {
    if let [line] = lines
        && line.trim() == "*"
    {
        return Some(ListedTags::Any);
    }
    let mut tags = Vec::new();
    for line in lines {
        let mut rest = line.trim();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix(',') {
                rest = after.trim_start();
                continue;
            }
            let (tag, after) = first_tag(rest)?;
            let after = after.trim_start();
            if !(after.is_empty() || after.starts_with(',')) {
                return None;
            }
            tags.push(tag);
            rest = after;
        }
    }
    Some(ListedTags::Tags(tags))
}

/// The tag that a text begins with, and what follows it.
fn first_tag(text: &str) -> Option<(EntityTag<'_>, &str)> {
    let strong = text.strip_prefix("W/");
    let (opaque, after) = strong.unwrap_or(text).strip_prefix('"')?.split_once('"')?;
    // No quotes, spaces or control characters (`etagc` in section 8.8.3).
    let is_opaque = opaque.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    let tag = EntityTag {
        is_weak: strong.is_some(),
        opaque,
    };
    is_opaque.then_some((tag, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(lines: &[&str]) -> Vec<String> {
        lines.iter().copied().map(str::to_owned).collect()
    }

    #[test]
    fn a_list_may_be_in_several_lines_and_have_empty_elements_and_commas_in_tags() {
        let tag = |is_weak, opaque| EntityTag { is_weak, opaque };
        let given = lines(&[r#", "a" ,, W/"b,c""#, r#""""#, ""]);
        let expected = vec![tag(false, "a"), tag(true, "b,c"), tag(false, "")];
        assert_eq!(listed(&given), Some(ListedTags::Tags(expected)));
        for broken in ["a", r#""a"#, r#""a" "b""#, r#"w/"a""#, r#""a b""#, r#"*, "a""#, "**"] {
            assert_eq!(listed(&lines(&[broken])), None, "{broken}");
        }
        assert_eq!(listed(&lines(&["*", "*"])), None);
    }
}
