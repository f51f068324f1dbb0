//! Reads the text that describes a fake desktop. Wrong text is a mistake in a test and panics with the line.

use deskhand_core::desktop::{
    ElementId, Interfaces, Node, State, States, Text, Value, Window, WindowId, WindowKind,
};
use deskhand_core::geometry::Rect;

use super::{Behaviour, FakeElement, FakeWindow};

pub(super) fn windows(text: &str) -> Vec<FakeWindow> {
    let mut windows: Vec<FakeWindow> = Vec::new();
    let mut path: Vec<u32> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let depth = (line.len() - line.trim_start().len()) / 2;
        if let Some(rest) = line.trim().strip_prefix("window ").filter(|_| depth == 0) {
            windows.push(window(rest));
            path = vec![0];
        } else {
            let window = windows.last_mut().unwrap_or_else(|| panic!("an element before its window: {line}"));
            path.truncate(depth);
            let place = u32::try_from(window.elements.len()).unwrap_or(u32::MAX);
            let element = element(line, window, path.last().copied());
            window.elements.push(element);
            path.push(place);
        }
    }
    windows
}

/// Splits at blanks outside of quotes.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for character in text.chars() {
        match character {
            '"' => quoted = !quoted,
            ' ' if !quoted => {
                words.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(word) = words.last_mut() {
            word.push(character);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn unquoted(word: &str) -> String {
    word.trim_matches('"').replace("\\n", "\n")
}

fn number<T: std::str::FromStr>(text: &str, line: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("no number: {text:?} in {line}"))
}

fn window(line: &str) -> FakeWindow {
    let words = words(line);
    let mut window = Window {
        id: WindowId(number(&words[0], line)),
        pid: None,
        app: "fake".to_owned(),
        title: unquoted(&words[1]),
        frame: Rect::new(0, 0, 400, 300),
        client: Rect::default(),
        focused: false,
        minimized: false,
        maximized: false,
        fullscreen: false,
        z: 0,
        kind: WindowKind::Normal,
        parent: None,
    };
    for word in &words[2..] {
        match word.split_once('=') {
            Some(("app", app)) => app.clone_into(&mut window.app),
            Some(("pid", pid)) => window.pid = Some(number(pid, line)),
            Some(("parent", id)) => window.parent = Some(WindowId(number(id, line))),
            _ => match word.as_str() {
                "focused" => window.focused = true,
                "minimized" => window.minimized = true,
                "popup" => window.kind = WindowKind::Popup,
                geometry => {
                    let parts: Vec<&str> = geometry.split(['x', '+']).collect();
                    let [width, height, x, y] = parts.as_slice() else {
                        panic!("unknown word {geometry} in {line}")
                    };
                    window.frame = Rect::new(
                        number(x, line),
                        number(y, line),
                        number(width, line),
                        number(height, line),
                    );
                }
            },
        }
    }
    window.client = window.frame;
    let frame = FakeElement {
        node: node(&window, 0, None, "frame", &window.title),
        frame: Some(window.frame),
        text: None,
        value: None,
        behaviour: Behaviour::default(),
        gone: false,
    };
    FakeWindow { window, elements: vec![frame] }
}

fn node(window: &Window, place: usize, parent: Option<u32>, role: &str, name: &str) -> Node {
    let states: States =
        [State::Enabled, State::Sensitive, State::Showing, State::Visible].into_iter().collect();
    let clickable =
        matches!(role, "push button" | "check box" | "radio button" | "toggle button" | "link" | "menu item");
    Node {
        id: ElementId {
            owner: format!("app-{}", window.pid.unwrap_or(0)).into(),
            object: format!("{}/{place}", window.id).into(),
        },
        parent,
        role: role.to_owned(),
        name: name.to_owned(),
        description: String::new(),
        states,
        interfaces: Interfaces { action: clickable, ..Interfaces::default() },
        unread_children: 0,
    }
}

fn element(line: &str, window: &FakeWindow, parent: Option<u32>) -> FakeElement {
    let words = words(line.trim());
    let name_at =
        words.iter().position(|word| word.starts_with('"')).unwrap_or_else(|| panic!("no name in {line}"));
    let role = words[..name_at].join(" ");
    let mut element = FakeElement {
        node: node(&window.window, window.elements.len(), parent, &role, &unquoted(&words[name_at])),
        frame: None,
        text: None,
        value: None,
        behaviour: Behaviour::default(),
        gone: false,
    };
    let mut words = words[name_at + 1..].iter();
    while let Some(word) = words.next() {
        match word.split_once('=') {
            Some(("text", text)) => set_text(&mut element, &unquoted(text)),
            Some(("value", value)) => set_value(&mut element, value, line),
            Some(("changes", index)) => element.behaviour.changes = Some(number(index, line)),
            Some(("opens", title)) => element.behaviour.opens = Some(unquoted(title)),
            _ => plain_word(&mut element, word, &mut words, &window.window, line),
        }
    }
    element
}

fn set_text(element: &mut FakeElement, text: &str) {
    let length = text.chars().count();
    element.text =
        Some(Text { content: text.to_owned(), length, caret: Some(length), selections: Vec::new() });
    element.node.interfaces.text = true;
    element.node.interfaces.editable_text = true;
}

/// `0..100=30`
fn set_value(element: &mut FakeElement, text: &str, line: &str) {
    let (range, current) = text.split_once('=').unwrap_or_else(|| panic!("no value in {line}"));
    let (minimum, maximum) = range.split_once("..").unwrap_or_else(|| panic!("no range in {line}"));
    element.value = Some(Value {
        current: number(current, line),
        minimum: number(minimum, line),
        maximum: number(maximum, line),
    });
    element.node.interfaces.value = true;
}

fn plain_word<'a>(
    element: &mut FakeElement,
    word: &str,
    rest: &mut impl Iterator<Item = &'a String>,
    window: &Window,
    line: &str,
) {
    let node = &mut element.node;
    match word {
        "focused" => node.states = node.states.with(State::Focused),
        "checked" => node.states = node.states.with(State::Checked),
        "multi-line" => node.states = node.states.with(State::MultiLine),
        "selectable" => node.states = node.states.with(State::Selectable),
        "hidden" => node.states = node.states.without(State::Showing),
        "disabled" => node.states = node.states.without(State::Enabled).without(State::Sensitive),
        "dead" => element.behaviour.dead = true,
        "scrolled-away" => element.behaviour.comes_into_view = element.frame.take(),
        "springs" => element.behaviour.springs = true,
        "refuses" => element.behaviour.refuses = true,
        "no-action" => node.interfaces.action = false,
        "no-editable-text" => node.interfaces.editable_text = false,
        place => {
            let Some((x, y)) = place.strip_prefix('@').and_then(|place| place.split_once(',')) else {
                panic!("unknown word {word} in {line}")
            };
            let size = rest.next().unwrap_or_else(|| panic!("no size in {line}"));
            let (width, height) = size.split_once('x').unwrap_or_else(|| panic!("no size in {line}"));
            element.frame = Some(Rect::new(
                window.frame.x + number::<i32>(x, line),
                window.frame.y + number::<i32>(y, line),
                number(width, line),
                number(height, line),
            ));
        }
    }
}
