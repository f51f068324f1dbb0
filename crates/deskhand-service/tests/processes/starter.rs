//! What this program is when a test starts it: someone who wants to be or to reach the service.
//!
//! It makes itself ready, waits for the end of its standard input, so that many begin at the same moment, and tells on its
//! standard output what came of it, one line each: `trying PID`, `elected PID`, `connected PID`, `failed CODE MESSAGE`.

use std::io::{self, Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use deskhand_service::build::Build;
use deskhand_service::desktop::{DesktopName, DesktopNames};
use deskhand_service::election::{Candidate, Elected};
use deskhand_service::folder::Folder;
use deskhand_service::holder::{Holder, Lifetime};
use deskhand_service::launch::{Launch, launch};
use deskhand_service::starting::{Outcome, StartError, connect_or_elect, connect_or_launch, elect_until};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

/// What a started process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Becomes the service, or connects to it and ends.
    Starter,
    /// Reaches the service, has it launched if there is none, and stays until it is killed.
    Host,
    /// Wants the desktop for itself, and stays until it is killed.
    Alone,
}

impl Part {
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Starter, Self::Host, Self::Alone].into_iter().find(|part| part.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Starter => "part-starter",
            Self::Host => "part-host",
            Self::Alone => "part-alone",
        }
    }
}

/// Whoever owns a desktop holds this as well, and finds out if it is not alone. The kernel lets it go with the process.
const WITNESS_PATIENCE: Duration = Duration::from_secs(2);

pub(crate) fn run(part: Part, arguments: &[String]) -> ExitCode {
    let [folder, desktop, patience] = arguments else { panic!("{arguments:?}") };
    let folder = Folder::at(Path::new(folder)).unwrap();
    let desktop = DesktopNames::new(desktop.parse::<DesktopName>().unwrap());
    let build = Build::running(&folder, "test").unwrap();
    let alone = Candidate::in_process(folder.clone(), desktop.clone(), build.clone());
    let service =
        Candidate::service(folder.clone(), desktop.clone(), build, Lifetime::Managed, None).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
    let deadline = tokio::time::Instant::now() + Duration::from_millis(patience.parse().unwrap());
    let failed = match part {
        Part::Starter => match runtime.block_on(connect_or_elect(&service, deadline, hello)) {
            Ok(Outcome::Elected(elected)) => serve(&folder, elected),
            Ok(Outcome::Connected(_, holder)) => {
                say(&format!("connected {}", holder.pid));
                return ExitCode::SUCCESS;
            }
            Err(error) => error,
        },
        Part::Host => {
            let arguments = [Part::Starter.name(), &arguments[0], &arguments[1], &arguments[2]];
            let start = Launch::own_build(
                "starter",
                arguments.map(Into::into).to_vec(),
                std::env::vars_os(),
                folder.log(&desktop),
            );
            match runtime.block_on(connect_or_launch(&service, deadline, hello, || launch(&start))) {
                Ok((_connection, holder)) => {
                    say(&format!("connected {}", holder.pid));
                    stay()
                }
                Err(error) => error,
            }
        }
        Part::Alone => match runtime.block_on(elect_until(&alone, deadline)) {
            Ok(_elected) => {
                say(&format!("elected {}", std::process::id()));
                stay()
            }
            Err(error) => error,
        },
    };
    say_failure(&failed)
}

fn say_failure(error: &StartError) -> ExitCode {
    say(&format!("failed {} {}", error.code(), error.to_string().replace('\n', " ")));
    ExitCode::FAILURE
}

fn stay() -> ! {
    loop {
        std::thread::park();
    }
}

fn say(line: &str) {
    // A launcher's log, or a test that does not listen any more.
    let _ = writeln!(io::stdout(), "{line}").and_then(|()| io::stdout().flush());
}

/// The connection of a client: the service says its pid.
async fn hello(holder: Holder) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(holder.socket().unwrap()).await?;
    say(&format!("trying {}", holder.pid));
    let mut line = String::new();
    BufReader::new(&mut stream).read_line(&mut line).await?;
    match line.trim() {
        "" => Err(io::ErrorKind::ConnectionReset.into()),
        pid if pid == holder.pid.to_string() => Ok(stream),
        pid => panic!("{pid} answers in the place of {holder}"),
    }
}

/// What the service does: it answers everybody with its pid, and ends when it is asked to.
fn serve(folder: &Folder, mut elected: Elected) -> ! {
    let _witness = witness(folder, elected.holder());
    let listener = elected.bind().unwrap();
    say(&format!("elected {}", std::process::id()));
    let elected = Arc::new(Mutex::new(elected));
    listener.set_nonblocking(true).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = tokio::net::UnixListener::from_std(listener).unwrap();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let elected = Arc::clone(&elected);
            tokio::spawn(async move {
                let _ = stream.write_all(format!("{}\n", std::process::id()).as_bytes()).await;
                // Clients of the test send all that they send at once.
                let mut word = [0; 3];
                if stream.read(&mut word).await.is_ok_and(|length| &word[..length] == b"end") {
                    elected.lock().unwrap().unlink();
                    std::process::exit(0);
                }
            });
        }
    })
}

/// Holds the desktop's other mark. Two owners at once would be found here.
fn witness(folder: &Folder, holder: &Holder) -> UnixListener {
    let name = format!("{}/{}", folder.path().display(), holder.desktop);
    let address = SocketAddr::from_abstract_name(name).unwrap();
    let begun = Instant::now();
    loop {
        match UnixListener::bind_addr(&address) {
            Ok(listener) => return listener,
            // The kernel closes the descriptors of a process one after the other, and the locks came first.
            Err(error) if begun.elapsed() < WITNESS_PATIENCE => {
                assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => {
                say(&format!("failed violation two owners at once: {error}"));
                std::process::exit(9);
            }
        }
    }
}

/// Where the programs of a stage are.
pub(crate) fn program() -> PathBuf {
    std::env::current_exe().unwrap()
}
