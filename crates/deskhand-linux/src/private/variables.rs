//! The environment of programs on a private desktop.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use super::folder::Folder;

/// Marks every process of one private desktop, components and programs alike; its value is the desktop's id.
pub(crate) const MARKER: &str = "DESKHAND_DESKTOP";

/// Variables that lead to the user's own desktop, or say something about it that does not hold here.
const FOREIGN: [&str; 27] = [
    "AT_SPI_BUS_ADDRESS",
    "DBUS_SESSION_BUS_PID",
    "DBUS_SESSION_BUS_WINDOWID",
    "DBUS_STARTER_ADDRESS",
    "DBUS_STARTER_BUS_TYPE",
    "DESKTOP_SESSION",
    "DESKTOP_STARTUP_ID",
    "GDK_SCALE",
    "GDK_DPI_SCALE",
    "GDMSESSION",
    "GTK_A11Y",
    "GTK_MODULES",
    "ICEAUTHORITY",
    "MOZ_ENABLE_WAYLAND",
    "NO_AT_BRIDGE",
    "QT_SCALE_FACTOR",
    "SESSION_MANAGER",
    "SWAYSOCK",
    "WAYLAND_DISPLAY",
    "WAYLAND_SOCKET",
    "WINDOWID",
    "XDG_ACTIVATION_TOKEN",
    "XDG_CURRENT_DESKTOP",
    "XDG_SEAT",
    "XDG_SESSION_DESKTOP",
    "XDG_SESSION_ID",
    "XDG_VTNR",
];

/// Makes toolkits publish their trees, whatever they would find in a configuration.
pub(crate) const ACCESSIBLE: [(&str, &str); 3] = [
    ("ACCESSIBILITY_ENABLED", "1"),            // Chromium and what is built on it
    ("GNOME_ACCESSIBILITY", "1"),              // Firefox, LibreOffice
    ("QT_LINUX_ACCESSIBILITY_ALWAYS_ON", "1"), // Qt 5
];

/// What holds on every private desktop.
const FIXED: [(&str, &str); 7] = [
    ("GDK_BACKEND", "x11"),
    ("GSK_RENDERER", "cairo"),  // OpenGL in software costs GTK 4 seconds at its start
    ("GVFS_DISABLE_FUSE", "1"), // a mount in the runtime folder would outlive its server and block the removal
    ("LIBGL_ALWAYS_SOFTWARE", "1"),
    ("QT_QPA_PLATFORM", "xcb"),
    ("SAL_USE_VCLPLUGIN", "gtk3"), // the LibreOffice front end whose tree is complete
    ("XDG_SESSION_TYPE", "x11"),
];

/// The environment of components and programs, from that of the owner.
pub(super) fn compose(
    owner: impl IntoIterator<Item = (OsString, OsString)>,
    id: &str,
    folder: &Folder,
    display: u32,
    keep_home: bool,
) -> BTreeMap<OsString, OsString> {
    let mut variables: BTreeMap<OsString, OsString> = owner.into_iter().collect();
    for name in FOREIGN {
        variables.remove(OsStr::new(name));
    }
    let mut set = |name: &str, value: &OsStr| variables.insert(name.into(), value.to_owned());
    for (name, value) in ACCESSIBLE.iter().chain(&FIXED) {
        set(name, value.as_ref());
    }
    set(MARKER, id.as_ref());
    set("DISPLAY", format!(":{display}").as_ref());
    set("XAUTHORITY", folder.xauthority().as_ref());
    set("DBUS_SESSION_BUS_ADDRESS", folder.bus_address().as_ref());
    set("XDG_RUNTIME_DIR", folder.runtime().as_ref());
    set("TMPDIR", folder.temporary().as_ref());
    if !keep_home {
        variables.extend(home(folder));
    }
    // Without a UTF-8 locale toolkits drop or garble everything beyond ASCII.
    let is_set = |name: &str| variables.get(OsStr::new(name)).is_some_and(|value| !value.is_empty());
    if !["LC_ALL", "LC_CTYPE", "LANG"].into_iter().any(is_set) {
        variables.insert("LANG".into(), "C.UTF-8".into());
    }
    variables
}

/// XDG folders below a home of our own.
pub(super) const HOME_FOLDERS: [(&str, &str); 4] = [
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
];

/// The variables that lead to the desktop's own home.
pub(super) fn home(folder: &Folder) -> impl Iterator<Item = (OsString, OsString)> {
    let home = folder.home();
    let below = HOME_FOLDERS.map(|(name, below)| (name.into(), home.join(below).into()));
    std::iter::once(("HOME".into(), home.into())).chain(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn composed(keep_home: bool) -> BTreeMap<OsString, OsString> {
        let owner = [
            ("HOME", "/home/someone"),
            ("DISPLAY", ":0"),
            ("WAYLAND_DISPLAY", "wayland-0"),
            ("SESSION_MANAGER", "local/x"),
            ("XDG_DATA_HOME", "/home/someone/.data"),
            ("PATH", "/usr/bin"),
        ];
        let owner = owner.map(|(name, value)| (name.into(), value.into()));
        compose(owner, "id", &Folder::at("/tmp/x".into()), 7, keep_home)
    }

    #[test]
    fn nothing_leads_to_the_users_own_desktop() {
        let variables = composed(false);
        assert!(!variables.contains_key(OsStr::new("WAYLAND_DISPLAY")));
        assert!(!variables.contains_key(OsStr::new("SESSION_MANAGER")));
        assert_eq!(variables[OsStr::new("DISPLAY")], ":7");
        assert_eq!(variables[OsStr::new("HOME")], "/tmp/x/home");
        assert_eq!(variables[OsStr::new("XDG_DATA_HOME")], "/tmp/x/home/.local/share");
        assert_eq!(variables[OsStr::new("PATH")], "/usr/bin");
        assert_eq!(variables[OsStr::new("LANG")], "C.UTF-8");
    }

    #[test]
    fn the_users_home_is_kept_if_asked_for() {
        let variables = composed(true);
        assert_eq!(variables[OsStr::new("HOME")], "/home/someone");
        assert_eq!(variables[OsStr::new("XDG_DATA_HOME")], "/home/someone/.data");
        assert_eq!(variables[OsStr::new("XDG_RUNTIME_DIR")], "/tmp/x/run");
    }
}
