//! The display's owner among several runtime folders.
//!
//! The locks in a runtime folder say who owns a desktop for all who use that folder. Somebody with another one (another
//! user, a container) who shares the display is found on the display itself: its owner holds the selection
//! `_DESKHAND_S<screen>`, in the way of window managers, and the server takes it back when the owner's connection ends.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use deskhand_core::desktop::PortError;
use tokio::sync::{Mutex, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use x11rb::connection::{Connection, RequestConnection as _};
use x11rb::protocol::Event;
use x11rb::protocol::res::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{
    AtomEnum, ChangeWindowAttributesAux, ConnectionExt as _, CreateWindowAux, EventMask, PropMode, Window,
    WindowClass,
};
use x11rb::wrapper::ConnectionExt as _;

use super::connection::{Link, Trouble, unless_refused};
use super::worker::SERVER_PATIENCE;
use crate::apps::Launcher;
use crate::environment::{EnvironmentSource, SessionEnvironment};

/// An owner whose process has just ended still holds the selection until the server has noticed, which takes
/// milliseconds.
const END_BOUND: Duration = Duration::from_millis(300);

/// A description is a few hundred bytes; of what somebody else put there, not more is read. In units of four bytes.
const MAX_DESCRIPTION: u32 = 1024;

/// Who owns a display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerInfo {
    /// How it describes itself; empty if it does not.
    pub description: String,
    /// Its process, as the display server knows it: of a container's, the number outside.
    pub pid: Option<u32>,
}

impl fmt::Display for OwnerInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.description.as_str(), self.pid) {
            ("", None) => f.write_str("a process that does not say who it is"),
            ("", Some(pid)) => write!(f, "process {pid}"),
            (description, None) => f.write_str(description),
            (description, Some(pid)) => write!(f, "process {pid} ({description})"),
        }
    }
}

/// The claim of a display, held by a connection of its own: dropped, or ended with the process, it is given up.
pub struct Claim {
    link: Link,
    selection: u32,
    window: Window,
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").field("window", &self.window).finish_non_exhaustive()
    }
}

/// Why a display was not claimed.
#[derive(Debug, thiserror::Error)]
pub enum NotClaimed {
    /// Somebody else owns it.
    #[error("{0} owns this display")]
    Owned(OwnerInfo),
    /// It cannot be opened, or ended.
    #[error(transparent)]
    Port(#[from] PortError),
}

impl From<Trouble> for NotClaimed {
    fn from(trouble: Trouble) -> Self {
        Self::Port(trouble.into())
    }
}

/// Claims the display of `environment` for this process. `description` is what others get to read who it is. Blocks as
/// long as the server does not answer.
///
/// # Errors
/// Somebody else owns the display, or it cannot be opened.
pub fn claim_owner(environment: &SessionEnvironment, description: &str) -> Result<Claim, NotClaimed> {
    let link = Link::open(environment)?;
    let screen = link.x.setup().roots.iter().position(|screen| screen.root == link.root).unwrap_or(0);
    let selection = atom(&link, &format!("_DESKHAND_S{screen}"))?;
    let property = atom(&link, "_DESKHAND_OWNER")?;
    let window = make_window(&link, property, description)?;
    match take(&link, selection, property, window)? {
        None => Ok(Claim { link, selection, window }),
        Some(owner) => Err(NotClaimed::Owned(owner)),
    }
}

fn atom(link: &Link, name: &str) -> Result<u32, Trouble> {
    Ok(link.x.intern_atom(false, name.as_bytes())?.reply()?.atom)
}

/// A window that is never shown, with the description on it.
fn make_window(link: &Link, property: u32, description: &str) -> Result<Window, Trouble> {
    let window = link.x.generate_id()?;
    link.x.create_window(
        0,
        window,
        link.root,
        -1,
        -1,
        1,
        1,
        0,
        WindowClass::INPUT_ONLY,
        x11rb::COPY_FROM_PARENT,
        &CreateWindowAux::new().override_redirect(1),
    )?;
    let text = link.atoms.UTF8_STRING;
    link.x.change_property8(PropMode::REPLACE, window, property, text, description.as_bytes())?;
    Ok(window)
}

/// Takes the selection if nobody has it; `Some`: who has it, and has not ended within the bound.
fn take(link: &Link, selection: u32, property: u32, window: Window) -> Result<Option<OwnerInfo>, Trouble> {
    let end = Instant::now() + END_BOUND;
    loop {
        // Between the look and the taking nobody else may come: of two that start at once one gets it.
        link.x.grab_server()?;
        let owner = link.x.get_selection_owner(selection)?.reply()?.owner;
        if owner == x11rb::NONE {
            link.x.set_selection_owner(window, selection, x11rb::CURRENT_TIME)?;
            link.x.ungrab_server()?;
            link.sync()?;
            return Ok(None);
        }
        let watch = ChangeWindowAttributesAux::new().event_mask(EventMask::STRUCTURE_NOTIFY);
        link.x.change_window_attributes(owner, &watch)?;
        link.x.ungrab_server()?;
        link.sync()?;
        if !await_end(link, owner, end)? {
            return describe(link, owner, property).map(Some);
        }
    }
}

/// Whether the window goes before `end`.
fn await_end(link: &Link, owner: Window, end: Instant) -> Result<bool, Trouble> {
    loop {
        while let Some(event) = link.x.poll_for_event()? {
            if matches!(event, Event::DestroyNotify(gone) if gone.window == owner) {
                return Ok(true);
            }
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        link.await_events(left);
    }
}

fn describe(link: &Link, owner: Window, property: u32) -> Result<OwnerInfo, Trouble> {
    let text = link.x.get_property(false, owner, property, AtomEnum::ANY, 0, MAX_DESCRIPTION)?.reply();
    let text = unless_refused(text)?.map(|reply| reply.value).unwrap_or_default();
    let description = String::from_utf8_lossy(&text).chars().filter(|c| !c.is_control()).collect();
    let spec = res::ClientIdSpec { client: owner, mask: res::ClientIdMask::LOCAL_CLIENT_PID };
    let has_pids = link.x.extension_information(res::X11_EXTENSION_NAME).is_ok_and(|found| found.is_some());
    let ids = if has_pids { unless_refused(link.x.res_query_client_ids(&[spec])?.reply())? } else { None };
    let pid = ids.and_then(|reply| reply.ids.first()?.value.first().copied());
    Ok(OwnerInfo { description, pid })
}

impl Claim {
    /// Waits for the end of the claim on a thread of its own, and so reads what the server sends to everybody. Cancels
    /// `lost` when the display ends.
    fn keep(self, lost: CancellationToken) -> std::io::Result<()> {
        let keep = move || {
            loop {
                match self.link.x.wait_for_event() {
                    Ok(Event::SelectionClear(lost)) if lost.selection == self.selection => {
                        tracing::warn!("another process has taken this display over");
                    }
                    Ok(_) => {}
                    // The display has ended.
                    Err(_) => return lost.cancel(),
                }
            }
        };
        std::thread::Builder::new().name("x11-owner".to_owned()).spawn(keep).map(|_| ())
    }
}

/// A source that claims the display the first time that anybody wants to connect to it, and refuses everybody as long as
/// somebody else owns it.
///
/// An environment without a display, or with one that cannot be opened, is passed on as it is: what that means is said by
/// who needs the display. So is one whose server does not answer; the claim is then made when it does.
pub struct ClaimedSource {
    inner: Arc<dyn EnvironmentSource>,
    description: String,
    state: Mutex<State>,
    lost: CancellationToken,
}

#[derive(Default)]
enum State {
    #[default]
    NotTried,
    /// Waits for the server.
    Pending(oneshot::Receiver<Result<(), NotClaimed>>),
    Ours,
}

impl fmt::Debug for ClaimedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimedSource").field("description", &self.description).finish_non_exhaustive()
    }
}

impl ClaimedSource {
    /// Connects to nothing. `description` tells others who we are: program, user, process, socket.
    pub fn new(inner: Arc<dyn EnvironmentSource>, description: String) -> Self {
        Self { inner, description, state: Mutex::default(), lost: CancellationToken::new() }
    }

    /// Cancelled when the display that was claimed has ended.
    pub fn lost(&self) -> CancellationToken {
        self.lost.clone()
    }

    fn try_to_claim(&self, environment: &Arc<SessionEnvironment>) -> State {
        let (sender, receiver) = oneshot::channel();
        let (environment, description) = (Arc::clone(environment), self.description.clone());
        let lost = self.lost.clone();
        let claim = move || {
            let kept = |claim: Claim| {
                claim.keep(lost).map_err(|error| PortError::Internal(format!("no thread: {error}")).into())
            };
            // Nobody listens if the calls that wanted it were given up; the claim stands all the same.
            let _ = sender.send(claim_owner(&environment, &description).and_then(kept));
        };
        if let Err(error) = std::thread::Builder::new().name("x11-claim".to_owned()).spawn(claim) {
            tracing::warn!(%error, "the display is not claimed");
            return State::NotTried;
        }
        State::Pending(receiver)
    }
}

#[async_trait]
impl EnvironmentSource for ClaimedSource {
    async fn get(&self) -> Result<Arc<SessionEnvironment>, PortError> {
        let environment = self.inner.get().await?;
        if environment.display.is_none() {
            return Ok(environment);
        }
        let mut state = self.state.lock().await;
        if matches!(*state, State::NotTried) {
            *state = self.try_to_claim(&environment);
        }
        if let State::Pending(answer) = &mut *state {
            match timeout(SERVER_PATIENCE, answer).await {
                Ok(Ok(Ok(()))) => *state = State::Ours,
                Ok(Ok(Err(NotClaimed::Owned(owner)))) => {
                    *state = State::NotTried;
                    let display = environment.display.as_deref().unwrap_or_default();
                    return Err(PortError::InUse(format!(
                        "the display {display} is in use by {owner}, who is another user, in a container, or calls \
                         the display by another name; end it first, or use another display"
                    )));
                }
                Ok(Ok(Err(NotClaimed::Port(error)))) => {
                    tracing::debug!(%error, "the display is not claimed");
                    *state = State::NotTried;
                }
                Ok(Err(_)) => *state = State::NotTried,
                Err(_) => {}
            }
        }
        drop(state);
        Ok(environment)
    }

    fn launcher(&self) -> Option<Arc<dyn Launcher>> {
        self.inner.launcher()
    }
}
