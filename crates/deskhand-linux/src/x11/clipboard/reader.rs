//! Reading what another program has put on a clipboard.

use std::time::Instant;

use deskhand_core::desktop::{ClipboardContent, ClipboardData, PortError, Selection, Stop};
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{Atom, AtomEnum, ConnectionExt as _, Property, Window as XWindow};
use x11rb::{CURRENT_TIME, NONE};

use super::super::connection::{Trouble, unless_refused};
use super::super::worker::Pulse;
use super::{Board, OWNER_PATIENCE, TRANSFER, atoms, hidden_window};

/// Bytes of a property that are fetched in one request: the server copies them in one go, holding up its other clients.
const PIECE: u32 = 256 * 1024;

/// Formats that one program may offer; what is more is a mistake or malice.
const MAX_TARGETS: usize = 256;

/// Reads a selection; see [`deskhand_core::desktop::Clipboard::read`].
pub(super) fn read(
    board: &mut Board,
    selection: Selection,
    mime: &str,
    limit: usize,
    pulse: &Pulse,
    stop: &Stop,
) -> Result<ClipboardContent, Trouble> {
    if board.held.holds(selection) {
        return own(board, selection, mime, limit);
    }
    let selection = board.atoms.of(selection);
    let owner = board.link.x.get_selection_owner(selection)?.reply()?.owner;
    if owner == NONE {
        return Ok(ClipboardContent::default());
    }
    // A window for this one reading: what a slow owner sends later goes nowhere, and an owner in mid-transfer sees the end.
    let window = hidden_window(&board.link)?;
    board.held.watch(&board.link, owner)?;
    let mut reading =
        Reading { board, selection, owner, window, limit, until: Instant::now() + TRANSFER, pulse, stop };
    let content = reading.content(mime);
    reading.board.held.unwatch(&reading.board.link, owner)?;
    reading.board.link.x.destroy_window(window)?;
    content
}

/// What we own ourselves.
fn own(board: &Board, selection: Selection, mime: &str, limit: usize) -> Result<ClipboardContent, Trouble> {
    let formats = names(board, &board.held.targets(selection))?.into_iter().map(|(_, name)| name).collect();
    let held = board
        .held
        .data(selection)
        .filter(|data| data.mime == mime || (atoms::is_plain_text(&data.mime) && atoms::is_plain_text(mime)));
    if let Some(data) = held.filter(|data| data.bytes.len() > limit) {
        return Err(PortError::TooLarge { size: data.bytes.len(), limit }.into());
    }
    let data = held.map(|data| ClipboardData { mime: mime.to_owned(), bytes: data.bytes.clone() });
    Ok(ClipboardContent { formats, data })
}

/// The formats among targets, with their names.
fn names(board: &Board, targets: &[Atom]) -> Result<Vec<(Atom, String)>, Trouble> {
    let asked: Vec<_> = targets
        .iter()
        .map(|target| board.link.x.get_atom_name(*target).map(|cookie| (*target, cookie)))
        .collect::<Result<_, _>>()?;
    let mut formats = Vec::new();
    for (target, cookie) in asked {
        let Some(reply) = unless_refused(cookie.reply())? else { continue };
        let name = String::from_utf8_lossy(&reply.name).into_owned();
        if !atoms::is_protocol(&name) {
            formats.push((target, name));
        }
    }
    Ok(formats)
}

/// One reading.
struct Reading<'a> {
    board: &'a mut Board,
    selection: Atom,
    owner: XWindow,
    window: XWindow,
    limit: usize,
    until: Instant,
    pulse: &'a Pulse,
    stop: &'a Stop,
}

/// What came of a question to the owner.
enum Told {
    Converted,
    Refused,
    Piece,
    Ended,
}

/// Bytes that an owner put down, and the type it gave them.
struct Value {
    kind: Atom,
    bytes: Vec<u8>,
}

impl Reading<'_> {
    fn content(&mut self, mime: &str) -> Result<ClipboardContent, Trouble> {
        let targets = self.board.atoms.TARGETS;
        let offered: Option<Vec<Atom>> = self.convert(targets)?.map(|value| {
            value
                .bytes
                .chunks_exact(4)
                .take(MAX_TARGETS)
                .map(|atom| Atom::from_ne_bytes([atom[0], atom[1], atom[2], atom[3]]))
                .filter(|atom| *atom != NONE)
                .collect()
        });
        let formats = match &offered {
            Some(offered) => names(self.board, offered)?,
            None => Vec::new(),
        };
        let is_text = atoms::is_plain_text(mime);
        let wanted: Vec<Atom> = if is_text {
            let atoms = &self.board.atoms;
            // GTK ends lines with CR LF in the media types, and leaves text as it is in the other.
            let known = [atoms.UTF8_STRING, atoms.PLAIN_TEXT_UTF8, atoms.PLAIN_TEXT, atoms.STRING];
            // An owner that does not say what it has may still have text.
            let is_offered =
                |target: &Atom| offered.is_none() || formats.iter().any(|(other, _)| other == target);
            known.into_iter().filter(is_offered).collect()
        } else {
            let same = |name: &str| name.eq_ignore_ascii_case(mime);
            formats.iter().filter(|(_, name)| same(name)).map(|(target, _)| *target).take(1).collect()
        };
        let mut data = None;
        for target in wanted {
            if let Some(value) = self.convert(target)? {
                let bytes = if is_text { self.as_utf8(value) } else { value.bytes };
                data = Some(ClipboardData { mime: mime.to_owned(), bytes });
                break;
            }
        }
        let mut formats: Vec<_> = formats.into_iter().map(|(_, name)| name).collect();
        if formats.is_empty() && data.is_some() {
            formats.push(mime.to_owned());
        }
        Ok(ClipboardContent { formats, data })
    }

    fn as_utf8(&self, value: Value) -> Vec<u8> {
        let is_latin1 = value.kind == self.board.atoms.STRING
            || (value.kind == self.board.atoms.PLAIN_TEXT && std::str::from_utf8(&value.bytes).is_err());
        if is_latin1 {
            atoms::from_latin1(&value.bytes).into_bytes()
        } else {
            String::from_utf8_lossy(&value.bytes).into_owned().into_bytes()
        }
    }

    /// Asks the owner for the content as `target`. `None`: it has no such.
    fn convert(&mut self, target: Atom) -> Result<Option<Value>, Trouble> {
        let property = self.board.atoms.DESKHAND_SELECTION;
        let (selection, window, owner) = (self.selection, self.window, self.owner);
        self.board.link.x.convert_selection(window, selection, target, property, CURRENT_TIME)?;
        let told = self.wait(|event| match event {
            Event::SelectionNotify(notify) if notify.requestor == window && notify.target == target => {
                Some(if notify.property == NONE { Told::Refused } else { Told::Converted })
            }
            Event::DestroyNotify(destroyed) if destroyed.window == owner => Some(Told::Ended),
            _ => None,
        })?;
        match told {
            Told::Refused => return Ok(None),
            Told::Ended => return Err(gone()),
            Told::Converted | Told::Piece => {}
        }
        let incr = self.board.atoms.INCR;
        match self.fetch(self.limit)? {
            Some(size) if size.kind == incr => self.pieces(&size.bytes).map(Some),
            value => Ok(value),
        }
    }

    /// Waits for the owner, who has so much time for each step, and only so much for all of them.
    fn wait(&mut self, look: impl FnMut(&Event) -> Option<Told>) -> Result<Told, Trouble> {
        let until = self.until.min(Instant::now() + OWNER_PATIENCE);
        let told = self.board.wait(until, self.pulse, self.stop, look)?;
        told.ok_or_else(|| {
            let app = "the program that owns the clipboard".to_owned();
            PortError::AppNotResponding { app, waiting_for: "its content".to_owned() }.into()
        })
    }

    /// Content that comes in pieces: each is put down when the one before has been taken.
    fn pieces(&mut self, size: &[u8]) -> Result<Value, Trouble> {
        let property = self.board.atoms.DESKHAND_SELECTION;
        let (window, owner) = (self.window, self.owner);
        // The owner's guess, which may be too low.
        let least = size.first_chunk::<4>().map_or(0, |size| u32::from_ne_bytes(*size) as usize);
        if least > self.limit {
            return Err(PortError::TooLarge { size: least, limit: self.limit }.into());
        }
        let mut whole = Value { kind: NONE, bytes: Vec::new() };
        loop {
            let told = self.wait(|event| match event {
                Event::PropertyNotify(notify)
                    if notify.window == window
                        && notify.atom == property
                        && notify.state == Property::NEW_VALUE =>
                {
                    Some(Told::Piece)
                }
                Event::DestroyNotify(destroyed) if destroyed.window == owner => Some(Told::Ended),
                _ => None,
            })?;
            if matches!(told, Told::Ended) {
                return Err(gone());
            }
            let Some(piece) = self.fetch(self.limit - whole.bytes.len())? else { continue };
            if piece.bytes.is_empty() {
                return Ok(whole);
            }
            whole.kind = piece.kind;
            whole.bytes.extend(piece.bytes);
        }
    }

    /// Takes what lies in the property. `None`: nothing does.
    fn fetch(&mut self, limit: usize) -> Result<Option<Value>, Trouble> {
        let property = self.board.atoms.DESKHAND_SELECTION;
        let x = &self.board.link.x;
        let mut value = Value { kind: NONE, bytes: Vec::new() };
        loop {
            // Counted in units of four bytes.
            let place = u32::try_from(value.bytes.len() / 4).unwrap_or(u32::MAX);
            let asked = x.get_property(true, self.window, property, AtomEnum::ANY, place, PIECE / 4)?;
            let reply = asked.reply()?;
            self.pulse.beat();
            if reply.type_ == NONE {
                return Ok(Some(value).filter(|value| value.kind != NONE));
            }
            value.kind = reply.type_;
            value.bytes.extend(reply.value);
            let size = value.bytes.len() + reply.bytes_after as usize;
            if size > limit {
                let size = self.limit - limit + size;
                return Err(PortError::TooLarge { size, limit: self.limit }.into());
            }
            if reply.bytes_after == 0 {
                return Ok(Some(value));
            }
        }
    }
}

fn gone() -> Trouble {
    let why = "the program that owned the clipboard ended before it had handed its content over";
    PortError::TransferFailed(why.to_owned()).into()
}
