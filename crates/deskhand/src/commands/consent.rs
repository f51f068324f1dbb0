//! `deskhand consent`: what the person at this machine allows.

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Write};
use std::process::ExitCode;

use deskhand_core::desktop::Check;
use deskhand_linux::consent::{Allowed, Change, Joined, Said, Trouble};
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
                super::print_json(&facts(&said))?;
            } else {
                super::print(&told(&said))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        ConsentCommand::Grant { surface } => grant(change(surface, true)),
        ConsentCommand::Revoke { surface } => apply(change(surface.unwrap_or(SurfaceArg::All), false)),
    }
}

/// What the records say.
pub(crate) fn said() -> Said {
    wiring::consent().read()
}

/// The state of consent as one line of a report.
pub(crate) fn check() -> Check {
    let said = said();
    let check = said.grant().check();
    match trouble(&said) {
        Some(why) => Check { detail: format!("{}; {why}", check.detail), ..check },
        None => check,
    }
}

/// The state of consent for programs.
pub(crate) fn facts(said: &Said) -> Value {
    let grant = said.grant();
    json!({
        "joined": grant.joined,
        "screen": grant.sees(),
        "control": grant.acts(),
        "trouble": trouble(said),
    })
}

fn change(surface: SurfaceArg, allow: bool) -> Change {
    let screen = matches!(surface, SurfaceArg::Screen | SurfaceArg::All).then_some(allow);
    let control = matches!(surface, SurfaceArg::Control | SurfaceArg::All).then_some(allow);
    Change { screen, control }
}

fn grant(change: Change) -> io::Result<ExitCode> {
    let after = match wiring::consent().after(change) {
        Ok(after) => after,
        Err(why) => return Ok(super::fail(1, why)),
    };
    match confirmed(after) {
        Ok(true) => apply(change),
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

fn apply(change: Change) -> io::Result<ExitCode> {
    match wiring::consent().change(change) {
        Ok(after) => {
            super::print(&changed(said().joined, after))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => Ok(super::fail(1, why)),
    }
}

/// What holds after a change. On a machine that is not joined, the record holds nobody back.
fn changed(joined: Joined, after: Allowed) -> String {
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
pub(crate) fn told(said: &Said) -> String {
    let first = match (said.joined, &said.allowed) {
        (Joined::No, _) => return "This machine is not joined: consent is not asked for.".to_owned(),
        (Joined::Yes, Ok(allowed)) => format!("This machine is joined. AI agents may {}.", may(*allowed)),
        (Joined::Yes, Err(_)) => "This machine is joined. AI agents may neither see nor act.".to_owned(),
        (Joined::Unclear(_), _) => {
            "This machine counts as joined. AI agents may neither see nor act, whatever is granted."
                .to_owned()
        }
    };
    trouble(said).map_or(first.clone(), |why| format!("{first}\n{why}"))
}

fn may(allowed: Allowed) -> &'static str {
    match (allowed.screen, allowed.control) {
        (true, true) => "see its screen and act on it",
        (true, false) => "see its screen, not act on it",
        (false, true) => "neither see nor act (acting needs seeing as well: deskhand consent grant screen)",
        (false, false) => "neither see nor act",
    }
}

fn trouble(said: &Said) -> Option<String> {
    match (said.joined, &said.allowed) {
        (Joined::Unclear(why), _) => Some(format!("the join record does not count: {why}")),
        (Joined::Yes, Err(Trouble::Missing)) => Some("nothing was granted yet".to_owned()),
        (Joined::Yes, Err(why)) => Some(format!("the consent record does not count: {why}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_is_told() {
        let said = |joined, allowed| told(&Said { joined, allowed });
        let allowed = |screen, control| Ok(Allowed { screen, control });
        assert_eq!(
            said(Joined::No, Err(Trouble::Missing)),
            "This machine is not joined: consent is not asked for."
        );
        assert!(said(Joined::Yes, allowed(true, false)).contains("see its screen, not act"));
        assert!(said(Joined::Yes, allowed(false, true)).contains("neither see nor act"));
        assert!(said(Joined::Yes, Err(Trouble::Missing)).ends_with("nothing was granted yet"));
        assert!(said(Joined::Yes, Err(Trouble::Shared)).ends_with("does not count: others can write to it"));
        let unclear = said(Joined::Unclear(Trouble::Dangling), allowed(true, true));
        assert!(unclear.contains("whatever is granted") && unclear.contains("leads nowhere"), "{unclear}");
    }
}
