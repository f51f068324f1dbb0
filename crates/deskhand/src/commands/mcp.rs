//! `deskhand mcp`: one agent over MCP on stdin and stdout.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use deskhand_core::driver::{Driver, Profile};
use deskhand_core::{Error, SessionId};
use deskhand_linux::private::PrivateOptions;
use deskhand_mcp::{Limits, Options};
use deskhand_service::client::{OnLoss, Proxy};
use deskhand_service::election::Elected;
use deskhand_service::rule::{self, Mode, ModeFacts, PlatformFacts};
use deskhand_service::starting::{self, PATIENCE};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::fail_with;
use crate::cli::{LifetimeArg, LossArg, ServiceArgs};
use crate::guide;
use crate::lifecycle;
use crate::service::{Connector, Place};
use crate::wiring::{self, Setup, VERSION, Wiring, mint_session};

/// What the command line says about the process model.
pub(crate) struct Arrangement {
    pub(crate) service: ServiceArgs,
    pub(crate) no_daemon_relaunch: bool,
    pub(crate) lifetime: LifetimeArg,
    pub(crate) on_loss: LossArg,
    pub(crate) activity_dir: Option<PathBuf>,
}

pub(crate) fn run(
    private: Option<PrivateOptions>,
    profile: Profile,
    arrangement: Arrangement,
) -> io::Result<ExitCode> {
    let client = lifecycle::Client::find();
    let runtime = super::runtime()?;
    let code = runtime.block_on(serve(private, profile, arrangement, client));
    // A thread may be blocked in reading stdin: nothing ends it but the end of the process.
    runtime.shutdown_background();
    code
}

async fn serve(
    private: Option<PrivateOptions>,
    profile: Profile,
    arrangement: Arrangement,
    client: lifecycle::Client,
) -> io::Result<ExitCode> {
    let shutdown = CancellationToken::new();
    let label = client.name();
    lifecycle::watch(&shutdown, client)?;
    let facts = ModeFacts {
        no_daemon_relaunch: arrangement.no_daemon_relaunch,
        no_relaunch_variable: std::env::var_os("DESKHAND_MCP_NO_RELAUNCH"),
        platform: PlatformFacts::Linux { private: private.is_some() },
    };
    match rule::mode(&facts) {
        Mode::InProcess(_) => {
            let owner = match private {
                // Nobody else knows of it.
                Some(_) => None,
                None => match take_desktop(&arrangement.service).await {
                    Ok(owner) => owner,
                    Err(error) => return fail_with(&error, false),
                },
            };
            let holder = owner.as_ref().map(Elected::holder);
            match wiring::activity_log(arrangement.activity_dir.as_deref(), holder) {
                Ok(activity_log) => {
                    let setup = Setup { private, activity_log, ..Setup::default() };
                    in_process(setup, owner, profile, label, shutdown).await
                }
                Err(error) => fail_with(&error, false),
            }
        }
        Mode::Proxy(_) if arrangement.activity_dir.is_some() => Ok(super::fail(
            super::USAGE,
            "--activity-dir: calls go to the service of this desktop, which keeps the log: give it to `deskhand serve`; or add \
             --no-daemon-relaunch, so that this process owns the desktop",
        )),
        Mode::Proxy(reason) => {
            eprintln!(
                "deskhand: passes calls on to the service of this desktop, because {}; --no-daemon-relaunch owns the desktop in \
                 this process instead",
                reason.words()
            );
            proxy(arrangement, profile, label, shutdown).await
        }
    }
}

/// Takes the desktop for this process, if there is one.
async fn take_desktop(service: &ServiceArgs) -> Result<Option<Elected>, Error> {
    let Some(candidate) = Place::find(service)?.in_process()? else { return Ok(None) };
    let elected = starting::elect_until(&candidate, Instant::now() + PATIENCE).await;
    elected.map(Some).map_err(|error| Error::new(error.code(), error.to_string()))
}

async fn in_process(
    setup: Setup,
    owner: Option<Elected>,
    profile: Profile,
    label: Option<String>,
    shutdown: CancellationToken,
) -> io::Result<ExitCode> {
    let holder = owner.as_ref().map(Elected::holder);
    let wiring = Wiring::with(setup, holder, Arc::new(wiring::consent()))?;
    let session = mint_session();
    let driver = wiring.engine.lease(&session, label.as_deref()).map_err(io::Error::other)?;
    let failed = wiring.engine.failed();
    let lost = wiring.lost();
    end_with(&failed, &shutdown);
    let engine = wiring.engine.clone();
    let (gone, leave) = (lost.clone(), shutdown.clone());
    tokio::spawn(async move {
        gone.cancelled().await;
        engine.lose_desktop();
        leave.cancel();
    });
    let served = over_stdio(Arc::new(driver), session, profile, shutdown).await;
    wiring.shutdown().await;
    // Until now the desktop was ours alone.
    drop(owner);
    match served {
        Ok(()) if failed.is_cancelled() => {
            Err(io::Error::other("an operation could not be stopped (process_failed)"))
        }
        Ok(()) if lost.is_cancelled() => Err(io::Error::other("the display server has ended (desktop_lost)")),
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(error),
    }
}

async fn proxy(
    arrangement: Arrangement,
    profile: Profile,
    label: Option<String>,
    shutdown: CancellationToken,
) -> io::Result<ExitCode> {
    let session = mint_session();
    let connecting = async {
        let place = Place::find(&arrangement.service)?;
        let persistent = arrangement.lifetime == LifetimeArg::Persistent;
        let on_loss = match arrangement.on_loss {
            LossArg::Reconnect => OnLoss::Reconnect,
            LossArg::Relaunch => OnLoss::Relaunch,
            LossArg::Fail => OnLoss::Fail,
        };
        let connector = Arc::new(Connector { place, label, persistent });
        Proxy::new(connector, session.clone(), profile, on_loss).await
    };
    let driver = tokio::select! {
        biased;
        () = shutdown.cancelled() => return Ok(ExitCode::SUCCESS),
        () = lifecycle::end_of_input() => return Ok(ExitCode::SUCCESS),
        connected = connecting => match connected {
            Ok(driver) => driver,
            Err(error) => return fail_with(&error, false),
        },
    };
    over_stdio(Arc::new(driver), session, profile, shutdown).await?;
    Ok(ExitCode::SUCCESS)
}

async fn over_stdio(
    driver: Arc<dyn Driver>,
    session: SessionId,
    profile: Profile,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let options = Options {
        profile,
        session,
        version: VERSION.to_owned(),
        instructions: guide::INSTRUCTIONS.to_owned(),
        guide: guide::guide(),
        limits: Limits::default(),
    };
    deskhand_mcp::serve(driver, options, tokio::io::stdin(), tokio::io::stdout(), shutdown)
        .await
        .map_err(io::Error::other)
}

/// Leaves the client when the engine has failed: its calls are answered, and a new process begins afresh.
fn end_with(failed: &CancellationToken, shutdown: &CancellationToken) {
    let (failed, shutdown) = (failed.clone(), shutdown.clone());
    tokio::spawn(async move {
        failed.cancelled().await;
        shutdown.cancel();
    });
}
