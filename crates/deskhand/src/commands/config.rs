//! `deskhand config`: the global settings, with and without a running service.

use std::io;
use std::process::ExitCode;

use deskhand_core::call::{Answer, Call};
use deskhand_core::{Code, Error, Outcome};
use serde_json::{Map, Value, json};

use super::fail_with;
use crate::cli::{ConfigCommand, ServiceArgs};
use crate::service::Place;
use crate::wiring;

pub(crate) fn run(service: &ServiceArgs, json: bool, command: &ConfigCommand) -> io::Result<ExitCode> {
    if matches!(command, ConfigCommand::Path) {
        return path(json);
    }
    match super::runtime()?.block_on(answer(service, command)) {
        Err(error) => fail_with(&error, json),
        Ok(text) if !json => {
            super::print(&text.0)?;
            Ok(ExitCode::SUCCESS)
        }
        Ok((_, value)) => {
            super::print_json(&value)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn path(json: bool) -> io::Result<ExitCode> {
    let Some(path) = wiring::settings_file() else {
        return Ok(super::fail(1, "neither XDG_CONFIG_HOME nor HOME is set: settings are not kept"));
    };
    if json {
        super::print_json(&json!({"path": path}))?;
    } else {
        super::print(&path.to_string_lossy())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The answer as a text and as JSON.
async fn answer(service: &ServiceArgs, command: &ConfigCommand) -> Result<(String, Value), Error> {
    let (tool, arguments) = match command {
        ConfigCommand::Show | ConfigCommand::Path | ConfigCommand::Get { .. } => ("get_config", Map::new()),
        ConfigCommand::Set { name, value } => ("set_config", object(name, value_of(value))),
        ConfigCommand::Unset { name } => ("set_config", object("unset", json!([name]))),
    };
    let Answer { text, structured, .. } = call(service, tool, arguments).await?;
    let (ConfigCommand::Get { name } | ConfigCommand::Set { name, .. } | ConfigCommand::Unset { name }) =
        command
    else {
        return Ok((text, structured));
    };
    let value = structured["settings"].get(name).cloned().ok_or_else(|| {
        let known = structured["settings"].as_object().map(|all| all.keys().cloned().collect::<Vec<_>>());
        let message =
            format!("there is no setting {name:?}; there are: {}", known.unwrap_or_default().join(", "));
        Error::new(Code::InvalidArgument, message)
    })?;
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Ok((text, object(name, value).into()))
}

fn object(name: &str, value: Value) -> Map<String, Value> {
    Map::from_iter([(name.to_owned(), value)])
}

/// A number or a truth value is one; everything else is a word.
fn value_of(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ (Value::Number(_) | Value::Bool(_))) => value,
        _ => text.into(),
    }
}

/// Asks the service, or an engine that no desktop is needed for.
async fn call(service: &ServiceArgs, tool: &str, arguments: Map<String, Value>) -> Outcome {
    let call = Call::anonymous(tool, arguments);
    match Place::find(service)?.connect().await? {
        Ok(client) => client.submit(call).await,
        Err(_) => {
            let wiring = wiring::Wiring::new(None, None);
            let wiring = wiring.map_err(|error| Error::new(Code::InternalError, error.to_string()))?;
            wiring.engine.invoke(call).await
        }
    }
}
