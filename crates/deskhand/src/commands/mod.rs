//! One module per command.

mod call;
mod completions;
mod desktop;
mod doctor;
mod man;
mod mcp;
mod mcp_config;
mod tools;

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use tokio::runtime::{Builder, Runtime};

use crate::cli::{Command, DesktopCommand};

/// The command line was wrong, as clap has it.
const USAGE: u8 = 2;

pub(crate) fn run(command: Command) -> ExitCode {
    let result = match command {
        Command::Mcp { desktop, profile } => mcp::run(desktop.private(), profile.into()),
        Command::Call(arguments) => call::run(arguments),
        Command::Tools { name, json, profile, markdown } => {
            tools::run(name.as_deref(), json, profile.into(), markdown)
        }
        Command::Desktop(DesktopCommand::Run { size, keep_home, command }) => {
            desktop::run(size, keep_home, command)
        }
        Command::Doctor { json } => doctor::run(json),
        Command::McpConfig { client, private } => mcp_config::run(client, private),
        Command::Completions { shell } => completions::run(shell),
        Command::Man => man::run(),
    };
    result.unwrap_or_else(|error| match error.kind() {
        // Whoever read the output has seen enough.
        io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        _ => fail(1, error),
    })
}

fn fail(code: u8, reason: impl Display) -> ExitCode {
    eprintln!("deskhand: {reason}");
    ExitCode::from(code)
}

/// One thread is enough, starts at once and costs nothing while idle.
fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Prints to stdout; unlike `println!` it does not panic when nobody reads.
fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        stdout.write_all(b"\n")?;
    }
    stdout.flush()
}

fn print_json(value: &impl serde::Serialize) -> io::Result<()> {
    print(&serde_json::to_string_pretty(value)?)
}
