//! What a role means to the engine. Roles are named in the words of the accessibility system.

/// The role as the outline spells it.
pub fn spoken(role: &str) -> &str {
    match role {
        "push button" => "button",
        other => other,
    }
}

/// Roles that a person acts on.
pub fn is_interactive(role: &str) -> bool {
    is_toggle(role)
        || is_text_input(role)
        || is_item(role)
        || matches!(
            role,
            "push button"
                | "button"
                | "push button menu"
                | "link"
                | "combo box"
                | "menu"
                | "slider"
                | "spin button"
                | "scroll bar"
                | "page tab"
                | "dial"
                | "color chooser"
                | "table column header"
                | "column header"
                | "calendar"
        )
}

/// Roles whose state is expected to change when they are clicked.
pub fn is_toggle(role: &str) -> bool {
    matches!(
        role,
        "check box" | "radio button" | "toggle button" | "check menu item" | "radio menu item" | "switch"
    )
}

/// Roles that stand for a place to write in.
pub fn is_text_input(role: &str) -> bool {
    matches!(
        role,
        "text" | "entry" | "password text" | "editbar" | "terminal" | "autocomplete" | "date editor"
    )
}

/// Roles of things in a list: their objects are re-used for other rows by some toolkits, and clicking selects them.
pub fn is_item(role: &str) -> bool {
    matches!(
        role,
        "list item"
            | "table cell"
            | "tree item"
            | "menu item"
            | "check menu item"
            | "radio menu item"
            | "icon"
            | "table row"
    )
}

/// Roles that only arrange others: not worth a line unless they carry a name or can do something.
pub fn is_container(role: &str) -> bool {
    matches!(
        role,
        "filler"
            | "panel"
            | "section"
            | "viewport"
            | "scroll pane"
            | "layered pane"
            | "split pane"
            | "redundant object"
            | "grouping"
            | "root pane"
            | "glass pane"
            | "internal frame"
            | "paragraph"
            | "block quote"
            | "static"
            | "text leaf"
            | "unknown"
            | "invalid"
            | "form"
            | "article"
            | "directory pane"
            | "option pane"
            | "separator"
            | "landmark"
            | "list box"
            | "description list"
            | "table row"
            | "group"
            | "header"
            | "footer"
            | "image"
            | "canvas"
    )
}
