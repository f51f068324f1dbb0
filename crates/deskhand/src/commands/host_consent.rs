//! `deskhand consent` in a build whose consent comes from a host application: there is nothing to read or to set here.

use std::io;
use std::process::ExitCode;

use deskhand_core::desktop::{Check, CheckStatus};
use deskhand_service::wire::ConsentReport;
use serde_json::{Value, json};

use crate::cli::ConsentCommand;

const WHERE: &str = "Consent comes from this machine's host application, which answers the service; without it nothing is allowed.";

pub(crate) fn run(command: ConsentCommand) -> io::Result<ExitCode> {
    let ConsentCommand::Status { json } = command;
    if json {
        super::print_json(&facts())?;
    } else {
        super::print(&told_here())?;
    }
    Ok(ExitCode::SUCCESS)
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

/// What this process knows of consent, for programs: that it is not the one to be asked.
pub(crate) fn facts() -> Value {
    json!({"source": "host"})
}

/// The same for people.
pub(crate) fn told_here() -> String {
    WHERE.to_owned()
}

/// What a service has from its host.
pub(crate) fn told_by_service(report: &ConsentReport) -> String {
    let may = match (report.screen, report.control) {
        (true, true) => "see its screen and act on it",
        (true, false) => "see its screen, not act on it",
        (false, _) => "neither see nor act",
    };
    format!("AI agents may {may}. {WHERE}")
}
