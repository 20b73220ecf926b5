//! Names of hosts, in addresses of the web and of mail.

/// Longest name and longest label (RFC 1035 section 2.3.4, without the root).
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// Returns true if a text is a plain host name: labels of ASCII letters, digits and hyphens that neither begin nor end with
/// a hyphen (RFC 1123 section 2.1), without a dot at the end. Names in other scripts have a form of this kind (`xn--`).
///
/// A parser of URLs takes more, such as `a;b.example`: characters with a meaning in a policy, a page or a terminal.
pub fn is_host_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_plain = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        is_plain && (1..=MAX_LABEL).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
    };
    text.len() <= MAX_NAME && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_letters_digits_hyphens_and_dots() {
        for name in [
            "app.example",
            "a-b.c3.example",
            "localhost",
            "xn--bcher-kva.example",
            "3com.example",
        ] {
            assert!(is_host_name(name), "{name}");
        }
        let long = "a".repeat(64);
        let many = "a.".repeat(127);
        for name in [
            "",
            ".",
            "app.example.",
            ".example",
            "a..example",
            "-a.example",
            "a-.example",
            "a_b.example",
            "a;b.example",
            "a'b.example",
            "a,b.example",
            "a*b.example",
            "*.example",
            "a b.example",
            "a\"b.example",
            "b\u{fc}cher.example",
            "[::1]",
            "a(b).example",
            "a&b.example",
            "a=b.example",
            "a+b.example",
            "a!b.example",
            "a$b.example",
            long.as_str(),
            many.as_str(),
        ] {
            assert!(!is_host_name(name), "{name}");
        }
    }
}
