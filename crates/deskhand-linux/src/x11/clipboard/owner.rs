//! What we have put on the clipboards, and how it is handed to other programs.

use std::sync::Arc;

use deskhand_core::desktop::{ClipboardData, Selection};
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    Atom, ConnectionExt as _, EventMask, PropMode, Property, SELECTION_NOTIFY_EVENT, SelectionNotifyEvent,
    SelectionRequestEvent, Window as XWindow,
};
use x11rb::{CURRENT_TIME, NONE};

use super::super::connection::{Link, Trouble, unless_refused};
use super::atoms::{self, ClipboardAtoms};
use super::incremental::{PIECE, Transfers};

/// Conversions in one `MULTIPLE` request; programs ask for two or three.
const MAX_MULTIPLE: u32 = 64;

/// Content that we own.
#[derive(Debug)]
struct Content {
    selection: Selection,
    data: ClipboardData,
    /// When we became its owner, by the server's clock.
    since: u32,
    /// What it can be had as: the target, the type that the reader is told, and the bytes.
    forms: Vec<(Atom, Atom, Arc<[u8]>)>,
}

/// What we own.
#[derive(Debug, Default)]
pub(super) struct Held {
    contents: Vec<Content>,
    transfers: Transfers,
}

impl Held {
    /// We have become the owner of `selection`.
    pub(super) fn put(
        &mut self,
        link: &Link,
        atoms: &ClipboardAtoms,
        selection: Selection,
        data: ClipboardData,
        since: u32,
    ) -> Result<(), Trouble> {
        let bytes: Arc<[u8]> = data.bytes.as_slice().into();
        let forms = if atoms::is_plain_text(&data.mime) {
            let latin1: Arc<[u8]> = atoms::to_latin1(&String::from_utf8_lossy(&data.bytes)).into();
            vec![
                (atoms.UTF8_STRING, atoms.UTF8_STRING, Arc::clone(&bytes)),
                (atoms.PLAIN_TEXT_UTF8, atoms.PLAIN_TEXT_UTF8, Arc::clone(&bytes)),
                (atoms.PLAIN_TEXT, atoms.PLAIN_TEXT, Arc::clone(&bytes)),
                (atoms.TEXT, atoms.UTF8_STRING, bytes),
                (atoms.STRING, atoms.STRING, latin1),
            ]
        } else {
            let target = link.x.intern_atom(false, data.mime.as_bytes())?.reply()?.atom;
            vec![(target, target, bytes)]
        };
        self.drop_content(selection);
        self.contents.push(Content { selection, data, since, forms });
        Ok(())
    }

    fn drop_content(&mut self, selection: Selection) {
        self.contents.retain(|content| content.selection != selection);
    }

    pub(super) fn holds(&self, selection: Selection) -> bool {
        self.content(selection).is_some()
    }

    fn content(&self, selection: Selection) -> Option<&Content> {
        self.contents.iter().find(|content| content.selection == selection)
    }

    /// What we own there.
    pub(super) fn data(&self, selection: Selection) -> Option<&ClipboardData> {
        self.content(selection).map(|content| &content.data)
    }

    /// The formats of what we own there.
    pub(super) fn targets(&self, selection: Selection) -> Vec<Atom> {
        let content = self.content(selection);
        content.into_iter().flat_map(|content| content.forms.iter().map(|form| form.0)).collect()
    }

    /// Wants to be told when `window` is destroyed.
    pub(super) fn watch(&self, link: &Link, window: XWindow) -> Result<(), Trouble> {
        self.transfers.watch(link, window)
    }

    pub(super) fn unwatch(&self, link: &Link, window: XWindow) -> Result<(), Trouble> {
        self.transfers.unwatch(link, window)
    }

    pub(super) fn forget_stuck(&mut self, link: &Link) -> Result<(), Trouble> {
        self.transfers.forget_stuck(link)
    }

    /// Takes one event of another program.
    pub(super) fn take(
        &mut self,
        link: &Link,
        atoms: &ClipboardAtoms,
        window: XWindow,
        event: &Event,
    ) -> Result<(), Trouble> {
        match event {
            Event::SelectionRequest(request) if request.owner == window => self.answer(link, atoms, request),
            Event::SelectionClear(clear) if clear.owner == window => {
                for selection in [Selection::Clipboard, Selection::Primary] {
                    // What we took again after this event was sent is still ours.
                    let older = self.content(selection).is_some_and(|content| {
                        clear.time == CURRENT_TIME || !is_before(clear.time, content.since)
                    });
                    if atoms.of(selection) == clear.selection && older {
                        self.drop_content(selection);
                    }
                }
                Ok(())
            }
            Event::PropertyNotify(notify) if notify.state == Property::DELETE => {
                self.transfers.taken(link, notify.window, notify.atom)
            }
            Event::DestroyNotify(destroyed) => {
                self.transfers.ended(destroyed.window);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn answer(
        &mut self,
        link: &Link,
        atoms: &ClipboardAtoms,
        request: &SelectionRequestEvent,
    ) -> Result<(), Trouble> {
        // Old programs name no property; then the target's name is meant.
        let property = if request.property == NONE { request.target } else { request.property };
        let selection = [Selection::Clipboard, Selection::Primary]
            .into_iter()
            .find(|each| atoms.of(*each) == request.selection);
        let selection = selection.filter(|selection| {
            self.content(*selection).is_some_and(|content| {
                request.time == CURRENT_TIME || !is_before(request.time, content.since)
            })
        });
        let done = match selection {
            None => false,
            Some(selection) if request.target == atoms.MULTIPLE => {
                self.convert_several(link, atoms, selection, request.requestor, property)?
            }
            Some(selection) => {
                self.convert(link, atoms, selection, request.requestor, request.target, property)?
            }
        };
        let notify = SelectionNotifyEvent {
            response_type: SELECTION_NOTIFY_EVENT,
            sequence: 0,
            time: request.time,
            requestor: request.requestor,
            selection: request.selection,
            target: request.target,
            property: if done { property } else { NONE },
        };
        link.x.send_event(false, request.requestor, EventMask::NO_EVENT, notify)?;
        Ok(())
    }

    /// Puts content into a reader's property. `false`: not in this form.
    fn convert(
        &mut self,
        link: &Link,
        atoms: &ClipboardAtoms,
        selection: Selection,
        reader: XWindow,
        target: Atom,
        property: Atom,
    ) -> Result<bool, Trouble> {
        let Some(content) = self.content(selection) else { return Ok(false) };
        let put = |kind: Atom, format: u8, items: usize, bytes: &[u8]| -> Result<bool, Trouble> {
            let items = u32::try_from(items).unwrap_or(0);
            link.x.change_property(PropMode::REPLACE, reader, property, kind, format, items, bytes)?;
            Ok(true)
        };
        if target == atoms.TARGETS {
            let own = [atoms.TARGETS, atoms.TIMESTAMP, atoms.MULTIPLE, atoms.SAVE_TARGETS];
            let all: Vec<Atom> = own.into_iter().chain(content.forms.iter().map(|form| form.0)).collect();
            let bytes: Vec<u8> = all.iter().flat_map(|atom| atom.to_ne_bytes()).collect();
            return put(atoms.ATOM, 32, all.len(), &bytes);
        }
        if target == atoms.TIMESTAMP {
            return put(atoms.INTEGER, 32, 1, &content.since.to_ne_bytes());
        }
        if target == atoms.SAVE_TARGETS {
            return put(atoms.ATOM, 32, 0, &[]);
        }
        let form = content.forms.iter().find(|form| form.0 == target);
        let Some((_, kind, bytes)) = form.cloned() else { return Ok(false) };
        if bytes.len() <= PIECE {
            return put(kind, 8, bytes.len(), &bytes);
        }
        self.transfers.begin(link, atoms, reader, property, (kind, bytes))
    }

    /// Several conversions at once: their targets and properties lie in pairs in the reader's property, and those that
    /// failed are struck out there.
    fn convert_several(
        &mut self,
        link: &Link,
        atoms: &ClipboardAtoms,
        selection: Selection,
        reader: XWindow,
        property: Atom,
    ) -> Result<bool, Trouble> {
        let asked = link.x.get_property(false, reader, property, atoms.ATOM_PAIR, 0, 2 * MAX_MULTIPLE)?;
        let Some(asked) = unless_refused(asked.reply())? else { return Ok(false) };
        let Some(mut pairs) = asked.value32().map(Iterator::collect::<Vec<_>>) else { return Ok(false) };
        for pair in pairs.chunks_exact_mut(2) {
            let (target, into) = (pair[0], pair[1]);
            let nested = target == atoms.MULTIPLE || into == NONE;
            if nested || !self.convert(link, atoms, selection, reader, target, into)? {
                pair[1] = NONE;
            }
        }
        let bytes: Vec<u8> = pairs.iter().flat_map(|atom| atom.to_ne_bytes()).collect();
        let items = u32::try_from(pairs.len()).unwrap_or(0);
        let kind = atoms.ATOM_PAIR;
        link.x.change_property(PropMode::REPLACE, reader, property, kind, 32, items, &bytes)?;
        Ok(true)
    }
}

/// Whether one moment of the server's clock, which runs over every 49 days, is before another.
fn is_before(time: u32, other: u32) -> bool {
    other.wrapping_sub(time).wrapping_sub(1) < u32::MAX / 2
}

#[cfg(test)]
mod tests {
    use super::is_before;

    #[test]
    fn the_servers_clock_runs_over() {
        assert!(is_before(1, 2) && !is_before(2, 1) && !is_before(2, 2));
        assert!(is_before(u32::MAX, 5) && !is_before(5, u32::MAX));
    }
}
