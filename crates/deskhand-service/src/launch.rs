//! Starts a service that outlives whoever starts it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::build::RUNNING;
use crate::log;
use crate::process::End;

/// So much of the end of the log goes into a message.
const LOG_TAIL: u64 = 2048;

/// Without `close_range` descriptors are marked one by one, up to the process's limit, but not up to the million that
/// some systems set.
const MAX_DESCRIPTORS: u64 = 65_536;

/// What is needed to launch a service.
#[derive(Clone, Debug)]
pub struct Launch {
    /// What to execute: [`RUNNING`], which is this very build whatever has become of its path.
    pub program: PathBuf,
    /// What process listings show in place of the program.
    pub name: OsString,
    /// Arguments behind the name.
    pub arguments: Vec<OsString>,
    /// The complete environment; see [`kept_variables`].
    pub variables: BTreeMap<OsString, OsString>,
    /// Where its standard output and error go.
    pub log: PathBuf,
}

impl Launch {
    /// Launches this build with `arguments`, with what may be kept of `variables`.
    pub fn own_build(
        name: impl Into<OsString>,
        arguments: Vec<OsString>,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        log: PathBuf,
    ) -> Self {
        let variables = kept_variables(variables);
        Self { program: RUNNING.into(), name: name.into(), arguments, variables, log }
    }
}

/// A launched service, as long as its launcher cares.
#[derive(Debug)]
pub struct Launched {
    child: Child,
    end: End,
    log: Log,
}

#[derive(Debug)]
struct Log {
    path: PathBuf,
    /// What was there before the launch.
    length_before: u64,
}

/// Starts the service: in a session of its own, in `/`, without any descriptor of ours, its output in the log. Must be
/// called in a runtime.
///
/// # Errors
/// Names the program or the log, and why.
pub fn launch(launch: &Launch) -> io::Result<Launched> {
    let named = |what: &Path, error: io::Error| {
        io::Error::new(error.kind(), format!("{} cannot be used: {error}", what.display()))
    };
    let (log, length_before) = log::open(&launch.log).map_err(|error| named(&launch.log, error))?;
    let errors = log.try_clone().map_err(|error| named(&launch.log, error))?;
    let mut command = Command::new(&launch.program);
    command
        .arg0(&launch.name)
        .args(&launch.arguments)
        .env_clear()
        .envs(&launch.variables)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors);
    detach(&mut command);
    let child = command.spawn().map_err(|error| named(&launch.program, error))?;
    let end = End::of(child.id())?;
    Ok(Launched { child, end, log: Log { path: launch.log.clone(), length_before } })
}

/// Makes the child a session of its own and has all descriptors but the standard ones closed when it is executed.
#[allow(unsafe_code)]
fn detach(command: &mut Command) {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(MAX_DESCRIPTORS).min(MAX_DESCRIPTORS);
    let prepare = move || {
        // Out of reach of what ends the client's terminal, session or process group.
        rustix::process::setsid()?;
        close_on_execution(limit)
    };
    // SAFETY: the closure makes plain system calls and allocates nothing.
    unsafe { command.pre_exec(prepare) };
}

/// Marks everything above standard error. They are not closed here and now, because one of them is the pipe that tells
/// our parent why an execution failed.
#[allow(unsafe_code)]
fn close_on_execution(limit: u64) -> io::Result<()> {
    const FIRST: libc::c_uint = 3;
    // SAFETY: the call takes no pointers, and closes nothing before the execution, which ends every owner.
    let marked =
        unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if marked == 0 {
        return Ok(());
    }
    // A kernel before 5.11.
    for number in i32::try_from(FIRST).unwrap_or(3)..i32::try_from(limit).unwrap_or(i32::MAX) {
        // SAFETY: the number is not dereferenced, and nothing is closed.
        let descriptor = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
        match rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC) {
            Ok(()) | Err(Errno::BADF) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

impl Launched {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end. Can be dropped half-way and called again.
    ///
    /// # Errors
    /// The process cannot be waited for; somebody else has done it.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.end.wait().await?;
        self.child.wait()
    }

    /// How it has ended, if it has.
    pub fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// What the log has got since the launch: its last lines. (Another service that is launched at the same moment for
    /// the same desktop writes into the same file.)
    pub fn log_tail(&self) -> String {
        tail(&self.log).unwrap_or_default()
    }

    /// The log.
    pub fn log(&self) -> &Path {
        &self.log.path
    }

    /// Stops caring for it. Its exit is still collected, if it ends before this process and its runtime do.
    pub fn leave(mut self) {
        tokio::spawn(async move {
            let status = self.ended().await;
            tracing::debug!(?status, pid = self.pid(), "the launched service has ended");
        });
    }
}

fn tail(log: &Log) -> io::Result<String> {
    let mut file = File::open(&log.path)?;
    let length = file.metadata()?.len();
    let from = log.length_before.min(length).max(length.saturating_sub(LOG_TAIL));
    file.seek(SeekFrom::Start(from))?;
    let mut text = Vec::new();
    file.take(LOG_TAIL).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).trim().to_owned())
}

/// Variables that a launched service gets, beside those of [`KEPT_FAMILIES`]. Everything else stays behind: a host's
/// secrets must not reach every application that is ever launched.
const KEPT: &[&str] = &[
    // Who and where
    "HOME",
    // Where the records of consent are: a service must not be bound by others than its clients.
    "ACPMUX_HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TZ",
    "USER",
    // The session
    "DBUS_SESSION_BUS_ADDRESS",
    "DESKTOP_SESSION",
    "GDMSESSION",
    "GNOME_DESKTOP_SESSION_ID",
    "HYPRLAND_INSTANCE_SIGNATURE",
    "I3SOCK",
    "ICEAUTHORITY",
    "KDE_FULL_SESSION",
    "KDE_SESSION_VERSION",
    "NIRI_SOCKET",
    "SESSION_MANAGER",
    "SWAYSOCK",
    // The display, and how toolkits use it
    "DISPLAY",
    "GDK_BACKEND",
    "GDK_DPI_SCALE",
    "GDK_SCALE",
    "GSK_RENDERER",
    "LIBGL_ALWAYS_SOFTWARE",
    "MOZ_ENABLE_WAYLAND",
    "QT_AUTO_SCREEN_SCALE_FACTOR",
    "QT_QPA_PLATFORM",
    "QT_SCALE_FACTOR",
    "QT_SCREEN_SCALE_FACTORS",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    // Language and input methods
    "GTK_IM_MODULE",
    "LANG",
    "LANGUAGE",
    "QT_IM_MODULE",
    "XMODIFIERS",
    // Accessibility
    "ACCESSIBILITY_ENABLED",
    "AT_SPI_BUS_ADDRESS",
    "GNOME_ACCESSIBILITY",
    "GTK_A11Y",
    "NO_AT_BRIDGE",
    "QT_ACCESSIBILITY",
    "QT_LINUX_ACCESSIBILITY_ALWAYS_ON",
];

/// Variables whose names begin so are kept.
const KEPT_FAMILIES: &[&str] = &["LC_", "XDG_", "DESKHAND_"];

/// Belongs to the one start that it was made for.
const NOT_KEPT: &[&str] = &["XDG_ACTIVATION_TOKEN"];

/// What a launched service gets of its launcher's environment.
pub fn kept_variables(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> BTreeMap<OsString, OsString> {
    variables.into_iter().filter(|(name, _)| is_kept(name)).collect()
}

fn is_kept(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let in_family = KEPT_FAMILIES.iter().any(|family| name.starts_with(family));
    (KEPT.contains(&name) || in_family) && !NOT_KEPT.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::MAX_LOG;

    fn launched(script: &str, log: &Path) -> Launched {
        let start = Launch {
            program: "/bin/sh".into(),
            name: "sh".into(),
            arguments: vec!["-c".into(), script.into()],
            variables: BTreeMap::new(),
            log: log.to_owned(),
        };
        launch(&start).unwrap()
    }

    #[test]
    fn only_what_a_desktop_needs_is_kept() {
        let given = [
            ("DISPLAY", true),
            ("XAUTHORITY", true),
            ("XDG_RUNTIME_DIR", true),
            ("XDG_ACTIVATION_TOKEN", false),
            ("LC_ALL", true),
            ("PATH", true),
            ("HOME", true),
            ("DESKHAND_LOG", true),
            ("NO_AT_BRIDGE", true),
            ("AWS_SECRET_ACCESS_KEY", false),
            ("ANTHROPIC_API_KEY", false),
            ("GITHUB_TOKEN", false),
            ("SSH_AUTH_SOCK", false),
            ("LD_PRELOAD", false),
            ("WAYLAND_SOCKET", false),
            ("PATHOLOGY", false),
            ("", false),
        ];
        let kept = kept_variables(given.map(|(name, _)| (name.into(), "value".into())));
        let expected: Vec<_> = given.iter().filter(|(_, kept)| *kept).map(|(name, _)| *name).collect();
        assert_eq!(kept.len(), expected.len());
        for name in expected {
            assert_eq!(kept[OsStr::new(name)], "value", "{name}");
        }
    }

    #[tokio::test]
    async fn an_early_end_is_told_with_its_status_and_its_last_words() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        std::fs::write(&log, "of an earlier one\n").unwrap();
        let mut launched = launched("echo out; echo err >&2; exit 3", &log);
        assert_eq!(launched.ended().await.unwrap().code(), Some(3));
        assert_eq!(launched.has_ended().unwrap().code(), Some(3));
        assert_eq!(launched.log_tail(), "out\nerr");
    }

    #[tokio::test]
    async fn a_program_that_is_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let start = Launch {
            program: "/nowhere/deskhand".into(),
            name: "deskhand".into(),
            arguments: Vec::new(),
            variables: BTreeMap::new(),
            log: folder.path().join("log"),
        };
        let error = launch(&start).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("/nowhere/deskhand"), "{error}");
    }

    #[tokio::test]
    async fn it_has_a_session_a_folder_and_descriptors_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let (_reader, writer) = rustix::pipe::pipe().unwrap(); // inheritable
        let script = "cat /proc/self/stat; pwd; ls /proc/$$/fd; echo $$; env";
        let mut launched = launched(script, &log);
        let pid = launched.pid().to_string();
        launched.ended().await.unwrap();
        drop(writer);
        let told = launched.log_tail();
        let mut lines = told.lines();
        let session = lines.next().unwrap().split(' ').nth(5).unwrap();
        assert_eq!(session, pid);
        assert_eq!(lines.next(), Some("/"));
        let descriptors: Vec<&str> = lines.by_ref().take_while(|line| *line != pid).collect();
        assert_eq!(descriptors, ["0", "1", "2"], "{told}");
        // The shell's own.
        assert!(
            lines
                .all(|line| line.starts_with("PWD=") || line.starts_with("_=") || line.starts_with("SHLVL="))
        );
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&log).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }

    #[tokio::test]
    async fn a_long_log_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("x0.log");
        std::fs::write(&log, vec![b'x'; usize::try_from(MAX_LOG).unwrap() + 1]).unwrap();
        let mut launched = launched("echo new", &log);
        launched.ended().await.unwrap();
        assert_eq!(launched.log_tail(), "new");
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "new\n");
        assert_eq!(std::fs::metadata(folder.path().join("x0.log.old")).unwrap().len(), MAX_LOG + 1);
    }
}
