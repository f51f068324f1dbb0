//! `deskhand sessions`: who uses the service.

use std::io;
use std::process::ExitCode;

use deskhand_core::{Code, Error};
use deskhand_service::client::Client;
use deskhand_service::wire;
use serde_json::json;

use super::{NO_SERVICE, fail_with, status};
use crate::cli::{ServiceArgs, SessionsCommand};
use crate::service::Place;

pub(crate) fn run(
    service: &ServiceArgs,
    json: bool,
    command: Option<SessionsCommand>,
) -> io::Result<ExitCode> {
    let done = super::runtime()?.block_on(async {
        let ask = async |client: Client| match &command {
            None => list(&client, json).await,
            Some(SessionsCommand::End { id }) => end(&client, id.clone(), json).await,
        };
        Place::find(service)?.ask(ask).await
    });
    match done {
        Err(error) => fail_with(&error, json),
        Ok(Err(none)) => {
            if json {
                super::print_json(&json!({"running": false}))?;
            }
            Ok(super::fail(NO_SERVICE, none))
        }
        Ok(Ok(text)) => {
            super::print(&text)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn list(client: &Client, json: bool) -> Result<String, Error> {
    let listed = client.request::<wire::Sessions>(None, wire::Empty {}).await?;
    if json {
        return pretty(&listed);
    }
    Ok(status::sessions(&listed.sessions))
}

async fn end(client: &Client, id: String, json: bool) -> Result<String, Error> {
    let parameters = wire::SessionEndParameters { session: Some(id.clone()) };
    let wire::SessionEnded { ended } = client.request::<wire::SessionEnd>(None, parameters).await?;
    if !ended {
        let message = format!("there is no session {id:?}; `deskhand sessions` lists them");
        return Err(Error::new(Code::InvalidArgument, message));
    }
    if json { pretty(&json!({"ended": id})) } else { Ok(format!("{id} has ended")) }
}

fn pretty(value: &impl serde::Serialize) -> Result<String, Error> {
    serde_json::to_string_pretty(value).map_err(|error| Error::new(Code::InternalError, error.to_string()))
}
