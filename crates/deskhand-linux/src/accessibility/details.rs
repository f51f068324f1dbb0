//! Frames, values, texts and actions of elements.

use std::borrow::Cow;

use serde::Deserialize;
use tokio::time::Instant;
use zbus::zvariant::Type;

use deskhand_core::desktop::{Action, Details, DetailsRequest, ElementId, State, Text, Value};

use super::app::{App, Failure, Toolkit};
use super::bus::Bus;
use super::extents::{self, Place};
use super::walk;
use super::wire::{Facts, Interface, role};

const TEXT: &str = "org.a11y.atspi.Text";
const VALUE: &str = "org.a11y.atspi.Value";
const ACTION: &str = "org.a11y.atspi.Action";

/// Selected ranges of one text that are read at most.
const SELECTIONS: i32 = 16;
/// Actions of one element that are told at most.
const ACTIONS: usize = 32;

/// What to read of elements of one window.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    pub bus: &'a Bus,
    pub toolkit: Toolkit,
    /// Where extents are on the screen; `None` where frames are not asked for.
    pub place: Option<Place>,
    pub request: DetailsRequest,
    pub until: Instant,
    /// Whether the window is one that popped up.
    pub popup: bool,
}

#[derive(Deserialize, Type)]
struct NamedAction(String, #[allow(dead_code)] String, #[allow(dead_code)] String);

impl Reader<'_> {
    /// Reads one element; `None` if it is gone.
    pub(super) async fn read(&self, id: &ElementId) -> Result<Option<Details>, Failure> {
        let app = self.bus.apps().get(&id.owner);
        let known = app.memory().mirror.facts(id).cloned();
        let facts = match known {
            Some(facts) => facts,
            None => match walk::facts(self.bus, id, self.until).await {
                Ok(facts) => facts,
                Err(Failure::Object(_)) => return Ok(None),
                Err(failure) => return Err(failure),
            },
        };
        let (frame, value, text, actions) = tokio::join!(
            self.frame(&app, id, &facts),
            self.value(&app, id, &facts),
            self.text(&app, id, &facts),
            self.actions(&app, id, &facts),
        );
        Ok(Some(Details { frame: frame?, value: value?, text: text?, actions: actions? }))
    }

    async fn frame(
        &self,
        app: &App,
        id: &ElementId,
        facts: &Facts,
    ) -> Result<Option<deskhand_core::geometry::Rect>, Failure> {
        let Some(Place { space, shift }) = &self.place else { return Ok(None) };
        if !facts.interfaces.has(Interface::Component) || self.is_in_popover(app, id) {
            return Ok(None);
        }
        let frame = extents::ask(self.bus, app, id, space.kind, self.until).await?;
        let shift = shift.as_ref().filter(|shift| app.memory().mirror.is_under(id, &shift.pane));
        let frame = frame.map(|frame| shift.map_or(frame, |shift| shift.apply(frame)));
        let space = if self.is_of_a_page(app, id, facts) { space.in_device_pixels() } else { *space };
        Ok(frame.map(|frame| space.to_screen(frame)))
    }

    /// Chromium scales its own elements, but not those of its pages.
    fn is_of_a_page(&self, app: &App, id: &ElementId, facts: &Facts) -> bool {
        let page = role::DOCUMENT_WEB;
        self.toolkit == Toolkit::Chromium && (facts.role == page || app.memory().mirror.is_inside(id, page))
    }

    /// GTK 4 counts the extents of a menu's items from a corner that only the menu's own window tells.
    fn is_in_popover(&self, app: &App, id: &ElementId) -> bool {
        self.toolkit == Toolkit::Gtk4 && !self.popup && app.memory().mirror.is_inside(id, role::MENU)
    }

    async fn value(&self, app: &App, id: &ElementId, facts: &Facts) -> Result<Option<Value>, Failure> {
        if !facts.interfaces.has(Interface::Value) {
            return Ok(None);
        }
        let number = |name| app.property::<f64>(self.bus, &id.object, VALUE, name, self.until);
        if facts.role == role::TABLE_CELL {
            // A spreadsheet cell takes any number, and there are hundreds of cells.
            let current = known(number("CurrentValue").await)?;
            return Ok(current.map(|current| Value { current, minimum: f64::MIN, maximum: f64::MAX }));
        }
        let (current, minimum, maximum) =
            tokio::join!(number("CurrentValue"), number("MinimumValue"), number("MaximumValue"));
        let Some(current) = known(current)? else { return Ok(None) };
        let (minimum, maximum) = (known(minimum)?.unwrap_or(0.0), known(maximum)?.unwrap_or(0.0));
        Ok(Some(Value { current, minimum, maximum }))
    }

    async fn text(&self, app: &App, id: &ElementId, facts: &Facts) -> Result<Option<Text>, Failure> {
        let passage = self.request.text_limit > DetailsRequest::PASSAGE && is_passage(facts, self.toolkit);
        if !passage && !has_own_text(facts, self.toolkit) {
            return Ok(None);
        }
        if facts.role == role::TABLE_CELL && self.toolkit == Toolkit::LibreOffice {
            return self.cell_text(app, id).await;
        }
        // GTK 4.8 may never answer a question about the selections of a label.
        let with_selections = self.toolkit != Toolkit::Gtk4 || facts.interfaces.has(Interface::EditableText);
        let number = |name| app.property::<i32>(self.bus, &id.object, TEXT, name, self.until);
        let content = |length: usize| async move {
            let end = i32::try_from(length.min(self.request.text_limit)).unwrap_or(i32::MAX);
            app.ask_for::<String, _>(self.bus, &id.object, TEXT, "GetText", &(0, end), self.until).await
        };
        // GTK 3 takes a place behind the end for the end, so that its texts can be asked for before their length is known.
        let at_once = self.toolkit == Toolkit::Gtk3;
        let (length, caret, selections, early) = tokio::join!(
            number("CharacterCount"),
            number("CaretOffset"),
            async { if with_selections { self.selections(app, id).await } else { Ok(Vec::new()) } },
            async { if at_once { Some(content(usize::MAX).await) } else { None } },
        );
        let Some(length) = known(length)? else { return Ok(None) };
        let length = usize::try_from(length).unwrap_or(0);
        let content = match early {
            _ if length == 0 => String::new(),
            Some(Ok(early)) if !early.is_empty() => early,
            _ => match known(content(length).await)? {
                Some(content) => content,
                None => return Ok(None),
            },
        };
        let caret = known(caret)?.and_then(|caret| usize::try_from(caret).ok());
        let text = in_characters(Text { content, length, caret, selections: selections? });
        let is_editor = facts.states.has(State::MultiLine) && facts.states.has(State::Editable);
        Ok(Some(match self.toolkit {
            Toolkit::Chromium if is_editor => without_last_break(converted_once(text)),
            Toolkit::Chromium => converted_once(text),
            _ => text,
        }))
    }

    /// The text of a spreadsheet cell, in one question: there are hundreds of them, and they are short.
    async fn cell_text(&self, app: &App, id: &ElementId) -> Result<Option<Text>, Failure> {
        let text = app.ask_for::<String, _>(self.bus, &id.object, TEXT, "GetText", &(0, -1), self.until);
        Ok(known(text.await)?.map(|text| Text {
            length: text.chars().count(),
            content: text.chars().take(self.request.text_limit).collect(),
            ..Text::default()
        }))
    }

    async fn selections(&self, app: &App, id: &ElementId) -> Result<Vec<(usize, usize)>, Failure> {
        let object = &id.object;
        let count = app.ask_for::<i32, _>(self.bus, object, TEXT, "GetNSelections", &(), self.until).await;
        let count = known(count)?.unwrap_or(0).min(SELECTIONS);
        let mut selections = Vec::new();
        for index in 0..count {
            let body = (index,);
            let range =
                app.ask_for::<(i32, i32), _>(self.bus, object, TEXT, "GetSelection", &body, self.until).await;
            if let Some((start, end)) = known(range)?
                && let (Ok(start), Ok(end)) = (usize::try_from(start), usize::try_from(end))
                && start != end
            {
                selections.push((start.min(end), start.max(end)));
            }
        }
        Ok(selections)
    }

    async fn actions(&self, app: &App, id: &ElementId, facts: &Facts) -> Result<Vec<Action>, Failure> {
        if !self.request.actions || !facts.interfaces.has(Interface::Action) {
            return Ok(Vec::new());
        }
        let actions = app
            .ask_for::<Vec<NamedAction>, _>(self.bus, &id.object, ACTION, "GetActions", &(), self.until)
            .await;
        let actions = known(actions)?.unwrap_or_default().into_iter().take(ACTIONS).zip(0..);
        Ok(actions.map(|(NamedAction(name, ..), index)| Action { index, name }).collect())
    }
}

/// Qt and Gecko count in units of UTF-16; we count in characters.
/// Told from the whole text; of a longer one the beginning says too little.
fn in_characters(mut text: Text) -> Text {
    text.content = real(&text.content, text.length).into_owned();
    if text.length == text.content.chars().count() || text.length != text.content.encode_utf16().count() {
        return text;
    }
    let content = std::mem::take(&mut text.content);
    let starts =
        || content.chars().scan(0, |units, c| Some(std::mem::replace(units, *units + c.len_utf16())));
    let character = |unit: usize| starts().take_while(|start| *start < unit).count();
    text.length = content.chars().count();
    text.caret = text.caret.map(character);
    for (start, end) in &mut text.selections {
        (*start, *end) = (character(*start), character(*end));
    }
    Text { content, ..text }
}

/// Chromium converts the ends of a selection from UTF-16 to characters twice; its caret, which stands at one of the ends,
/// only once.
fn converted_once(mut text: Text) -> Text {
    let at_caret =
        |(start, end): (usize, usize)| text.caret.is_some_and(|caret| caret == start || caret == end);
    let units = |place| text.content.chars().take(place).map(char::len_utf16).sum::<usize>();
    if let [selection] = text.selections.as_slice()
        && !at_caret(*selection)
    {
        let once = (units(selection.0), units(selection.1));
        if at_caret(once) {
            text.selections = vec![once];
        }
    }
    text
}

/// Chromium keeps a last empty line open by one more line break than its editor holds, and one in an editor that has been
/// emptied.
fn without_last_break(mut text: Text) -> Text {
    if text.content.ends_with('\n') && text.content.chars().count() == text.length {
        text.content.pop();
        text.length -= 1;
        let within = |place: usize| place.min(text.length);
        text.caret = text.caret.map(within);
        for (start, end) in &mut text.selections {
            (*start, *end) = (within(*start), within(*end));
        }
    }
    text
}

/// The content without what Gecko puts into it. It counts in units of UTF-16, and puts a U+FEFF behind each character of
/// two units, so that its text has as many characters as it counts.
fn real(content: &str, length: usize) -> Cow<'_, str> {
    if !content.contains('\u{feff}') || length != content.chars().count() {
        return content.into();
    }
    let mut real = String::with_capacity(content.len());
    let mut characters = content.chars().peekable();
    while let Some(character) = characters.next() {
        real.push(character);
        if character.len_utf16() == 2 {
            characters.next_if_eq(&'\u{feff}');
        }
    }
    if real.encode_utf16().count() == length { real.into() } else { content.into() }
}

/// The place of a character in the toolkit's own count, of a text that has `length` by that count.
pub(super) fn units(content: &str, length: usize, character: usize) -> usize {
    let content = real(content, length);
    if length == content.chars().count() || length != content.encode_utf16().count() {
        return character;
    }
    content.chars().take(character).map(char::len_utf16).sum()
}

/// An element may lack what it says that it has; silence is an error.
fn known<T>(answer: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(Failure::Object(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Whether the element is a part of a page in which text can be selected.
fn is_passage(facts: &Facts, toolkit: Toolkit) -> bool {
    matches!(toolkit, Toolkit::Chromium | Toolkit::Gecko)
        && facts.interfaces.has(Interface::Text)
        && facts.role != role::PASSWORD_TEXT
}

/// Whether the element has a text that is not just its name. Never for a password: even its length is nobody's
/// business. In browsers nearly every object has the text interface; there, content is what the children say.
fn has_own_text(facts: &Facts, toolkit: Toolkit) -> bool {
    if !facts.interfaces.has(Interface::Text) || facts.role == role::PASSWORD_TEXT {
        return false;
    }
    let editable = facts.states.has(State::Editable) || facts.interfaces.has(Interface::EditableText);
    editable
        || match facts.role {
            role::TEXT | role::ENTRY | role::TERMINAL | role::SPIN_BUTTON | role::DATE_EDITOR => true,
            role::EDITBAR | role::STATUS_BAR | role::CAPTION | role::DOCUMENT_TEXT => {
                !matches!(toolkit, Toolkit::Chromium | Toolkit::Gecko)
            }
            role::LABEL => facts.name.is_empty(),
            role::TABLE_CELL | role::PARAGRAPH => toolkit == Toolkit::LibreOffice,
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_counted_in_characters() {
        let qt = Text { content: "a😀b".into(), length: 4, caret: Some(3), selections: vec![(1, 3)] };
        let counted = Text { content: "a😀b".into(), length: 3, caret: Some(2), selections: vec![(1, 2)] };
        assert_eq!(in_characters(qt), counted);
        let gecko = Text { content: "漢😀\u{feff}".into(), length: 3, caret: Some(3), selections: vec![] };
        let counted = Text { content: "漢😀".into(), length: 2, caret: Some(2), selections: vec![] };
        assert_eq!(in_characters(gecko), counted);
        let gecko = Text {
            content: "😀\u{feff}a😀\u{feff}b".into(),
            length: 6,
            caret: Some(5),
            selections: vec![(2, 3)],
        };
        let counted =
            Text { content: "😀a😀b".into(), length: 4, caret: Some(3), selections: vec![(1, 2)] };
        assert_eq!(in_characters(gecko), counted);
        let plain = Text { content: "漢\u{feff}".into(), length: 2, caret: Some(2), selections: vec![] };
        assert_eq!(in_characters(plain.clone()), plain);
        let cut = Text { content: "😀😀".into(), length: 900, caret: Some(7), selections: vec![] };
        assert_eq!(in_characters(cut.clone()), cut);
    }

    #[test]
    fn selections_behind_characters_of_two_units_are_put_right() {
        let text = |selection| Text {
            content: "😀one".into(),
            length: 4,
            caret: Some(4),
            selections: vec![selection],
        };
        assert_eq!(converted_once(text((1, 3))), text((2, 4)));
        assert_eq!(converted_once(text((2, 4))), text((2, 4)));
    }

    #[test]
    fn the_break_that_keeps_a_last_line_open_is_no_content() {
        let text = |content: &str, caret, selections: &[(usize, usize)]| Text {
            content: content.into(),
            length: content.chars().count(),
            caret: Some(caret),
            selections: selections.to_vec(),
        };
        assert_eq!(without_last_break(text("a\n\n", 2, &[(0, 3)])), text("a\n", 2, &[(0, 2)]));
        assert_eq!(without_last_break(text("\n", 1, &[])), text("", 0, &[]));
        assert_eq!(without_last_break(text("a\nb", 3, &[])), text("a\nb", 3, &[]));
        let part = Text { length: 900, ..text("a\n", 0, &[]) };
        assert_eq!(without_last_break(part.clone()), part, "of a longer text it may be any break");
    }

    #[test]
    fn characters_are_counted_as_the_toolkit_does() {
        assert_eq!(units("a😀b", 4, 2), 3, "in units of UTF-16");
        assert_eq!(units("a😀b", 3, 2), 2);
        assert_eq!(units("abc", 3, 2), 2);
        assert_eq!(units("漢😀\u{feff}a", 4, 2), 3, "of Gecko's text without what it puts in");
    }
}
