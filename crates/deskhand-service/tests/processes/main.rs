//! The election among real processes: simultaneous starts, kills, stopped holders, builds that replace each other.
//!
//! This program is its own starter, service and launcher (see `starter`), hence no test harness; arguments select tests by
//! a part of their name.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod cases;
mod stage;
mod starter;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((role, rest)) = arguments.split_first()
        && let Some(role) = starter::Part::named(role)
    {
        return starter::run(role, rest);
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
