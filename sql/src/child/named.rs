//! Removal of the names of casts, which the planner needs and no rule behind it knows.
//!
//! Invariant: the rule runs before all others, so that they see the same expressions with and without names.

use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use super::literal;
use crate::check::alike::NAMED;

/// The analyzer rule.
#[derive(Debug)]
pub(super) struct WithoutNames;

impl AnalyzerRule for WithoutNames {
    fn name(&self) -> &'static str {
        "without_names"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|plan| {
            if let LogicalPlan::TableScan(_) = plan {
                return Ok(Transformed::no(plan));
            }
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let bare = expr.transform_up(|expr| Ok(bare(expr)))?;
                Ok(bare.update_data(|expr| name.restore(expr)))
            })
        })?;
        Ok(plan.data)
    }
}

/// Returns what a name is given to, and the value of a literal.
fn bare(expr: Expr) -> Transformed<Expr> {
    let Expr::ScalarFunction(function) = &expr else {
        return Transformed::no(expr);
    };
    let found = match (function.func.name(), &function.args[..]) {
        (NAMED, [named, _]) => Some(named.clone()),
        (_, [digits]) if literal::is(&function.func) => literal::value(digits),
        _ => None,
    };
    found.map_or_else(|| Transformed::no(expr), Transformed::yes)
}
