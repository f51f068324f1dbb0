//! Lines as objects.

use deskhand_core::{Code, Error};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Characters of a session's name. A host's name and a random number fit; a person has to read it.
const MAX_NAME: usize = 128;

/// Whether a session may be called so: what is shown to people must not be able to change their terminal.
fn is_name(name: &str) -> bool {
    let printable = |c: char| {
        !c.is_control() && !('\u{200b}'..='\u{202e}').contains(&c) && !('\u{2060}'..='\u{206f}').contains(&c)
    };
    (1..=MAX_NAME).contains(&name.chars().count()) && name.chars().all(printable)
}

/// A request, before its method is looked at.
#[derive(Debug, Deserialize)]
pub struct Request {
    /// Chosen by the client; the answer carries it.
    pub id: u64,
    /// What is asked.
    pub method: String,
    /// The session that it belongs to.
    #[serde(default)]
    pub session_id: Option<String>,
    /// The method's parameters.
    #[serde(flatten)]
    pub parameters: Map<String, Value>,
}

/// Why a line is no request.
#[derive(Debug)]
pub struct RequestError {
    /// The `id`, if it can be told.
    pub id: Option<u64>,
    /// What is wrong.
    pub reason: String,
}

impl Request {
    /// Reads a line.
    ///
    /// # Errors
    /// What is wrong with it, and the `id` if the line has a usable one.
    pub fn read(line: &[u8]) -> Result<Self, RequestError> {
        let value: Value = serde_json::from_slice(line)
            .map_err(|error| RequestError { id: None, reason: format!("the line is not JSON: {error}") })?;
        let id = value.get("id").and_then(Value::as_u64);
        if !value.is_object() {
            return Err(RequestError { id, reason: "a request must be a JSON object".to_owned() });
        }
        if id.is_none() {
            return Err(RequestError { id, reason: "`id` must be a whole number from 0 on".to_owned() });
        }
        let request: Self =
            serde_json::from_value(value).map_err(|error| RequestError { id, reason: error.to_string() })?;
        match &request.session_id {
            Some(session) if !is_name(session) => {
                let reason = format!("`session_id` must have 1 to {MAX_NAME} characters that can be printed");
                Err(RequestError { id, reason })
            }
            _ => Ok(request),
        }
    }

    /// The parameters as the method's type.
    ///
    /// # Errors
    /// `invalid_argument`, naming the field.
    pub fn parameters<T: DeserializeOwned>(self) -> Result<T, Error> {
        serde_path_to_error::deserialize(Value::Object(self.parameters)).map_err(|error| {
            Error::new(Code::InvalidArgument, format!("`{}`: {}", error.path(), error.inner()))
        })
    }
}

/// An error as the wire spells it: see `docs/errors.md` for the codes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Stable, `snake_case`.
    pub code: String,
    /// What happened and what to do next.
    pub message: String,
    /// What was lost: `request`, `snapshot`, `handle`, `capture`, `session` or `process`.
    #[serde(default)]
    pub recovery: String,
    /// More of it, by code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let Failure { code, message, details, .. } = failure;
        match Code::named(&code) {
            Some(code) => Self { code, message, details },
            // Of a service that knows more codes than this client.
            None => Self { code: Code::InternalError, message: format!("{code}: {message}"), details },
        }
    }
}

/// A line from the service, as a client reads it: exactly one of `ok`, `error` and `progress`.
#[derive(Debug, Deserialize)]
pub struct Reply {
    /// The request's; null if the line that it answers had none.
    pub id: Option<u64>,
    /// The method's answer.
    #[serde(default)]
    pub ok: Option<Value>,
    /// Why there is none.
    #[serde(default)]
    pub error: Option<Failure>,
    /// The call goes on; its answer comes later.
    #[serde(default)]
    pub progress: Option<super::Progressed>,
}

/// Writes a request.
pub(crate) fn request_line(
    id: u64,
    method: &str,
    session: Option<&str>,
    parameters: impl Serialize,
) -> serde_json::Result<Vec<u8>> {
    #[derive(Serialize)]
    struct Line<'a, P> {
        id: u64,
        method: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        session_id: Option<&'a str>,
        #[serde(flatten)]
        parameters: P,
    }
    line(&Line { id, method, session_id: session, parameters })
}

/// Writes an answer.
pub(crate) fn answer_line(id: u64, answer: impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Line<T> {
        id: u64,
        ok: T,
    }
    line(&Line { id, ok: answer }).unwrap_or_else(|error| {
        let message = format!("the answer could not be written: {error}");
        error_line(Some(id), &Error::new(Code::InternalError, message))
    })
}

/// Writes an error.
pub(crate) fn error_line(id: Option<u64>, error: &Error) -> Vec<u8> {
    #[derive(Serialize)]
    struct Line {
        id: Option<u64>,
        error: Value,
    }
    line(&Line { id, error: error.to_json() }).unwrap_or_else(|error| {
        // A value that was built from texts and numbers always has a JSON form.
        tracing::error!(%error, "an error could not be written");
        b"{\"id\":null}\n".to_vec()
    })
}

/// Writes how far a call has come.
pub(crate) fn progress_line(id: u64, progress: &super::Progressed) -> serde_json::Result<Vec<u8>> {
    #[derive(Serialize)]
    struct Line<'a> {
        id: u64,
        progress: &'a super::Progressed,
    }
    line(&Line { id, progress })
}

fn line(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anonymous_request_has_no_trace_of_sessions() {
        let line = request_line(7, "status", None, super::super::Empty {}).unwrap();
        assert_eq!(String::from_utf8(line).unwrap(), "{\"id\":7,\"method\":\"status\"}\n");
    }

    #[test]
    fn what_is_wrong_with_a_line_is_said_with_its_id() {
        let reason = |line: &str| {
            let error = Request::read(line.as_bytes()).unwrap_err();
            (error.id, error.reason)
        };
        assert!(reason("{").1.contains("not JSON"));
        assert_eq!(reason("[]"), (None, "a request must be a JSON object".to_owned()));
        assert_eq!(reason("{\"id\": \"a\"}"), (None, "`id` must be a whole number from 0 on".to_owned()));
        for name in ["", "a\\u001b[31m", &"x".repeat(129)] {
            let (id, reason) = reason(&format!(r#"{{"id": 5, "method": "call", "session_id": "{name}"}}"#));
            assert!(id == Some(5) && reason.contains("1 to 128 characters"), "{reason}");
        }
        assert_eq!(reason("{\"id\": 4}"), (Some(4), "missing field `method`".to_owned()));
        assert!(
            Request::read(b"{\"id\":1,\"method\":\"x\",\"m\":\"\xff\"}").unwrap_err().reason.contains("JSON")
        );
    }

    #[test]
    fn an_error_comes_back_as_it_was_sent() {
        let sent = Error::argument("x", "a number").with_details(serde_json::json!({"at": 1}));
        let line = error_line(Some(3), &sent);
        let reply: Reply = serde_json::from_slice(&line).unwrap();
        let failure = reply.error.unwrap();
        assert_eq!((reply.id, failure.recovery.as_str()), (Some(3), "request"));
        assert_eq!(Error::from(failure), sent);
    }
}
