//! What pointer and keyboard share: the connection that input goes through, and the modifiers around it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use deskhand_core::desktop::{Modifier, PortError, Stop};

use super::connection::{Link, Trouble};
use super::guard::Guard;
use super::worker::Pulse;
use crate::environment::SessionEnvironment;

/// The connection that input goes through, and the guard that watches over it.
pub(super) struct Input {
    pub(super) link: Link,
    pub(super) guard: Guard,
}

/// What was changed around an operation, to be put back.
#[derive(Debug, Default)]
pub(super) struct Held {}

impl Input {
    pub(super) fn open(environment: &SessionEnvironment, program: &PathBuf) -> Result<Self, PortError> {
        let link = Link::open(environment)?;
        Ok(Self { link, guard: Guard::new(program.clone()) })
    }

    pub(super) fn prepare_modifiers(&mut self, _wanted: &[Modifier]) -> Result<Held, Trouble> {
        Ok(Held {})
    }

    pub(super) fn restore(&mut self, _held: Held) -> Result<(), Trouble> {
        Ok(())
    }
}

/// A pause is looked at so often for a wish to stop, which has to be heeded within 100 ms.
const PAUSE_SLICE: Duration = Duration::from_millis(20);

/// Waits, or until `stop` is asked.
pub(super) fn rest(time: Duration, pulse: &Pulse, stop: &Stop) {
    let end = Instant::now() + time;
    loop {
        pulse.beat();
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || stop.is_cancelled() {
            return;
        }
        std::thread::sleep(left.min(PAUSE_SLICE));
    }
}
