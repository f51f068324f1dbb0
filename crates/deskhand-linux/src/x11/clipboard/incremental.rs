//! Content on its way to another program in pieces (`INCR`): the next is put down when that program has taken the last.

use std::sync::Arc;
use std::time::{Duration, Instant};

use x11rb::protocol::xproto::{
    Atom, ChangeWindowAttributesAux, ConnectionExt as _, EventMask, PropMode, Window as XWindow,
};

use super::super::connection::{Link, Trouble};
use super::atoms::ClipboardAtoms;

/// Content up to this size goes in one piece. Larger requests hold up the server's other clients.
pub(super) const PIECE: usize = 256 * 1024;

/// Transfers to other programs at the same time; one that asks for more is refused.
const MAX_TRANSFERS: usize = 32;

/// A reader that takes no piece for so long is not waited for any more.
const READER_PATIENCE: Duration = Duration::from_secs(10);

/// One transfer.
#[derive(Debug)]
struct Transfer {
    reader: XWindow,
    property: Atom,
    kind: Atom,
    content: Arc<[u8]>,
    sent: usize,
    last: Instant,
}

/// The transfers that go on, and the windows that are watched for them and for readings.
#[derive(Debug, Default)]
pub(super) struct Transfers(Vec<Transfer>);

impl Transfers {
    /// Begins a transfer. `false`: there are too many already.
    pub(super) fn begin(
        &mut self,
        link: &Link,
        atoms: &ClipboardAtoms,
        reader: XWindow,
        property: Atom,
        (kind, content): (Atom, Arc<[u8]>),
    ) -> Result<bool, Trouble> {
        self.0.retain(|transfer| (transfer.reader, transfer.property) != (reader, property));
        if self.0.len() >= MAX_TRANSFERS {
            return Ok(false);
        }
        self.watch(link, reader)?;
        let size = u32::try_from(content.len()).unwrap_or(u32::MAX).to_ne_bytes();
        link.x.change_property(PropMode::REPLACE, reader, property, atoms.INCR, 32, 1, &size)?;
        self.0.push(Transfer { reader, property, kind, content, sent: 0, last: Instant::now() });
        Ok(true)
    }

    /// The reader has taken what lay in the property: puts down the next piece, and an empty one at the end.
    pub(super) fn taken(&mut self, link: &Link, reader: XWindow, property: Atom) -> Result<(), Trouble> {
        let place =
            self.0.iter().position(|transfer| (transfer.reader, transfer.property) == (reader, property));
        let Some(place) = place else { return Ok(()) };
        let transfer = &mut self.0[place];
        let end = transfer.content.len().min(transfer.sent + PIECE);
        let piece = &transfer.content[transfer.sent..end];
        let length = u32::try_from(piece.len()).unwrap_or(0);
        link.x.change_property(PropMode::REPLACE, reader, property, transfer.kind, 8, length, piece)?;
        transfer.sent = end;
        transfer.last = Instant::now();
        if length == 0 {
            self.0.remove(place);
            self.unwatch(link, reader)?;
        }
        Ok(())
    }

    /// The reader has ended.
    pub(super) fn ended(&mut self, reader: XWindow) {
        self.0.retain(|transfer| transfer.reader != reader);
    }

    /// Gives up readers that have stopped taking.
    pub(super) fn forget_stuck(&mut self, link: &Link) -> Result<(), Trouble> {
        let stuck = |transfer: &Transfer| transfer.last.elapsed() > READER_PATIENCE;
        let readers: Vec<_> = self.0.iter().filter(|each| stuck(each)).map(|each| each.reader).collect();
        self.0.retain(|transfer| !stuck(transfer));
        readers.into_iter().try_for_each(|reader| self.unwatch(link, reader))
    }

    /// Wants to be told when `window` is destroyed or takes something. (A window that is gone already makes an error, which
    /// is an event that nobody looks at.)
    pub(super) fn watch(&self, link: &Link, window: XWindow) -> Result<(), Trouble> {
        let events = EventMask::PROPERTY_CHANGE | EventMask::STRUCTURE_NOTIFY;
        link.x.change_window_attributes(window, &ChangeWindowAttributesAux::new().event_mask(events))?;
        Ok(())
    }

    /// Wants to be told no more, unless a transfer to it goes on.
    pub(super) fn unwatch(&self, link: &Link, reader: XWindow) -> Result<(), Trouble> {
        if self.0.iter().all(|transfer| transfer.reader != reader) {
            let nothing = ChangeWindowAttributesAux::new().event_mask(EventMask::NO_EVENT);
            link.x.change_window_attributes(reader, &nothing)?;
        }
        Ok(())
    }
}
