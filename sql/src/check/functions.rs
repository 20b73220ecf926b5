//! Allow list of functions: every function of the engine is either allowed or refused here, by name.
//!
//! Invariant: a name in neither list is refused. A child registers only [`ALLOWED_FUNCTIONS`] functions.

use super::Refusal;

/// Names and aliases of the allowed functions, sorted for binary search.
pub(crate) const ALLOWED_FUNCTIONS: [&str; 275] = [
    "abs",
    "acos",
    "acosh",
    "any_value",
    "approx_distinct",
    "approx_median",
    "approx_percentile_cont",
    "approx_percentile_cont_with_weight",
    "array_add",
    "array_agg",
    "array_any_value",
    "array_append",
    "array_avg",
    "array_cat",
    "array_compact",
    "array_concat",
    "array_contains",
    "array_dims",
    "array_distance",
    "array_distinct",
    "array_element",
    "array_empty",
    "array_except",
    "array_extract",
    "array_has",
    "array_has_all",
    "array_has_any",
    "array_indexof",
    "array_intersect",
    "array_join",
    "array_length",
    "array_max",
    "array_min",
    "array_ndims",
    "array_normalize",
    "array_pop_back",
    "array_pop_front",
    "array_position",
    "array_positions",
    "array_prepend",
    "array_product",
    "array_push_back",
    "array_push_front",
    "array_remove",
    "array_remove_all",
    "array_remove_n",
    "array_replace",
    "array_replace_all",
    "array_replace_n",
    "array_reverse",
    "array_scale",
    "array_slice",
    "array_sort",
    "array_subtract",
    "array_sum",
    "array_to_string",
    "array_union",
    "arrays_overlap",
    "arrow_typeof",
    "ascii",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "avg",
    "bit_and",
    "bit_length",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "btrim",
    "cardinality",
    "cbrt",
    "ceil",
    "char_length",
    "character_length",
    "chr",
    "coalesce",
    "concat",
    "concat_ws",
    "contains",
    "corr",
    "cos",
    "cosh",
    "cosine_distance",
    "cot",
    "count",
    "covar",
    "covar_pop",
    "covar_samp",
    "cume_dist",
    "current_date",
    "current_time",
    "current_timestamp",
    "date_bin",
    "date_format",
    "date_part",
    "date_trunc",
    "datepart",
    "datetrunc",
    "decode",
    "degrees",
    "dense_rank",
    "dot_product",
    "empty",
    "encode",
    "ends_with",
    "exp",
    "factorial",
    "find_in_set",
    "first_value",
    "flatten",
    "floor",
    "from_unixtime",
    "gcd",
    "greatest",
    "grouping",
    "ifnull",
    "initcap",
    "inner_product",
    "instr",
    "isnan",
    "iszero",
    "lag",
    "last_value",
    "lcm",
    "lead",
    "least",
    "left",
    "length",
    "levenshtein",
    "list_add",
    "list_any_value",
    "list_append",
    "list_avg",
    "list_cat",
    "list_compact",
    "list_concat",
    "list_contains",
    "list_dims",
    "list_distance",
    "list_distinct",
    "list_element",
    "list_empty",
    "list_except",
    "list_extract",
    "list_has",
    "list_has_all",
    "list_has_any",
    "list_indexof",
    "list_intersect",
    "list_join",
    "list_length",
    "list_max",
    "list_ndims",
    "list_normalize",
    "list_pop_back",
    "list_pop_front",
    "list_position",
    "list_positions",
    "list_prepend",
    "list_product",
    "list_push_back",
    "list_push_front",
    "list_remove",
    "list_remove_all",
    "list_remove_n",
    "list_replace",
    "list_replace_all",
    "list_replace_n",
    "list_reverse",
    "list_scale",
    "list_slice",
    "list_sort",
    "list_subtract",
    "list_sum",
    "list_to_string",
    "list_union",
    "ln",
    "log",
    "log10",
    "log2",
    "lower",
    "ltrim",
    "make_array",
    "make_date",
    "make_list",
    "make_time",
    "max",
    "mean",
    "median",
    "min",
    "nanvl",
    "now",
    "nth_value",
    "ntile",
    "nullif",
    "nvl",
    "nvl2",
    "octet_length",
    "overlay",
    "percent_rank",
    "percentile_cont",
    "pi",
    "position",
    "pow",
    "power",
    "quantile_cont",
    "radians",
    "rank",
    "regexp_count",
    "regexp_instr",
    "regexp_like",
    "regexp_match",
    "regexp_replace",
    "regexp_split_to_array",
    "regexp_substr",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "replace",
    "reverse",
    "right",
    "round",
    "row_number",
    "rtrim",
    "signum",
    "sin",
    "sinh",
    "split_part",
    "sqrt",
    "starts_with",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "string_to_array",
    "string_to_list",
    "strpos",
    "substr",
    "substr_index",
    "substring",
    "substring_index",
    "sum",
    "tan",
    "tanh",
    "to_char",
    "to_date",
    "to_hex",
    "to_local_time",
    "to_time",
    "to_timestamp",
    "to_timestamp_micros",
    "to_timestamp_millis",
    "to_timestamp_nanos",
    "to_timestamp_seconds",
    "to_unixtime",
    "today",
    "translate",
    "trim",
    "trunc",
    "upper",
    "var",
    "var_pop",
    "var_population",
    "var_samp",
    "var_sample",
];

/// Functions that the engine does not have and the child adds, sorted for binary search.
pub(crate) const ADDED_FUNCTIONS: [&str; 7] = [
    "age",
    "justify_days",
    "justify_hours",
    "justify_interval",
    "mode",
    "percentile_disc",
    "timezone",
];

/// Functions of [`ALLOWED_FUNCTIONS`] that the engine does not have either.
#[cfg(test)]
const OWN_FUNCTIONS: [&str; 2] = ["regexp_split_to_array", "regexp_substr"];

/// Functions whose second argument is a format.
pub(super) const FORMAT_FUNCTIONS: [&str; 2] = ["date_format", "to_char"];

/// Refused functions of the engine, by the rule that they break.
pub(crate) const REFUSED_FUNCTIONS: [(&str, &[&str]); 5] = [
    (
        "its result can be far larger than its arguments",
        &[
            "array_repeat",
            "array_resize",
            "generate_series",
            "list_repeat",
            "list_resize",
            "lpad",
            "range",
            "repeat",
            "rpad",
        ],
    ),
    (
        "a query must give the same answer every time",
        &["rand", "random", "uuid"],
    ),
    (
        "it describes the engine and its files, not records",
        &["file_row_index", "input_file_name", "version"],
    ),
    (
        "use CAST",
        &[
            "arrow_cast",
            "arrow_field",
            "arrow_metadata",
            "arrow_try_cast",
            "cast_to_type",
            "try_cast_to_type",
            "with_metadata",
        ],
    ),
    (
        "structs, maps and unions are not supported",
        &[
            "arrays_zip",
            "element_at",
            "get_field",
            "list_zip",
            "map",
            "map_entries",
            "map_extract",
            "map_keys",
            "map_values",
            "named_struct",
            "row",
            "struct",
            "union_extract",
            "union_tag",
        ],
    ),
];

/// Checks that the function `name`, in lower case, may be called.
pub(super) fn allowed(name: &str) -> Result<(), Refusal> {
    if ALLOWED_FUNCTIONS.binary_search(&name).is_ok() || ADDED_FUNCTIONS.binary_search(&name).is_ok() {
        return Ok(());
    }
    let known = REFUSED_FUNCTIONS.into_iter().find(|(_, names)| names.contains(&name));
    let rule = known.map_or("the function is not supported", |(rule, _)| rule);
    Err(Refusal::of(format!("{name}()"), rule))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use datafusion::execution::SessionStateDefaults as Engine;

    use super::*;

    #[test]
    fn every_function_of_the_engine_is_decided_once() {
        let mut engine = BTreeSet::new();
        let mut add = |name: &str, aliases: &[String]| {
            engine.insert(name.to_owned());
            engine.extend(aliases.iter().cloned());
        };
        for function in Engine::default_scalar_functions() {
            add(function.name(), function.aliases());
        }
        for function in Engine::default_aggregate_functions() {
            add(function.name(), function.aliases());
        }
        for function in Engine::default_window_functions() {
            add(function.name(), function.aliases());
        }
        for function in Engine::default_table_functions() {
            add(function.name(), &[]);
        }
        let refused: Vec<&str> = REFUSED_FUNCTIONS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        let decided: BTreeSet<String> = ALLOWED_FUNCTIONS
            .iter()
            .chain(&refused)
            .map(|name| (*name).to_owned())
            .collect();
        engine.extend(OWN_FUNCTIONS.map(str::to_owned));
        assert_eq!(decided, engine);
        assert_eq!(
            decided.len(),
            ALLOWED_FUNCTIONS.len() + refused.len(),
            "a function is decided twice"
        );
        assert!(ALLOWED_FUNCTIONS.is_sorted() && ADDED_FUNCTIONS.is_sorted());
    }

    #[test]
    fn a_refused_function_names_its_rule() {
        let refusal = allowed("repeat").unwrap_err();
        assert!(
            refusal
                .to_string()
                .starts_with("`repeat()` is refused: its result can be far larger"),
            "{refusal}"
        );
        assert!(allowed("no_such_function").is_err());
    }
}
