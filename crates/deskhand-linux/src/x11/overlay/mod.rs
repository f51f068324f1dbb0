//! What people see of agents: a cursor for each session that acts, and the preview.
//!
//! Each is a small window of its own, drawn over everything, that lets every click through. They have a thread and a
//! connection of their own, which exist while something can be seen and not a moment longer: nobody waits for them, and
//! where nobody acts nothing wakes up.

mod canvas;
mod card;
mod font;
mod motion;
mod own;
mod pane;
mod picture;
mod preview;
mod stage;

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deskhand_core::desktop::{Act, AgentCursor, Overlay, PreviewFrame};
use rustix::event::{EventfdFlags, eventfd};
use tokio::runtime::Handle;

pub(super) use own::Own;
use stage::Stage;

use crate::environment::EnvironmentSource;

/// Acts that wait to be shown; of more, the oldest are left out. A thread that cannot keep up with people's eyes is stuck.
const MAX_WAITING: usize = 64;

/// The adapter.
pub(crate) struct X11Overlay {
    source: Arc<dyn EnvironmentSource>,
    own: Own,
    mailbox: Arc<Mailbox>,
}

/// What the thread has to do next.
enum Message {
    Show(AgentCursor, Act),
    Remove(String),
}

/// The way to the thread, if there is one.
#[derive(Default)]
struct Mailbox(Mutex<Post>);

#[derive(Default)]
struct Post {
    messages: VecDeque<Message>,
    /// The newest of what the preview is to show; the inner `None` closes it.
    preview: Option<Option<PreviewFrame>>,
    /// Wakes the thread; `None`: there is none.
    bell: Option<Arc<OwnedFd>>,
    /// The adapter has been dropped.
    closed: bool,
}

/// What the thread takes out of its mailbox.
struct Delivery {
    messages: VecDeque<Message>,
    preview: Option<Option<PreviewFrame>>,
    closed: bool,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, Post> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Delivery {
        let mut post = self.lock();
        let (messages, preview) = (std::mem::take(&mut post.messages), post.preview.take());
        Delivery { messages, preview, closed: post.closed }
    }

    /// Ends the thread's time unless there is something left to do. Whether it has ended.
    fn retire(&self) -> bool {
        let mut post = self.lock();
        let done = (post.messages.is_empty() && post.preview.is_none()) || post.closed;
        if done {
            post.bell = None;
        }
        done
    }

    /// The thread could not do its work: nothing is shown.
    fn abandon(&self) {
        let mut post = self.lock();
        post.messages.clear();
        post.preview = None;
        post.bell = None;
    }
}

impl Post {
    fn put(&mut self, message: Message) {
        if self.messages.len() == MAX_WAITING {
            self.messages.pop_front();
        }
        self.messages.push_back(message);
    }

    fn ring(&self) {
        if let Some(bell) = &self.bell {
            // Only a counter at its limit would refuse, and that one has rung.
            let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
        }
    }
}

impl X11Overlay {
    /// An overlay on the display that `source` leads to. Connects to nothing.
    pub(super) fn new(source: Arc<dyn EnvironmentSource>, own: Own) -> Self {
        Self { source, own, mailbox: Arc::default() }
    }

    fn start(&self, post: &mut Post) {
        let bell = match eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK) {
            Ok(bell) => Arc::new(bell),
            Err(error) => return tracing::debug!(%error, "no descriptor for agent cursors"),
        };
        let (source, own, mailbox) = (Arc::clone(&self.source), self.own.clone(), Arc::clone(&self.mailbox));
        let (runtime, rings) = (Handle::current(), Arc::clone(&bell));
        let run = move || {
            let environment = runtime.block_on(source.get());
            drop((runtime, source));
            let stage = environment.and_then(|environment| Stage::open(&environment, &own));
            let done = stage.and_then(|stage| Ok(stage.play(&mailbox, &rings)?));
            if let Err(error) = done {
                tracing::debug!(%error, "agent cursors cannot be shown");
                mailbox.abandon();
            }
        };
        match std::thread::Builder::new().name("x11-overlay".to_owned()).spawn(run) {
            Ok(_) => post.bell = Some(bell),
            Err(error) => tracing::debug!(%error, "no thread for agent cursors"),
        }
    }
}

impl Overlay for X11Overlay {
    fn show(&self, cursor: &AgentCursor, act: Act) {
        let mut post = self.mailbox.lock();
        if post.bell.is_none() {
            // Keys are shown nowhere by themselves.
            if act == Act::Keys {
                return;
            }
            self.start(&mut post);
            if post.bell.is_none() {
                return;
            }
        }
        post.put(Message::Show(cursor.clone(), act));
        post.ring();
    }

    fn remove(&self, id: &str) {
        let mut post = self.mailbox.lock();
        if post.bell.is_some() {
            post.put(Message::Remove(id.to_owned()));
            post.ring();
        }
    }

    fn is_shown(&self, id: &str) -> bool {
        self.own.shows(id)
    }

    fn preview(&self, frame: Option<PreviewFrame>) {
        let mut post = self.mailbox.lock();
        if post.bell.is_none() && frame.is_some() {
            self.start(&mut post);
        }
        if post.bell.is_some() {
            post.preview = Some(frame);
            post.ring();
        }
    }
}

impl Drop for X11Overlay {
    fn drop(&mut self) {
        let mut post = self.mailbox.lock();
        post.closed = true;
        post.ring();
    }
}
