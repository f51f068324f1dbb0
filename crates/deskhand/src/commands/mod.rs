//! One module per command.

mod call;
mod completions;
mod config;
mod connect;
#[cfg(not(feature = "host-consent"))]
pub(crate) mod consent;
mod desktop;
mod doctor;
#[cfg(feature = "host-consent")]
mod host_consent;
mod man;
mod mcp;
mod mcp_config;
mod recording;
mod serve;
mod sessions;
mod status;
mod stop;
mod tools;

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use deskhand_core::Error;
use tokio::runtime::{Builder, Runtime};

use crate::cli::{Command, DesktopCommand};
use crate::wiring;
#[cfg(feature = "host-consent")]
use host_consent as consent;

/// The command line was wrong, as clap has it.
const USAGE: u8 = 2;

/// No service runs, where one is asked about.
const NO_SERVICE: u8 = 3;

pub(crate) fn run(command: Command) -> ExitCode {
    let result = match command {
        Command::Mcp {
            desktop,
            profile,
            service,
            no_daemon_relaunch,
            daemon_lifetime,
            on_service_loss,
            activity_dir,
        } => {
            let arrangement = mcp::Arrangement {
                service,
                no_daemon_relaunch,
                lifetime: daemon_lifetime,
                on_loss: on_service_loss,
                activity_dir,
            };
            mcp::run(desktop.private(), profile.into(), arrangement)
        }
        #[cfg(not(feature = "host-consent"))]
        Command::Serve { desktop, socket, managed, limit, preview, activity_dir, log_file: _ } => {
            let private = desktop.private();
            let wanted = serve::Wanted { private, socket, managed, preview, activity_dir };
            serve::run(wanted, &limit, wiring::consent())
        }
        #[cfg(feature = "host-consent")]
        Command::Serve {
            desktop,
            socket,
            managed,
            limit,
            preview,
            activity_dir,
            log_file: _,
            host_token_fd,
        } => {
            let private = desktop.private();
            let wanted = serve::Wanted { private, socket, managed, preview, activity_dir };
            // Before anything else: no process that is started later may find the descriptor.
            match wiring::host_consent(host_token_fd) {
                Ok(consent) => serve::run(wanted, &limit, consent),
                Err(error) => return fail(USAGE, format_args!("--host-token-fd: {error}")),
            }
        }
        Command::Connect { service } => connect::run(&service),
        Command::Status { service, json } => status::run(&service, json),
        Command::Stop { service, json } => stop::run(&service, json),
        Command::Sessions { service, json, command } => sessions::run(&service, json, command),
        Command::Config { service, json, command } => config::run(&service, json, &command),
        Command::Call(arguments) => call::run(arguments),
        Command::Tools { name, json, profile, markdown } => {
            tools::run(name.as_deref(), json, profile.into(), markdown)
        }
        Command::Desktop(DesktopCommand::Run { size, keep_home, command }) => {
            desktop::run(size, keep_home, command)
        }
        Command::Recording(command) => recording::run(command),
        Command::Consent(command) => consent::run(command),
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

/// An error of the engine or of the service, with its code.
fn fail_with(error: &Error, json: bool) -> io::Result<ExitCode> {
    if json {
        print_json(&error.structured())?;
    }
    Ok(fail(1, format_args!("{}: {}", error.code, error.message)))
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
