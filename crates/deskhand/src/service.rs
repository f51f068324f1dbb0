//! The way from a command to the service of a desktop.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use deskhand_core::{Code, Error, SessionId};
use deskhand_service::build::Build;
use deskhand_service::client::{Client, Connect};
use deskhand_service::desktop::{DesktopName, DesktopNames};
use deskhand_service::election::Candidate;
use deskhand_service::folder::{Folder, FolderError, FolderFacts};
use deskhand_service::holder::{Condition, Holder, Lifetime};
use deskhand_service::launch::{self, Launch};
use deskhand_service::rule::{self, Choice, ChoiceFacts, NoChoice};
use deskhand_service::starting::{self, PATIENCE};
use deskhand_service::wire;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::net::UnixStream;
use tokio::time::Instant;

use crate::cli::ServiceArgs;
use crate::lifecycle;
use crate::wiring::VERSION;

/// The name of a private desktop that a service shares, unless it has a socket of its own.
const SHARED: &str = "shared";

/// How long a service may take to say hello to a command. It answers within milliseconds unless it is stopped.
const ANSWER: Duration = Duration::from_secs(10);

/// How soon a service that is starting or ending is looked for again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Why there is no service to ask, for people.
#[derive(Clone, Debug)]
pub(crate) struct NoService(String);

impl std::fmt::Display for NoService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where the services of this user are, and which of them is meant.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    facts: FolderFacts,
    choice: ChoiceFacts,
    variables: BTreeMap<OsString, OsString>,
}

/// What to say to a service that is connected to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Greeting {
    /// The session whose life the connection is.
    pub(crate) lease: Option<SessionId>,
    /// What people see in the list of sessions.
    pub(crate) label: Option<String>,
    /// Whether the service is to stay.
    pub(crate) persistent: bool,
}

impl Place {
    /// Gathers what the environment and the command line say.
    pub(crate) fn find(arguments: &ServiceArgs) -> Result<Self, Error> {
        let variables: BTreeMap<_, _> = std::env::vars_os().collect();
        let text = |name: &str| variables.get(&OsString::from(name)).and_then(|value| value.to_str());
        let facts = FolderFacts::gather(variables.get(&OsString::from("XDG_RUNTIME_DIR")).cloned());
        let runtime = facts.runtime_folder();
        let desktop = arguments.desktop.as_deref().map(|name| desktop_name(name, runtime)).transpose()?;
        let environment = DesktopNames::from_variables(text("DISPLAY"), text("WAYLAND_DISPLAY"), runtime);
        let is_there = |name: &DesktopName| name.local_socket(runtime).is_none_or(|socket| socket.exists());
        let environment_is_there = environment.as_ref().is_some_and(|names| names.iter().any(is_there));
        // As the service itself names it, which has another working folder.
        let socket =
            arguments.socket.as_ref().map(|socket| std::path::absolute(socket).unwrap_or(socket.clone()));
        let choice = ChoiceFacts { socket, desktop, environment, environment_is_there };
        Ok(Self { facts, choice, variables })
    }

    /// What the service that is meant answers to `ask`, if one runs. One that ends meanwhile does not count: it is asked
    /// again who runs then.
    ///
    /// # Errors
    /// As [`Place::connect`], and what `ask` says.
    pub(crate) async fn ask<T>(
        &self,
        ask: impl AsyncFn(Client) -> Result<T, Error>,
    ) -> Result<Result<T, NoService>, Error> {
        let deadline = Instant::now() + ANSWER;
        loop {
            let client = match self.connect().await? {
                Ok(client) => client,
                Err(none) => return Ok(Err(none)),
            };
            match ask(client).await {
                Err(error) if error.code == Code::ServiceUnreachable && Instant::now() < deadline => {}
                answer => return answer.map(Ok),
            }
        }
    }

    /// A connection to the service that is meant, if it runs. One that does not listen yet, or no more, is waited for.
    ///
    /// # Errors
    /// Several run and none is named, another build, or a service that does not answer.
    pub(crate) async fn connect(&self) -> Result<Result<Client, NoService>, Error> {
        let deadline = Instant::now() + ANSWER;
        loop {
            let found = self.holders()?;
            let (socket, holder) = match self.running(&found)? {
                Some(Running::Of(holder)) => match holder.socket() {
                    Some(socket) => (socket.to_owned(), Some(holder)),
                    None => return Ok(Err(self.none_among(&found))),
                },
                Some(Running::At(socket)) => (socket, None),
                None => return Ok(Err(self.none_among(&found))),
            };
            let connecting = connect_to(&socket, None, Greeting::default());
            let error = match tokio::time::timeout_at(deadline, connecting).await {
                Ok(Ok(client)) => return client.map(Ok),
                Ok(Err(error)) => error,
                Err(_) => {
                    let text = format!("no answer within {} s", ANSWER.as_secs());
                    return Err(unreachable(
                        &socket,
                        holder.as_deref(),
                        &io::Error::new(io::ErrorKind::TimedOut, text),
                    ));
                }
            };
            match holder.as_deref() {
                // A socket that was named leads nowhere.
                None if is_nobody(&error) => return Ok(Err(self.none_among(&[]))),
                // Somebody has inherited its locks.
                Some(holder) if holder.condition() == Condition::Gone => {
                    let others: Vec<_> =
                        found.iter().filter(|other| other.pid != holder.pid).cloned().collect();
                    return Ok(Err(self.none_among(&others)));
                }
                Some(holder) if Instant::now() < deadline && !holder.is_stopped() => {
                    // In both cases it is a matter of moments.
                    let _ = tokio::time::timeout(LOOK_AGAIN, lifecycle::end_of(holder.pid)).await;
                }
                holder => return Err(unreachable(&socket, holder, &error)),
            }
        }
    }

    /// The service that is meant, if it is among those that were found.
    fn running(&self, found: &[Holder]) -> Result<Option<Running>, Error> {
        match rule::choose(&self.choice, found) {
            Ok(Choice::Running(holder)) => Ok(Some(Running::Of(Box::new(holder)))),
            Ok(Choice::Socket(socket)) => Ok(Some(Running::At(socket))),
            Ok(Choice::Launch(_)) => Ok(None),
            Err(NoChoice::Nothing | NoChoice::NotThere(_) | NoChoice::InUse(_)) => Ok(None),
            Err(other) => Err(no_choice(&other)),
        }
    }

    fn holders(&self) -> Result<Vec<Holder>, Error> {
        Ok(match Folder::existing(&self.facts).map_err(refused)? {
            Some(folder) => folder.holders(),
            None => Vec::new(),
        })
    }

    /// Why there is no service here, with those that were found to run elsewhere.
    fn none_among(&self, others: &[Holder]) -> NoService {
        let line = |holder: &Holder| format!("\n  --desktop {}: {holder}", holder.desktop);
        let others: String = others.iter().map(line).collect();
        NoService(match (&self.choice.socket, others.as_str()) {
            (Some(socket), _) => format!("no service runs at {}", socket.display()),
            (None, "") => "no service runs here".to_owned(),
            (None, others) => format!("no service runs for this desktop; there are:{others}"),
        })
    }

    /// A connection to the service that is meant, and its socket; one is started if there is none.
    ///
    /// # Errors
    /// `build_conflict`, `desktop_in_use`, or `service_unreachable` with the reason.
    pub(crate) async fn connect_or_launch(&self, greeting: Greeting) -> Result<(Client, PathBuf), Error> {
        let folder = Folder::open(&self.facts).map_err(refused)?;
        let (desktop, socket) = match rule::choose(&self.choice, &folder.holders()) {
            Ok(Choice::Running(holder)) => (holder.desktop.clone(), holder.socket().map(ToOwned::to_owned)),
            Ok(Choice::Launch(desktop)) => (desktop, self.choice.socket.clone()),
            Ok(Choice::Socket(socket)) => {
                return match connect_to(&socket, None, greeting).await {
                    Ok(client) => client.map(|client| (client, socket)),
                    Err(error) => Err(unreachable(&socket, None, &error)),
                };
            }
            Err(error) => return Err(no_choice(&error)),
        };
        let build = Build::running(&folder, VERSION).map_err(|error| unreadable(&error))?;
        let lifetime = if greeting.persistent { Lifetime::Persistent } else { Lifetime::Managed };
        let candidate =
            Candidate::service(folder.clone(), desktop.clone(), build.clone(), lifetime, socket.clone());
        let candidate = candidate.map_err(refused)?;
        let connect = |holder: Holder| {
            let (greeting, digest) = (greeting.clone(), build.digest.clone());
            async move { greet(&holder, digest, greeting).await }
        };
        let start = || launch::launch(&self.launch(&folder, &desktop, lifetime));
        match starting::connect_or_launch(&candidate, Instant::now() + PATIENCE, connect, start).await {
            Ok((connected, _)) => connected,
            Err(error) => Err(failed_start(error.code(), &error)),
        }
    }

    /// How a service for `desktop` is started.
    fn launch(&self, folder: &Folder, desktop: &DesktopNames, lifetime: Lifetime) -> Launch {
        let mut arguments = vec![OsString::from("serve")];
        if lifetime == Lifetime::Managed {
            arguments.push("--managed".into());
        }
        let log = folder.log(desktop);
        arguments.extend(["--log-file".into(), log.clone().into()]);
        if let Some(socket) = &self.choice.socket {
            arguments.extend(["--socket".into(), socket.into()]);
        }
        let mut variables = self.variables.clone();
        if self.choice.desktop.is_some() {
            name_desktop(&mut variables, desktop);
        }
        Launch::own_build("deskhand", arguments, variables, log)
    }

    /// This process as the one that wants to own the desktop for others.
    pub(crate) fn service(&self, private: bool, lifetime: Lifetime) -> Result<Candidate, Error> {
        let folder = Folder::open(&self.facts).map_err(refused)?;
        let desktop = if private {
            let name = self.choice.socket.as_ref().map_or(SHARED.into(), |socket| socket.to_string_lossy());
            DesktopName::private(&name).map_err(|error| Error::argument("socket", error))?.into()
        } else {
            self.choice.environment.clone().ok_or_else(|| no_choice(&NoChoice::Nothing))?
        };
        let build = Build::running(&folder, VERSION).map_err(|error| unreadable(&error))?;
        Candidate::service(folder, desktop, build, lifetime, self.choice.socket.clone()).map_err(refused)
    }

    /// This process as the one that wants the desktop for itself; `None` if no desktop is named that it could own.
    pub(crate) fn in_process(&self) -> Result<Option<Candidate>, Error> {
        let Some(desktop) = self.choice.environment.clone() else { return Ok(None) };
        let folder = Folder::open(&self.facts).map_err(refused)?;
        let build = Build::running(&folder, VERSION).map_err(|error| unreadable(&error))?;
        Ok(Some(Candidate::in_process(folder, desktop, build)))
    }

    /// Whether no desktop can be reached from here and no service runs.
    pub(crate) fn is_nowhere(&self) -> bool {
        let choice = self.holders().map(|holders| rule::choose(&self.choice, &holders));
        matches!(choice, Ok(Err(NoChoice::Nothing | NoChoice::NotThere(_))))
    }

    /// Digest of this program, to tell it from another build.
    fn digest(&self) -> Result<String, Error> {
        let folder = Folder::open(&self.facts).map_err(refused)?;
        Ok(Build::running(&folder, VERSION).map_err(|error| unreadable(&error))?.digest)
    }
}

/// A service that runs, by what is known of it.
enum Running {
    Of(Box<Holder>),
    At(PathBuf),
}

/// How a proxy finds its service again.
#[derive(Debug)]
pub(crate) struct Connector {
    pub(crate) place: Place,
    pub(crate) label: Option<String>,
    pub(crate) persistent: bool,
}

impl Connect for Connector {
    fn connect(&self, session: SessionId, launch: bool) -> BoxFuture<'static, Result<Client, Error>> {
        let place = self.place.clone();
        let greeting =
            Greeting { lease: Some(session), label: self.label.clone(), persistent: self.persistent };
        async move {
            if launch {
                return place.connect_or_launch(greeting).await.map(|(client, _)| client);
            }
            let socket = match place.running(&place.holders()?)? {
                Some(Running::Of(holder)) => holder.socket().map(ToOwned::to_owned),
                Some(Running::At(socket)) => Some(socket),
                None => None,
            };
            let Some(socket) = socket else {
                return Err(Error::new(Code::ServiceUnreachable, "no service runs"));
            };
            match connect_to(&socket, Some(place.digest()?), greeting).await {
                Ok(client) => client,
                Err(error) => Err(unreachable(&socket, None, &error)),
            }
        }
        .boxed()
    }
}

/// Connects and says hello. The outer error is that of a service that may be starting or ending; the inner one is what a
/// service answers that is well.
async fn connect_to(socket: &Path, build: Option<String>, greeting: Greeting) -> io::Result<Greeted> {
    let client = Client::new(UnixStream::connect(socket).await?, socket);
    let Greeting { lease, label, persistent } = greeting;
    let parameters = wire::HelloParameters { lease: lease.is_some(), build, label, lifetime: None };
    match client.request::<wire::Hello>(lease.as_ref(), parameters).await {
        Ok(_) => {}
        Err(error) if error.code == Code::ServiceUnreachable => return Err(io::Error::other(error)),
        Err(error) => return Ok(Err(error)),
    }
    if persistent {
        // Asked for only once it is known to answer: a question that nobody waits for any more must change nothing.
        let stay = wire::HelloParameters { lifetime: Some(wire::Lifetime::Persistent), ..Default::default() };
        client.request::<wire::Hello>(None, stay).await.map_err(io::Error::other)?;
    }
    Ok(Ok(client))
}

/// A connection, or why a service does not want it.
type Greeted = Result<Client, Error>;

/// Says hello to the holder of a desktop's locks.
pub(crate) async fn greet(
    holder: &Holder,
    build: String,
    greeting: Greeting,
) -> io::Result<Result<(Client, PathBuf), Error>> {
    let socket = holder.socket().ok_or_else(|| io::Error::other("it has no socket"))?;
    let greeted = connect_to(socket, Some(build), greeting).await?;
    Ok(greeted.map(|client| (client, socket.to_owned())))
}

/// A desktop as a person names it: as `DISPLAY` or `WAYLAND_DISPLAY` would, or as `deskhand status` prints it.
fn desktop_name(name: &str, runtime: Option<&Path>) -> Result<DesktopName, Error> {
    if let Some(private) = name.strip_prefix("private:") {
        return DesktopName::private(private).map_err(|error| Error::argument("desktop", error));
    }
    DesktopName::x11(name)
        .or_else(|_| DesktopName::wayland(name, runtime))
        .map_err(|error| Error::argument("desktop", error))
}

/// Makes the variables of a service to be launched lead to `desktop`, whatever they named before.
fn name_desktop(variables: &mut BTreeMap<OsString, OsString>, desktop: &DesktopNames) {
    let name = desktop.primary().as_str();
    let (set, unset) =
        if name.contains(':') { ("DISPLAY", "WAYLAND_DISPLAY") } else { ("WAYLAND_DISPLAY", "DISPLAY") };
    variables.insert(set.into(), name.into());
    variables.remove(&OsString::from(unset));
}

fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

fn refused(error: FolderError) -> Error {
    Error::new(Code::ServiceUnreachable, error.to_string())
}

fn unreadable(error: &io::Error) -> Error {
    Error::new(Code::InternalError, format!("this program's own file cannot be read: {error}"))
}

fn unreachable(socket: &Path, holder: Option<&Holder>, error: &io::Error) -> Error {
    let who = holder.map(|holder| format!("; the desktop belongs to {holder}")).unwrap_or_default();
    Error::new(Code::ServiceUnreachable, format!("no service answers at {}: {error}{who}", socket.display()))
}

fn no_choice(error: &NoChoice) -> Error {
    let code = match error {
        NoChoice::OtherSocket { .. } | NoChoice::InUse(_) => Code::DesktopInUse,
        NoChoice::Nothing | NoChoice::NotThere(_) => Code::DesktopUnavailable,
        NoChoice::Several(_) => Code::Ambiguous,
    };
    Error::new(code, error.to_string())
}

fn failed_start(code: Code, error: &impl std::fmt::Display) -> Error {
    let advice = match code {
        Code::ServiceUnreachable => {
            ". `deskhand doctor` says what works here; `deskhand mcp --no-daemon-relaunch` does without a service"
        }
        _ => "",
    };
    Error::new(code, format!("{error}{advice}"))
}
