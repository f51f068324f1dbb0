use std::ffi::OsString;
use std::process::ExitCode;

use deskhand_linux::private::{self, PrivateOptions};

fn main() -> ExitCode {
    // Before anything else: the supervisor must be on a main thread that has no other beside it.
    if std::env::args_os().nth(1).is_some_and(|first| first == "supervise") {
        return private::supervise();
    }
    match desktop_run(std::env::args_os().skip(1).collect()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("deskhand: {error}");
            ExitCode::FAILURE
        }
    }
}

/// `desktop run [--size WxH] [--keep-home] -- COMMAND…`
fn desktop_run(words: Vec<OsString>) -> Result<u8, Box<dyn std::error::Error>> {
    let mut words = words.into_iter();
    if [words.next(), words.next()] != ["desktop", "run"].map(|word| Some(word.into())) {
        return Err("expected `desktop run [--size WxH] [--keep-home] -- COMMAND…`".into());
    }
    let mut options = PrivateOptions::default();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--") => break,
            Some("--keep-home") => options.keep_home = true,
            Some("--size") => {
                options.size = words.next().unwrap_or_default().to_string_lossy().parse()?;
            }
            _ => return Err(format!("{} is not known", word.to_string_lossy()).into()),
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(private::run(options, std::env::current_exe()?, words.collect()));
    Ok(result.unwrap_or_else(|error| {
        eprintln!("deskhand: {error}");
        private::exit_code(&error)
    }))
}
