use std::time::Duration;

use async_trait::async_trait;
use deskhand_core::desktop::{
    ChangeKind, Chord, Click, Delivered, Keyboard, Pointer, PortError, State, Stop,
};
use deskhand_core::geometry::Point;

use super::FakeDesktop;
use super::accessibility::insert;

#[async_trait]
impl Pointer for FakeDesktop {
    async fn position(&self) -> Result<Point, PortError> {
        Ok(self.lock().pointer)
    }

    async fn move_to(&self, to: Point) -> Result<(), PortError> {
        let mut state = self.lock();
        state.pointer = to;
        state.journal.push(format!("move {},{}", to.x, to.y));
        Ok(())
    }

    async fn click(&self, click: &Click, stop: &Stop) -> Result<Delivered, PortError> {
        let total = click.count as usize;
        if stop.is_cancelled() {
            return Err(PortError::Stopped);
        }
        let used = {
            let mut state = self.lock();
            state.pointer = click.at;
            state.journal.push(
                format!("{:?} click {},{} x{total}", click.button, click.at.x, click.at.y).to_lowercase(),
            );
            let window = state.top_at(click.at).map(|window| window.id);
            let window = state.windows.iter().find(|other| Some(other.window.id) == window);
            let inside = |element: &&super::FakeElement| {
                !element.gone && element.frame.is_some_and(|frame| frame.contains(click.at))
            };
            window
                .and_then(|window| window.elements.iter().skip(1).rev().find(inside))
                .map(|e| e.node.id.clone())
        };
        if let Some(id) = used {
            self.use_element(&id)?;
        }
        Ok(Delivered { done: total, total })
    }
}

#[async_trait]
impl Keyboard for FakeDesktop {
    async fn type_text(&self, text: &str, delay: Duration, stop: &Stop) -> Result<Delivered, PortError> {
        if let Some(character) = text.chars().find(|c| *c == '\u{1f4a9}') {
            return Err(PortError::Untypable(format!("{character:?}")));
        }
        let total = text.chars().count();
        let key_time = self.lock().key_time + delay;
        let mut done = 0;
        for character in text.chars() {
            if stop.is_cancelled() {
                break;
            }
            if !key_time.is_zero() {
                tokio::time::sleep(key_time).await;
            }
            self.type_character(character);
            done += 1;
        }
        let typed: String = text.chars().take(done).collect();
        self.lock().journal.push(format!("type {typed:?}"));
        if done == 0 && total > 0 { Err(PortError::Stopped) } else { Ok(Delivered { done, total }) }
    }

    async fn press(&self, chord: &Chord, repeat: u32, _: Duration, _: &Stop) -> Result<Delivered, PortError> {
        let key = chord.key.as_ref().map_or("", |key| key.0.as_str()).to_owned();
        if key == "NoSuchKey" {
            return Err(PortError::Untypable(format!("the key {key:?}")));
        }
        let told = {
            let mut state = self.lock();
            state.journal.push(format!("press {:?} {key} x{repeat}", chord.modifiers));
            // Select all, then delete: enough of an editor for `clear`.
            let focused = state.windows.iter_mut().find(|window| window.window.focused);
            let element = focused.and_then(|window| {
                window.elements.iter_mut().find(|element| element.node.states.has(State::Focused))
            });
            match element {
                Some(element) if key == "BackSpace" => {
                    if let Some(text) = &mut element.text {
                        *text = deskhand_core::desktop::Text { caret: Some(0), ..Default::default() };
                    }
                    Some(element.node.id.clone())
                }
                _ => None,
            }
        };
        if let Some(id) = told {
            self.tell(id, ChangeKind::Text);
        }
        let total = repeat as usize;
        Ok(Delivered { done: total, total })
    }
}

impl FakeDesktop {
    fn type_character(&self, character: char) {
        let told = {
            let mut state = self.lock();
            let focused = state.windows.iter_mut().find(|window| window.window.focused);
            let element = focused.and_then(|window| {
                window
                    .elements
                    .iter_mut()
                    .find(|element| element.node.states.has(State::Focused) && element.text.is_some())
            });
            let Some(element) = element else { return };
            if let Some(text) = &mut element.text {
                let caret = text.caret.unwrap_or(text.length);
                insert(text, caret, character.encode_utf8(&mut [0; 4]));
            }
            element.node.id.clone()
        };
        self.tell(told, ChangeKind::Text);
    }
}
