//! The election against a small model: random starts, exits and kills on real lock files.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use std::io::ErrorKind;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use deskhand_service::build::Build;
use deskhand_service::desktop::DesktopNames;
use deskhand_service::election::{Candidate, Elected, Lost, elect};
use deskhand_service::folder::Folder;
use deskhand_service::holder::{Holder, Lifetime, Role};
use proptest::prelude::*;

/// Desktops under their names; some are one desktop seen by starters that know more or less of it.
const DESKTOPS: [&[&str]; 5] =
    [&[":0"], &[":1"], &[":0", "wayland-0"], &["wayland-0"], &["wayland-0", ":1", "private:x"]];

#[derive(Clone, Debug)]
struct Start {
    desktop: usize,
    digest: u8,
    path: u8,
    in_process: bool,
    /// `--socket`.
    socket: Option<u8>,
    binds: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Start(Start),
    /// An orderly end of one that runs.
    Exit(prop::sample::Index),
    /// It is gone, and everything that it leaves lies about.
    Kill(prop::sample::Index),
    Persist(prop::sample::Index),
    /// Something else than a record in the lock files that nobody holds.
    Scribble,
}

fn step() -> impl Strategy<Value = Step> {
    let start = (
        0..DESKTOPS.len(),
        0..2_u8,
        0..2_u8,
        prop::bool::weighted(0.2),
        prop::option::weighted(0.3, 0..2_u8),
        prop::bool::weighted(0.8),
    );
    let start = start.prop_map(|(desktop, digest, path, in_process, socket, binds)| {
        Step::Start(Start { desktop, digest, path, in_process, socket, binds })
    });
    let index = any::<prop::sample::Index>;
    prop_oneof![
        6 => start,
        2 => index().prop_map(Step::Exit),
        2 => index().prop_map(Step::Kill),
        1 => index().prop_map(Step::Persist),
        1 => Just(Step::Scribble),
    ]
}

fn names(of: &[&str]) -> DesktopNames {
    let mut names = of.iter().map(|name| name.parse().unwrap());
    let first = DesktopNames::new(names.next().unwrap());
    names.fold(first, DesktopNames::with)
}

/// One that runs, for the model and for real.
struct Owner {
    elected: Elected,
    listener: Option<UnixListener>,
}

struct World {
    _place: tempfile::TempDir,
    folder: Folder,
    sockets: PathBuf,
    owners: Vec<Owner>,
}

/// What the model says a start comes to.
#[derive(Debug, PartialEq)]
enum Expected {
    Elected,
    SameBuild(DesktopNames),
    OtherBuild(DesktopNames),
    OtherSocket(DesktopNames),
    SocketInUse(DesktopNames),
    InUse(DesktopNames),
}

impl World {
    fn new() -> Self {
        // In memory, as runtime folders are: on a disk each start would wait for it.
        let memory = Path::new("/dev/shm");
        let place = tempfile::Builder::new();
        let place = if memory.is_dir() { place.tempdir_in(memory) } else { place.tempdir() }.unwrap();
        let folder = Folder::at(&place.path().join("run")).unwrap();
        Self { folder, sockets: place.path().to_owned(), _place: place, owners: Vec::new() }
    }

    fn candidate(&self, start: &Start) -> Candidate {
        let digest = start.digest.to_string().repeat(64);
        let path = PathBuf::from(format!("/opt/{}", start.path));
        let build = Build { digest, path, version: "1".to_owned() };
        let desktop = names(DESKTOPS[start.desktop]);
        if start.in_process {
            return Candidate::in_process(self.folder.clone(), desktop, build);
        }
        let socket = start.socket.map(|number| self.sockets.join(format!("{number}.sock")));
        Candidate::service(self.folder.clone(), desktop, build, Lifetime::Managed, socket).unwrap()
    }

    fn expected(&self, candidate: &Candidate) -> Expected {
        let holders = || self.owners.iter().map(|owner| owner.elected.holder());
        for name in candidate.desktop.iter() {
            let Some(holder) = holders().find(|holder| holder.desktop.contains(name)) else { continue };
            let desktop = holder.desktop.clone();
            return match (&candidate.role, &holder.role) {
                (Role::InProcess, _) | (_, Role::InProcess) => Expected::InUse(desktop),
                _ if candidate.build.digest != holder.build.digest => Expected::OtherBuild(desktop),
                (Role::Service { socket: wanted, .. }, Role::Service { socket, .. })
                    if candidate.socket_is_fixed && wanted != socket =>
                {
                    Expected::OtherSocket(desktop)
                }
                _ => Expected::SameBuild(desktop),
            };
        }
        if let Role::Service { socket, .. } = &candidate.role
            && let Some(holder) = holders().find(|holder| holder.socket() == Some(socket))
        {
            return Expected::SocketInUse(holder.desktop.clone());
        }
        Expected::Elected
    }

    fn start(&mut self, start: &Start) -> Result<(), TestCaseError> {
        let candidate = self.candidate(start);
        let expected = self.expected(&candidate);
        let result = elect(&candidate);
        let found = match &result {
            Ok(_) => Expected::Elected,
            Err(Lost::SameBuild(holder)) => Expected::SameBuild(holder.desktop.clone()),
            Err(Lost::OtherBuild { holder, .. }) => Expected::OtherBuild(holder.desktop.clone()),
            Err(Lost::OtherSocket { holder, .. }) => Expected::OtherSocket(holder.desktop.clone()),
            Err(Lost::SocketInUse(holder)) => Expected::SocketInUse(holder.desktop.clone()),
            Err(Lost::InUse(holder)) => Expected::InUse(holder.desktop.clone()),
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        prop_assert_eq!(found, expected);
        if let Ok(mut elected) = result {
            let binds = start.binds && elected.holder().socket().is_some();
            let listener = binds.then(|| elected.bind().unwrap());
            self.owners.push(Owner { elected, listener });
        }
        Ok(())
    }

    fn remove(&mut self, index: &prop::sample::Index) -> Option<Owner> {
        (!self.owners.is_empty()).then(|| self.owners.swap_remove(index.index(self.owners.len())))
    }

    fn run(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Start(start) => self.start(start)?,
            Step::Exit(index) => {
                if let Some(mut owner) = self.remove(index) {
                    owner.elected.unlink();
                    if let Some(socket) = owner.listener.is_some().then(|| owner.elected.holder().socket()) {
                        prop_assert!(!socket.unwrap().exists());
                    }
                }
            }
            Step::Kill(index) => {
                if let Some(owner) = self.remove(index)
                    && let Some(listener) = owner.listener
                {
                    drop(listener);
                    let socket = owner.elected.holder().socket().unwrap();
                    prop_assert_eq!(
                        UnixStream::connect(socket).unwrap_err().kind(),
                        ErrorKind::ConnectionRefused
                    );
                }
            }
            Step::Persist(index) if !self.owners.is_empty() => {
                let index = index.index(self.owners.len());
                self.owners[index].elected.set_lifetime(Lifetime::Persistent).unwrap();
            }
            Step::Persist(_) => {}
            Step::Scribble => self.scribble(),
        }
        self.check()
    }

    fn scribble(&self) {
        let held: Vec<String> = self
            .owners
            .iter()
            .flat_map(|owner| {
                let names: Vec<String> =
                    owner.elected.holder().desktop.iter().map(|name| name.file_name()).collect();
                names
            })
            .collect();
        for entry in std::fs::read_dir(self.folder.path()).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            let is_lock = name.starts_with("desktop-") && name.ends_with(".lock");
            if is_lock && !held.iter().any(|held| name == format!("desktop-{held}.lock")) {
                std::fs::write(entry.path(), "{\"pid\": 1}\nnonsense").unwrap();
            }
        }
    }

    /// What is to be seen from outside is what the model says.
    fn check(&self) -> Result<(), TestCaseError> {
        let mut expected: Vec<Holder> =
            self.owners.iter().map(|owner| owner.elected.holder().clone()).collect();
        expected.sort_by(|a, b| a.desktop.primary().cmp(b.desktop.primary()));
        prop_assert_eq!(self.folder.holders(), expected);
        for owner in &self.owners {
            let holder = owner.elected.holder();
            prop_assert_eq!(self.folder.holder(&holder.desktop), Some(holder.clone()));
            if let Some(listener) = &owner.listener {
                check_socket(holder.socket().unwrap(), listener)?;
            }
        }
        Ok(())
    }
}

/// A client that connects to the path arrives at this very listener.
fn check_socket(path: &Path, listener: &UnixListener) -> Result<(), TestCaseError> {
    listener.set_nonblocking(true).unwrap();
    let client = UnixStream::connect(path).unwrap();
    prop_assert!(listener.accept().is_ok(), "{} leads elsewhere", path.display());
    drop(client);
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).unwrap().permissions());
    prop_assert_eq!(mode & 0o777, 0o600);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn there_is_one_owner_for_a_desktop_and_the_others_learn_who(steps in prop::collection::vec(step(), 1..40)) {
        let mut world = World::new();
        for step in &steps {
            world.run(step)?;
        }
    }
}

fn service(folder: &Folder, socket: Option<PathBuf>) -> Candidate {
    let build = Build { digest: "a".repeat(64), path: "/opt/a".into(), version: "1".to_owned() };
    Candidate::service(folder.clone(), names(&[":0"]), build, Lifetime::Managed, socket).unwrap()
}

#[test]
fn f4_a_socket_that_is_not_ours_any_more_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::at(&place.path().join("run")).unwrap();
    let mut elected = elect(&service(&folder, None)).unwrap();
    let _listener = elected.bind().unwrap();
    let path = elected.holder().socket().unwrap().to_owned();
    std::fs::remove_file(&path).unwrap();
    let _other = UnixListener::bind(&path).unwrap();
    elected.unlink();
    assert!(UnixStream::connect(&path).is_ok());
}

#[test]
fn what_stands_in_the_place_of_the_socket_is_replaced_only_if_it_is_a_dead_socket() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::at(&place.path().join("run")).unwrap();
    let path = place.path().join("given.sock");
    let mut elected = elect(&service(&folder, Some(path.clone()))).unwrap();

    std::fs::write(&path, "somebody's file").unwrap();
    let error = elected.bind().unwrap_err().to_string();
    assert!(error.contains("something else than a socket") && error.contains("given.sock"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "somebody's file");
    std::fs::remove_file(&path).unwrap();

    let other = UnixListener::bind(&path).unwrap();
    let error = elected.bind().unwrap_err().to_string();
    assert!(error.contains("another process listens"), "{error}");
    drop(other);

    let listener = elected.bind().unwrap();
    check_socket(&path, &listener).unwrap();
    elected.unlink();
    assert!(!path.exists());
}

#[test]
fn f11_a_socket_path_that_is_too_long_is_refused_by_name() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::at(&place.path().join("run")).unwrap();
    let build = Build { digest: "a".repeat(64), path: "/opt/a".into(), version: "1".to_owned() };
    let longest = |length: usize| PathBuf::from(format!("{}/{}", place.path().display(), "s".repeat(length)));
    let room = deskhand_service::folder::MAX_SOCKET_PATH - place.path().as_os_str().len() - 1;
    let candidate = |socket| {
        Candidate::service(folder.clone(), names(&[":0"]), build.clone(), Lifetime::Managed, Some(socket))
    };
    let mut elected = elect(&candidate(longest(room)).unwrap()).unwrap();
    let listener = elected.bind().unwrap();
    check_socket(&longest(room), &listener).unwrap();
    let error = candidate(longest(room + 1)).unwrap_err().to_string();
    assert!(error.contains("too long"), "{error}");
}

#[test]
fn messages_name_who_it_is_and_the_way_out() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::at(&place.path().join("run")).unwrap();
    let _elected = elect(&service(&folder, None)).unwrap();
    let mut other = service(&folder, None);
    other.build.digest = "b".repeat(64);
    other.build.path = "/opt/b".into();
    let message = elect(&other).unwrap_err().to_string();
    let pid = std::process::id().to_string();
    for part in [&pid, "/opt/a", "/opt/b", "x0.sock", "deskhand stop", &format!("kill {pid}")] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let alone = Candidate::in_process(folder, names(&[":0"]), other.build);
    let message = elect(&alone).unwrap_err().to_string();
    assert!(message.contains("in use") && message.contains("the service of desktop :0"), "{message}");
}
