//! Input devices: the server merges the keyboards of a person and the one of XTEST into one master keyboard.

use x11rb::connection::RequestConnection as _;
use x11rb::protocol::xinput::{self, ConnectionExt as _, DeviceType, EventMask, InputStateData, XIEventMask};
use x11rb::protocol::xproto::{BUTTON_RELEASE_EVENT, KEY_PRESS_EVENT, KEY_RELEASE_EVENT};
use x11rb::protocol::xtest::ConnectionExt as _;

use super::connection::{Link, Trouble, unless_refused};

/// All devices, in the numbering of XInput 2.
const ALL_DEVICES: u16 = 0;

/// The end of the name of the keyboard that XTEST presses.
const XTEST_NAME: &str = "XTEST keyboard";

/// A keyboard that is attached to a master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Keyboard {
    /// XInput id.
    pub(super) id: u8,
    /// Whether it is the one of XTEST.
    pub(super) is_xtest: bool,
}

/// The keyboards that are attached to `master`; none if the server has no XInput 2.
pub(super) fn keyboards(link: &Link, master: u16) -> Result<Vec<Keyboard>, Trouble> {
    if !has_xinput(link)? {
        return Ok(Vec::new());
    }
    let devices = link.x.xinput_xi_query_device(ALL_DEVICES)?.reply()?.infos;
    Ok(devices
        .into_iter()
        .filter(|device| device.type_ == DeviceType::SLAVE_KEYBOARD && device.attachment == master)
        .filter_map(|device| {
            let is_xtest = device.name.ends_with(XTEST_NAME.as_bytes());
            Some(Keyboard { id: u8::try_from(device.deviceid).ok()?, is_xtest })
        })
        .collect())
}

/// Whether the server speaks XInput 2; tells it that we do.
pub(super) fn has_xinput(link: &Link) -> Result<bool, Trouble> {
    if link.x.extension_information(xinput::X11_EXTENSION_NAME)?.is_none() {
        return Ok(false);
    }
    Ok(unless_refused(link.x.xinput_xi_query_version(2, 2)?.reply())?.is_some())
}

/// Keys that are down on each of these keyboards, as bits.
pub(super) fn keys_down(link: &Link, keyboards: &[Keyboard]) -> Result<Vec<[u8; 32]>, Trouble> {
    let mut cookies = Vec::with_capacity(keyboards.len());
    for keyboard in keyboards {
        cookies.push(link.x.xinput_query_device_state(keyboard.id)?);
    }
    let mut states = Vec::with_capacity(keyboards.len());
    for cookie in cookies {
        let classes = unless_refused(cookie.reply())?.map(|reply| reply.classes).unwrap_or_default();
        let keys = classes.into_iter().find_map(|class| match class.data {
            InputStateData::Key(keys) => Some(keys.keys),
            _ => None,
        });
        states.push(keys.unwrap_or_default());
    }
    Ok(states)
}

/// Whether a key is down in such bits.
pub(super) fn is_down(keys: &[u8; 32], keycode: u8) -> bool {
    keys[usize::from(keycode / 8)] & (1 << (keycode % 8)) != 0
}

/// Presses a key as XTEST's keyboard.
pub(super) fn press_key(link: &Link, keycode: u8) -> Result<(), Trouble> {
    link.x.xtest_fake_input(KEY_PRESS_EVENT, keycode, 0, x11rb::NONE, 0, 0, 0)?;
    Ok(())
}

/// Lets go of a key of XTEST's keyboard. One that is up stays so.
pub(super) fn release_key(link: &Link, keycode: u8) -> Result<(), Trouble> {
    link.x.xtest_fake_input(KEY_RELEASE_EVENT, keycode, 0, x11rb::NONE, 0, 0, 0)?;
    Ok(())
}

/// Lets go of a button of XTEST's pointer.
pub(super) fn release_button(link: &Link, button: u8) -> Result<(), Trouble> {
    link.x.xtest_fake_input(BUTTON_RELEASE_EVENT, button, 0, x11rb::NONE, 0, 0, 0)?;
    Ok(())
}

/// Presses a key of the device `id`.
pub(super) fn press_on(link: &Link, id: u8, keycode: u8) -> Result<(), Trouble> {
    on_device(link, xinput::DEVICE_KEY_PRESS_EVENT, id, keycode)
}

/// Lets go of a key of the device `id`. The master keyboard holds a key for as long as any of its devices does, so a
/// person's own key can only be let go on the person's own device.
pub(super) fn release_on(link: &Link, id: u8, keycode: u8) -> Result<(), Trouble> {
    on_device(link, xinput::DEVICE_KEY_RELEASE_EVENT, id, keycode)
}

fn on_device(link: &Link, event: u8, id: u8, keycode: u8) -> Result<(), Trouble> {
    if let Some(extension) = link.x.extension_information(xinput::X11_EXTENSION_NAME)? {
        let kind = extension.first_event + event;
        link.x.xtest_fake_input(kind, keycode, 0, x11rb::NONE, 0, 0, id)?;
    }
    Ok(())
}

/// Asks for the raw key releases of a device, or ends that. Unlike others, these come also for a key that is up for
/// the server, and so tell when a person lets go of a key that was let go on their behalf.
pub(super) fn observe_releases(link: &Link, id: u8, wanted: bool) -> Result<(), Trouble> {
    if !has_xinput(link)? {
        return Ok(());
    }
    let none = XIEventMask::from(0u32);
    let mask = vec![if wanted { XIEventMask::RAW_KEY_RELEASE } else { none }];
    link.x.xinput_xi_select_events(link.root, &[EventMask { deviceid: u16::from(id), mask }])?;
    Ok(())
}
