//! Input methods, which take keys before the application does and make other text of them. While text is typed exactly
//! there must be none, as for a person who has switched it off; afterwards it is as it was.

mod ibus;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use deskhand_core::desktop::{Chord, Delivered, Keyboard, PortError, Stop, Tally, Windows};

use self::ibus::{Daemon, Engine};
use crate::environment::EnvironmentSource;
use crate::x11::guard::Guard;

/// What the guard undoes under this name is an engine that was switched off.
const GUARD_NAME: &str = "input-method";

/// How long the input method may take to answer. Without an answer keys are typed all the same: whether the text came
/// out right is read back.
const PATIENCE: Duration = Duration::from_secs(1);

/// Applications pass keys on to the input method after they have read them, and tell nobody when: so long for the last
/// ones, and so much longer for each that may have piled up before it.
const KEYS_PASS: Duration = Duration::from_millis(200);
const KEY_PASSES: Duration = Duration::from_millis(2);
const MAX_KEYS_PASS: Duration = Duration::from_secs(2);

/// GTK 4 tells IBus where the caret is once a frame; what comes sooner is put before what came last.
const FRAME: Duration = Duration::from_millis(25);
/// What a program has loaded that gives its keys to IBus in that way.
const SLOW_MODULE: [&str; 2] = ["/gtk-4.0/", "libim-ibus"];

/// A keyboard whose typed text goes past the input method.
pub(crate) struct PlainKeyboard {
    inner: Arc<dyn Keyboard>,
    windows: Arc<dyn Windows>,
    source: Arc<dyn EnvironmentSource>,
    guard: Guard,
}

impl PlainKeyboard {
    /// `inner`, on the desktop that `source` leads to. No I/O.
    pub(crate) fn new(
        inner: Arc<dyn Keyboard>,
        windows: Arc<dyn Windows>,
        source: Arc<dyn EnvironmentSource>,
        guard: Guard,
    ) -> Self {
        Self { inner, windows, source, guard }
    }

    /// The input method of this desktop, if one runs.
    async fn daemon(&self) -> Option<Daemon> {
        let environment = self.source.get().await.ok()?;
        tokio::time::timeout(PATIENCE, Daemon::find(&environment)).await.ok().flatten()
    }

    /// What each key takes at least in the window that has the focus.
    async fn pace(&self) -> Duration {
        let windows = self.windows.list().await.unwrap_or_default();
        let pid = windows.iter().find(|window| window.focused).and_then(|window| window.pid);
        let maps = pid.and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/maps")).ok());
        let is_slow = |line: &str| SLOW_MODULE.iter().all(|part| line.contains(part));
        if maps.is_some_and(|maps| maps.lines().any(is_slow)) { FRAME } else { Duration::ZERO }
    }

    /// Switches the engine off that would make something else of keys; `None` if there is none.
    async fn switch_off(&self, daemon: &Daemon) -> Option<Engine> {
        let environment = self.source.get().await.ok()?;
        let switched = async {
            let engine = daemon.engine().await.filter(Engine::composes)?;
            // Told first: if we end now, it is put back.
            self.guard.announce(&environment, GUARD_NAME, &format!("{} {}", daemon.address, engine.0));
            if let Err(error) = daemon.set(&Engine::plain()).await {
                tracing::warn!(engine = engine.0, %error, "the input method cannot be switched off");
            }
            Some(engine)
        };
        tokio::time::timeout(PATIENCE, switched).await.ok().flatten()
    }

    async fn switch_on(&self, daemon: &Daemon, engine: &Engine) {
        match tokio::time::timeout(PATIENCE, daemon.set(engine)).await {
            Ok(Ok(())) => self.guard.settle(GUARD_NAME),
            // The guard tries once more when we end.
            result => tracing::warn!(engine = engine.0, ?result, "the input method was not put back"),
        }
    }
}

#[async_trait]
impl Keyboard for PlainKeyboard {
    async fn type_text(
        &self,
        text: &str,
        delay: Duration,
        typed: &Tally,
        stop: &Stop,
    ) -> Result<Delivered, PortError> {
        let Some(daemon) = self.daemon().await else {
            return self.inner.type_text(text, delay, typed, stop).await;
        };
        let delay = delay.max(self.pace().await);
        let switched = self.switch_off(&daemon).await;
        let delivered = self.inner.type_text(text, delay, typed, stop).await;
        if let Some(engine) = switched {
            let typed = u32::try_from(typed.done()).unwrap_or(u32::MAX);
            tokio::time::sleep((KEYS_PASS + KEY_PASSES.saturating_mul(typed)).min(MAX_KEYS_PASS)).await;
            self.switch_on(&daemon, &engine).await;
        }
        delivered
    }

    async fn require_typable(&self, text: &str) -> Result<(), PortError> {
        self.inner.require_typable(text).await
    }

    async fn press(
        &self,
        chord: &Chord,
        repeat: u32,
        hold: Duration,
        stop: &Stop,
    ) -> Result<Delivered, PortError> {
        // Single keys are what a person would press, and may be meant for the input method.
        self.inner.press(chord, repeat, hold, stop).await
    }
}

/// Puts an engine back that a process switched off which has ended; `argument` is what it announced. Blocks, for a
/// bounded time.
pub fn undo(name: &str, argument: &str) {
    let Some((address, engine)) = argument.split_once(' ').filter(|_| name == GUARD_NAME) else { return };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    let put_back = async {
        let daemon = Daemon::connect(address.to_owned()).await?;
        daemon.set(&Engine(engine.to_owned())).await.ok()
    };
    if runtime.block_on(async { tokio::time::timeout(PATIENCE, put_back).await }).ok().flatten().is_none() {
        tracing::warn!(engine, "the input method was not put back");
    }
}
