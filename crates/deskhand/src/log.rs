//! The log, on stderr. stdout belongs to the protocol and to answers.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Says how much is logged.
const VARIABLE: &str = "DESKHAND_LOG";

pub(crate) fn start() {
    let wanted = std::env::var(VARIABLE).ok();
    let level = wanted.as_deref().map_or(Ok(LevelFilter::WARN), str::parse);
    let filter = match level {
        // The SDK warns of each error that a client is answered with; that is the client's affair.
        Ok(level) if level <= LevelFilter::WARN => {
            Targets::new().with_default(level).with_target("rmcp", LevelFilter::OFF)
        }
        Ok(level) => Targets::new().with_default(level),
        Err(_) => Targets::new().with_default(LevelFilter::WARN).with_target("rmcp", LevelFilter::OFF),
    };
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    tracing_subscriber::registry().with(layer).with(filter).init();
    if level.is_err() {
        tracing::warn!("{VARIABLE} must be one of error, warn, info, debug, trace, off");
    }
}
