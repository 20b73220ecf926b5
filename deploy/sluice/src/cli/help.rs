//! The command line as it is parsed and explained.
//!
//! Invariant: a command shows the options that it uses and no others. An option of the service is taken by each command,
//! so that a line that worked goes on to work.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Arg, Command, CommandFactory as _, FromArgMatches as _, value_parser};

use super::Cli;

/// Commands that talk to a service or look at files, and have neither the folder nor the configuration of a service.
const CLIENT_COMMANDS: [&str; 17] = [
    "login",
    "whoami",
    "search",
    "list",
    "info",
    "buy",
    "credits",
    "query",
    "pull",
    "verify",
    "infer",
    "create",
    "push",
    "uploads",
    "archive",
    "delete",
    "completions",
];

/// Parses the command line of the process. Ends it with a message and exit code 2 if it is wrong, with 0 after help.
pub fn parse() -> Cli {
    let matches = command().get_matches();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Returns the command line with its help.
pub fn command() -> Command {
    let mut command = Cli::command();
    for name in CLIENT_COMMANDS {
        command = command.mut_subcommand(name, without_service);
    }
    let receipts = |verify: Command| verify.mut_subcommand("receipt", |receipt| receipt.mut_arg("data", of_receipt));
    command.mut_subcommand("verify", receipts)
}

/// Hides the options of the service. An argument of the same id takes the place of the one that every command has.
fn without_service(command: Command) -> Command {
    let nested: Vec<String> = command
        .get_subcommands()
        .map(|nested| nested.get_name().to_owned())
        .collect();
    let path = |id: &'static str, name: &'static str| {
        let parser = value_parser!(PathBuf);
        Arg::new(id).long(id).value_name(name).value_parser(parser).hide(true)
    };
    let listen = Arg::new("listen").long("listen").value_name("ADDR").hide(true);
    let mut command = command
        .arg(path("data", "DIR"))
        .arg(listen.value_parser(value_parser!(SocketAddr)))
        .arg(path("config", "FILE"));
    for name in nested {
        command = command.mut_subcommand(name, without_service);
    }
    command
}

/// Shows the folder over which the query of a receipt is run again.
fn of_receipt(data: Arg) -> Arg {
    data.help("Folder of the pulled version, over which the statement of a query receipt is run again")
        .hide(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Command as Chosen;

    fn help(arguments: &[&str]) -> String {
        let asked = [&["sluice"], arguments, &["--help"]].concat();
        let error = command().try_get_matches_from(asked).unwrap_err();
        assert_eq!(error.exit_code(), 0, "{error}");
        error.to_string()
    }

    #[test]
    fn the_command_line_with_its_help_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn a_command_shows_what_it_uses() {
        for name in CLIENT_COMMANDS {
            let help = help(&[name]);
            for option in ["--data <DIR>", "--listen", "--config", "-V, --version"] {
                assert!(!help.contains(option), "{name} {option}: {help}");
            }
        }
        assert!(!help(&["uploads", "cancel"]).contains("--listen"));
        let receipt = help(&["verify", "receipt"]);
        assert!(
            receipt.contains("Folder of the pulled version") && !receipt.contains("--config"),
            "{receipt}"
        );
        for service in [&["serve"][..], &["admin", "credits", "grant"], &["collect"], &[]] {
            assert!(help(service).contains("--data <DIR>"), "{service:?}");
        }
        let of_service = [
            "serve",
            "quickstart",
            "admin",
            "check",
            "keys",
            "ledger",
            "collect",
            "config",
        ];
        for name in CLIENT_COMMANDS.into_iter().chain(of_service) {
            assert!(help(&[name]).contains("Examples:\n  sluice "), "{name}");
        }
    }

    /// Returns the words of a line of a shell, up to what is no more of its first command.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::<String>::new(), None::<String>, None::<char>);
        for letter in line.chars() {
            match (quote, letter) {
                (Some(open), _) if open == letter => quote = None,
                (None, '\'' | '"') => {
                    quote = Some(letter);
                    word.get_or_insert_default();
                }
                (None, ' ') => words.extend(word.take()),
                _ => word.get_or_insert_default().push(letter),
            }
        }
        words.extend(word);
        let end = words.iter().position(|word| ["|", "&&", ">"].contains(&word.as_str()));
        words.truncate(end.unwrap_or(words.len()));
        words
    }

    /// Returns the examples of a command and of those below it.
    fn examples(of: &Command) -> Vec<String> {
        let text = of.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines = text.lines().map(str::trim);
        let own = lines.filter(|line| line.starts_with("sluice ")).map(str::to_owned);
        own.chain(of.get_subcommands().flat_map(examples)).collect()
    }

    #[test]
    fn each_example_is_a_command_line() {
        let examples = examples(&command());
        assert!(examples.len() > 30, "{examples:?}");
        for line in examples {
            let matches = command().try_get_matches_from(words(&line));
            assert!(matches.is_ok(), "{line}: {}", matches.unwrap_err());
        }
    }

    #[test]
    fn an_option_of_the_service_is_taken_wherever_it_stands() {
        for line in [
            &["sluice", "--data", "d", "list"][..],
            &["sluice", "list", "--data", "d"],
            &["sluice", "uploads", "cancel", "01", "--data", "d"],
            &["sluice", "verify", "receipt", "r.json", "--data", "d"],
            &["sluice", "serve", "--data", "d"],
        ] {
            let matches = command().try_get_matches_from(line).unwrap();
            let cli = Cli::from_arg_matches(&matches).unwrap();
            assert_eq!(cli.global.data, Some("d".into()), "{line:?}");
        }
        let matches = command()
            .try_get_matches_from(["sluice", "search", "tide", "gauge"])
            .unwrap();
        let Chosen::Search(search) = Cli::from_arg_matches(&matches).unwrap().command else {
            panic!("another command")
        };
        assert_eq!(search.words, ["tide", "gauge"]);
    }
}
