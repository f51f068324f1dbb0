//! What of a recorded turn can be done again, and how its targets are found again. Pure: the tool reads and acts.

use serde_json::{Map, Value, json};

use super::trajectory::{Action, ElementRecord, Step, WindowRecord};
use crate::desktop::{Node, Window, WindowId};
use crate::error::{Code, Error, Result};
use crate::geometry::{Point, Rect};

use super::turn;

/// A part of a call's arguments that names a target of its own: the call itself, or an end of a drag.
pub(crate) const PARTS: &[&str] = &["from", "to"];

/// Whether an argument object names an element.
pub(crate) fn names_element(arguments: &Map<String, Value>) -> bool {
    arguments.contains_key("element_index") || arguments.contains_key("query")
}

/// Whether an argument object names a point.
pub(crate) fn names_point(arguments: &Map<String, Value>) -> bool {
    arguments.contains_key("x") && arguments.contains_key("y")
}

/// The window that was `then`, among those of now: of the same application, with the same title if several are.
///
/// # Errors
/// `unknown_window`, `ambiguous`.
pub(crate) fn window<'w>(windows: &'w [Window], then: &WindowRecord) -> Result<&'w Window> {
    let of_app: Vec<&Window> =
        windows.iter().filter(|window| window.app == then.app && !window.frame.is_empty()).collect();
    let titled: Vec<&Window> = of_app.iter().copied().filter(|window| window.title == then.title).collect();
    match (of_app.as_slice(), titled.as_slice()) {
        (_, [only]) | ([only], []) => Ok(only),
        ([], _) => Err(Error::new(
            Code::UnknownWindow,
            format!("{:?} has no window now; it had {:?} when it was recorded", then.app, then.title),
        )),
        (several, []) => Err(Error::new(
            Code::UnknownWindow,
            format!("none of the {} windows of {:?} is called {:?}", several.len(), then.app, then.title),
        )),
        (_, several) => Err(Error::new(
            Code::Ambiguous,
            format!("{} windows of {:?} are called {:?}", several.len(), then.app, then.title),
        )),
    }
}

/// The place of the element that was `then`, among the nodes of now: by role and name, and by path where several have them.
///
/// # Errors
/// `element_not_found`, `ambiguous`.
pub(crate) fn element(nodes: &[Node], then: &ElementRecord) -> Result<u32> {
    let twins: Vec<u32> = (0u32..)
        .zip(nodes)
        .filter(|(_, node)| node.role == then.role && node.name == then.name)
        .map(|(place, _)| place)
        .collect();
    let describe = || match then.name.as_str() {
        "" => format!("the {} without a name", then.role),
        name => format!("the {} {name:?}", then.role),
    };
    let mut best: Vec<u32> = Vec::new();
    let mut most = 0;
    for place in twins {
        let alike = alike(nodes, place, &then.path);
        if alike > most {
            most = alike;
            best.clear();
        }
        if alike == most {
            best.push(place);
        }
    }
    match best.as_slice() {
        [only] => Ok(*only),
        [] => {
            let message = format!("{} is not there any more; the application has changed", describe());
            Err(Error::new(Code::ElementNotFound, message))
        }
        several => {
            let message =
                format!("{} may be any of {} now; the application has changed", describe(), several.len());
            Err(Error::new(Code::Ambiguous, message))
        }
    }
}

/// How much of its way from the window is as it was. Ways are compared from the element up, as what is around a whole
/// changes more easily than what is near; the window's own name, its title, does not count.
fn alike(nodes: &[Node], place: u32, then: &[Step]) -> usize {
    let now = turn::path(nodes, place);
    let whole = now.len() == then.len();
    let steps = now.iter().zip(then.iter().rev());
    let last = then.len().saturating_sub(1);
    let same = steps.enumerate().take_while(|(up, (now, then))| *up == last || now == then);
    // The same number of steps tells apart what is alike as far as the shorter way goes.
    same.count() * 2 + usize::from(whole)
}

/// The arguments of a turn, aimed at the windows of now. `window` gives the window that one of then has become.
///
/// # Errors
/// Those of `window`.
pub(crate) fn rewindow(
    arguments: &mut Map<String, Value>,
    mut window: impl FnMut(WindowId) -> Result<WindowId>,
) -> Result<()> {
    let mut aim = |arguments: &mut Map<String, Value>| -> Result<()> {
        if let Some(id) = arguments.get("window_id").and_then(Value::as_u64) {
            arguments.insert("window_id".to_owned(), json!(window(WindowId(id))?));
        }
        Ok(())
    };
    aim(arguments)?;
    for part in PARTS {
        if let Some(Value::Object(end)) = arguments.get_mut(*part) {
            aim(end)?;
        }
    }
    Ok(())
}

/// Puts an element of now into an argument object.
pub(crate) fn aim_at_element(arguments: &mut Map<String, Value>, index: u32, snapshot: &str) {
    arguments.remove("query");
    arguments.insert("element_index".to_owned(), json!(index));
    arguments.insert("snapshot_id".to_owned(), json!(snapshot));
}

/// Puts a point of then into an argument object: within the window of now, which must be as large as it was.
///
/// # Errors
/// `not_supported` if it is not.
pub(crate) fn aim_at_point(
    arguments: &mut Map<String, Value>,
    at: Point,
    then: Option<Rect>,
    now: Option<Rect>,
) -> Result<()> {
    let (x, y, space) = match (then, now) {
        (Some(then), Some(now)) if (then.width, then.height) == (now.width, now.height) => {
            (i64::from(at.x) - i64::from(then.x), i64::from(at.y) - i64::from(then.y), "window")
        }
        (Some(then), Some(now)) => {
            let message = format!(
                "the window was {}x{} and is {}x{} now, so its points mean nothing; only elements can be found again in it",
                then.width, then.height, now.width, now.height
            );
            return Err(Error::new(Code::NotSupported, message));
        }
        _ => (at.x.into(), at.y.into(), "screen"),
    };
    arguments.remove("picture_id");
    arguments.insert("x".to_owned(), json!(x));
    arguments.insert("y".to_owned(), json!(y));
    arguments.insert("space".to_owned(), json!(space));
    Ok(())
}

/// Why a turn is left out of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeftOut {
    /// It did nothing then: its error's code.
    Failed(String),
    /// It is a command.
    Command,
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Failed(code) => write!(f, "it failed when it was recorded ({code})"),
            Self::Command => f.write_str(
                "it starts a program with arguments or an environment, and a replay runs no commands; start the program by hand \
                 before the replay",
            ),
        }
    }
}

/// Why a turn is left out of a replay, if it is.
pub(crate) fn left_out(action: &Action) -> Option<LeftOut> {
    if let Some(error) = &action.error {
        return Some(LeftOut::Failed(error.code.clone()));
    }
    if !action.withheld.is_empty() {
        return None;
    }
    let arguments = &action.arguments;
    let has = |name: &str| match arguments.get(name) {
        Some(Value::Array(values)) => !values.is_empty(),
        Some(Value::Object(values)) => !values.is_empty(),
        Some(value) => !value.is_null(),
        None => false,
    };
    (action.tool == "launch_app" && (has("args") || has("env"))).then_some(LeftOut::Command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desktop::{ElementId, Interfaces, States};

    fn node(parent: Option<u32>, role: &str, name: &str) -> Node {
        Node {
            id: ElementId { owner: "app".into(), object: format!("{role} {name}").into() },
            parent,
            role: role.to_owned(),
            name: name.to_owned(),
            description: String::new(),
            states: States::default(),
            interfaces: Interfaces::default(),
            unread_children: 0,
        }
    }

    fn record(nodes: &[Node], place: u32) -> ElementRecord {
        let mut path = turn::path(nodes, place);
        path.reverse();
        let node = &nodes[place as usize];
        ElementRecord { element_index: place, role: node.role.clone(), name: node.name.clone(), path }
    }

    fn two_panels(title: &str) -> Vec<Node> {
        vec![
            node(None, "frame", title),
            node(Some(0), "panel", "left"),
            node(Some(1), "button", "OK"),
            node(Some(0), "panel", "right"),
            node(Some(3), "button", "OK"),
            node(Some(3), "button", "OK"),
        ]
    }

    #[test]
    fn elements_are_found_again_by_their_path_under_another_title() {
        let then = two_panels("a");
        let now = two_panels("b");
        for place in [2, 4, 5] {
            assert_eq!(element(&now, &record(&then, place)).unwrap(), place);
        }
    }

    #[test]
    fn one_that_moved_is_found_by_its_name_and_one_that_is_gone_is_not() {
        let then =
            vec![node(None, "frame", "a"), node(Some(0), "panel", ""), node(Some(1), "button", "Save")];
        let now =
            vec![node(None, "frame", "a"), node(Some(0), "tool bar", ""), node(Some(1), "button", "Save")];
        assert_eq!(element(&now, &record(&then, 2)).unwrap(), 2);
        let renamed =
            vec![node(None, "frame", "a"), node(Some(0), "panel", ""), node(Some(1), "button", "Store")];
        assert_eq!(element(&renamed, &record(&then, 2)).unwrap_err().code, Code::ElementNotFound);
    }

    #[test]
    fn points_need_the_size_that_the_window_had() {
        let mut arguments = Map::new();
        let then = Rect::new(100, 50, 300, 200);
        let moved = Rect::new(400, 500, 300, 200);
        aim_at_point(&mut arguments, Point::new(110, 70), Some(then), Some(moved)).unwrap();
        assert_eq!(Value::Object(arguments.clone()), json!({"x": 10, "y": 20, "space": "window"}));
        let resized = Rect::new(100, 50, 301, 200);
        let error = aim_at_point(&mut arguments, Point::new(110, 70), Some(then), Some(resized)).unwrap_err();
        assert_eq!(error.code, Code::NotSupported);
    }
}
