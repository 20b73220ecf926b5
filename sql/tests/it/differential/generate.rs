//! Expressions by chance, of known types.
//!
//! Invariant: where the sandbox writes the same thing differently, a statement has `«ours|theirs»`. Nothing divides by
//! zero, and a double is divided, added and multiplied in quarters only, so that no order of rows changes a result.

/// Chance with a seed (`SplitMix64`).
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number less than `bound`.
    pub(super) const fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// One of these.
    pub(super) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let index = usize::try_from(self.below(of.len() as u64)).unwrap();
        &of[index]
    }
}

/// One statement in two dialects.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    text: String,
    /// Its rows have one order only.
    pub(super) ordered: bool,
}

impl Statement {
    pub(super) const fn new(text: String, ordered: bool) -> Self {
        Self { text, ordered }
    }

    /// The text for the sandbox.
    pub(super) fn ours(&self) -> String {
        self.written(|ours, _| ours)
    }

    /// The text for `PostgreSQL`.
    pub(super) fn theirs(&self) -> String {
        self.written(|_, theirs| theirs)
    }

    fn written(&self, which: impl for<'a> Fn(&'a str, &'a str) -> &'a str) -> String {
        let mut out = String::new();
        let mut rest = &*self.text;
        while let Some((before, after)) = rest.split_once('«') {
            let (both, after) = after.split_once('»').unwrap();
            let (ours, theirs) = both.split_once('|').unwrap();
            out += before;
            out += which(ours, theirs);
            rest = after;
        }
        out + rest
    }
}

/// The type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Whole,
    Number,
    Text,
    Yes,
    Time,
    Day,
}

pub(super) const KINDS: [Kind; 6] = [Kind::Whole, Kind::Number, Kind::Text, Kind::Yes, Kind::Time, Kind::Day];

/// Expressions over one table, or over the columns of several.
#[derive(Debug)]
pub(super) struct Generator {
    pub(super) dice: Dice,
    /// Columns that can be used, by type.
    columns: Vec<(Kind, String)>,
    /// Subqueries may be used in conditions.
    subqueries: bool,
}

impl Generator {
    pub(super) fn new(dice: Dice) -> Self {
        let mut generator = Self {
            dice,
            columns: Vec::new(),
            subqueries: false,
        };
        generator.over(&[""]);
        generator
    }

    /// Uses the columns of these tables.
    pub(super) fn over(&mut self, tables: &[&str]) {
        self.columns.clear();
        for table in tables {
            let dot = if table.is_empty() { "" } else { "." };
            for (kind, name) in [
                (Kind::Whole, "id"),
                (Kind::Whole, "i"),
                (Kind::Number, "n"),
                (Kind::Number, "m"),
                (Kind::Number, "amount"),
                (Kind::Text, "s"),
                (Kind::Text, "t"),
                (Kind::Yes, "b"),
                (Kind::Time, "moment"),
                (Kind::Day, "day"),
            ] {
                self.columns.push((kind, format!("{table}{dot}{name}")));
            }
        }
        self.subqueries = false;
    }

    /// Lets conditions have subqueries.
    pub(super) const fn with_subqueries(&mut self) {
        self.subqueries = true;
    }

    pub(super) fn kind(&mut self) -> Kind {
        *self.dice.pick(&KINDS)
    }

    pub(super) fn text(&mut self, of: &[&str]) -> String {
        (*self.dice.pick(of)).to_owned()
    }

    /// A column of this type.
    pub(super) fn column(&mut self, kind: Kind) -> String {
        let columns: Vec<String> = self
            .columns
            .iter()
            .filter(|(of, _)| *of == kind)
            .map(|(_, name)| name.clone())
            .collect();
        self.dice.pick(&columns).clone()
    }

    fn literal(&mut self, kind: Kind) -> String {
        match kind {
            Kind::Whole => (i64::try_from(self.dice.below(13)).unwrap() - 6).to_string(),
            Kind::Number => self.text(&["1.25", "0.5", "-2.75", "0.0", "CAST('10.5' AS DOUBLE PRECISION)"]),
            Kind::Text => self.text(&["''", "'a'", "'ab'", "'B'", "'日本'", "'a_b'", "'10'", "'it''s'"]),
            Kind::Yes => self.text(&["true", "false"]),
            Kind::Time => self.text(&[
                "TIMESTAMP '2024-02-29 12:00:00'",
                "TIMESTAMP '1970-01-01 00:00:00'",
                "TIMESTAMP '2026-01-01 06:00:00.000001'",
            ]),
            Kind::Day => self.text(&["DATE '2024-02-29'", "DATE '1970-01-01'", "DATE '2026-01-01'"]),
        }
    }

    /// An expression of this type.
    pub(super) fn expression(&mut self, kind: Kind, depth: u32) -> String {
        if depth == 0 || self.dice.below(5) == 0 {
            return match self.dice.below(8) {
                0..=5 => self.column(kind),
                6 => self.literal(kind),
                _ => self.null(kind),
            };
        }
        let depth = depth - 1;
        match self.dice.below(7) {
            0 => {
                let (condition, yes, no) = (
                    self.condition(depth),
                    self.expression(kind, depth),
                    self.expression(kind, depth),
                );
                let otherwise = *self.dice.pick(&["", " ELSE "]);
                let no = if otherwise.is_empty() { "" } else { &*no };
                format!("CASE WHEN {condition} THEN {yes}{otherwise}{no} END")
            }
            1 => {
                let (one, other) = (self.expression(kind, depth), self.expression(kind, depth));
                let function = if matches!(kind, Kind::Yes) {
                    "coalesce"
                } else {
                    *self.dice.pick(&["coalesce", "nullif", "greatest", "least"])
                };
                format!("{function}({one}, {other})")
            }
            _ => match kind {
                Kind::Whole => self.whole(depth),
                Kind::Number => self.number(depth),
                Kind::Text => self.words(depth),
                Kind::Yes => format!("({})", self.condition(depth)),
                Kind::Time => self.time(depth),
                Kind::Day => self.day(depth),
            },
        }
    }

    fn null(&mut self, kind: Kind) -> String {
        let of = match kind {
            Kind::Whole => "BIGINT",
            Kind::Number => "DOUBLE PRECISION",
            Kind::Text => "VARCHAR",
            Kind::Yes => "BOOLEAN",
            Kind::Time => "TIMESTAMP",
            Kind::Day => "DATE",
        };
        if self.dice.below(3) == 0 {
            return self.literal(kind);
        }
        format!("CAST(NULL AS {of})")
    }

    fn whole(&mut self, depth: u32) -> String {
        let one = self.expression(Kind::Whole, depth);
        match self.dice.below(18) {
            0..=2 => format!(
                "({one} {} {})",
                self.text(&["+", "-", "*"]),
                self.expression(Kind::Whole, depth)
            ),
            3 => format!("({one} / nullif({}, 0))", self.expression(Kind::Whole, depth)),
            4 => format!("({one} % nullif({}, 0))", self.expression(Kind::Whole, depth)),
            5 => format!("(- {one})"),
            6 => format!("abs({one})"),
            7 => format!("length({})", self.expression(Kind::Text, depth)),
            8 => format!(
                "strpos({}, {})",
                self.expression(Kind::Text, depth),
                self.text(&["'a'", "'本'", "'b'"])
            ),
            9 => {
                let part = self.text(&[
                    "year", "month", "day", "hour", "minute", "dow", "doy", "quarter", "week",
                ]);
                format!(
                    "CAST(extract({part} FROM {}) AS BIGINT)",
                    self.expression(Kind::Time, depth)
                )
            }
            10 => format!("CAST({} AS INTEGER)", self.expression(Kind::Yes, depth)),
            11 => format!("CAST({} AS BIGINT)", self.expression(Kind::Number, depth)),
            12 => format!("char_length({})", self.column(Kind::Text)),
            13 => format!("({one} & {})", self.expression(Kind::Whole, depth)),
            14 => format!("CAST(«signum|sign»({one}) AS BIGINT)"),
            15 => {
                let (one, other) = (self.expression(Kind::Day, depth), self.expression(Kind::Day, depth));
                format!("CAST({one} - {other} AS BIGINT)")
            }
            16 => {
                let part = self.text(&["year", "month", "day", "dow", "doy"]);
                format!(
                    "CAST(extract({part} FROM {}) AS BIGINT)",
                    self.expression(Kind::Day, depth)
                )
            }
            _ => format!("octet_length({})", self.column(Kind::Text)),
        }
    }

    fn number(&mut self, depth: u32) -> String {
        let one = self.expression(Kind::Number, depth);
        match self.dice.below(14) {
            0..=2 => format!(
                "({one} {} {})",
                self.text(&["+", "-", "*"]),
                self.expression(Kind::Number, depth)
            ),
            3 => format!("({one} / nullif({}, 0.0))", self.expression(Kind::Number, depth)),
            4 => format!("(- {one})"),
            5 => format!(
                "{}({one})",
                self.text(&["abs", "floor", "ceil", "round", "trunc", "«signum|sign»"])
            ),
            6 => format!("CAST({} AS DOUBLE PRECISION)", self.expression(Kind::Whole, depth)),
            7 => format!(
                "({one} {} {})",
                self.text(&["+", "*"]),
                self.expression(Kind::Whole, depth)
            ),
            8 => format!("sqrt(abs({one}))"),
            9 => format!("round(CAST({one} AS NUMERIC), {})", self.dice.below(3)),
            10 => format!(
                "CAST({} AS DOUBLE PRECISION)",
                self.text(&["'1.5'", "'-0.25'", "'1e3'"])
            ),
            11 => {
                let (whole, operator) = (self.expression(Kind::Whole, depth), self.text(&["*", "+", "/"]));
                format!("({whole} {operator} {})", self.text(&["2.0", "0.4", "-1.25"]))
            }
            12 => format!(
                "extract({} FROM {})",
                self.text(&["hour", "dow", "month"]),
                self.expression(Kind::Time, depth)
            ),
            _ => format!("power({one}, 2)"),
        }
    }

    fn words(&mut self, depth: u32) -> String {
        let one = self.expression(Kind::Text, depth);
        match self.dice.below(18) {
            0 | 1 => format!("({one} || {})", self.expression(Kind::Text, depth)),
            2 => format!(
                "{}({one})",
                self.text(&["upper", "lower", "trim", "ltrim", "rtrim", "reverse"])
            ),
            3 => format!("substr({one}, {}, {})", self.dice.below(5), self.dice.below(4)),
            4 => format!(
                "substring({one} FROM {} FOR {})",
                1 + self.dice.below(3),
                self.dice.below(4)
            ),
            5 => format!(
                "replace({one}, {}, {})",
                self.text(&["'a'", "'本'", "''"]),
                self.literal(Kind::Text)
            ),
            6 => format!(
                "{}({one}, {})",
                self.text(&["left", "right"]),
                self.text(&["0", "1", "2", "-1"])
            ),
            7 => format!("concat({one}, {}, '-')", self.expression(Kind::Text, depth)),
            8 => format!("concat_ws('/', {one}, {})", self.expression(Kind::Text, depth)),
            9 => format!(
                "split_part({one}, {}, {})",
                self.text(&["'b'", "'_'"]),
                self.text(&["1", "2", "3", "-1"])
            ),
            10 => format!("CAST({} AS VARCHAR)", self.expression(Kind::Whole, depth)),
            11 => format!("CAST({} AS VARCHAR)", self.expression(Kind::Yes, depth)),
            12 => format!("translate({one}, 'ab', 'x')"),
            13 => format!("trim({} 'a' FROM {one})", self.text(&["BOTH", "LEADING", "TRAILING"])),
            14 => format!("regexp_replace({one}, '[ab]+', 'z')"),
            15 => format!(
                "to_char({}, {})",
                self.column(Kind::Time),
                self.text(&[
                    "«'%Y-%m-%d'|'YYYY-MM-DD'»",
                    "«'%H:%M:%S'|'HH24:MI:SS'»",
                    "«'%j %b %a'|'DDD Mon Dy'»"
                ])
            ),
            16 => format!("CAST(CAST({} AS DATE) AS VARCHAR)", self.expression(Kind::Time, depth)),
            _ => format!("CAST({} AS VARCHAR)", self.column(Kind::Text)),
        }
    }

    fn time(&mut self, depth: u32) -> String {
        let one = self.expression(Kind::Time, depth);
        match self.dice.below(4) {
            0 | 1 => {
                let unit = self.text(&["year", "quarter", "month", "week", "day", "hour", "minute", "second"]);
                format!("date_trunc('{unit}', {one})")
            }
            2 => {
                let interval = self.text(&["1 day", "90 minutes", "1 month", "2 years", "1 second", "36 hours"]);
                format!("({one} {} INTERVAL '{interval}')", self.text(&["+", "-"]))
            }
            _ => format!("CAST(CAST({one} AS DATE) AS TIMESTAMP)"),
        }
    }

    fn day(&mut self, depth: u32) -> String {
        match self.dice.below(4) {
            0 | 1 => {
                let one = self.expression(Kind::Day, depth);
                format!("({one} {} {})", self.text(&["+", "-"]), self.dice.below(400))
            }
            2 => format!("CAST({} AS DATE)", self.expression(Kind::Time, depth)),
            _ => format!("CAST(CAST({} AS VARCHAR) AS DATE)", self.expression(Kind::Day, depth)),
        }
    }

    /// A condition.
    pub(super) fn condition(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.column(Kind::Yes);
        }
        let kind = self.kind();
        let depth = depth - 1;
        let choice = self.dice.below(if self.subqueries { 22 } else { 17 });
        if (9..=12).contains(&choice) {
            return self.like(depth);
        }
        let one = self.expression(kind, depth);
        match choice {
            0..=3 => {
                let operator = self.text(&[
                    "=",
                    "<>",
                    "<",
                    "<=",
                    ">",
                    ">=",
                    "IS DISTINCT FROM",
                    "IS NOT DISTINCT FROM",
                ]);
                format!("{one} {operator} {}", self.expression(kind, depth))
            }
            4 => format!("{one} IS {}NULL", self.text(&["", "NOT "])),
            5 => format!(
                "{one} {}BETWEEN {} AND {}",
                self.text(&["", "NOT "]),
                self.expression(kind, depth),
                self.expression(kind, depth)
            ),
            6 => {
                let null = *self.dice.pick(&["", ", NULL"]);
                format!(
                    "{one} {}IN ({}, {}{null})",
                    self.text(&["", "NOT "]),
                    self.literal(kind),
                    self.expression(kind, depth)
                )
            }
            7 => format!("NOT ({})", self.condition(depth)),
            8 => {
                let test = self.text(&["TRUE", "FALSE", "NOT TRUE", "NOT FALSE"]);
                format!("({}) IS {test}", self.condition(depth))
            }
            13..=15 => {
                let operator = self.text(&["AND", "OR"]);
                format!("({}) {operator} ({})", self.condition(depth), self.condition(depth))
            }
            16 => {
                let (one, other) = (self.simple(), self.simple());
                let (first, second) = (
                    self.text(&["AND", "OR"]),
                    self.text(&["AND NOT", "OR NOT", "AND", "OR"]),
                );
                format!("{} {first} {one} {second} {other}", self.simple())
            }
            17 | 18 => {
                let condition = self.inner(depth);
                let column = Self::inner_column(kind);
                format!(
                    "{one} {}IN (SELECT {column} FROM records q WHERE {condition})",
                    self.text(&["", "NOT "])
                )
            }
            19 => format!(
                "EXISTS (SELECT 1 FROM records q WHERE q.i = {} AND {})",
                self.column(Kind::Whole),
                self.inner(depth)
            ),
            20 => format!(
                "NOT EXISTS (SELECT 1 FROM records q WHERE q.s = {} AND {})",
                self.column(Kind::Text),
                self.inner(depth)
            ),
            _ => {
                let condition = self.inner(depth);
                let column = Self::inner_column(kind);
                let each = self.text(&["= ANY", "<> ALL", "= SOME"]);
                format!("{one} {each} (SELECT {column} FROM records q WHERE {condition})")
            }
        }
    }

    /// A condition without brackets.
    fn simple(&mut self) -> String {
        let kind = self.kind();
        let (one, other) = (self.column(kind), self.column(kind));
        match self.dice.below(5) {
            0 => self.column(Kind::Yes),
            1 => format!("{one} IS {}NULL", self.text(&["", "NOT "])),
            2 => format!(
                "{one} {}BETWEEN {other} AND {}",
                self.text(&["", "NOT "]),
                self.column(kind)
            ),
            3 => format!("{one} IN ({other}, {})", self.literal(kind)),
            _ => format!("{one} {} {other}", self.text(&["=", "<>", "<", ">="])),
        }
    }

    const fn inner_column(kind: Kind) -> &'static str {
        match kind {
            Kind::Whole => "q.i",
            Kind::Number => "q.n",
            Kind::Text => "q.s",
            Kind::Yes => "q.b",
            Kind::Time => "q.moment",
            Kind::Day => "q.day",
        }
    }

    /// A condition over the table of a subquery.
    fn inner(&mut self, depth: u32) -> String {
        let mut inner = Self::new(self.dice.clone());
        inner.over(&["q"]);
        let condition = inner.condition(depth.min(1));
        self.dice = inner.dice;
        condition
    }

    fn like(&mut self, depth: u32) -> String {
        let one = self.expression(Kind::Text, depth);
        match self.dice.below(6) {
            0..=2 => {
                let pattern = self.text(&["'a%'", "'%b'", "'_'", "'%'", "''", "'a_b'", "'%本%'", "'A%'", "'__%'"]);
                format!(
                    "{one} {} {pattern}",
                    self.text(&["LIKE", "NOT LIKE", "ILIKE", "NOT ILIKE"])
                )
            }
            3 => format!("{one} LIKE 'a\\_%' ESCAPE '\\'"),
            4 => format!("starts_with({one}, 'a')"),
            _ => format!("regexp_like({one}, {})", self.text(&["'^a'", "'[0-9]+$'", "'b'"])),
        }
    }
}
