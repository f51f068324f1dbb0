//! The deskhand program: reads the command line and puts the parts together.
#![deny(unsafe_code)]

mod cli;
mod commands;
mod guide;
mod lifecycle;
mod log;
mod service;
mod wiring;

use std::process::ExitCode;

use deskhand_linux::x11::guard;

fn main() -> ExitCode {
    // What is executed through /proc is called "exe" by process listings otherwise.
    let _ = rustix::thread::set_name(c"deskhand");
    // The helper processes come first: they must not have threads, a runtime, or time to lose.
    match std::env::args_os().nth(1) {
        Some(name) if name == "supervise" => return deskhand_linux::private::supervise(),
        Some(name) if name == guard::SUBCOMMAND => return wiring::guard(),
        _ => {}
    }
    let cli = cli::parse();
    log::start(cli.command.log_file());
    commands::run(cli.command)
}
