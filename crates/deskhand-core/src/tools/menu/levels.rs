//! Menus as trees show them: which items a level has, and which of them is meant by a name.

use std::collections::HashSet;

use crate::desktop::{ElementId, Node, State};
use crate::error::{Code, Error, Result};
use crate::tree::quote;

/// Items of a level that an error lists.
const LISTED: usize = 40;

/// Roles of what a menu consists of.
pub(super) fn is_menu_item(role: &str) -> bool {
    matches!(role, "menu" | "menu item" | "check menu item" | "radio menu item")
}

/// Roles of buttons.
fn is_button(role: &str) -> bool {
    matches!(role, "push button" | "button" | "toggle button" | "push button menu" | "button menu")
}

/// Whether an element cannot be used.
pub(super) fn is_disabled(node: &Node) -> bool {
    !node.states.has(State::Enabled) && !node.states.has(State::Sensitive)
}

/// A tree with its children at hand.
pub(super) struct Levels<'a> {
    nodes: &'a [Node],
    children: Vec<Vec<u32>>,
}

impl<'a> Levels<'a> {
    pub(super) fn of(nodes: &'a [Node]) -> Self {
        let mut children = vec![Vec::new(); nodes.len()];
        for (place, node) in (0u32..).zip(nodes) {
            if let Some(parent) = node.parent {
                children[parent as usize].push(place);
            }
        }
        Self { nodes, children }
    }

    fn node(&self, place: u32) -> &'a Node {
        &self.nodes[place as usize]
    }

    /// The nearest elements below `place` that `wanted` holds for.
    fn nearest(&self, place: u32, wanted: &dyn Fn(u32) -> bool, found: &mut Vec<u32>) {
        for &child in &self.children[place as usize] {
            if wanted(child) {
                found.push(child);
            } else {
                self.nearest(child, wanted, found);
            }
        }
    }

    /// The items of the menu that `place` opens, as far as the tree shows them.
    pub(super) fn inside(&self, place: u32) -> Vec<u32> {
        let mut found = Vec::new();
        self.nearest(place, &|child| is_menu_item(&self.node(child).role), &mut found);
        // The menu of an item may be an element of its own, named as the item or not at all.
        match found.as_slice() {
            [only] if self.node(*only).role == "menu" && self.is_list_of(place, *only) => self.inside(*only),
            _ => found,
        }
    }

    /// Whether the item opens a menu, as far as the tree shows.
    pub(super) fn opens(&self, place: u32) -> bool {
        let states = self.node(place).states;
        states.has(State::Expandable) || !self.inside(place).is_empty()
    }

    /// Whether `menu` is the list that the item `place` opens, and not an item that opens a list of its own.
    fn is_list_of(&self, place: u32, menu: u32) -> bool {
        let (item, menu) = (self.node(place), self.node(menu));
        menu.name.is_empty() || menu.name == item.name || menu.name.starts_with("Gtk")
    }

    /// What is there without anything being open: the items of menu bars, and buttons that open a menu.
    pub(super) fn top(&self) -> Vec<u32> {
        let mut found = Vec::new();
        let mut bars: Vec<Vec<&str>> = Vec::new();
        for bar in self.all(|node| node.role == "menu bar") {
            let mut items = Vec::new();
            self.nearest(bar, &|child| is_menu_item(&self.node(child).role), &mut items);
            let names: Vec<&str> = items.iter().map(|&item| self.node(item).name.as_str()).collect();
            // An office program has a second menu bar, the same in other words, that it never shows.
            if !bars.contains(&names) {
                bars.push(names);
                found.extend(items);
            }
        }
        found.extend(self.all(|node| is_button(&node.role)).filter(|&button| self.opens_menu(button)));
        found
    }

    fn all(&self, wanted: impl Fn(&Node) -> bool) -> impl Iterator<Item = u32> {
        (0u32..).zip(self.nodes).filter(move |(_, node)| wanted(node)).map(|(place, _)| place)
    }

    fn opens_menu(&self, button: u32) -> bool {
        let node = self.node(button);
        node.role.ends_with("menu")
            || node.states.has(State::HasPopup)
            // Firefox says it in words only.
            || node.description.to_lowercase().contains("menu")
            || node.states.has(State::Expandable)
            || self.children[button as usize].iter().any(|&child| {
                let role = self.node(child).role.as_str();
                is_menu_item(role) || matches!(role, "menu" | "popup menu") || is_button(role)
            })
    }

    /// Items and buttons that were not in an earlier tree, without those inside of others.
    pub(super) fn new_since(&self, before: &HashSet<ElementId>) -> Vec<u32> {
        let mut found = Vec::new();
        let is_new = |place: u32| {
            let node = self.node(place);
            (is_menu_item(&node.role) || is_button(&node.role))
                && !node.name.is_empty()
                && !before.contains(&node.id)
        };
        if !self.nodes.is_empty() {
            self.nearest(0, &is_new, &mut found);
        }
        // A menu in a window of its own is one element that holds the items.
        match found.as_slice() {
            [only] if self.node(*only).role == "menu" && !self.inside(*only).is_empty() => self.inside(*only),
            _ => found,
        }
    }

    /// Whether the element is on the screen. Where a tree shows nothing at all (GTK 4 does not say), everything is.
    pub(super) fn is_shown(&self, place: u32) -> bool {
        let shown = |node: &Node| node.states.has(State::Showing);
        shown(self.node(place)) || !self.nodes.iter().skip(1).any(shown)
    }

    /// Everything that belongs to no menu: what changes there tells something.
    pub(super) fn apart_from_menus(&self) -> HashSet<ElementId> {
        let mut belongs = vec![false; self.nodes.len()];
        for (place, node) in self.nodes.iter().enumerate() {
            let above = node.parent.is_some_and(|parent| belongs[parent as usize]);
            belongs[place] = above
                || is_menu_item(&node.role)
                // A status bar explains the item that is pointed at.
                || matches!(node.role.as_str(), "menu bar" | "popup menu" | "status bar");
        }
        let apart = self.nodes.iter().zip(&belongs).filter(|(_, belongs)| !**belongs);
        apart.map(|(node, _)| node.id.clone()).collect()
    }

    /// The one of `items` that is called `wanted`: as it is, else without regard to case, mnemonics, the dots of a dialogue
    /// and a key's name behind it.
    pub(super) fn called(&self, items: &[u32], wanted: &str) -> Named {
        let by = |matches: &dyn Fn(&str) -> bool| -> Vec<u32> {
            items.iter().copied().filter(|&item| matches(self.label(item))).collect()
        };
        let plain_wanted = plain(wanted);
        let mut found = by(&|name| name == wanted);
        if found.is_empty() {
            found = by(&|name| plain(name) == plain_wanted);
        }
        // A menu button of GTK 4 is two buttons of one name, one in the other.
        found.dedup_by(|inner, outer| self.is_inside(*inner, *outer));
        match found.as_slice() {
            [only] => Named::One(*only),
            [] => Named::None,
            _ => Named::Several,
        }
    }

    /// What an item is called by. A button that shows a picture alone may have a description only.
    fn label(&self, place: u32) -> &str {
        let node = self.node(place);
        if node.name.is_empty() { &node.description } else { &node.name }
    }

    fn is_inside(&self, inner: u32, outer: u32) -> bool {
        std::iter::successors(self.node(inner).parent, |&place| self.node(place).parent)
            .any(|place| place == outer)
    }

    /// The places of `path`, if the tree shows all of it.
    ///
    /// # Errors
    /// What is wrong with the path; `None` where the tree shows no items, as of a menu that was never open.
    pub(super) fn resolve(&self, path: &[String]) -> Result<Vec<u32>, Option<Error>> {
        let mut places = Vec::new();
        for (level, wanted) in path.iter().enumerate() {
            let items = match places.last() {
                None => self.top(),
                Some(&last) => self.inside(last),
            };
            match self.called(&items, wanted) {
                Named::One(place) => places.push(place),
                Named::None | Named::Several => {
                    return Err((!items.is_empty()).then(|| self.unknown(path, level, &items)));
                }
            }
        }
        Ok(places)
    }

    /// Says that `wanted` is not among `items`.
    pub(super) fn unknown(&self, path: &[String], level: usize, items: &[u32]) -> Error {
        let names: Vec<&str> =
            items.iter().map(|&item| self.label(item)).filter(|name| !name.is_empty()).take(LISTED).collect();
        let quoted: Vec<_> = names.iter().map(|name| quote(name, 60)).collect();
        let place = match level {
            0 => "the window".to_owned(),
            level => quote(&path[level - 1], 60),
        };
        let there = if quoted.is_empty() { "nothing".to_owned() } else { quoted.join(", ") };
        let what = quote(&path[level], 60);
        let message = match self.called(items, &path[level]) {
            Named::Several => {
                format!("{what} is in {place} several times; nothing was done; there is: {there}")
            }
            _ => format!("{what} is not in {place}; nothing was done; there is: {there}"),
        };
        Error::new(Code::ElementNotFound, message)
            .with_details(serde_json::json!({"level": level, "items": names}))
    }
}

/// What a name stands for.
#[derive(Debug, PartialEq)]
pub(super) enum Named {
    One(u32),
    Several,
    None,
}

/// Whether a word is the name of a key, as Chromium puts it behind the name of an item: `Ctrl+H`, `F11`.
fn is_accelerator(word: &str) -> bool {
    let is_function = word.strip_prefix('F').is_some_and(|number| number.parse::<u8>().is_ok());
    let (modifiers, _) = word.rsplit_once('+').unwrap_or(("", word));
    let are_modifiers =
        || modifiers.split('+').all(|each| ["Ctrl", "Alt", "Shift", "Super", "Meta"].contains(&each));
    is_function || are_modifiers()
}

/// A name as people say it.
fn plain(name: &str) -> String {
    let name = name.split('\t').next().unwrap_or_default().trim();
    let name = match name.rsplit_once(char::is_whitespace) {
        Some((before, last)) if is_accelerator(last) => before.trim_end(),
        _ => name,
    };
    let name = name.trim_end_matches("...").trim_end_matches('…').trim_end();
    let mut plain = String::new();
    let mut characters = name.chars().peekable();
    while let Some(character) = characters.next() {
        // One marks the next letter, two stand for themselves.
        if matches!(character, '_' | '&') && characters.peek().is_some_and(|next| !next.is_whitespace()) {
            plain.extend(characters.next_if_eq(&character));
        } else {
            plain.extend(character.to_lowercase());
        }
    }
    plain
}

/// Refuses an item that a person could not choose.
pub(super) fn refuse_disabled(node: &Node) -> Result<()> {
    match is_disabled(node) {
        true => {
            let message = format!("menu item {} is disabled; nothing was chosen", quote(&node.name, 60));
            Err(Error::new(Code::NotSupported, message))
        }
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desktop::{Interfaces, States};

    /// A tree of lines `INDENT role "name"`, all enabled.
    fn tree(text: &str) -> Vec<Node> {
        let mut nodes: Vec<Node> = Vec::new();
        let mut open: Vec<(usize, u32)> = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let indent = line.len() - line.trim_start().len();
            let (role, name) = line.trim().split_once(" \"").unwrap_or((line.trim(), "\""));
            open.retain(|(other, _)| *other < indent);
            let place = u32::try_from(nodes.len()).unwrap();
            nodes.push(Node {
                id: ElementId { owner: "app".into(), object: place.to_string().into() },
                parent: open.last().map(|(_, parent)| *parent),
                role: role.to_owned(),
                name: name.trim_end_matches('"').to_owned(),
                description: String::new(),
                states: States::default().with(State::Enabled),
                interfaces: Interfaces::default(),
                unread_children: 0,
            });
            open.push((indent, place));
        }
        nodes
    }

    fn path(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn found<'a>(nodes: &'a [Node], names: &[&str]) -> Vec<&'a str> {
        let places = Levels::of(nodes).resolve(&path(names)).unwrap_or_default();
        places.into_iter().map(|place| nodes[place as usize].name.as_str()).collect()
    }

    const GTK: &str = "
frame
 menu bar
  menu \"File\"
   menu item \"New\"
   menu item \"Save As…\"
   menu \"Recent\"
    menu item \"notes\"
  menu \"View\"
   check menu item \"Wrap\"
 toggle button \"More\"
  menu item \"About\"
 push button \"Delete\"
";

    const QT: &str = "
frame
 menu bar
  menu item \"File\"
   popup menu
    menu item \"New\tCtrl+N\"
    menu item \"Recent\"
     popup menu
      menu item \"notes\"
";

    const GTK4: &str = "
frame
 menu bar
  menu item \"File\"
   label \"File\"
   menu \"GtkPopoverMenu\"
    scroll pane
     menu item \"New\"
";

    #[test]
    fn paths_lead_through_the_menus_of_each_toolkit() {
        let gtk = tree(GTK);
        assert_eq!(found(&gtk, &["File", "Recent", "notes"]), ["File", "Recent", "notes"]);
        assert_eq!(found(&gtk, &["More", "About"]), ["More", "About"]);
        assert_eq!(found(&gtk, &["Delete"]), [""; 0], "a button that opens no menu is none");
        assert_eq!(found(&gtk, &["File", "Wrap"]), [""; 0], "each level has its own items");
        assert_eq!(found(&tree(QT), &["file", "recent", "Notes"]), ["File", "Recent", "notes"]);
        assert_eq!(found(&tree(GTK4), &["File", "New"]), ["File", "New"]);
    }

    #[test]
    fn a_button_without_a_name_is_called_by_its_description() {
        let mut nodes =
            tree("frame \"\"\n push button \"\"\n  menu \"\"\n push button \"Other\"\n  menu \"\"");
        nodes[1].description = "Primary menu".to_owned();
        let levels = Levels::of(&nodes);
        assert_eq!(levels.resolve(&path(&["primary menu"])).ok(), Some(vec![1]));
        let error = levels.resolve(&path(&["Third"])).unwrap_err().expect("there are items");
        assert!(error.message.contains("Primary menu"), "{}", error.message);
    }

    #[test]
    fn names_match_as_people_say_them() {
        let gtk = tree(GTK);
        for name in ["Save As…", "save as...", "Save _As", "SAVE AS"] {
            assert_eq!(found(&gtk, &["_File", name]), ["File", "Save As…"], "{name}");
        }
        assert_eq!(found(&tree(QT), &["&File", "New"]), ["File", "New\tCtrl+N"]);
        assert_eq!(plain("Open history page Ctrl+Shift+H"), "open history page");
        assert_eq!(
            (plain("Full screen F11"), plain("Fun F")),
            ("full screen".to_owned(), "fun f".to_owned())
        );
        assert_eq!((plain("a__b"), plain("R & D")), ("a_b".to_owned(), "r & d".to_owned()));
    }

    #[test]
    fn an_unknown_item_is_told_with_what_there_is() {
        let nodes = tree(GTK);
        let levels = Levels::of(&nodes);
        let file = levels.resolve(&path(&["File"])).unwrap()[0];
        let error = levels.unknown(&path(&["File", "Print"]), 1, &levels.inside(file));
        assert_eq!(
            error.message,
            "\"Print\" is not in \"File\"; nothing was done; there is: \"New\", \"Save As…\", \"Recent\""
        );
    }
}
