//! What works of accessibility here.

use std::time::Duration;

use tokio::time::Instant;

use deskhand_core::desktop::{Check, CheckStatus, PortError};

use super::bus::{Bus, Session};
use super::{AtSpi, frames};

/// The longest that the registry may take to list its applications.
const LIST: Duration = Duration::from_secs(2);

/// Probes the buses and the registry; each probe is bounded by itself.
pub(super) async fn all(atspi: &AtSpi) -> Vec<Check> {
    let mut checks = Vec::new();
    let environment = match atspi.source.get().await {
        Ok(environment) => environment,
        Err(error) => {
            checks.push(missing(
                "session_bus",
                &error,
                "start deskhand within a desktop session, or with --private",
            ));
            return checks;
        }
    };
    let session = match Session::connect(&environment).await {
        Ok(session) => session,
        Err(error) => {
            checks.push(missing(
                "session_bus",
                &error,
                "start deskhand within a desktop session, or with --private",
            ));
            return checks;
        }
    };
    checks.push(good("session_bus", "the session bus answers".to_owned()));
    match session.accessibility_address().await {
        Ok(_) => checks.push(good("accessibility_bus", "org.a11y.Bus gives its address".to_owned())),
        Err(error) => {
            checks.push(missing("accessibility_bus", &error, "sudo apt install at-spi2-core"));
            return checks;
        }
    }
    checks.push(enabled(&session).await);
    checks.push(match atspi.bus().await {
        Ok(bus) => registry(&bus).await,
        Err(error) => missing("accessibility_registry", &error, "log in again, or end at-spi2-registryd"),
    });
    checks
}

async fn enabled(session: &Session) -> Check {
    match session.is_enabled().await {
        Ok(true) => good("accessibility_enabled", "applications are told to publish their trees".to_owned()),
        Ok(false) => Check {
            name: "accessibility_enabled".to_owned(),
            status: CheckStatus::Degraded,
            detail: "IsEnabled is off: Chromium, Electron and Firefox publish no tree".to_owned(),
            fix: Some(
                "gsettings set org.gnome.desktop.interface toolkit-accessibility true, then start them anew"
                    .to_owned(),
            ),
        },
        Err(why) => Check {
            name: "accessibility_enabled".to_owned(),
            status: CheckStatus::Degraded,
            detail: format!("IsEnabled cannot be read: {why}"),
            fix: None,
        },
    }
}

async fn registry(bus: &Bus) -> Check {
    let name = "accessibility_registry";
    match frames::applications(bus, Instant::now() + LIST).await {
        Ok(apps) => good(name, format!("{} applications are on the accessibility bus", apps.len())),
        Err(error) => Check {
            name: name.to_owned(),
            status: CheckStatus::Missing,
            detail: format!("the registry does not list its applications: {error}"),
            fix: Some("log in again, or end at-spi2-registryd".to_owned()),
        },
    }
}

fn good(name: &str, detail: String) -> Check {
    Check { name: name.to_owned(), status: CheckStatus::Ok, detail, fix: None }
}

fn missing(name: &str, error: &PortError, fix: &str) -> Check {
    Check {
        name: name.to_owned(),
        status: CheckStatus::Missing,
        detail: error.to_string(),
        fix: Some(fix.to_owned()),
    }
}
