use super::*;

fn fields() -> Vec<Field> {
    let kinds = [
        ("na\"me", FieldType::String),
        ("Count", FieldType::Integer),
        ("metres", FieldType::Number),
        ("open", FieldType::Boolean),
        ("at", FieldType::Timestamp),
        ("day", FieldType::Date),
        ("paid", FieldType::Decimal(2)),
        ("more", FieldType::Json),
    ];
    kinds.into_iter().map(|(name, kind)| Field::new(name, kind)).collect()
}

/// Returns the condition of a filter, or why there is none.
fn of(column: usize, operator: FilterOperator, value: &str) -> Result<String, String> {
    RowFilter::new(column, &fields()[column], operator, value).map(|filter| filter.condition)
}

#[test]
fn a_value_cannot_leave_its_quotes_and_a_name_cannot_leave_its_own() {
    use FilterOperator::{Contains, Is, IsNot, IsNull};
    assert_eq!(of(0, Is, "x' OR '1'='1").unwrap(), "\"na\"\"me\" = 'x'' OR ''1''=''1'");
    assert_eq!(of(0, Is, "").unwrap(), "\"na\"\"me\" = ''", "the empty text is a value");
    assert_eq!(
        of(0, Is, " a ").unwrap(),
        "\"na\"\"me\" = ' a '",
        "blanks of a text count"
    );
    assert_eq!(of(0, IsNot, "a").unwrap(), "(\"na\"\"me\" IS DISTINCT FROM 'a')");
    assert_eq!(of(0, Contains, "50%_\\'").unwrap(), r#""na""me" LIKE '%50\%\_\\''%'"#);
    assert_eq!(of(7, Contains, "a").unwrap(), "\"more\" LIKE '%a%'");
    assert_eq!(of(7, IsNull, "anything").unwrap(), "\"more\" IS NULL");
}

#[test]
fn a_value_is_parsed_as_the_type_of_its_column() {
    use FilterOperator::{Greater, Is, Less};
    for (column, value, literal) in [
        (1, "-9223372036854775808", "CAST('-9223372036854775808' AS BIGINT)"),
        (1, " 007 ", "CAST('7' AS BIGINT)"),
        (2, "-12.5", "CAST('-1.25e1' AS DOUBLE PRECISION)"),
        (2, "1e308", "CAST('1e308' AS DOUBLE PRECISION)"),
        (4, "2026-05-01", "CAST('2026-05-01T00:00:00Z' AS TIMESTAMPTZ)"),
        (4, "2026-05-01 08:30", "CAST('2026-05-01T08:30:00Z' AS TIMESTAMPTZ)"),
        (
            4,
            "2026-05-01T08:30:00+02:00",
            "CAST('2026-05-01T06:30:00Z' AS TIMESTAMPTZ)",
        ),
        (5, "2024-02-29", "CAST('2024-02-29' AS DATE)"),
        (6, "-0.5", "CAST('-0.50' AS DECIMAL(28, 2))"),
    ] {
        let name = &fields()[column].name;
        assert_eq!(of(column, Greater, value).unwrap(), format!("\"{name}\" > {literal}"));
        assert_eq!(of(column, Less, value).unwrap(), format!("\"{name}\" < {literal}"));
        assert_eq!(of(column, Is, value).unwrap(), format!("\"{name}\" = {literal}"));
    }
    assert_eq!(of(3, Is, "true").unwrap(), "\"open\" = TRUE");
    for (column, value) in [
        (1, "1.5"),
        (1, "9223372036854775808"),
        (1, ""),
        (1, "1; DROP TABLE records"),
        (2, "NaN"),
        (2, "inf"),
        (2, "1' OR 1=1"),
        (3, "yes"),
        (4, "yesterday"),
        (4, "2026-02-30"),
        (5, "2023-02-29"),
        (6, "1.234"),
    ] {
        assert!(of(column, Is, value).is_err(), "{column} {value}");
    }
}

#[test]
fn a_comparison_that_a_type_has_not_is_refused_in_words() {
    use FilterOperator::{Contains, Greater, Is, Less};
    for (column, operator) in [
        (1, Contains),
        (4, Contains),
        (3, Less),
        (3, Greater),
        (7, Is),
        (7, Less),
    ] {
        let said = of(column, operator, "true").unwrap_err();
        assert!(said.starts_with('“') || said.starts_with('a'), "{said}");
    }
}

#[test]
fn an_order_ends_with_the_place_of_the_row() {
    let fields = fields();
    let filter = RowFilter::new(0, &fields[0], FilterOperator::Is, "a").unwrap();
    let mut asked = AskedRows {
        columns: vec![0, 2],
        filters: Vec::new(),
        order: Some((2, ColumnOrder::Descending)),
        offset: 50,
        limit: 50,
    };
    assert!(asked.needs_statement());
    assert_eq!(
        asked.statement(&fields),
        "SELECT \"na\"\"me\", \"metres\", \"_sluice_version\", \"_sluice_ordinal\" FROM records ORDER BY \"metres\" DESC \
         NULLS LAST, \"_sluice_version\", \"_sluice_ordinal\" OFFSET 50"
    );
    asked.order = None;
    asked.filters = vec![filter.clone(), filter];
    assert_eq!(
        asked.statement(&fields),
        "SELECT \"na\"\"me\", \"metres\", \"_sluice_version\", \"_sluice_ordinal\", (SELECT count(*) FROM records WHERE \
         \"na\"\"me\" = 'a' AND \"na\"\"me\" = 'a') FROM records WHERE \"na\"\"me\" = 'a' AND \"na\"\"me\" = 'a' ORDER BY \
         \"_sluice_version\", \"_sluice_ordinal\" OFFSET 50"
    );
    asked.filters.clear();
    assert!(!asked.needs_statement());
}

#[test]
fn a_person_asks_the_same_without_the_places() {
    let fields = fields();
    let mut asked = AskedRows {
        columns: (0..fields.len()).collect(),
        filters: vec![RowFilter::new(0, &fields[0], FilterOperator::Is, "it's").unwrap()],
        order: Some((1, ColumnOrder::Ascending)),
        offset: 50,
        limit: 50,
    };
    assert_eq!(
        asked.question(&fields),
        "SELECT *\nFROM records\nWHERE \"na\"\"me\" = 'it''s'\nORDER BY \"Count\" ASC NULLS LAST"
    );
    asked.filters.clear();
    asked.columns = vec![0, 2];
    assert_eq!(
        asked.question(&fields),
        "SELECT \"na\"\"me\", \"metres\"\nFROM records\nORDER BY \"Count\" ASC NULLS LAST"
    );
}

#[test]
fn every_comparison_has_its_words() {
    for (word, words) in OPERATORS {
        assert_eq!(FilterOperator::of(word).unwrap().words(), (*word, *words));
    }
    assert_eq!(FilterOperator::of("like"), None);
}
