//! `deskhand desktop run`: one command on a desktop of its own.

use std::ffi::OsString;
use std::path::PathBuf;

use deskhand_core::desktop::PortError;
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::PrivateOptions;
use super::owner::{Life, Owner, Streams};
use super::wire::Program;

/// Signals that are passed on to the command.
const PASSED: [Signal; 7] =
    [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2, Signal::WINCH];

/// Runs `command` on a private desktop with this process's standard streams, passes signals on to it, ends the
/// desktop, and answers the command's exit code (128 plus the signal that ended it).
///
/// # Errors
/// `Unavailable` if the desktop cannot be started, `LaunchFailed` if the command cannot, `DesktopLost`.
pub async fn run(options: PrivateOptions, program: PathBuf, command: Vec<OsString>) -> Result<u8, PortError> {
    let mut words = command.into_iter();
    let Some(path) = words.next() else {
        return Err(PortError::LaunchFailed("no command given".to_owned()));
    };
    let mut signals = passed_signals()?;
    let owner = tokio::select! {
        owner = Owner::start(options, &program, Streams::Ours) => owner?,
        // Dropping the half-started desktop closes its socket, which ends it.
        Some(signal) = signals.recv() => return Ok(code(128 + signal.as_raw())),
    };
    let command = Program {
        path: path.into(),
        args: words.collect(),
        variables: None,
        folder: None,
        standard_streams: true,
    };
    let result = follow(&owner, command, &mut signals).await;
    owner.end().await;
    result.map_err(|error| match (error, owner.life()) {
        (PortError::DesktopLost, Life::Over(Some(why))) => super::owner::unavailable(why),
        (error, _) => error,
    })
}

async fn follow(
    owner: &Owner,
    command: Program,
    signals: &mut mpsc::Receiver<Signal>,
) -> Result<u8, PortError> {
    let name = command.path.display().to_string();
    let pid = owner
        .start_program(command)
        .await?
        .map_err(|why| PortError::LaunchFailed(format!("{name} was not started: {why}")))?;
    let mut exit = std::pin::pin!(owner.wait(pid));
    loop {
        tokio::select! {
            exit = &mut exit => return Ok(code(exit?)),
            Some(signal) = signals.recv() => {
                if !from_terminal(signal) {
                    owner.signal(pid, signal).await?;
                }
            }
        }
    }
}

/// Signals for this process, from now on.
fn passed_signals() -> Result<mpsc::Receiver<Signal>, PortError> {
    let (sender, receiver) = mpsc::channel(16);
    for passed in PASSED {
        let mut stream = signal(SignalKind::from_raw(passed.as_raw()))
            .map_err(|error| PortError::Internal(format!("signals cannot be received: {error}")))?;
        let sender = sender.clone();
        tokio::spawn(
            async move { while stream.recv().await.is_some() && sender.send(passed).await.is_ok() {} },
        );
    }
    Ok(receiver)
}

/// Whether the command has got the signal as well: a terminal sends these to its whole foreground process group, which
/// the command is in.
fn from_terminal(signal: Signal) -> bool {
    let by_terminal = matches!(signal, Signal::INT | Signal::QUIT | Signal::WINCH | Signal::HUP);
    by_terminal
        && std::fs::File::open("/dev/tty")
            .ok()
            .and_then(|terminal| rustix::termios::tcgetpgrp(terminal).ok())
            .is_some_and(|group| group == rustix::process::getpgrp())
}

fn code(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(u8::MAX)
}
