use crate::desktop::{Details, Node};
use crate::tree::spoken;

/// Names elements by what a person sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Role, as the outline or the accessibility system spells it.
    pub role: Option<String>,
    /// Accessible name.
    pub name: Option<String>,
    /// Text content or numeric value.
    pub value: Option<String>,
    /// Anything of the above.
    pub any: Option<String>,
    /// Whole texts must be equal, case included; else a part is enough, in any case. A part of a name begins where a word
    /// does: "OK" is not "Bookmark".
    pub exact: bool,
}

impl Query {
    /// Whether deciding needs the element's details.
    pub const fn needs_details(&self) -> bool {
        self.value.is_some() || self.any.is_some()
    }

    /// Whether the structure alone already rules the element out.
    pub fn excludes(&self, node: &Node) -> bool {
        let role = self
            .role
            .as_ref()
            .is_some_and(|role| !(same(role, spoken(&node.role)) || same(role, &node.role)));
        let name = self.name.as_ref().is_some_and(|name| !self.name_matches(name, &node.name));
        role || name
    }

    /// Whether the element is meant.
    pub fn matches(&self, node: &Node, details: Option<&Details>) -> bool {
        let content = |wanted: &str| {
            details.is_some_and(|details| {
                details.text.as_ref().is_some_and(|text| self.text_matches(wanted, &text.content))
                    || details
                        .value
                        .is_some_and(|value| self.text_matches(wanted, &value.current.to_string()))
            })
        };
        !self.excludes(node)
            && self.value.as_ref().is_none_or(|value| content(value))
            && self.any.as_ref().is_none_or(|any| {
                [node.name.as_str(), spoken(&node.role), &node.description]
                    .iter()
                    .any(|text| self.text_matches(any, text))
                    || content(any)
            })
    }

    /// Whether the name is the wanted one as a whole, in any case.
    pub fn names(&self, node: &Node) -> bool {
        self.name.as_ref().is_some_and(|name| name.trim().to_lowercase() == node.name.trim().to_lowercase())
    }

    fn name_matches(&self, wanted: &str, name: &str) -> bool {
        if self.exact {
            return wanted == name;
        }
        let (wanted, name) = (wanted.to_lowercase(), name.to_lowercase());
        let begins_word = |at: usize| {
            let inside = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
            !(inside(name[..at].chars().next_back()) && inside(wanted.chars().next()))
        };
        wanted.is_empty() || name.match_indices(&wanted).any(|(at, _)| begins_word(at))
    }

    fn text_matches(&self, wanted: &str, text: &str) -> bool {
        if self.exact { wanted == text } else { text.to_lowercase().contains(&wanted.to_lowercase()) }
    }
}

fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(wanted: &str, name: &str) -> bool {
        Query::default().name_matches(wanted, name)
    }

    #[test]
    fn a_part_of_a_name_begins_where_a_word_does() {
        assert!(matches("ok", "OK") && matches("sav", "Save As…") && matches("as", "Save As…"));
        assert!(!matches("OK", "Bookmark this tab") && !matches("ave", "Save"));
        assert!(matches("(ctrl", "Save (Ctrl+S)") && matches("漢", "漢字") && matches("über", "Über uns"));
    }
}
