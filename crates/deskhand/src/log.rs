//! The log, on stderr, which a launched service keeps short. stdout belongs to the protocol and to answers.

use std::path::PathBuf;

use deskhand_service::log::Log;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Says how much is logged.
const VARIABLE: &str = "DESKHAND_LOG";

/// What is logged: our own crates only. Libraries log what passes through them, at some level all of it: the text of the
/// screen, and what is typed. None of that may reach a log.
const OWN: &str = "deskhand";

/// `file`: what stderr has been made by whoever launched this process.
pub(crate) fn start(file: Option<PathBuf>) {
    let log = file.map_or(Log::none(), Log::at);
    let wanted = std::env::var(VARIABLE).ok();
    let level = wanted.as_deref().map_or(Ok(LevelFilter::WARN), str::parse);
    // A target stands for all that begin with it: deskhand_core, deskhand_linux and so on.
    let filter = Targets::new().with_target(OWN, *level.as_ref().unwrap_or(&LevelFilter::WARN));
    let layer = tracing_subscriber::fmt::layer().with_writer(move || log.clone()).with_ansi(false);
    tracing_subscriber::registry().with(layer).with(filter).init();
    if level.is_err() {
        tracing::warn!("{VARIABLE} must be one of error, warn, info, debug, trace, off");
    }
}
