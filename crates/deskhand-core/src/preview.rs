//! The preview: a small window that shows a person what agents act on at this moment, wherever that window is.
//!
//! It is one for the whole process, and shows the newest action. A task looks at that window as long as there is something
//! to show; where nobody acts it ends, and nothing wakes up.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::call::Outcome;
use crate::consent::gate::Watch;
use crate::desktop::{
    AgentCursor, Capture, CaptureRequest, CaptureTarget, Colour, Display, Overlay, PortError, PreviewFrame,
    Stop, Window, WindowId,
};
use crate::engine::Shared;
use crate::geometry::Point;
use crate::picture;
use crate::settings::Overrides;
use crate::subject::Subject;
use crate::tools::Surface;

/// It closes so long after the last action: an agent that goes on thinks for less, and one that is done is done.
const LINGER: Duration = Duration::from_secs(30);
/// An application answers to an action within this; later it is looked at more rarely.
const LIVELY: Duration = Duration::from_secs(3);
/// How often it is looked at while it may be answering: what happens can be followed.
const LIVELY_PACE: Duration = Duration::from_millis(200);
/// How often it is looked at afterwards.
const CALM_PACE: Duration = Duration::from_secs(1);
/// Actions that follow each other faster share a frame.
const LEAST_PACE: Duration = Duration::from_millis(100);
/// Taking a frame takes so long at most; a slower one is left out.
const FRAME_WAIT: Duration = Duration::from_secs(2);
/// The largest frame in logical pixels: a heading can be read in it, and it covers a small part of a usual screen.
const LARGEST: (f64, f64) = (400.0, 280.0);

/// An action, as it is shown.
#[derive(Clone, Debug)]
struct Scene {
    subject: Subject,
    agent: String,
    colour: Colour,
    tool: &'static str,
    /// What became of it; `None`: it goes on.
    outcome: Option<String>,
    keep_clear: Vec<Point>,
    since: Instant,
}

/// What was said of this process; where nobody said anything, the global setting counts.
#[derive(Clone, Copy, Debug, Default)]
struct Wish {
    /// By whoever started it.
    person: Option<bool>,
    agent: Option<bool>,
}

/// The preview of an engine.
pub(crate) struct Preview {
    overlay: Arc<dyn Overlay>,
    wish: Mutex<Wish>,
    scene: watch::Sender<Option<Scene>>,
    /// Whether the task runs.
    playing: Mutex<bool>,
}

impl fmt::Debug for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Preview").field("wish", &self.wish).finish_non_exhaustive()
    }
}

impl Preview {
    /// A preview that is closed. `person` is whether who started the process wants it, if they say so.
    pub(crate) fn new(overlay: Arc<dyn Overlay>, person: Option<bool>) -> Self {
        let wish = Mutex::new(Wish { person, agent: None });
        Self { overlay, wish, scene: watch::Sender::new(None), playing: Mutex::default() }
    }

    /// What was set for this process, which counts before all other settings.
    pub(crate) fn overrides(&self) -> Overrides {
        let Wish { person, agent } = *lock(&self.wish);
        Overrides { preview: agent.or(person), ..Overrides::default() }
    }

    /// Whether who started the process asked for it, and no person has said otherwise since.
    pub(crate) fn is_wanted_by_person(&self) -> bool {
        lock(&self.wish).person == Some(true)
    }

    /// An agent wants it, or not, or takes that back.
    pub(crate) fn set_by_agent(&self, wanted: Option<bool>) {
        lock(&self.wish).agent = wanted;
    }

    /// A person has set it for all: from now on that counts, whatever was said of this process.
    pub(crate) fn follow_settings(&self) {
        *lock(&self.wish) = Wish::default();
    }

    /// Closes it.
    pub(crate) fn close(&self) {
        self.scene.send_replace(None);
    }

    /// Shows a scene. Returns at once.
    fn show(self: &Arc<Self>, shared: &Weak<Shared>, scene: Scene) {
        self.scene.send_replace(Some(scene));
        let mut playing = lock(&self.playing);
        if !*playing {
            *playing = true;
            tokio::spawn(Arc::clone(self).play(Weak::clone(shared), self.scene.subscribe()));
        }
    }

    async fn play(self: Arc<Self>, shared: Weak<Shared>, mut scenes: watch::Receiver<Option<Scene>>) {
        loop {
            scenes.mark_changed();
            if let Some(watch) = shared.upgrade().and_then(|shared| shared.gate.watch(Surface::Screen).ok()) {
                self.follow(&shared, &mut scenes, &watch).await;
            } else {
                // What could not be closed at a revoke is not opened.
                scenes.mark_unchanged();
            }
            let mut playing = lock(&self.playing);
            let is_more = scenes.has_changed().unwrap_or(false) && scenes.borrow().is_some();
            if !is_more {
                *playing = false;
                self.overlay.preview(None);
                return;
            }
        }
    }

    /// Shows the newest scene until there is none, it is too old, or nobody may look any more.
    async fn follow(
        &self,
        shared: &Weak<Shared>,
        scenes: &mut watch::Receiver<Option<Scene>>,
        watch: &Watch,
    ) {
        let mut shown = Shown::default();
        loop {
            let Some(scene) = scenes.borrow_and_update().clone() else { return };
            let age = scene.since.elapsed();
            if age >= LINGER {
                return;
            }
            let Some(shared) = shared.upgrade() else { return };
            let looked = tokio::time::timeout(FRAME_WAIT, look(&shared, &scene)).await;
            drop(shared);
            match looked {
                Ok(Ok(frame)) => shown.show(&*self.overlay, scene.subject, frame),
                Ok(Err(Blind::NotAllowed)) => return,
                Ok(Err(Blind::Gone)) => shown.say(&*self.overlay, &scene, "it is gone"),
                Ok(Err(Blind::NotNow(why))) => shown.say(&*self.overlay, &scene, why),
                Err(_) => tracing::debug!("a frame of the preview was not taken in time"),
            }
            let pace = if age < LIVELY { LIVELY_PACE } else { CALM_PACE };
            let next = async {
                tokio::time::sleep(LEAST_PACE).await;
                // An error: the engine has ended, which the next round sees.
                let _ = tokio::time::timeout(pace - LEAST_PACE, scenes.changed()).await;
            };
            tokio::select! {
                () = watch.revoked().cancelled() => return,
                () = next => {}
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells the preview of one call.
#[derive(Debug)]
pub(crate) struct Viewer {
    shared: Weak<Shared>,
    preview: Arc<Preview>,
    agent: String,
    colour: Colour,
    tool: &'static str,
    begun: AtomicBool,
}

impl Viewer {
    /// Of a call of `tool` by the agent that has this cursor.
    pub(crate) fn new(shared: &Arc<Shared>, agent: AgentCursor, tool: &'static str) -> Self {
        let AgentCursor { label, colour, .. } = agent;
        let preview = Arc::clone(&shared.preview);
        Self {
            shared: Arc::downgrade(shared),
            preview,
            agent: label,
            colour,
            tool,
            begun: AtomicBool::new(false),
        }
    }

    /// The call is about to act on this. Returns at once.
    pub(crate) fn begin(&self, subject: Subject, keep_clear: Vec<Point>) {
        self.begun.store(true, Ordering::Relaxed);
        self.show(subject, keep_clear, None);
    }

    /// The call has ended; one that was refused before it acted is not shown. Returns at once.
    pub(crate) fn end(&self, subject: Subject, keep_clear: Vec<Point>, outcome: &Outcome) {
        if !self.begun.load(Ordering::Relaxed) {
            return;
        }
        let opened =
            outcome.as_ref().ok().and_then(|answer| answer.structured["windows"][0]["window_id"].as_u64());
        let subject = match (subject, opened) {
            // A program that was started.
            (Subject::Display, Some(window)) => Subject::Window(WindowId(window)),
            (subject, _) => subject,
        };
        let said = match outcome {
            Ok(answer) => answer.structured["effect"].as_str().unwrap_or("done").replace('_', " "),
            Err(error) => error.code.name().replace('_', " "),
        };
        self.show(subject, keep_clear, Some(said));
    }

    fn show(&self, subject: Subject, keep_clear: Vec<Point>, outcome: Option<String>) {
        let Self { agent, colour, tool, .. } = self;
        let scene = Scene {
            subject,
            agent: agent.clone(),
            colour: *colour,
            tool,
            outcome,
            keep_clear,
            since: Instant::now(),
        };
        self.preview.show(&self.shared, scene);
    }
}

/// Why there is no frame.
enum Blind {
    /// The screen may not be seen.
    NotAllowed,
    /// The window is closed.
    Gone,
    NotNow(&'static str),
}

impl From<PortError> for Blind {
    fn from(error: PortError) -> Self {
        match error {
            PortError::WindowGone(_) | PortError::UnknownWindow(_) => Self::Gone,
            // A minimised window has no pixels.
            PortError::CaptureFailed(_) => Self::NotNow("not on the screen"),
            error => {
                tracing::debug!(%error, "no frame of the preview");
                Self::NotNow("no picture")
            }
        }
    }
}

/// Takes the frame of a scene.
async fn look(shared: &Shared, scene: &Scene) -> Result<PreviewFrame, Blind> {
    let may_look = async || match shared.gate.look().await.sees() {
        true => Ok(()),
        false => Err(Blind::NotAllowed),
    };
    may_look().await?;
    let desktop = &shared.desktop;
    let displays = desktop.screen.displays().await?;
    let display = Display::choose(&displays, None).map_err(|_| Blind::NotNow("no display"))?;
    let windows = match scene.subject {
        Subject::Display => Vec::new(),
        _ => desktop.windows.list().await?,
    };
    let is_meant = |window: &&Window| match scene.subject {
        Subject::Window(id) => window.id == id,
        Subject::Focus => window.focused,
        Subject::Display => false,
    };
    let window = windows.iter().find(is_meant);
    let request = match (window, scene.subject) {
        // With the cursor: it shows what is acted on.
        (Some(window), _) => CaptureRequest { target: CaptureTarget::Window(window.id), agent_cursors: true },
        (None, Subject::Window(_)) => return Err(Blind::Gone),
        // Without what lies over it, the preview itself among it.
        (None, _) => CaptureTarget::Region(display.frame).into(),
    };
    let stop = Stop::new();
    let _stops = stop.clone().drop_guard();
    // Right before the pixels are touched, each time.
    may_look().await?;
    let Capture { pixels, .. } = desktop.screen.capture(request, &stop).await?;
    let (width, height) = fitted(pixels.width, pixels.height, display.scale);
    let pixels = match (width, height) == (pixels.width, pixels.height) {
        true => pixels,
        false => picture::scale(&pixels, width, height).map_err(|error| {
            tracing::debug!(%error, "a frame of the preview cannot be scaled");
            Blind::NotNow("no picture")
        })?,
    };
    Ok(PreviewFrame {
        pixels,
        caption: scene.caption(window.map(|window| window.app.as_str()), None),
        colour: scene.colour,
        display: display.frame,
        scale: display.scale,
        keep_clear: scene.keep_clear.clone(),
        window: window.map(|window| window.frame),
    })
}

/// Size of the frame of something of this size, which is never enlarged.
fn fitted(width: u32, height: u32, scale: f64) -> (u32, u32) {
    let (across, down) =
        (LARGEST.0 * scale / f64::from(width.max(1)), LARGEST.1 * scale / f64::from(height.max(1)));
    let factor = across.min(down).min(1.0);
    let part = |length: u32| (f64::from(length) * factor).round().max(1.0) as u32;
    (part(width), part(height))
}

impl Scene {
    /// Who does what, where, and what became of it. `remark` is why no newer picture can be seen.
    fn caption(&self, app: Option<&str>, remark: Option<&str>) -> String {
        let Self { agent, tool, .. } = self;
        let app = app.map(|app| format!(" · {app}")).unwrap_or_default();
        let outcome = self.outcome.as_deref().map_or_else(|| " …".to_owned(), |said| format!(" · {said}"));
        let remark = remark.map(|remark| format!(" ({remark})")).unwrap_or_default();
        format!("{agent}: {tool}{outcome}{remark}{app}")
    }
}

/// What was shown last.
#[derive(Default)]
struct Shown {
    frame: Option<PreviewFrame>,
    /// What it is a picture of.
    subject: Option<Subject>,
}

impl Shown {
    fn show(&mut self, overlay: &dyn Overlay, subject: Subject, frame: PreviewFrame) {
        let is_same = |old: &PreviewFrame| {
            (&old.caption, old.colour, &old.keep_clear) == (&frame.caption, frame.colour, &frame.keep_clear)
                && (old.display, old.window, old.pixels.width)
                    == (frame.display, frame.window, frame.pixels.width)
                && old.pixels.rgba == frame.pixels.rgba
        };
        self.subject = Some(subject);
        if !self.frame.as_ref().is_some_and(is_same) {
            overlay.preview(Some(frame.clone()));
            self.frame = Some(frame);
        }
    }

    /// Keeps the picture, if it is one of what the scene is about, and says why it is not a newer one.
    fn say(&mut self, overlay: &dyn Overlay, scene: &Scene, why: &str) {
        if let Some(old) = self.frame.clone().filter(|_| self.subject == Some(scene.subject)) {
            let caption = scene.caption(None, Some(why));
            let colour = scene.colour;
            self.show(overlay, scene.subject, PreviewFrame { caption, colour, ..old });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_keep_their_shape_and_are_not_enlarged() {
        assert_eq!(fitted(200, 100, 1.0), (200, 100));
        assert_eq!(fitted(1920, 1080, 1.0), (400, 225));
        assert_eq!(fitted(1080, 1920, 1.0), (158, 280));
        assert_eq!(fitted(1920, 1080, 2.0), (800, 450));
        assert_eq!(fitted(10_000, 2, 1.0), (400, 1));
    }
}
