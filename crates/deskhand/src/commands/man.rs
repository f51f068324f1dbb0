//! `deskhand man`: the manual page, from the definition of the command line and the tools'.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use deskhand_core::tools::TOOLS;

use super::tools::first_sentence;
use crate::cli::Cli;

/// The page is the same whenever it is made. An empty one would be taken for missing, and the next word for the date.
const NO_DATE: &str = " ";

pub(crate) fn run() -> io::Result<ExitCode> {
    super::print(&String::from_utf8_lossy(&page()?))?;
    Ok(ExitCode::SUCCESS)
}

fn page() -> io::Result<Vec<u8>> {
    let mut definition = Cli::command().disable_help_flag(true);
    definition.build();
    let mut page = Vec::new();
    let man = Man::new(definition.clone()).manual("User Commands").date(NO_DATE);
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    writeln!(page, ".SH COMMANDS")?;
    commands(&definition, &mut page)?;
    tools().to_writer(&mut page)?;
    surroundings().to_writer(&mut page)?;
    Ok(page)
}

/// A part for each command that does something.
fn commands(command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        if below.has_subcommands() && below.is_subcommand_required_set() {
            commands(below, page)?;
            continue;
        }
        let name = below.get_bin_name().unwrap_or_else(|| below.get_name());
        writeln!(page, ".SS \"{name}\"")?;
        let man = Man::new(below.clone());
        page.extend(body(|part| man.render_synopsis_section(part))?);
        writeln!(page, ".PP")?;
        page.extend(body(|part| man.render_description_section(part))?);
        page.extend(body(|part| man.render_options_section(part))?);
        commands(below, page)?;
    }
    Ok(())
}

/// What a section has below its heading: the page has one part for each command, not one page for each.
fn body(render: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<Vec<u8>> {
    let mut section = Vec::new();
    render(&mut section)?;
    let lines = section.split_inclusive(|byte| *byte == b'\n');
    Ok(lines.skip_while(|line| !line.starts_with(b".SH")).skip(1).flatten().copied().collect())
}

fn tools() -> Roff {
    let mut part = Roff::new();
    part.control("SH", ["TOOLS"]);
    part.text([
        roman("What "),
        bold("deskhand call"),
        roman(" can call and an agent gets; "),
        bold("deskhand tools"),
        roman(" with a name describes one with its arguments."),
    ]);
    for tool in TOOLS {
        part.control("TP", []);
        part.text([bold(tool.spec.name)]);
        part.text([roman(first_sentence(tool.spec.description))]);
    }
    part
}

fn surroundings() -> Roff {
    let mut part = Roff::new();
    part.control("SH", ["ENVIRONMENT"]);
    for (name, meaning) in [
        ("DISPLAY", "The desktop, unless it is a private one."),
        ("XDG_RUNTIME_DIR", "Where the service's socket and locks are, in deskhand/."),
        ("DESKHAND_MCP_NO_RELAUNCH", "1, true, yes or on: deskhand mcp owns the desktop itself."),
        (
            "DESKHAND_SESSION_IDLE_TTL_SECS",
            "How long a session without a connection may do nothing: 300 if not set.",
        ),
        (
            "DESKHAND_ACTIVITY_DIR",
            "Where whoever owns a desktop keeps an activity log, unless --activity-dir says it; an absolute path.",
        ),
        (
            "DESKHAND_LOG",
            "How much goes to standard error: error, warn (if not set), info, debug, trace or off.",
        ),
    ] {
        part.control("TP", []).text([bold(name)]).text([roman(meaning)]);
    }
    part.control("SH", ["FILES"]);
    part.control("TP", [])
        .text([bold("$XDG_CONFIG_HOME/deskhand/config.json")])
        .text([roman("Settings, below ~/.config if that variable is not set; deskhand config writes them.")]);
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_what_there_is() {
        let page = String::from_utf8(page().unwrap()).unwrap();
        let plain = page.replace("\\-", "-");
        for command in Cli::command().get_subcommands() {
            assert!(
                plain.contains(&format!(".SS \"deskhand {}", command.get_name())),
                "{}",
                command.get_name()
            );
        }
        for tool in TOOLS {
            assert!(plain.contains(tool.spec.name), "{}", tool.spec.name);
        }
        assert_eq!(page.matches(".TH").count(), 1);
        assert!(!plain.contains("--markdown"), "the page tells what is hidden");
    }
}
