//! Sends strokes.

use std::time::Duration;

use deskhand_core::desktop::{Chord, Delivered, PortError, Stop, Tally};
use x11rb::connection::Connection;

use super::layout::{Modifiers, Stroke, Strokes};
use super::names;
use super::plan::{Batch, Plan};
use super::xkb::{self, Locks};
use crate::x11::connection::Trouble;
use crate::x11::devices;
use crate::x11::fence::Fence;
use crate::x11::guard::{Notice, Pressed};
use crate::x11::input::{Cleared, Input, Survey, modifier_keys, rest};
use crate::x11::worker::Pulse;

/// So many characters go out between two round trips to the server: a wish to stop is heeded after them.
const CHARACTERS_AT_ONCE: usize = 16;

/// After so many characters the application is asked whether it has got so far. More would pile up in the server
/// for a slow one, and go on arriving long after a wish to stop.
const CHARACTERS_AHEAD: usize = 64;

/// An application that does not answer that question in this time, which is what every application is given for one
/// answer, is only asked again before spare keys change.
const FENCE_BOUND: Duration = Duration::from_secs(2);

/// At the end of a text that needed no spare keys the question is only about how far the application has got.
const LAST_FENCE_BOUND: Duration = Duration::from_millis(300);

/// Where the question cannot be asked, spare keys keep their symbols for so long after the last press. The slowest
/// reader seen (a busy office suite) took 100 ms.
const MAP_SETTLE: Duration = Duration::from_millis(200);

/// Types `text`, and counts what is complete.
pub(in crate::x11) fn type_text(
    input: &mut Input,
    pulse: &Pulse,
    (text, typed): (&str, &Tally),
    delay: Duration,
    stop: &Stop,
) -> Result<Delivered, Trouble> {
    let (survey, plan) = plan_of(input, pulse, text)?;
    if stop.is_cancelled() {
        return Err(PortError::Stopped.into());
    }
    with_neutral_keyboard(input, &survey, &plan, |input| {
        let mut player = Player::new(input, pulse, &survey)?;
        let played = player.play(&plan, delay, typed, stop);
        let done = player.end(stop);
        let delivered = Delivered { done: played?, total: plan.len() };
        done.map(|()| delivered)
    })
}

/// Checks that `text` can be typed.
pub(in crate::x11) fn require_typable(input: &mut Input, pulse: &Pulse, text: &str) -> Result<(), Trouble> {
    plan_of(input, pulse, text).map(drop)
}

/// What to press for `text` on the keyboard as it is.
fn plan_of(input: &mut Input, pulse: &Pulse, text: &str) -> Result<(Survey, Plan), Trouble> {
    if let Some(error) = text.chars().find_map(|character| names::of_character(character).err()) {
        return Err(error.into());
    }
    input.arm()?;
    let survey = input.survey()?;
    pulse.beat();
    let strokes = Strokes::new(&survey.layout, available(&survey));
    let plan = planned(input, &survey, |spares| Plan::of_text(text, &strokes, survey.group(), spares))?;
    Ok((survey, plan))
}

/// Presses a chord.
pub(in crate::x11) fn press(
    input: &mut Input,
    pulse: &Pulse,
    chord: &Chord,
    repeat: u32,
    hold: Duration,
    stop: &Stop,
) -> Result<Delivered, Trouble> {
    input.arm()?;
    let survey = input.survey()?;
    pulse.beat();
    let modifiers = modifier_keys(&survey, &chord.modifiers)?;
    let plan = match &chord.key {
        None => Plan::default(),
        Some(key) => {
            let symbol = input.names().keysym(&key.0)?;
            let strokes = Strokes::new(&survey.layout, available(&survey));
            let group = survey.group();
            planned(input, &survey, |spares| Plan::of_key(&key.0, symbol, &strokes, group, spares))?
        }
    };
    if stop.is_cancelled() {
        return Err(PortError::Stopped.into());
    }
    let total = usize::try_from(repeat).unwrap_or(usize::MAX);
    with_neutral_keyboard(input, &survey, &plan, |input| {
        let mut player = Player::new(input, pulse, &survey)?;
        let played = player.press_chord(&plan, &modifiers, total, hold, stop);
        let done = player.end(stop);
        let delivered = Delivered { done: played?, total };
        done.map(|()| delivered)
    })
}

/// Modifiers that can be held without taking a key out of a person's hand.
fn available(survey: &Survey) -> Modifiers {
    let keys = survey.layout.modifier_keys(&survey.taken());
    (0..).zip(keys).filter(|(_, key)| key.is_some()).fold(0, |mask, (bit, _)| mask | 1 << bit)
}

/// Makes a plan, with spare keys if it needs any.
fn planned(
    input: &Input,
    survey: &Survey,
    plan: impl Fn(&[u8]) -> Result<Plan, PortError>,
) -> Result<Plan, Trouble> {
    match plan(&[]) {
        Err(PortError::Untypable(_)) => Ok(plan(&survey.spares(&input.link)?)?),
        other => Ok(other?),
    }
}

/// Runs `operation` with what would disturb it out of the way, and puts that back however it ends.
fn with_neutral_keyboard<T>(
    input: &mut Input,
    survey: &Survey,
    plan: &Plan,
    operation: impl FnOnce(&mut Input) -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    let group_changes = plan
        .batches
        .iter()
        .flat_map(|batch| &batch.strokes)
        .flatten()
        .any(|stroke| stroke.group.is_some_and(|group| group != survey.group()));
    let mut cleared = Cleared::default();
    let result = input
        .neutralise(survey, &mut cleared)
        .and_then(|()| {
            let disturbing = survey.disturbing_locks(plan.sensitive());
            input.clear_locks(survey, disturbing, group_changes, &mut cleared)
        })
        .and_then(|()| operation(input));
    let restored = input.restore(cleared);
    let value = result?;
    restored.map(|()| value)
}

/// Plays a plan on a keyboard that has been made neutral.
struct Player<'i> {
    input: &'i mut Input,
    pulse: &'i Pulse,
    survey: &'i Survey,
    /// The key to hold for each modifier.
    modifier_keys: [Option<u8>; 8],
    group: u8,
    /// Spare keys that have a symbol now.
    mapped: Vec<u8>,
    fence: Fence,
    since_fence: usize,
}

impl<'i> Player<'i> {
    fn new(input: &'i mut Input, pulse: &'i Pulse, survey: &'i Survey) -> Result<Self, Trouble> {
        let fence = Fence::at_focus(&input.link)?;
        let modifier_keys = survey.layout.modifier_keys(&survey.taken());
        let group = survey.group();
        Ok(Self { input, pulse, survey, modifier_keys, group, mapped: Vec::new(), fence, since_fence: 0 })
    }

    /// Plays texts; returns how many characters were complete.
    fn play(&mut self, plan: &Plan, delay: Duration, typed: &Tally, stop: &Stop) -> Result<usize, Trouble> {
        let at_once = if delay.is_zero() { CHARACTERS_AT_ONCE } else { 1 };
        let mut done = 0;
        for batch in &plan.batches {
            self.map(batch, stop)?;
            for strokes in batch.strokes.chunks(at_once) {
                if stop.is_cancelled() {
                    return if done == 0 { Err(PortError::Stopped.into()) } else { Ok(done) };
                }
                self.send(strokes)?;
                done += strokes.len();
                typed.reach(done);
                self.since_fence += strokes.len();
                if self.since_fence >= CHARACTERS_AHEAD && !self.fence.is_late() {
                    self.wait_for_application(FENCE_BOUND, stop)?;
                }
                rest(delay, self.pulse, stop);
            }
        }
        Ok(done)
    }

    /// Presses the one stroke of `plan`, if it has one, with `modifiers` around it.
    fn press_chord(
        &mut self,
        plan: &Plan,
        modifiers: &[u8],
        total: usize,
        hold: Duration,
        stop: &Stop,
    ) -> Result<usize, Trouble> {
        let batch = plan.batches.first();
        if let Some(batch) = batch {
            self.map(batch, stop)?;
        }
        let stroke = batch.and_then(|batch| batch.strokes.first().copied()).flatten();
        let set = modifiers.iter().fold(0, |mask, &keycode| mask | self.survey.layout.sets(keycode));
        let mut keys = modifiers.to_vec();
        if let Some(stroke) = stroke {
            self.set_group(&stroke)?;
            keys.extend(self.keys_for(stroke.modifiers & !set));
            keys.push(stroke.keycode);
        }
        for done in 0..total {
            if stop.is_cancelled() {
                return if done == 0 { Err(PortError::Stopped.into()) } else { Ok(done) };
            }
            self.announce(&keys);
            for &keycode in &keys {
                devices::press_key(&self.input.link, keycode)?;
            }
            self.input.link.x.flush()?;
            let whole = rest(hold, self.pulse, stop);
            for &keycode in keys.iter().rev() {
                devices::release_key(&self.input.link, keycode)?;
            }
            self.complete()?;
            if !whole {
                return Ok(done);
            }
        }
        Ok(total)
    }

    /// Gives spare keys their symbols. Keys that change their symbol once more must have been read before.
    fn map(&mut self, batch: &Batch, stop: &Stop) -> Result<(), Trouble> {
        if batch.spares.is_empty() && self.mapped.is_empty() {
            return Ok(());
        }
        if !self.mapped.is_empty() {
            self.settle(stop)?;
        }
        let mut announced = self.mapped.clone();
        let keycodes = batch.spares.iter().map(|&(keycode, _)| keycode);
        announced.extend(keycodes.filter(|keycode| !self.mapped.contains(keycode)));
        self.input.guard.tell(&Notice::Mapping(announced.clone()));
        self.mapped = announced;
        xkb::assign(&self.input.link, &batch.spares)?;
        self.pulse.beat();
        Ok(())
    }

    fn send(&mut self, strokes: &[Option<Stroke>]) -> Result<(), Trouble> {
        let mut keys: Vec<u8> = Vec::new();
        for stroke in strokes.iter().flatten() {
            let of_stroke = self.keys_for(stroke.modifiers);
            keys.extend(of_stroke.into_iter().chain([stroke.keycode]));
        }
        keys.sort_unstable();
        keys.dedup();
        self.announce(&keys);
        for stroke in strokes.iter().flatten() {
            self.set_group(stroke)?;
            let modifiers = self.keys_for(stroke.modifiers);
            let link = &self.input.link;
            for &keycode in &modifiers {
                devices::press_key(link, keycode)?;
            }
            devices::press_key(link, stroke.keycode)?;
            devices::release_key(link, stroke.keycode)?;
            for &keycode in modifiers.iter().rev() {
                devices::release_key(link, keycode)?;
            }
        }
        self.complete()
    }

    fn keys_for(&self, modifiers: Modifiers) -> Vec<u8> {
        let bits = (0u8..8).zip(self.modifier_keys);
        bits.filter(|(bit, _)| modifiers & (1 << bit) != 0).filter_map(|(_, key)| key).collect()
    }

    fn announce(&self, keys: &[u8]) {
        let pressed = keys.iter().map(|&keycode| Pressed::Key(keycode)).collect();
        self.input.guard.tell(&Notice::Pressing(pressed));
    }

    fn complete(&mut self) -> Result<(), Trouble> {
        self.input.link.sync()?;
        self.pulse.beat();
        self.input.guard.tell(&Notice::Released);
        Ok(())
    }

    fn set_group(&mut self, stroke: &Stroke) -> Result<(), Trouble> {
        if let Some(group) = stroke.group.filter(|&group| group != self.group) {
            let locked = self.survey.locked_group_for(group);
            xkb::lock(&self.input.link, Locks { affect: 0, locked: 0, group: Some(locked) })?;
            self.group = group;
        }
        Ok(())
    }

    fn wait_for_application(&mut self, bound: Duration, stop: &Stop) -> Result<bool, Trouble> {
        self.since_fence = 0;
        self.fence.wait(self.input, bound, self.pulse, stop)
    }

    /// Waits until what was typed has been read with the symbols that spare keys have now.
    fn settle(&mut self, stop: &Stop) -> Result<(), Trouble> {
        if !self.wait_for_application(FENCE_BOUND, stop)? {
            rest(MAP_SETTLE, self.pulse, &Stop::new());
        }
        Ok(())
    }

    /// Empties the spare keys.
    fn end(&mut self, stop: &Stop) -> Result<(), Trouble> {
        if self.mapped.is_empty() {
            if self.since_fence > 0 && !self.fence.is_late() {
                self.wait_for_application(LAST_FENCE_BOUND, stop)?;
            }
            return Ok(());
        }
        self.settle(stop)?;
        let empty: Vec<(u8, u32)> = self.mapped.iter().map(|&keycode| (keycode, 0)).collect();
        xkb::assign(&self.input.link, &empty)?;
        self.input.guard.tell(&Notice::Unmapped);
        self.mapped.clear();
        Ok(())
    }
}
