//! What the guard would have to put right, and the lines in which it is told.

use std::fmt::Write as _;

use crate::x11::keyboard::xkb::Locks;

/// A key or button that is held down by us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::x11) enum Pressed {
    /// A key, by its code.
    Key(u8),
    /// A button of the pointer device.
    Button(u8),
}

/// A key that somebody else holds on a device, and that we have let go in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::x11) struct HeldKey {
    /// The device (XInput id).
    pub(in crate::x11) device: u8,
    /// The key.
    pub(in crate::x11) keycode: u8,
}

/// One message to the guard, sent before what it announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::x11) enum Notice {
    /// The resource base of the connection that acts.
    Client(u32),
    /// These are going to be pressed; they replace those before.
    Pressing(Vec<Pressed>),
    /// All of them are up.
    Released,
    /// Locks are going to be changed; these were before.
    Locks(Locks),
    /// The locks are as they were.
    LocksRestored,
    /// These keys are going to get symbols; they replace those before.
    Mapping(Vec<u8>),
    /// All of them are empty.
    Unmapped,
    /// A key that somebody holds is going to be let go. Answered with a byte, when the guard listens to its device.
    Neutralising(HeldKey),
    /// All of them have been pressed again, or are not held any more.
    HeldRestored,
    /// Something that another part of the program will have to undo.
    Undo(String, String),
    /// It has been undone.
    Undone(String),
}

impl Notice {
    /// The line, with its end.
    pub(in crate::x11) fn line(&self) -> String {
        let mut line = String::new();
        // Writing to a string cannot fail.
        let _ = match self {
            Self::Client(base) => write!(line, "client {base}"),
            Self::Pressing(pressed) => {
                line.push_str("press");
                pressed.iter().try_for_each(|pressed| match pressed {
                    Pressed::Key(keycode) => write!(line, " k{keycode}"),
                    Pressed::Button(button) => write!(line, " b{button}"),
                })
            }
            Self::Released => write!(line, "release"),
            Self::Locks(Locks { affect, locked, group }) => {
                let group = group.map_or(-1, i16::from);
                write!(line, "locks {affect} {locked} {group}")
            }
            Self::LocksRestored => write!(line, "unlocks"),
            Self::Mapping(keycodes) => {
                line.push_str("map");
                keycodes.iter().try_for_each(|keycode| write!(line, " {keycode}"))
            }
            Self::Unmapped => write!(line, "unmap"),
            Self::Neutralising(HeldKey { device, keycode }) => write!(line, "held {device} {keycode}"),
            Self::HeldRestored => write!(line, "unheld"),
            Self::Undo(name, argument) => write!(line, "undo {name} {argument}"),
            Self::Undone(name) => write!(line, "undone {name}"),
        };
        line.push('\n');
        line
    }

    /// The message of a line, without its end.
    pub(in crate::x11) fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut numbers = rest.split(' ').filter_map(|number| number.parse::<i64>().ok());
        let mut byte = || numbers.next().and_then(|number| u8::try_from(number).ok());
        Some(match word {
            "client" => Self::Client(rest.parse().ok()?),
            "press" => Self::Pressing(rest.split(' ').filter_map(pressed).collect()),
            "release" => Self::Released,
            "locks" => {
                let (affect, locked) = (byte()?, byte()?);
                Self::Locks(Locks { affect, locked, group: byte() })
            }
            "unlocks" => Self::LocksRestored,
            "map" => Self::Mapping(rest.split(' ').filter_map(|keycode| keycode.parse().ok()).collect()),
            "unmap" => Self::Unmapped,
            "held" => Self::Neutralising(HeldKey { device: byte()?, keycode: byte()? }),
            "unheld" => Self::HeldRestored,
            "undo" => {
                let (name, argument) = rest.split_once(' ').unwrap_or((rest, ""));
                Self::Undo(name.to_owned(), argument.to_owned())
            }
            "undone" => Self::Undone(rest.to_owned()),
            _ => return None,
        })
    }
}

fn pressed(word: &str) -> Option<Pressed> {
    if let Some(keycode) = word.strip_prefix('k') {
        return keycode.parse().ok().map(Pressed::Key);
    }
    word.strip_prefix('b')?.parse().ok().map(Pressed::Button)
}

/// What is owed to the person at the desktop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::x11) struct Owed {
    pub(in crate::x11) client: Option<u32>,
    pub(in crate::x11) pressed: Vec<Pressed>,
    pub(in crate::x11) locks: Option<Locks>,
    pub(in crate::x11) mapped: Vec<u8>,
    pub(in crate::x11) held: Vec<HeldKey>,
    pub(in crate::x11) undo: Vec<(String, String)>,
}

impl Owed {
    /// Takes a message in.
    pub(in crate::x11) fn heed(&mut self, notice: Notice) {
        match notice {
            Notice::Client(base) => self.client = Some(base),
            Notice::Pressing(pressed) => self.pressed = pressed,
            Notice::Released => self.pressed.clear(),
            // The first one says how things were; a later one of the same operation finds them changed already.
            Notice::Locks(locks) => {
                self.locks.get_or_insert(locks);
            }
            Notice::LocksRestored => self.locks = None,
            Notice::Mapping(keycodes) => self.mapped = keycodes,
            Notice::Unmapped => self.mapped.clear(),
            Notice::Neutralising(held) => self.held.push(held),
            Notice::HeldRestored => self.held.clear(),
            Notice::Undo(name, argument) => self.undo.push((name, argument)),
            Notice::Undone(name) => self.undo.retain(|(other, _)| *other != name),
        }
    }

    /// Whether everything is as it was.
    pub(in crate::x11) fn is_settled(&self) -> bool {
        *self == Self { client: self.client, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notices() -> Vec<Notice> {
        vec![
            Notice::Client(0x0060_0000),
            Notice::Pressing(vec![Pressed::Key(38), Pressed::Button(1)]),
            Notice::Locks(Locks { affect: 2, locked: 2, group: Some(1) }),
            Notice::Locks(Locks { affect: 0, locked: 0, group: None }),
            Notice::Mapping(vec![8, 93]),
            Notice::Neutralising(HeldKey { device: 5, keycode: 50 }),
            Notice::Undo("a11y".to_owned(), "IsEnabled false".to_owned()),
        ]
    }

    #[test]
    fn lines_are_read_as_they_were_written() {
        let settled = [
            Notice::Released,
            Notice::LocksRestored,
            Notice::Unmapped,
            Notice::HeldRestored,
            Notice::Undone("a11y".to_owned()),
        ];
        for notice in notices().into_iter().chain(settled) {
            let line = notice.line();
            assert_eq!(Notice::parse(line.trim_end_matches('\n')), Some(notice), "{line}");
        }
        assert_eq!(Notice::parse("nonsense 1"), None);
        assert_eq!(Notice::parse("held 1"), None);
    }

    #[test]
    fn what_is_owed_is_settled_piece_by_piece() {
        let mut owed = Owed::default();
        for notice in notices() {
            owed.heed(notice);
        }
        assert_eq!(owed.locks, Some(Locks { affect: 2, locked: 2, group: Some(1) }));
        for notice in [Notice::Released, Notice::LocksRestored, Notice::Unmapped, Notice::HeldRestored] {
            owed.heed(notice);
            assert!(!owed.is_settled());
        }
        owed.heed(Notice::Undone("a11y".to_owned()));
        assert!(owed.is_settled());
    }
}
