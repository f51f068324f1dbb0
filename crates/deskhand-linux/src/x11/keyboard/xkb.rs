//! The requests to the keyboard extension that input and guard make.

use x11rb::connection::{Connection, RequestConnection};
use x11rb::protocol::xkb::{
    ConnectionExt as _, DeviceSpec, Group, ID, KeySymMap, MapPart, SetMapAux, SetMapFlags, VMod,
};
use x11rb::protocol::xproto::{ConnectionExt as _, ModMask};

use super::layout::{Layout, Modifiers};
use crate::x11::connection::{Link, Trouble};
use crate::x11::devices;

/// The master keyboard, with all devices that are attached to it where a request changes something.
pub(in crate::x11) fn core() -> DeviceSpec {
    u16::from(ID::USE_CORE_KBD)
}

/// Locks: modifiers and the keyboard group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::x11) struct Locks {
    /// Modifiers that are changed.
    pub(in crate::x11) affect: Modifiers,
    /// Those of them that are to be locked.
    pub(in crate::x11) locked: Modifiers,
    /// Group to lock, if it is changed.
    pub(in crate::x11) group: Option<u8>,
}

/// Tells the server that we speak the extension.
///
/// # Errors
/// `NotSupported` without the extension.
pub(in crate::x11) fn begin(link: &Link) -> Result<(), Trouble> {
    let missing = || {
        let why = "this display has no XKEYBOARD extension, without which nothing can be typed".to_owned();
        Trouble::from(deskhand_core::desktop::PortError::NotSupported(why))
    };
    if link.x.extension_information(x11rb::protocol::xkb::X11_EXTENSION_NAME)?.is_none() {
        return Err(missing());
    }
    if link.x.xkb_use_extension(1, 0)?.reply()?.supported { Ok(()) } else { Err(missing()) }
}

/// Reads the map of a device.
pub(in crate::x11) fn layout(link: &Link, device: DeviceSpec) -> Result<Layout, Trouble> {
    let full = MapPart::KEY_TYPES | MapPart::KEY_SYMS | MapPart::MODIFIER_MAP;
    let none = MapPart::from(0u16);
    let reply = link
        .x
        .xkb_get_map(device, full, none, 0, 0, 0, 0, 0, 0, 0, 0, VMod::from(0u16), 0, 0, 0, 0, 0, 0)?
        .reply()?;
    Ok(Layout::from_reply(&reply))
}

/// Gives each of these keys a symbol, on every level and in every group, or nothing (0).
///
/// All of them in one change: some window managers take a tenth of a second for each change of the keymap, and answer
/// nothing meanwhile. One change is a range of keys, so what lies between is sent as it was just read; a layout that
/// somebody sets in that instant must not be undone by it, hence the grab.
///
/// The master and XTEST's keyboard are changed, each in its own map. The person's own keyboards are left alone: the
/// master takes the map of whichever keyboard was pressed last.
pub(in crate::x11) fn assign(link: &Link, assignments: &[(u8, u32)]) -> Result<(), Trouble> {
    let first = assignments.iter().map(|&(keycode, _)| keycode).min();
    let last = assignments.iter().map(|&(keycode, _)| keycode).max();
    let (Some(first), Some(last)) = (first, last) else { return Ok(()) };
    let master = u16::from(link.x.xkb_get_state(core())?.reply()?.device_id);
    let keyboards = devices::keyboards(link, master)?;
    let xtest = keyboards.iter().find(|keyboard| keyboard.is_xtest).map(|keyboard| u16::from(keyboard.id));
    link.x.grab_server()?;
    // XTEST's first: what is told to clients is the change of the master, and then both have changed.
    let changed = xtest
        .into_iter()
        .chain([master])
        .try_for_each(|device| assign_on(link, device, first, last - first + 1, assignments));
    link.x.ungrab_server()?;
    link.sync()?;
    changed
}

fn assign_on(
    link: &Link,
    device: DeviceSpec,
    first: u8,
    count: u8,
    assignments: &[(u8, u32)],
) -> Result<(), Trouble> {
    let (none, no_vmods) = (MapPart::from(0u16), VMod::from(0u16));
    let symbols = MapPart::KEY_SYMS;
    let reply = link
        .x
        .xkb_get_map(device, none, symbols, 0, 0, first, count, 0, 0, 0, 0, no_vmods, 0, 0, 0, 0, 0, 0)?
        .reply()?;
    let mut keys = reply.map.syms_rtrn.unwrap_or_default();
    for &(keycode, symbol) in assignments {
        if let Some(key) = keys.get_mut(usize::from(keycode - first)) {
            // Type 0 has one level, as the extension defines it.
            *key = match symbol {
                0 => KeySymMap { kt_index: [0; 4], group_info: 0, width: 0, syms: Vec::new() },
                _ => KeySymMap { kt_index: [0; 4], group_info: 1, width: 1, syms: vec![symbol] },
            };
        }
    }
    let total = u16::try_from(keys.iter().map(|key| key.syms.len()).sum::<usize>()).unwrap_or(u16::MAX);
    let count = u8::try_from(keys.len()).unwrap_or(count);
    let setup = link.x.setup();
    let (lowest, highest) = (setup.min_keycode, setup.max_keycode);
    let flags = SetMapFlags::from(0u16);
    let values = SetMapAux { syms: Some(keys), ..SetMapAux::default() };
    let set = link.x.xkb_set_map(
        device, flags, lowest, highest, 0, 0, first, count, total, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, no_vmods, &values,
    )?;
    set.check()?;
    Ok(())
}

/// Sets locks.
pub(in crate::x11) fn lock(link: &Link, locks: Locks) -> Result<(), Trouble> {
    let mask = |modifiers: Modifiers| ModMask::from(u16::from(modifiers));
    let group = Group::from(locks.group.unwrap_or(0));
    let none = ModMask::from(0u16);
    let changes_group = locks.group.is_some();
    link.x.xkb_latch_lock_state(
        core(),
        mask(locks.affect),
        mask(locks.locked),
        changes_group,
        group,
        none,
        false,
        0,
    )?;
    Ok(())
}

/// Ends latches, which would hold for the next key.
pub(in crate::x11) fn unlatch(link: &Link, latched: Modifiers) -> Result<(), Trouble> {
    let none = ModMask::from(0u16);
    let latched = ModMask::from(u16::from(latched));
    link.x.xkb_latch_lock_state(core(), none, none, false, Group::from(0u8), latched, false, 0)?;
    Ok(())
}
