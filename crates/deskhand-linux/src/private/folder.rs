//! The folder that holds everything of one private desktop.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::variables::HOME_FOLDERS;

/// Length of an `MIT-MAGIC-COOKIE-1` in bytes, as the protocol has it.
const COOKIE_LENGTH: usize = 16;

/// Sockets are made some folders below; the kernel's limit for their paths is 107 bytes.
const MAX_PARENT_LENGTH: usize = 50;

/// The family of an Xauthority entry that holds for every address (`FamilyWild` of `X11/Xauth.h`).
const FAMILY_WILD: u16 = 0xffff;

/// The secret that a client of the display shows.
pub(super) type Cookie = [u8; COOKIE_LENGTH];

/// Paths below the folder of a desktop.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    root: PathBuf,
}

impl Folder {
    /// Names a folder; makes nothing.
    pub(super) fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// A name for a folder of a desktop called `id`: in `temporary` if socket paths below that stay short enough.
    pub(super) fn name(temporary: &Path, id: &str) -> PathBuf {
        let fits = temporary.is_absolute() && temporary.as_os_str().len() <= MAX_PARENT_LENGTH;
        let parent = if fits { temporary } else { Path::new("/tmp") };
        parent.join(format!("deskhand-{id}"))
    }

    /// Makes the folder and those in it, for this user alone.
    pub(super) fn create(&self) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        // Not recursive: a folder that exists already is somebody else's.
        builder.create(&self.root)?;
        for folder in [self.runtime(), self.home(), self.logs(), self.temporary(), self.services()] {
            builder.create(folder)?;
        }
        builder.recursive(true);
        for (_, below) in HOME_FOLDERS {
            builder.create(self.home().join(below))?;
        }
        Ok(())
    }

    /// Writes a file that only this user can read.
    pub(super) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(content)
    }

    /// A log file for a component.
    pub(super) fn log(&self, name: &str) -> io::Result<std::fs::File> {
        OpenOptions::new().create(true).append(true).mode(0o600).open(self.log_path(name))
    }

    /// The last lines of a component's log, on one line.
    pub(super) fn log_end(&self, name: &str) -> String {
        let text = std::fs::read(self.log_path(name)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let mut last: Vec<_> =
            text.lines().rev().map(str::trim).filter(|line| !line.is_empty()).take(4).collect();
        last.reverse();
        last.join(" / ")
    }

    /// Removes everything.
    pub(super) fn remove(&self) -> io::Result<()> {
        match std::fs::remove_dir_all(&self.root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    fn log_path(&self, name: &str) -> PathBuf {
        self.logs().join(format!("{name}.log"))
    }

    fn logs(&self) -> PathBuf {
        self.root.join("log")
    }

    /// `XDG_RUNTIME_DIR`.
    pub(super) fn runtime(&self) -> PathBuf {
        self.root.join("run")
    }

    /// `HOME`, unless the user's own is kept.
    pub(super) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// `TMPDIR`: what programs leave behind goes with the desktop.
    pub(super) fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// Services that the session bus starts on demand, found before those of the system.
    pub(super) fn services(&self) -> PathBuf {
        self.root.join("services")
    }

    /// The cookie for clients.
    pub(super) fn xauthority(&self) -> PathBuf {
        self.root.join("xauthority")
    }

    /// The cookie as the display server reads it.
    pub(super) fn server_cookie(&self) -> PathBuf {
        self.root.join("server-cookie")
    }

    /// Configuration of the window manager.
    pub(super) fn window_manager(&self) -> PathBuf {
        self.root.join("openbox.xml")
    }

    /// Configuration of the session bus.
    pub(super) fn bus(&self) -> PathBuf {
        self.root.join("bus.xml")
    }

    /// The socket of the session bus.
    pub(super) fn bus_socket(&self) -> PathBuf {
        self.runtime().join("bus")
    }

    /// Address of the session bus.
    pub(super) fn bus_address(&self) -> String {
        format!("unix:path={}", escape_address(&self.bus_socket()))
    }
}

/// A path as it stands in a D-Bus address: bytes beyond a small set are written as `%` and two hex digits.
fn escape_address(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_/.\\*".contains(&byte);
    path.as_os_str()
        .as_encoded_bytes()
        .iter()
        .map(|byte| if plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02x}") })
        .collect()
}

/// A path as it stands in an XML text.
pub(super) fn escape_xml(path: &Path) -> String {
    path.to_string_lossy().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Random bytes for a cookie.
pub(super) fn cookie() -> io::Result<Cookie> {
    let mut cookie = [0; COOKIE_LENGTH];
    random(&mut cookie)?;
    Ok(cookie)
}

/// Fills `bytes` from the kernel's generator.
pub(crate) fn random(bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(())
}

/// An Xauthority file with one entry. `display` is `None` in the server's file, which is written before the number
/// of the display is known; the server looks at the cookie alone.
pub(super) fn xauthority_file(display: Option<u32>, cookie: &Cookie) -> Vec<u8> {
    let number = display.map(|display| display.to_string()).unwrap_or_default();
    let mut file = FAMILY_WILD.to_be_bytes().to_vec();
    for field in [b"".as_slice(), number.as_bytes(), b"MIT-MAGIC-COOKIE-1", cookie] {
        // Every field is far shorter than 64 KiB.
        file.extend_from_slice(&(field.len() as u16).to_be_bytes());
        file.extend_from_slice(field);
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_temporary_folders_are_not_used() {
        assert_eq!(Folder::name(Path::new("/var/tmp"), "a"), Path::new("/var/tmp/deskhand-a"));
        assert_eq!(
            Folder::name(Path::new(&format!("/{}", "x".repeat(150))), "a"),
            Path::new("/tmp/deskhand-a")
        );
    }

    #[test]
    fn an_entry_has_family_address_number_name_and_data() {
        let file = xauthority_file(Some(12), &[7; COOKIE_LENGTH]);
        assert_eq!(&file[..8], b"\xff\xff\x00\x00\x00\x0212");
        assert_eq!(&file[8..28], b"\x00\x12MIT-MAGIC-COOKIE-1");
        assert_eq!(&file[28..], [&[0, 16], [7; 16].as_slice()].concat());
    }

    #[test]
    fn paths_are_escaped() {
        assert_eq!(escape_address(Path::new("/tmp/a b,c")), "/tmp/a%20b%2cc");
        assert_eq!(escape_xml(Path::new("/a&<b>")), "/a&amp;&lt;b&gt;");
    }
}
