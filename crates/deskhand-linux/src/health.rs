//! What works here, what is missing, and the command that mends it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use deskhand_core::desktop::{Check, CheckStatus, Health, Need, PortError, Screen, Windows};
use futures_util::future::{BoxFuture, join_all};
use tokio::time::timeout;

use crate::environment::{EnvironmentSource, SessionEnvironment};
use crate::private::needed::{self, Needed};

/// A subsystem that has not answered by then is reported as not working. Its own bounds are shorter.
const PROBE_LIMIT: Duration = Duration::from_secs(6);

/// Where display servers put their sockets.
const DISPLAY_SOCKETS: &str = "/tmp/.X11-unix";

/// What an agent does on a Linux desktop. That a window manager is missing, or that we are root, hinders none of it.
const NEEDS: [Need; 4] = [
    Need { name: "see_the_screen", checks: &["session", "x11", "capture", "xcomposite", "mit_shm"] },
    Need {
        name: "read_elements",
        checks: &["session_bus", "accessibility_bus", "accessibility_registry", "accessibility_enabled"],
    },
    Need { name: "use_pointer_and_keyboard", checks: &["session", "x11", "xtest", "xkb", "xinput"] },
    Need { name: "start_a_private_desktop", checks: &["private_desktop"] },
];

/// Looks at one subsystem.
pub type Probe = Box<dyn Fn() -> BoxFuture<'static, Vec<Check>> + Send + Sync>;

/// Says what works on one desktop. Every probe is bounded, all run at the same time, and none fails.
pub struct LinuxHealth {
    source: Arc<dyn EnvironmentSource>,
    subsystems: Vec<(&'static str, Probe)>,
}

impl std::fmt::Debug for LinuxHealth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LinuxHealth").finish_non_exhaustive()
    }
}

impl LinuxHealth {
    /// For the desktop that `source` leads to and its `subsystems`, each with the name of the check that says that it did
    /// not answer. No I/O.
    pub fn new(source: Arc<dyn EnvironmentSource>, subsystems: Vec<(&'static str, Probe)>) -> Self {
        Self { source, subsystems }
    }
}

#[async_trait]
impl Health for LinuxHealth {
    async fn checks(&self) -> Vec<Check> {
        let source = Arc::clone(&self.source);
        // Starts a private desktop that has not been started: what is asked for is whether it works.
        let session = bounded("session", async move { session_checks(source.get().await) });
        let subsystems = self.subsystems.iter().map(|(name, probe)| bounded(name, probe()));
        let (session, subsystems) = futures_util::future::join(session, join_all(subsystems)).await;
        session.into_iter().chain(subsystems.into_iter().flatten()).collect()
    }

    fn needs(&self) -> &'static [Need] {
        &NEEDS
    }
}

/// Looks at the display server: its monitors, and whether a window manager's windows can be listed.
pub fn display_probe(screen: Arc<dyn Screen>, windows: Arc<dyn Windows>) -> Probe {
    Box::new(move || {
        let (screen, windows) = (Arc::clone(&screen), Arc::clone(&windows));
        Box::pin(async move {
            let displays = match screen.displays().await {
                Ok(displays) => displays,
                Err(error) => {
                    let fix = "see `session`; XAUTHORITY must name the cookie of this display".to_owned();
                    return vec![check("x11", CheckStatus::Missing, error.to_string(), Some(fix))];
                }
            };
            let monitors: Vec<_> =
                displays.iter().map(|each| format!("{} {}", each.name, each.frame)).collect();
            match windows.list().await {
                Ok(list) => {
                    let what = format!("{}; {} windows", monitors.join(", "), list.len());
                    vec![check("x11", CheckStatus::Ok, what, None)]
                }
                Err(error) => vec![check("x11", CheckStatus::Missing, error.to_string(), None)],
            }
        })
    })
}

async fn bounded(name: &str, probe: impl Future<Output = Vec<Check>>) -> Vec<Check> {
    timeout(PROBE_LIMIT, probe).await.unwrap_or_else(|_| {
        vec![Check {
            name: name.to_owned(),
            status: CheckStatus::Missing,
            detail: format!("did not answer within {} s", PROBE_LIMIT.as_secs()),
            fix: None,
        }]
    })
}

fn session_checks(session: Result<Arc<SessionEnvironment>, PortError>) -> Vec<Check> {
    let (session, first) = match session {
        Ok(session) => {
            let first = desktop_session(&session, &display_sockets(Path::new(DISPLAY_SOCKETS)));
            (session, first)
        }
        Err(error) => {
            let fix = "deskhand doctor names what a private desktop needs".to_owned();
            let first = check("session", CheckStatus::Missing, error.to_string(), Some(fix));
            (Arc::default(), first)
        }
    };
    vec![first, user(rustix::process::geteuid().is_root()), private_desktop(&session.variables)]
}

/// The desktop that the variables lead to. `displays` are those that have a socket.
fn desktop_session(session: &SessionEnvironment, displays: &[String]) -> Check {
    let is_set = |name: &str| session.variables.get(OsStr::new(name)).is_some_and(|value| !value.is_empty());
    let session_type = session.variables.get(OsStr::new("XDG_SESSION_TYPE"));
    let wayland = is_set("WAYLAND_DISPLAY") || session_type.is_some_and(|kind| kind == "wayland");
    const OTHERS: &str = "log in to an X11 (Xorg) session, or use a private desktop: deskhand mcp --private";
    match &session.display {
        Some(display) if session.private => {
            check("session", CheckStatus::Ok, format!("a private desktop on display {display}"), None)
        }
        Some(display) if wayland => {
            let what =
                format!("a Wayland session; only X11 programs (XWayland, display {display}) can be used yet");
            check("session", CheckStatus::Degraded, what, Some(OTHERS.to_owned()))
        }
        Some(display) => {
            check("session", CheckStatus::Ok, format!("an X11 session on display {display}"), None)
        }
        None if wayland => {
            let what = "a Wayland session without XWayland, which is not supported yet".to_owned();
            check("session", CheckStatus::Missing, what, Some(OTHERS.to_owned()))
        }
        None => {
            let fix = match displays {
                [] => "use a private desktop: deskhand mcp --private; or start deskhand within a desktop session".to_owned(),
                [first, ..] => format!(
                    "set DISPLAY (here is {}) and XAUTHORITY as in the desktop session, e.g. DISPLAY={first}; \
                     or use a private desktop: deskhand mcp --private",
                    displays.join(", ")
                ),
            };
            check(
                "session",
                CheckStatus::Missing,
                "DISPLAY is not set, so no desktop is known".to_owned(),
                Some(fix),
            )
        }
    }
}

/// Displays that have a socket, lowest first.
fn display_sockets(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let number =
        |entry: std::fs::DirEntry| entry.file_name().to_str()?.strip_prefix('X')?.parse::<u32>().ok();
    let mut numbers: Vec<_> = entries.flatten().filter_map(number).collect();
    numbers.sort_unstable();
    numbers.into_iter().map(|number| format!(":{number}")).collect()
}

fn user(root: bool) -> Check {
    if root {
        let what = "root; Chromium and programs built on it start only with --no-sandbox then".to_owned();
        return check(
            "user",
            CheckStatus::Degraded,
            what,
            Some("run deskhand as an ordinary user".to_owned()),
        );
    }
    check("user", CheckStatus::Ok, "an ordinary user".to_owned(), None)
}

/// Whether a private desktop can be started. Says nothing of the desktop that is there.
fn private_desktop(variables: &BTreeMap<OsString, OsString>) -> Check {
    let path = variables.get(OsStr::new("PATH"));
    let is_missing = |needed: &Needed| needed.find(path.map(OsString::as_os_str)).is_none();
    let missing: Vec<Needed> = needed::ALL.into_iter().filter(is_missing).collect();
    if missing.is_empty() {
        let names = needed::ALL.map(|needed| needed.program).join(", ");
        return check("private_desktop", CheckStatus::Ok, format!("can be started: {names} are here"), None);
    }
    let names: Vec<_> =
        missing.iter().map(|needed| format!("{} ({})", needed.program, needed.role)).collect();
    let what = format!("cannot be started: {} not found", names.join(", "));
    check("private_desktop", CheckStatus::Missing, what, Some(needed::install_command(&missing)))
}

fn check(name: &str, status: CheckStatus, detail: String, fix: Option<String>) -> Check {
    Check { name: name.to_owned(), status, detail, fix }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(variables: &[(&str, &str)]) -> SessionEnvironment {
        SessionEnvironment::from_variables(
            variables.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        )
    }

    fn status(variables: &[(&str, &str)]) -> (CheckStatus, String) {
        let check = desktop_session(&session(variables), &[":3".to_owned()]);
        (check.status, format!("{} {}", check.detail, check.fix.unwrap_or_default()))
    }

    #[test]
    fn a_session_is_named() {
        assert_eq!(status(&[("DISPLAY", ":0")]).0, CheckStatus::Ok);
        let (half, text) = status(&[("DISPLAY", ":0"), ("WAYLAND_DISPLAY", "wayland-0")]);
        assert!(half == CheckStatus::Degraded && text.contains("Xorg"), "{text}");
        let (none, text) = status(&[("XDG_SESSION_TYPE", "wayland")]);
        assert!(none == CheckStatus::Missing && text.contains("not supported yet"), "{text}");
    }

    #[test]
    fn a_display_that_is_there_is_proposed() {
        let (status, text) = status(&[("DISPLAY", "")]);
        assert_eq!(status, CheckStatus::Missing);
        assert!(text.contains("DISPLAY=:3") && text.contains("--private"), "{text}");
    }

    #[test]
    fn missing_programs_come_with_their_command() {
        let check = private_desktop(&BTreeMap::from([("PATH".into(), "/nowhere".into())]));
        assert_eq!(check.status, CheckStatus::Missing);
        assert!(check.fix.unwrap().starts_with("apt-get install xvfb openbox dbus-daemon"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_subsystem_that_hangs_is_said_and_holds_up_nothing() {
        let hangs: Probe = Box::new(|| Box::pin(std::future::pending()));
        let works: Probe =
            Box::new(|| Box::pin(async { vec![check("fine", CheckStatus::Ok, String::new(), None)] }));
        let health =
            LinuxHealth::new(Arc::new(Arc::new(session(&[]))), vec![("stuck", hangs), ("fine", works)]);
        let checks = health.checks().await;
        let names: Vec<_> = checks.iter().map(|check| (check.name.as_str(), check.status)).collect();
        assert!(names.contains(&("stuck", CheckStatus::Missing)), "{names:?}");
        assert!(names.contains(&("fine", CheckStatus::Ok)), "{names:?}");
        assert!(names.contains(&("session", CheckStatus::Missing)), "{names:?}");
    }
}
