//! The pointer, through XTEST.

use std::time::{Duration, Instant};

use deskhand_core::desktop::{Button, Click, Delivered, Direction, Drag, Modifier, PortError, Stop, Wheel};
use deskhand_core::geometry::Point;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    BUTTON_PRESS_EVENT, BUTTON_RELEASE_EVENT, ConnectionExt as _, MOTION_NOTIFY_EVENT,
};
use x11rb::protocol::xtest::ConnectionExt as _;

use super::connection::{Link, Trouble};
use super::guard::{Notice, Pressed};
use super::input::{Cleared, Input, rest};
use super::worker::Pulse;

/// Pause between the clicks of a multiple click. Toolkits take 250 ms (Motif) to 500 ms from press to press; a
/// human hold of 30 ms and this stay well below the shortest.
const MULTIPLE_CLICK_PAUSE: Duration = Duration::from_millis(40);

/// Firefox scrolls on what the wheel has scrolled before, wherever in the page the pointer is by now, for 1.5 s after the last turn.
const ONE_TURN: Duration = Duration::from_millis(1600);

/// Toolkits take two presses for a double click within at most so long (Windows and Qt have 400 to 500 ms),
const ONE_CLICK: Duration = Duration::from_millis(600);

/// and at most so many pixels apart (5 are usual; displays of a high density have more).
const ONE_PLACE: u32 = 16;

/// Time between two moves of a drag: what a mouse of 80 reports a second does.
const MOVE_STEP: Duration = Duration::from_millis(12);

/// A drag makes at least so many moves: toolkits begin one after some pixels, and the place where it ends has to see it
/// come.
const LEAST_MOVES: u32 = 12;

/// Most moves of a drag; a longer one makes larger steps.
const MOST_MOVES: u32 = 5000;

/// A press rests so long before it moves. Lists that scroll by touch take a faster one for a flick.
const PRESS_REST: Duration = Duration::from_millis(80);

/// What is dragged rests so long before it is let go: the place where it is dropped answers over the display server
/// whether it takes it, and a drop before that answer is none.
const DROP_REST: Duration = Duration::from_millis(150);

/// Time between two notches of the wheel.
const NOTCH: Duration = Duration::from_millis(8);

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
    with_button(input, &click.modifiers, logical(click.button), |input, pressed, button| {
        press_repeatedly(input, pulse, click, pressed, button, stop)
    })
}

/// Runs `work` while the modifiers are held. It is given what is down while the button is, the button last, for the guard,
/// and the button of the device that acts as number `logical`.
fn with_button<T>(
    input: &mut Input,
    modifiers: &[Modifier],
    logical: u8,
    work: impl FnOnce(&mut Input, &[Pressed], u8) -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    input.arm()?;
    let (free, map) = input.modifiers_and_buttons()?;
    let button = device_button(&map, logical)?;
    let held =
        if free && modifiers.is_empty() { Cleared::default() } else { input.hold_modifiers(modifiers)? };
    let mut pressed: Vec<Pressed> = Input::held_by_us(&held).iter().copied().map(Pressed::Key).collect();
    pressed.push(Pressed::Button(button));
    let result = work(input, &pressed, button);
    let restored = input.restore(held);
    input.guard.tell(&Notice::Released);
    let done = result?;
    restored.map(|()| done)
}

/// Drags, and leaves buttons and modifiers as they were, however it ends.
pub(super) fn drag(input: &mut Input, pulse: &Pulse, drag: &Drag, stop: &Stop) -> Result<Delivered, Trouble> {
    with_button(input, &drag.modifiers, logical(drag.button), |input, pressed, button| {
        send_motion(&input.link, drag.from)?;
        input.link.sync()?;
        rest(MOVE_STEP, pulse, stop);
        if stop.is_cancelled() {
            return Err(PortError::Stopped.into());
        }
        input.guard.tell(&Notice::Pressing(pressed.to_vec()));
        send_button(&input.link, BUTTON_PRESS_EVENT, button)?;
        let moved = pull(input, pulse, drag, stop);
        if !matches!(moved, Ok(Delivered { done, total }) if done == total) {
            send_motion(&input.link, drag.from)?;
        }
        send_button(&input.link, BUTTON_RELEASE_EVENT, button)?;
        input.link.sync()?;
        input.guard.tell(&Notice::Pressing(pressed[..pressed.len() - 1].to_vec()));
        moved
    })
}

/// Moves the pressed button along its way.
fn pull(input: &mut Input, pulse: &Pulse, drag: &Drag, stop: &Stop) -> Result<Delivered, Trouble> {
    let steps = u32::try_from(drag.duration.as_millis() / MOVE_STEP.as_millis()).unwrap_or(MOST_MOVES);
    let steps = steps.clamp(LEAST_MOVES, MOST_MOVES);
    let pause = drag.duration / steps;
    let total = steps as usize;
    let between = |from: i32, to: i32, step: u32| {
        let way = (i64::from(to) - i64::from(from)) * i64::from(step) / i64::from(steps);
        i32::try_from(i64::from(from) + way).unwrap_or(to)
    };
    input.link.x.flush()?;
    rest(PRESS_REST, pulse, stop);
    for step in 1..=steps {
        if stop.is_cancelled() {
            return Ok(Delivered { done: step as usize - 1, total });
        }
        let at = Point::new(between(drag.from.x, drag.to.x, step), between(drag.from.y, drag.to.y, step));
        send_motion(&input.link, at)?;
        input.link.sync()?;
        rest(pause, pulse, stop);
    }
    rest(DROP_REST, pulse, stop);
    let done = if stop.is_cancelled() { total - 1 } else { total };
    Ok(Delivered { done, total })
}

/// Turns the wheel.
pub(super) fn turn_wheel(
    input: &mut Input,
    pulse: &Pulse,
    wheel: &Wheel,
    stop: &Stop,
) -> Result<Delivered, Trouble> {
    let logical = match wheel.direction {
        Direction::Up => 4,
        Direction::Down => 5,
        Direction::Left => 6,
        Direction::Right => 7,
    };
    let total = wheel.notches as usize;
    with_button(input, &wheel.modifiers, logical, |input, pressed, button| {
        send_motion(&input.link, wheel.at)?;
        input.link.sync()?;
        if wheel.apart
            && let Some((at, place)) = input.last_turn
            && !near(place, wheel.at)
        {
            rest(ONE_TURN.saturating_sub(at.elapsed()), pulse, stop);
        }
        for done in 0..total {
            input.last_turn = Some((Instant::now(), wheel.at));
            if stop.is_cancelled() {
                return if done == 0 {
                    Err(PortError::Stopped.into())
                } else {
                    Ok(Delivered { done, total })
                };
            }
            input.guard.tell(&Notice::Pressing(pressed.to_vec()));
            send_button(&input.link, BUTTON_PRESS_EVENT, button)?;
            send_button(&input.link, BUTTON_RELEASE_EVENT, button)?;
            input.link.sync()?;
            input.guard.tell(&Notice::Pressing(pressed[..pressed.len() - 1].to_vec()));
            rest(NOTCH, pulse, stop);
        }
        Ok(Delivered { done: total, total })
    })
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
    if click.apart
        && let Some((at, place, last)) = input.last_press
        && last == button
        && near(place, click.at)
    {
        rest(ONE_CLICK.saturating_sub(at.elapsed()), pulse, stop);
    }
    for done in 0..total {
        if done > 0 {
            rest(MULTIPLE_CLICK_PAUSE, pulse, stop);
        }
        if stop.is_cancelled() {
            input.link.sync()?;
            return if done == 0 { Err(PortError::Stopped.into()) } else { Ok(Delivered { done, total }) };
        }
        input.guard.tell(&Notice::Pressing(pressed.to_vec()));
        input.last_press = Some((Instant::now(), click.at, button));
        send_button(&input.link, BUTTON_PRESS_EVENT, button)?;
        input.link.x.flush()?;
        // Not cut short: it is as long as a finger takes, and a press without its hold is no complete press.
        rest(click.hold, pulse, &Stop::new());
        send_button(&input.link, BUTTON_RELEASE_EVENT, button)?;
        input.link.sync()?;
        pulse.beat();
        // The modifiers are still down.
        input.guard.tell(&Notice::Pressing(pressed[..pressed.len() - 1].to_vec()));
    }
    Ok(Delivered { done: total, total })
}

/// Whether toolkits may take presses at these two places for one double click.
fn near(one: Point, other: Point) -> bool {
    one.x.abs_diff(other.x) <= ONE_PLACE && one.y.abs_diff(other.y) <= ONE_PLACE
}

/// The number that programs know a button by.
const fn logical(button: Button) -> u8 {
    match button {
        Button::Left => 1,
        Button::Middle => 2,
        Button::Right => 3,
    }
}

/// The button of the device that acts as number `logical`: a left-handed person has them swapped, one who likes content
/// to follow the finger has the wheel's.
fn device_button(map: &[u8], logical: u8) -> Result<u8, PortError> {
    let place = map.iter().position(|&acts_as| acts_as == logical);
    place
        .and_then(|place| u8::try_from(place + 1).ok())
        .ok_or_else(|| PortError::NotSupported(format!("this pointer has no button {logical}")))
}
