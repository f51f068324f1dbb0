use std::time::Duration;

use async_trait::async_trait;
use deskhand_core::desktop::{
    ChangeKind, Chord, Click, Delivered, Direction, Drag, ElementId, Keyboard, Pointer, PortError, State,
    Stop, Tally, Wheel,
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

    async fn drag(&self, drag: &Drag, stop: &Stop) -> Result<Delivered, PortError> {
        let total = 10;
        if stop.is_cancelled() {
            return Err(PortError::Stopped);
        }
        let Drag { from, to, .. } = drag;
        let way = format!("{:?} drag {},{} to {},{}", drag.button, from.x, from.y, to.x, to.y);
        self.lock().journal.push(way.to_lowercase());
        tokio::select! {
            () = tokio::time::sleep(drag.duration) => {}
            () = stop.cancelled() => {
                self.lock().pointer = *from;
                return Ok(Delivered { done: total / 2, total });
            }
        }
        let told = self.lock().drop_at(*from, *to);
        if let Some((element, kind)) = told {
            self.tell(element, kind);
        }
        Ok(Delivered { done: total, total })
    }

    async fn turn_wheel(&self, wheel: &Wheel, stop: &Stop) -> Result<Delivered, PortError> {
        let total = wheel.notches as usize;
        if stop.is_cancelled() {
            return Err(PortError::Stopped);
        }
        let told = self.lock().turn_wheel(wheel);
        if let Some(element) = told {
            self.tell(element, ChangeKind::Value);
        }
        Ok(Delivered { done: total, total })
    }
}

/// How far a notch of the wheel moves a scroll bar of the fake.
const NOTCH: f64 = 10.0;

impl super::State {
    /// What a drag does to what is at its ends: text is selected up to its end, a value becomes the greatest, and anything
    /// else that is not `dead` gets a star to its name where something is dropped on it.
    fn drop_at(&mut self, from: Point, to: Point) -> Option<(ElementId, ChangeKind)> {
        self.pointer = to;
        let start = self.element_under(from).map(|element| element.node.id.clone());
        let element = self.element_under(to)?;
        if element.behaviour.dead {
            return None;
        }
        let id = element.node.id.clone();
        if start.as_ref() != Some(&id) {
            element.node.name.push('*');
            return Some((id, ChangeKind::Name));
        }
        if let Some(text) = &mut element.text {
            text.selections = vec![(0, text.length)];
            return Some((id, ChangeKind::Caret));
        }
        let value = element.value.as_mut()?;
        value.current = value.maximum;
        Some((id, ChangeKind::Value))
    }

    /// Moves the first scroll bar of the window under the wheel.
    fn turn_wheel(&mut self, wheel: &Wheel) -> Option<ElementId> {
        self.pointer = wheel.at;
        let Wheel { at, direction, notches, .. } = wheel;
        self.journal.push(format!("wheel {direction:?} x{notches} at {},{}", at.x, at.y).to_lowercase());
        let window = self.top_at(*at)?.id.0;
        let bar =
            self.window_mut(window).elements.iter_mut().find(|element| element.node.role == "scroll bar")?;
        let value = bar.value.as_mut().filter(|_| !bar.behaviour.dead)?;
        let forwards = matches!(direction, Direction::Down | Direction::Right);
        let way = f64::from(*notches) * if forwards { NOTCH } else { -NOTCH };
        let before = value.current;
        value.current = (value.current + way).clamp(value.minimum, value.maximum);
        (value.current != before).then(|| bar.node.id.clone())
    }

    fn element_under(&mut self, point: Point) -> Option<&mut super::FakeElement> {
        let window = self.top_at(point)?.id.0;
        let inside = |element: &&mut super::FakeElement| {
            !element.gone && element.frame.is_some_and(|frame| frame.contains(point))
        };
        self.window_mut(window).elements.iter_mut().skip(1).rev().find(inside)
    }
}

#[async_trait]
impl Keyboard for FakeDesktop {
    async fn type_text(
        &self,
        text: &str,
        delay: Duration,
        typed: &Tally,
        stop: &Stop,
    ) -> Result<Delivered, PortError> {
        self.require_typable(text).await?;
        let stuck = self.lock().stuck;
        if stuck {
            std::future::pending::<()>().await;
        }
        let silent = self.lock().silent;
        if silent {
            return Err(PortError::DesktopNotResponding);
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
            typed.reach(done);
        }
        let written: String = text.chars().take(done).collect();
        self.lock().journal.push(format!("type {written:?}"));
        if done == 0 && total > 0 { Err(PortError::Stopped) } else { Ok(Delivered { done, total }) }
    }

    async fn require_typable(&self, text: &str) -> Result<(), PortError> {
        match text.chars().find(|c| *c == '\u{1f4a9}') {
            Some(character) => Err(PortError::Untypable(format!("{character:?}"))),
            None => Ok(()),
        }
    }

    async fn press(&self, chord: &Chord, repeat: u32, _: Duration, _: &Stop) -> Result<Delivered, PortError> {
        let key = chord.key.as_ref().map_or("", |key| key.0.as_str()).to_owned();
        if key == "NoSuchKey" {
            return Err(PortError::Untypable(format!("the key {key:?}")));
        }
        let key_time = self.lock().key_time;
        if !key_time.is_zero() {
            tokio::time::sleep(key_time).await;
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
            let Some(element) = element.filter(|element| !element.behaviour.dead) else { return };
            if let Some(text) = &mut element.text {
                let caret = text.caret.unwrap_or(text.length);
                insert(text, caret, character.encode_utf8(&mut [0; 4]));
            }
            element.node.id.clone()
        };
        self.tell(told, ChangeKind::Text);
    }
}
