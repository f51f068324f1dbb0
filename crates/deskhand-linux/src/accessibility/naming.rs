//! Names that are none.

use std::borrow::Cow;

use super::app::Toolkit;
use super::event::{Event, What};

/// The name that `toolkit` gave, as a person would say it.
///
/// GTK 4.8 gives a widget without a name that of its class, and a button the text of the label in it twice.
pub(super) fn plain(toolkit: Toolkit, name: String) -> String {
    if toolkit != Toolkit::Gtk4 {
        return name;
    }
    if is_class(&name) {
        return String::new();
    }
    match halves(&name) {
        Some(half) => half.to_owned(),
        None => name,
    }
}

/// The event with the names in it as a person would say them.
pub(super) fn plainly(toolkit: Toolkit, event: &Event) -> Cow<'_, Event> {
    if toolkit != Toolkit::Gtk4 {
        return Cow::Borrowed(event);
    }
    let what = match &event.what {
        What::Added(item) => {
            let mut item = item.clone();
            item.facts.name = plain(toolkit, item.facts.name);
            What::Added(item)
        }
        What::Name(Some(name)) => What::Name(Some(plain(toolkit, name.clone()))),
        _ => return Cow::Borrowed(event),
    };
    Cow::Owned(Event { source: event.source.clone(), what })
}

/// Whether `name` is that of a class of GTK or of the libraries that belong to it. Classes of applications cannot be told
/// from words.
fn is_class(name: &str) -> bool {
    let rest = ["Gtk", "Adw", "Hdy"].iter().find_map(|library| name.strip_prefix(library));
    rest.is_some_and(|rest| {
        rest.starts_with(|first: char| first.is_ascii_uppercase())
            && rest.chars().all(|character| character.is_ascii_alphanumeric())
    })
}

/// The half of a text that says the same twice, with a space between.
fn halves(name: &str) -> Option<&str> {
    let middle = name.len() / 2;
    let (first, second) = (name.get(..middle)?, name.get(middle..)?.strip_prefix(' ')?);
    (first == second && !first.is_empty()).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_doubles_of_gtk_4() {
        let cases = [
            ("GtkListBox", ""),
            ("AdwGizmo", ""),
            ("GtkBuiltinIcon", ""),
            ("HistoryView", "HistoryView"),
            ("Gtk", "Gtk"),
            ("Gtk is a toolkit", "Gtk is a toolkit"),
            ("Gtkmm", "Gtkmm"),
            ("7 7", "7"),
            ("Größe Größe", "Größe"),
            ("Save as Save as", "Save as"),
            ("77", "77"),
            ("7 8", "7 8"),
            (" ", " "),
            ("", ""),
        ];
        for (given, plainly) in cases {
            assert_eq!(plain(Toolkit::Gtk4, given.to_owned()), plainly, "{given:?}");
        }
    }

    #[test]
    fn other_toolkits_mean_what_they_say() {
        assert_eq!(plain(Toolkit::Gtk3, "7 7".to_owned()), "7 7");
        assert_eq!(plain(Toolkit::Qt, "GtkListBox".to_owned()), "GtkListBox");
    }
}
