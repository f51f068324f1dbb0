//! `deskhand call`: one tool, once.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use deskhand_core::call::{Answer, Call, Image};
use deskhand_core::{Code, Error, Outcome, SessionId};
use deskhand_linux::private::PrivateOptions;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::cli::CallArgs;
use crate::lifecycle;
use crate::service::{Greeting, Place};
use crate::wiring::Wiring;

pub(crate) fn run(arguments: CallArgs) -> io::Result<ExitCode> {
    let object = match read_object(arguments.arguments.as_deref()) {
        Ok(object) => object,
        Err(reason) => return Ok(super::fail(super::USAGE, reason)),
    };
    let outcome = super::runtime()?.block_on(call(&arguments, object))?;
    match outcome {
        Ok(answer) => show(&answer, arguments.json, arguments.out.as_deref()),
        Err(error) => {
            if arguments.json {
                super::print_json(&error.structured())?;
            }
            let code = if error.code == Code::UnknownTool { super::USAGE } else { 1 };
            Ok(super::fail(code, explain(&error)))
        }
    }
}

async fn call(arguments: &CallArgs, object: Map<String, Value>) -> io::Result<Outcome> {
    let cancel = CancellationToken::new();
    lifecycle::on_signal(&cancel)?;
    let session = arguments.session.as_deref().map(SessionId::new);
    let call = Call { tool: arguments.tool.clone(), arguments: object, session, cancel, ..Call::default() };
    if let Some(size) = arguments.private {
        return here(call, Some(PrivateOptions { size, keep_home: arguments.keep_home })).await;
    }
    let place = match Place::find(&arguments.service) {
        Ok(place) => place,
        Err(error) => return Ok(Err(error)),
    };
    // Without a desktop there is nothing to own: whatever needs one says so.
    if call.session.is_none() && place.is_nowhere() {
        return here(call, None).await;
    }
    match place.connect_or_launch(Greeting::default()).await {
        Ok((client, _)) => Ok(client.submit(call).await),
        Err(error) => Ok(Err(error)),
    }
}

/// Runs the call on an engine of its own.
async fn here(call: Call, private: Option<PrivateOptions>) -> io::Result<Outcome> {
    let wiring = Wiring::new(private, None)?;
    let outcome = wiring.engine.invoke(call).await;
    wiring.shutdown().await;
    Ok(outcome)
}

fn read_object(arguments: Option<&str>) -> Result<Map<String, Value>, String> {
    let text = match arguments {
        None => return Ok(Map::new()),
        Some("-") => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map_err(|error| format!("stdin: {error}"))?;
            text
        }
        Some(text) => text.to_owned(),
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("the arguments must be a JSON object, such as '{\"window_id\": 7}'".to_owned()),
        Err(error) => Err(format!("the arguments are not JSON: {error}")),
    }
}

fn explain(error: &Error) -> String {
    match error.code {
        Code::UnknownTool => format!("{}; `deskhand tools` lists them", error.message),
        code => format!("{code}: {}", error.message),
    }
}

fn show(answer: &Answer, json: bool, out: Option<&Path>) -> io::Result<ExitCode> {
    for (number, image) in answer.images.iter().enumerate() {
        match out {
            Some(out) => write(&numbered(out, number), image)?,
            None => eprintln!("deskhand: the answer has a picture; --out FILE writes it"),
        }
    }
    if out.is_some() && answer.images.is_empty() {
        return Ok(super::fail(1, "the answer has no picture, so nothing was written"));
    }
    if json {
        super::print_json(&answer.structured)?;
    } else {
        super::print(&answer.text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, image: &Image) -> io::Result<()> {
    std::fs::write(path, &image.bytes)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// The first picture has the name that was asked for, others a number.
fn numbered(path: &Path, number: usize) -> PathBuf {
    if number == 0 {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(extension) => format!("{stem}-{}.{}", number + 1, extension.to_string_lossy()),
        None => format!("{stem}-{}", number + 1),
    };
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_an_object_or_a_reason() {
        assert_eq!(read_object(None), Ok(Map::new()));
        assert_eq!(read_object(Some(r#"{"a": 1}"#)).unwrap()["a"], 1);
        assert!(read_object(Some("[1]")).unwrap_err().contains("must be a JSON object"));
        assert!(read_object(Some("{")).unwrap_err().contains("not JSON"));
    }

    #[test]
    fn further_pictures_get_a_number() {
        assert_eq!(numbered(Path::new("/a/b.png"), 0), Path::new("/a/b.png"));
        assert_eq!(numbered(Path::new("/a/b.png"), 1), Path::new("/a/b-2.png"));
        assert_eq!(numbered(Path::new("b"), 2), Path::new("b-3"));
    }
}
