//! From what was asked for to the program that is started.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use deskhand_core::desktop::{LaunchRequest, PortError};

use super::catalog::{Catalog, Found};
use super::entry::{self, Entry};
use super::launcher::ProgramStart;
use crate::environment::SessionEnvironment;
use crate::private::variables::ACCESSIBLE;

/// Terminals for programs that need one, the user's choice first.
const TERMINALS: [&str; 2] = ["x-terminal-emulator", "xterm"];

/// So many candidates are named when a name is ambiguous.
const MAX_CANDIDATES: usize = 8;

/// Variables that keep toolkits from publishing their trees.
const AGAINST_ACCESSIBILITY: [&str; 2] = ["GTK_A11Y", "NO_AT_BRIDGE"];

/// Where a program finds the id of its start, on X11 and, where that is one, of a Wayland activation.
const STARTUP_VARIABLES: [&str; 2] = ["DESKTOP_STARTUP_ID", "XDG_ACTIVATION_TOKEN"];

/// A program to start and the name a person knows it by.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) name: String,
    pub(super) start: ProgramStart,
    /// Whether it passes an id of its start on. Others would only leave it to the programs that are started from them
    /// later, which would then count as wished for at that time and get no focus.
    pub(super) tells_start: bool,
}

impl Launch {
    /// The id that the caller has given the program.
    pub(super) fn given_id(&self) -> Option<String> {
        let given = STARTUP_VARIABLES.iter().find_map(|name| self.start.variables.get(OsStr::new(name)));
        given.and_then(|id| id.to_str()).map(str::to_owned)
    }

    /// Gives the program an id of its start.
    pub(super) fn give_id(&mut self, id: &str) {
        self.start.variables.extend(STARTUP_VARIABLES.map(|name| (name.into(), id.into())));
    }
}

/// Finds what `request` means: a desktop entry by id, name or program; a command line; an entry by a part of its name.
///
/// # Errors
/// `AppGone` when nothing has that name, `LaunchFailed` with the reason otherwise.
pub(super) fn resolve(
    request: &LaunchRequest,
    session: &SessionEnvironment,
    catalog: &Catalog,
) -> Result<Launch, PortError> {
    let wanted = request.app.trim();
    if wanted.is_empty() {
        return Err(PortError::LaunchFailed("no application was named".to_owned()));
    }
    match catalog.named(wanted) {
        Found::One(entry) => return from_entry(entry, request, session, catalog),
        Found::Several(entries) => return Err(several(wanted, &entries)),
        Found::None => {}
    }
    if let Some(launch) = from_command(wanted, request, session, catalog) {
        return Ok(launch);
    }
    match catalog.like(wanted) {
        Found::One(entry) => from_entry(entry, request, session, catalog),
        Found::Several(entries) => Err(several(wanted, &entries)),
        Found::None => {
            Err(PortError::AppGone(format!("{wanted:?} (no desktop entry and no program in PATH)")))
        }
    }
}

fn several(wanted: &str, entries: &[&Entry]) -> PortError {
    let names: Vec<_> =
        entries.iter().take(MAX_CANDIDATES).map(|entry| format!("{} ({})", entry.name, entry.id)).collect();
    PortError::LaunchFailed(format!(
        "{wanted:?} may be one of: {}; give the name in parentheses",
        names.join(", ")
    ))
}

fn from_entry(
    entry: &Entry,
    request: &LaunchRequest,
    session: &SessionEnvironment,
    catalog: &Catalog,
) -> Result<Launch, PortError> {
    let mut words = entry.command(&request.files).map_err(PortError::LaunchFailed)?;
    if words.is_empty() {
        return Err(PortError::LaunchFailed(format!("the desktop entry of {} has no command", entry.name)));
    }
    words.extend(request.args.iter().map(OsString::from));
    let program = words.remove(0);
    let path = catalog.program(&program.to_string_lossy()).ok_or_else(|| {
        PortError::LaunchFailed(format!(
            "the program of {}, {}, is not installed",
            entry.name,
            program.display()
        ))
    })?;
    let (path, args) = if entry.terminal {
        let terminal = TERMINALS.iter().find_map(|name| catalog.program(name)).ok_or_else(|| {
            let why = "runs in a terminal, and there is none; install with `apt-get install xterm`";
            PortError::LaunchFailed(format!("{} {why}", entry.name))
        })?;
        (terminal, ["-e".into(), path.into_os_string()].into_iter().chain(words).collect())
    } else {
        (path, words)
    };
    let own_folder = entry.folder.clone().filter(|folder| folder.is_dir());
    let folder = request.folder.clone().or(own_folder).or_else(|| session.home.clone());
    let variables = variables(session, &request.env);
    let tells_start = entry.tells_start && !entry.terminal;
    let start = ProgramStart { path, args, variables, folder };
    Ok(Launch { name: entry.name.clone(), start, tells_start })
}

/// A path or a command line. `None` if its program does not exist.
fn from_command(
    line: &str,
    request: &LaunchRequest,
    session: &SessionEnvironment,
    catalog: &Catalog,
) -> Option<Launch> {
    // A path may hold blanks, so the whole is tried first.
    let whole = catalog.program(line).map(|path| (line.to_owned(), path, Vec::new()));
    let (program, path, mut args) = whole.or_else(|| {
        let mut words = entry::split_words(line).into_iter().map(|word| word.text);
        let program = words.next()?;
        let path = catalog.program(&program)?;
        Some((program, path, words.map(OsString::from).collect()))
    })?;
    args.extend(request.args.iter().chain(&request.files).map(OsString::from));
    let name = path.file_name().unwrap_or_else(|| Path::new(line).as_os_str()).to_string_lossy().into_owned();
    let folder = request.folder.clone().or_else(|| session.home.clone());
    let tells_start =
        matches!(catalog.named(&program), Found::One(entry) if entry.tells_start && !entry.terminal);
    let start = ProgramStart { path, args, variables: variables(session, &request.env), folder };
    Some(Launch { name, start, tells_start })
}

fn variables(session: &SessionEnvironment, added: &BTreeMap<String, String>) -> BTreeMap<OsString, OsString> {
    let mut variables = session.variables.clone();
    // An id in there is that of our own start, long ago.
    for name in AGAINST_ACCESSIBILITY.iter().chain(&STARTUP_VARIABLES) {
        variables.remove(OsStr::new(name));
    }
    variables.extend(ACCESSIBLE.map(|(name, value)| (name.into(), value.into())));
    variables.extend(added.iter().map(|(name, value)| (name.into(), value.into())));
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(folder: &Path) -> SessionEnvironment {
        let applications = folder.join("applications");
        std::fs::create_dir_all(&applications).unwrap();
        let entry = |name: &str, lines: &str| {
            let text = format!("[Desktop Entry]\nType=Application\n{lines}\n");
            std::fs::write(applications.join(format!("{name}.desktop")), text).unwrap();
        };
        entry("pad", "Name=Pad\nExec=sh -c pad %F");
        entry("top", "Name=Top\nExec=cat\nTerminal=true");
        entry("gone", "Name=Gone\nExec=/nowhere/gone");
        for program in ["xterm", "a b"] {
            let file = folder.join(program);
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        SessionEnvironment::from_variables(BTreeMap::from([
            ("HOME".into(), folder.into()),
            ("XDG_DATA_HOME".into(), folder.into()),
            ("XDG_DATA_DIRS".into(), "/nowhere".into()),
            ("PATH".into(), format!("/bin:{}", folder.display()).into()),
            ("NO_AT_BRIDGE".into(), "1".into()),
        ]))
    }

    fn launch(request: &LaunchRequest) -> Result<(String, Vec<String>), PortError> {
        let folder = tempfile::tempdir().unwrap();
        let session = session(folder.path());
        let request = LaunchRequest {
            app: request.app.replace("FOLDER", folder.path().to_str().unwrap()),
            ..request.clone()
        };
        let launch = resolve(&request, &session, &Catalog::read(&session.variables))?;
        assert!(!launch.start.variables.contains_key(OsStr::new("NO_AT_BRIDGE")));
        assert_eq!(launch.start.variables[OsStr::new("GNOME_ACCESSIBILITY")], "1");
        assert_eq!(launch.start.folder.as_deref(), Some(folder.path()));
        let words = std::iter::once(launch.start.path.into_os_string()).chain(launch.start.args);
        let short =
            |word: OsString| word.into_string().unwrap().replace(folder.path().to_str().unwrap(), "FOLDER");
        Ok((launch.name, words.map(short).collect()))
    }

    fn request(app: &str) -> LaunchRequest {
        LaunchRequest {
            app: app.to_owned(),
            args: vec!["--arg".to_owned()],
            files: vec!["/file".to_owned()],
            ..LaunchRequest::default()
        }
    }

    #[test]
    fn an_entry_gets_files_at_its_code_and_arguments_at_the_end() {
        let (name, words) = launch(&request("Pad")).unwrap();
        assert_eq!(name, "Pad");
        assert_eq!(words, ["/bin/sh", "-c", "pad", "/file", "--arg"]);
    }

    #[test]
    fn a_terminal_program_runs_in_a_terminal() {
        let (_, words) =
            launch(&LaunchRequest { app: "top".to_owned(), ..LaunchRequest::default() }).unwrap();
        assert!(words[0].ends_with("xterm") || words[0].ends_with("x-terminal-emulator"), "{words:?}");
        assert_eq!(words[1..], ["-e", "/bin/cat"]);
    }

    #[test]
    fn commands_are_split_and_paths_may_hold_blanks() {
        let (name, words) = launch(&request("sh -c 'exit 3'")).unwrap();
        assert_eq!(
            (name.as_str(), &words[..]),
            ("sh", ["/bin/sh", "-c", "exit 3", "--arg", "/file"].map(str::to_owned).as_slice())
        );
        assert_eq!(launch(&request("FOLDER/a b")).unwrap().1[0], "FOLDER/a b");
    }

    #[test]
    fn what_cannot_be_launched_is_said() {
        assert!(matches!(launch(&request("nonsense")), Err(PortError::AppGone(_))));
        let error = launch(&request("Gone")).unwrap_err().to_string();
        assert_eq!(error, "the program of Gone, /nowhere/gone, is not installed");
        assert!(matches!(launch(&request("  ")), Err(PortError::LaunchFailed(_))));
    }
}
