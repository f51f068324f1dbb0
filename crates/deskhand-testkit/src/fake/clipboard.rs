use async_trait::async_trait;
use deskhand_core::desktop::{
    Clipboard, ClipboardContent, ClipboardData, ClipboardWritten, PortError, Selection, Stop,
};

use super::FakeDesktop;

/// What lies on the fake clipboards, and how they misbehave.
#[derive(Debug, Default)]
pub(crate) struct Clipboards {
    held: Vec<(Selection, ClipboardData)>,
    silent: bool,
    deaf: bool,
    kept: bool,
}

impl FakeDesktop {
    /// Puts content on a clipboard, as another program does that offers it in one format.
    pub fn copy(&self, selection: Selection, mime: &str, bytes: &[u8]) {
        let data = ClipboardData { mime: mime.to_owned(), bytes: bytes.to_owned() };
        self.lock().clipboards.put(selection, data);
    }

    /// Makes the clipboard's owner answer nothing.
    pub fn silence_clipboard(&self) {
        self.lock().clipboards.silent = true;
    }

    /// Makes another program take back the clipboard whenever it is written to.
    pub fn defend_clipboard(&self) {
        self.lock().clipboards.deaf = true;
    }

    /// Starts a clipboard manager.
    pub fn keep_clipboard(&self) {
        self.lock().clipboards.kept = true;
    }
}

impl Clipboards {
    fn put(&mut self, selection: Selection, data: ClipboardData) {
        self.held.retain(|(other, _)| *other != selection);
        self.held.push((selection, data));
    }
}

#[async_trait]
impl Clipboard for FakeDesktop {
    async fn read(
        &self,
        selection: Selection,
        mime: &str,
        limit: usize,
        _: &Stop,
    ) -> Result<ClipboardContent, PortError> {
        let state = self.lock();
        if state.clipboards.silent {
            return Err(PortError::AppNotResponding {
                app: "the owner of the clipboard".to_owned(),
                waiting_for: "its content".to_owned(),
            });
        }
        let held = state.clipboards.held.iter().find(|(other, _)| *other == selection);
        let Some((_, data)) = held else { return Ok(ClipboardContent::default()) };
        if data.bytes.len() > limit {
            return Err(PortError::TooLarge { size: data.bytes.len(), limit });
        }
        let is_wanted = data.mime == mime;
        Ok(ClipboardContent { formats: vec![data.mime.clone()], data: is_wanted.then(|| data.clone()) })
    }

    async fn write(&self, selection: Selection, data: ClipboardData) -> Result<ClipboardWritten, PortError> {
        let mut state = self.lock();
        state.journal.push(format!("copy {} {} bytes", data.mime, data.bytes.len()));
        if !state.clipboards.deaf {
            state.clipboards.put(selection, data);
        }
        Ok(ClipboardWritten { volatile: !state.clipboards.kept })
    }

    async fn hand_over(&self) {}
}
