use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: the supervisor must be on a main thread that has no other beside it.
    if std::env::args_os().nth(1).is_some_and(|first| first == "supervise") {
        return deskhand_linux::private::supervise();
    }
    ExitCode::SUCCESS
}
