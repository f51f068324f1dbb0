//! What of the display works, for the health report. Each question is one that cannot disturb anybody.

use deskhand_core::desktop::{Check, CheckStatus, PortError, Stop};
use x11rb::connection::RequestConnection as _;
use x11rb::protocol::{xinput, xkb, xtest};

use super::X11;
use super::connection::{Link, Trouble};
use super::screen::Camera;

/// Where extensions come from, if one is missing.
const OTHER_SERVER: &str = "use an X server that has it, such as Xorg or Xvfb without -extension";

impl X11 {
    /// Asks the display what it can do. Never fails: what does not work is a check that says so. Bounded by the time
    /// that a server may be silent, once for windows and once for captures.
    pub async fn checks(&self) -> Vec<Check> {
        let stop = Stop::new();
        let windows = self.desk.run(&stop, false, |desk, _, _| {
            let listing = desk.list()?;
            Ok((listing.root, listing.managed, listing.windows.len(), extensions(&desk.link)?))
        });
        let (desktop, managed, count, extensions) = match windows.await {
            Ok(found) => found,
            Err(error) => return vec![unreachable_display(&error)],
        };
        let mut checks = vec![
            check(
                "x11",
                CheckStatus::Ok,
                format!("the desktop is {} by {} pixels", desktop.width, desktop.height),
            ),
            match managed {
                true => check("window_manager", CheckStatus::Ok, format!("is there; {count} windows")),
                false => Check {
                    fix: Some("start a window manager, such as openbox".to_owned()),
                    ..check(
                        "window_manager",
                        CheckStatus::Degraded,
                        "is not there: windows come from the window tree, and none can be minimised"
                            .to_owned(),
                    )
                },
            },
        ];
        checks.extend(extensions);
        checks.extend(self.capture_checks().await);
        checks
    }

    async fn capture_checks(&self) -> Vec<Check> {
        let work =
            |camera: &mut Camera, _: &_, _: &_| Ok((camera.has_composite(), camera.has_shared_memory()?));
        match self.camera.run(&Stop::new(), false, work).await {
            Ok((composite, shared)) => vec![
                extension(
                    "xcomposite",
                    composite,
                    "windows can be captured while others cover them",
                    CheckStatus::Degraded,
                ),
                extension(
                    "mit_shm",
                    shared,
                    "pixels are shared with the display server",
                    CheckStatus::Degraded,
                ),
            ],
            Err(error) => vec![check("capture", CheckStatus::Missing, error.to_string())],
        }
    }
}

fn extensions(link: &Link) -> Result<Vec<Check>, Trouble> {
    let present = |name| link.x.extension_information(name).map(|found| found.is_some());
    Ok(vec![
        extension(
            "xtest",
            present(xtest::X11_EXTENSION_NAME)?,
            "keys and clicks can be sent",
            CheckStatus::Missing,
        ),
        extension(
            "xkb",
            present(xkb::X11_EXTENSION_NAME)?,
            "the keyboard layout can be read",
            CheckStatus::Missing,
        ),
        extension(
            "xinput",
            present(xinput::X11_EXTENSION_NAME)?,
            "keys that a person holds can be told from ours",
            CheckStatus::Degraded,
        ),
    ])
}

fn extension(name: &str, present: bool, what: &str, otherwise: CheckStatus) -> Check {
    if present {
        return check(name, CheckStatus::Ok, what.to_owned());
    }
    let detail = format!("the display server lacks it; with it, {what}");
    Check { fix: Some(OTHER_SERVER.to_owned()), ..check(name, otherwise, detail) }
}

fn unreachable_display(error: &PortError) -> Check {
    let fix = match error {
        PortError::Unavailable { .. } => Some("set DISPLAY and XAUTHORITY, or use --private".to_owned()),
        _ => None,
    };
    Check { fix, ..check("x11", CheckStatus::Missing, error.to_string()) }
}

fn check(name: &str, status: CheckStatus, detail: String) -> Check {
    Check { name: name.to_owned(), status, detail, fix: None }
}
