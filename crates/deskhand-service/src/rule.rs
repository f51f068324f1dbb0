//! Who should own the desktop, and which service is meant: pure functions of facts that are gathered before.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::desktop::{DesktopName, DesktopNames};
use crate::holder::{Holder, Role};

/// Whether an MCP process owns the desktop itself, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It owns the desktop, for its one client.
    InProcess(Reason),
    /// It forwards to the service.
    Proxy(Reason),
}

/// Why a mode was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// `--no-daemon-relaunch` was given.
    Flag,
    /// `DESKHAND_MCP_NO_RELAUNCH` is set.
    Variable,
    /// The desktop is one that the process starts for itself.
    PrivateDesktop,
    /// A desktop has one owner, which its agents share.
    SharedDesktop,
    /// The executable of an app was started by another program: the app itself should own the desktop.
    StartedOutsideItsApp,
    /// The process is the app, or belongs to none, or was started by the system.
    OwnsItself,
}

impl Reason {
    /// In words, to follow "because".
    pub fn words(self) -> &'static str {
        match self {
            Self::Flag => "--no-daemon-relaunch was given",
            Self::Variable => "DESKHAND_MCP_NO_RELAUNCH is set",
            Self::PrivateDesktop => "the desktop is a private one",
            Self::SharedDesktop => "agents share a desktop through one service",
            Self::StartedOutsideItsApp => "the program belongs to an app that was not started as such",
            Self::OwnsItself => "the process is the one that should own the desktop",
        }
    }
}

/// What the mode depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeFacts {
    /// `--no-daemon-relaunch`.
    pub no_daemon_relaunch: bool,
    /// Value of `DESKHAND_MCP_NO_RELAUNCH`.
    pub no_relaunch_variable: Option<OsString>,
    /// What only one platform knows.
    pub platform: PlatformFacts,
}

/// Facts of a platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlatformFacts {
    /// Linux.
    Linux {
        /// The desktop is one that this process starts for itself.
        private: bool,
    },
    /// macOS.
    MacOs {
        /// Path of the main bundle.
        main_bundle: PathBuf,
        /// Real path of the executable.
        executable: PathBuf,
        /// Parent process.
        parent: u32,
    },
}

/// The launch rule.
pub fn mode(facts: &ModeFacts) -> Mode {
    if facts.no_daemon_relaunch {
        return Mode::InProcess(Reason::Flag);
    }
    if facts.no_relaunch_variable.as_ref().and_then(|value| value.to_str()).is_some_and(is_truthy) {
        return Mode::InProcess(Reason::Variable);
    }
    match &facts.platform {
        PlatformFacts::Linux { private: true } => Mode::InProcess(Reason::PrivateDesktop),
        PlatformFacts::Linux { private: false } => Mode::Proxy(Reason::SharedDesktop),
        PlatformFacts::MacOs { main_bundle, executable, parent } => {
            const LAUNCHD: u32 = 1;
            let is_app = main_bundle.extension().is_some_and(|extension| extension == "app");
            if !is_app && is_inside_app(executable) && *parent != LAUNCHD {
                Mode::Proxy(Reason::StartedOutsideItsApp)
            } else {
                Mode::InProcess(Reason::OwnsItself)
            }
        }
    }
}

/// `1`, `true`, `yes`, `on`, in any case.
fn is_truthy(value: &str) -> bool {
    ["1", "true", "yes", "on"].iter().any(|truthy| value.eq_ignore_ascii_case(truthy))
}

/// Whether one of the folders above is an app.
fn is_inside_app(executable: &Path) -> bool {
    executable
        .ancestors()
        .skip(1)
        .any(|folder| folder.extension().is_some_and(|extension| extension == "app"))
}

/// What the choice of a service depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChoiceFacts {
    /// `--socket`.
    pub socket: Option<PathBuf>,
    /// `--desktop`.
    pub desktop: Option<DesktopName>,
    /// What `DISPLAY` and `WAYLAND_DISPLAY` name.
    pub environment: Option<DesktopNames>,
    /// Whether that desktop is there, as far as can be seen without owning it ([`DesktopName::local_socket`]). It is not
    /// after a login over SSH, or in a terminal that is older than the session.
    pub environment_is_there: bool,
}

/// Which service is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// This one; it runs.
    Running(Holder),
    /// The one that was given by its socket; nothing is known of it but that.
    Socket(PathBuf),
    /// The service of this desktop, which does not run yet, and would listen on the given socket, if one was given.
    Launch(DesktopNames),
}

/// Why there is no choice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoChoice {
    /// No desktop is named, and no service runs.
    #[error(
        "no desktop can be reached from here and no service runs: set DISPLAY or WAYLAND_DISPLAY, start \
         `deskhand serve` in the desktop session, or use --private"
    )]
    Nothing,
    /// The named desktop is not there, and no service runs.
    #[error(
        "the desktop {0} is not there and no service runs: start `deskhand serve` in the desktop session, set DISPLAY \
         to one that is there, or use --private"
    )]
    NotThere(DesktopNames),
    /// Several services run, and none of them is named.
    #[error("several services run; choose one with --desktop:{}", listed(.0))]
    Several(Vec<Holder>),
    /// The desktop's service listens on another socket than the one that was given.
    #[error("{holder} listens on another socket than {}; leave --socket out or give that one", wanted.display())]
    OtherSocket {
        /// What was given.
        wanted: PathBuf,
        /// Who owns the desktop.
        holder: Box<Holder>,
    },
    /// A process owns the desktop and shares it with nobody.
    #[error("the desktop is in use by {0}; end it with `kill {pid}` first", pid = .0.pid)]
    InUse(Box<Holder>),
}

fn listed(holders: &[Holder]) -> String {
    holders.iter().map(|holder| format!("\n  {}  {holder}", holder.desktop)).collect()
}

/// Chooses among the owners that were found ([`crate::folder::Folder::holders`]).
///
/// # Errors
/// Says why none is meant, and lists those that run if there are several.
pub fn choose(facts: &ChoiceFacts, found: &[Holder]) -> Result<Choice, NoChoice> {
    if let Some(socket) = &facts.socket {
        let environment = facts.environment.clone().filter(|_| facts.environment_is_there);
        return choose_socket(socket, named(facts).or(environment), found);
    }
    if let Some(desktop) = named(facts) {
        return match owner(&desktop, found) {
            Some(holder) => shared(holder).map(Choice::Running),
            // Somebody who names a desktop does not mean another one.
            None => Ok(Choice::Launch(desktop)),
        };
    }
    if let Some(desktop) = &facts.environment {
        if let Some(holder) = owner(desktop, found) {
            return shared(holder).map(Choice::Running);
        }
        if facts.environment_is_there {
            return Ok(Choice::Launch(desktop.clone()));
        }
    }
    let services: Vec<&Holder> = found.iter().filter(|holder| holder.socket().is_some()).collect();
    match (services.as_slice(), &facts.environment) {
        ([only], _) => Ok(Choice::Running((*only).clone())),
        ([], Some(desktop)) => Err(NoChoice::NotThere(desktop.clone())),
        ([], None) => Err(NoChoice::Nothing),
        (several, _) => Err(NoChoice::Several(several.iter().map(|holder| (*holder).clone()).collect())),
    }
}

fn choose_socket(socket: &Path, desktop: Option<DesktopNames>, found: &[Holder]) -> Result<Choice, NoChoice> {
    if let Some(holder) = found.iter().find(|holder| holder.socket() == Some(socket)) {
        return Ok(Choice::Running(holder.clone()));
    }
    let Some(desktop) = desktop else { return Ok(Choice::Socket(socket.to_owned())) };
    match owner(&desktop, found) {
        Some(holder) => {
            let holder = Box::new(shared(holder)?);
            Err(NoChoice::OtherSocket { wanted: socket.to_owned(), holder })
        }
        None => Ok(Choice::Launch(desktop)),
    }
}

/// The desktop that somebody names, with its other names if the environment knows them.
fn named(facts: &ChoiceFacts) -> Option<DesktopNames> {
    let name = facts.desktop.clone()?;
    let known = facts.environment.clone().filter(|names| names.contains(&name));
    Some(known.unwrap_or_else(|| name.into()))
}

fn owner<'a>(desktop: &DesktopNames, found: &'a [Holder]) -> Option<&'a Holder> {
    found.iter().find(|holder| holder.desktop.overlaps(desktop))
}

/// The owner, unless it shares the desktop with nobody.
fn shared(holder: &Holder) -> Result<Holder, NoChoice> {
    match holder.role {
        Role::Service { .. } => Ok(holder.clone()),
        Role::InProcess => Err(NoChoice::InUse(Box::new(holder.clone()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Build;
    use crate::holder::Lifetime;

    fn linux(flag: bool, variable: Option<&str>, private: bool) -> Mode {
        mode(&ModeFacts {
            no_daemon_relaunch: flag,
            no_relaunch_variable: variable.map(OsString::from),
            platform: PlatformFacts::Linux { private },
        })
    }

    #[test]
    fn on_linux_a_desktop_is_shared_unless_told_otherwise_or_private() {
        let proxy = Mode::Proxy(Reason::SharedDesktop);
        for (flag, variable, private, expected) in [
            (false, None, false, proxy),
            (true, None, false, Mode::InProcess(Reason::Flag)),
            (true, Some("0"), true, Mode::InProcess(Reason::Flag)),
            (false, Some("1"), false, Mode::InProcess(Reason::Variable)),
            (false, Some("TRUE"), false, Mode::InProcess(Reason::Variable)),
            (false, Some("Yes"), false, Mode::InProcess(Reason::Variable)),
            (false, Some("on"), true, Mode::InProcess(Reason::Variable)),
            (false, Some("0"), false, proxy),
            (false, Some(""), false, proxy),
            (false, Some("no"), false, proxy),
            (false, Some("2"), false, proxy),
            (false, None, true, Mode::InProcess(Reason::PrivateDesktop)),
        ] {
            assert_eq!(linux(flag, variable, private), expected, "{flag} {variable:?} {private}");
        }
    }

    #[test]
    fn on_macos_an_apps_executable_that_something_else_started_is_a_proxy() {
        let inside = "/Applications/Deskhand.app/Contents/MacOS/deskhand";
        let outside = "/opt/homebrew/bin/deskhand";
        let proxy = Mode::Proxy(Reason::StartedOutsideItsApp);
        let itself = Mode::InProcess(Reason::OwnsItself);
        for (main_bundle, executable, parent, expected) in [
            ("/Applications/Deskhand.app/Contents/MacOS", inside, 400, proxy),
            ("/Applications/Deskhand.app", inside, 400, itself),
            ("/Applications/Deskhand.app/Contents/MacOS", inside, 1, itself),
            ("/opt/homebrew/bin", outside, 400, itself),
            ("/opt/my.app.d", "/opt/my.app.d/deskhand", 400, itself),
        ] {
            let platform = PlatformFacts::MacOs {
                main_bundle: main_bundle.into(),
                executable: executable.into(),
                parent,
            };
            let facts = ModeFacts { no_daemon_relaunch: false, no_relaunch_variable: None, platform };
            assert_eq!(mode(&facts), expected, "{main_bundle} {executable} {parent}");
            let told = ModeFacts { no_daemon_relaunch: true, ..facts.clone() };
            assert_eq!(mode(&told), Mode::InProcess(Reason::Flag));
            let told = ModeFacts { no_relaunch_variable: Some("on".into()), ..facts };
            assert_eq!(mode(&told), Mode::InProcess(Reason::Variable));
        }
    }

    fn names(text: &str) -> DesktopNames {
        let mut all = text.split(' ').map(|name| name.parse::<DesktopName>().unwrap());
        let first = DesktopNames::new(all.next().unwrap());
        all.fold(first, DesktopNames::with)
    }

    fn holder(desktop: &str, role: Role) -> Holder {
        let build = Build { digest: "d".into(), path: "/p".into(), version: "1".into() };
        Holder::own(build, names(desktop), role)
    }

    fn service(desktop: &str, socket: &str) -> Holder {
        holder(desktop, Role::Service { socket: socket.into(), lifetime: Lifetime::Managed })
    }

    /// `environment` begins with `!` if the desktop is not there.
    fn chosen(socket: &str, desktop: &str, environment: &str, found: &[Holder]) -> String {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let facts = ChoiceFacts {
            socket: given(socket).map(PathBuf::from),
            desktop: given(desktop).map(|name| name.parse().unwrap()),
            environment: given(environment.trim_start_matches('!')).map(|text| names(&text)),
            environment_is_there: !environment.is_empty() && !environment.starts_with('!'),
        };
        match choose(&facts, found) {
            Ok(Choice::Running(holder)) => format!("running {}", holder.desktop),
            Ok(Choice::Socket(socket)) => format!("socket {}", socket.display()),
            Ok(Choice::Launch(desktop)) => {
                format!("launch{}", desktop.iter().map(|name| format!(" {name}")).collect::<String>())
            }
            Err(NoChoice::Nothing) => "nothing".to_owned(),
            Err(NoChoice::NotThere(desktop)) => format!("not there {desktop}"),
            Err(NoChoice::Several(all)) => format!("several {}", all.len()),
            Err(NoChoice::OtherSocket { holder, .. }) => format!("other socket {}", holder.desktop),
            Err(NoChoice::InUse(holder)) => format!("in use {}", holder.desktop),
        }
    }

    #[test]
    fn the_named_service_is_chosen_else_the_only_one() {
        let none: &[Holder] = &[];
        let one = &[service(":1", "/a")][..];
        let two = &[service(":1", "/a"), service(":2 wayland-0", "/b")][..];
        let alone = &[holder(":1", Role::InProcess)][..];
        for (desktop, environment, found, expected) in [
            ("", "", none, "nothing"),
            ("", "!:0", none, "not there :0"),
            ("", ":0", none, "launch :0"),
            ("", ":0 wayland-0", none, "launch :0 wayland-0"),
            (":3", "", none, "launch :3"),
            ("wayland-0", ":0 wayland-0", none, "launch :0 wayland-0"),
            ("", "", one, "running :1"),
            ("", "!:0", one, "running :1"),
            ("", ":0", one, "launch :0"),
            ("", ":1", one, "running :1"),
            ("", "!:1", one, "running :1"),
            (":3", ":1", one, "launch :3"),
            ("", "", two, "several 2"),
            ("", "!:0", two, "several 2"),
            ("", "wayland-0", two, "running :2"),
            (":1", "wayland-0", two, "running :1"),
            ("", ":1", alone, "in use :1"),
            (":1", "", alone, "in use :1"),
            ("", "", alone, "nothing"),
            ("", ":0", alone, "launch :0"),
        ] {
            assert_eq!(
                chosen("", desktop, environment, found),
                expected,
                "{desktop:?} {environment:?} {found:?}"
            );
        }
    }

    #[test]
    fn a_socket_that_is_given_is_never_swapped_for_another() {
        let two = &[service(":1", "/a"), service(":2", "/b")][..];
        let alone = &[holder(":1", Role::InProcess)][..];
        for (socket, desktop, environment, found, expected) in [
            ("/b", "", "", two, "running :2"),
            ("/b", "", ":1", two, "running :2"),
            ("/c", "", ":1", two, "other socket :1"),
            ("/c", ":2", ":1", two, "other socket :2"),
            ("/c", "", "!:0", two, "socket /c"),
            ("/c", "", "", two, "socket /c"),
            ("/c", "", ":0", two, "launch :0"),
            ("/c", "", ":1", alone, "in use :1"),
        ] {
            assert_eq!(
                chosen(socket, desktop, environment, found),
                expected,
                "{socket} {desktop} {environment}"
            );
        }
    }

    #[test]
    fn several_services_are_listed() {
        let error = NoChoice::Several(vec![service(":1", "/a"), service(":2", "/b")]).to_string();
        assert!(
            error.contains("--desktop") && error.contains(":1") && error.contains("socket /b"),
            "{error}"
        );
    }
}
