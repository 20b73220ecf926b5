//! E-mail addresses of people.
//!
//! Invariant: only a letter that arrives proves an address; the rules here keep out what cannot be one.

use crate::error::ApiError;

/// The most characters of an address (RFC 5321 section 4.5.3.1.3, without the angle brackets).
pub(crate) const MAX_CHARACTERS: usize = 254;

/// Checks the form of an address. `path` is the place of the input that has it.
///
/// # Errors
/// 400 for a text that mail cannot be sent to.
pub(crate) fn check(path: &str, email: &str) -> Result<(), ApiError> {
    required(path, is_plain(email) && mail::is_address(email))
}

/// Checks the form of an address that an account may have. The rules for new ones are stricter, and an account from before
/// keeps signing in.
///
/// # Errors
/// 400 for a text that is no address.
pub(crate) fn check_known(path: &str, email: &str) -> Result<(), ApiError> {
    required(path, is_plain(email) && mail::is_like_address(email))
}

fn required(path: &str, is_address: bool) -> Result<(), ApiError> {
    if is_address {
        Ok(())
    } else {
        Err(ApiError::invalid(path, "must be an e-mail address"))
    }
}

fn is_plain(email: &str) -> bool {
    let has_dot = domain(email).is_some_and(|domain| domain.contains('.'));
    email.is_ascii() && has_dot && email.len() <= MAX_CHARACTERS
}

/// Returns true if the address belongs to a service that gives addresses to anybody for some minutes.
///
/// Only the domain is looked at: the list has its own idea of the other half.
pub(crate) fn is_disposable(email: &str) -> bool {
    // The list has domains, and the library takes addresses, so any name before the sign will do.
    domain(email).is_some_and(|domain| !mailchecker::is_valid(&format!("a@{}", domain.to_ascii_lowercase())))
}

fn domain(email: &str) -> Option<&str> {
    email.rsplit_once('@').map(|(_, domain)| domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_what_mail_can_be_sent_to() {
        for email in ["ada@example.org", "ada+tides@mail.example.org", "o'hara@example.org"] {
            check("/email", email).unwrap();
            assert!(!is_disposable(email), "{email}");
        }
        let long = format!("{}@example.org", "a".repeat(243));
        for email in [
            "",
            "ada",
            "@example.org",
            "ada@",
            "ada@localhost",
            "ada@example.org\r\nBcc: eve@example.net",
            "ada@example.org, eve@example.net",
            "Ada <ada@example.org>",
            "ada lovelace@example.org",
            "ada@exämple.org",
            "ada@192.0.2.1",
            "ada@[192.0.2.1]",
            "\"ada lovelace\"@example.org",
            "ada@a_b.example.org",
            long.as_str(),
        ] {
            let error = check("/email", email).unwrap_err();
            assert_eq!(error.status().as_u16(), 400, "{email}");
        }
    }

    #[test]
    fn an_account_from_before_keeps_its_address() {
        for email in ["\"ada lovelace\"@example.org", "ada@192.0.2.1", "ada@example.org"] {
            check_known("/email", email).unwrap();
        }
        check_known("/email", "ada").unwrap_err();
    }

    #[test]
    fn addresses_for_some_minutes_are_told_apart_by_their_domain() {
        for email in [
            "a@mailinator.com",
            "a@MAILINATOR.com",
            "a@sub.mailinator.com",
            "o'hara@guerrillamail.com",
        ] {
            assert!(is_disposable(email), "{email}");
        }
    }
}
