//! What people would see of agents.

use std::collections::HashSet;

use deskhand_core::desktop::{Act, AgentCursor, Overlay, PreviewFrame};

use super::FakeDesktop;

#[derive(Debug, Default)]
pub(crate) struct Cursors {
    shown: HashSet<String>,
    seen: Vec<String>,
    preview: Option<PreviewFrame>,
    /// What was in the preview, the newest last.
    captions: Vec<String>,
}

impl FakeDesktop {
    /// What people saw of agents so far; forgets it. It is not in the journal: nothing of it reaches the desktop.
    pub fn take_seen(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().overlay.seen)
    }

    /// What is in the preview.
    pub fn preview_frame(&self) -> Option<PreviewFrame> {
        self.lock().overlay.preview.clone()
    }

    /// The captions that the preview has had so far, `-` where it was closed; forgets them.
    pub fn take_captions(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().overlay.captions)
    }
}

impl Overlay for FakeDesktop {
    fn show(&self, cursor: &AgentCursor, act: Act) {
        let Cursors { shown, seen, .. } = &mut self.lock().overlay;
        let act = match act {
            Act::Press(at) => format!("presses {},{}", at.x, at.y),
            Act::Point(at) => format!("points at {},{}", at.x, at.y),
            Act::Drag { from, to, .. } => format!("drags {},{} to {},{}", from.x, from.y, to.x, to.y),
            Act::Keys => "types".to_owned(),
        };
        if act != "types" {
            shown.insert(cursor.id.to_string());
        }
        seen.push(format!("{} {} {act}", cursor.label, cursor.colour));
    }

    fn remove(&self, id: &str) {
        let Cursors { shown, seen, .. } = &mut self.lock().overlay;
        if shown.remove(id) {
            seen.push(format!("{id} goes"));
        }
    }

    fn is_shown(&self, id: &str) -> bool {
        self.lock().overlay.shown.contains(id)
    }

    fn preview(&self, frame: Option<PreviewFrame>) {
        let Cursors { preview, captions, .. } = &mut self.lock().overlay;
        let caption = frame.as_ref().map_or("-", |frame| &frame.caption);
        if captions.last().is_none_or(|last| last != caption) {
            captions.push(caption.to_owned());
        }
        *preview = frame;
    }
}
