//! The compact outline: one line an element, data quoted, nothing said twice.

use std::collections::HashMap;
use std::fmt::Write;
use std::hash::{Hash, Hasher};

use super::{Children, Selection, is_toggle, spoken};
use crate::desktop::{Details, Node, State, Text};
use crate::geometry::Rect;

/// Characters of a name that are shown. Longer ones are prose, which `value` shows.
const NAME_LIMIT: usize = 160;
/// Characters of a text content that are shown on a line.
const TEXT_LIMIT: usize = 400;
/// Action names that are shown of an element.
const ACTIONS_LIMIT: usize = 6;

/// Deeper lines are indented no further.
const DEEPEST: usize = 24;

/// Stands in a text for an embedded object.
const EMBEDDED: char = '\u{fffc}';

/// One element of an outline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// The element's index.
    pub index: u32,
    /// How deep it stands below the first line.
    pub depth: usize,
    /// What is said of it, from its role on.
    pub text: String,
}

impl Line {
    /// The line as it is shown, indented by `depth`.
    pub fn write(&self, to: &mut String, depth: usize) {
        for _ in 0..depth.min(DEEPEST) {
            to.push(' ');
        }
        let _ = writeln!(to, "[{}] {}", self.index, self.text);
    }
}

/// The lines of an outline, as far as a later one is compared with them: their digests by index.
pub type Lines = HashMap<u32, u64>;

/// A rendered outline: the elements with a line, in order.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    /// The lines.
    pub lines: Vec<Line>,
}

impl Outline {
    /// The outline as it is shown.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            line.write(&mut text, line.depth);
        }
        text
    }

    /// What a later outline is compared with.
    pub fn digest(&self) -> Lines {
        self.lines.iter().map(|line| (line.index, line.digest())).collect()
    }
}

impl Line {
    /// Tells lines with different texts apart, within this process.
    pub fn digest(&self) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        self.text.hash(&mut hasher);
        hasher.finish()
    }
}

/// Writes the selected elements below `root`, called by their `indices`. `details` has what is known of them by place.
/// `frames` adds each element's frame in screen pixels.
pub fn render(
    nodes: &[Node],
    indices: &[u32],
    children: &Children,
    root: u32,
    selection: &Selection,
    details: &HashMap<u32, Details>,
    frames: bool,
) -> Outline {
    let mut outline = Outline::default();
    let mut writer = Writer { nodes, indices, children, selection, details, frames, outline: &mut outline };
    writer.element(root, 0);
    outline
}

struct Writer<'a> {
    nodes: &'a [Node],
    indices: &'a [u32],
    children: &'a Children,
    selection: &'a Selection,
    details: &'a HashMap<u32, Details>,
    frames: bool,
    outline: &'a mut Outline,
}

impl Writer<'_> {
    /// Trees come from applications and may be deep: an explicit stack instead of recursion.
    fn element(&mut self, root: u32, depth: usize) {
        let mut stack = vec![(root, depth)];
        while let Some((place, depth)) = stack.pop() {
            let shown = self.selection.shown.binary_search(&place).is_ok();
            if shown {
                self.line(place, depth);
            }
            let below = depth + usize::from(shown);
            stack.extend(self.children.of_node(place).iter().rev().map(|&child| (child, below)));
        }
    }

    /// Name of the selected entry below a combo box, where it says something that the box does not.
    fn chosen_below(&self, place: u32) -> Option<String> {
        let mut stack = self.children.of_node(place).to_vec();
        while let Some(below) = stack.pop() {
            let node = &self.nodes[below as usize];
            if node.states.has(State::Selected) && !node.name.is_empty() {
                return (node.name != self.nodes[place as usize].name).then(|| node.name.clone());
            }
            stack.extend(self.children.of_node(below));
        }
        None
    }

    fn line(&mut self, place: u32, depth: usize) {
        let node = &self.nodes[place as usize];
        let details = self.details.get(&place);
        let mut line = spoken(&node.role).to_owned();
        let text = &mut line;
        if !node.name.is_empty() {
            let _ = write!(text, " {}", quote(&node.name, NAME_LIMIT));
        }
        if !node.description.is_empty() && node.description != node.name {
            let _ = write!(text, " ({})", quote(&node.description, NAME_LIMIT));
        }
        states(text, node);
        if node.role == "combo box"
            && let Some(chosen) = self.chosen_below(place)
        {
            let _ = write!(text, " value={}", quote(&chosen, NAME_LIMIT));
        }
        if let Some(details) = details {
            values(text, node, details);
            actions(text, details);
            if self.frames
                && let Some(Rect { x, y, width, height }) = details.frame
            {
                let _ = write!(text, " @{x},{y} {width}x{height}");
            }
        }
        if node.unread_children > 0 {
            let _ = write!(text, " … {} more children not read", node.unread_children);
        }
        let index = self.indices.get(place as usize).copied().unwrap_or(place);
        self.outline.lines.push(Line { index, depth, text: line });
    }
}

fn states(text: &mut String, node: &Node) {
    let states = node.states;
    let mut say = |set: bool, word: &str| {
        if set {
            text.push(' ');
            text.push_str(word);
        }
    };
    say(states.has(State::Focused), "focused");
    if states.has(State::Indeterminate) {
        say(true, "mixed");
    } else if states.has(State::Checked) {
        say(true, "checked");
    } else {
        say(
            states.has(State::Checkable)
                || matches!(
                    &*node.role,
                    "check box" | "radio button" | "check menu item" | "radio menu item" | "switch"
                ),
            "unchecked",
        );
    }
    say(states.has(State::Pressed) && is_toggle(&node.role), "pressed");
    say(states.has(State::Selected), "selected");
    say(states.has(State::Expanded), "expanded");
    say(states.has(State::Expandable) && !states.has(State::Expanded), "collapsed");
    let can_be_used = states.has(State::Enabled) || states.has(State::Sensitive);
    let read_only = states.has(State::ReadOnly) && super::is_text_input(&node.role);
    say(!can_be_used && !read_only && super::is_interactive(&node.role), "disabled");
    say(read_only, "read-only");
    say(states.has(State::Required), "required");
    say(states.has(State::Invalid), "invalid");
    say(states.has(State::Busy), "busy");
    say(states.has(State::Modal), "modal");
}

fn values(text: &mut String, node: &Node, details: &Details) {
    // A cell has a value and a text; the text is what is seen.
    let is_cell = node.role == "table cell";
    if let Some(value) = details.value.filter(|_| !is_cell) {
        let _ = write!(text, " value={}", value.current);
        // Ends as far away as numbers go are no range that anybody chose.
        if value.maximum > value.minimum && value.maximum - value.minimum < 1e12 {
            let _ = write!(text, " ({}..{})", value.minimum, value.maximum);
        }
    }
    let Some(Text { content, length, selections, .. }) = &details.text else { return };
    // A spin button's text repeats its value, a label's its name.
    let repeats = !is_cell && details.value.is_some_and(|value| content.trim().parse() == Ok(value.current));
    let name = node.name.trim();
    // U+FFFC stands for an embedded object, which is an element of its own.
    let plain: String = content.chars().filter(|&c| c != EMBEDDED).collect();
    let says_nothing = plain.trim().is_empty() && !super::is_text_input(&node.role);
    if !repeats && !says_nothing && plain.trim() != name {
        let _ = write!(text, " text={}", quote(&plain, TEXT_LIMIT));
        if *length > content.chars().count() && content.chars().count() <= TEXT_LIMIT {
            let _ = write!(text, " … {length} characters in all");
        }
    }
    for &(start, end) in selections.iter().filter(|(start, end)| end > start) {
        let selected: String = content.chars().skip(start).take(end - start).collect();
        let _ = write!(text, " selection={}", quote(&selected, NAME_LIMIT));
    }
}

/// Names of actions that a click performs anyway, or that every widget of a toolkit offers and nobody needs.
fn is_ordinary(name: &str) -> bool {
    const ORDINARY: [&str; 24] = [
        "",
        "activate",
        "check",
        "click",
        "click ancestor",
        "clickancestor",
        "doubleclick",
        "dodefault",
        "jump",
        "menu.popup",
        "open",
        "press",
        "select",
        "setfocus",
        "showcontextmenu",
        "showmenu",
        "show menu",
        "switch",
        "toggle",
        "uncheck",
        "scrollbackward",
        "scrollforward",
        "scrolldown",
        "scrollup",
    ];
    // GTK 4 lists the actions of the whole window on each of its widgets.
    const INHERITED: [&str; 6] = ["clipboard.", "default.", "link.", "selection.", "win.", "window."];
    let name = name.to_ascii_lowercase();
    ORDINARY.contains(&name.as_str()) || INHERITED.iter().any(|prefix| name.starts_with(prefix))
}

fn actions(text: &mut String, details: &Details) {
    let names = details
        .actions
        .iter()
        .map(|action| action.name.trim_matches(|c: char| c == ';' || c.is_whitespace()));
    for (said, name) in names.filter(|name| !is_ordinary(name)).take(ACTIONS_LIMIT).enumerate() {
        let _ = write!(text, "{}{}", if said == 0 { " actions=" } else { "," }, quote(name, 40));
    }
}

/// Text of the screen as data: quoted, control characters and direction overrides escaped, cut at `limit` characters.
pub fn quote(text: &str, limit: usize) -> String {
    let mut quoted = String::with_capacity(text.len().min(limit * 4) + 2);
    quoted.push('"');
    for (count, character) in text.chars().enumerate() {
        if count == limit {
            let _ = write!(quoted, "\"… ({} characters)", text.chars().count());
            return quoted;
        }
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_control() || is_invisible(c) => {
                let _ = write!(quoted, "\\u{{{:x}}}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Characters that hide or reorder what stands around them.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_the_screen_cannot_leave_its_quotes() {
        assert_eq!(quote("a\"b\\c\n\u{202e}d\u{1b}[0m", 99), r#""a\"b\\c\n\u{202e}d\u{1b}[0m""#);
        assert_eq!(quote("Grüße 漢字 😀", 99), "\"Grüße 漢字 😀\"");
        assert_eq!(quote("abcdef", 3), "\"abc\"… (6 characters)");
        assert_eq!(quote("a\u{200d}b", 9), "\"a\u{200d}b\"");
    }
}
