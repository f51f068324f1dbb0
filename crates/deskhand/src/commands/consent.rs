//! `deskhand consent`: what the person at this machine allows.

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Write};
use std::process::ExitCode;

use deskhand_core::desktop::Check;
use deskhand_linux::consent::{Allowed, Change, Joined, NotChanged};
use deskhand_service::wire::ConsentReport;
use serde_json::{Value, json};

use crate::cli::{ConsentCommand, SurfaceArg};
use crate::wiring;

/// The terminal that this process was started from, whatever its input and output are.
const TERMINAL: &str = "/dev/tty";

pub(crate) fn run(command: ConsentCommand) -> io::Result<ExitCode> {
    match command {
        ConsentCommand::Status { json } => {
            let said = said();
            if json {
                super::print_json(&said)?;
            } else {
                super::print(&told(&said))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        ConsentCommand::Grant { surface } => grant(change(surface, true)),
        ConsentCommand::Revoke { surface } => {
            let change = change(surface.unwrap_or(SurfaceArg::All), false);
            done(wiring::consent().change(change))
        }
    }
}

/// What the records that this process goes by say.
fn said() -> ConsentReport {
    wiring::consent().read().report().into()
}

/// The same for programs.
pub(crate) fn facts() -> Value {
    json!(said())
}

/// The same for people.
pub(crate) fn told_here() -> String {
    told(&said())
}

/// What a service says, which may go by other records than this process.
pub(crate) fn told_by_service(report: &ConsentReport) -> String {
    let said = said();
    if said == *report {
        return told(report);
    }
    format!(
        "{}\n(So says the service. This command finds other records, and so does `deskhand consent` from here: {})",
        told(report),
        told(&said)
    )
}

/// The state of consent as one line of a report.
pub(crate) fn check() -> Check {
    let said = wiring::consent().read();
    let check = said.grant().check();
    match said.trouble() {
        Some(why) => Check { detail: format!("{}; {why}", check.detail), ..check },
        None => check,
    }
}

fn change(surface: SurfaceArg, allow: bool) -> Change {
    let screen = matches!(surface, SurfaceArg::Screen | SurfaceArg::All).then_some(allow);
    let control = matches!(surface, SurfaceArg::Control | SurfaceArg::All).then_some(allow);
    Change { screen, control }
}

fn grant(change: Change) -> io::Result<ExitCode> {
    let question = match wiring::consent().question(change) {
        Ok(question) => question,
        Err(why) => return Ok(super::fail(1, why)),
    };
    match confirmed(question.after) {
        Ok(true) => done(wiring::consent().agreed(question)),
        Ok(false) => Ok(super::fail(1, "nothing was changed")),
        Err(error) => {
            let why = "only the person at this machine can allow this, at a terminal; there is none here";
            Ok(super::fail(1, format!("{why} ({error})")))
        }
    }
}

/// Asks on the terminal. Input and output may be anybody's: a program that starts this one has no say.
fn confirmed(after: Allowed) -> io::Result<bool> {
    let mut terminal = OpenOptions::new().read(true).write(true).open(TERMINAL)?;
    write!(terminal, "After this, AI agents on this machine may {}.\nAllow it? [y/N] ", may(after))?;
    terminal.flush()?;
    let mut answer = String::new();
    BufReader::new(terminal).read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn done(changed: Result<Allowed, NotChanged>) -> io::Result<ExitCode> {
    match changed {
        Ok(after) => {
            super::print(&now(wiring::consent().read().joined, after))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => Ok(super::fail(1, why)),
    }
}

/// What holds after a change. On a machine that is not joined, the record holds nobody back.
fn now(joined: Joined, after: Allowed) -> String {
    match joined {
        Joined::No => format!(
            "This machine is not joined, so AI agents are not asked for consent and may see and act as before. If it is \
             joined, they may {}.",
            may(after)
        ),
        Joined::Yes => format!("AI agents may now {}.", may(after)),
        Joined::Unclear(why) => {
            format!(
                "AI agents may neither see nor act, whatever is granted: the join record does not count: {why}"
            )
        }
    }
}

/// The state of consent for people.
fn told(said: &ConsentReport) -> String {
    let may = may(Allowed { screen: said.screen, control: said.control });
    match (said.joined, &said.trouble) {
        (false, _) => "This machine is not joined: consent is not asked for.".to_owned(),
        (true, None) => format!("This machine is joined. AI agents may {may}."),
        (true, Some(trouble)) => format!("This machine counts as joined. AI agents may {may}.\n{trouble}"),
    }
}

fn may(allowed: Allowed) -> &'static str {
    match (allowed.screen, allowed.control) {
        (true, true) => "see its screen and act on it",
        (true, false) => "see its screen, not act on it",
        (false, _) => "neither see nor act",
    }
}

#[cfg(test)]
mod tests {
    use deskhand_linux::consent::{Said, Trouble};

    use super::*;

    #[test]
    fn each_state_is_told() {
        let said = |joined, allowed| told(&Said { joined, allowed }.report().into());
        let allowed = |screen, control| Ok(Allowed { screen, control });
        assert_eq!(
            said(Joined::No, Err(Trouble::Missing)),
            "This machine is not joined: consent is not asked for."
        );
        assert!(said(Joined::Yes, allowed(true, false)).contains("see its screen, not act"));
        let alone = said(Joined::Yes, allowed(false, true));
        assert!(alone.contains("neither see nor act") && alone.ends_with("deskhand consent grant screen"));
        assert!(said(Joined::Yes, Err(Trouble::Missing)).ends_with("nothing was granted yet"));
        assert!(said(Joined::Yes, Err(Trouble::Shared)).ends_with("does not count: others can write to it"));
        let unclear = said(Joined::Unclear(Trouble::Dangling), allowed(true, true));
        assert!(unclear.contains("whatever is granted") && unclear.contains("leads nowhere"), "{unclear}");
    }
}
