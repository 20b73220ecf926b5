//! Limits on what is spent and the rest of them, as pages show them, and as a person types them.
//!
//! Invariant: an amount is taken as it is typed, to the cent, and an empty text is no limit.

use pages::{BuyingAgent, CreditBalance, SpendLine};
use store::{SpendOwner, Spending};
use types::OperatorId;
use types::money::MicroUsdc;

use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::price::{MOST_PRICE, broken_rule};

/// Returns limits and what was spent, as pages show them.
pub(super) const fn line(spending: Spending) -> SpendLine {
    let Spending {
        limits,
        on_day,
        in_month,
    } = spending;
    SpendLine {
        per_purchase: limits.per_purchase,
        per_day: limits.per_day,
        per_month: limits.per_month,
        approve_above: limits.approve_above,
        on_day,
        in_month,
    }
}

/// Returns the lines of owners, in their order.
pub(super) async fn lines(cx: &Cx, owners: &[SpendOwner]) -> Result<Vec<SpendLine>, ApiError> {
    let found = cx.app.store.money().spendings(owners, cx.now).await?;
    Ok(found.into_iter().map(line).collect())
}

/// Returns the line of one owner.
pub(super) async fn line_of(cx: &Cx, owner: SpendOwner) -> Result<SpendLine, ApiError> {
    Ok(lines(cx, &[owner]).await?.pop().unwrap_or_default())
}

/// Returns true if an app, a device or a person may act as an agent.
pub(super) fn may_act(agent: &store::Agent) -> bool {
    agent.removed_at.is_none() && agent.taken_down_at.is_none()
}

/// Returns the agents of an operator by which its person may buy.
pub(super) async fn agents(cx: &Cx, operator: OperatorId) -> Result<Vec<BuyingAgent>, ApiError> {
    let agents = cx.app.store.accounts().agents_of(operator, cx.now).await?;
    let agents: Vec<_> = agents.into_iter().filter(may_act).collect();
    let owners: Vec<_> = agents.iter().map(|agent| SpendOwner::Agent(agent.id)).collect();
    let lines = lines(cx, &owners).await?;
    let pairs = agents.into_iter().zip(lines);
    Ok(pairs
        .map(|(agent, line)| BuyingAgent {
            id: agent.id,
            name: agent.name,
            line,
        })
        .collect())
}

/// Returns the credits of an operator.
pub(super) async fn credits(cx: &Cx, operator: OperatorId) -> Result<CreditBalance, ApiError> {
    let balances = cx.app.store.money().balances(&cx.app.pay.asset, operator).await?;
    Ok(CreditBalance {
        bought: balances.credits,
        given: balances.given,
    })
}

/// Reads a limit in dollars; an empty text is none.
pub(super) fn limit(text: &str, field: &str) -> Result<Option<MicroUsdc>, ApiError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    // People write the sign, too.
    let amount = text.strip_prefix('$').unwrap_or(text);
    let limit = amount
        .parse()
        .map_err(|_error| ApiError::invalid(field, broken_rule(amount, MOST_PRICE)))?;
    Ok(Some(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_taken_as_it_is_typed() {
        for (text, micro) in [
            ("", None),
            ("  ", None),
            ("0", Some(0)),
            ("0.05", Some(50_000)),
            (" $1.5 ", Some(1_500_000)),
            ("999999999.99", Some(999_999_999_990_000)),
        ] {
            assert_eq!(limit(text, "/cap").unwrap(), micro.map(MicroUsdc), "{text:?}");
        }
        for text in [
            "-1",
            "1,50",
            "1.001",
            "1e3",
            "one",
            "$",
            "$$1",
            "1000000000",
            "\u{ff11}",
        ] {
            let error = limit(text, "/cap").unwrap_err();
            let details = error.details();
            assert_eq!(details.len(), 1, "{text}");
            assert_eq!(details[0].path, "/cap", "{text}");
            assert!(
                details[0].problem.starts_with("must be"),
                "{text}: {}",
                details[0].problem
            );
        }
    }
}
