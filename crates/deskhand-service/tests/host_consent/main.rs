//! A service whose consent comes from a host, among real processes: the right host, and everything that is not one.
//!
//! This program is its own host (see `host`), hence no test harness; arguments select tests by a part of their name.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod cases;
mod host;
mod stage;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [host::HOST, socket, manner] => return host::run(socket, manner),
        [host::HEIR] => return host::heir(),
        _ => {}
    }
    let filters: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(*filter));
    let mut failed = 0;
    for (name, case) in cases::ALL.iter().filter(|(name, _)| wanted(name)) {
        let outcome = std::panic::catch_unwind(case);
        println!("test {name} ... {}", if outcome.is_ok() { "ok" } else { "FAILED" });
        failed += usize::from(outcome.is_err());
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
