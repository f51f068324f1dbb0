//! The requests to the keyboard extension that input and guard make.

use x11rb::protocol::xkb::{
    ConnectionExt as _, DeviceSpec, Group, ID, KeySymMap, MapPart, SetMapAux, SetMapFlags, VMod,
};
use x11rb::protocol::xproto::ModMask;

use super::layout::{Layout, Modifiers};
use crate::x11::connection::{Link, Trouble};

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
    use x11rb::connection::RequestConnection as _;
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

/// Gives the key `symbol`, on every level and in every group, or nothing (0). Nothing else of the map changes.
pub(in crate::x11) fn assign(link: &Link, keycode: u8, symbol: u32) -> Result<(), Trouble> {
    // Type 0 has one level, as the extension defines it.
    let key = if symbol == 0 {
        KeySymMap { kt_index: [0; 4], group_info: 0, width: 0, syms: Vec::new() }
    } else {
        KeySymMap { kt_index: [0; 4], group_info: 1, width: 1, syms: vec![symbol] }
    };
    let symbols = u16::try_from(key.syms.len()).unwrap_or(0);
    let setup = x11rb::connection::Connection::setup(&link.x);
    let (first, last) = (setup.min_keycode, setup.max_keycode);
    let flags = SetMapFlags::from(0u16);
    let no_vmods = VMod::from(0u16);
    let values = SetMapAux { syms: Some(vec![key]), ..SetMapAux::default() };
    link.x.xkb_set_map(
        core(),
        flags,
        first,
        last,
        0,
        0,
        keycode,
        1,
        symbols,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        no_vmods,
        &values,
    )?;
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
