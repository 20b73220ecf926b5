//! Limits of agents and apps on what they spend, with what is left of them.
//!
//! Invariant: a person reads the same amounts as a program, to the millionth, and no limit reads as one.

use types::money::MicroUsdc;

/// Limits of an agent or an app, and what it has spent. None is no limit; 0 lets nothing pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpendLine {
    /// Greatest price of a purchase.
    pub per_purchase: Option<MicroUsdc>,
    /// Most that is spent on a UTC day.
    pub per_day: Option<MicroUsdc>,
    /// Most that is spent in a UTC month.
    pub per_month: Option<MicroUsdc>,
    /// Price above which a purchase waits for the person.
    pub approve_above: Option<MicroUsdc>,
    /// Spent on the UTC day.
    pub on_day: MicroUsdc,
    /// Spent in the UTC month.
    pub in_month: MicroUsdc,
}

impl SpendLine {
    /// Returns what is left of a cap.
    fn left(cap: MicroUsdc, used: MicroUsdc) -> MicroUsdc {
        MicroUsdc(cap.0.saturating_sub(used.0).max(0))
    }

    /// Returns true if a cap lets nothing pass, whatever was spent.
    pub(crate) fn is_closed(&self) -> bool {
        [self.per_purchase, self.per_day, self.per_month].contains(&Some(MicroUsdc(0)))
    }

    /// Returns why a purchase at a price does not fit, in words that follow a name.
    pub(crate) fn obstacle(&self, price: MicroUsdc) -> Option<String> {
        if self.is_closed() {
            return Some("may not spend".to_owned());
        }
        let purchase = self.per_purchase.filter(|cap| *cap < price);
        if let Some(cap) = purchase {
            return Some(format!("may spend ${cap} on a purchase"));
        }
        let periods = [
            (self.per_day, self.on_day, "today"),
            (self.per_month, self.in_month, "this month"),
        ];
        periods.into_iter().find_map(|(cap, used, period)| {
            let left = Self::left(cap?, used);
            (left < price).then(|| format!("may spend ${left} more {period}"))
        })
    }

    /// Returns what may still be spent, in words that follow a name.
    pub(crate) fn rest(&self) -> String {
        if self.is_closed() {
            return "may not spend".to_owned();
        }
        let mut parts = Vec::new();
        if let Some(cap) = self.per_purchase {
            parts.push(format!("${cap} on a purchase"));
        }
        for (cap, used, period) in [
            (self.per_day, self.on_day, "today"),
            (self.per_month, self.in_month, "this month"),
        ] {
            if let Some(cap) = cap {
                parts.push(format!("${} more {period}", Self::left(cap, used)));
            }
        }
        if parts.is_empty() {
            return "may spend without a limit".to_owned();
        }
        format!("may spend {}", parts.join(", "))
    }

    /// Returns what would be left after a purchase at a price, in words; `None` if no cap of a period holds.
    pub(crate) fn rest_after(&self, price: MicroUsdc) -> Option<String> {
        let periods = [
            (self.per_day, self.on_day, "today"),
            (self.per_month, self.in_month, "this month"),
        ];
        let parts: Vec<String> = periods
            .into_iter()
            .filter_map(|(cap, used, period)| {
                let left = Self::left(cap?, used);
                let after = Self::left(left, price);
                Some(format!("${left} left {period}, ${after} after it"))
            })
            .collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Returns what is spent of the cap of the day.
    pub(crate) const fn today(&self) -> CapUse {
        CapUse {
            used: self.on_day,
            cap: self.per_day,
        }
    }

    /// Returns what is spent of the cap of the month.
    pub(crate) const fn this_month(&self) -> CapUse {
        CapUse {
            used: self.in_month,
            cap: self.per_month,
        }
    }
}

/// Part of a cap that is spent.
pub(crate) struct CapUse {
    pub(crate) used: MicroUsdc,
    pub(crate) cap: Option<MicroUsdc>,
}

impl CapUse {
    /// Returns the hundredths that are spent, at most 100.
    pub(crate) fn share(&self) -> u64 {
        match self.cap {
            Some(MicroUsdc(cap)) if cap > 0 => {
                let share = i128::from(self.used.0.max(0)) * 100 / i128::from(cap);
                u64::try_from(share.min(100)).unwrap_or(100)
            }
            _ => 100,
        }
    }
}

/// Owner of limits, as the pages about it name it.
#[derive(Clone, Debug)]
pub enum SpendOwnerName {
    /// An agent.
    Agent {
        /// Id of the agent.
        id: String,
        /// Name of the agent.
        name: String,
    },
    /// An app that acts as an agent.
    App {
        /// Id of the connection.
        id: String,
        /// Name of the app, as it calls itself.
        client: String,
        /// Name of the agent.
        agent: String,
    },
}

impl SpendOwnerName {
    /// Returns the address of the form of its limits.
    pub(crate) fn form(&self) -> String {
        match self {
            Self::Agent { id, .. } => format!("/console/agents/{id}/limits"),
            Self::App { id, .. } => format!("/console/apps/{id}/limits"),
        }
    }

    /// Returns the name by which the page calls it.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Agent { name, .. } => name,
            Self::App { client, .. } => client,
        }
    }

    /// Returns the agent that an app acts as.
    pub(crate) fn acts_as(&self) -> Option<&str> {
        match self {
            Self::Agent { .. } => None,
            Self::App { agent, .. } => Some(agent),
        }
    }
}

/// Agent or app with its limits, for a table row.
#[derive(Clone, Debug)]
pub struct SpendRow {
    /// Owner of the limits.
    pub owner: SpendOwnerName,
    /// Its limits, and what it has spent.
    pub line: SpendLine,
}

/// Credits of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreditBalance {
    /// Bought credits.
    pub bought: MicroUsdc,
    /// Trial credit, which pays what takes it.
    pub given: MicroUsdc,
}

/// Amount that a purchase takes from the credits of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditBill {
    /// Trial credit pays: now, and after it.
    Trial(MicroUsdc, MicroUsdc),
    /// Bought credits pay: now, and after it.
    Bought(MicroUsdc, MicroUsdc),
    /// Neither covers the price; so much is missing of bought credits.
    Short(MicroUsdc),
}

impl CreditBalance {
    /// Returns both kinds of credits together.
    pub(crate) const fn sum(self) -> MicroUsdc {
        MicroUsdc(self.bought.0.saturating_add(self.given.0))
    }

    /// Returns what a purchase takes. It is paid wholly by one kind of credits, by trial credit first.
    pub(crate) fn bill(self, price: MicroUsdc, takes_trial_credit: bool) -> CreditBill {
        let after = |balance: MicroUsdc| MicroUsdc(balance.0.saturating_sub(price.0));
        if takes_trial_credit && self.given >= price {
            return CreditBill::Trial(self.given, after(self.given));
        }
        if self.bought >= price {
            return CreditBill::Bought(self.bought, after(self.bought));
        }
        CreditBill::Short(MicroUsdc(price.0.saturating_sub(self.bought.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn dollars(cents: i64) -> MicroUsdc {
        MicroUsdc(cents * 10_000)
    }

    fn line() -> SpendLine {
        SpendLine {
            per_purchase: Some(dollars(300)),
            per_day: Some(dollars(400)),
            per_month: Some(dollars(500)),
            approve_above: Some(dollars(100)),
            on_day: dollars(25),
            in_month: MicroUsdc(1_761_250),
        }
    }

    #[test]
    fn what_is_left_is_said_to_the_millionth() {
        assert_eq!(
            line().rest(),
            "may spend $3.00 on a purchase, $3.75 more today, $3.23875 more this month"
        );
        assert_eq!(
            line().rest_after(dollars(50)).unwrap(),
            "$3.75 left today, $3.25 after it; $3.23875 left this month, $2.73875 after it"
        );
        // A cap that was lowered below what was spent leaves nothing, and not less.
        let lowered = SpendLine {
            per_day: Some(dollars(10)),
            ..line()
        };
        assert!(lowered.rest().contains("$0.00 more today"), "{}", lowered.rest());
        assert_eq!(SpendLine::default().rest(), "may spend without a limit");
        assert_eq!(SpendLine::default().rest_after(dollars(50)), None);
    }

    #[test]
    fn the_first_cap_that_a_price_does_not_fit_is_named() {
        let cases = [
            (line(), 300, None),
            (line(), 301, Some("may spend $3.00 on a purchase")),
            (
                SpendLine {
                    per_purchase: None,
                    ..line()
                },
                376,
                Some("may spend $3.75 more today"),
            ),
            (
                SpendLine {
                    per_purchase: None,
                    per_day: None,
                    ..line()
                },
                324,
                Some("may spend $3.23875 more this month"),
            ),
            (
                SpendLine {
                    per_month: Some(dollars(0)),
                    ..line()
                },
                1,
                Some("may not spend"),
            ),
            (SpendLine::default(), 99_999, None),
        ];
        for (line, cents, expected) in cases {
            assert_eq!(line.obstacle(dollars(cents)).as_deref(), expected, "{cents}");
        }
    }

    #[test]
    fn a_share_never_leaves_its_bar() {
        for (cap, used, share) in [
            (4_000_000, 250_000, 6),
            (4_000_000, 0, 0),
            (4_000_000, 9_000_000, 100),
            (0, 0, 100),
            (i64::MAX, i64::MAX, 100),
        ] {
            let line = SpendLine {
                per_day: Some(MicroUsdc(cap)),
                on_day: MicroUsdc(used),
                ..SpendLine::default()
            };
            assert_eq!(line.today().share(), share, "{used} of {cap}");
        }
    }

    #[test]
    fn one_kind_of_credits_pays_all_of_a_price() {
        let balance = CreditBalance {
            bought: dollars(60),
            given: dollars(40),
        };
        let bill = |price, takes_trial| balance.bill(dollars(price), takes_trial);
        assert_eq!(bill(40, true), CreditBill::Trial(dollars(40), dollars(0)));
        assert_eq!(bill(40, false), CreditBill::Bought(dollars(60), dollars(20)));
        assert_eq!(bill(41, true), CreditBill::Bought(dollars(60), dollars(19)));
        // The sum of both would cover it.
        assert_eq!(bill(100, true), CreditBill::Short(dollars(40)));
    }
}
