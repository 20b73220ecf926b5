//! Page of the account: sessions and tokens.

use pages::console::{AccountView, SessionRow, SettingsPage, TokenRow};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{LinkPurpose, NewToken, TokenAdded};
use types::{SessionId, TokenId};

use super::{account, entry};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::LINE;
use crate::call::spec::{Effect, Spec};
use crate::call::view::PageResponse;
use crate::call::visit::local_path;
use crate::call::wire::NoInput;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::ops::accounts::operators::RESENDS;
use crate::ops::page_kit::{form, id, instant, missing, page, page_layout};
use crate::rules::accounts;
use crate::secrets::{Secret, SecretKind};

const PATH: &str = "/console/settings";
/// Tokens of an operator.
const MAX_TOKENS: u32 = 20;

pub(super) fn add(table: &mut Operations) {
    table.add(page("settings_page", PATH, "Settings"), &[], show);
    table.add(
        form("end_session_form", "/console/sessions/{id}/end", "End a session"),
        &[],
        end_session,
    );
    table.add(
        form(
            "end_other_sessions_form",
            "/console/sessions/end-others",
            "End all other sessions",
        ),
        &[],
        end_others,
    );
    table.add(
        form("create_token_form", "/console/tokens", "Make an operator token"),
        &[],
        make_token,
    );
    let revoke = Spec {
        effect: Effect::Destroy,
        ..form(
            "revoke_token_form",
            "/console/tokens/{id}/revoke",
            "Revoke an operator token",
        )
    };
    table.add(revoke, &[], revoke_token);
    let again = Spec {
        limits: &[RESENDS],
        ..form("sign_in_again_form", "/signin/again", "Ask for another link to sign in")
    };
    table.add(again, &[], sign_in_again);
}

/// Change that was just made, as the address of the page names it.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum DoneWord {
    Name,
    Profile,
    Letters,
    Email,
}

impl DoneWord {
    const fn word(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Profile => "profile",
            Self::Letters => "letters",
            Self::Email => "email",
        }
    }

    const fn notice(self) -> &'static str {
        match self {
            Self::Name => "The name is saved.",
            Self::Profile => "It is saved; public pages follow within a minute.",
            Self::Letters => "The choice is saved. It counts for e-mails that are not sent yet, too.",
            Self::Email => {
                "A link is on its way to the new address, if nobody else has it, and a notice to the old one. Nothing \
                 changes before the button of the link is pressed."
            }
        }
    }
}

/// Returns the redirect to the settings after a change.
pub(super) fn done(word: DoneWord) -> Result<PageResponse, ApiError> {
    PageResponse::see(&format!("{PATH}?done={}", word.word()))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SettingsQuery {
    /// Change that was just made.
    done: Option<DoneWord>,
}

async fn show(cx: Cx, input: SettingsQuery) -> Result<PageResponse, ApiError> {
    let mut page = settings(&cx).await?;
    page.notice = input.done.map(|word| word.notice().to_owned());
    PageResponse::page(&page)
}

/// Returns the page of settings as it is now.
pub(super) async fn settings(cx: &Cx) -> Result<SettingsPage, ApiError> {
    let (operator, now) = (cx.the_operator()?, cx.now);
    let store = &cx.app.store;
    let accounts = store.accounts();
    let (account, sessions, tokens, payout) = tokio::try_join!(
        store.operator(operator),
        accounts.sessions_of(operator, now),
        accounts.tokens_of(operator),
        accounts.payout(operator, now)
    )?;
    let account = account.ok_or_else(|| missing("account"))?;
    let current = cx.session().map(|(_, session)| session);
    let mut sessions: Vec<_> = sessions
        .into_iter()
        .map(|session| SessionRow {
            current: Some(session.id) == current,
            id: session.id.to_string(),
            created_at: instant(session.created_at),
            seen_at: instant(session.seen_at),
            expires_at: instant(session.expires_at),
            address: session.address,
            program: session.user_agent,
        })
        .collect();
    // The sort is stable: the others stay newest first.
    sessions.sort_by_key(|session| !session.current);
    Ok(SettingsPage {
        chrome: page_layout(cx).await?,
        forms: account::forms(cx, &account).await?,
        account: AccountView {
            id: operator.to_string(),
            email: account.email,
            display_name: account.display_name,
            terms_version: account.terms_version,
            created_at: instant(account.created_at),
            verified_at: account.verified_at.map(instant),
            adult_stated_at: account.adult_stated_at.map(instant),
        },
        sessions,
        tokens: tokens
            .into_iter()
            .rev()
            .map(|token| TokenRow {
                id: token.id.to_string(),
                label: token.label,
                created_at: instant(token.created_at),
            })
            .collect(),
        token_label: String::new(),
        payout: payout.address,
        errors: Vec::new(),
        notice: None,
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SessionPath {
    /// Id of the thing.
    id: String,
}

async fn end_session(cx: Cx, input: SessionPath) -> Result<PageResponse, ApiError> {
    let session: SessionId = id(&input.id, "session")?;
    if !cx.app.store.accounts().session_end(cx.the_operator()?, session).await? {
        return Err(missing("session"));
    }
    // Ending the session of this browser signs it out.
    if cx.session().is_some_and(|(_, current)| current == session) {
        return PageResponse::see("/signin")?.signed_out();
    }
    PageResponse::see(PATH)
}

async fn end_others(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let current = cx.session().map(|(_, session)| session);
    cx.app
        .store
        .accounts()
        .sessions_end(cx.the_operator()?, current)
        .await?;
    PageResponse::see(PATH)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LabelForm {
    /// Name by which the person knows the token.
    #[schemars(length(max = 80), regex(pattern = LINE))]
    label: Option<String>,
}

async fn make_token(cx: Cx, input: LabelForm) -> Result<PageResponse, ApiError> {
    let secret = Secret::generate(SecretKind::OperatorToken).map_err(ApiError::unavailable)?;
    let new = NewToken {
        operator: cx.the_operator()?,
        token_hash: secret.hash(),
        label: input.label.unwrap_or_default(),
        now: cx.now,
    };
    match cx.app.store.accounts().token_add(new, MAX_TOKENS).await? {
        TokenAdded::Added(_) => {}
        TokenAdded::LimitReached => {
            let message = format!("the account has {MAX_TOKENS} tokens, which is the limit; revoke one");
            return Err(ApiError::new(ErrorCode::TokenLimit, message));
        }
    }
    let page = pages::SecretPage::operator_token(page_layout(&cx).await?, "A new operator token", secret.reveal());
    PageResponse::page(&page)
}

async fn revoke_token(cx: Cx, input: SessionPath) -> Result<PageResponse, ApiError> {
    let token: TokenId = id(&input.id, "token")?;
    if cx.app.store.accounts().token_revoke(cx.the_operator()?, token).await? {
        PageResponse::see(PATH)
    } else {
        Err(missing("token"))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SignInAgainForm {
    /// Page that the link leads to; the settings where not given.
    #[schemars(length(max = 3_500), regex(pattern = LINE))]
    next: Option<String>,
}

async fn sign_in_again(cx: Cx, input: SignInAgainForm) -> Result<PageResponse, ApiError> {
    let next = local_path(input.next.as_deref().unwrap_or(PATH)).to_owned();
    let account = cx.app.store.operator(cx.the_operator()?).await?;
    let account = account.ok_or_else(|| missing("account"))?;
    // To the address of the account and none of the form, so a stranger at an open browser gets no
    // link.
    accounts::request_link(&cx.app, &account.email, LinkPurpose::SignIn, cx.now).await?;
    entry::check_mail(&cx, pages::MailKind::SignIn, account.email, Some(next.clone()))
        .await?
        .going_to(&next)
}
