//! `deskhand doctor`: what works here.

use std::fmt::Write;
use std::io;
use std::process::ExitCode;

use deskhand_core::desktop::{Check, CheckStatus};
use serde_json::json;

use crate::wiring::{VERSION, Wiring};

pub(crate) fn run(json: bool) -> io::Result<ExitCode> {
    let checks = super::runtime()?.block_on(async {
        let wiring = Wiring::new(None)?;
        let checks = wiring.checks().await;
        wiring.shutdown().await;
        io::Result::Ok(checks)
    })?;
    let works = works(&checks);
    if json {
        super::print_json(&json!({ "version": VERSION, "works": works, "checks": checks }))?;
    } else {
        super::print(&report(&checks, works))?;
    }
    Ok(if works { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether an agent can work on this desktop.
fn works(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.status != CheckStatus::Missing)
}

fn report(checks: &[Check], works: bool) -> String {
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let mut text = format!("deskhand {VERSION}\n\n");
    for check in checks {
        let status = match check.status {
            CheckStatus::Ok => "ok      ",
            CheckStatus::Degraded => "degraded",
            CheckStatus::Missing => "missing ",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{status}  {:width$}  {}", check.name, check.detail);
        if let Some(fix) = &check.fix {
            let _ = writeln!(text, "{:8}  {:width$}  fix: {fix}", "", "");
        }
    }
    let verdict = if works { "An agent can work here." } else { "An agent cannot work here yet." };
    let _ = writeln!(text, "\n{verdict}");
    text
}
