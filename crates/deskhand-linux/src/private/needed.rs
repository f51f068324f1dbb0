//! The programs that a private desktop is made of, and the Debian packages that bring them.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A program and where it comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needed {
    /// Name of its file.
    pub(crate) program: &'static str,
    /// Debian package.
    pub(crate) package: &'static str,
    /// What it is for, in words.
    pub(crate) role: &'static str,
}

/// The display server.
pub(crate) const DISPLAY_SERVER: Needed =
    Needed { program: "Xvfb", package: "xvfb", role: "the display server" };
/// The window manager.
pub(crate) const WINDOW_MANAGER: Needed =
    Needed { program: "openbox", package: "openbox", role: "the window manager" };
/// The session bus.
pub(crate) const SESSION_BUS: Needed =
    Needed { program: "dbus-daemon", package: "dbus-daemon", role: "the session bus" };
/// The accessibility bus.
pub(crate) const ACCESSIBILITY: Needed =
    Needed { program: "at-spi-bus-launcher", package: "at-spi2-core", role: "the accessibility bus" };

/// All of them.
pub(crate) const ALL: [Needed; 4] = [DISPLAY_SERVER, WINDOW_MANAGER, SESSION_BUS, ACCESSIBILITY];

/// Where programs are looked for if there is no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Where distributions put programs that are not meant for a command line.
const PROGRAM_FOLDERS: [&str; 5] = [
    "/usr/libexec",
    "/usr/lib/at-spi2-core",
    "/usr/libexec/at-spi2-core",
    "/usr/lib/at-spi2",
    "/usr/local/libexec",
];

impl Needed {
    /// Its file: in the folders of `path` (as `PATH` spells them), then where distributions put such programs.
    pub(crate) fn find(&self, path: Option<&OsStr>) -> Option<PathBuf> {
        let below = |folder: &&'static str| Path::new(folder).join(self.program);
        find(self.program, Some(path.unwrap_or(OsStr::new(DEFAULT_PATH))))
            .or_else(|| PROGRAM_FOLDERS.iter().map(below).find(|file| is_program(file)))
    }
}

/// The first executable file called `program` in the folders of `path` (spelled as `PATH`).
pub(crate) fn find(program: impl AsRef<Path>, path: Option<&OsStr>) -> Option<PathBuf> {
    std::env::split_paths(path?)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program.as_ref()))
        .find(|candidate| is_program(candidate))
}

/// Whether the file exists and somebody may execute it.
pub(crate) fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// The command that installs the packages of `missing`.
pub(crate) fn install_command(missing: &[Needed]) -> String {
    let packages: Vec<_> = missing.iter().map(|needed| needed.package).collect();
    format!("apt-get install {}", packages.join(" "))
}

/// One sentence that names what is missing and the command that brings it.
pub(crate) fn missing_message(missing: &[Needed]) -> String {
    let names: Vec<_> =
        missing.iter().map(|needed| format!("{} ({})", needed.program, needed.role)).collect();
    format!("{} not found; install with `{}`", names.join(" and "), install_command(missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        assert_eq!(
            missing_message(&[DISPLAY_SERVER, ACCESSIBILITY]),
            "Xvfb (the display server) and at-spi-bus-launcher (the accessibility bus) not found; \
             install with `apt-get install xvfb at-spi2-core`"
        );
    }

    #[test]
    fn relative_folders_of_the_path_are_not_searched() {
        assert_eq!(find("sh", Some(OsStr::new("bin:.:"))), None);
        assert_eq!(find("sh", Some(OsStr::new("bin:/bin"))), Some(PathBuf::from("/bin/sh")));
    }
}
