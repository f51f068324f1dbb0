//! All top-level windows, from what the server says of the root and of everything that is on it.

use std::collections::{HashMap, HashSet};

use deskhand_core::desktop::{Window, WindowId, WindowKind};
use deskhand_core::geometry::Rect;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _, Window as XWindow};

use super::frame::{Extents, visible_frame};
use super::properties::Properties;
use super::reading::{Known, MAX_NESTING, Place, Roots};
use crate::x11::connection::{Link, Trouble, unless_refused};

/// All top-level windows, lowest first, with what only this adapter needs to know of them.
#[derive(Debug, Default)]
pub(in crate::x11) struct Listing {
    /// The windows.
    pub(in crate::x11) windows: Vec<Listed>,
    /// Whether a window manager is there.
    pub(in crate::x11) managed: bool,
    /// The whole desktop.
    pub(in crate::x11) root: Rect,
    /// Every child of the root that shows pixels and is on the screen, listed or not, with its area, lowest first.
    pub(in crate::x11) stack: Vec<(XWindow, Rect)>,
}

/// One top-level window.
#[derive(Debug, Clone)]
pub(in crate::x11) struct Listed {
    /// What the engine sees.
    pub(in crate::x11) window: Window,
    /// The child of the root that carries it: the window manager's frame, or the window itself.
    pub(in crate::x11) top: XWindow,
    /// Area of `top`, its border included.
    pub(in crate::x11) top_area: Rect,
    /// Whether it is on the screen (not minimised, not on another workspace).
    pub(in crate::x11) viewable: bool,
    /// A tooltip or notification: comes and goes by itself, and holds no grab.
    pub(in crate::x11) passing: bool,
    /// The resource id base of its client, which tells clients apart.
    pub(in crate::x11) client_base: u32,
}

impl Listing {
    /// The window with this id.
    pub(in crate::x11) fn find(&self, id: WindowId) -> Option<&Listed> {
        self.windows.iter().find(|listed| listed.window.id == id)
    }

    /// The window that `top`, a child of the root, carries.
    pub(in crate::x11) fn carried_by(&self, top: XWindow) -> Option<&Listed> {
        self.windows.iter().rev().find(|listed| listed.top == top)
    }

    /// Whether `popup` belongs to `owner`, through other popups or dialogues if need be.
    pub(in crate::x11) fn belongs(&self, popup: &Listed, owner: WindowId) -> bool {
        let mut parent = popup.window.parent;
        for _ in 0..self.windows.len() {
            match parent {
                Some(id) if id == owner => return true,
                Some(id) => parent = self.find(id).and_then(|listed| listed.window.parent),
                None => return false,
            }
        }
        false
    }

    /// Popups of `owner` that are on the screen, lowest first.
    pub(in crate::x11) fn popups(&self, owner: WindowId) -> impl Iterator<Item = &Listed> {
        self.windows.iter().filter(move |listed| {
            listed.viewable && listed.window.kind == WindowKind::Popup && self.belongs(listed, owner)
        })
    }
}

/// Reads the windows.
pub(in crate::x11) fn read(link: &Link) -> Result<Listing, Trouble> {
    let roots = Roots::read(link)?;
    let check = roots.ask_manager(link)?;
    let listed = roots.listed.as_deref().unwrap_or_default();
    let placed = roots.children.iter().chain(listed.iter().filter(|id| !roots.children.contains(id)));
    let placed: Vec<XWindow> = placed.copied().collect();
    let mut known = Known::read(link, &roots.children, &placed, listed)?;
    let managed = check.confirm()?;
    let clients = match &roots.listed {
        Some(clients) if managed => clients.clone(),
        _ => {
            let clients = unmanaged_clients(link, &roots.children, &known.places)?;
            let inner = clients.iter().copied().filter(|client| !known.places.contains_key(client));
            let inner: Vec<XWindow> = inner.collect();
            known.extend(Known::read(link, &roots.children, &inner, &clients)?);
            clients
        }
    };
    let active = roots.active.filter(|_| managed);

    let carriers: HashSet<XWindow> =
        clients.iter().filter_map(|client| known.tops.get(client)).copied().collect();
    let own: HashSet<XWindow> = clients.iter().copied().collect();
    let popups: Vec<XWindow> = roots
        .children
        .iter()
        .copied()
        .filter(|child| !carriers.contains(child) && !own.contains(child))
        .filter(|child| known.places.get(child).is_some_and(|place| is_popup(place, roots.area)))
        .collect();
    let popups = known.read_popups(link, popups)?;
    let Known { places, tops, properties, pids } = known;

    let ids = clients.iter().chain(&popups);
    let mask = link.x.setup().resource_id_mask;
    let host = rustix::system::uname().nodename().to_bytes().to_vec();

    let mut windows: Vec<Listed> = ids
        .filter_map(|&id| {
            let place = places.get(&id)?;
            let properties = properties.get(&id)?;
            let top = tops.get(&id).copied().unwrap_or(id);
            let top_place = places.get(&top).unwrap_or(place);
            let pid = pids.get(&(id & !mask)).copied().or_else(|| properties.local_pid(&host));
            Some(Listed {
                window: describe(id, place, top_place, own.contains(&id), properties, pid),
                top,
                top_area: top_place.outer(),
                viewable: place.viewable,
                passing: properties.passing,
                client_base: id & !mask,
            })
        })
        .collect();
    let order: HashMap<XWindow, usize> =
        roots.children.iter().enumerate().map(|(place, &child)| (child, place)).collect();
    // Where window managers keep what is minimised among the others, nobody sees: it is behind all that is seen.
    windows.sort_by_key(|listed| (!listed.window.minimized, order.get(&listed.top).copied()));
    for (z, listed) in (0..).zip(&mut windows) {
        listed.window.z = z;
    }
    mark_focused(link, active, roots.input_focus, &mut windows)?;
    find_parents(&mut windows, &properties);
    let shown = |child: &XWindow| places.get(child).filter(|place| place.viewable && place.shows_pixels);
    let stack = roots.children.iter().filter_map(|child| Some((*child, shown(child)?.outer()))).collect();
    Ok(Listing { windows, managed: managed && roots.listed.is_some(), root: roots.area, stack })
}

/// Reads one child of the root that is in no listing, such as an invisible window that only takes input; `None` if
/// it is gone.
pub(in crate::x11) fn read_other(link: &Link, id: XWindow) -> Result<Option<Listed>, Trouble> {
    let Known { places, properties, pids, .. } = Known::read(link, &[id], &[id], &[id])?;
    let (Some(place), Some(properties)) = (places.get(&id), properties.get(&id)) else { return Ok(None) };
    let client_base = id & !link.x.setup().resource_id_mask;
    let window = describe(id, place, place, false, properties, pids.get(&client_base).copied());
    Ok(Some(Listed {
        window,
        top: id,
        top_area: place.outer(),
        viewable: place.viewable,
        passing: properties.passing,
        client_base,
    }))
}

/// Without a window manager's list: the root's children, or what they carry if a window manager of the old kind
/// has marked it with `WM_STATE`.
fn unmanaged_clients(
    link: &Link,
    children: &[XWindow],
    places: &HashMap<XWindow, Place>,
) -> Result<Vec<XWindow>, Trouble> {
    let shown: Vec<XWindow> = children
        .iter()
        .copied()
        .filter(|child| places.get(child).is_some_and(|place| place.viewable && place.shows_pixels))
        .collect();
    let mut clients = Vec::new();
    let mut level: Vec<(XWindow, XWindow)> = shown.iter().map(|&child| (child, child)).collect();
    let mut marked: HashMap<XWindow, XWindow> = HashMap::new();
    for _ in 0..MAX_NESTING {
        let mut cookies = Vec::with_capacity(level.len());
        for &(top, id) in &level {
            let state = link.x.get_property(false, id, link.atoms.WM_STATE, AtomEnum::ANY, 0, 2)?;
            cookies.push((top, id, state, link.x.query_tree(id)?));
        }
        level = Vec::new();
        for (top, id, state, tree) in cookies {
            let state = unless_refused(state.reply())?;
            let tree = unless_refused(tree.reply())?;
            if state.is_some_and(|state| state.value_len > 0) {
                marked.entry(top).or_insert(id);
            } else if let Some(tree) = tree {
                level.extend(tree.children.into_iter().map(|child| (top, child)));
            }
        }
        level.retain(|(top, _)| !marked.contains_key(top));
    }
    for child in shown {
        match marked.get(&child) {
            Some(&client) => clients.push(client),
            None if places.get(&child).is_some_and(|place| !place.override_redirect) => clients.push(child),
            None => {}
        }
    }
    Ok(clients)
}

/// What is no client and no frame is placed past the window manager, or is the window manager's own (a menu).
/// Helpers that clients keep off the screen or one pixel small are nothing that a person sees.
fn is_popup(place: &Place, desktop: Rect) -> bool {
    let visible = place.area.intersection(&desktop);
    place.viewable && place.shows_pixels && visible.is_some_and(|part| part.width > 1 && part.height > 1)
}

fn describe(
    id: XWindow,
    place: &Place,
    top: &Place,
    client: bool,
    properties: &Properties,
    pid: Option<u32>,
) -> Window {
    let shadow = properties.shadow.unwrap_or_default();
    let frame = match properties.decoration {
        Some(decoration) => visible_frame(place.area, decoration, shadow),
        // A window manager that does not say how wide its frame is.
        None if client => top.outer(),
        None => visible_frame(place.area, Extents::even(place.border), shadow),
    };
    let kind = match properties.kind {
        Some(kind @ (WindowKind::Desktop | WindowKind::Dock)) => kind,
        _ if !client => WindowKind::Popup,
        Some(kind) => kind,
        None if properties.transient_for.is_some() => WindowKind::Dialog,
        None => WindowKind::Normal,
    };
    let app = properties.class.clone().or_else(|| pid.and_then(process_name)).unwrap_or_default();
    Window {
        id: WindowId(id.into()),
        pid,
        app,
        title: properties.title.clone(),
        frame,
        client: place.area,
        focused: false,
        minimized: properties.minimized && !place.viewable,
        maximized: properties.maximized,
        fullscreen: properties.fullscreen,
        z: 0,
        kind,
        parent: None,
    }
}

fn process_name(pid: u32) -> Option<String> {
    let name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end().to_owned())
}

/// The window manager's word counts, unless the server's own focus is in a window that it does not manage.
fn mark_focused(
    link: &Link,
    active: Option<XWindow>,
    input_focus: XWindow,
    windows: &mut [Listed],
) -> Result<(), Trouble> {
    let carrier = |windows: &[Listed], id: XWindow| {
        windows.iter().position(|listed| listed.window.id.0 == u64::from(id) || listed.top == id)
    };
    let mut focused = carrier(windows, input_focus)
        .filter(|&at| active.is_none() || windows[at].window.kind == WindowKind::Popup)
        .or_else(|| active.and_then(|active| carrier(windows, active)));
    if focused.is_none() && active.is_none() {
        // The focus may be deep inside of a window. 0 and 1 mean nowhere and wherever the pointer is.
        let mut at = input_focus;
        for _ in 0..MAX_NESTING {
            if at <= 1 || at == link.root {
                break;
            }
            focused = carrier(windows, at);
            if focused.is_some() {
                break;
            }
            match unless_refused(link.x.query_tree(at)?.reply())? {
                Some(tree) => at = tree.parent,
                None => break,
            }
        }
    }
    if let Some(listed) = focused.and_then(|at| windows.get_mut(at)) {
        listed.window.focused = true;
    }
    Ok(())
}

/// What a popup or dialogue belongs to: what it says itself, else its client's window that has the focus or is in
/// front.
fn find_parents(windows: &mut [Listed], properties: &HashMap<XWindow, Properties>) {
    let parents: Vec<Option<WindowId>> = windows
        .iter()
        .map(|listed| {
            let id = XWindow::try_from(listed.window.id.0).ok()?;
            let said = properties.get(&id)?.transient_for.map(u64::from);
            let said = said.and_then(|said| {
                windows.iter().find(|other| other.window.id.0 == said || u64::from(other.top) == said)
            });
            let said = said.map(|other| other.window.id).filter(|&other| other != listed.window.id);
            match listed.window.kind {
                WindowKind::Popup => said.or_else(|| companion(windows, listed)),
                WindowKind::Dialog => said,
                _ => None,
            }
        })
        .collect();
    for (listed, parent) in windows.iter_mut().zip(parents) {
        listed.window.parent = parent;
    }
}

fn companion(windows: &[Listed], popup: &Listed) -> Option<WindowId> {
    let main = |other: &&Listed| matches!(other.window.kind, WindowKind::Normal | WindowKind::Dialog);
    let same_client = |other: &&Listed| other.client_base == popup.client_base;
    let same_process = |other: &&Listed| other.window.pid.is_some() && other.window.pid == popup.window.pid;
    let choose = |candidates: Vec<&Listed>| {
        let focused = candidates.iter().find(|other| other.window.focused).copied();
        focused.or_else(|| candidates.last().copied()).map(|other| other.window.id)
    };
    choose(windows.iter().filter(main).filter(same_client).collect())
        .or_else(|| choose(windows.iter().filter(main).filter(same_process).collect()))
}
