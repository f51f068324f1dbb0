//! Outlines as text: an indented tree in, an outline out.

use std::collections::HashMap;

use super::*;
use crate::desktop::{Details, ElementId, Interfaces, State, States, Text, Value};

/// Reads lines such as `push button "OK" disabled`; indentation is depth.
fn tree(text: &str) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut path: Vec<u32> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let depth = (line.len() - line.trim_start().len()) / 2;
        path.truncate(depth);
        let (role, rest) = line.trim().split_once('"').unwrap_or((line.trim(), "\" "));
        let (name, words) = rest.split_once('"').unwrap_or((rest, ""));
        let mut states: States = [State::Enabled, State::Sensitive, State::Showing].into_iter().collect();
        let mut interfaces = Interfaces::default();
        for word in words.split_whitespace() {
            match word {
                "focused" => states = states.with(State::Focused),
                "checked" => states = states.with(State::Checked),
                "hidden" => states = states.without(State::Showing),
                "disabled" => states = states.without(State::Enabled).without(State::Sensitive),
                "text" => interfaces.text = true,
                "value" => interfaces.value = true,
                other => panic!("unknown word {other}"),
            }
        }
        let place = u32::try_from(nodes.len()).unwrap();
        nodes.push(Node {
            id: ElementId { owner: "app".into(), object: place.to_string().into() },
            parent: path.last().copied(),
            role: role.trim().to_owned(),
            name: name.to_owned(),
            description: String::new(),
            states,
            interfaces,
            unread_children: 0,
        });
        path.push(place);
    }
    nodes
}

fn outline(text: &str, limit: usize, details: &HashMap<u32, Details>) -> (String, Selection) {
    let nodes = tree(text);
    let children = Children::of(&nodes);
    let selection = select(&nodes, &children, 0, limit, false, None);
    let indices: Vec<u32> = (0u32..).zip(&nodes).map(|(place, _)| place).collect();
    let outline = render(&nodes, &indices, &children, 0, &selection, details, false);
    (outline.text(), selection)
}

#[test]
fn containers_without_a_meaning_collapse_and_names_are_not_said_twice() {
    let (text, _) = outline(
        r#"
frame "Editor"
  filler
    panel
      push button "Save" focused
        label "Save"
    check box "Wrap" checked
    check box "Spell"
  panel "Status"
    label "Ready"
"#,
        99,
        &HashMap::new(),
    );
    assert_eq!(
        text,
        r#"[0] frame "Editor"
 [3] button "Save" focused
 [5] check box "Wrap" checked
 [6] check box "Spell" unchecked
 [7] panel "Status"
  [8] label "Ready"
"#
    );
}

#[test]
fn what_is_not_on_the_screen_is_counted_unless_nothing_says_it_is() {
    let closed_menu = r#"
frame "Editor"
  menu "File"
    menu item "Open" hidden
    menu item "Save" hidden
"#;
    let (text, selection) = outline(closed_menu, 99, &HashMap::new());
    assert_eq!(text, "[0] frame \"Editor\"\n [1] menu \"File\"\n");
    assert_eq!(selection.hidden, 2);
    // A toolkit that never sets the state below the window must not hide everything.
    let silent = closed_menu.replace("\"File\"", "\"File\" hidden");
    let (text, selection) = outline(&silent, 99, &HashMap::new());
    assert!(text.contains("[3] menu item \"Save\""));
    assert_eq!(selection.hidden, 0);
}

#[test]
fn f33_a_long_list_does_not_push_out_the_buttons_behind_it() {
    let rows: String = (0..5000).map(|row| format!("      list item \"Row {row}\"\n")).collect();
    let text = format!(
        "frame \"Picker\"\n  panel\n    list \"Rows\"\n{rows}  push button \"OK\"\n  push button \"Cancel\"\n"
    );
    let (text, selection) = outline(&text, 200, &HashMap::new());
    assert!(text.contains("button \"OK\"") && text.contains("button \"Cancel\""));
    assert!(text.contains("\"Row 0\"") && text.contains("\"Row 150\""), "the first rows come first");
    assert_eq!((selection.shown.len(), selection.left_out), (200, 5004 - 200));
}

#[test]
fn values_texts_and_selections_are_shown() {
    let text = Text { content: "two words".into(), length: 9, caret: Some(3), selections: vec![(0, 3)] };
    let value = Value { current: 30.0, minimum: 0.0, maximum: 100.0 };
    let details = HashMap::from([
        (1, Details { text: Some(text), ..Details::default() }),
        (2, Details { value: Some(value), ..Details::default() }),
    ]);
    let (text, _) = outline("frame \"F\"\n  text \"\" text\n  slider \"Volume\" value\n", 99, &details);
    assert_eq!(
        text,
        "[0] frame \"F\"\n [1] text text=\"two words\" selection=\"two\"\n [2] slider \"Volume\" value=30 (0..100)\n"
    );
}
