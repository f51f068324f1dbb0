//! The accessibility port against real toolkits, on a private desktop.
//!
//! Needs what the private desktop needs, Python with GTK 3, GTK 4 and Qt 5, and their accessibility. The program is its
//! own supervisor, hence no test harness; arguments select tests by a part of their name.

mod cases;
mod fixture;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use deskhand_linux::environment::EnvironmentSource;
use deskhand_linux::private::{self, PrivateOptions, PrivateSource};

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|first| first == "supervise") {
        return private::supervise();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(run())
}

async fn run() -> ExitCode {
    let filters: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter));
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("accessibility"));
    let source = Arc::new(PrivateSource::new(PrivateOptions::default(), program));
    let environment = source.get().await.expect("a private desktop");
    let mut failed = 0;
    for (name, case) in cases::all() {
        if !wanted(name) {
            continue;
        }
        let environment = Arc::clone(&environment);
        let outcome = tokio::spawn(case(environment)).await;
        println!("test {name} ... {}", if outcome.is_ok() { "ok" } else { "FAILED" });
        failed += usize::from(outcome.is_err());
    }
    source.shutdown().await;
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
