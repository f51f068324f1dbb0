//! Which program a host may be.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// No program is longer; reading a file that pretends to be must end some day.
const MAX_PROGRAM: u64 = 1024 * 1024 * 1024;

/// Write permission of group and others.
const WRITABLE: u32 = 0o022;

/// Large enough that reading costs little beside hashing.
const BLOCK: usize = 256 * 1024;

/// Which programs may be the host. An empty rule admits none.
#[derive(Clone, Debug, Default)]
pub struct HostRule {
    /// BLAKE3 of the program's file, in hexadecimal digits, as the build was given it.
    pub digest: Option<String>,
    /// Where a host is installed by the system: root's file in root's folders, which nobody else can write to.
    pub paths: Vec<PathBuf>,
}

/// Which file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(file: &Metadata) -> Self {
        Self { device: file.dev(), inode: file.ino() }
    }

    /// Of the program that a process runs at this moment.
    pub(super) fn of_process(pid: u32) -> io::Result<Self> {
        std::fs::metadata(link(pid)).map(|file| Self::of(&file))
    }
}

fn link(pid: u32) -> PathBuf {
    format!("/proc/{pid}/exe").into()
}

impl HostRule {
    /// Which file the process `pid` executes, if the rule allows that. Reads the whole file.
    pub(super) fn identify(&self, pid: u32) -> Result<Identity, &'static str> {
        let unreadable = |_| "its executable cannot be read";
        // The file that really runs, whatever lies at its path by now.
        let mut file = File::open(link(pid)).map_err(unreadable)?;
        let facts = file.metadata().map_err(unreadable)?;
        let path = std::fs::read_link(link(pid)).map_err(unreadable)?;
        let built_in = self.paths.iter().any(|allowed| *allowed == path && is_roots(&path, &facts));
        if !built_in {
            let wanted = self.digest.as_deref().and_then(|digest| blake3::Hash::from_hex(digest).ok());
            let Some(wanted) = wanted else { return Err("its executable is not an allowed one") };
            if digest(&mut file).map_err(unreadable)? != wanted {
                return Err("its executable is not an allowed one");
            }
        }
        Ok(Identity::of(&facts))
    }
}

/// Whether `path` is the file that `running` tells of, and only root can have put it there.
fn is_roots(path: &Path, running: &Metadata) -> bool {
    let safe = |file: &Metadata| file.uid() == 0 && file.mode() & WRITABLE == 0;
    let there = std::fs::symlink_metadata(path);
    let same = there.is_ok_and(|there| Identity::of(&there) == Identity::of(running));
    let folder =
        |folder: &Path| std::fs::symlink_metadata(folder).is_ok_and(|facts| facts.is_dir() && safe(&facts));
    path.is_absolute() && running.is_file() && safe(running) && same && path.ancestors().skip(1).all(folder)
}

fn digest(file: &mut File) -> io::Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    let mut block = vec![0; BLOCK];
    let mut bounded = file.take(MAX_PROGRAM);
    loop {
        match bounded.read(&mut block) {
            Ok(0) => return Ok(hasher.finalize()),
            Ok(length) => hasher.update(&block[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
    }
}

/// The digest of a program, as [`HostRule::digest`] wants it.
///
/// # Errors
/// It cannot be read.
pub fn digest_of(program: &Path) -> io::Result<String> {
    digest(&mut File::open(program)?).map(|digest| digest.to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_digest_decides_and_an_empty_rule_admits_nobody() {
        let own = std::process::id();
        let rule = |digest: Option<String>| HostRule { digest, paths: Vec::new() };
        assert!(rule(None).identify(own).is_err());
        assert!(rule(Some("00".repeat(32))).identify(own).is_err());
        assert!(rule(Some("short".into())).identify(own).is_err());
        let right = digest_of(&std::env::current_exe().unwrap()).unwrap();
        let identity = rule(Some(right)).identify(own).unwrap();
        assert_eq!(identity, Identity::of_process(own).unwrap());
    }

    #[test]
    fn a_path_counts_only_if_nobody_but_root_can_write_on_the_way() {
        let roots = |path: &Path| is_roots(path, &std::fs::metadata(path).unwrap());
        let shell = std::fs::canonicalize("/bin/sh").unwrap();
        assert!(roots(&shell));
        // Whatever runs this test may be root; the folder for temporary files is everybody's all the same.
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("host");
        std::fs::copy(&shell, &copy).unwrap();
        assert!(!roots(&copy));
        std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!roots(&copy));
        // Another file has taken the place of the one that runs.
        assert!(!is_roots(&shell, &std::fs::metadata(&copy).unwrap()));
        // Links are not followed.
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&shell, &link).unwrap();
        assert!(!roots(&link));
    }
}
