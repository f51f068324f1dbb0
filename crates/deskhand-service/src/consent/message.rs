//! The lines between the service and a host, once the connection is the host's. `docs/wire.md` describes them.

use serde::{Deserialize, Serialize};

/// What proves that the host may be one.
#[derive(Deserialize)]
pub(super) struct Proof {
    /// That of the answer before.
    pub(super) nonce: String,
    /// The host token.
    pub(super) token: String,
}

/// A question.
#[derive(Serialize)]
pub(super) struct Question<'a> {
    pub(super) id: u64,
    pub(super) ask: Ask<'a>,
}

#[derive(Serialize)]
pub(super) struct Ask<'a> {
    pub(super) nonce: &'a str,
}

/// An answer. One with a reason not to answer, or with half of what was asked, grants nothing.
#[derive(Deserialize)]
pub(super) struct Answer {
    pub(super) id: u64,
    pub(super) nonce: String,
    #[serde(default)]
    pub(super) screen: Option<bool>,
    #[serde(default)]
    pub(super) control: Option<bool>,
    #[serde(default)]
    pub(super) error: serde_json::Value,
}

/// Word of a refusal.
#[derive(Serialize)]
pub(super) struct News<'a> {
    pub(super) refused: Refused<'a>,
}

#[derive(Serialize)]
pub(super) struct Refused<'a> {
    pub(super) surface: &'a str,
    pub(super) tool: &'a str,
}
