//! `deskhand completions`: what a shell needs to complete the command line, from its definition and the tools'.

use std::fmt::Write;
use std::io;
use std::process::ExitCode;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Command, CommandFactory};
use clap_complete::shells::{Bash, Fish, Zsh};
use clap_complete::{Generator, generate};
use deskhand_core::tools::TOOLS;

use super::tools::first_sentence;
use crate::cli::{Cli, ShellArg};

const PROGRAM: &str = "deskhand";

pub(crate) fn run(shell: ShellArg) -> io::Result<ExitCode> {
    super::print(&script(shell))?;
    Ok(ExitCode::SUCCESS)
}

fn script(shell: ShellArg) -> String {
    match shell {
        ShellArg::Bash => generated(Bash),
        ShellArg::Zsh => generated(Zsh),
        // The generator leaves out what stands without a flag.
        ShellArg::Fish => generated(Fish) + &fish_positionals(&definition(), &[]),
    }
}

fn generated(shell: impl Generator) -> String {
    let mut script = Vec::new();
    generate(shell, &mut definition(), PROGRAM, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The command line, with the names of the tools where one is asked for. The command line that is parsed takes any word
/// there, so that a wrong one is answered by what knows the tools.
fn definition() -> Command {
    let tools: Vec<_> = TOOLS
        .iter()
        .map(|tool| PossibleValue::new(tool.spec.name).help(first_sentence(tool.spec.description)))
        .collect();
    [("call", "tool"), ("tools", "name")].into_iter().fold(Cli::command(), |command, (name, argument)| {
        let tools = PossibleValuesParser::new(tools.clone());
        command.mut_subcommand(name, |command| {
            command.mut_args(|found| match found.get_id() == argument {
                true => found.value_parser(tools.clone()),
                false => found,
            })
        })
    })
}

/// A line for each command below `command` that takes one of several words. `path` is how it is reached.
fn fish_positionals(command: &Command, path: &[&str]) -> String {
    let mut lines = String::new();
    for argument in command.get_positionals() {
        let words: Vec<_> = argument.get_possible_values();
        let Some(first) = path.first().filter(|_| !words.is_empty()) else { continue };
        let choices = words.iter().fold(String::new(), |mut choices, word| {
            let help = word.get_help().map(ToString::to_string).unwrap_or_default();
            // Writing to a String cannot fail.
            let _ = writeln!(choices, "{}\t'{}'", word.get_name(), fish_quoted(&help));
            choices
        });
        let seen = words.iter().map(PossibleValue::get_name).collect::<Vec<_>>().join(" ");
        let _ = writeln!(
            lines,
            "complete -c {PROGRAM} -n \"__fish_{PROGRAM}_using_subcommand {first}; \
             and not __fish_seen_subcommand_from {seen}\" -f -a \"{choices}\"",
        );
    }
    for below in command.get_subcommands() {
        let path: Vec<_> = path.iter().copied().chain([below.get_name()]).collect();
        lines += &fish_positionals(below, &path);
    }
    lines
}

/// `text` between single quotes inside of double ones.
fn fish_quoted(text: &str) -> String {
    text.chars().fold(String::new(), |mut quoted, c| {
        match c {
            '\'' => quoted.push_str(r"\\'"),
            '\\' | '"' | '$' => quoted.extend(['\\', c]),
            c => quoted.push(c),
        }
        quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_name_every_command_and_tool() {
        for shell in [ShellArg::Bash, ShellArg::Zsh, ShellArg::Fish] {
            let script = script(shell);
            for command in definition().get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell:?}: {}", command.get_name());
            }
            for tool in TOOLS {
                assert!(script.contains(tool.spec.name), "{shell:?}: {}", tool.spec.name);
            }
        }
    }

    #[test]
    fn the_definition_is_sound() {
        definition().debug_assert();
    }

    #[test]
    fn words_of_fish_keep_their_quotes() {
        assert_eq!(fish_quoted(r#"it's "$x" \"#), r#"it\\'s \"\$x\" \\"#);
    }
}
