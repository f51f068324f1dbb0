//! Desktop entries: the files in which programs say how they are called and started.
//!
//! Parsing cannot fail: what is not understood is left out. The format is freedesktop.org's Desktop Entry
//! Specification 1.5.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A program as its desktop entry describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// Name of the file without `.desktop`; folders in between are joined by `-`.
    pub(super) id: String,
    /// The file.
    pub(super) file: PathBuf,
    /// Name in the user's language.
    pub(super) name: String,
    /// Name without a language.
    pub(super) plain_name: String,
    /// Command line with field codes.
    pub(super) exec: String,
    /// A program without which the entry is of no use.
    pub(super) try_exec: Option<String>,
    /// Working folder.
    pub(super) folder: Option<PathBuf>,
    /// Icon.
    pub(super) icon: Option<String>,
    /// Runs in a terminal.
    pub(super) terminal: bool,
    /// Not shown to people: it opens files of some kind.
    pub(super) no_display: bool,
    /// Desktops that it is shown on; all, if there are none.
    pub(super) only_in: Vec<String>,
    /// Desktops that it is not shown on.
    pub(super) not_in: Vec<String>,
    /// Can be started through the session bus.
    pub(super) bus_activatable: bool,
    /// Counts as not installed.
    pub(super) hidden: bool,
    /// Class of its windows.
    pub(super) window_class: Option<String>,
    /// Passes an id of its start on to its windows.
    pub(super) tells_start: bool,
}

/// The user's language, most special spelling first: `de_AT@euro`, `de_AT`, `de@euro`, `de`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Languages(Vec<String>);

impl Languages {
    /// From a locale's name: `language_COUNTRY.ENCODING@MODIFIER`.
    pub(super) fn of(locale: &str) -> Self {
        let (rest, modifier) = match locale.split_once('@') {
            Some((rest, modifier)) => (rest, Some(modifier)),
            None => (locale, None),
        };
        let rest = rest.split('.').next().unwrap_or_default();
        let language = rest.split('_').next().unwrap_or_default();
        if matches!(language, "" | "C" | "POSIX") {
            return Self::default();
        }
        let mut all = Vec::new();
        for base in [rest, language] {
            all.extend(modifier.map(|modifier| format!("{base}@{modifier}")));
            all.push(base.to_owned());
        }
        all.dedup();
        Self(all)
    }
}

impl Entry {
    /// Reads the text of a desktop entry; `None` if it describes no program.
    pub(super) fn parse(id: &str, file: &Path, text: &str, languages: &Languages) -> Option<Self> {
        let keys = main_group(text);
        let raw = |key: &str| keys.get(key).copied();
        let string = |key: &str| raw(key).map(unescape).filter(|value| !value.is_empty());
        let flag = |key: &str| raw(key) == Some("true");
        let list = |key: &str| -> Vec<String> {
            let values = raw(key).unwrap_or_default().split(';').map(str::trim);
            values.filter(|value| !value.is_empty()).map(str::to_owned).collect()
        };
        if raw("Type") != Some("Application") {
            return None;
        }
        let plain_name = string("Name")?;
        let name = languages.0.iter().find_map(|language| string(&format!("Name[{language}]")));
        Some(Self {
            id: id.to_owned(),
            file: file.to_owned(),
            name: name.unwrap_or_else(|| plain_name.clone()),
            plain_name,
            exec: string("Exec").unwrap_or_default(),
            try_exec: string("TryExec"),
            folder: string("Path").map(PathBuf::from),
            icon: string("Icon"),
            terminal: flag("Terminal"),
            no_display: flag("NoDisplay"),
            only_in: list("OnlyShowIn"),
            not_in: list("NotShowIn"),
            bus_activatable: flag("DBusActivatable"),
            hidden: flag("Hidden"),
            window_class: string("StartupWMClass"),
            tells_start: flag("StartupNotify"),
        })
    }

    /// Whether people see it on a desktop that goes by these names.
    pub(super) fn is_shown_on(&self, desktops: &[&str]) -> bool {
        let is_one = |name: &String| desktops.contains(&name.as_str());
        !self.no_display
            && (self.only_in.is_empty() || self.only_in.iter().any(is_one))
            && !self.not_in.iter().any(is_one)
    }

    /// The words of the command line with their field codes.
    fn words(&self) -> Vec<Word> {
        split_words(&self.exec)
    }

    /// The program of the command line.
    pub(super) fn program(&self) -> Option<String> {
        self.words().into_iter().next().map(|word| word.text)
    }

    /// Whether the command line is a program and field codes alone.
    pub(super) fn is_plain(&self) -> bool {
        self.words().iter().skip(1).all(|word| word.text.starts_with('%'))
    }

    /// The command line for `files` (paths and URLs), program first.
    ///
    /// # Errors
    /// Says that it opens one file only.
    pub(super) fn command(&self, files: &[String]) -> Result<Vec<OsString>, String> {
        let mut command: Vec<OsString> = Vec::new();
        let mut placed = false;
        for word in self.words() {
            match word.text.as_str() {
                "%f" | "%u" | "%F" | "%U" if !word.quoted => {
                    let one = matches!(word.text.as_str(), "%f" | "%u");
                    if one && files.len() > 1 {
                        return Err(format!("{} opens one file at a time", self.name));
                    }
                    let urls = matches!(word.text.as_str(), "%u" | "%U");
                    command
                        .extend(files.iter().map(|file| if urls { file.into() } else { local_path(file) }));
                    placed = true;
                }
                "%i" if !word.quoted => {
                    if let Some(icon) = &self.icon {
                        command.extend(["--icon".into(), icon.into()]);
                    }
                }
                text => command.extend(self.expand(text).map(OsString::from)),
            }
        }
        if !placed {
            command.extend(files.iter().map(OsString::from));
        }
        Ok(command)
    }

    /// Field codes within a word. `None` for a word that was nothing but a code without a meaning.
    fn expand(&self, text: &str) -> Option<String> {
        if !text.contains('%') {
            return Some(text.to_owned());
        }
        let mut expanded = String::new();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            if character != '%' {
                expanded.push(character);
                continue;
            }
            match characters.next() {
                Some('%') => expanded.push('%'),
                Some('c') => expanded.push_str(&self.name),
                Some('k') => expanded.push_str(&self.file.to_string_lossy()),
                // Deprecated codes, and file codes within a word, are taken out.
                _ => {}
            }
        }
        Some(expanded).filter(|expanded| !expanded.is_empty())
    }
}

/// Keys and values of the group `Desktop Entry`, values as they stand.
fn main_group(text: &str) -> HashMap<&str, &str> {
    text.lines()
        .map(str::trim)
        .skip_while(|line| *line != "[Desktop Entry]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.trim_end(), value.trim_start()))
        .collect()
}

/// Escapes of the type `string`.
fn unescape(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        match characters.next() {
            Some('s') => text.push(' '),
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('\\') => text.push('\\'),
            // Not an escape of strings: it belongs to the quoting of the command line.
            Some(other) => text.extend(['\\', other]),
            None => text.push('\\'),
        }
    }
    text
}

/// A word of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// Was in quotes, so that it is no field code.
    quoted: bool,
}

/// Splits a command line at blanks; double quotes keep blanks, and in them a backslash keeps the next character. Single
/// quotes keep everything, which entries do not use and people do.
pub(super) fn split_words(line: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        if character.is_whitespace() {
            words.extend(word.take());
            continue;
        }
        let current = word.get_or_insert_with(|| Word { text: String::new(), quoted: false });
        match character {
            '"' => {
                current.quoted = true;
                while let Some(inner) = characters.next().filter(|inner| *inner != '"') {
                    current.text.extend(if inner == '\\' { characters.next() } else { Some(inner) });
                }
            }
            '\'' => {
                current.quoted = true;
                current.text.extend(characters.by_ref().take_while(|inner| *inner != '\''));
            }
            '\\' => current.text.extend(characters.next()),
            other => current.text.push(other),
        }
    }
    words.extend(word);
    words
}

/// A file for a program that takes no URLs.
fn local_path(file: &str) -> OsString {
    use std::os::unix::ffi::OsStringExt;

    let Some(path) = file.strip_prefix("file://") else { return file.into() };
    let path = path.strip_prefix("localhost").unwrap_or(path).as_bytes();
    let mut bytes = Vec::with_capacity(path.len());
    let mut at = 0;
    while let Some(byte) = path.get(at) {
        let digits = path.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) if *byte == b'%' => {
                bytes.push(decoded);
                at += 3;
            }
            _ => {
                bytes.push(*byte);
                at += 1;
            }
        }
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(lines: &str) -> Entry {
        let text = format!(
            "# a comment\n[Desktop Entry]\nType=Application\nName=Pad\nName[de]=Block\n{lines}\n[Other]\nExec=no"
        );
        Entry::parse("pad", Path::new("/share/pad.desktop"), &text, &Languages::of("de_AT.UTF-8")).unwrap()
    }

    fn command(exec: &str, files: &[&str]) -> Vec<String> {
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        let command = entry(&format!("Exec={exec}\nIcon=pad-icon")).command(&files).unwrap();
        command.into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn languages_go_from_special_to_general() {
        assert_eq!(Languages::of("sr_RS.UTF-8@latin").0, ["sr_RS@latin", "sr_RS", "sr@latin", "sr"]);
        assert_eq!(Languages::of("de").0, ["de"]);
        assert_eq!(Languages::of("C.UTF-8").0, [""; 0]);
    }

    #[test]
    fn names_are_localised_and_other_groups_left_out() {
        let entry = entry("Exec=pad %F\nNoDisplay=true\nTerminal=false\nStartupWMClass=Pad");
        assert_eq!((entry.name.as_str(), entry.plain_name.as_str()), ("Block", "Pad"));
        assert_eq!(entry.exec, "pad %F");
        assert!(entry.no_display && !entry.terminal && !entry.hidden);
        assert_eq!(entry.window_class.as_deref(), Some("Pad"));
    }

    #[test]
    fn what_is_no_program_is_no_entry() {
        let link = "[Desktop Entry]\nType=Link\nName=x\n";
        assert_eq!(Entry::parse("x", Path::new("x"), link, &Languages::default()), None);
        assert_eq!(Entry::parse("x", Path::new("x"), "\u{0}nonsense", &Languages::default()), None);
    }

    #[test]
    fn field_codes() {
        assert_eq!(command("pad %F", &["/a b", "file:///c%20d"]), ["pad", "/a b", "/c d"]);
        assert_eq!(command("pad %U", &["file:///c%20d"]), ["pad", "file:///c%20d"]);
        assert_eq!(command("pad %f --end", &[]), ["pad", "--end"]);
        assert_eq!(
            command("pad %i -n %c %k 100%%", &[]),
            ["pad", "--icon", "pad-icon", "-n", "Block", "/share/pad.desktop", "100%"]
        );
        assert_eq!(command("pad %m %v x%dy", &[]), ["pad", "xy"]);
        assert_eq!(command("pad --new", &["f"]), ["pad", "--new", "f"]);
    }

    #[test]
    fn one_file_at_a_time() {
        let error = entry("Exec=pad %f").command(&["a".to_owned(), "b".to_owned()]).unwrap_err();
        assert_eq!(error, "Block opens one file at a time");
    }

    #[test]
    fn quotes() {
        assert_eq!(
            command(r#""/opt/my pad/pad" "a \\"b\\" \\$HOME" "%F""#, &[]),
            ["/opt/my pad/pad", "a \"b\" $HOME"]
        );
        assert_eq!(command(r"sh -c 'echo a  b'", &[]), ["sh", "-c", "echo a  b"]);
        assert_eq!(command(r#"pad """#, &[]).len(), 2);
    }
}
