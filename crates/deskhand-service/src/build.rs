//! Which build of the program this is: the digest of the file that really runs.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::folder::Folder;

/// The running program's file, whatever has become of its path.
pub const RUNNING: &str = "/proc/self/exe";

/// What the kernel appends to the path of a running program whose file was removed or replaced.
const DELETED: &str = " (deleted)";

/// Digests of so many builds are kept; a person has a few, a developer some more.
const KEPT_DIGESTS: usize = 32;

/// A cache of that many digests is far smaller; something bigger is not one.
const MAX_CACHE: u64 = 64 * 1024;

/// Large enough that reading costs little beside hashing.
const BLOCK: usize = 256 * 1024;

/// A build of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// BLAKE3 of the program's file, in hexadecimal digits. Builds are the same exactly if this is.
    pub digest: String,
    /// Where it was executed from; there may be another file, or none, by now.
    pub path: PathBuf,
    /// Its version, for people.
    pub version: String,
}

impl Build {
    /// This process's build. The digest comes from a cache in `folder` if the file is still the one that was hashed.
    ///
    /// # Errors
    /// `/proc` is not mounted, or the file cannot be read. A cache that is broken or cannot be written is no error.
    pub fn running(folder: &Folder, version: &str) -> io::Result<Self> {
        let file = File::open(RUNNING)?;
        let path = path_of(&std::fs::read_link(RUNNING)?, &file.metadata()?);
        let digest = cached_digest(file, &folder.digests())?;
        Ok(Self { digest, path, version: version.to_owned() })
    }

    /// Enough of the digest for a message.
    pub fn short_digest(&self) -> &str {
        self.digest.get(..12).unwrap_or(&self.digest)
    }

    /// In words.
    pub fn describe(&self) -> String {
        format!("{} (version {}, build {})", self.path.display(), self.version, self.short_digest())
    }
}

/// The path that `link` tells, without the mark of a removed file.
fn path_of(link: &Path, running: &Metadata) -> PathBuf {
    // A file may really be called so: then it is there, and the one that runs.
    let same = |there: Metadata| (there.dev(), there.ino()) == (running.dev(), running.ino());
    if std::fs::metadata(link).is_ok_and(same) {
        return link.to_owned();
    }
    match link.to_str().and_then(|text| text.strip_suffix(DELETED)) {
        Some(stripped) => PathBuf::from(stripped),
        None => link.to_owned(),
    }
}

/// What a file is known by. A change of its content changes at least one of the times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    fn of(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
            size: file.size(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Known {
    identity: Identity,
    digest: String,
}

fn cached_digest(mut file: File, cache: &Path) -> io::Result<String> {
    let identity = Identity::of(&file.metadata()?);
    let mut known = read_cache(cache).unwrap_or_default();
    if let Some(hit) = known.iter().find(|known| known.identity == identity) {
        return Ok(hit.digest.clone());
    }
    let digest = digest(&mut file)?;
    // A file that was changed while it was read has no digest worth keeping.
    if Identity::of(&file.metadata()?) == identity {
        known.insert(0, Known { identity, digest: digest.clone() });
        known.truncate(KEPT_DIGESTS);
        if let Err(error) = write_cache(cache, &known) {
            tracing::debug!(%error, "the digest is not kept");
        }
    }
    Ok(digest)
}

fn digest(file: &mut File) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    let mut block = vec![0; BLOCK];
    loop {
        match file.read(&mut block) {
            Ok(0) => return Ok(hasher.finalize().to_hex().to_string()),
            Ok(length) => hasher.update(&block[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
    }
}

/// `None` for whatever is not a cache.
fn read_cache(path: &Path) -> Option<Vec<Known>> {
    let file = File::open(path).ok()?;
    let mut text = Vec::new();
    file.take(MAX_CACHE).read_to_end(&mut text).ok()?;
    let known: Vec<Known> = serde_json::from_slice(&text).ok()?;
    let is_digest = |text: &str| blake3::Hash::from_hex(text).is_ok();
    Some(known.into_iter().filter(|known| is_digest(&known.digest)).collect())
}

/// Readers see the old file or the new one. Of two that write at once one is lost, and hashed again some day.
fn write_cache(path: &Path, known: &[Known]) -> io::Result<()> {
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let written = std::fs::write(&new, serde_json::to_vec(known)?).and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest_of(program: &Path, cache: &Path) -> String {
        cached_digest(File::open(program).unwrap(), cache).unwrap()
    }

    #[test]
    fn the_digest_is_that_of_the_content() {
        let folder = tempfile::tempdir().unwrap();
        let (program, cache) = (folder.path().join("program"), folder.path().join("digests"));
        std::fs::write(&program, "one").unwrap();
        assert_eq!(digest_of(&program, &cache), blake3::hash(b"one").to_hex().to_string());
        assert_eq!(digest_of(&program, &cache), blake3::hash(b"one").to_hex().to_string());
        std::fs::write(&program, "two").unwrap();
        assert_eq!(digest_of(&program, &cache), blake3::hash(b"two").to_hex().to_string());
        let left: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left.len(), 2, "{left:?}");
    }

    #[test]
    fn a_file_that_is_known_is_not_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let (program, cache) = (folder.path().join("program"), folder.path().join("digests"));
        std::fs::write(&program, "one").unwrap();
        digest_of(&program, &cache);
        let mut known = read_cache(&cache).unwrap();
        known[0].digest = blake3::hash(b"planted").to_hex().to_string();
        write_cache(&cache, &known).unwrap();
        assert_eq!(digest_of(&program, &cache), blake3::hash(b"planted").to_hex().to_string());
    }

    #[test]
    fn a_bad_cache_is_ignored_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (program, cache) = (folder.path().join("program"), folder.path().join("digests"));
        std::fs::write(&program, "one").unwrap();
        let right = blake3::hash(b"one").to_hex().to_string();
        let identity = Identity::of(&std::fs::metadata(&program).unwrap());
        let wrong = serde_json::to_string(&[Known { identity, digest: "short".to_owned() }]).unwrap();
        for bad in ["", "{", "[]", "[{}]", "\0\0", &wrong] {
            std::fs::write(&cache, bad).unwrap();
            assert_eq!(digest_of(&program, &cache), right, "{bad}");
            assert_eq!(read_cache(&cache).unwrap()[0].digest, right, "{bad}");
        }
    }

    #[test]
    fn a_cache_that_cannot_be_written_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        std::fs::write(&program, "one").unwrap();
        let right = blake3::hash(b"one").to_hex().to_string();
        assert_eq!(digest_of(&program, Path::new("/proc/nowhere/digests")), right);
    }

    #[test]
    fn a_path_loses_the_mark_of_a_removed_file_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("program (deleted)");
        std::fs::write(&file, "one").unwrap();
        let running = std::fs::metadata(&file).unwrap();
        assert_eq!(path_of(&file, &running), file);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(path_of(&file, &running), folder.path().join("program"));
        let plain = folder.path().join("program");
        assert_eq!(path_of(&plain, &running), plain);
    }

    #[test]
    fn this_program_has_a_build() {
        let folder = tempfile::tempdir().unwrap();
        let build = Build::running(&Folder::at(&folder.path().join("run")).unwrap(), "1.2.3").unwrap();
        assert_eq!(build.path, std::env::current_exe().unwrap());
        assert_eq!(build.digest.len(), 64);
        assert_eq!(build.version, "1.2.3");
    }
}
