//! Where the records are.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::Trouble;

/// Names the folder of the records.
pub(super) const OWN: &str = "ACPMUX_HOME";
/// Names the folder that holds the one below.
pub(super) const GENERAL: &str = "HOME";
/// The folder of the records in a home.
const BELOW_HOME: &str = ".acpmux";

/// An entry of the password database may be so large in bytes: names of people and shells, not more.
const MAX_ENTRY: usize = 64 * 1024;

/// The folder of the records. A relative one would mean another folder to each process: it is not known then. Nor is it if
/// the variable for it is set to nothing: whoever set it meant some other place than the usual one.
pub(super) fn of(
    variables: &BTreeMap<OsString, OsString>,
    of_user: impl FnOnce() -> Option<PathBuf>,
) -> Option<PathBuf> {
    let named = |name: &str| variables.get(OsStr::new(name));
    let folder = match (named(OWN), named(GENERAL).filter(|home| !home.is_empty())) {
        (Some(own), _) => PathBuf::from(own),
        (None, Some(home)) => Path::new(home).join(BELOW_HOME),
        (None, None) => of_user()?.join(BELOW_HOME),
    };
    // A slash at the end would make the kernel follow a link there that has to be looked at itself.
    folder.is_absolute().then(|| folder.components().collect())
}

/// The home of a user in the password database.
pub(super) fn of_user(uid: u32) -> Option<PathBuf> {
    let mut strings = vec![0; 1024];
    loop {
        // SAFETY: `passwd` is a plain structure of numbers and pointers, for which zeros are a value.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        let mut found = std::ptr::null_mut();
        // SAFETY: every pointer is to a live value of its type, and the length is that of the buffer.
        let code = unsafe {
            libc::getpwuid_r(uid, &raw mut entry, strings.as_mut_ptr(), strings.len(), &raw mut found)
        };
        match code {
            libc::ERANGE if strings.len() < MAX_ENTRY => strings.resize(strings.len() * 4, 0),
            libc::EINTR => {}
            0 if !found.is_null() && !entry.pw_dir.is_null() => {
                // SAFETY: the call succeeded, so that this is a string that ends in `strings`, which lives on.
                let home = unsafe { CStr::from_ptr(entry.pw_dir) };
                let home = PathBuf::from(OsStr::from_bytes(home.to_bytes()));
                return Some(home).filter(|home| home.is_absolute());
            }
            _ => return None,
        }
    }
}

/// Whether no link on the way to `folder` leads nowhere: behind one, everything looks as if it were not there.
pub(super) fn leads_somewhere(folder: &Path) -> Result<(), Trouble> {
    for folder in folder.ancestors() {
        match rustix::fs::lstat(folder) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode).is_symlink() => {
                return match rustix::fs::stat(folder) {
                    Ok(_) => Ok(()),
                    Err(Errno::NOENT) => Err(Trouble::Dangling),
                    Err(_) => Err(Trouble::Unreadable),
                };
            }
            Ok(_) => return Ok(()),
            Err(Errno::NOENT) => {}
            Err(_) => return Err(Trouble::Unreadable),
        }
    }
    Ok(())
}
