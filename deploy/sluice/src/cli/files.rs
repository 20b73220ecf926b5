//! Arguments of the commands that read a file of records: `infer`, `create` and `push`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::remote::RemoteService;

/// Options of `infer`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  sluice infer stations.csv
  sluice infer stations.csv --json > reading.json && sluice push stations.csv --create --reading reading.json")]
pub struct InferArgs {
    /// The file, or `-` for standard input
    pub file: PathBuf,
    /// Print one JSON object: columns, contract, reading, notes, questions
    #[arg(long)]
    pub json: bool,
    /// Options of the reading.
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// The service that the command talks to.
    #[command(flatten)]
    pub remote: RemoteService,
}

/// Options of `create`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  sluice create stations --like stations.csv --public --license CC-BY-4.0
  sluice create tides --schema contract.json --paid 0.10 --yes")]
pub struct CreateArgs {
    /// The project's slug
    pub slug: String,
    /// A file whose records the project is for; none of them is sent
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "schema",
        conflicts_with = "schema"
    )]
    pub like: Option<PathBuf>,
    /// The contract as JSON: a file, or the text itself
    #[arg(long, value_name = "JSON")]
    pub schema: Option<String>,
    /// Create it without asking
    #[arg(long)]
    pub yes: bool,
    /// Print the project as JSON
    #[arg(long)]
    pub json: bool,
    /// Options of the project.
    #[command(flatten)]
    pub project: ProjectArgs,
    /// Options of the reading.
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// The service that the command talks to.
    #[command(flatten)]
    pub remote: RemoteService,
}

/// Options of `push`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  sluice push stations.csv --create
  sluice push december.csv --project stations --dry-run
  sluice push visits.jsonl --project visits --on-refused drop --refused left-out.jsonl
  curl -s https://api.example/items | sluice push - --create --project items --records /data/items --yes")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct PushArgs {
    /// The file, or `-` for standard input: CSV and its like, JSON, JSON Lines, Parquet, Arrow or XLSX
    pub file: PathBuf,
    /// The project's slug; with `--create`, of the new one [default: from the file's name]
    #[arg(long, value_name = "SLUG", required_unless_present = "create")]
    pub project: Option<String>,
    /// Create the project, private unless told
    #[arg(long)]
    pub create: bool,
    /// Create the project without asking
    #[arg(long, requires = "create")]
    pub yes: bool,
    /// End after the check, and send nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Effect of refused records: they reject the file, or are left out unless they are more than half
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    pub on_refused: RefusedEffect,
    /// File that gets the refused records, as they are in the file
    #[arg(long, value_name = "FILE", conflicts_with = "no_check")]
    pub refused: Option<PathBuf>,
    /// Send without judging the records on this machine first
    #[arg(long, conflicts_with = "dry_run")]
    pub no_check: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Options of a new project.
    #[command(flatten)]
    pub new: ProjectArgs,
    /// Options of the reading.
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Compress with gzip before sending
    #[arg(long)]
    pub gzip: bool,
    /// The source of the records: what was measured, where and when, or whose work it is
    #[arg(long, value_name = "TEXT")]
    pub source: Option<String>,
    /// Size of a part; larger for a file that would have more than 1000 parts
    #[arg(long, value_name = "SIZE", default_value = "8MiB")]
    pub part_size: types::Size,
    /// Folder for the state of pushes [default: `$XDG_STATE_HOME/sluice/push`]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// The service that the command talks to.
    #[command(flatten)]
    pub remote: RemoteService,
}

/// Effect of refused records on the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum RefusedEffect {
    /// None is merged
    #[default]
    Reject,
    /// They are left out
    Drop,
}

/// Options of a new project.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "New project")]
pub struct ProjectArgs {
    /// Title, 4 to 140 characters [default: from the name]
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// File with the readme, 20 to 20,000 characters [default: source, rows and fields]
    #[arg(long, value_name = "FILE")]
    pub readme: Option<PathBuf>,
    /// Id of a licence, such as CC-BY-4.0; `GET /licenses` lists them
    #[arg(long, value_name = "ID")]
    pub license: Option<String>,
    /// Tags, at most 8, with commas between them
    #[arg(long, value_name = "TAGS", value_delimiter = ',')]
    pub tags: Vec<String>,
    /// Everybody sees and reads it; for good
    #[arg(long, conflicts_with = "paid")]
    pub public: bool,
    /// Everybody sees it, and pays to read a version: dollars, or the platform's price
    #[arg(long, value_name = "PRICE", num_args = 0..=1, default_missing_value = "")]
    pub paid: Option<String>,
}

/// Options of a reading. Without them the content of the file decides.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Reading")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct ReadingArgs {
    /// Form of a text: csv, json or json-lines
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,
    /// Character between cells; `tab` for a tab
    #[arg(long, value_name = "CHAR")]
    pub delimiter: Option<String>,
    /// Character around cells; `none` if quotes are plain characters
    #[arg(long, value_name = "CHAR")]
    pub quote: Option<String>,
    /// Sign for a quote within quotes: double or backslash
    #[arg(long, value_name = "HOW")]
    pub escape: Option<String>,
    /// Encoding of the text, such as windows-1252
    #[arg(long, value_name = "LABEL")]
    pub encoding: Option<String>,
    /// The first line is a record
    #[arg(long)]
    pub no_header: bool,
    /// Numbers of lines that are no data, such as 1,2,904
    #[arg(long, value_name = "LINES")]
    pub skip_lines: Vec<String>,
    /// Numbers have a decimal comma
    #[arg(long)]
    pub decimal_comma: bool,
    /// Sheet of a workbook
    #[arg(long, value_name = "NAME")]
    pub sheet: Option<String>,
    /// JSON pointer of the records in a document
    #[arg(long, value_name = "POINTER")]
    pub records: Option<String>,
    /// The records are the members of an object, and get their name as this field
    #[arg(long, value_name = "FIELD", num_args = 0..=1, default_missing_value = "key")]
    pub members: Option<String>,
    /// A word that means null, in a column or in all of them
    #[arg(long, value_name = "[COLUMN=]WORD", allow_hyphen_values = true)]
    pub null: Vec<String>,
    /// A quoted empty cell is the empty text
    #[arg(long)]
    pub empty_text: bool,
    /// Zone of times without an offset, such as Europe/Oslo or +01:00
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    pub zone: Option<String>,
    /// Type of a column, and the form of its values, such as opened=date:%d.%m.%Y
    #[arg(long, value_name = "COLUMN=TYPE[:FORM]")]
    pub types: Vec<String>,
    /// Another name for a column, such as "Station ID=station"
    #[arg(long, value_name = "COLUMN=FIELD")]
    pub rename: Vec<String>,
    /// A column that is left out
    #[arg(long, value_name = "COLUMN")]
    pub ignore: Vec<String>,
    /// A column without which a record is refused
    #[arg(long, value_name = "COLUMN")]
    pub required: Vec<String>,
    /// A column of times that are rounded to microseconds
    #[arg(long, value_name = "COLUMN")]
    pub round: Vec<String>,
    /// Keep members that are no field
    #[arg(long)]
    pub extra: bool,
    /// Add a field with the number of each record, from 1 or from START
    #[arg(long, value_name = "FIELD[=START]")]
    pub number_rows: Option<String>,
    /// A saved reading: the output of `sluice infer --json`, or its member `reading`
    #[arg(long, value_name = "FILE")]
    pub reading: Option<PathBuf>,
}

/// Formats that a file says itself, so that no reading is needed for one.
const FORMATS_OF_CONTENT: [&str; 3] = ["parquet", "arrow", "xlsx"];

impl ReadingArgs {
    /// Returns the flags that are given, each with its value, which is empty for a flag without one. `--reading` is none of
    /// them.
    pub fn flags(&self) -> Vec<(&'static str, &str)> {
        let ones = [
            ("--format", &self.format),
            ("--delimiter", &self.delimiter),
            ("--quote", &self.quote),
            ("--escape", &self.escape),
            ("--encoding", &self.encoding),
            ("--sheet", &self.sheet),
            ("--records", &self.records),
            ("--members", &self.members),
            ("--zone", &self.zone),
            ("--number-rows", &self.number_rows),
        ];
        let switches = [
            ("--no-header", self.no_header),
            ("--decimal-comma", self.decimal_comma),
            ("--empty-text", self.empty_text),
            ("--extra", self.extra),
        ];
        let lists = [
            ("--skip-lines", &self.skip_lines),
            ("--null", &self.null),
            ("--types", &self.types),
            ("--rename", &self.rename),
            ("--ignore", &self.ignore),
            ("--required", &self.required),
            ("--round", &self.round),
        ];
        let ones = ones
            .into_iter()
            .filter_map(|(flag, value)| Some((flag, value.as_deref()?)));
        let ones = ones.filter(|(flag, value)| *flag != "--format" || !FORMATS_OF_CONTENT.contains(value));
        let switches = switches
            .into_iter()
            .filter(|(_, given)| *given)
            .map(|(flag, _)| (flag, ""));
        let lists = lists
            .into_iter()
            .flat_map(|(flag, values)| values.iter().map(move |value| (flag, value.as_str())));
        ones.chain(switches).chain(lists).collect()
    }
}
