//! Words of the pages for the words of the interface.

/// Class of a state: the drawing of a gate and its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateMark {
    /// Done: the gate is open.
    Ok,
    /// In progress: the gate is open, in blue.
    Live,
    /// Waits: the gate is half closed.
    Hold,
    /// Failed or refused: the gate is closed.
    Bad,
    /// Gone.
    Off,
}

impl StateMark {
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Live => "live",
            Self::Hold => "hold",
            Self::Bad => "bad",
            Self::Off => "off",
        }
    }
}

/// Returns a text of somebody else in isolation, so that its direction does not change the sentence around it.
pub fn isolate(text: &str) -> String {
    // A text may close an isolation that it did not open.
    let inner = text.replace(['\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}'], "");
    format!("\u{2068}{inner}\u{2069}")
}

/// Returns the words for an operation, or its name with spaces.
pub(crate) fn operation(name: &str) -> String {
    // The agent acted, and the person had it do so.
    if let Some(acted) = name.strip_prefix("console/") {
        return format!("{}, for you in the console", operation(acted));
    }
    // A form does the same as the operation for programs.
    let words = match name.trim_end_matches("_form") {
        "sign_up" => "signed up",
        "verify_operator" => "verified the e-mail address",
        "resend_verification" => "asked for another link",
        "create_agent" => "made an agent",
        "rotate_agent_key" | "rotate_key" => "made a new key",
        "remove_agent" => "removed an agent",
        "claim_agent" => "asked to join with a one-time code",
        "create_claim_code" => "made a one-time code",
        "withdraw_claim_code" => "withdrew a one-time code",
        "approve_claim" => "let an agent join",
        "reject_claim" => "refused an agent",
        "begin_login" => "asked for a key for a device",
        "ask_to_buy" => "asked to buy",
        "approve_purchase" => "bought",
        "deny_purchase" => "said no to a purchase",
        "read_unit" => "read a write-up",
        "mark_knowledge" => "said if a write-up is still true",
        "rate_knowledge" => "rated a write-up",
        "appeal_rejection" => "appealed against a rejection",
        "agent_limits" => "set what an agent may spend",
        "app_limits" => "set what an app may spend",
        "open_dispute" => "opened a dispute",
        "answer_dispute" => "answered a dispute",
        "refund_dispute" => "gave a price back",
        "decide_dispute" => "decided a dispute",
        "find_login" => "typed the code of a device",
        "approve_login" => "approved the login of a device",
        "reject_login" => "rejected the login of a device",
        "end_key" => "ended a key",
        "create_dataset" => "made a dataset",
        "update_dataset" | "edit_dataset" => "changed a dataset",
        "archive_dataset" => "archived a dataset",
        "unit_price" | "set_knowledge_price" => "changed the price of a write-up",
        "retire_unit" | "retire_knowledge" => "retired a write-up",
        "rename_account" => "changed the name of the account",
        "hide_name" => "chose whether others see the name",
        "choose_letters" => "chose which e-mails come",
        "change_email" => "asked to change the e-mail address",
        "close_account" => "closed the account",
        "preview_rows" => "chose the rows that anybody sees",
        "delete_dataset" => "deleted a dataset",
        "begin_upload" => "began an upload",
        "complete_upload" => "completed an upload",
        "cancel_upload" => "cancelled an upload",
        "submit_knowledge" => "sent a write-up",
        "revise_knowledge" => "revised a write-up",
        "buy_knowledge_with_credits" => "bought a write-up",
        "buy_dataset" => "bought a dataset",
        "comment_on_knowledge" => "commented on a write-up",
        "comment_on_dataset" => "commented on a dataset",
        "edit_comment" => "changed a comment",
        "withdraw_comment" => "withdrew a comment",
        "review_item" => "reviewed an item",
        "post_request" => "posted a request",
        "answer_request" => "answered a request",
        "choose_answer" => "chose an answer",
        "close_request" => "closed a request",
        "prove_payout_address" => "proved the payout address",
        "contribute_records" => "contributed records",
        "sign_in" => "signed in",
        "sign_out" => "signed out",
        "end_session" => "ended a session",
        "end_other_sessions" => "ended all other sessions",
        "create_token" => "made an account token",
        "revoke_token" => "revoked an account token",
        "change_payout" | "change_payout_address" => "asked to change the payout address",
        "cancel_payout" | "cancel_payout_change" => "cancelled a change of the payout address",
        "authorize_app" => "connected an app",
        "revoke_app" => "disconnected an app",
        "connect_console" => "let the console act as an agent",
        "report_content" => "reported an item",
        "decide_report" => "decided about a report",
        "restore_item" => "showed an item again",
        "answer_takedown" => "answered a takedown",
        "reopen_report" => "opened a report again",
        "undo_takedown" => "took a takedown back",
        "suspend_account" => "suspended an account",
        "restore_account" => "restored an account",
        "invite_account" => "invited an address",
        "withdraw_invitation" => "withdrew an invitation",
        "retry_job" => "had a job tried again",
        // An operation that is new here still has readable words.
        other => return other.replace('_', " "),
    };
    words.to_owned()
}

/// Returns the plain word for a check, which the API calls by another name.
pub(crate) fn check(gate: &str) -> String {
    match gate {
        "decode" => "reading".to_owned(),
        "contract" => "schema".to_owned(),
        "dedup" => "duplicates".to_owned(),
        "screen" => "screening".to_owned(),
        other => other.replace(['-', '_'], " "),
    }
}

/// Returns the words for a kind of later work.
pub(crate) fn job(kind: &str) -> String {
    let words = match kind {
        "mail" | "letter" | "send_mail" => "letter",
        other => return other.replace('_', " "),
    };
    words.to_owned()
}
