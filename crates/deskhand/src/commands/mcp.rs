//! `deskhand mcp`: one agent over MCP on stdin and stdout.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use deskhand_core::driver::Profile;
use deskhand_linux::private::PrivateOptions;
use deskhand_mcp::{Limits, Options};
use tokio_util::sync::CancellationToken;

use crate::guide;
use crate::lifecycle;
use crate::wiring::{VERSION, Wiring, mint_session};

pub(crate) fn run(private: Option<PrivateOptions>, profile: Profile) -> io::Result<ExitCode> {
    let client = lifecycle::Client::find();
    let runtime = super::runtime()?;
    let code = runtime.block_on(serve(private, profile, client));
    // A thread may be blocked in reading stdin: nothing ends it but the end of the process.
    runtime.shutdown_background();
    code
}

async fn serve(
    private: Option<PrivateOptions>,
    profile: Profile,
    client: lifecycle::Client,
) -> io::Result<ExitCode> {
    let shutdown = CancellationToken::new();
    lifecycle::watch(&shutdown, client)?;
    let wiring = Wiring::new(private)?;
    let session = mint_session();
    let driver = wiring.engine.lease(&session, None).map_err(io::Error::other)?;
    let failed = wiring.engine.failed();
    end_with(&failed, &shutdown);
    let options = Options {
        profile,
        session,
        version: VERSION.to_owned(),
        instructions: guide::INSTRUCTIONS.to_owned(),
        guide: guide::guide(),
        limits: Limits::default(),
    };
    let served =
        deskhand_mcp::serve(Arc::new(driver), options, tokio::io::stdin(), tokio::io::stdout(), shutdown)
            .await;
    wiring.shutdown().await;
    match served {
        Ok(()) if failed.is_cancelled() => {
            Err(io::Error::other("an operation could not be stopped (process_failed)"))
        }
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(io::Error::other(error)),
    }
}

/// Leaves the client when the engine has failed: its calls are answered, and a new process begins afresh.
fn end_with(failed: &CancellationToken, shutdown: &CancellationToken) {
    let (failed, shutdown) = (failed.clone(), shutdown.clone());
    tokio::spawn(async move {
        failed.cancelled().await;
        shutdown.cancel();
    });
}
