//! Page of a call that failed.

use askama::Template;

use crate::chrome::{PageLayout, Theme};
use crate::time::Instant;

/// Answer to a person whose call failed: the reason, the next step, and the same answer as JSON.
#[derive(Debug, Template)]
#[template(path = "error.html")]
pub struct ErrorPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Status of the answer.
    pub status: u16,
    /// Title; the one of the status if it is empty.
    pub title: String,
    /// Reason, as in the JSON.
    pub message: String,
    /// Next step; the one of the status if it is empty.
    pub what_next: String,
    /// Time from which the call can succeed, where known.
    pub retry_at: Option<Instant>,
    /// Id of the request.
    pub request_id: String,
    /// Answer as JSON.
    // The same answer as a program gets, so that a person can hand it to one who writes programs.
    pub json: String,
}

impl ErrorPage {
    fn shown_title(&self) -> &str {
        if !self.title.is_empty() {
            return &self.title;
        }
        match self.status {
            400 => "This cannot be done as asked",
            401 => "Sign in first",
            402 => "It is not paid for",
            403 => "Not allowed",
            404 => "Nothing here, or not for you",
            405 => "This page only takes a form",
            409 => "It is not in a state for that",
            410 => "Too late for that",
            423 => "Locked",
            429 => "Too many calls",
            503 => "A part of the service is down",
            _ => "The service made a mistake",
        }
    }

    /// Returns the reason as a sentence.
    fn shown_message(&self) -> String {
        let mut signs = self.message.chars();
        let Some(first) = signs.next() else {
            return String::new();
        };
        let end = if self.message.ends_with(['.', '?', '!']) {
            ""
        } else {
            "."
        };
        format!("{}{}{end}", first.to_uppercase(), signs.as_str())
    }

    fn shown_next(&self) -> &str {
        if !self.what_next.is_empty() {
            return &self.what_next;
        }
        match self.status {
            400 => "Go back, change what the message names, and send it again. Nothing was changed.",
            401 => "Your session may have ended. A link by mail signs you in; no password is needed.",
            402 => "Nothing was charged. The answer below says what it costs and where to pay.",
            403 => "The page may belong to somebody else, or the form is older than your session. Open it again.",
            // The texts of a status must hold for every cause that has it, since the page does not know
            // which it was.
            404 => "No item has this address, or it is private to another operator. The two look the same on purpose.",
            405 => "Its form is on another page. Nothing was done; go back, and use the form there.",
            409 => "Somebody may have been faster. Open the page again to see how it stands.",
            410 => "Ask for a new one; the old one stays closed.",
            423 => "Too many wrong tries closed it. Make a new one.",
            429 => "Wait, then send it again. This page does not reload by itself.",
            503 => "Reads may fail for some minutes. Batches that were acknowledged are safe and will be decided.",
            _ => "Nothing that was acknowledged is lost. If it happens again, report the id of the request below.",
        }
    }

    /// Returns words for a search, from the address that led nowhere.
    fn guess(&self) -> String {
        let place = self.chrome.place();
        let name = place.rsplit('/').find(|part| !part.is_empty()).unwrap_or_default();
        // The name of an item is words between hyphens. An id, or what a browser had to escape, is no word that anybody
        // searches for.
        let is_name = name.len() <= 60 && name.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '-');
        let is_id = name.len() == 36 && name.chars().all(|sign| sign.is_ascii_hexdigit() || sign == '-');
        if is_name && !is_id {
            name.replace('-', " ").trim().to_owned()
        } else {
            String::new()
        }
    }
}
