//! `deskhand consent` in a build whose consent comes from a host application: there is nothing to read or to set here.

use std::io;
use std::process::ExitCode;

use deskhand_core::desktop::{Check, CheckStatus};
use serde_json::{Value, json};

use crate::cli::ConsentCommand;

/// What this process knows of consent: that it is not the one to be asked.
pub(crate) struct Said;

const WHERE: &str = "Consent comes from this machine's host application, which answers the service; without it nothing is allowed.";

pub(crate) fn run(command: ConsentCommand) -> io::Result<ExitCode> {
    let ConsentCommand::Status { json } = command;
    if json {
        super::print_json(&facts(&Said))?;
    } else {
        super::print(&told(&Said))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn said() -> Said {
    Said
}

/// The state of consent as one line of a report.
pub(crate) fn check() -> Check {
    Check {
        name: "consent".to_owned(),
        status: CheckStatus::Degraded,
        detail: "comes from this machine's host application, which only the service can ask".to_owned(),
        fix: Some(
            "deskhand call health_report, with the service running, says what is allowed now".to_owned(),
        ),
    }
}

/// The state of consent for programs.
pub(crate) fn facts(_: &Said) -> Value {
    json!({"source": "host"})
}

/// The state of consent for people.
pub(crate) fn told(_: &Said) -> String {
    WHERE.to_owned()
}
