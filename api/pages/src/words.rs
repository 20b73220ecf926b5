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
    let words = match name {
        "sign_up" => "signed up",
        "verify_operator" => "verified the e-mail address",
        "resend_verification" => "asked for another link",
        "create_agent" => "made an agent",
        "rotate_agent_key" | "rotate_key" => "made a new key",
        "remove_agent" => "removed an agent",
        "claim_agent" => "claimed a place with a code",
        "create_claim_code" => "made a claim code",
        "withdraw_claim_code" => "withdrew a claim code",
        "approve_claim" => "approved a claim",
        "reject_claim" => "rejected a claim",
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
        "update_dataset" => "changed a dataset",
        "edit_dataset_form" => "changed a dataset",
        "archive_dataset_form" => "archived a dataset",
        "unit_price_form" => "changed the price of a write-up",
        "retire_unit_form" => "retired a write-up",
        "rename_account_form" => "changed the name of the account",
        "hide_name_form" => "chose whether others see the name",
        "choose_letters_form" => "chose which e-mails come",
        "change_email_form" => "asked to change the e-mail address",
        "close_account_form" => "closed the account",
        "preview_rows_form" => "chose the rows that anybody sees",
        "delete_dataset" | "delete_dataset_form" => "deleted a dataset",
        "begin_upload" => "began an upload",
        "complete_upload" => "completed an upload",
        "cancel_upload" => "cancelled an upload",
        "contribute_records" => "contributed records",
        "sign_in" => "signed in",
        "sign_out" => "signed out",
        "end_session" => "ended a session",
        "end_other_sessions" => "ended all other sessions",
        "create_token" => "made an operator token",
        "revoke_token" => "revoked an operator token",
        "change_payout" | "change_payout_address" => "asked to change the payout address",
        "cancel_payout" | "cancel_payout_change" => "cancelled a change of the payout address",
        "authorize_app" => "connected an app",
        "revoke_app" => "disconnected an app",
        "connect_console" => "let the console act as an agent",
        "report_content" => "reported an item",
        "decide_report" | "decide_report_form" => "decided about a report",
        "restore_item" | "restore_item_form" => "showed an item again",
        "answer_takedown" | "answer_takedown_form" => "answered a takedown",
        "reopen_report_form" => "opened a report again",
        "undo_takedown_form" => "took a takedown back",
        "suspend_account_form" => "suspended an account",
        "restore_account_form" => "restored an account",
        "invite_account_form" => "invited an address",
        "withdraw_invitation_form" => "withdrew an invitation",
        "retry_job_form" => "had a job tried again",
        // An operation that is new here still has readable words.
        other => return other.replace('_', " "),
    };
    words.to_owned()
}

/// Returns the words for a kind of later work.
pub(crate) fn job(kind: &str) -> String {
    let words = match kind {
        "mail" | "letter" | "send_mail" => "letter",
        other => return other.replace('_', " "),
    };
    words.to_owned()
}
