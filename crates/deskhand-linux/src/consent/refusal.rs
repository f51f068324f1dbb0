//! The newest refusal, for whatever shows the person what an agent wanted.

use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use deskhand_core::consent::Refusal;
use deskhand_core::timestamp::rfc3339_seconds;
use serde_json::json;

use super::private_file;

/// The record of the newest refusal.
const FILE: &str = "consent-refusal.json";
/// Version of its shape.
const VERSION: u32 = 1;

/// Writes the record: whole or not at all, for this user alone.
pub(super) fn write(home: &Path, refusal: Refusal) -> io::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let record = json!({
        "version": VERSION,
        "surface": refusal.surface.name(),
        "tool": refusal.tool,
        "refused_at": rfc3339_seconds(now),
    });
    private_file::replace(home, FILE, format!("{record}\n").as_bytes())
}
