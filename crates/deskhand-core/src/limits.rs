//! Limits of the service and of each session, as settings of the service.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::{Code, Error, Result};

/// How much there may be of what clients make. A call that would go over one answers `limit_exceeded`, which names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Named sessions that live at a time. A desktop is used by a handful of agents.
    pub sessions: usize,
    /// Connections of a service. Below the 1024 descriptors that a process usually has.
    pub connections: usize,
    /// Calls of one session that are under way. Far more than any agent uses; a bound against a runaway client.
    pub calls: usize,
    /// Snapshots kept for a session; the oldest are dropped. A busy agent looks at a handful of windows a few times each.
    pub snapshots: usize,
    /// Bytes of answers that one connection has not read.
    pub output_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { sessions: 256, connections: 512, calls: 1024, snapshots: 32, output_bytes: 64 * 1024 * 1024 }
    }
}

impl Limits {
    /// Sets one by its name, for a command line.
    ///
    /// # Errors
    /// `invalid_argument` if there is none of that name, or it is zero.
    pub fn set(&mut self, name: &str, value: usize) -> Result<()> {
        let limit = match name {
            "sessions" => &mut self.sessions,
            "connections" => &mut self.connections,
            "calls" => &mut self.calls,
            "snapshots" => &mut self.snapshots,
            "output_bytes" => &mut self.output_bytes,
            _ => {
                let names = "sessions, connections, calls, snapshots, output_bytes";
                return Err(Error::argument(
                    "limit",
                    format!("there is no limit {name:?}; there are: {names}"),
                ));
            }
        };
        if value == 0 {
            return Err(Error::argument(name, "expected at least 1"));
        }
        *limit = value;
        Ok(())
    }
}

/// The error of a call that would go over the limit called `name`; `next` says what to do about it.
pub fn exceeded(name: &str, limit: usize, next: &str) -> Error {
    Error::new(Code::LimitExceeded, format!("the limit `{name}` is {limit}; {next}"))
        .with_details(json!({"limit": name, "value": limit}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_can_be_set_by_its_name() {
        let mut limits = Limits::default();
        let names = serde_json::to_value(limits).unwrap();
        for name in names.as_object().unwrap().keys() {
            limits.set(name, 7).unwrap();
        }
        let set = serde_json::to_value(limits).unwrap();
        assert!(set.as_object().unwrap().values().all(|value| *value == 7), "{set}");
        assert_eq!(limits.set("wishes", 3).unwrap_err().code, Code::InvalidArgument);
        assert_eq!(limits.set("calls", 0).unwrap_err().code, Code::InvalidArgument);
    }
}
