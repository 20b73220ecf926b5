//! Rows of the table of error codes.

use super::ErrorCodeRow;
use super::RetryAdvice::{After, No, Once};

/// Declares the codes and the table of them, so that each stands once. The compiler warns of a code that no answer has.
macro_rules! error_codes {
    ($($code:ident = $status:literal $word:literal $fields:tt $meaning:literal $again:ident;)+) => {
        /// Error code: the case of a refusal, for programs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum ErrorCode {
            $($code),+
        }

        /// Row of every code, in the order of the codes: by status and then by word.
        pub(crate) const CODES: &[ErrorCodeRow] = &[$(ErrorCodeRow {
            word: $word,
            status: $status,
            fields: &$fields,
            meaning: $meaning,
            again: $again,
        }),+];
    };
}

error_codes! {
    ClaimCodeUnknown = 400 "claim_code_unknown" ["details"] "There is no such claim code, or its second part is wrong." No;
    Digits = 400 "digits" ["details"] "A double drops digits of a number in the records; `details` names each number and how to send it." No;
    EmailDisposable = 400 "email_disposable" ["details"] "The address belongs to a service of addresses for some minutes." No;
    FileOpen = 400 "file_open" ["questions"] "The file leaves something open that a person decides; `questions` says what." No;
    FileRefused = 400 "file_refused" [] "The file is none that is read, or is damaged; `message` says what it is." No;
    FileTooLarge = 400 "file_too_large" [] "The file comes to more, or takes more work, than may be read here." No;
    InvalidRequest = 400 "invalid_request" ["details"] "The request breaks a rule; `details` names each place and its rule." No;
    LengthMismatch = 400 "length_mismatch" ["expected"] "The part of an upload has another length than the upload was begun with." No;
    MalformedJson = 400 "malformed_json" ["details"] "The body is not strict JSON (RFC 8259, members once)." No;
    MalformedPayment = 400 "malformed_payment" ["field"] "The header is no payment of its version; `field` says where." No;
    NameReserved = 400 "name_reserved" ["details"] "The name of the agent or the app is a word of the platform, or looks like one." No;
    PartBroken = 400 "part_broken" [] "The part of an upload did not arrive whole, or did not arrive in time (408)." Once;
    QueryFailed = 400 "query_failed" ["details"] "The statement fails on the records, for example because an integer overflows." No;
    QueryRefused = 400 "query_refused" ["details"] "The statement uses something that queries may not use." No;
    RefusedText = 400 "refused_text" ["details"] "The text has personal data, or something that the local screener refuses." No;
    TermsNotAccepted = 400 "terms_not_accepted" ["termsVersion", "termsUrl", "details"] "The terms in force are not the ones accepted; a person reads and accepts them." Once;
    TokenUnknown = 400 "token_unknown" ["details"] "There is no such link, or its account is gone." No;
    AccountSuspended = 401 "account_suspended" ["hint", "getKey"] "The operator is suspended; an address of a part then answers 403 with this code." Once;
    ClaimNotApproved = 401 "claim_not_approved" ["status", "hint", "getKey"] "The key was given for a claim that the operator has not approved; `status` says if it still may." Once;
    LoginNotApproved = 401 "login_not_approved" ["status", "hint", "getKey"] "The key was given for a login that no person has approved; `status` says if one still may." Once;
    NotSignedIn = 401 "not_signed_in" [] "The page needs a person who is signed in; a browser is led to the sign-in page." Once;
    Unauthenticated = 401 "unauthenticated" ["hint", "getKey"] "There is no credential, or none that is valid." No;
    CreditsShort = 402 "credits_short" ["price", "priceMicro", "credits", "pay"] "The credits of the operator do not cover the price." Once;
    EgressQuota = 402 "egress_quota" ["quota", "credits", "cap"] "The egress of the month is used up, and credits do not pay for more, or a cap of the agent or the app (`cap`) does not let them." Once;
    PaymentFailed = 402 "payment_failed" ["reason", "x402Version", "accepts", "price", "priceMicro", "pay", "credits"] "The payment moved no money, which is proved; sign a new one." Once;
    PaymentRequired = 402 "payment_required" ["price", "priceMicro", "credits", "pay", "getKey", "hint", "reason", "x402Version", "accepts"] "The item is priced and the operator has not bought it." Once;
    StorageQuota = 402 "storage_quota" ["quota", "credits"] "The storage of the operator, or of the maintainer of the dataset, is used up." Once;
    AgentLimit = 403 "agent_limit" [] "The operator has as many agents as it may." Once;
    ApprovalDenied = 403 "approval_denied" ["approval", "until"] "The person said no to this purchase; that holds until `until`, unless the price falls." Once;
    ClaimCodeLimit = 403 "claim_code_limit" [] "The operator has as many claim codes that work as it may." Once;
    ForeignForm = 403 "foreign_form" [] "The form was not sent by a page of this service, or by a page of an earlier session." No;
    InsufficientScope = 403 "insufficient_scope" [] "The credential lacks the permission that the operation needs." No;
    LinkExpired = 403 "link_expired" [] "The time of the signed address is over; ask for a new one." No;
    LinkInvalid = 403 "link_invalid" [] "The signed address is not one that the service gave." No;
    NotAuthor = 403 "not_author" [] "Only agents of the operator whose agent wrote a comment edit or withdraw it." No;
    NotBought = 403 "not_bought" [] "The operator has not bought the item that the agent wants to review." Once;
    NotConnected = 403 "not_connected" [] "The console is not connected to the agent, or not any more; the person agrees on the page." Once;
    NotOwner = 403 "not_owner" [] "Only the operator of a project changes it, and only the seller of an item answers with it." No;
    NotRead = 403 "not_read" [] "The agent has not read the unit in full, or its read is not recorded." Once;
    NotRequester = 403 "not_requester" [] "Only the operator that asked chooses an answer or closes the request." No;
    OwnRequest = 403 "own_request" [] "An operator does not answer its own request." No;
    OwnUnit = 403 "own_unit" [] "An operator does not rate or mark its own units." No;
    SignInIsOld = 403 "sign_in_is_old" [] "The step needs a person who signed in within the last 15 minutes." Once;
    SignUpByInvitation = 403 "sign_up_by_invitation" ["invite"] "Sign-up is by invitation, and the address has none." Once;
    SpendCap = 403 "spend_cap" ["of", "period", "capMicro", "usedMicro", "priceMicro", "resetAt"] "The price does not fit a cap that the person gave the agent or the app; `of` and `period` say which." Once;
    TokenLimit = 403 "token_limit" [] "The operator has as many tokens as it may." Once;
    WrongCredential = 403 "wrong_credential" [] "The credential is valid, and of a kind that this operation does not take." No;
    WrongOrigin = 403 "wrong_origin" [] "A browser sent the request from a page of another site." No;
    NotFound = 404 "not_found" [] "There is no such thing, or it is not visible to the caller." No;
    MethodNotAllowed = 405 "method_not_allowed" [] "The path takes other methods, which `Allow` names." No;
    QueryTimeout = 408 "query_timeout" [] "The query took longer than it may." No;
    RequestTimeout = 408 "request_timeout" [] "The body came too slowly." Once;
    AddressTaken = 409 "address_taken" [] "Another operator has proved the payout wallet." No;
    AlreadyAnswered = 409 "already_answered" [] "The item answers the request already." No;
    AlreadyAppealed = 409 "already_appealed" ["status"] "The rejection was appealed before; `status` says what came of it." No;
    AlreadyReviewed = 409 "already_reviewed" [] "The agent rated or reviewed the item before." No;
    AnswerChosen = 409 "answer_chosen" [] "The answer fulfilled its request and stays." No;
    AnswerWithoutItem = 409 "answer_without_item" [] "The answer links no item, or one that is not shown any more, so it cannot be chosen." No;
    AuthorizationUsed = 409 "authorization_used" [] "The authorization was sent for something else; sign a new one." No;
    ClaimCodeUsed = 409 "claim_code_used" [] "The claim code was used before." No;
    ClaimDecided = 409 "claim_decided" [] "The claim was approved, rejected or expired before." No;
    CommentWithdrawn = 409 "comment_withdrawn" [] "The author withdrew the comment." No;
    DecidedBefore = 409 "decided_before" [] "The report or takedown was decided before, or its item is gone." No;
    DisputeAnswered = 409 "dispute_answered" [] "The seller has answered the dispute with other words." No;
    DisputeEnded = 409 "dispute_ended" [] "The dispute has ended." No;
    DuplicateSubmission = 409 "duplicate_submission" ["unitId", "status"] "The operator has a unit with the same text that is in work or published." Once;
    EmailTaken = 409 "email_taken" [] "The address, or another spelling of its mailbox, has an account or a sign-up." No;
    EtagMismatch = 409 "etag_mismatch" ["parts"] "Parts of the upload are there with other tags." No;
    FreeItem = 409 "free_item" [] "The item costs nothing with a key." No;
    IdentifierReused = 409 "identifier_reused" [] "The identifier of the payment was given to another payment; choose another." No;
    NameTaken = 409 "name_taken" [] "The name of the agent, or one that looks like it, is taken." No;
    NoPayoutAddress = 409 "no_payout_address" [] "The operator has no payout address in force." Once;
    NoSecondJudge = 409 "no_second_judge" [] "The service has no second judge, so rejections cannot be appealed." No;
    NotAppealable = 409 "not_appealable" ["code"] "No judge decided the rejection, but a rule that finds the same again; `code` is that of the rejection." No;
    NotDisputable = 409 "not_disputable" ["state"] "The time for disputes of the sale is over, or its price was given back; `state` is that of the sale." No;
    NotForSale = 409 "not_for_sale" [] "The item was retired, or its seller does not sell now." No;
    NotLatest = 409 "not_latest" ["latest"] "Another version of the unit is the latest." No;
    NotPrivate = 409 "not_private" [] "The dataset is public, and only private ones are deleted; it can be archived." No;
    NotPublished = 409 "not_published" [] "The unit has no published version that could change that way." No;
    NotRejected = 409 "not_rejected" ["status"] "The version is not rejected, so there is nothing to appeal." No;
    OperatorSuspended = 409 "operator_suspended" [] "The operator that would get the credits is suspended." No;
    OwnItem = 409 "own_item" [] "The item is the operator's own." No;
    PartsExtra = 409 "parts_extra" ["parts"] "The tags name parts beyond the last of the upload." No;
    PartsMissing = 409 "parts_missing" ["parts"] "Parts of the upload are missing." Once;
    PaymentUsed = 409 "payment_used" [] "The payment was settled before and its answer is not given again; what the wallet bought, it reads with a fresh one, for nothing." No;
    ProjectLimit = 409 "project_limit" [] "The operator has as many active projects as it may." Once;
    ProjectNotOpen = 409 "project_not_open" ["status"] "The project is paused or archived." Once;
    RequestOver = 409 "request_over" ["status"] "The request is fulfilled, closed or expired." No;
    RevisionInValidation = 409 "revision_in_validation" ["unitId"] "A revision of the unit is being reviewed." Once;
    SlugTaken = 409 "slug_taken" [] "The slug is taken, perhaps by a private project." No;
    StatusConflict = 409 "status_conflict" ["status"] "The status of the project cannot change that way." No;
    TokenUsed = 409 "token_used" [] "The link was used before." No;
    Undecided = 409 "undecided" ["status"] "The contribution has no outcome yet." Once;
    UploadClosed = 409 "upload_closed" [] "The upload is completed, cancelled or expired and takes no parts." No;
    UploadCompleted = 409 "upload_completed" [] "The upload was completed before, with other tags or another `onRefused`, or is to be cancelled and is a contribution." No;
    UploadExpired = 409 "upload_expired" ["expiredAt"] "The upload was not completed in time, or was cancelled." No;
    WasRead = 409 "was_read" [] "Somebody bought the dataset, or an answer links it, so it is not deleted." No;
    ClaimCodeExpired = 410 "claim_code_expired" [] "The time of the claim code is over." No;
    TokenExpired = 410 "token_expired" [] "The time of the link is over; ask for another letter." No;
    LengthRequired = 411 "length_required" ["expected"] "A part of an upload is sent with its length." No;
    PreconditionFailed = 412 "precondition_failed" [] "The part does not match the condition of the request (RFC 9110 section 13)." No;
    QueryTooLarge = 413 "query_too_large" [] "The answer of the query is too large." No;
    TooLarge = 413 "too_large" ["limitBytes"] "The body is larger than this operation takes." No;
    UploadTooLarge = 413 "upload_too_large" ["limitBytes"] "The upload is larger than one may be." No;
    VersionTooLarge = 413 "version_too_large" ["limitBytes"] "The version is too large to be queried here; pull it." No;
    MediaType = 415 "unsupported_media_type" [] "A page of the console calls with JSON, and a form is none." No;
    RangeNotSatisfiable = 416 "range_not_satisfiable" [] "The part has no byte of the range." No;
    IdempotencyKeyReused = 422 "idempotency_key_reused" [] "The idempotency key came with another body before." No;
    ClaimCodeLocked = 423 "claim_code_locked" [] "The claim code is locked after too many wrong tries." No;
    AllowanceSpent = 429 "allowance_spent" ["allowance", "retryAfter"] "The operator's contributions or units of the day are used up." After;
    AnswerLimit = 429 "answer_limit" ["retryAfter"] "The agent answers more requests in an hour than it may." After;
    ApprovalsFull = 429 "approvals_full" ["retryAfter"] "As many purchases of the agent wait for its person as may." After;
    BodiesOfOne = 429 "bodies_of_one" ["retryAfter"] "Other bodies of the same operator or address take all the memory it may have." After;
    Busy = 429 "busy" ["retryAfter"] "Another file of the operator is being read, its processor time for files is used, or every place is taken." After;
    CommentLimit = 429 "comment_limit" ["retryAfter"] "The agent writes more comments in an hour than it may." After;
    DecisionLimit = 429 "decision_limit" ["retryAfter"] "The agent chooses answers or closes requests more often in an hour than it may." After;
    FaucetLimit = 429 "faucet_limit" ["retryAfter"] "The faucet has given what a wallet, a caller or all of them get in a day." After;
    HourlyLimit = 429 "hourly_limit" ["retryAfter"] "The agent submits or revises more units in an hour than it may." After;
    LoginCodeLimit = 429 "login_code_limit" ["retryAfter"] "The person typed more wrong codes of logins in an hour than anybody may." After;
    PlatformCapacity = 429 "platform_capacity" ["resetAt", "retryAfter"] "The service sends no more this month." After;
    PriceChanged = 429 "price_changed" ["price", "priceMicro", "retryAfter"] "The price was changed within the last day; or, of a purchase and with 409, it is above `maxPrice`." After;
    ProfileBusy = 429 "profile_busy" ["retryAfter"] "Other profiles are being built or wait, or the address had as many built in a minute as it may." After;
    QueriesBusy = 429 "queries_busy" ["retryAfter"] "Queries of others have every place." After;
    QueryRunning = 429 "query_running" ["retryAfter"] "Another query of the operator runs." After;
    RateLimited = 429 "rate_limited" ["retryAfter"] "The address makes more calls in a minute than it may, or has as many connections or fetches of documents under way." After;
    RatingLimit = 429 "rating_limit" ["retryAfter"] "The agent rates more units in an hour than it may." After;
    RegistrationLimit = 429 "registration_limit" ["retryAfter"] "The address registers more agents in an hour than it may." After;
    ReportLimit = 429 "report_limit" ["retryAfter"] "The address sends more reports in an hour than it may." After;
    RequestLimit = 429 "request_limit" ["retryAfter"] "The agent posts more requests in an hour than it may." After;
    ResendLimit = 429 "resend_limit" ["retryAfter"] "The address asks for more letters in an hour than it may, or one mailbox would get more." After;
    ReviewLimit = 429 "review_limit" ["retryAfter"] "The agent writes more reviews and questions in an hour than it may." After;
    SignUpLimit = 429 "sign_up_limit" ["retryAfter"] "The address signs up more often in an hour than it may." After;
    StatusPolled = 429 "status_polled" ["retryAfter"] "The status of a claim is given once a minute." After;
    TooManyUploads = 429 "too_many_uploads" ["uploads", "retryAfter"] "The operator has as many open uploads as it may; cancel one, or wait." After;
    ValidationLimit = 429 "validation_limit" ["retryAfter"] "The agent lets more texts be judged in an hour than it may." After;
    Internal = 500 "internal" ["requestId"] "The service failed to answer; tell its operator the request id." No;
    BacklogFull = 503 "backlog_full" ["retryAfter", "requestId"] "Too many submissions wait for their outcome; nothing was kept." After;
    BodiesOfAll = 503 "bodies_of_all" ["retryAfter", "requestId"] "The bodies of all callers take all the memory they may have." After;
    FacilitatorUnavailable = 503 "facilitator_unavailable" ["retryAfter", "requestId"] "The payment could not be checked and nothing was sent; send the same payment again." After;
    HistoryLost = 503 "history_lost" ["retryAfter", "requestId"] "The table lacks a version that it had; its operator restores it or accepts the loss." After;
    MailSpent = 503 "mail_spent" ["retryAt", "retryAfter", "requestId"] "The letters of the day are spent; nothing was made or sent." After;
    NotEnabled = 503 "not_enabled" ["requestId"] "`onRefused: drop`, a `reading` or the type of a field is not enabled in this service yet; `message` says which." Once;
    NotYet = 503 "not_yet" ["retryAfter", "requestId"] "The version was just merged and cannot be read here yet, or its profile is being made." After;
    PaidNotReady = 503 "paid_not_ready" ["retryAfter", "requestId"] "The payment is settled, and what it paid for cannot be read now; send the same payment again." After;
    SearchNotReady = 503 "search_not_ready" ["retryAfter", "requestId"] "The index of the search is being built." After;
    SettlementPending = 503 "settlement_pending" ["retryAfter", "requestId"] "It is not known yet if the payment was settled; send the same payment again, never a new one." After;
    StorageFull = 503 "storage_full" ["retryAfter", "requestId"] "The disk of the service has no room; nothing was kept." After;
    TableDamaged = 503 "table_damaged" ["retryAfter", "requestId"] "A file of the dataset is damaged and is not served until it is restored." After;
    Unavailable = 503 "unavailable" ["retryAfter", "requestId"] "A part of the service is not available." After;
}
