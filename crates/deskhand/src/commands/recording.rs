//! `deskhand recording`: what recordings leave behind, for people.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use deskhand_core::Call;
use deskhand_core::recording::render::{self, Rendered};
use deskhand_core::recording::report::{self, Reported};
use serde_json::{Value, json};

use super::{NO_SERVICE, fail_with, print, print_json};
use crate::cli::{RecordingCommand, ServiceArgs};
use crate::service::{Greeting, Place};
use crate::wiring;

pub(crate) fn run(command: RecordingCommand) -> io::Result<ExitCode> {
    match command {
        RecordingCommand::Start { dir, no_video, service, json } => {
            let arguments = json!({"output_dir": std::path::absolute(dir)?, "record_video": !no_video});
            operate(&service, "start_recording", arguments, json)
        }
        RecordingCommand::Stop { session, service, json } => {
            let arguments = session.map_or(json!({}), |session| json!({"session": session}));
            operate(&service, "stop_recording", arguments, json)
        }
        RecordingCommand::Status { service, json } => {
            operate(&service, "get_recording_state", json!({}), json)
        }
        RecordingCommand::Report { dir, out, json } => report(&dir, out.as_deref(), json),
        RecordingCommand::Render { dir, out, json } => render(&dir, &out, json),
    }
}

/// Makes a call of the operator's: one without a session. Only a start launches a service.
fn operate(service: &ServiceArgs, tool: &str, arguments: Value, json: bool) -> io::Result<ExitCode> {
    let Value::Object(arguments) = arguments else { return Ok(ExitCode::FAILURE) };
    let called = super::runtime()?.block_on(async {
        let place = Place::find(service)?;
        let client = match tool {
            "start_recording" => place.connect_or_launch(Greeting::default()).await?.0,
            _ => match place.connect().await? {
                Ok(client) => client,
                Err(none) => return Ok(Err(none)),
            },
        };
        client.submit(Call::anonymous(tool, arguments)).await.map(Ok)
    });
    match called {
        Err(error) => fail_with(&error, json),
        Ok(Err(none)) => {
            if json {
                print_json(&json!({"recordings": []}))?;
            }
            Ok(super::fail(NO_SERVICE, none))
        }
        Ok(Ok(answer)) => {
            if json {
                print_json(&answer.structured)?;
            } else {
                print(&answer.text)?;
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn report(folder: &Path, out: Option<&Path>, json: bool) -> io::Result<ExitCode> {
    let made = match report::write(folder, out) {
        Ok(made) => made,
        Err(error) => return fail_with(&error, json),
    };
    if json {
        print_json(&made)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Reported { file, turns, pictures, bytes, turns_left_out, pictures_left_out, turns_unreadable } = made;
    let mut text = format!(
        "wrote {}: {turns} turns, {pictures} different pictures, {} KB; open it in a browser",
        file.display(),
        bytes.div_ceil(1000)
    );
    for (count, what) in [
        (turns_left_out, "turns are left out: too many for one page"),
        (pictures_left_out, "pictures are left out: the page would be too large; it links their files"),
        (turns_unreadable, "turns cannot be read; the page says why"),
    ] {
        if count > 0 {
            text.push_str(&format!("\n{count} {what}"));
        }
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn render(folder: &Path, out: &Path, json: bool) -> io::Result<ExitCode> {
    let made = match render::render(folder, out, &wiring::video_encoder()) {
        Ok(made) => made,
        Err(error) => return fail_with(&error, json),
    };
    if json {
        print_json(&made)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Rendered { turns, pictures, unreadable, seconds, width, height } = made;
    let mut text = format!(
        "wrote {}: {pictures} pictures of {turns} turns, {seconds} s, {width}x{height}",
        out.display()
    );
    if unreadable > 0 {
        text.push_str(&format!("; {unreadable} pictures could not be read and are left out"));
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}
