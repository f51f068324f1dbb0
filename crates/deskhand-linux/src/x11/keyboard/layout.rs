//! A keyboard map as plain data: which key, in which group, with which modifiers, gives a symbol.

use std::collections::HashMap;

use x11rb::protocol::xkb::GetMapReply;
use xkeysym::{Keysym, RawKeysym};

use super::names;

/// Bits of the eight real modifiers.
pub(in crate::x11) type Modifiers = u8;

/// Lock's bit, which the protocol fixes.
pub(in crate::x11) const LOCK: Modifiers = 2;

/// Keys up to this code (with the evdev numbering that all of today's servers use) are those of the typing area. The
/// same symbol on a key beyond is a rarity, of which some programs make something else.
const LAST_TYPING_KEY: u8 = 94;

/// More groups than this the protocol cannot have.
const MAX_GROUPS: u8 = 4;

/// A press that gives a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::x11) struct Stroke {
    pub(in crate::x11) keycode: u8,
    /// Group that has to be in effect; `None`: any.
    pub(in crate::x11) group: Option<u8>,
    /// Modifiers to be held.
    pub(in crate::x11) modifiers: Modifiers,
    /// Modifiers that change what the key gives, held or locked.
    pub(in crate::x11) sensitive: Modifiers,
}

/// The symbols of one key, as XKB keeps them.
#[derive(Clone, Debug, Default)]
pub(in crate::x11) struct Key {
    /// Number of groups, and what a group beyond them means.
    pub(in crate::x11) group_info: u8,
    /// Index into the types, by group.
    pub(in crate::x11) types: [u8; 4],
    /// Levels kept for each group.
    pub(in crate::x11) width: u8,
    /// Symbols, group by group.
    pub(in crate::x11) symbols: Vec<RawKeysym>,
    /// Modifiers that the key sets.
    pub(in crate::x11) sets: Modifiers,
}

/// How modifiers choose the level of a key.
#[derive(Clone, Debug, Default)]
pub(in crate::x11) struct KeyType {
    /// Modifiers that are looked at.
    pub(in crate::x11) sensitive: Modifiers,
    /// Which combination gives which level; any other gives the first.
    pub(in crate::x11) levels: Vec<(Modifiers, u8)>,
}

/// A keyboard map.
#[derive(Clone, Debug, Default)]
pub(in crate::x11) struct Layout {
    pub(in crate::x11) first_keycode: u8,
    pub(in crate::x11) keys: Vec<Key>,
    pub(in crate::x11) types: Vec<KeyType>,
}

impl Layout {
    /// From the server's answer to a request for types, symbols and modifiers.
    pub(in crate::x11) fn from_reply(reply: &GetMapReply) -> Self {
        let types = reply.map.types_rtrn.iter().flatten().map(|kind| KeyType {
            sensitive: u8::try_from(u16::from(kind.mods_mask)).unwrap_or(0),
            levels: kind
                .map
                .iter()
                .filter(|entry| entry.active)
                .map(|entry| (u8::try_from(u16::from(entry.mods_mask)).unwrap_or(0), entry.level))
                .collect(),
        });
        let mut keys: Vec<Key> = reply
            .map
            .syms_rtrn
            .iter()
            .flatten()
            .map(|key| Key {
                group_info: key.group_info,
                types: key.kt_index,
                width: key.width,
                symbols: key.syms.clone(),
                sets: 0,
            })
            .collect();
        for entry in reply.map.modmap_rtrn.iter().flatten() {
            let place = entry.keycode.checked_sub(reply.first_key_sym).map(usize::from);
            if let Some(key) = place.and_then(|place| keys.get_mut(place)) {
                key.sets = u8::try_from(u16::from(entry.mods)).unwrap_or(0);
            }
        }
        Self { first_keycode: reply.first_key_sym, keys, types: types.collect() }
    }

    /// Keycodes and keys.
    pub(in crate::x11) fn keys(&self) -> impl Iterator<Item = (u8, &Key)> {
        (self.first_keycode..=u8::MAX).zip(&self.keys)
    }

    /// Keycodes that give nothing in any group and set no modifier.
    pub(in crate::x11) fn unused(&self) -> impl Iterator<Item = u8> {
        self.keys().filter(|(_, key)| key.is_unused()).map(|(keycode, _)| keycode)
    }

    /// Modifiers that a key sets.
    pub(in crate::x11) fn sets(&self, keycode: u8) -> Modifiers {
        let place = keycode.checked_sub(self.first_keycode).map(usize::from);
        place.and_then(|place| self.keys.get(place)).map_or(0, |key| key.sets)
    }

    /// The first symbol of a key.
    pub(in crate::x11) fn first_symbol(&self, keycode: u8) -> RawKeysym {
        let place = keycode.checked_sub(self.first_keycode).map(usize::from);
        let key = place.and_then(|place| self.keys.get(place));
        key.and_then(|key| key.symbols.first().copied()).unwrap_or(0)
    }

    /// For each modifier the key to hold for it; none that locks or latches, and none of `taken`.
    pub(in crate::x11) fn modifier_keys(&self, taken: &[u8]) -> [Option<u8>; 8] {
        let mut found = [None; 8];
        for (bit, place) in found.iter_mut().enumerate() {
            let wanted = 1 << bit;
            let holds = |&(keycode, key): &(u8, &Key)| {
                key.sets == wanted && !taken.contains(&keycode) && is_held_key(self.first_symbol(keycode))
            };
            *place = self.keys().find(holds).map(|(keycode, _)| keycode);
        }
        found
    }

    /// The key to hold for one of the modifiers that people know, by the symbols it may have.
    pub(in crate::x11) fn named_modifier_key(&self, symbols: [Keysym; 2], taken: &[u8]) -> Option<u8> {
        symbols.into_iter().find_map(|symbol| {
            self.keys()
                .find(|(keycode, key)| {
                    key.sets != 0
                        && !taken.contains(keycode)
                        && self.first_symbol(*keycode) == RawKeysym::from(symbol)
                })
                .map(|(keycode, _)| keycode)
        })
    }

    /// Modifiers that the Num Lock key sets.
    pub(in crate::x11) fn num_lock(&self) -> Modifiers {
        self.keys()
            .filter(|(keycode, _)| self.first_symbol(*keycode) == RawKeysym::from(Keysym::Num_Lock))
            .fold(0, |mask, (_, key)| mask | key.sets)
    }
}

impl Key {
    fn is_unused(&self) -> bool {
        self.sets == 0 && self.symbols.iter().all(|&symbol| symbol == 0)
    }

    fn groups(&self) -> u8 {
        self.group_info & 0x0f
    }

    /// The key's own group while `group` is in effect.
    fn group(&self, group: u8) -> Option<u8> {
        let groups = self.groups();
        if groups == 0 {
            return None;
        }
        if group < groups {
            return Some(group);
        }
        // What is to be done with a group that the key has not: XKB protocol, "Key symbol map".
        Some(match self.group_info & 0xc0 {
            0x40 => groups - 1,
            0x80 => Some((self.group_info & 0x30) >> 4).filter(|&other| other < groups).unwrap_or(0),
            _ => group % groups,
        })
    }
}

/// Keys that work while they are held, as against those that lock or latch.
fn is_held_key(symbol: RawKeysym) -> bool {
    [
        Keysym::Shift_L,
        Keysym::Shift_R,
        Keysym::Control_L,
        Keysym::Control_R,
        Keysym::Alt_L,
        Keysym::Alt_R,
        Keysym::Meta_L,
        Keysym::Meta_R,
        Keysym::Super_L,
        Keysym::Super_R,
        Keysym::Hyper_L,
        Keysym::Hyper_R,
        Keysym::ISO_Level3_Shift,
        Keysym::ISO_Level5_Shift,
        Keysym::Mode_switch,
    ]
    .into_iter()
    .any(|held| RawKeysym::from(held) == symbol)
}

/// All strokes of a layout by what they give, the best first for the group that is in effect.
pub(in crate::x11) struct Strokes {
    by_symbol: HashMap<RawKeysym, Vec<Stroke>>,
    by_character: HashMap<char, Vec<Stroke>>,
}

impl Strokes {
    /// Strokes of `layout` for somebody who can hold the modifiers in `available`.
    pub(in crate::x11) fn new(layout: &Layout, available: Modifiers) -> Self {
        let groups = layout.keys.iter().map(Key::groups).max().unwrap_or(1).clamp(1, MAX_GROUPS);
        let mut strokes = Self { by_symbol: HashMap::new(), by_character: HashMap::new() };
        for (keycode, key) in layout.keys() {
            // A modifier is no stroke: it would be held by itself.
            if key.sets != 0 {
                continue;
            }
            for group in 0..groups {
                strokes.add_key(layout, keycode, key, group, available);
            }
        }
        strokes
    }

    fn add_key(&mut self, layout: &Layout, keycode: u8, key: &Key, group: u8, available: Modifiers) {
        let Some(own) = key.group(group) else { return };
        let kind = key.types.get(usize::from(own)).and_then(|&kind| layout.types.get(usize::from(kind)));
        let Some(kind) = kind else { return };
        for level in 0..key.width {
            let place = usize::from(own) * usize::from(key.width) + usize::from(level);
            let symbol = key.symbols.get(place).copied().unwrap_or(0);
            let Some(modifiers) = kind.modifiers_for(level, available) else { continue };
            if symbol == 0 {
                continue;
            }
            let stroke = Stroke { keycode, group: Some(group), modifiers, sensitive: kind.sensitive };
            self.by_symbol.entry(symbol).or_default().push(stroke);
            if let Some(character) = names::character(symbol) {
                self.by_character.entry(character).or_default().push(stroke);
            }
        }
    }

    /// The stroke for a keysym; for one of a character any keysym of the same character will do.
    pub(in crate::x11) fn find(&self, symbol: RawKeysym, group: u8) -> Option<Stroke> {
        let exact = self.by_symbol.get(&symbol);
        let same = || names::character(symbol).and_then(|character| self.by_character.get(&character));
        let candidates = exact.or_else(same)?;
        candidates.iter().copied().min_by_key(|stroke| {
            (
                stroke.group != Some(group),
                stroke.keycode > LAST_TYPING_KEY,
                stroke.modifiers.count_ones(),
                stroke.group,
                stroke.keycode,
            )
        })
    }
}

impl KeyType {
    /// The fewest modifiers that give `level`, of those `available`.
    fn modifiers_for(&self, level: u8, available: Modifiers) -> Option<Modifiers> {
        let named = self.levels.iter().filter(|(_, gives)| *gives == level).map(|(modifiers, _)| *modifiers);
        let bare = (level == 0
            && !self.levels.iter().any(|&(modifiers, gives)| modifiers == 0 && gives != 0))
        .then_some(0);
        named
            .chain(bare)
            .filter(|modifiers| modifiers & !available == 0)
            .min_by_key(|modifiers| modifiers.count_ones())
    }
}
