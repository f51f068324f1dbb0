//! The Linux adapters behind the ports of `deskhand-core`: X11, AT-SPI, applications, the private desktop, and the
//! records of consent.
//!
//! Nothing here knows tools, sessions or transports. Making a [`desktop`] opens no display and no bus: each adapter
//! connects when its first method is called.

pub mod accessibility;
pub mod apps;
#[cfg(not(feature = "host-consent"))]
pub mod consent;
pub mod environment;
pub mod health;
pub mod input_method;
pub mod private;
mod process;
pub mod video;
pub mod x11;

use std::path::PathBuf;
use std::sync::Arc;

use deskhand_core::desktop::{Desktop, Screen, Windows};

use accessibility::AtSpi;
use apps::LinuxApps;
use environment::EnvironmentSource;
use health::{LinuxHealth, Probe};
use input_method::PlainKeyboard;
use x11::{X11, X11Clipboard};

/// The desktop that `source` leads to. `program` is our own executable, which adapters execute for their helpers.
///
/// No I/O: displays and buses are connected to, and a private desktop is started, by the first call that needs them.
pub fn desktop(source: Arc<dyn EnvironmentSource>, program: PathBuf) -> Desktop {
    let x11 = Arc::new(X11::new(Arc::clone(&source), program));
    let accessibility = Arc::new(AtSpi::new(Arc::clone(&source)));
    let windows = Arc::clone(&x11) as Arc<dyn Windows>;
    let screen = Arc::clone(&x11) as Arc<dyn Screen>;
    let subsystems = vec![
        ("x11", health::display_probe(Arc::clone(&screen), Arc::clone(&windows))),
        ("x11_extensions", extensions_probe(Arc::clone(&x11))),
        ("accessibility", accessibility_probe(Arc::clone(&accessibility))),
    ];
    let keyboard =
        PlainKeyboard::new(Arc::clone(&x11) as _, Arc::clone(&windows), Arc::clone(&source), x11.guard());
    Desktop {
        overlay: Arc::new(x11.overlay()),
        screen,
        pointer: x11,
        keyboard: Arc::new(keyboard),
        clipboard: Arc::new(X11Clipboard::new(Arc::clone(&source))),
        accessibility,
        apps: Arc::new(LinuxApps::new(Arc::clone(&source), Arc::clone(&windows))),
        windows,
        health: Arc::new(LinuxHealth::new(source, subsystems)),
    }
}

/// What the display server can do; that it answers at all is told by the other probe.
fn extensions_probe(x11: Arc<X11>) -> Probe {
    Box::new(move || {
        let x11 = Arc::clone(&x11);
        Box::pin(async move { x11.checks().await.into_iter().filter(|check| check.name != "x11").collect() })
    })
}

fn accessibility_probe(accessibility: Arc<AtSpi>) -> Probe {
    Box::new(move || {
        let accessibility = Arc::clone(&accessibility);
        Box::pin(async move { accessibility.checks().await })
    })
}
