//! `deskhand recording`: what recordings leave behind, for people.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use deskhand_core::Call;
use deskhand_core::recording::render::{self, Rendered};
use deskhand_core::recording::report::{self, Reported};
use deskhand_core::recording::trajectory::counted;
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
        "wrote {}: {}, {}, {} KB; open it in a browser",
        file.display(),
        counted(turns, "turn"),
        counted(pictures, "different picture"),
        bytes.div_ceil(1000)
    );
    for (count, thing, what) in [
        (turns_left_out, "turn", "left out, as they are too many for one page"),
        (pictures_left_out, "picture", "left out, as the page would be too large (it links the files)"),
        (turns_unreadable, "turn", "cannot be read (the page says why)"),
    ] {
        if count > 0 {
            text.push_str(&format!("\n{what}: {}", counted(count, thing)));
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
    let Rendered { turns, turns_unreadable, pictures, unreadable, seconds, width, height } = made;
    let words = |count: u32, thing: &str| counted(count as usize, thing);
    let mut text = format!(
        "wrote {}: {} of {}, {seconds} s, {width}x{height}",
        out.display(),
        words(pictures, "picture"),
        words(turns, "turn")
    );
    for (count, thing) in [(turns_unreadable, "turn"), (unreadable, "picture")] {
        if count > 0 {
            text.push_str(&format!("\nleft out, as it cannot be read: {}", words(count, thing)));
        }
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}
