//! `deskhand desktop run`: a command on a private desktop.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use deskhand_linux::private::{self, PrivateOptions, Size};

pub(crate) fn run(size: Size, keep_home: bool, command: Vec<OsString>) -> io::Result<ExitCode> {
    let program = crate::wiring::program();
    let options = PrivateOptions { size, keep_home };
    let result = super::runtime()?.block_on(private::run(options, program, command));
    Ok(match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => super::fail(private::exit_code(&error), error),
    })
}
