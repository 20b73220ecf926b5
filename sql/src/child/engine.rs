//! The query engine: plans and runs one statement.
//!
//! Invariants: only functions of the allow list are registered. There is one table. Nothing is written to disk, not
//! even spilled rows.

use std::any::Any;
use std::fs::File;
use std::sync::Arc;

use datafusion::arrow::datatypes::TimestampMicrosecondType;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::temporal_conversions::as_datetime;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::SQLOptions;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::execution::{SessionState, SessionStateDefaults};
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::logical_expr::{AggregateUDF, Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::object_store::memory::InMemory;
use datafusion::optimizer::Analyzer;
use datafusion::parquet::errors::ParquetError;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionConfig;
use datafusion::sql::parser::Statement;
use fenced::ChildSetup;
use futures_util::StreamExt as _;
use tokio::runtime::Runtime;
use types::{Contract, Timestamp};

use super::arithmetic::Arithmetic;
use super::arrays::Subscripts;
use super::lengths::ByLength;
use super::literal;
use super::mixed::MixedTypesRule;
use super::named::WithoutNames;
use super::numeric::AsNumeric;
use super::parts::{Damage, RecordsTable, STORE_URL};
use super::regex::Substrings;
use super::render::{ColumnForm, RenderedRows};
use super::rule::AsPostgres;
use super::{
    checked, differences, doubles, in_order, interval_aggregates, json, moments, ordered, regex, repeatable, temporal,
    total, windows, words,
};
use crate::check::alike;
use crate::check::functions::ALLOWED_FUNCTIONS;
use crate::check::{RECORDS_TABLE, STACK_BYTES, parse};
use crate::wire::{ChildQuery, ChildReply};
use crate::{QueryAnswer, Unrepeatable};

/// Share of the address space for operators that keep rows. The rest is for code, stacks and other allocations.
const OPERATOR_MEMORY_SHARE: f64 = 0.6;
/// Beginning of the message of `std::collections::TryReserveError`.
const NO_MEMORY: &str = "memory allocation failed";
/// Maximum length of a failure message in characters.
const MAX_MESSAGE_CHARS: usize = 600;
/// Statement that runs once through all parts of the planner before the query comes.
const WARM_UP_QUERY: &str =
    "SELECT a, count(*) AS n, max(b) FROM records WHERE c LIKE '%x%' AND b > 1.5 GROUP BY a ORDER BY n DESC, a LIMIT 1";
const WARM_UP_CONTRACT: &str =
    r#"{"fields":[{"name":"a","type":"string"},{"name":"b","type":"number"},{"name":"c","type":"string"}]}"#;

/// An engine that is ready for one statement.
#[derive(Debug)]
pub(super) struct QueryEngine {
    runtime: Runtime,
    state: SessionState,
}

impl QueryEngine {
    /// Starts the threads and warms the engine. The error describes the failed step.
    pub(super) fn start(setup: &ChildSetup) -> std::result::Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(setup.threads)
            .thread_stack_size(STACK_BYTES)
            .build()
            .map_err(|error| format!("the threads could not be started: {error}"))?;
        let state = state(setup).map_err(|error| format!("the engine could not be started: {error}"))?;
        let engine = Self { runtime, state };
        engine.warm()?;
        Ok(engine)
    }

    /// Runs a statement over an empty table, so that the planner's code is in memory.
    fn warm(&self) -> std::result::Result<(), String> {
        let contract: Contract = serde_json::from_str(WARM_UP_CONTRACT).map_err(|error| error.to_string())?;
        let job = ChildQuery {
            contract: Arc::new(contract),
            sql: WARM_UP_QUERY.to_owned(),
            limit: 1,
            is_steady: false,
            wants_reasons: false,
            has_places: false,
            now: Timestamp::default(),
            parts: Vec::new(),
        };
        let warm = Self {
            runtime: tokio::runtime::Builder::new_current_thread()
                .build()
                .map_err(|error| error.to_string())?,
            state: SessionStateBuilder::new_from_existing(self.state.clone()).build(),
        };
        match warm.answer_of(job, Vec::new(), &Damage::default()) {
            ChildReply::Answer(_) => Ok(()),
            other => Err(format!("the test query of the engine failed: {other:?}")),
        }
    }

    /// Runs the statement of a job. A panic of the engine is a failure of the statement. If a part is damaged, the
    /// reply is the damage, whatever the engine returned.
    pub(super) fn answer(&self, job: ChildQuery, files: Vec<File>) -> ChildReply {
        let damage = Damage::default();
        // The process ends after this query, so no state can be seen half changed.
        let run = std::panic::AssertUnwindSafe(|| self.answer_of(job, files, &damage));
        let reply = std::panic::catch_unwind(run).unwrap_or_else(|panic| ChildReply::Failed(panicked(&*panic)));
        damage.get().map_or(reply, |found| ChildReply::Damaged(found.clone()))
    }

    fn answer_of(&self, job: ChildQuery, files: Vec<File>, damage: &Damage) -> ChildReply {
        // The caller has checked the statement without the contract. It is checked again, with the names resolved.
        let statement = match parse(&job.sql, Some(&job.contract)) {
            Ok(statement) => Statement::Statement(Box::new(statement)),
            Err(refusal) => return refusal.into(),
        };
        // The current thread has a large stack, which planning needs.
        let ran = self.runtime.block_on(self.run(job, statement, files, damage));
        ran.unwrap_or_else(|error| failed(&error))
    }

    async fn run(
        &self,
        job: ChildQuery,
        statement: Statement,
        files: Vec<File>,
        damage: &Damage,
    ) -> Result<ChildReply> {
        let mut state = self.state.clone();
        if job.is_steady {
            // Of several threads, the first that is ready would go first.
            state.config_mut().options_mut().execution.target_partitions = 1;
        }
        let table = RecordsTable::new(&job, files, damage);
        let tables = state.schema_for_ref(RECORDS_TABLE)?;
        // The table of the warm-up is still registered.
        tables.deregister_table(RECORDS_TABLE)?;
        tables.register_table(RECORDS_TABLE.to_owned(), Arc::new(table))?;
        let now = as_datetime::<TimestampMicrosecondType>(job.now.micros());
        state.execution_props_mut().query_execution_start_time = now.map(|now| now.and_utc());
        let limit = job.limit as usize;
        let planned = match planned(&mut state, statement.clone(), &job).await {
            Err(error) if is_of_equal_names(&error) => {
                planned(&mut state, separated(statement, &job.contract), &job).await
            }
            planned => planned,
        };
        let PlannedStatement {
            plan,
            shown,
            unrepeatable,
        } = planned?;
        let mut rows = RenderedRows::new(&plan.schema(), shown, limit);
        let mut batches = execute_stream(plan, state.task_ctx())?;
        while let Some(batch) = batches.next().await {
            if !rows.add(&batch?)? {
                break;
            }
        }
        Ok(rows
            .finish(unrepeatable)
            .map_or(ChildReply::TooLarge, |answer: QueryAnswer| ChildReply::Answer(answer)))
    }
}

/// A statement that can be run.
struct PlannedStatement {
    plan: Arc<dyn ExecutionPlan>,
    /// Form in which each of its columns is shown.
    shown: Vec<ColumnForm>,
    /// Reasons why its answer may be another one the next time, if they are wanted.
    unrepeatable: Vec<Unrepeatable>,
}

/// Plans the statement of a job.
async fn planned(state: &mut SessionState, statement: Statement, job: &ChildQuery) -> Result<PlannedStatement> {
    let plan = state.statement_to_plan(statement).await?;
    // A second check behind the allow list.
    SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false)
        .verify_plan(&plan)?;
    let shown = ColumnForm::of(json::columns(&plan), &differences::columns(&plan));
    if has_case(&plan)? {
        // The engine reads wrong columns where it filters by what a CASE gives while it runs.
        let options = state.config_mut().options_mut();
        options.optimizer.enable_topk_dynamic_filter_pushdown = false;
        options.optimizer.enable_join_dynamic_filter_pushdown = false;
    }
    let unrepeatable = if job.wants_reasons {
        let analyzed = state
            .analyzer()
            .execute_and_check(plan.clone(), state.config_options(), |_, _| {})?;
        repeatable::reasons(&plan, &analyzed)?
    } else {
        Vec::new()
    };
    // One extra row tells if the result is truncated.
    let plan = LogicalPlanBuilder::from(plan)
        .limit(0, Some((job.limit as usize).saturating_add(1)))?
        .build()?;
    Ok(PlannedStatement {
        plan: in_order::plan(state.create_physical_plan(&plan).await?)?,
        shown,
        unrepeatable,
    })
}

/// Returns true if the engine does not tell two columns apart.
fn is_of_equal_names(error: &DataFusionError) -> bool {
    let message = error.to_string();
    [
        "unique expression names",
        "duplicate qualified field",
        "duplicate unqualified field",
        "would be ambiguous",
    ]
    .iter()
    .any(|words| message.contains(words))
}

/// Gives every column of a statement a name of its own.
fn separated(mut statement: Statement, contract: &Contract) -> Statement {
    if let Statement::Statement(statement) = &mut statement {
        alike::separate(statement, contract);
    }
    statement
}

/// Functions that the engine rewrites to CASE.
const CASE_FUNCTIONS: [&str; 5] = ["coalesce", "ifnull", "nullif", "nvl", "nvl2"];

/// Tells if a plan has a CASE anywhere.
fn has_case(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expr| {
            found |= expr.exists(|expr| {
                Ok(match expr {
                    Expr::Case(_) => true,
                    Expr::ScalarFunction(function) => CASE_FUNCTIONS.contains(&function.func.name()),
                    _ => false,
                })
            })?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(found)
}

fn state(setup: &ChildSetup) -> Result<SessionState> {
    let config = SessionConfig::new()
        .with_target_partitions(setup.threads)
        // The information schema would be a second set of tables.
        .with_information_schema(false)
        .with_create_default_catalog_and_schema(true)
        // The dynamic filter from the current minimum and maximum ignores aggregates that are still null, so it would
        // skip parts that have their first values.
        .set_bool("datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown", false)
        // Marks of columns are lost in unions, and the check would take a column without its mark for another one.
        .set_bool("datafusion.execution.skip_physical_aggregate_schema_check", true)
        // With a time zone, `now()` is an instant and not a local time.
        .set_str("datafusion.execution.time_zone", "UTC");
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a size need not be exact"
    )]
    let pool = (setup.memory as f64 * OPERATOR_MEMORY_SHARE) as usize;
    let runtime = RuntimeEnvBuilder::new()
        // One query runs at a time, so no share has to be kept for others.
        .with_memory_pool(Arc::new(GreedyMemoryPool::new(pool)))
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled))
        .build_arc()?;
    // The default store would read local files by name.
    runtime.deregister_object_store(ObjectStoreUrl::local_filesystem().as_ref())?;
    runtime.register_object_store(ObjectStoreUrl::parse(STORE_URL)?.as_ref(), Arc::new(InMemory::new()));
    let allowed = |name: &str| ALLOWED_FUNCTIONS.binary_search(&name).is_ok();
    let mut scalars = SessionStateDefaults::default_scalar_functions();
    let own = temporal::functions();
    let replaced = |name: &str| own.iter().any(|function| function.name() == name);
    scalars.retain(|function| allowed(function.name()) && !replaced(function.name()));
    scalars.extend(own);
    let mut scalars = regex::functions(doubles::functions(scalars));
    scalars.push(Arc::new(checked::named_by_type()));
    scalars.push(Arc::new(literal::function()));
    let mut aggregates = SessionStateDefaults::default_aggregate_functions();
    // These replace those of the engine, whose `sum` wraps around.
    let replaced = [
        AggregateUDF::new_from_impl(total::sum()),
        AggregateUDF::new_from_impl(total::average()),
        ordered::percentile_cont(),
        ordered::percentile_disc(),
        ordered::mode(),
    ];
    aggregates.retain(|function| allowed(function.name()) && replaced.iter().all(|own| own.name() != function.name()));
    aggregates.extend(replaced.map(Arc::new));
    let aggregates = moments::functions(aggregates)
        .into_iter()
        .map(interval_aggregates::either)
        .collect();
    let mut windows = SessionStateDefaults::default_window_functions();
    windows.retain(|function| allowed(function.name()));
    let mut planners: Vec<Arc<dyn ExprPlanner>> = vec![
        Arc::new(literal::ProductPlanner),
        Arc::new(Arithmetic),
        Arc::new(Subscripts),
        Arc::new(Substrings),
    ];
    planners.extend(SessionStateDefaults::default_expr_planners());
    let mut rules = Analyzer::new().rules;
    // Types are coerced last, so intervals are replaced by their lengths before.
    rules.insert(rules.len() - 1, Arc::new(ByLength));
    // Added before the engine's rules, which coerce types. `MixedTypesRule` sees the types as the statement has them.
    rules.insert(0, Arc::new(AsNumeric));
    rules.insert(0, Arc::new(MixedTypesRule));
    rules.insert(0, Arc::new(WithoutNames));
    Ok(SessionStateBuilder::new()
        .with_config(config)
        .with_analyzer_rules(rules)
        .with_runtime_env(runtime)
        .with_expr_planners(planners)
        .with_scalar_functions(scalars)
        .with_aggregate_functions(aggregates)
        .with_window_functions(windows::functions(windows))
        // Added after the engine's rules, so types are already coerced.
        .with_analyzer_rule(Arc::new(AsPostgres))
        .build())
}

/// Converts an error of the engine into a reply.
fn failed(error: &DataFusionError) -> ChildReply {
    if let DataFusionError::ResourcesExhausted(_) = error.find_root() {
        return ChildReply::OutOfMemory;
    }
    // An operator that reserves memory fails with the message of the standard library.
    if error.to_string().contains(NO_MEMORY) {
        return ChildReply::OutOfMemory;
    }
    let message = words::said(error);
    if is_of_a_part(error) {
        ChildReply::Unreadable(shortened(&message))
    } else {
        ChildReply::Failed(shortened(&message))
    }
}

/// Returns true if a part could not be read, which is not a failure of the statement.
fn is_of_a_part(error: &DataFusionError) -> bool {
    let of_arrow = |error: &ArrowError| match error {
        ArrowError::ParquetError(text) => !text.contains(FILTER_FAILED),
        _ => false,
    };
    match error.find_root() {
        DataFusionError::IoError(_) => true,
        DataFusionError::ArrowError(arrow, _) => of_arrow(arrow),
        // A condition of the statement may be evaluated during the scan, and its failure is then an error of the
        // reader.
        DataFusionError::ParquetError(parquet) => match &**parquet {
            ParquetError::External(source) => source.downcast_ref().is_none_or(of_arrow),
            other => !other.to_string().contains(FILTER_FAILED),
        },
        _ => false,
    }
}

/// Message of the engine if a condition fails during a scan.
const FILTER_FAILED: &str = "Error evaluating filter predicate";

/// Returns the message for a panic of the engine. Its own text is for developers of the engine.
fn panicked(_: &(dyn Any + Send)) -> String {
    words::NO_WORDS.to_owned()
}

/// Shortens a message.
fn shortened(message: &str) -> String {
    let mut short: String = message.chars().take(MAX_MESSAGE_CHARS).collect();
    if short.len() < message.len() {
        short.push('…');
    }
    short
}
