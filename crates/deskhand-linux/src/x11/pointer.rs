//! The pointer, through XTEST.

use std::time::Duration;

use deskhand_core::desktop::{Button, Click, Delivered, PortError, Stop};
use deskhand_core::geometry::Point;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    BUTTON_PRESS_EVENT, BUTTON_RELEASE_EVENT, ConnectionExt as _, MOTION_NOTIFY_EVENT,
};
use x11rb::protocol::xtest::ConnectionExt as _;

use super::connection::{Link, Trouble};
use super::guard::{Notice, Pressed};
use super::input::{Input, rest};
use super::worker::Pulse;

/// Pause between the clicks of a multiple click. Toolkits take 250 ms (Motif) to 500 ms from press to press; a
/// human hold of 30 ms and this stay well below the shortest.
const MULTIPLE_CLICK_PAUSE: Duration = Duration::from_millis(40);

/// Where the pointer is.
pub(super) fn position(link: &Link) -> Result<Point, Trouble> {
    let pointer = link.x.query_pointer(link.root)?.reply()?;
    Ok(Point::new(pointer.root_x.into(), pointer.root_y.into()))
}

/// Moves the pointer.
pub(super) fn move_to(link: &Link, to: Point) -> Result<(), Trouble> {
    send_motion(link, to)?;
    link.sync()
}

fn send_motion(link: &Link, to: Point) -> Result<(), Trouble> {
    let clamp = |value: i32| value.clamp(i16::MIN.into(), i16::MAX.into()) as i16;
    let absolute = 0;
    link.x.xtest_fake_input(MOTION_NOTIFY_EVENT, absolute, 0, link.root, clamp(to.x), clamp(to.y), 0)?;
    Ok(())
}

fn send_button(link: &Link, kind: u8, button: u8) -> Result<(), Trouble> {
    link.x.xtest_fake_input(kind, button, 0, x11rb::NONE, 0, 0, 0)?;
    Ok(())
}

/// Clicks, and leaves buttons and modifiers as they were, however it ends.
pub(super) fn click(
    input: &mut Input,
    pulse: &Pulse,
    click: &Click,
    stop: &Stop,
) -> Result<Delivered, Trouble> {
    let button = device_button(&input.link, click.button)?;
    let held = input.hold_modifiers(&click.modifiers)?;
    let mut pressed: Vec<Pressed> = Input::held_by_us(&held).iter().copied().map(Pressed::Key).collect();
    pressed.push(Pressed::Button(button));
    let result = press_repeatedly(input, pulse, click, &pressed, button, stop);
    let restored = input.restore(held);
    input.guard.tell(&Notice::Released);
    let delivered = result?;
    restored.map(|()| delivered)
}

fn press_repeatedly(
    input: &mut Input,
    pulse: &Pulse,
    click: &Click,
    pressed: &[Pressed],
    button: u8,
    stop: &Stop,
) -> Result<Delivered, Trouble> {
    let total = usize::try_from(click.count).unwrap_or(usize::MAX);
    send_motion(&input.link, click.at)?;
    for done in 0..total {
        if done > 0 {
            rest(MULTIPLE_CLICK_PAUSE, pulse, stop);
        }
        if stop.is_cancelled() {
            input.link.sync()?;
            return if done == 0 { Err(PortError::Stopped.into()) } else { Ok(Delivered { done, total }) };
        }
        input.guard.tell(&Notice::Pressing(pressed.to_vec()));
        send_button(&input.link, BUTTON_PRESS_EVENT, button)?;
        input.link.x.flush()?;
        // Not cut short: a press without its hold is no complete press.
        rest(click.hold, pulse, &Stop::new());
        send_button(&input.link, BUTTON_RELEASE_EVENT, button)?;
        input.link.sync()?;
        pulse.beat();
        // The modifiers are still down.
        input.guard.tell(&Notice::Pressing(pressed[..pressed.len() - 1].to_vec()));
    }
    Ok(Delivered { done: total, total })
}

/// The button of the device that acts as `button`: a left-handed person has them swapped.
fn device_button(link: &Link, button: Button) -> Result<u8, Trouble> {
    let logical = match button {
        Button::Left => 1,
        Button::Middle => 2,
        Button::Right => 3,
    };
    let map = link.x.get_pointer_mapping()?.reply()?.map;
    let place = map.iter().position(|&acts_as| acts_as == logical);
    place
        .and_then(|place| u8::try_from(place + 1).ok())
        .ok_or_else(|| PortError::NotSupported(format!("this pointer has no {button:?} button")).into())
}
