//! `deskhand stop`: ends the service in order.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use deskhand_core::{Code, Error};
use deskhand_service::client::Client;
use deskhand_service::wire;
use serde_json::json;

use super::{NO_SERVICE, fail_with};
use crate::cli::ServiceArgs;
use crate::lifecycle;
use crate::service::{NoService, Place};

/// How long a service may take to end: sessions have 5 s, the clipboard and a private desktop a few more.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn run(service: &ServiceArgs, json: bool) -> io::Result<ExitCode> {
    match super::runtime()?.block_on(stop(service)) {
        Err(error) => fail_with(&error, json),
        Ok(Err(none)) => {
            if json {
                super::print_json(&json!({"stopped": false}))?;
            } else {
                super::print(&none.to_string())?;
            }
            Ok(ExitCode::from(NO_SERVICE))
        }
        Ok(Ok(pid)) => {
            if json {
                super::print_json(&json!({"stopped": true, "pid": pid}))?;
            } else {
                super::print(&format!("the service (process {pid}) has ended"))?;
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The process that has ended, or why there is none to end.
async fn stop(service: &ServiceArgs) -> Result<Result<u32, NoService>, Error> {
    let ask = async |client: Client| {
        let pid = client.request::<wire::Status>(None, wire::Empty {}).await?.pid;
        // Before it is asked to end: its number may be somebody else's afterwards.
        let end = lifecycle::end_of(pid);
        client.request::<wire::Shutdown>(None, wire::Empty {}).await?;
        Ok((pid, end))
    };
    let (pid, end) = match Place::find(service)?.ask(ask).await? {
        Ok(asked) => asked,
        Err(none) => return Ok(Err(none)),
    };
    match tokio::time::timeout(PATIENCE, end).await {
        Ok(()) => Ok(Ok(pid)),
        Err(_) => {
            let message =
                format!("the service (process {pid}) was asked to end and has not; kill -9 {pid} ends it");
            Err(Error::new(Code::Timeout, message))
        }
    }
}
