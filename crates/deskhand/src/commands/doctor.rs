//! `deskhand doctor`: what works here.

use std::fmt::Write;
use std::io;
use std::process::ExitCode;

use deskhand_core::desktop::{Check, CheckStatus};
use serde_json::json;

use crate::wiring::{VERSION, Wiring};

pub(crate) fn run(json: bool) -> io::Result<ExitCode> {
    let checks = super::runtime()?.block_on(async {
        let wiring = Wiring::new(None, None)?;
        let mut checks = wiring.checks().await;
        checks.push(super::consent::check());
        wiring.shutdown().await;
        io::Result::Ok(checks)
    })?;
    let verdict = Verdict::of(&checks);
    if json {
        super::print_json(&json!({
            "version": VERSION,
            "works": verdict.works(),
            "desktop": verdict == Verdict::Here,
            "checks": checks,
        }))?;
    } else {
        super::print(&report(&checks, verdict))?;
    }
    Ok(if verdict.works() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The check that says whether a private desktop can be started; the others are about the desktop that is there.
const PRIVATE: &str = "private_desktop";
/// The check that says whether an agent may work here; it is about every desktop.
const CONSENT: &str = "consent";

/// Where an agent can work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Here,
    OnPrivateDesktop,
    No,
    Refused,
}

impl Verdict {
    fn of(checks: &[Check]) -> Self {
        let (consent, works): (Vec<_>, Vec<_>) = checks.iter().partition(|check| check.name == CONSENT);
        let (private, here): (Vec<_>, Vec<_>) = works.into_iter().partition(|check| check.name == PRIVATE);
        if consent.iter().any(|check| check.status == CheckStatus::Missing) {
            Self::Refused
        } else if here.iter().all(|check| check.status != CheckStatus::Missing) {
            Self::Here
        } else if private.iter().any(|check| check.status == CheckStatus::Ok) {
            Self::OnPrivateDesktop
        } else {
            Self::No
        }
    }

    const fn works(self) -> bool {
        matches!(self, Self::Here | Self::OnPrivateDesktop)
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Here => "An agent can work on this desktop: deskhand mcp",
            Self::OnPrivateDesktop => {
                "An agent can work on a desktop of its own: deskhand mcp --private. On this one it cannot."
            }
            Self::No => "An agent cannot work here yet.",
            Self::Refused => "An agent may not work here: the person at this machine has not allowed it.",
        }
    }
}

fn report(checks: &[Check], verdict: Verdict) -> String {
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
    let _ = writeln!(text, "\n{}", verdict.text());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, status: CheckStatus) -> Check {
        Check { name: name.to_owned(), status, detail: "found".to_owned(), fix: Some("mend it".to_owned()) }
    }

    #[test]
    fn the_verdict_is_about_this_desktop_first() {
        use CheckStatus::{Degraded, Missing, Ok};
        for (session, private, expected) in [
            (Ok, Missing, Verdict::Here),
            (Degraded, Missing, Verdict::Here),
            (Missing, Ok, Verdict::OnPrivateDesktop),
            (Missing, Missing, Verdict::No),
        ] {
            assert_eq!(Verdict::of(&[check("session", session), check(PRIVATE, private)]), expected);
        }
        assert_eq!(Verdict::of(&[check("session", Missing)]), Verdict::No);
        let consent = |status| Verdict::of(&[check("session", Ok), check(CONSENT, status)]);
        assert_eq!((consent(Missing), consent(Degraded)), (Verdict::Refused, Verdict::Here));
    }

    #[test]
    fn a_report_names_what_mends_it() {
        let report = report(&[check("session", CheckStatus::Missing)], Verdict::No);
        assert!(report.contains("missing   session  found\n                   fix: mend it\n"), "{report}");
    }
}
