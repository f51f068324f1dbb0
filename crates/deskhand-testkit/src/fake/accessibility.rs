use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use deskhand_core::desktop::{
    Accessibility, Action, Change, ChangeKind, Details, DetailsRequest, ElementId, Fact, Node, PortError,
    State, Stop, Text, Tree, TreeNote, TreeRequest, Window,
};
use deskhand_core::geometry::{Point, Rect};
use tokio::sync::broadcast;

use super::{FakeDesktop, FakeElement, State as Desktop};

/// How long a key that springs back stays pressed.
const SPRING: Duration = Duration::from_millis(100);

impl Desktop {
    /// The element called `id`, if its application answers and still has it.
    pub(super) fn element_mut(&mut self, id: &ElementId) -> Result<&mut FakeElement, PortError> {
        let frozen = &self.frozen;
        let window = self.windows.iter_mut().find(|window| {
            window.elements[0].node.id.owner == id.owner
                && window.elements.iter().any(|element| element.node.id == *id)
        });
        let window = window.ok_or(PortError::ElementGone)?;
        if window.window.pid.is_some_and(|pid| frozen.contains(&pid)) {
            return Err(not_responding(&window.window));
        }
        let element = window.elements.iter_mut().find(|element| element.node.id == *id && !element.gone);
        element.ok_or(PortError::ElementGone)
    }
}

fn not_responding(window: &Window) -> PortError {
    PortError::AppNotResponding { app: window.app.clone(), waiting_for: "a call".to_owned() }
}

impl FakeDesktop {
    /// What a toolkit does when an element is used, by action or by pointer.
    pub(super) fn use_element(&self, id: &ElementId) -> Result<bool, PortError> {
        let mut told = Vec::new();
        let mut opened = false;
        {
            let mut state = self.lock();
            let element = state.element_mut(id)?;
            let behaviour = element.behaviour.clone();
            let (role, name) = (element.node.role.clone(), element.node.name.clone());
            if behaviour.refuses {
                return Ok(false);
            }
            if matches!(role.as_str(), "check box" | "toggle button") && !behaviour.dead {
                let states = &mut element.node.states;
                *states = if states.has(State::Checked) {
                    states.without(State::Checked)
                } else {
                    states.with(State::Checked)
                };
                told.push((id.clone(), ChangeKind::State(State::Checked, states.has(State::Checked))));
            }
            if behaviour.dead {
                return Ok(true);
            }
            if behaviour.springs {
                if told.iter().any(|(_, kind)| *kind == ChangeKind::State(State::Checked, false)) {
                    state.journal.push(format!("release {role} {name:?}"));
                    return Ok(true);
                }
                tokio::spawn(self.clone().spring_back(id.clone()));
            }
            state.journal.push(format!("use {role} {name:?}"));
            let window =
                state.windows.iter_mut().find(|window| window.elements.iter().any(|e| e.node.id == *id));
            if let (Some(window), Some(other)) = (window, behaviour.changes) {
                let other = &mut window.elements[other];
                other.node.name.push('!');
                told.push((other.node.id.clone(), ChangeKind::Name));
            }
            if let Some(title) = behaviour.opens {
                let pid = id.owner.trim_start_matches("app-").parse().unwrap_or(0);
                state.open(&title, pid);
                opened = true;
            }
        }
        for (element, kind) in told {
            self.tell(element, kind);
        }
        if opened {
            self.windows_changed.send_modify(|number| *number += 1);
        }
        Ok(true)
    }

    async fn spring_back(self, id: ElementId) {
        tokio::time::sleep(SPRING).await;
        if let Ok(element) = self.lock().element_mut(&id) {
            element.node.states = element.node.states.without(State::Checked);
        }
        self.tell(id, ChangeKind::State(State::Checked, false));
    }

    /// Moves an element into view as browsers do: later, and not at once.
    async fn glide(self, id: ElementId, frame: Rect) {
        for below in (0..=5).rev() {
            tokio::time::sleep(Duration::from_millis(40)).await;
            if let Ok(element) = self.lock().element_mut(&id) {
                element.frame = Some(Rect { y: frame.y + 10 * below, ..frame });
            }
        }
    }

    fn write(&self, id: &ElementId, write: impl FnOnce(&mut Text)) -> Result<bool, PortError> {
        {
            let mut state = self.lock();
            let element = state.element_mut(id)?;
            if !element.node.interfaces.editable_text {
                return Err(PortError::NotSupported("no editable text".to_owned()));
            }
            let dead = element.behaviour.dead;
            match &mut element.text {
                // Says yes and does nothing, as some toolkits do.
                Some(_) if dead => return Ok(true),
                Some(text) => {
                    write(text);
                    text.length = text.content.chars().count();
                }
                None => return Ok(false),
            }
            let name = element.node.name.clone();
            state.journal.push(format!("write {name:?}"));
        }
        self.tell(id.clone(), ChangeKind::Text);
        Ok(true)
    }
}

/// Inserts before character `position`.
pub(super) fn insert(text: &mut Text, position: usize, inserted: &str) {
    let at = text.content.char_indices().nth(position).map_or(text.content.len(), |(at, _)| at);
    text.content.insert_str(at, inserted);
    text.length = text.content.chars().count();
    text.caret = Some(position.min(text.length) + inserted.chars().count());
}

#[async_trait]
impl Accessibility for FakeDesktop {
    async fn tree(&self, window: &Window, _: &TreeRequest, _: &Stop) -> Result<Tree, PortError> {
        if self.lock().reading_stuck {
            std::future::pending::<()>().await;
        }
        let state = self.lock();
        let found = state.windows.iter().find(|other| other.window.id == window.id);
        let found = found.ok_or(PortError::WindowGone(window.id))?;
        if window.pid.is_some_and(|pid| state.frozen.contains(&pid)) {
            let notes = vec![TreeNote::NotResponding { app: window.app.clone() }];
            return Ok(Tree { notes, ..Tree::default() });
        }
        let nodes = found
            .elements
            .iter()
            .filter(|element| !element.gone)
            .map(|element| element.node.clone())
            .collect();
        Ok(Tree { nodes, toolkit: Some("fake".to_owned()), notes: Vec::new() })
    }

    async fn details(
        &self,
        _: &Window,
        elements: &[ElementId],
        request: DetailsRequest,
        _: &Stop,
    ) -> Result<Vec<Option<Details>>, PortError> {
        let mut state = self.lock();
        let mut read = |id: &ElementId| {
            let element = state.element_mut(id).ok()?;
            let has_action = request.actions && element.node.interfaces.action;
            Some(Details {
                frame: element.frame.filter(|_| request.frames),
                value: element.value,
                text: element.text.clone().map(|mut text| {
                    text.content = text.content.chars().take(request.text_limit).collect();
                    text
                }),
                actions: has_action
                    .then(|| Action { index: 0, name: "click".to_owned() })
                    .into_iter()
                    .collect(),
            })
        };
        Ok(elements.iter().map(&mut read).collect())
    }

    async fn facts(&self, window: &Window) -> Vec<Fact> {
        vec![Fact::new("taken", format!("app-{}", window.pid.unwrap_or(0)))]
    }

    async fn probe(&self, element: &ElementId) -> Result<Node, PortError> {
        Ok(self.lock().element_mut(element)?.node.clone())
    }

    async fn element_at(&self, window: &Window, point: Point) -> Result<Option<ElementId>, PortError> {
        let state = self.lock();
        let found = state.windows.iter().find(|other| other.window.id == window.id);
        let at = |element: &&FakeElement| {
            !element.gone && element.frame.is_some_and(|frame| frame.contains(point))
        };
        Ok(found
            .and_then(|window| window.elements.iter().rev().find(at))
            .map(|element| element.node.id.clone()))
    }

    async fn owner(&self, window: &Window) -> Result<Option<Arc<str>>, PortError> {
        let state = self.lock();
        let found = state.windows.iter().find(|other| other.window.id == window.id);
        let element = found.and_then(|window| window.elements.first());
        Ok(element.map(|element| Arc::clone(&element.node.id.owner)))
    }

    async fn do_action(&self, element: &ElementId, _: u32) -> Result<bool, PortError> {
        self.use_element(element)
    }

    async fn focus(&self, element: &ElementId) -> Result<bool, PortError> {
        {
            let mut state = self.lock();
            state.element_mut(element)?;
            let window =
                state.windows.iter_mut().find(|window| window.elements.iter().any(|e| e.node.id == *element));
            for other in window.into_iter().flat_map(|window| &mut window.elements) {
                let states = other.node.states;
                other.node.states = if other.node.id == *element {
                    states.with(State::Focused)
                } else {
                    states.without(State::Focused)
                };
            }
        }
        self.tell(element.clone(), ChangeKind::State(State::Focused, true));
        Ok(true)
    }

    async fn set_number(&self, element: &ElementId, value: f64) -> Result<bool, PortError> {
        {
            let mut state = self.lock();
            let element = state.element_mut(element)?;
            let dead = element.behaviour.dead;
            match &mut element.value {
                Some(_) if dead => return Ok(true),
                Some(slot) => slot.current = value,
                None => return Err(PortError::NotSupported("no value".to_owned())),
            }
        }
        self.tell(element.clone(), ChangeKind::Value);
        Ok(true)
    }

    async fn set_text(&self, element: &ElementId, text: &str) -> Result<bool, PortError> {
        self.write(element, |slot| {
            text.clone_into(&mut slot.content);
            slot.caret = Some(text.chars().count());
        })
    }

    async fn insert_text(&self, element: &ElementId, position: usize, text: &str) -> Result<bool, PortError> {
        self.write(element, |slot| insert(slot, position, text))
    }

    async fn select_text(&self, element: &ElementId, start: usize, end: usize) -> Result<bool, PortError> {
        {
            let mut state = self.lock();
            let element = state.element_mut(element)?;
            let dead = element.behaviour.dead;
            let Some(text) = element.text.as_mut() else {
                return Err(PortError::NotSupported("the element has no text".to_owned()));
            };
            // Some toolkits say yes and do nothing.
            if dead {
                return Ok(true);
            }
            text.selections = if start < end { vec![(start, end)] } else { Vec::new() };
            text.caret = Some(end);
            state.journal.push(format!("select text {start}..{end}"));
        }
        self.tell(element.clone(), ChangeKind::Caret);
        Ok(true)
    }

    async fn select_child(&self, _: &ElementId, _: u32) -> Result<bool, PortError> {
        Err(PortError::NotSupported("no selection".to_owned()))
    }

    async fn is_selected(&self, _: &ElementId, _: u32) -> Result<bool, PortError> {
        Err(PortError::NotSupported("no selection".to_owned()))
    }

    async fn select(&self, element: &ElementId) -> Result<bool, PortError> {
        {
            let mut state = self.lock();
            let selected = state.element_mut(element)?;
            if !selected.node.states.has(State::Selectable) {
                return Err(PortError::NotSupported("no selection".to_owned()));
            }
            let parent = selected.node.parent;
            let window =
                state.windows.iter_mut().find(|window| window.elements.iter().any(|e| e.node.id == *element));
            for other in window.into_iter().flat_map(|window| &mut window.elements) {
                if other.node.parent == parent {
                    let states = other.node.states;
                    let is = other.node.id == *element;
                    other.node.states =
                        if is { states.with(State::Selected) } else { states.without(State::Selected) };
                }
            }
        }
        self.tell(element.clone(), ChangeKind::State(State::Selected, true));
        Ok(true)
    }

    async fn scroll_into_view(&self, id: &ElementId) -> Result<bool, PortError> {
        let frame = self.lock().element_mut(id)?.behaviour.comes_into_view.take();
        match frame {
            Some(frame) => {
                tokio::spawn(self.clone().glide(id.clone(), frame));
                Ok(true)
            }
            None => Ok(false),
        }
    }

    async fn scroll_to_point(&self, _: &ElementId, _: Point) -> Result<bool, PortError> {
        Ok(false)
    }

    async fn changes(&self) -> Result<broadcast::Receiver<Change>, PortError> {
        Ok(self.changes.subscribe())
    }

    async fn fence(&self, owner: &str) -> Result<(), PortError> {
        let state = self.lock();
        let window = state.windows.iter().find(|window| *window.elements[0].node.id.owner == *owner);
        match window {
            Some(window) if window.window.pid.is_some_and(|pid| state.frozen.contains(&pid)) => {
                Err(not_responding(&window.window))
            }
            _ => Ok(()),
        }
    }

    async fn forget_all(&self) {
        self.lock().journal.push("forget all".to_owned());
    }
}
