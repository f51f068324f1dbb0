//! `deskhand connect`: the wire on stdin and stdout, for programs that speak it themselves.

use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use super::fail_with;
use crate::cli::ServiceArgs;
use crate::service::{Greeting, Place};

pub(crate) fn run(service: &ServiceArgs) -> io::Result<ExitCode> {
    let runtime = super::runtime()?;
    let code = runtime.block_on(pass(service));
    // A thread may be blocked in reading stdin: nothing ends it but the end of the process.
    runtime.shutdown_background();
    code
}

async fn pass(service: &ServiceArgs) -> io::Result<ExitCode> {
    let connected = async { Place::find(service)?.connect_or_launch(Greeting::default()).await };
    // The first connection keeps the service there while the second one waits to be taken.
    let (_greeted, socket) = match connected.await {
        Ok(connected) => connected,
        Err(error) => return fail_with(&error, false),
    };
    let stream = UnixStream::connect(&socket).await?;
    let (mut from_service, mut to_service) = stream.into_split();
    let (mut stdin, mut stdout) = (tokio::io::stdin(), tokio::io::stdout());
    // Whether stdin has ended, after which the service closes its side.
    let asked = AtomicBool::new(false);
    let sending = async {
        tokio::io::copy(&mut stdin, &mut to_service).await?;
        // The service answers what it has been asked, and then closes its side.
        to_service.shutdown().await?;
        asked.store(true, Ordering::Relaxed);
        std::future::pending::<io::Result<()>>().await
    };
    let receiving = async {
        tokio::io::copy(&mut from_service, &mut stdout).await?;
        stdout.flush().await
    };
    tokio::select! {
        biased;
        received = receiving => received?,
        sent = sending => sent?,
    }
    if asked.load(Ordering::Relaxed) {
        Ok(ExitCode::SUCCESS)
    } else {
        Ok(super::fail(1, format_args!("the service at {} has closed the connection", socket.display())))
    }
}
