//! Statements by chance: the forms that a SELECT has.

use super::generate::{Dice, Generator, Kind, Statement};

/// Functions of a window that need a total order.
const RANKED: [&str; 9] = [
    "row_number()",
    "rank()",
    "dense_rank()",
    "percent_rank()",
    "cume_dist()",
    "ntile(4)",
    "lag(i)",
    "lead(s, 2)",
    "lag(n, 1, 0.0)",
];

/// Returns `count` statements, the same ones for the same seed.
pub(super) fn statements(seed: u64, count: usize) -> Vec<Statement> {
    let mut generator = Generator::new(Dice::new(seed));
    (0..count).map(|_| generator.statement()).collect()
}

impl Generator {
    fn statement(&mut self) -> Statement {
        self.over(&[""]);
        match self.dice.below(20) {
            0..=3 => self.projection(),
            4 | 5 => self.filtered(),
            6..=8 => self.grouped(),
            9 => self.sets(),
            10 | 11 => self.windows(),
            12..=14 => self.joined(),
            15 | 16 => self.combined(),
            17 => self.with(),
            18 => self.correlated(),
            _ => self.refused(),
        }
    }

    /// Columns of an answer, with names.
    fn list(&mut self, depth: u32) -> String {
        let count = 1 + self.dice.below(3);
        let mut columns = Vec::new();
        for index in 0..count {
            let kind = self.kind();
            columns.push(format!("{} AS c{index}", self.expression(kind, depth)));
        }
        columns.join(", ")
    }

    fn direction(&mut self) -> String {
        self.text(&[
            "",
            " ASC",
            " DESC",
            " NULLS FIRST",
            " DESC NULLS LAST",
            " DESC NULLS FIRST",
        ])
    }

    fn projection(&mut self) -> Statement {
        let list = self.list(3);
        let condition = self.condition(2);
        if self.dice.below(3) == 0 {
            return Statement::new(format!("SELECT {list} FROM records WHERE {condition}"), false);
        }
        let (kind, direction) = (self.kind(), self.direction());
        let order = format!("coalesce({}, {})", self.column(kind), self.expression(kind, 1));
        let limit = self.text(&["", " LIMIT 7", " LIMIT 5 OFFSET 3", " OFFSET 50", " LIMIT 0"]);
        Statement::new(
            format!("SELECT {list}, id FROM records WHERE {condition} ORDER BY {order}{direction}, id{limit}"),
            true,
        )
    }

    fn filtered(&mut self) -> Statement {
        self.over(&["records"]);
        self.with_subqueries();
        let condition = self.condition(3);
        let what = self.text(&[
            "id, doc",
            "count(*) AS c",
            "*",
            "DISTINCT s, b",
            "j, doc",
            "DISTINCT i + 1 AS c",
        ]);
        Statement::new(format!("SELECT {what} FROM records WHERE {condition}"), false)
    }

    fn aggregate(&mut self) -> String {
        let kind = self.kind();
        let distinct = self.text(&["", "", "DISTINCT "]);
        let of = self.expression(kind, 1);
        let call = match self.dice.below(10) {
            0 => "count(*)".to_owned(),
            1 | 2 => format!("count({distinct}{of})"),
            3 => format!("{}({of})", if kind == Kind::Yes { "count" } else { "min" }),
            4 => format!("{}({of})", if kind == Kind::Yes { "count" } else { "max" }),
            5 => format!("sum({distinct}{})", self.expression(Kind::Whole, 2)),
            6 => format!("sum({distinct}{})", self.expression(Kind::Number, 1)),
            7 => format!("avg({})", self.expression(Kind::Whole, 1)),
            8 => format!("{}({})", self.text(&["bool_and", "bool_or"]), self.condition(1)),
            _ => self.text(&[
                "max(j)",
                "min(j)",
                "sum(j)",
                "count(j)",
                "stddev_pop(i)",
                "var_samp(n)",
                "percentile_cont(0.5) WITHIN GROUP (ORDER BY n)",
                "percentile_cont(0.9) WITHIN GROUP (ORDER BY i)",
                "sum(i) / nullif(sum(id), 0)",
                "100.0 * sum(i) / nullif(count(i), 0)",
                "round(avg(i), 1)",
                "sum(i) % 7",
                "bit_and(i)",
                "bit_or(id)",
                "string_agg(s, ',' ORDER BY id)",
                "max(doc)",
                "array_agg(i ORDER BY id)",
                "avg(m)",
                "max(n)",
            ]),
        };
        // A filter belongs to one call.
        if self.dice.below(5) == 0 && !call.contains(") ") && !call.starts_with("round") {
            let condition = self.condition(1);
            return format!("{call} FILTER (WHERE {condition})");
        }
        call
    }

    fn grouped(&mut self) -> Statement {
        let condition = self.condition(1);
        let (one, other) = (self.aggregate(), self.aggregate());
        if self.dice.below(4) == 0 {
            return Statement::new(
                format!("SELECT {one} AS c0, {other} AS c1 FROM records WHERE {condition}"),
                false,
            );
        }
        let kind = self.kind();
        let by = self.expression(kind, 1);
        let having = match self.dice.below(3) {
            0 => format!(
                " HAVING {}",
                self.text(&["count(*) > 2", "max(i) > 0", "sum(i) IS NOT NULL", "min(s) < 'b'"])
            ),
            _ => String::new(),
        };
        let group = self.text(&["1", "1, b"]);
        let b = if group == "1" { "" } else { ", b" };
        Statement::new(
            format!(
                "SELECT {by} AS g{b}, {one} AS c0, {other} AS c1 FROM records WHERE {condition} GROUP BY {group}{having}"
            ),
            false,
        )
    }

    fn sets(&mut self) -> Statement {
        let by = self.text(&[
            "ROLLUP (s, b)",
            "CUBE (s, b)",
            "GROUPING SETS ((s), (b), ())",
            "GROUPING SETS ((s, b), (b))",
            "ROLLUP (b), s",
            "s, b",
        ]);
        let aggregate = self.aggregate();
        let grouping = if by == "s, b" {
            ""
        } else {
            ", grouping(s) AS gs, grouping(b) AS gb"
        };
        let condition = self.condition(1);
        Statement::new(
            format!("SELECT s, b{grouping}, {aggregate} AS c FROM records WHERE {condition} GROUP BY {by}"),
            false,
        )
    }

    fn windows(&mut self) -> Statement {
        let (kind, direction) = (self.kind(), self.direction());
        let (by, order) = (self.column(kind), self.column(kind));
        let partition = self.text(&["", "PARTITION BY b ", "PARTITION BY s ", "PARTITION BY i % 3 "]);
        let total = format!("{partition}ORDER BY {order}{direction}, id");
        let call = match self.dice.below(4) {
            0 => format!("{} OVER ({total})", self.text(&RANKED)),
            1 => format!("{} OVER w", self.text(&RANKED)),
            2 => {
                let function = self.text(&[
                    "sum(i)",
                    "count(n)",
                    "min(s)",
                    "max(moment)",
                    "avg(i)",
                    "first_value(s)",
                    "last_value(i)",
                    "nth_value(s, 2)",
                    "sum(n)",
                    "max(j)",
                ]);
                let frame = self.text(&[
                    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
                    "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
                    "ROWS BETWEEN 2 FOLLOWING AND 4 FOLLOWING",
                    "ROWS UNBOUNDED PRECEDING",
                    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
                    "",
                ]);
                format!("{function} OVER ({total} {frame})")
            }
            _ => {
                let function = self.text(&["sum(id)", "count(*)", "min(n)", "max(i)"]);
                let key = self.text(&["i", "n", "id"]);
                let frame = self.text(&[
                    "RANGE BETWEEN 2 PRECEDING AND 2 FOLLOWING",
                    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
                    "RANGE BETWEEN CURRENT ROW AND 1 FOLLOWING",
                    "",
                    "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
                ]);
                let key_direction = self.text(&["", " DESC"]);
                format!("{function} OVER ({partition}ORDER BY {key}{key_direction} {frame})")
            }
        };
        let condition = self.condition(1);
        Statement::new(
            format!("SELECT id, {by} AS c0, {call} AS c1 FROM records WHERE {condition} WINDOW w AS ({total})"),
            false,
        )
    }

    fn joined(&mut self) -> Statement {
        self.over(&["a", "b"]);
        let condition = self.condition(2);
        let left = self.text(&["records a", "(SELECT * FROM records WHERE i > 0) a"]);
        let right = self.text(&["records b", "(SELECT * FROM records WHERE id < 30) b"]);
        let on = match self.dice.below(4) {
            0 => format!("a.i = b.i AND {condition}"),
            1 => "a.s = b.s AND a.b = b.b".to_owned(),
            2 => "a.i = b.id".to_owned(),
            _ => "a.id < b.i".to_owned(),
        };
        match self.dice.below(6) {
            0..=2 => {
                let joins = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "INNER JOIN", "FULL JOIN"];
                // PostgreSQL joins fully by equalities only.
                let equal = on == "a.i = b.id" || on.starts_with("a.s");
                let join = self.text(&joins[..joins.len() - usize::from(!equal)]);
                Statement::new(
                    format!("SELECT a.id AS c0, b.id AS c1, a.s AS c2, b.doc AS c3 FROM {left} {join} {right} ON {on}"),
                    false,
                )
            }
            3 => {
                let join = self.text(&["JOIN", "LEFT JOIN", "INNER JOIN"]);
                let using = self.text(&["i", "s, b", "moment", "id"]);
                let column = using.split(',').next().unwrap();
                Statement::new(
                    format!("SELECT {column} AS c0, a.n AS c1, b.m AS c2 FROM {left} {join} {right} USING ({using})"),
                    false,
                )
            }
            4 => {
                let on = self.text(&["a.i = b.id", "a.s = b.t", "a.i = b.i AND a.n < b.m"]);
                let not = self.text(&["", "NOT "]);
                Statement::new(
                    format!("SELECT a.id, a.j FROM {left} WHERE {not}EXISTS (SELECT 1 FROM {right} WHERE {on})"),
                    false,
                )
            }
            _ => Statement::new(
                format!("SELECT count(*) AS c0, sum(a.i) AS c1 FROM {left}, {right} WHERE {on} AND ({condition})"),
                false,
            ),
        }
    }

    fn combined(&mut self) -> Statement {
        let kinds = [self.kind(), self.kind()];
        let mut side = || {
            let columns: Vec<String> = kinds
                .iter()
                .enumerate()
                .map(|(index, kind)| format!("{} AS c{index}", self.expression(*kind, 1)))
                .collect();
            let condition = self.condition(1);
            format!("SELECT {} FROM records WHERE {condition}", columns.join(", "))
        };
        let (one, two, three) = (side(), side(), side());
        let all = ["UNION ALL", "UNION", "INTERSECT", "EXCEPT"];
        let (first, second) = (self.text(&all), self.text(&all));
        let text = match self.dice.below(4) {
            0 => format!("{one} {first} ({two} {second} {three})"),
            1 => format!("({one} {first} {two}) {second} {three}"),
            2 => format!("SELECT c0, count(*) AS n FROM ({one} {first} {two}) u GROUP BY c0"),
            _ => format!("{one} {first} {two}"),
        };
        Statement::new(text, false)
    }

    fn with(&mut self) -> Statement {
        let (list, condition, aggregate) = (self.list(2), self.condition(2), self.aggregate());
        let text = match self.dice.below(3) {
            0 => format!("WITH q AS (SELECT {list}, id FROM records WHERE {condition}) SELECT * FROM q WHERE id > 10"),
            1 => format!(
                "WITH q AS (SELECT * FROM records WHERE {condition}), r AS (SELECT i AS k, {aggregate} AS c FROM q GROUP BY i) \
                 SELECT q.id, r.c FROM q LEFT JOIN r ON q.i = r.k"
            ),
            _ => format!(
                "WITH q(x, y) AS (SELECT i, {aggregate} FROM records GROUP BY i) \
                 SELECT one.x, other.y FROM q one JOIN q other ON one.x = - other.x WHERE other.x > -5"
            ),
        };
        Statement::new(text, false)
    }

    fn correlated(&mut self) -> Statement {
        let aggregate = self.text(&[
            "count(*)",
            "sum(q.i)",
            "max(q.s)",
            "min(q.n)",
            "avg(q.i)",
            "max(q.moment)",
        ]);
        let on = self.text(&["q.i = r.i", "q.s = r.s", "q.id = r.i", "q.b = r.b AND q.i = r.i"]);
        let text = match self.dice.below(4) {
            0 => format!("SELECT id, (SELECT {aggregate} FROM records q WHERE {on}) AS c FROM records r"),
            1 => format!("SELECT id FROM records r WHERE i >= (SELECT avg(q.i) FROM records q WHERE {on})"),
            2 => format!("SELECT id FROM records r WHERE (SELECT count(*) FROM records q WHERE {on}) > 2"),
            _ => {
                self.over(&["r"]);
                self.with_subqueries();
                let condition = self.condition(3);
                format!(
                    "SELECT r.id, r.j FROM records r WHERE {condition} AND r.id IN (SELECT q.id FROM records q WHERE q.i > 0)"
                )
            }
        };
        Statement::new(text, false)
    }

    /// A statement that is refused or fails.
    fn refused(&mut self) -> Statement {
        let text = match self.dice.below(9) {
            0 => format!(
                "SELECT id FROM records WHERE {} SIMILAR TO 'a(bc)*'",
                self.column(Kind::Text)
            ),
            1 => "SELECT i FROM records INTERSECT ALL SELECT i FROM records WHERE b".to_owned(),
            2 => "SELECT i FROM records EXCEPT ALL SELECT i FROM records WHERE b".to_owned(),
            3 => format!(
                "SELECT i, b.id FROM records a {} JOIN records b USING (i)",
                self.text(&["RIGHT", "FULL"])
            ),
            4 => format!(
                "SELECT count(*) FROM records a NATURAL {} JOIN records b",
                self.text(&["RIGHT", "FULL", "LEFT"])
            ),
            5 => format!(
                "SELECT id FROM records WHERE i {} (SELECT i FROM records WHERE b)",
                self.text(&["> ANY", "<> ANY", "<= SOME", ">= ANY"])
            ),
            6 => format!(
                "SELECT id FROM records WHERE i {} (SELECT i FROM records WHERE b)",
                self.text(&["> ALL", "= ALL", "<= ALL"])
            ),
            7 => "SELECT id, sum(i) OVER (w ORDER BY id) AS c FROM records WINDOW w AS (PARTITION BY b)".to_owned(),
            _ => {
                let text = self.text(&[
                    "SELECT sum(j) AS c FROM records WHERE j > 0",
                    "SELECT b, sum(j) AS c FROM records WHERE j > 0 GROUP BY b",
                    "SELECT id, sum(j) OVER (ORDER BY id) AS c FROM records WHERE j > 0",
                    "SELECT j + 1 AS c FROM records",
                    "SELECT j * 2 AS c FROM records",
                    "SELECT - j AS c FROM records",
                    "SELECT abs(j) AS c FROM records",
                    "SELECT j - 2 AS c FROM records",
                ]);
                return Statement::new(text, false);
            }
        };
        Statement::new(text, false)
    }
}
