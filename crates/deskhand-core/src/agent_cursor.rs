//! What people see of agents: a cursor for each session, with a colour and a label of its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::desktop::{Act, AgentCursor, Colour, Overlay};
use crate::session::Session;

/// Colours of sessions, in the order that they begin to act. White text can be read on each, and neighbours are easily told
/// apart, also by people who do not see red and green as different.
const COLOURS: [Colour; 8] = [
    Colour::new(0x0b6bd3),
    Colour::new(0xc2410c),
    Colour::new(0x0f7b6c),
    Colour::new(0x9d2fb0),
    Colour::new(0x8a6100),
    Colour::new(0xc0265b),
    Colour::new(0x4f5bd5),
    Colour::new(0x3f7a1f),
];

/// The colour of calls that belong to no session.
const NOBODY: Colour = Colour::new(0x4b5563);

/// Height of the arrow in logical pixels if the session chose none: somewhat more than that of desktops' own pointers.
const SIZE: u32 = 26;
/// Long enough to be followed by the eye.
const GLIDE: Duration = Duration::from_millis(260);
/// Long enough to be seen by someone who looks up when something moves.
const LINGER: Duration = Duration::from_secs(3);
/// Characters of a label that are drawn: more would hide what the agent works on.
pub(crate) const MAX_LABEL: usize = 24;

/// What a session chose of its cursor; `None`: as it is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) colour: Option<Colour>,
    pub(crate) label: Option<String>,
    /// In logical pixels.
    pub(crate) size: Option<u32>,
    pub(crate) glide: Option<Duration>,
    pub(crate) linger: Option<Duration>,
}

/// The cursors of an engine's sessions.
pub(crate) struct Cursors {
    overlay: Arc<dyn Overlay>,
    /// Number of each session that had a cursor, from 0: its colour, and its name if it has none.
    numbers: Mutex<HashMap<Arc<str>, usize>>,
}

impl std::fmt::Debug for Cursors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursors").finish_non_exhaustive()
    }
}

impl Cursors {
    /// No cursor.
    pub(crate) fn new(overlay: Arc<dyn Overlay>) -> Self {
        Self { overlay, numbers: Mutex::default() }
    }

    /// The cursor of a session. The same session has the same colour as long as it lives.
    pub(crate) fn of(&self, session: &Session) -> AgentCursor {
        let look = session.cursor_look();
        let number = (!session.anonymous).then(|| self.number(&session.lane));
        let colour = number.map_or(NOBODY, |number| COLOURS[number % COLOURS.len()]);
        let name = || number.map_or_else(|| "deskhand".to_owned(), |number| format!("agent {}", number + 1));
        AgentCursor {
            id: Arc::clone(&session.lane),
            label: shortened(&look.label.or_else(|| session.label()).unwrap_or_else(name)),
            colour: look.colour.unwrap_or(colour),
            size: look.size.unwrap_or(SIZE),
            glide: look.glide.unwrap_or(GLIDE),
            linger: look.linger.unwrap_or(LINGER),
        }
    }

    /// The lowest number that no other session has.
    fn number(&self, lane: &Arc<str>) -> usize {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = numbers.get(lane) {
            return *number;
        }
        let free = (0..).find(|number| !numbers.values().any(|taken| taken == number)).unwrap_or_default();
        numbers.insert(Arc::clone(lane), free);
        free
    }

    /// Shows where a session acts. Returns at once.
    pub(crate) fn show(&self, session: &Session, act: Act) {
        self.overlay.show(&self.of(session), act);
    }

    /// Whether the session's cursor is on the screen now.
    pub(crate) fn is_shown(&self, session: &Session) -> bool {
        self.overlay.is_shown(&session.lane)
    }

    /// Takes the session's cursor away.
    pub(crate) fn hide(&self, session: &Session) {
        self.overlay.remove(&session.lane);
    }

    /// The session has ended.
    pub(crate) fn end(&self, session: &Session) {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner).remove(&session.lane);
        self.hide(session);
    }
}

/// One line of at most [`MAX_LABEL`] characters, without those that change how others are shown.
fn shortened(label: &str) -> String {
    let is_shown = |c: &char| c.is_whitespace() || !(c.is_control() || is_direction(*c));
    let label: String = label.chars().filter(is_shown).collect();
    let line = label.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MAX_LABEL {
        return line;
    }
    let kept: String = line.chars().take(MAX_LABEL - 1).collect();
    format!("{}…", kept.trim_end())
}

/// Marks and overrides of the direction of writing.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_text_can_be_read_on_every_colour() {
        let linear = |value: u8| {
            let value = f64::from(value) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        for colour in COLOURS.iter().chain([&NOBODY]) {
            let Colour { red, green, blue } = *colour;
            let luminance = 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
            let contrast = 1.05 / (luminance + 0.05);
            assert!(contrast >= 4.5, "{colour}: {contrast:.2}");
        }
    }

    #[test]
    fn a_long_label_is_shortened_and_stays_on_one_line() {
        assert_eq!(shortened("an agent"), "an agent");
        assert_eq!(shortened("two\nlines"), "two lines");
        assert_eq!(shortened("\u{1b}[1mbold\u{202e}er"), "[1mbolder");
        let long = shortened("the agent that looks after the accounts of the whole company");
        assert_eq!(long, "the agent that looks af…");
        assert_eq!(long.chars().count(), MAX_LABEL);
    }
}
