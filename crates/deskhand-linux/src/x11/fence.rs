//! Asks an application whether it has read all input that was sent to it so far.
//!
//! `_NET_WM_PING` is meant to find frozen programs; as events come in order, its answer also says that everything
//! before it has been read.

use std::time::{Duration, Instant};

use deskhand_core::desktop::Stop;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    AtomEnum, ChangeWindowAttributesAux, ClientMessageEvent, ConnectionExt as _, EventMask, Window as XWindow,
};

use super::connection::{Link, Trouble, unless_refused};
use super::input::Input;
use super::worker::Pulse;

/// The focus lies so deep inside of its top-level window at most.
const MAX_DEPTH: usize = 16;

/// After a wish to stop nobody waits longer than this for an application.
const STOP_BOUND: Duration = Duration::from_millis(300);

/// The question to one application.
pub(super) struct Fence {
    /// Its window; `None` if it takes no such questions.
    window: Option<XWindow>,
    asked: u32,
    /// Whether it has left one without an answer in time.
    late: bool,
}

impl Fence {
    /// For the application that has the keyboard focus.
    pub(super) fn at_focus(link: &Link) -> Result<Self, Trouble> {
        let mut at = link.x.get_input_focus()?.reply()?.focus;
        let atoms = &link.atoms;
        for _ in 0..MAX_DEPTH {
            // 0 and 1 stand for nowhere and for wherever the pointer is.
            if at <= 1 || at == link.root {
                break;
            }
            let protocols = link.x.get_property(false, at, atoms.WM_PROTOCOLS, AtomEnum::ATOM, 0, 64)?;
            let tree = link.x.query_tree(at)?;
            let protocols = unless_refused(protocols.reply())?;
            let mut protocols = protocols.iter().filter_map(|reply| reply.value32()).flatten();
            let takes_pings = protocols.any(|protocol| protocol == atoms._NET_WM_PING);
            let parent = unless_refused(tree.reply())?.map(|tree| tree.parent);
            if takes_pings {
                return Ok(Self { window: Some(at), asked: 0, late: false });
            }
            match parent {
                Some(parent) => at = parent,
                None => break,
            }
        }
        Ok(Self { window: None, asked: 0, late: false })
    }

    /// Whether the application has left a question without an answer in time.
    pub(super) fn is_late(&self) -> bool {
        self.late
    }

    /// Waits for the answer; whether it came.
    pub(super) fn wait(
        &mut self,
        input: &mut Input,
        bound: Duration,
        pulse: &Pulse,
        stop: &Stop,
    ) -> Result<bool, Trouble> {
        let Some(window) = self.window else { return Ok(false) };
        self.asked += 1;
        // Answers go to the root as this event, which only those get who have asked for it.
        listen(&input.link, EventMask::SUBSTRUCTURE_NOTIFY)?;
        let question = [input.link.atoms._NET_WM_PING, self.asked, window, 0, 0];
        let message = ClientMessageEvent::new(32, window, input.link.atoms.WM_PROTOCOLS, question);
        input.link.x.send_event(false, window, EventMask::NO_EVENT, message)?;
        input.link.x.flush()?;
        let begun = Instant::now();
        let answered = loop {
            input.take_events()?;
            if input.pong.take().is_some_and(|answer| answer[..3] == question[..3]) {
                break true;
            }
            pulse.beat();
            let bound = if stop.is_cancelled() { bound.min(STOP_BOUND) } else { bound };
            let left = bound.saturating_sub(begun.elapsed());
            if left.is_zero() {
                break false;
            }
            input.link.await_events(left.min(STOP_BOUND));
        };
        listen(&input.link, EventMask::NO_EVENT)?;
        input.link.sync()?;
        input.take_events()?;
        self.late |= !answered;
        Ok(answered)
    }
}

fn listen(link: &Link, mask: EventMask) -> Result<(), Trouble> {
    let attributes = ChangeWindowAttributesAux::new().event_mask(mask);
    link.x.change_window_attributes(link.root, &attributes)?;
    Ok(())
}
