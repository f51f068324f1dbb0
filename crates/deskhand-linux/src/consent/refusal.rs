//! The newest refusal, for whatever shows the person what an agent wanted.

use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use deskhand_core::consent::Refusal;
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
        "refused_at": timestamp(now),
    });
    private_file::replace(home, FILE, format!("{record}\n").as_bytes())
}

/// Seconds since 1970 as RFC 3339 has them, in UTC. The days are counted in years that begin with March, so that the leap
/// day is the last of its year (<https://howardhinnant.github.io/date_algorithms.html>).
pub(super) fn timestamp(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let days = days + 719_468; // from the 1st of March of the year 0
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}
