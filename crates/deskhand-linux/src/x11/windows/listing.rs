//! Reads all top-level windows in a few round trips, whatever their number: all requests of a round are sent
//! before the first reply is read.

use std::collections::{HashMap, HashSet};

use deskhand_core::desktop::{Window, WindowId, WindowKind};
use deskhand_core::geometry::Rect;
use x11rb::connection::{Connection, RequestConnection as _};
use x11rb::protocol::res::{self, ConnectionExt as _};
use x11rb::protocol::shape::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _, MapState, Window as XWindow, WindowClass};

use super::frame::{Extents, visible_frame};
use super::properties::{Properties, PropertyCookies};
use crate::x11::connection::{Link, Trouble, unless_refused};

/// A window manager puts so many windows between the root and a client's window at most (frame, wrapper, client).
const MAX_NESTING: usize = 4;

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

/// What is known of one window of the tree before its properties are read.
#[derive(Clone, Copy)]
struct Place {
    override_redirect: bool,
    viewable: bool,
    shows_pixels: bool,
    /// Area in root coordinates, without the border.
    area: Rect,
    border: u32,
}

impl Place {
    fn outer(&self) -> Rect {
        visible_frame(self.area, Extents::even(self.border), Extents::default())
    }
}

/// Reads the windows.
pub(in crate::x11) fn read(link: &Link) -> Result<Listing, Trouble> {
    let roots = Roots::read(link)?;
    let mut places = read_places(link, &roots.children)?;
    let clients = match &roots.managed {
        Some(clients) => clients.clone(),
        None => unmanaged_clients(link, &roots.children, &places)?,
    };
    let wanted: Vec<XWindow> =
        clients.iter().copied().filter(|client| !places.contains_key(client)).collect();
    places.extend(read_places(link, &wanted)?);
    let tops = read_tops(link, &clients)?;

    let carriers: HashSet<XWindow> = tops.values().copied().collect();
    let known: HashSet<XWindow> = clients.iter().copied().collect();
    let popups: Vec<XWindow> = roots
        .children
        .iter()
        .copied()
        .filter(|child| !carriers.contains(child) && !known.contains(child))
        .filter(|child| places.get(child).is_some_and(|place| is_popup(place, roots.area)))
        .collect();
    let popups = takes_input(link, popups)?;

    let ids: Vec<XWindow> = clients.iter().chain(&popups).copied().collect();
    let properties = read_properties(link, &ids)?;
    let pids = read_pids(link, &ids)?;
    let mask = link.x.setup().resource_id_mask;
    let host = rustix::system::uname().nodename().to_bytes().to_vec();

    let mut windows: Vec<Listed> = ids
        .iter()
        .filter_map(|&id| {
            let place = places.get(&id)?;
            let properties = properties.get(&id)?;
            let top = tops.get(&id).copied().unwrap_or(id);
            let top_place = places.get(&top).unwrap_or(place);
            let pid = pids.get(&(id & !mask)).copied().or_else(|| properties.local_pid(&host));
            Some(Listed {
                window: describe(id, place, top_place, known.contains(&id), properties, pid),
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
    windows.sort_by_key(|listed| order.get(&listed.top).copied());
    for (z, listed) in (0..).zip(&mut windows) {
        listed.window.z = z;
    }
    mark_focused(link, &roots, &mut windows)?;
    find_parents(&mut windows, &properties);
    let shown = |child: &XWindow| places.get(child).filter(|place| place.viewable && place.shows_pixels);
    let stack = roots.children.iter().filter_map(|child| Some((*child, shown(child)?.outer()))).collect();
    Ok(Listing { windows, managed: roots.managed.is_some(), root: roots.area, stack })
}

/// Reads one child of the root that is in no listing, such as an invisible window that only takes input; `None` if
/// it is gone.
pub(in crate::x11) fn read_other(link: &Link, id: XWindow) -> Result<Option<Listed>, Trouble> {
    let places = read_places(link, &[id])?;
    let properties = read_properties(link, &[id])?;
    let pids = read_pids(link, &[id])?;
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

/// What the root says.
struct Roots {
    area: Rect,
    /// Lowest first.
    children: Vec<XWindow>,
    /// The window manager's list; `None` if there is no window manager, or one that keeps no list.
    managed: Option<Vec<XWindow>>,
    active: Option<XWindow>,
    input_focus: XWindow,
}

impl Roots {
    fn read(link: &Link) -> Result<Self, Trouble> {
        let (x, root, atoms) = (&link.x, link.root, &link.atoms);
        let property = |name| x.get_property(false, root, name, AtomEnum::ANY, 0, u32::MAX / 4);
        let tree = x.query_tree(root)?;
        let geometry = x.get_geometry(root)?;
        let stacking = property(atoms._NET_CLIENT_LIST_STACKING)?;
        let list = property(atoms._NET_CLIENT_LIST)?;
        let active = property(atoms._NET_ACTIVE_WINDOW)?;
        let check = property(atoms._NET_SUPPORTING_WM_CHECK)?;
        let focus = x.get_input_focus()?;

        let children = tree.reply()?.children;
        let geometry = geometry.reply()?;
        let area = Rect::new(0, 0, geometry.width.into(), geometry.height.into());
        let numbers = |reply: x11rb::protocol::xproto::GetPropertyReply| -> Option<Vec<u32>> {
            reply.value32().map(Iterator::collect)
        };
        let stacking = numbers(stacking.reply()?);
        let list = stacking.or(numbers(list.reply()?));
        let active = numbers(active.reply()?).and_then(|ids| ids.first().copied()).filter(|&id| id != 0);
        let check = numbers(check.reply()?).and_then(|ids| ids.first().copied());
        let input_focus = focus.reply()?.focus;

        // A window manager that has died leaves its properties on the root, but not its own window.
        let alive = match check {
            None => false,
            Some(window) => {
                let name = atoms._NET_SUPPORTING_WM_CHECK;
                let own = x.get_property(false, window, name, AtomEnum::WINDOW, 0, 1)?.reply();
                unless_refused(own)?.and_then(numbers).is_some_and(|ids| ids.first() == Some(&window))
            }
        };
        let managed = if alive { list } else { None };
        Ok(Self { area, children, managed, active: active.filter(|_| alive), input_focus })
    }
}

fn read_places(link: &Link, ids: &[XWindow]) -> Result<HashMap<XWindow, Place>, Trouble> {
    let x = &link.x;
    let mut cookies = Vec::with_capacity(ids.len());
    for &id in ids {
        let attributes = x.get_window_attributes(id)?;
        let geometry = x.get_geometry(id)?;
        cookies.push((id, attributes, geometry, x.translate_coordinates(id, link.root, 0, 0)?));
    }
    let mut places = HashMap::with_capacity(ids.len());
    for (id, attributes, geometry, origin) in cookies {
        let attributes = unless_refused(attributes.reply())?;
        let geometry = unless_refused(geometry.reply())?;
        let origin = unless_refused(origin.reply())?;
        let (Some(attributes), Some(geometry), Some(origin)) = (attributes, geometry, origin) else {
            continue;
        };
        let area = Rect::new(
            origin.dst_x.into(),
            origin.dst_y.into(),
            geometry.width.into(),
            geometry.height.into(),
        );
        let place = Place {
            override_redirect: attributes.override_redirect,
            viewable: attributes.map_state == MapState::VIEWABLE,
            shows_pixels: attributes.class == WindowClass::INPUT_OUTPUT,
            area,
            border: geometry.border_width.into(),
        };
        places.insert(id, place);
    }
    Ok(places)
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

/// The child of the root that carries each client.
fn read_tops(link: &Link, clients: &[XWindow]) -> Result<HashMap<XWindow, XWindow>, Trouble> {
    let mut tops = HashMap::with_capacity(clients.len());
    let mut climbing: Vec<(XWindow, XWindow)> = clients.iter().map(|&client| (client, client)).collect();
    for _ in 0..=MAX_NESTING {
        let mut cookies = Vec::with_capacity(climbing.len());
        for (client, at) in climbing.drain(..) {
            cookies.push((client, at, link.x.query_tree(at)?));
        }
        for (client, at, tree) in cookies {
            match unless_refused(tree.reply())? {
                Some(tree) if tree.parent == link.root => {
                    tops.insert(client, at);
                }
                Some(tree) => climbing.push((client, tree.parent)),
                None => {}
            }
        }
        if climbing.is_empty() {
            break;
        }
    }
    Ok(tops)
}

/// What is no client and no frame is placed past the window manager, or is the window manager's own (a menu).
/// Helpers that clients keep off the screen or one pixel small are nothing that a person sees.
fn is_popup(place: &Place, desktop: Rect) -> bool {
    let visible = place.area.intersection(&desktop);
    place.viewable && place.shows_pixels && visible.is_some_and(|part| part.width > 1 && part.height > 1)
}

/// Leaves out what lets every click through: overlays that show something and are no part of any application.
fn takes_input(link: &Link, popups: Vec<XWindow>) -> Result<Vec<XWindow>, Trouble> {
    if link.x.extension_information(shape::X11_EXTENSION_NAME)?.is_none() {
        return Ok(popups);
    }
    let mut cookies = Vec::with_capacity(popups.len());
    for id in popups {
        cookies.push((id, link.x.shape_get_rectangles(id, shape::SK::INPUT)?));
    }
    let mut kept = Vec::with_capacity(cookies.len());
    for (id, cookie) in cookies {
        if unless_refused(cookie.reply())?.is_some_and(|shape| !shape.rectangles.is_empty()) {
            kept.push(id);
        }
    }
    Ok(kept)
}

fn read_properties(link: &Link, ids: &[XWindow]) -> Result<HashMap<XWindow, Properties>, Trouble> {
    let mut cookies = Vec::with_capacity(ids.len());
    for &id in ids {
        cookies.push((id, PropertyCookies::ask(link, id)?));
    }
    let mut properties = HashMap::with_capacity(ids.len());
    for (id, cookie) in cookies {
        if let Some(found) = cookie.read(&link.atoms)? {
            properties.insert(id, found);
        }
    }
    Ok(properties)
}

/// Process ids by client, as the server itself knows them from the sockets.
fn read_pids(link: &Link, ids: &[XWindow]) -> Result<HashMap<u32, u32>, Trouble> {
    if link.x.extension_information(res::X11_EXTENSION_NAME)?.is_none() {
        return Ok(HashMap::new());
    }
    let mask = link.x.setup().resource_id_mask;
    let clients: HashSet<u32> = ids.iter().map(|id| id & !mask).collect();
    let specs: Vec<res::ClientIdSpec> = clients
        .into_iter()
        .map(|client| res::ClientIdSpec { client, mask: res::ClientIdMask::LOCAL_CLIENT_PID })
        .collect();
    let reply = unless_refused(link.x.res_query_client_ids(&specs)?.reply())?;
    Ok(reply
        .into_iter()
        .flat_map(|reply| reply.ids)
        .filter_map(|id| Some((id.spec.client & !mask, *id.value.first()?)))
        .filter(|&(_, pid)| pid != 0)
        .collect())
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
fn mark_focused(link: &Link, roots: &Roots, windows: &mut [Listed]) -> Result<(), Trouble> {
    let carrier = |windows: &[Listed], id: XWindow| {
        windows.iter().position(|listed| listed.window.id.0 == u64::from(id) || listed.top == id)
    };
    let mut focused = carrier(windows, roots.input_focus)
        .filter(|&at| roots.active.is_none() || windows[at].window.kind == WindowKind::Popup)
        .or_else(|| roots.active.and_then(|active| carrier(windows, active)));
    if focused.is_none() && roots.active.is_none() {
        // The focus may be deep inside of a window. 0 and 1 mean nowhere and wherever the pointer is.
        let mut at = roots.input_focus;
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
