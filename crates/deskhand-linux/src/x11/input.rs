//! What pointer and keyboard share: the connection that input goes through, and the modifiers around it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deskhand_core::desktop::{Modifier, PortError, Stop};
use deskhand_core::geometry::Point;
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xkb::{ConnectionExt as _, GetStateReply};
use x11rb::protocol::xproto::ConnectionExt as _;
use xkeysym::Keysym;

use super::connection::{Link, Trouble};
use super::devices::{self, Keyboard};
use super::guard::{Guard, HeldKey, Notice};
use super::keyboard::layout::{LOCK, Layout, Modifiers};
use super::keyboard::names::Names;
use super::keyboard::xkb::{self, Locks};
use super::worker::Pulse;
use crate::environment::SessionEnvironment;

/// The connection that input goes through, and the guard that watches over it.
pub(super) struct Input {
    pub(super) link: Link,
    pub(super) guard: Guard,
    environment: Arc<SessionEnvironment>,
    armed: bool,
    /// Key names, read at the first key.
    names: Option<Names>,
    /// How often each held key has been let go on its device since it is observed.
    releases: HashMap<(u16, u32), u32>,
    /// The last answer of an application to our question whether it has got so far.
    pub(super) pong: Option<[u32; 5]>,
    /// When and where what button was pressed last.
    pub(super) last_press: Option<(Instant, Point, u8)>,
    /// When and where the wheel was turned last.
    pub(super) last_turn: Option<(Instant, Point)>,
}

/// The keyboard as it is found.
pub(super) struct Survey {
    state: GetStateReply,
    keyboards: Vec<Keyboard>,
    /// The map that will count for what we press.
    pub(super) layout: Layout,
    /// Modifier keys that somebody holds.
    pub(super) held: Vec<HeldKey>,
}

impl Survey {
    /// Keycodes that must not be used, because somebody holds them.
    pub(super) fn taken(&self) -> Vec<u8> {
        self.held.iter().map(|held| held.keycode).collect()
    }

    /// Group in effect.
    pub(super) fn group(&self) -> u8 {
        u8::from(self.state.group)
    }

    /// The group that has to be locked for `wanted` to be in effect: others may be added to it.
    pub(super) fn locked_group_for(&self, wanted: u8) -> u8 {
        let added = i32::from(self.state.base_group) + i32::from(self.state.latched_group);
        u8::try_from((i32::from(wanted) - added).rem_euclid(4)).unwrap_or(0)
    }

    /// Keycodes that nothing is on, in the map of any keyboard: until the first key comes from XTEST's, clients go by
    /// the map of a person's own, which then must not seem changed.
    pub(super) fn spares(&self, link: &Link) -> Result<Vec<u8>, Trouble> {
        let mut spares: Vec<u8> = self.layout.unused().collect();
        for keyboard in self.keyboards.iter().filter(|keyboard| !keyboard.is_xtest) {
            let unused: Vec<u8> = xkb::layout(link, u16::from(keyboard.id))?.unused().collect();
            spares.retain(|keycode| unused.contains(keycode));
        }
        Ok(spares)
    }

    /// Locks that would change what keys give that look at `sensitive`. Num Lock stays on unless they look at it: it
    /// changes nothing else, and its light is for the person.
    pub(super) fn disturbing_locks(&self, sensitive: Modifiers) -> Modifiers {
        let locked = modifiers(self.state.locked_mods);
        let harmless = self.layout.num_lock() & !sensitive & !LOCK;
        locked & !harmless
    }
}

fn modifiers(mask: x11rb::protocol::xproto::ModMask) -> Modifiers {
    u8::try_from(u16::from(mask) & 0xff).unwrap_or(0)
}

/// What was changed around an operation, to be put back.
#[derive(Debug, Default)]
pub(super) struct Cleared {
    held: Vec<HeldKey>,
    locks: Option<Locks>,
    /// Keys that we hold for the whole operation, in the order of their pressing.
    pressed: Vec<u8>,
}

impl Input {
    /// Connects.
    pub(super) fn open(environment: &SessionEnvironment, guard: &Guard) -> Result<Self, PortError> {
        Ok(Self {
            link: Link::open(environment)?,
            guard: guard.clone(),
            environment: Arc::new(environment.clone()),
            armed: false,
            names: None,
            releases: HashMap::new(),
            pong: None,
            last_press: None,
            last_turn: None,
        })
    }

    /// Starts the guard before the first thing is pressed or changed.
    pub(super) fn arm(&mut self) -> Result<(), Trouble> {
        self.link.drain()?;
        if !self.armed {
            xkb::begin(&self.link)?;
            self.guard.attach(&self.environment, self.link.x.setup().resource_id_base);
            self.armed = true;
        }
        Ok(())
    }

    /// Key names.
    pub(super) fn names(&mut self) -> &Names {
        self.names.get_or_insert_with(Names::new)
    }

    /// Whether nobody holds a modifier, which is nearly always so, and what each button of the pointer acts as.
    pub(super) fn modifiers_and_buttons(&self) -> Result<(bool, Vec<u8>), Trouble> {
        let state = self.link.x.xkb_get_state(xkb::core())?;
        let buttons = self.link.x.get_pointer_mapping()?;
        Ok((modifiers(state.reply()?.base_mods) == 0, buttons.reply()?.map))
    }

    /// Looks at the keyboard.
    ///
    /// The map is that of XTEST's keyboard: the server makes it the master's with the first key that comes from
    /// there, so what the master has now, a person's own keyboard's map, is not what will count.
    pub(super) fn survey(&self) -> Result<Survey, Trouble> {
        let state = self.link.x.xkb_get_state(xkb::core())?.reply()?;
        let keyboards = devices::keyboards(&self.link, u16::from(state.device_id))?;
        let xtest = keyboards.iter().find(|keyboard| keyboard.is_xtest);
        let device = xtest.map_or_else(xkb::core, |keyboard| u16::from(keyboard.id));
        let layout = xkb::layout(&self.link, device)?;
        let mut held = Vec::new();
        if modifiers(state.base_mods) != 0 {
            let down = devices::keys_down(&self.link, &keyboards)?;
            for (keyboard, keys) in keyboards.iter().zip(&down) {
                let keycodes = (8..=u8::MAX).filter(|&keycode| devices::is_down(keys, keycode));
                let keycodes = keycodes.filter(|&keycode| layout.sets(keycode) & !LOCK != 0);
                held.extend(keycodes.map(|keycode| HeldKey { device: keyboard.id, keycode }));
            }
        }
        Ok(Survey { state, keyboards, layout, held })
    }

    /// Lets go of the modifiers that somebody holds.
    pub(super) fn neutralise(&mut self, survey: &Survey, cleared: &mut Cleared) -> Result<(), Trouble> {
        for &held in &survey.held {
            self.releases.remove(&(u16::from(held.device), u32::from(held.keycode)));
            devices::observe_releases(&self.link, held.device, true)?;
            self.link.sync()?;
            self.guard.neutralising(held);
            cleared.held.push(held);
            devices::release_on(&self.link, held.device, held.keycode)?;
        }
        if survey.held.is_empty() { Ok(()) } else { self.link.sync() }
    }

    /// Takes locks away that would change what is typed, and remembers the group if that is going to change.
    pub(super) fn clear_locks(
        &mut self,
        survey: &Survey,
        disturbing: Modifiers,
        group_changes: bool,
        cleared: &mut Cleared,
    ) -> Result<(), Trouble> {
        let latched = modifiers(survey.state.latched_mods);
        if disturbing == 0 && !group_changes && latched == 0 {
            return Ok(());
        }
        let group = group_changes.then(|| u8::from(survey.state.locked_group));
        let before = Locks { affect: disturbing, locked: disturbing, group };
        self.guard.tell(&Notice::Locks(before));
        cleared.locks = Some(before);
        xkb::lock(&self.link, Locks { affect: disturbing, locked: 0, group: None })?;
        if latched != 0 {
            xkb::unlatch(&self.link, latched)?;
        }
        Ok(())
    }

    /// Holds `wanted` for an operation of the pointer, and nothing else.
    pub(super) fn hold_modifiers(&mut self, wanted: &[Modifier]) -> Result<Cleared, Trouble> {
        let mut cleared = Cleared::default();
        let survey = self.survey()?;
        let keys = modifier_keys(&survey, wanted)?;
        self.neutralise(&survey, &mut cleared)?;
        if !keys.is_empty() {
            let pressed: Vec<_> = keys.iter().map(|&key| super::guard::Pressed::Key(key)).collect();
            self.guard.tell(&Notice::Pressing(pressed));
        }
        for keycode in keys {
            devices::press_key(&self.link, keycode)?;
            cleared.pressed.push(keycode);
        }
        Ok(cleared)
    }

    /// Keys that `cleared` holds.
    pub(super) fn held_by_us(cleared: &Cleared) -> &[u8] {
        &cleared.pressed
    }

    /// Puts everything back that was changed around an operation.
    pub(super) fn restore(&mut self, cleared: Cleared) -> Result<(), Trouble> {
        for &keycode in cleared.pressed.iter().rev() {
            devices::release_key(&self.link, keycode)?;
        }
        if let Some(locks) = cleared.locks {
            xkb::lock(&self.link, locks)?;
        }
        if cleared.pressed.is_empty() && cleared.locks.is_none() && cleared.held.is_empty() {
            return Ok(());
        }
        self.link.sync()?;
        self.guard.tell(&Notice::Released);
        if cleared.locks.is_some() {
            self.guard.tell(&Notice::LocksRestored);
        }
        self.take_events()?;
        for held in &cleared.held {
            let key = (u16::from(held.device), u32::from(held.keycode));
            // Once by us. More often: whoever held it has let it go in between.
            if self.releases.get(&key) == Some(&1) {
                devices::press_on(&self.link, held.device, held.keycode)?;
            }
            devices::observe_releases(&self.link, held.device, false)?;
        }
        if !cleared.held.is_empty() {
            self.link.sync()?;
            self.guard.tell(&Notice::HeldRestored);
        }
        Ok(())
    }

    /// Takes in the events that have arrived.
    pub(super) fn take_events(&mut self) -> Result<(), Trouble> {
        while let Some(event) = self.link.x.poll_for_event()? {
            match event {
                Event::XinputRawKeyRelease(event) => {
                    *self.releases.entry((event.deviceid, event.detail)).or_default() += 1;
                }
                Event::ClientMessage(event)
                    if event.window == self.link.root && event.type_ == self.link.atoms.WM_PROTOCOLS =>
                {
                    self.pong = Some(event.data.as_data32());
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The keys to hold for modifiers.
///
/// # Errors
/// `Untypable` names the one that this keyboard has not.
pub(super) fn modifier_keys(survey: &Survey, wanted: &[Modifier]) -> Result<Vec<u8>, PortError> {
    let taken = survey.taken();
    let mut keys = Vec::with_capacity(wanted.len());
    for modifier in wanted {
        let symbols = match modifier {
            Modifier::Shift => [Keysym::Shift_L, Keysym::Shift_R],
            Modifier::Ctrl => [Keysym::Control_L, Keysym::Control_R],
            Modifier::Alt => [Keysym::Alt_L, Keysym::Alt_R],
            Modifier::Super => [Keysym::Super_L, Keysym::Super_R],
        };
        // With both of them held by somebody there is no other than one of those.
        let key = survey.layout.named_modifier_key(symbols, &taken);
        let key = key.or_else(|| survey.layout.named_modifier_key(symbols, &[]));
        let key = key.ok_or_else(|| PortError::Untypable(format!("the modifier {modifier:?}")))?;
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    Ok(keys)
}

/// A pause is looked at so often for a wish to stop, which has to be heeded within 100 ms.
const PAUSE_SLICE: Duration = Duration::from_millis(20);

/// Waits, or until `stop` is asked; says whether it was the whole time.
pub(super) fn rest(time: Duration, pulse: &Pulse, stop: &Stop) -> bool {
    let end = Instant::now() + time;
    loop {
        pulse.beat();
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || stop.is_cancelled() {
            return left.is_zero();
        }
        std::thread::sleep(left.min(PAUSE_SLICE));
    }
}
