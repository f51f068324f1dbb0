//! `deskhand status`: whether a service runs, and who uses it.

use std::fmt::Write;
use std::io;
use std::process::ExitCode;

use deskhand_core::{Code, Error};
use deskhand_service::client::Client;
use deskhand_service::wire::{self, ActivityLogReport, ConsentReport, SessionReport, StatusReport};
use serde_json::json;

use super::{NO_SERVICE, consent, fail_with};
use crate::cli::ServiceArgs;
use crate::service::Place;

pub(crate) fn run(service: &ServiceArgs, json: bool) -> io::Result<ExitCode> {
    let report = super::runtime()?.block_on(async { Place::find(service)?.ask(look).await });
    match report {
        Err(error) => fail_with(&error, json),
        Ok(Err(none)) => {
            if json {
                super::print_json(&json!({"running": false, "consent": consent::facts()}))?;
            } else {
                super::print(&format!("{none}\n{}", consent::told_here()))?;
            }
            Ok(ExitCode::from(NO_SERVICE))
        }
        Ok(Ok((report, consent))) => {
            if json {
                let mut value = serde_json::to_value(&report)?;
                value["running"] = true.into();
                value["consent"] = serde_json::to_value(&consent)?;
                super::print_json(&value)?;
            } else {
                let consent = consent.map_or_else(no_consent, |consent| consent::told_by_service(&consent));
                super::print(&format!("{}{consent}", text(&report)))?;
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// What the service says of itself, and what it goes by in matters of consent, which may be other records than ours.
async fn look(client: Client) -> Result<(StatusReport, Option<ConsentReport>), Error> {
    let report = client.request::<wire::Status>(None, wire::Empty {}).await?;
    match client.request::<wire::Consent>(None, wire::Empty {}).await {
        Ok(consent) => Ok((report, Some(consent))),
        Err(error) if error.code == Code::UnknownMethod => Ok((report, None)),
        Err(error) => Err(error),
    }
}

fn no_consent() -> String {
    "This service is of another build, which does not say what it knows of consent.".to_owned()
}

fn text(report: &StatusReport) -> String {
    let StatusReport { version, pid, desktop, socket, lifetime, age_ms, connections, waiting, .. } = report;
    let build = report.build.get(..12).unwrap_or(&report.build);
    let mut text = format!(
        "deskhand {version} (build {build}) owns {desktop}\nprocess     {pid}, {lifetime}, for {}\nprogram     {}\n\
         socket      {socket}\nconnections {connections}\nwaiting     {waiting}\n",
        duration(*age_ms),
        report.path,
    );
    text.extend(report.activity_log.iter().map(activity_log));
    text.push_str(&sessions(&report.sessions));
    text
}

/// A line, or two if something is amiss.
fn activity_log(report: &ActivityLogReport) -> String {
    let ActivityLogReport { folder, lines, lines_dropped, frames, stopped, frames_stopped } = report;
    let missing = if *lines_dropped > 0 { format!(", {lines_dropped} missing") } else { String::new() };
    let amiss = match (stopped, frames_stopped) {
        (Some(why), _) => format!("            NOT WRITTEN at the moment: {why}\n"),
        (None, Some(why)) => format!("            without pictures at the moment: {why}\n"),
        (None, None) => String::new(),
    };
    format!("activity    {folder}: {lines} lines{missing}, {frames} pictures\n{amiss}")
}

/// A line for each session.
pub(super) fn sessions(sessions: &[SessionReport]) -> String {
    if sessions.is_empty() {
        return "no sessions\n".to_owned();
    }
    let mut text = String::from("sessions\n");
    for session in sessions {
        let label = session.label.as_deref().map(|label| format!(" ({label})")).unwrap_or_default();
        let life = if session.leased { "connected" } else { "waits for its idle end" };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "  {}{label}: {life}, for {}, idle for {}, {} calls under way",
            session.session,
            duration(session.age_ms),
            duration(session.idle_ms),
            session.calls.len(),
        );
    }
    text
}

/// As a person says it, without fractions.
fn duration(ms: u64) -> String {
    match ms / 1000 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_said_roughly() {
        assert_eq!([duration(999), duration(61_000), duration(7_260_000)], ["0 s", "1 min", "2 h 1 min"]);
    }
}
