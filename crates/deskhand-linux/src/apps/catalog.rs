//! The desktop entries of a desktop, and which of them is meant by a name or a window.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::entry::{Entry, Languages};
use crate::private::needed;

/// Entries lie at most so many folders deep; a link back up would otherwise be followed for ever.
const MAX_DEPTH: usize = 4;

/// A larger file is no desktop entry.
const MAX_FILE: u64 = 1024 * 1024;

/// All desktop entries that count as installed.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    entries: BTreeMap<String, Entry>,
    path: Option<OsString>,
}

/// What a name stands for.
#[derive(Debug, PartialEq)]
pub(super) enum Found<'a> {
    One(&'a Entry),
    Several(Vec<&'a Entry>),
    None,
}

impl Catalog {
    /// Reads the entries that a desktop with these variables has. Blocks on the file system.
    pub(super) fn read(variables: &BTreeMap<OsString, OsString>) -> Self {
        let languages = languages(variables);
        let path = variables.get(OsStr::new("PATH")).cloned();
        let mut entries = BTreeMap::new();
        for folder in data_folders(variables) {
            let folder = folder.join("applications");
            read_folder(&folder, "", MAX_DEPTH, &mut |id, file| {
                // The first folder wins, also with an entry that only hides.
                if !entries.contains_key(&id)
                    && let Some(entry) = read_entry(&id, file, &languages)
                {
                    entries.insert(id, entry);
                }
            });
        }
        entries.retain(|_, entry| {
            let usable = entry.try_exec.as_deref().is_none_or(|program| is_there(program, path.as_deref()));
            !entry.hidden && usable && (entry.bus_activatable || !entry.exec.is_empty())
        });
        let current = variables.get(OsStr::new("XDG_CURRENT_DESKTOP")).and_then(|names| names.to_str());
        let desktops: Vec<&str> = current.unwrap_or_default().split(':').collect();
        for entry in entries.values_mut() {
            entry.no_display = !entry.is_shown_on(&desktops);
        }
        Self { entries, path }
    }

    /// Entries that people are shown, by name.
    pub(super) fn shown(&self) -> Vec<&Entry> {
        let mut shown: Vec<_> = self.entries.values().filter(|entry| !entry.no_display).collect();
        shown.sort_by_cached_key(|entry| (entry.name.to_lowercase(), entry.id.clone()));
        shown
    }

    /// The entry that is called `wanted`: by id, by its whole name, or by its program.
    pub(super) fn named(&self, wanted: &str) -> Found<'_> {
        if let Some(entry) = self.entries.get(wanted.strip_suffix(".desktop").unwrap_or(wanted)) {
            return Found::One(entry);
        }
        let wanted = wanted.to_lowercase();
        let by = |matches: &dyn Fn(&Entry) -> bool| -> Vec<&Entry> {
            self.shown().into_iter().filter(|entry| matches(entry)).collect()
        };
        let exact = by(&|entry| {
            [&entry.name, &entry.plain_name, &entry.id].into_iter().any(|name| name.to_lowercase() == wanted)
        });
        if !exact.is_empty() {
            return one_of(exact);
        }
        // A name of a program that several entries start with different arguments means the program itself.
        match by(&|entry| entry.is_plain() && program_name(entry).is_some_and(|name| name == wanted))
            .as_slice()
        {
            [entry] => Found::One(entry),
            _ => Found::None,
        }
    }

    /// The entry whose name holds `wanted` as a part.
    pub(super) fn like(&self, wanted: &str) -> Found<'_> {
        let wanted = wanted.to_lowercase();
        let holds = |name: &str| name.to_lowercase().contains(&wanted);
        let like = self.shown().into_iter().filter(|entry| holds(&entry.name) || holds(&entry.plain_name));
        one_of(like.collect())
    }

    /// The entry of a window with this class, or of the program that owns it.
    pub(super) fn of_window(&self, class: &str, program: Option<&str>) -> Option<&Entry> {
        let class = class.to_lowercase();
        let shown = self.shown();
        let find = |matches: &dyn Fn(&Entry) -> bool| shown.iter().copied().find(|entry| matches(entry));
        let last_part = |id: &str| id.rsplit('.').next().unwrap_or(id).to_lowercase();
        let is_class = |name: &str| name.to_lowercase() == class;
        find(&|entry| entry.window_class.as_deref().is_some_and(is_class))
            .or_else(|| find(&|entry| is_class(&entry.id)))
            .or_else(|| {
                find(&|entry| {
                    let name = program_name(entry).filter(|_| entry.is_plain());
                    name.zip(program).is_some_and(|(name, program)| is_called(&name, program))
                })
            })
            .or_else(|| {
                find(&|entry| entry.is_plain() && program_name(entry).is_some_and(|name| is_class(&name)))
            })
            .or_else(|| find(&|entry| last_part(&entry.id) == class))
            .or_else(|| find(&|entry| is_class(&entry.name) || is_class(&entry.plain_name)))
    }

    /// The file of a program: a path, or a name in `PATH`.
    pub(super) fn program(&self, program: &str) -> Option<PathBuf> {
        if program.contains('/') {
            return Some(PathBuf::from(program)).filter(|path| needed::is_program(path));
        }
        needed::find(program, self.path.as_deref())
    }
}

/// The kernel keeps so many bytes of a process's name.
const PROCESS_NAME: usize = 15;

/// Whether a process of this name runs the program.
fn is_called(program: &str, process: &str) -> bool {
    program == process || process.len() == PROCESS_NAME && program.starts_with(process)
}

fn one_of(mut entries: Vec<&Entry>) -> Found<'_> {
    match entries.len() {
        0 => Found::None,
        1 => Found::One(entries.remove(0)),
        _ => Found::Several(entries),
    }
}

/// The name of the entry's program without its folder.
fn program_name(entry: &Entry) -> Option<String> {
    let program = entry.program()?;
    Some(Path::new(&program).file_name()?.to_string_lossy().to_lowercase())
}

fn is_there(program: &str, path: Option<&OsStr>) -> bool {
    if program.starts_with('/') {
        needed::is_program(Path::new(program))
    } else {
        needed::find(program, path).is_some()
    }
}

fn languages(variables: &BTreeMap<OsString, OsString>) -> Languages {
    let value = |name: &str| variables.get(OsStr::new(name)).and_then(|value| value.to_str());
    let locale =
        ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().filter_map(value).find(|value| !value.is_empty());
    locale.map(Languages::of).unwrap_or_default()
}

/// Folders with data of programs, the user's own first.
fn data_folders(variables: &BTreeMap<OsString, OsString>) -> Vec<PathBuf> {
    let value = |name: &str| variables.get(OsStr::new(name)).filter(|value| !value.is_empty());
    let own = value("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or_else(|| value("HOME").map(|home| Path::new(home).join(".local/share")));
    let system = value("XDG_DATA_DIRS").cloned().unwrap_or_else(|| "/usr/local/share:/usr/share".into());
    // Relative folders are invalid by the specification.
    own.into_iter().chain(std::env::split_paths(&system)).filter(|folder| folder.is_absolute()).collect()
}

fn read_folder(folder: &Path, prefix: &str, depth: usize, found: &mut impl FnMut(String, &Path)) {
    let Ok(files) = std::fs::read_dir(folder) else { return };
    for file in files.flatten() {
        let path = file.path();
        let Some(name) = path.file_name().and_then(OsStr::to_str) else { continue };
        if let Some(stem) = name.strip_suffix(".desktop") {
            found(format!("{prefix}{stem}"), &path);
        } else if depth > 0 && path.is_dir() {
            read_folder(&path, &format!("{prefix}{name}-"), depth - 1, found);
        }
    }
}

fn read_entry(id: &str, file: &Path, languages: &Languages) -> Option<Entry> {
    let size = std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file)?.len();
    if size > MAX_FILE {
        return None;
    }
    let text = std::fs::read(file).ok()?;
    Entry::parse(id, file, &String::from_utf8_lossy(&text), languages)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A catalogue of files given as `FOLDER/NAME: key=value key=value` in `home` and `system`.
    fn catalog(files: &[(&str, &str)]) -> (tempfile::TempDir, Catalog) {
        let folder = tempfile::tempdir().unwrap();
        for (name, lines) in files {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            let lines = lines.replace("; ", "\n");
            std::fs::write(file, format!("[Desktop Entry]\nType=Application\n{lines}\n")).unwrap();
        }
        let variables = BTreeMap::from([
            ("XDG_DATA_HOME".into(), folder.path().join("home").into()),
            ("XDG_DATA_DIRS".into(), folder.path().join("system").into()),
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("XDG_CURRENT_DESKTOP".into(), "ubuntu:GNOME".into()),
        ]);
        let catalog = Catalog::read(&variables);
        (folder, catalog)
    }

    fn id<'a>(found: &Found<'a>) -> &'a str {
        match found {
            Found::One(entry) => &entry.id,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_users_entries_come_first_and_can_hide() {
        let (_folder, catalog) = catalog(&[
            ("home/applications/a.desktop", "Name=Mine; Exec=sh"),
            ("system/applications/a.desktop", "Name=Theirs; Exec=sh"),
            ("home/applications/b.desktop", "Name=B; Exec=sh; Hidden=true"),
            ("system/applications/b.desktop", "Name=B; Exec=sh"),
            ("system/applications/kde/c.desktop", "Name=C; Exec=sh"),
            ("system/applications/d.desktop", "Name=D; Exec=sh; TryExec=/nowhere/d"),
            ("system/applications/e.desktop", "Name=E; Exec=sh; NoDisplay=true"),
        ]);
        let shown: Vec<_> =
            catalog.shown().iter().map(|entry| (entry.id.as_str(), entry.name.as_str())).collect();
        assert_eq!(shown, [("kde-c", "C"), ("a", "Mine")]);
        assert_eq!(id(&catalog.named("e.desktop")), "e");
    }

    #[test]
    fn entries_of_other_desktops_are_not_shown() {
        let (_folder, catalog) = catalog(&[
            ("system/applications/a.desktop", "Name=A; Exec=sh; OnlyShowIn=GNOME;Unity;"),
            ("system/applications/b.desktop", "Name=B; Exec=sh; OnlyShowIn=KDE;"),
            ("system/applications/c.desktop", "Name=C; Exec=sh; NotShowIn=GNOME;"),
            ("system/applications/d.desktop", "Name=D; Exec=sh; NotShowIn=KDE;"),
            ("system/applications/e.desktop", "Name=E; DBusActivatable=true"),
            ("system/applications/f.desktop", "Name=F"),
        ]);
        let shown: Vec<_> = catalog.shown().iter().map(|entry| entry.id.as_str()).collect();
        assert_eq!(shown, ["a", "d", "e"]);
        assert_eq!(id(&catalog.named("b")), "b", "it can be launched all the same");
    }

    #[test]
    fn names_ids_and_programs_are_found() {
        let (_folder, catalog) = catalog(&[
            ("system/applications/org.xfce.mousepad.desktop", "Name=Mousepad; Exec=mousepad %U"),
            ("system/applications/calc.desktop", "Name=LibreOffice Calc; Exec=libreoffice --calc %U"),
            ("system/applications/writer.desktop", "Name=LibreOffice Writer; Exec=libreoffice --writer %U"),
            ("system/applications/chromium.desktop", "Name=Chromium Web Browser; Exec=/usr/bin/chromium %U"),
            ("system/applications/t1.desktop", "Name=Terminal; Exec=a"),
            ("system/applications/t2.desktop", "Name=Terminal; Exec=b"),
        ]);
        assert_eq!(id(&catalog.named("mousepad")), "org.xfce.mousepad");
        assert_eq!(id(&catalog.named("org.xfce.mousepad.desktop")), "org.xfce.mousepad");
        assert_eq!(id(&catalog.named("libreoffice calc")), "calc");
        assert_eq!(catalog.named("libreoffice"), Found::None);
        assert_eq!(id(&catalog.named("Chromium")), "chromium");
        assert_eq!(id(&catalog.like("web browser")), "chromium");
        assert!(matches!(catalog.like("LibreOffice"), Found::Several(both) if both.len() == 2));
        assert!(matches!(catalog.named("terminal"), Found::Several(both) if both.len() == 2));
    }

    #[test]
    fn windows_are_matched_by_class_and_by_program() {
        let (_folder, catalog) = catalog(&[
            ("system/applications/org.gnome.Calculator.desktop", "Name=Calculator; Exec=gnome-calculator"),
            (
                "system/applications/firefox-esr.desktop",
                "Name=Firefox; Exec=firefox %u; StartupWMClass=Firefox-esr",
            ),
            ("system/applications/org.xfce.mousepad.desktop", "Name=Mousepad; Exec=mousepad"),
        ]);
        let of = |class: &str, program| catalog.of_window(class, program).map(|entry| entry.id.as_str());
        assert_eq!(of("firefox-esr", None), Some("firefox-esr"));
        assert_eq!(of("org.gnome.Calculator", None), Some("org.gnome.Calculator"));
        assert_eq!(of("Mousepad", None), Some("org.xfce.mousepad"));
        assert_eq!(of("whatever", Some("mousepad")), Some("org.xfce.mousepad"));
        assert_eq!(of("gnome-calculator", None), Some("org.gnome.Calculator"));
        assert_eq!(
            of("whatever", Some("gnome-calculato")),
            Some("org.gnome.Calculator"),
            "cut by the kernel"
        );
        assert_eq!(of("whatever", Some("gnome-calc")), None);
        assert_eq!(of("XTerm", Some("xterm")), None);
    }
}
