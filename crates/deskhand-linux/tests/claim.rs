//! The claim of a display, on an X server of its own. Needs Xvfb.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use deskhand_core::desktop::PortError;
use deskhand_linux::environment::{EnvironmentSource, SessionEnvironment};
use deskhand_linux::x11::claim::{Claim, ClaimedSource, NotClaimed, OwnerInfo, claim_owner};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

struct Display {
    server: Child,
    environment: Arc<SessionEnvironment>,
}

impl Display {
    fn start() -> Self {
        let mut server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "320x240x24", "-nolisten", "tcp", "-noreset"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Xvfb");
        let mut number = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut number).unwrap();
        let environment = SessionEnvironment {
            display: Some(format!(":{}", number.trim())),
            xauthority: Some("/nowhere".into()),
            ..SessionEnvironment::default()
        };
        Self { server, environment: Arc::new(environment) }
    }

    fn claim(&self, description: &str) -> Result<Claim, OwnerInfo> {
        match claim_owner(&self.environment, description) {
            Ok(claim) => Ok(claim),
            Err(NotClaimed::Owned(owner)) => Err(owner),
            Err(NotClaimed::Port(error)) => panic!("{error}"),
        }
    }

    fn source(&self, description: &str) -> ClaimedSource {
        ClaimedSource::new(Arc::new(Arc::clone(&self.environment)), description.to_owned())
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.server.id()).unwrap()).unwrap()
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        let _ = kill_process(self.pid(), Signal::CONT);
        // Asked, it removes its socket and its lock.
        let _ = kill_process(self.pid(), Signal::TERM);
        let _ = self.server.wait();
    }
}

#[test]
fn one_owns_a_display_and_the_other_reads_who() {
    let display = Display::start();
    let claim = display.claim("the service of host h, socket /run/x0.sock").unwrap();
    let owner = display.claim("another").unwrap_err();
    assert_eq!(owner.description, "the service of host h, socket /run/x0.sock");
    assert_eq!(owner.pid, Some(std::process::id()));
    drop(claim);
    // The server may still be about to notice: that is waited for.
    display.claim("another").unwrap();
}

#[test]
fn of_many_that_claim_at_once_one_gets_it() {
    let display = Display::start();
    let claims: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|number| {
                scope.spawn({
                    let display = &display;
                    move || display.claim(&number.to_string())
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let winner = claims.iter().position(Result::is_ok).unwrap();
    assert_eq!(claims.iter().filter(|claim| claim.is_ok()).count(), 1);
    for owner in claims.into_iter().filter_map(Result::err) {
        assert_eq!(owner.description, winner.to_string());
    }
}

#[tokio::test]
async fn a_source_gives_a_display_that_is_free_and_refuses_one_that_is_not() {
    let display = Display::start();
    let other = display.claim("the other\none").unwrap();
    let source = display.source("us");
    match source.get().await {
        Err(PortError::InUse(why)) => assert!(why.contains("(the otherone)"), "{why}"),
        result => panic!("{result:?}"),
    }
    drop(other);
    assert_eq!(source.get().await.unwrap(), display.environment);
    source.get().await.unwrap();
    assert_eq!(display.claim("late").unwrap_err().description, "us");
    let second = display.source("second");
    assert!(matches!(second.get().await, Err(PortError::InUse(_))));
}

#[tokio::test]
async fn a_display_that_cannot_be_opened_is_for_others_to_report() {
    let mut environment = SessionEnvironment::default();
    let source = |environment: &SessionEnvironment| {
        ClaimedSource::new(Arc::new(Arc::new(environment.clone())), "us".to_owned())
    };
    assert_eq!(*source(&environment).get().await.unwrap(), environment);
    environment.display = Some(":59999".to_owned());
    assert_eq!(*source(&environment).get().await.unwrap(), environment);
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_claimed_when_it_does() {
    let display = Display::start();
    kill_process(display.pid(), Signal::STOP).unwrap();
    assert!(waitpid(Some(display.pid()), WaitOptions::UNTRACED).unwrap().unwrap().1.stopped());
    let source = display.source("us");
    assert_eq!(source.get().await.unwrap(), display.environment);
    kill_process(display.pid(), Signal::CONT).unwrap();
    source.get().await.unwrap();
    assert_eq!(display.claim("late").unwrap_err().description, "us");
}
