//! A file for an existing contract: which column fills which field.
//!
//! Invariant: a column that is no field is never left out silently, and a field is filled once.

use std::collections::{HashMap, HashSet};

use types::{Contract, Field};

use crate::infer::{Question, shown};
use crate::names::fold;

/// Decision of a person about a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ColumnChoice {
    /// Nothing.
    #[default]
    Open,
    /// It is left out.
    LeftOut,
    /// It fills the field of this name.
    Named(String),
}

/// A column that looks for its field.
#[derive(Clone, Copy, Debug)]
pub struct FittedColumn<'a> {
    /// Name in the file.
    pub name: &'a str,
    /// Decision of a person.
    pub said: &'a ColumnChoice,
}

/// Outcome for a column.
#[derive(Clone, Debug)]
pub enum ColumnFit<'a> {
    /// It fills a field.
    Field(&'a Field),
    /// It is kept as an extra member of this name.
    Extra(String),
    /// A person left it out.
    LeftOut,
    /// No field has its name.
    Unknown,
    /// Another column fills its field already.
    Taken(&'a Field),
    /// A person named a field that the contract has not.
    NoField(String),
}

impl<'a> ColumnFit<'a> {
    /// Returns the field that the column fills.
    pub const fn field(&self) -> Option<&'a Field> {
        match self {
            Self::Field(field) => Some(field),
            _ => None,
        }
    }

    /// Returns the name of the member that gets the values.
    pub fn into_name(self) -> Option<String> {
        match self {
            Self::Field(field) => Some(field.name.clone()),
            Self::Extra(name) => Some(name),
            Self::LeftOut | Self::Unknown | Self::Taken(_) | Self::NoField(_) => None,
        }
    }

    /// Returns the question that is open, for the column with this name in the file.
    pub fn question(&self, column: &str) -> Option<Question> {
        let (code, message) = match self {
            Self::Field(_) | Self::Extra(_) | Self::LeftOut => return None,
            Self::Unknown if column.is_empty() => (
                "unknown_column",
                "a column without a name is no field of the dataset".to_owned(),
            ),
            Self::Unknown => (
                "unknown_column",
                format!("column `{}` is no field of the dataset", shown(column)),
            ),
            Self::Taken(field) => (
                "name_twice",
                format!(
                    "column `{}` would fill `{}`, which another column fills",
                    shown(column),
                    field.name
                ),
            ),
            Self::NoField(name) => ("unknown_field", format!("`{}` is no field of the dataset", shown(name))),
        };
        Some(
            Question::new(code, message)
                .column(column)
                .remedy("--ignore", &[column], ""),
        )
    }
}

/// Finds the field of each column: that of its name, else that of its folded name, else that whose title is its name.
pub fn fit_columns<'a, 'b>(
    columns: impl IntoIterator<Item = FittedColumn<'b>>,
    contract: &'a Contract,
) -> Vec<ColumnFit<'a>> {
    let fields = contract.fields();
    let mut by_name: HashMap<String, &Field> = HashMap::new();
    // The later ones count more.
    for field in fields {
        if let Some(title) = &field.title {
            by_name.insert(title.clone(), field);
        }
    }
    for field in fields {
        by_name.insert(fold(&field.name, 0), field);
    }
    for field in fields {
        by_name.insert(field.name.clone(), field);
    }
    let columns: Vec<FittedColumn<'b>> = columns.into_iter().collect();
    // A column of just the name has the field before one of a similar name.
    let exact: HashSet<&str> = columns
        .iter()
        .filter_map(|column| match column.said {
            ColumnChoice::Open => Some(column.name.trim()),
            ColumnChoice::LeftOut => None,
            ColumnChoice::Named(name) => Some(name),
        })
        .filter(|name| fields.iter().any(|field| field.name == *name))
        .collect();
    let mut filled = HashSet::new();
    let mut fit = |column: &FittedColumn<'b>| {
        let name = match column.said {
            ColumnChoice::LeftOut => return ColumnFit::LeftOut,
            ColumnChoice::Named(name) => name,
            ColumnChoice::Open => column.name.trim(),
        };
        let is_said = *column.said != ColumnChoice::Open;
        let found = if is_said || exact.contains(name) {
            fields.iter().find(|field| field.name == name)
        } else {
            let found = by_name.get(name).or_else(|| by_name.get(&fold(name, 0))).copied();
            found.filter(|field| !exact.contains(field.name.as_str()))
        };
        match found {
            Some(field) if filled.insert(field.name.as_str()) => ColumnFit::Field(field),
            Some(field) => ColumnFit::Taken(field),
            None if contract.allow_extra() => ColumnFit::Extra(name.to_owned()),
            None if is_said => ColumnFit::NoField(name.to_owned()),
            None => ColumnFit::Unknown,
        }
    };
    columns.iter().map(&mut fit).collect()
}

#[cfg(test)]
mod tests {
    use types::FieldType;

    use super::*;

    fn fitted(columns: &[&str], allow_extra: bool) -> Vec<String> {
        let mut height = Field::new("elevation_m", FieldType::Number);
        height.title = Some("Höhe".to_owned());
        let fields = vec![Field::new("Station ID".replace(' ', "_"), FieldType::String), height];
        let contract = Contract::new(fields, allow_extra).unwrap();
        let columns = columns.iter().map(|name| FittedColumn {
            name,
            said: &ColumnChoice::Open,
        });
        let fits = fit_columns(columns, &contract);
        fits.into_iter()
            .map(|fit| fit.into_name().unwrap_or_default())
            .collect()
    }

    #[test]
    fn a_column_finds_its_field_by_name_by_folded_name_or_by_title() {
        assert_eq!(
            fitted(&["Station_ID", "elevation_m"], false),
            ["Station_ID", "elevation_m"]
        );
        assert_eq!(
            fitted(&["Station ID", "Elevation (m)"], false),
            ["Station_ID", "elevation_m"]
        );
        assert_eq!(fitted(&["station-id", "Höhe"], false), ["Station_ID", "elevation_m"]);
        assert_eq!(fitted(&["Operator"], false), [""]);
        assert_eq!(fitted(&["Operator"], true), ["Operator"]);
    }

    #[test]
    fn a_field_is_filled_once_and_by_the_column_of_just_its_name() {
        assert_eq!(fitted(&["Elevation (m)", "elevation_m"], false), ["", "elevation_m"]);
        assert_eq!(fitted(&["Elevation (m)", "Höhe"], false), ["elevation_m", ""]);
    }

    #[test]
    fn what_no_field_takes_is_asked_with_the_flag_that_leaves_it_out() {
        let contract = Contract::new(vec![Field::new("a", FieldType::String)], false).unwrap();
        let fits = fit_columns(
            [FittedColumn {
                name: "Operator",
                said: &ColumnChoice::Open,
            }],
            &contract,
        );
        let question = fits[0].question("Operator").unwrap();
        assert_eq!(question.remedies[0].command.as_deref(), Some("--ignore 'Operator'"));
        let named = ColumnChoice::Named("b".to_owned());
        let said = FittedColumn {
            name: "Operator",
            said: &named,
        };
        assert!(matches!(fit_columns([said], &contract)[0], ColumnFit::NoField(_)));
        let said = FittedColumn {
            name: "Operator",
            said: &ColumnChoice::LeftOut,
        };
        assert!(fit_columns([said], &contract)[0].question("Operator").is_none());
    }
}
