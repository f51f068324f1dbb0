//! What a desktop is called. Names are canonical: two spellings of one display are one name, so one lock.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Where X servers on this machine listen.
const X_SOCKETS: &str = "/tmp/.X11-unix";

/// Begins the name of a desktop that a process started for itself.
const PRIVATE: &str = "private:";

/// Names that are long or hold unusual characters appear in file names by so many hexadecimal digits of their digest.
const HASH_DIGITS: usize = 16;

/// So much of such a name is kept in front of the digits, for people who look into the folder.
const READABLE: usize = 24;

/// The canonical name of a desktop: `:0`, `host:10`, `wayland-0`, `private:NAME`, or the path of a socket.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DesktopName(String);

/// Something that is not the name of a desktop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the name of a desktop; expected a display such as :0, host:10 or wayland-0")]
pub struct NotADesktop(pub String);

impl DesktopName {
    /// The X display that `DISPLAY` spells so. The screen is dropped: all screens of a display are one desktop.
    ///
    /// # Errors
    /// The text names no display.
    pub fn x11(display: &str) -> Result<Self, NotADesktop> {
        let wrong = || NotADesktop(display.to_owned());
        if let Some(path) = display.strip_prefix("unix:").filter(|path| path.starts_with('/')) {
            return Ok(Self::x11_socket(path));
        }
        if display.starts_with('/') {
            return Ok(Self::x11_socket(display));
        }
        let (protocol, rest) =
            display.rsplit_once('/').map_or((None, display), |(protocol, rest)| (Some(protocol), rest));
        let (host, numbers) = rest.rsplit_once(':').ok_or_else(wrong)?;
        let (number, screen) = numbers.split_once('.').unwrap_or((numbers, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(number) || !is_number(screen) {
            return Err(wrong());
        }
        let number: u16 = number.parse().map_err(|_| wrong())?;
        let protocol = protocol.map(str::to_ascii_lowercase);
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let over_network = matches!(protocol.as_deref(), Some("tcp" | "inet" | "inet6"));
        let on_socket = matches!(protocol.as_deref(), Some("unix" | "local"));
        // `localhost/unix:0` and `machine/unix:0` are how cookie files spell a local display.
        if on_socket || (!over_network && (host.is_empty() || host == "unix")) {
            return Ok(Self(format!(":{number}")));
        }
        Ok(Self(match host.as_str() {
            "" => format!("localhost:{number}"),
            host if host.contains(':') => format!("[{host}]:{number}"),
            host => format!("{host}:{number}"),
        }))
    }

    fn x11_socket(path: &str) -> Self {
        let number = path.strip_prefix(X_SOCKETS).and_then(|rest| rest.strip_prefix("/X"));
        let number = number.map(|rest| rest.split_once('.').map_or(rest, |(number, _)| number));
        match number.and_then(|number| number.parse::<u16>().ok()) {
            Some(number) => Self(format!(":{number}")),
            None => Self(path.to_owned()),
        }
    }

    /// The Wayland display that `WAYLAND_DISPLAY` spells so: a name in `runtime` (`$XDG_RUNTIME_DIR`), or a path.
    ///
    /// # Errors
    /// The text names no display.
    pub fn wayland(display: &str, runtime: Option<&Path>) -> Result<Self, NotADesktop> {
        let wrong = || NotADesktop(display.to_owned());
        let path = Path::new(display);
        if path.is_absolute() {
            let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(wrong)?;
            let inside = runtime.is_some_and(|runtime| path.parent() == Some(runtime));
            return Ok(Self(if inside { name.to_owned() } else { display.to_owned() }));
        }
        if display.is_empty() || display.contains(['/', ':', '\0']) {
            return Err(wrong());
        }
        Ok(Self(display.to_owned()))
    }

    /// A desktop that a process started for itself; `name` has to be unique for the user.
    ///
    /// # Errors
    /// An empty name, or one with a line end.
    pub fn private(name: &str) -> Result<Self, NotADesktop> {
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(NotADesktop(format!("{PRIVATE}{name}")));
        }
        Ok(Self(format!("{PRIVATE}{name}")))
    }

    /// Whether it is a desktop that a process started for itself.
    pub fn is_private(&self) -> bool {
        self.0.starts_with(PRIVATE)
    }

    /// The canonical name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as a part of file names: different for different names, short, of harmless characters.
    pub fn file_name(&self) -> String {
        let digits =
            |text: &str| (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(number) = self.0.strip_prefix(':').filter(|number| digits(number)) {
            return format!("x{number}");
        }
        if self.0.strip_prefix("wayland-").is_some_and(digits) {
            return self.0.clone();
        }
        let readable = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let readable: String = self.0.chars().take(READABLE).map(readable).collect();
        format!("{readable}-{}", short_hash(self.0.as_bytes()))
    }

    /// The socket that the display server listens on, where the name tells it: a display whose socket is missing is not
    /// there. `runtime` is `$XDG_RUNTIME_DIR`.
    pub fn local_socket(&self, runtime: Option<&Path>) -> Option<PathBuf> {
        if self.is_private() {
            return None;
        }
        if self.0.starts_with('/') {
            return Some(PathBuf::from(&self.0));
        }
        match self.0.split_once(':') {
            Some(("", number)) => Some(Path::new(X_SOCKETS).join(format!("X{number}"))),
            Some(_) => None,
            None => Some(runtime?.join(&self.0)),
        }
    }
}

/// Hexadecimal digits that tell texts apart in file names.
pub(crate) fn short_hash(bytes: &[u8]) -> String {
    let mut digits = blake3::hash(bytes).to_hex().to_string();
    digits.truncate(HASH_DIGITS);
    digits
}

impl fmt::Display for DesktopName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// As a person gives it (`--desktop`): an X display, a Wayland display, or `private:NAME`.
impl FromStr for DesktopName {
    type Err = NotADesktop;

    fn from_str(text: &str) -> Result<Self, NotADesktop> {
        if let Some(name) = text.strip_prefix(PRIVATE) {
            return Self::private(name);
        }
        if text.starts_with('/') {
            return Ok(Self::x11_socket(text));
        }
        Self::x11(text).or_else(|_| Self::wayland(text, None)).map_err(|_| NotADesktop(text.to_owned()))
    }
}

/// All names of one desktop: an X server for old applications (XWayland) and its Wayland socket are one desktop with two
/// names. Iterates in sorted order, which is the order of locks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesktopNames {
    primary: DesktopName,
    others: BTreeSet<DesktopName>,
}

impl DesktopNames {
    /// A desktop with one name.
    pub fn new(primary: DesktopName) -> Self {
        Self { primary, others: BTreeSet::new() }
    }

    /// The same desktop with one more name.
    #[must_use]
    pub fn with(mut self, other: DesktopName) -> Self {
        if other != self.primary {
            self.others.insert(other);
        }
        self
    }

    /// The desktop that these variables of one process lead to; `None` if they name none. A value that is no name counts
    /// as not set: it leads nowhere.
    pub fn from_variables(
        display: Option<&str>,
        wayland_display: Option<&str>,
        runtime: Option<&Path>,
    ) -> Option<Self> {
        let display = display.and_then(|display| DesktopName::x11(display).ok());
        let wayland = wayland_display.and_then(|display| DesktopName::wayland(display, runtime).ok());
        match (display, wayland) {
            (Some(display), Some(wayland)) => Some(Self::new(display).with(wayland)),
            (Some(name), None) | (None, Some(name)) => Some(Self::new(name)),
            (None, None) => None,
        }
    }

    /// The name that messages, the socket and the log go by.
    pub fn primary(&self) -> &DesktopName {
        &self.primary
    }

    /// All names in sorted order.
    pub fn iter(&self) -> impl Iterator<Item = &DesktopName> {
        let (before, after): (Vec<_>, Vec<_>) = self.others.iter().partition(|other| **other < self.primary);
        before.into_iter().chain([&self.primary]).chain(after)
    }

    /// Whether `name` is one of its names.
    pub fn contains(&self, name: &DesktopName) -> bool {
        self.primary == *name || self.others.contains(name)
    }

    /// Whether both have a name in common, and so are one desktop.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.iter().any(|name| other.contains(name))
    }
}

impl From<DesktopName> for DesktopNames {
    fn from(name: DesktopName) -> Self {
        Self::new(name)
    }
}

/// The primary name.
impl fmt::Display for DesktopNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.primary.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_display_are_one_name() {
        let table = [
            (":0", &[":0.0", ":0.1", "unix:0.0", "unix:0", "localhost/unix:0", "somewhere/unix:0.0"][..]),
            (":0", &["unix/:0", "local/:0", "unix/host:0", ":00", "/tmp/.X11-unix/X0", "UNIX:0"]),
            (":0", &["unix:/tmp/.X11-unix/X0", "/tmp/.X11-unix/X0.0"]),
            (
                "localhost:10",
                &["localhost:10", "localhost:10.0", "tcp/localhost:10", "LOCALHOST:10", "tcp/:10"],
            ),
            ("host.example:3", &["host.example:3.1", "inet/Host.Example:3"]),
            ("[::1]:2", &["[::1]:2", "::1:2.0", "inet6/::1:2"]),
            ("/private/tmp/x/org.x:0", &["/private/tmp/x/org.x:0", "unix:/private/tmp/x/org.x:0"]),
        ];
        for (canonical, spellings) in table {
            for spelling in spellings {
                assert_eq!(DesktopName::x11(spelling).unwrap().as_str(), canonical, "{spelling}");
            }
        }
    }

    #[test]
    fn what_is_no_display_is_refused() {
        for text in ["", "0", ":", ":a", ":0.", ":0.a", ":-1", ":99999", "host", "wayland-0", ":+1"] {
            assert!(DesktopName::x11(text).is_err(), "{text}");
        }
        for text in ["", "a/b", ":0"] {
            assert!(DesktopName::wayland(text, None).is_err(), "{text}");
        }
        assert!(DesktopName::private("").is_err());
    }

    #[test]
    fn a_wayland_socket_in_the_runtime_folder_is_named_by_its_file() {
        let runtime = Path::new("/run/user/7");
        let name = |text| DesktopName::wayland(text, Some(runtime)).unwrap().to_string();
        assert_eq!(name("wayland-0"), "wayland-0");
        assert_eq!(name("/run/user/7/wayland-0"), "wayland-0");
        assert_eq!(name("/elsewhere/wayland-0"), "/elsewhere/wayland-0");
    }

    #[test]
    fn what_a_person_gives_is_told_apart() {
        for (text, canonical) in [
            ("unix:0.0", ":0"),
            ("host:10", "host:10"),
            ("wayland-1", "wayland-1"),
            ("private:a b", "private:a b"),
            ("/run/user/7/wayland-1", "/run/user/7/wayland-1"),
        ] {
            assert_eq!(text.parse::<DesktopName>().unwrap().as_str(), canonical);
        }
        assert!("".parse::<DesktopName>().is_err());
    }

    #[test]
    fn file_names_are_harmless_short_and_different() {
        let long = "h".repeat(300);
        let names = [":0", ":1", "a:1", "A:1 ", "a_1", "wayland-0", "wayland-x", "wayland-1234567", &long];
        let files: BTreeSet<String> =
            names.iter().map(|name| DesktopName((*name).to_owned()).file_name()).collect();
        assert_eq!(files.len(), names.len(), "{files:?}");
        for file in &files {
            assert!(file.len() <= 48, "{file}");
            assert!(file.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'), "{file}");
        }
        assert!(files.contains("x0") && files.contains("wayland-0"));
    }

    #[test]
    fn names_come_in_sorted_order_whichever_is_primary() {
        let x = DesktopName::x11(":0").unwrap();
        let wayland = DesktopName::wayland("wayland-0", None).unwrap();
        for names in [
            DesktopNames::new(x.clone()).with(wayland.clone()).with(x.clone()),
            DesktopNames::new(wayland.clone()).with(x.clone()),
        ] {
            assert_eq!(names.iter().collect::<Vec<_>>(), [&x, &wayland]);
            assert!(names.overlaps(&x.clone().into()) && names.overlaps(&wayland.clone().into()));
        }
        assert!(!DesktopNames::new(x).overlaps(&wayland.into()));
    }

    #[test]
    fn variables_lead_to_a_desktop() {
        let names = |display, wayland| DesktopNames::from_variables(display, wayland, None);
        let both = names(Some(":0.0"), Some("wayland-0")).unwrap();
        assert_eq!(both.primary().as_str(), ":0");
        assert_eq!(both.iter().count(), 2);
        assert_eq!(names(None, Some("wayland-0")).unwrap().primary().as_str(), "wayland-0");
        assert_eq!(names(Some("nonsense"), None), None);
        assert_eq!(names(None, Some("")), None);
    }

    #[test]
    fn the_socket_of_a_local_display_is_known() {
        let socket = |text: &str| text.parse::<DesktopName>().unwrap().local_socket(Some(Path::new("/run")));
        assert_eq!(socket(":7"), Some("/tmp/.X11-unix/X7".into()));
        assert_eq!(socket("wayland-0"), Some("/run/wayland-0".into()));
        assert_eq!(socket("/x/wayland-0"), Some("/x/wayland-0".into()));
        assert_eq!(socket("host:1"), None);
        assert_eq!(socket("private:a"), None);
    }
}
