//! `deskhand recording`: what recordings leave behind, for people.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use deskhand_core::recording::render::{self, Rendered};

use super::{fail_with, print, print_json};
use crate::cli::RecordingCommand;
use crate::wiring;

pub(crate) fn run(command: RecordingCommand) -> io::Result<ExitCode> {
    match command {
        RecordingCommand::Render { dir, out, json } => render(&dir, &out, json),
    }
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
