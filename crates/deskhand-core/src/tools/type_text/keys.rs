//! Typing with real keys: into the window that it is meant for, and no other.

use std::future::Future;
use std::time::Duration;

use tokio::sync::watch;

use super::Arguments;
use crate::desktop::{Chord, Delivered, Key, Modifier, PortError, Stop, Tally, Window};
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::progress::Part;
use crate::tools::Element;
use crate::tools::click::name_of;
use crate::tree::{is_text_input, quote};

/// Between press and release of the keys that empty a field.
const HOLD: Duration = Duration::from_millis(10);

/// Empties the field if that is asked for, and types. Stops when the keyboard goes to another application: the rest was
/// not meant for it.
///
/// # Errors
/// `untypable` before anything is emptied or typed; `focus_lost` and `window_gone` say how far it got.
pub(super) async fn deliver(
    context: &Context,
    arguments: &Arguments,
    window: &Window,
    element: Option<&Element>,
) -> Result<()> {
    let keyboard = &context.desktop().keyboard;
    // Watched from before the first key on: no key is pressed after a change that was not looked at.
    let mut focus = FocusWatch::begin(context, window).await?;
    let total = arguments.text.chars().count();
    if arguments.clear == Some(true) {
        require_clearable(element)?;
        keyboard.require_typable(&arguments.text).await?;
        for chord in emptying() {
            let press = |stop| async move { keyboard.press(&chord, 1, HOLD, &stop).await };
            let delivered = focus.guard(context, press, false, total).await?;
            context.delivered(delivered, "keys")?;
            focus.emptying = true;
        }
    }
    if let Some(element) = element {
        context.activity().aim(element.id());
    }
    let lines: Vec<&str> = match breaks_softly(arguments, element) {
        true => arguments.text.split('\n').collect(),
        false => vec![&arguments.text],
    };
    let delay = Duration::from_millis(arguments.delay_ms.unwrap_or(0));
    let (earlier, typed) = (&Tally::default(), &Tally::default());
    let part = || {
        let done = earlier.done() + typed.done();
        Part::of(done, total, format!("typed {done} of {total} characters"))
    };
    let typing = async {
        for (number, line) in lines.into_iter().enumerate() {
            if number > 0 {
                let chord = soft_break();
                let press = |stop| async move { keyboard.press(&chord, 1, HOLD, &stop).await };
                let delivered = focus.guard(context, press, true, total).await?;
                focus.typed += delivered.done;
                if !delivered.complete() {
                    break;
                }
            }
            earlier.reach(focus.typed);
            typed.reach(0);
            if line.is_empty() && number > 0 {
                continue;
            }
            let typing = |stop| async move { keyboard.type_text(line, delay, typed, &stop).await };
            let delivered = focus.guard(context, typing, true, total).await?;
            focus.typed += delivered.done;
            if !delivered.complete() {
                break;
            }
        }
        Ok::<_, Error>(Delivered { done: focus.typed, total })
    };
    let delivered = context.reporting(part, typing).await?;
    context.delivered(delivered, "characters")
}

/// Whether lines are broken by Shift and Return. Return alone sends what was written in many pages, and submits forms; a
/// value does neither.
fn breaks_softly(arguments: &Arguments, element: Option<&Element>) -> bool {
    arguments.is_value && element.is_some_and(|element| element.is_in("document web"))
}

fn soft_break() -> Chord {
    Chord { modifiers: vec![Modifier::Shift], key: Some(Key("Return".to_owned())) }
}

/// Selects all of a field, and deletes it.
fn emptying() -> [Chord; 2] {
    [
        Chord { modifiers: vec![Modifier::Ctrl], key: Some(Key("a".to_owned())) },
        Chord { modifiers: Vec::new(), key: Some(Key("BackSpace".to_owned())) },
    ]
}

fn require_clearable(element: Option<&Element>) -> Result<()> {
    let Some(element) = element else {
        let message = "needs an `element_index` or `query`: the window tells no field that has the focus, so what would \
                       be lost is not known";
        return Err(Error::argument("clear", message));
    };
    if element.node.interfaces.editable_text || is_text_input(element.role()) {
        return Ok(());
    }
    let message =
        format!("{} is no text field, so its content cannot be selected safely", element.describe());
    Err(Error::argument("clear", message))
}

/// Notices when the keyboard goes to another application than `window`'s.
struct FocusWatch<'w> {
    window: &'w Window,
    changes: watch::Receiver<u64>,
    /// Whether keys that empty the field have been pressed.
    emptying: bool,
    /// Characters that were typed by operations that are done.
    typed: usize,
}

impl<'w> FocusWatch<'w> {
    async fn begin(context: &Context, window: &'w Window) -> Result<Self> {
        let mut changes = context.desktop().windows.changes().await?;
        changes.borrow_and_update();
        Ok(Self { window, changes, emptying: false, typed: 0 })
    }

    /// Runs one operation of the keyboard while the focus is where it should be: it is not begun elsewhere, and asked to
    /// stop when that changes. `total` characters are to be typed, by this operation if it `types`.
    async fn guard<F: Future<Output = Result<Delivered, PortError>>>(
        &mut self,
        context: &Context,
        operation: impl FnOnce(Stop) -> F,
        types: bool,
        total: usize,
    ) -> Result<Delivered> {
        let windows = &context.desktop().windows;
        if is_elsewhere(&windows.list().await?, self.window) {
            return Err(self.lost(context, self.typed, total).await);
        }
        let stop = context.stop().child_token();
        let running = operation(stop.clone());
        tokio::pin!(running);
        let mut elsewhere = false;
        let delivered = loop {
            tokio::select! {
                biased;
                delivered = &mut running => break delivered,
                alive = self.changes.changed(), if !elsewhere => {
                    if alive.is_err() {
                        return Err(PortError::DesktopLost.into());
                    }
                    elsewhere = is_elsewhere(&windows.list().await?, self.window);
                    if elsewhere {
                        stop.cancel();
                    }
                }
            }
        };
        if !elsewhere {
            return match delivered {
                Err(PortError::Stopped) if self.typed > 0 => Ok(Delivered { done: 0, total }),
                delivered => Ok(delivered?),
            };
        }
        let done = match delivered {
            Ok(delivered) if types => self.typed + delivered.done,
            Ok(_) | Err(PortError::Stopped) => self.typed,
            Err(error) => return Err(error.into()),
        };
        Err(self.lost(context, done, total).await)
    }

    /// The error that says where the keyboard went, and how far typing got.
    async fn lost(&self, context: &Context, done: usize, total: usize) -> Error {
        let windows = match context.desktop().windows.list().await {
            Ok(windows) => windows,
            Err(error) => return error.into(),
        };
        let how_far = match done {
            0 if self.emptying => "after the field was emptied; nothing was typed".to_owned(),
            0 => "before anything was typed".to_owned(),
            _ => format!("after about {done} of {total} characters; the rest was not typed"),
        };
        let delivery = if done == 0 && !self.emptying { "not_delivered" } else { "partial" };
        let details = serde_json::json!({"delivery": delivery, "done": done, "total": total});
        let name = name_of(self.window);
        let focused = windows.iter().find(|other| other.focused);
        let is_there = windows.iter().any(|other| other.id == self.window.id);
        let (code, message) = match focused {
            // A window that closes gives the focus away: that is not what happened, but what came of it.
            _ if !is_there && !windows.iter().any(|other| is_of(other, self.window)) => {
                (Code::WindowGone, format!("{name} was closed, or its application ended, {how_far}"))
            }
            _ if !is_there => (Code::WindowGone, format!("{name} was closed {how_far}")),
            Some(thief) => {
                let thief = format!("{} of {}", name_of(thief), quote(&thief.app, 40));
                (Code::FocusLost, format!("{thief} took the focus {how_far}"))
            }
            None => (Code::FocusLost, format!("{name} lost the focus {how_far}")),
        };
        Error::new(code, message).with_details(details)
    }
}

/// Whether `other` is `window`, or another of its application.
fn is_of(other: &Window, window: &Window) -> bool {
    other.id == window.id
        || other.parent == Some(window.id)
        || (other.pid.is_some() && other.pid == window.pid)
}

/// Whether the focus is neither at `window` nor at another window of its application.
fn is_elsewhere(windows: &[Window], window: &Window) -> bool {
    match windows.iter().find(|other| other.focused) {
        Some(focused) => !is_of(focused, window),
        // For a moment, while a window manager moves it, nothing has the focus.
        None => !windows.iter().any(|other| is_of(other, window)),
    }
}
