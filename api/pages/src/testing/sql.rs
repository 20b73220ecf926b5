//! Samples of the page that asks in SQL.

use types::Version;
use types::contract::{Field, FieldType};
use types::money::MicroUsdc;

use super::dataset::head;
use super::{Book, Texts, person, visitor};
use crate::{
    AnswerColumn, AnswerColumnKind, ChartForm, DatasetHead, DatasetOffer, DatasetTab, Error, SqlAccess, SqlAnswer,
    SqlExample, SqlOutcome, SqlPage, SqlProblem, SqlQuestion, StatementPlace, TableCell,
};

const PATH: &str = "/projects/tide-gauges/sql";

pub(super) fn add(book: &mut Book, texts: &Texts) -> Result<(), Error> {
    let asked = |access: SqlAccess, outcome: SqlOutcome, chart: ChartForm| {
        let chrome = match access {
            SqlAccess::SignedOut => visitor(PATH),
            SqlAccess::UpTo(_) | SqlAccess::Unbought(_) => person(PATH, texts, 0),
        };
        page(texts, chrome, access, outcome, chart)
    };
    let newest = || SqlAccess::UpTo(Version(1_242));
    let fitting = ChartForm::Fitting;
    book.add("sql", &asked(newest(), SqlOutcome::Unasked, fitting))?;
    book.add(
        "sql-visitor",
        &asked(SqlAccess::SignedOut, SqlOutcome::Unasked, fitting),
    )?;
    book.add(
        "sql-older",
        &asked(SqlAccess::UpTo(Version(1_198)), SqlOutcome::Unasked, fitting),
    )?;
    let unbought = SqlAccess::Unbought(MicroUsdc(100_000));
    book.add("sql-unbought", &asked(unbought, SqlOutcome::Unasked, fitting))?;
    let priced = DatasetOffer::Priced {
        price: MicroUsdc(100_000),
        takes_trial_credit: true,
        bought: None,
    };
    let mut unpaid = asked(SqlAccess::SignedOut, SqlOutcome::Unasked, fitting);
    unpaid.head = DatasetHead {
        tab: DatasetTab::Sql,
        ..head(texts, priced, None)
    };
    book.add("sql-visitor-priced", &unpaid)?;
    let bars = SqlOutcome::Answered(Box::new(answer(texts, 9, false)));
    book.add("sql-bars", &asked(newest(), bars, fitting))?;
    let many = SqlOutcome::Answered(Box::new(answer(texts, 30, false)));
    book.add("sql-columns", &asked(newest(), many, ChartForm::Bars))?;
    let line = SqlOutcome::Answered(Box::new(answer(texts, 60, true)));
    book.add("sql-line", &asked(newest(), line, fitting))?;
    let none = SqlOutcome::Answered(Box::new(answer(texts, 0, false)));
    book.add("sql-no-rows", &asked(newest(), none, fitting))?;
    let place = StatementPlace {
        line: 1,
        character: 8,
        before: "SELECT ".to_owned(),
        at: texts.word.clone(),
        behind: format!(", {}", texts.text),
    };
    let wrong = SqlOutcome::Failed(SqlProblem {
        message: format!("There is no column `{}`", texts.word),
        place: Some(place),
        meant: Some(texts.name.clone()),
        can_repeat: false,
    });
    book.add("sql-error", &asked(newest(), wrong, fitting))?;
    let busy = SqlOutcome::Failed(SqlProblem {
        message: "Another question of your account is running. Your statement stays here.".to_owned(),
        place: None,
        meant: None,
        can_repeat: true,
    });
    book.add("sql-running", &asked(newest(), busy, fitting))
}

fn page(texts: &Texts, chrome: crate::PageLayout, access: SqlAccess, outcome: SqlOutcome, chart: ChartForm) -> SqlPage {
    let fields = [
        (texts.word.as_str(), FieldType::String),
        ("at", FieldType::Timestamp),
        ("metres", FieldType::Number),
        ("sensor", FieldType::Json),
    ];
    SqlPage {
        chrome,
        head: DatasetHead {
            tab: DatasetTab::Sql,
            ..head(texts, DatasetOffer::Free, Some(Version(1_242)))
        },
        versions: vec![Version(1_242), Version(1_241), Version(1_198)],
        fields: fields.map(|(name, kind)| Field::new(name, kind)).into(),
        extra: Some("_sluice_extra"),
        examples: vec![SqlExample {
            label: format!("Highest metres by {}", texts.word),
            href: format!("{PATH}?version=1242&q=SELECT"),
        }],
        question: SqlQuestion {
            version: Version(1_242),
            sql: format!("SELECT \"{}\"\nFROM records", texts.text),
            limit: 200,
            chart,
        },
        access,
        outcome,
        limits: vec![200, 1_000],
        most_rows: 1_000,
        most_characters: 4_000,
        seconds: 20,
        formats: &[("csv", "CSV"), ("parquet", "Parquet")],
    }
}

fn answer(texts: &Texts, rows: usize, is_over_time: bool) -> SqlAnswer {
    let kind = if is_over_time {
        AnswerColumnKind::Time
    } else {
        AnswerColumnKind::Text
    };
    let column = |name: &str, kind| AnswerColumn {
        name: name.to_owned(),
        kind,
    };
    let row = |place: usize| {
        let label = if is_over_time {
            TableCell::text(&format!("2026-{:02}-{:02}T00:00:00Z", 10 + place / 30, place % 30 + 1))
        } else {
            TableCell::text(&texts.text)
        };
        let number = match place % 7 {
            6 => TableCell::Null,
            _ => TableCell::literal(&format!("{}.{place:02}", place * 13 % 50)),
        };
        vec![
            label,
            number,
            TableCell::text(""),
            TableCell::literal("{\"a\": [1, null]}"),
        ]
    };
    SqlAnswer {
        version: Version(1_242),
        root: Some("83b4".repeat(16)),
        columns: vec![
            column(&texts.word, kind),
            column("highest", AnswerColumnKind::Number),
            column("note", AnswerColumnKind::Text),
            column("sensor", AnswerColumnKind::Other),
        ],
        rows: (0..rows).map(row).collect(),
        column_count: 4,
        row_count: rows,
        is_cut: rows == 30,
        millis: 210,
        link: format!("https://sluice.example{PATH}?version=1242&q=SELECT+1"),
    }
}
