//! A recording as one HTML page that needs nothing else: no network, no other file, no server.
//!
//! Everything that comes from records is escaped, pictures and trees lie in blocks of data that no browser runs, and the page's own
//! policy allows the one script and the one style sheet that belong to it (by their digests) and pictures of its own.

mod material;
mod page;
mod text;
mod words;

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Component, Path, PathBuf};

use serde::Serialize;

pub use self::material::{Material, Picture, Told, Tree};
pub use self::page::page;
use crate::error::{Code, Error, Result};
use crate::plain_file;

/// Name of the page, unless it is given another.
pub const REPORT: &str = "report.html";
/// How every page of ours begins: only such a file is replaced.
const BEGINNING: &str = "<!doctype html>\n<!-- deskhand recording report -->\n";

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reported {
    /// The page.
    pub file: PathBuf,
    /// Turns in it.
    pub turns: usize,
    /// Different pictures in it.
    pub pictures: usize,
    /// Its size.
    pub bytes: usize,
    /// Turns that are left out because there are too many.
    #[serde(skip_serializing_if = "is_none")]
    pub turns_left_out: usize,
    /// Pictures that are left out because there would be too much; the page links their files.
    #[serde(skip_serializing_if = "is_none")]
    pub pictures_left_out: usize,
    /// Turns that cannot be read.
    #[serde(skip_serializing_if = "is_none")]
    pub turns_unreadable: usize,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// Writes the page of the recording in `folder` to `out`, or into the folder. A page of ours that is there is replaced as a whole;
/// nothing else ever is.
///
/// # Errors
/// `invalid_trajectory`, `file_error`.
pub fn write(folder: &Path, out: Option<&Path>) -> Result<Reported> {
    let file = out.map_or_else(|| folder.join(REPORT), Path::to_owned);
    let failed = |error: io::Error| Error::new(Code::FileError, format!("{}: {error}", file.display()));
    let replaces = may_write(&file)?;
    let material = Material::read(folder, base(&file, folder))?;
    let text = page(&material);
    put(&file, text.as_bytes(), replaces).map_err(failed)?;
    Ok(Reported {
        file: file.clone(),
        turns: material.turns.len(),
        pictures: material.pictures.len(),
        bytes: text.len(),
        turns_left_out: material.more_turns,
        pictures_left_out: material.pictures_left_out(),
        turns_unreadable: material.turns.iter().filter(|turn| turn.action.is_err()).count(),
    })
}

/// Whether a page of ours is there, which may be replaced.
fn may_write(file: &Path) -> Result<bool> {
    let refuse = |why: &dyn std::fmt::Display| {
        Err(Error::new(Code::FileError, format!("{}: {why}; nothing was written", file.display())))
    };
    match fs::symlink_metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => refuse(&error),
        Ok(found) if !found.is_file() => refuse(&"it exists and is no file; name another with --out"),
        Ok(_) => match plain_file::beginning(file, BEGINNING.len() as u64) {
            Err(error) => refuse(&error),
            Ok(beginning) if beginning == BEGINNING.as_bytes() => Ok(true),
            Ok(_) => refuse(&"it exists and is no report of deskhand; name another file with --out"),
        },
    }
}

/// Writes a file that appears whole, for this user alone.
fn put(file: &Path, bytes: &[u8], replaces: bool) -> io::Result<()> {
    let mut name = std::ffi::OsString::from(".");
    name.push(file.file_name().ok_or(ErrorKind::InvalidInput)?);
    name.push(format!(".{}.part", std::process::id()));
    let unfinished = file.with_file_name(name);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut open = options.open(&unfinished)?;
    let written = open.write_all(bytes).and_then(|()| match replaces {
        true => fs::rename(&unfinished, file),
        // Fails if a file has come to be there meanwhile.
        false => fs::hard_link(&unfinished, file),
    });
    if !(replaces && written.is_ok()) {
        let _ = fs::remove_file(&unfinished);
    }
    written
}

/// The address of `folder` as seen from `file`, with a slash at its end; nothing if that is where the file is.
fn base(file: &Path, folder: &Path) -> String {
    let parent = match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let (Ok(from), Ok(to)) = (parent.canonicalize(), folder.canonicalize()) else { return String::new() };
    let (from, to): (Vec<Component<'_>>, Vec<Component<'_>>) =
        (from.components().collect(), to.components().collect());
    let shared = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
    let up = "../".repeat(from.len() - shared);
    let down = to[shared..].iter().map(|part| text::address(&part.as_os_str().to_string_lossy()) + "/");
    up + &down.collect::<String>()
}
