//! `deskhand serve`: owns the desktop and shares it.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use deskhand_core::Error;
use deskhand_core::limits::Limits;
use deskhand_linux::private::PrivateOptions;
use deskhand_service::election::{Candidate, Elected};
use deskhand_service::holder::{Holder, Lifetime, Role};
use deskhand_service::server::{self, Ended, Served};
use deskhand_service::starting::{self, Outcome, PATIENCE};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::fail_with;
use crate::cli::{Limit, ServiceArgs};
use crate::lifecycle;
use crate::service::{self, Greeting, Place};
use crate::wiring::{self, Consent, Setup, Wiring};

/// The service that is wanted.
pub(crate) struct Wanted {
    /// On a desktop of its own.
    pub(crate) private: Option<PrivateOptions>,
    /// Where it listens, if not in the runtime folder.
    pub(crate) socket: Option<PathBuf>,
    /// Whether it ends with its last client.
    pub(crate) managed: bool,
    /// Whether it shows a preview.
    pub(crate) preview: bool,
    /// Where it keeps an activity log, if the command line says so.
    pub(crate) activity_dir: Option<PathBuf>,
}

pub(crate) fn run(wanted: Wanted, limits: &[Limit], consent: Consent) -> io::Result<ExitCode> {
    let limits = match set(limits) {
        Ok(limits) => limits,
        Err(error) => return Ok(super::fail(super::USAGE, error.message)),
    };
    let runtime = super::runtime()?;
    let code = runtime.block_on(serve(wanted, limits, consent));
    // Threads may still wait for a display server that does not answer.
    runtime.shutdown_background();
    code
}

fn set(wanted: &[Limit]) -> Result<Limits, Error> {
    let mut limits = Limits::default();
    for limit in wanted {
        limits.set(&limit.name, limit.value)?;
    }
    Ok(limits)
}

async fn serve(wanted: Wanted, limits: Limits, consent: Consent) -> io::Result<ExitCode> {
    let Wanted { private, socket, managed, preview, activity_dir } = wanted;
    let stop = CancellationToken::new();
    lifecycle::on_signal(&stop)?;
    let lifetime = if managed { Lifetime::Managed } else { Lifetime::Persistent };
    let candidate = Place::find(&ServiceArgs { socket, desktop: None })
        .and_then(|place| place.service(private.is_some(), lifetime));
    let candidate = match candidate {
        Ok(candidate) => candidate,
        Err(error) => return fail_with(&error, false),
    };
    let elected = match become_owner(&candidate, lifetime).await {
        Ok(Ok(elected)) => elected,
        #[cfg(feature = "host-consent")]
        Ok(Err(news)) if consent.can_have_host() => {
            let way = "it does not know this host token; `deskhand stop` ends it";
            return Ok(super::fail(1, format_args!("{news}, but {way}")));
        }
        Ok(Err(news)) if activity_dir.is_some() => {
            let way = "--activity-dir counts only at the start of a service; `deskhand stop` ends this one";
            return Ok(super::fail(1, format_args!("{news}, but {way}")));
        }
        Ok(Err(news)) => {
            super::print(&news)?;
            if preview {
                super::print("its preview is as it was; `deskhand config set preview true` shows it")?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => return fail_with(&error, false),
    };
    let activity_log = match wiring::activity_log(activity_dir.as_deref(), Some(elected.holder())) {
        Ok(log) => log,
        Err(error) => return fail_with(&error, false),
    };
    let setup = Setup { private, limits, preview: preview.then_some(true), activity_log };
    own(elected, setup, consent, stop).await
}

/// The right to own the desktop, or what became of it if the service is there already.
async fn become_owner(candidate: &Candidate, lifetime: Lifetime) -> Result<Result<Elected, String>, Error> {
    let deadline = Instant::now() + PATIENCE;
    let greeting = Greeting { persistent: lifetime == Lifetime::Persistent, ..Greeting::default() };
    let connect = |holder: Holder| {
        let (greeting, digest) = (greeting.clone(), candidate.build.digest.clone());
        async move { service::greet(&holder, digest, greeting).await }
    };
    match starting::connect_or_elect(candidate, deadline, connect).await {
        Ok(Outcome::Elected(elected)) => Ok(Ok(elected)),
        Ok(Outcome::Connected(Err(refused), _)) => Err(refused),
        Ok(Outcome::Connected(Ok(_), holder)) => match holder.role {
            // Launched at the same moment as another one, which is the service now.
            _ if lifetime == Lifetime::Managed => Ok(Err(format!("{holder} runs already"))),
            Role::Service { lifetime: Lifetime::Managed, .. } => {
                Ok(Err(format!("{holder} ran already and is persistent from now on")))
            }
            _ => {
                let message = format!("{holder} runs already; `deskhand stop` ends it");
                Err(Error::new(deskhand_core::Code::DesktopInUse, message))
            }
        },
        Err(error) => Err(Error::new(error.code(), error.to_string())),
    }
}

/// Serves until the end. The desktop is ours until the process has ended.
async fn own(
    elected: Elected,
    setup: Setup,
    consent: Consent,
    stop: CancellationToken,
) -> io::Result<ExitCode> {
    let consent = Arc::new(consent);
    let wiring = Wiring::with(setup, Some(elected.holder()), Arc::clone(&consent) as _)?;
    let holder = elected.holder();
    if matches!(holder.role, Role::Service { lifetime: Lifetime::Persistent, .. }) {
        let desktop = &holder.desktop;
        eprintln!(
            "deskhand: owns {desktop}; `deskhand mcp --desktop {desktop}` connects an agent, `deskhand stop --desktop {desktop}` ends it"
        );
    }
    let served = Served {
        engine: wiring.engine.clone(),
        #[cfg(feature = "host-consent")]
        consent,
    };
    let (ended, elected) = server::serve(elected, served, wiring.lost(), stop).await?;
    wiring.shutdown().await;
    let code = match ended {
        Ended::Stopped | Ended::Unused => ExitCode::SUCCESS,
        Ended::Failed => super::fail(1, "an operation could not be stopped (process_failed)"),
        Ended::DesktopLost => super::fail(1, "the display server has ended (desktop_lost)"),
    };
    // Locks are let go by the end of the process, after everything else.
    std::mem::forget(elected);
    Ok(code)
}
