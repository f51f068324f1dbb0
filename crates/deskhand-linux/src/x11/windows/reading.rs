//! Asks the server about many windows in as few round trips as possible: all requests of a round are sent before the
//! first reply is read, also those whose answers may turn out not to be wanted.

use std::collections::{HashMap, HashSet};

use deskhand_core::geometry::Rect;
use x11rb::connection::{Connection, RequestConnection as _};
use x11rb::cookie::Cookie;
use x11rb::protocol::res::{self, ConnectionExt as _};
use x11rb::protocol::shape::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{
    AtomEnum, ConnectionExt as _, GetGeometryReply, GetPropertyReply, GetWindowAttributesReply, MapState,
    QueryTreeReply, TranslateCoordinatesReply, Window as XWindow, WindowClass,
};
use x11rb::rust_connection::RustConnection;

use super::frame::{Extents, visible_frame};
use super::properties::{Properties, PropertyCookies};
use crate::x11::connection::{Link, Trouble, unless_refused};

/// A window manager puts so many windows between the root and a client's window at most (frame, wrapper, client).
pub(super) const MAX_NESTING: usize = 4;

/// What is known of one window of the tree before its properties are read.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) override_redirect: bool,
    pub(super) viewable: bool,
    pub(super) shows_pixels: bool,
    /// Area in root coordinates, without the border.
    pub(super) area: Rect,
    pub(super) border: u32,
}

impl Place {
    pub(super) fn outer(&self) -> Rect {
        visible_frame(self.area, Extents::even(self.border), Extents::default())
    }
}

type Ask<'c, R> = Cookie<'c, RustConnection, R>;

/// What the root says.
pub(super) struct Roots {
    pub(super) area: Rect,
    /// Lowest first.
    pub(super) children: Vec<XWindow>,
    /// The window manager's list, if there is one. It may be that of a window manager that has died.
    pub(super) listed: Option<Vec<XWindow>>,
    /// The same holds for this.
    pub(super) active: Option<XWindow>,
    pub(super) input_focus: XWindow,
    /// The window manager's own window.
    check: Option<XWindow>,
}

/// The question whether the window manager lives.
pub(super) struct ManagerCheck<'c>(Option<(XWindow, Ask<'c, GetPropertyReply>)>);

impl Roots {
    pub(super) fn read(link: &Link) -> Result<Self, Trouble> {
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
        let stacking = numbers(&stacking.reply()?);
        let list = stacking.or(numbers(&list.reply()?));
        let active = first(&active.reply()?).filter(|&id| id != 0);
        let check = first(&check.reply()?);
        let input_focus = focus.reply()?.focus;
        Ok(Self { area, children, listed: list, active, input_focus, check })
    }

    /// Asks whether the window manager lives: one that has died leaves its properties on the root, but not its own window.
    pub(super) fn ask_manager<'c>(&self, link: &'c Link) -> Result<ManagerCheck<'c>, Trouble> {
        let Some(window) = self.check else { return Ok(ManagerCheck(None)) };
        let name = link.atoms._NET_SUPPORTING_WM_CHECK;
        let own = link.x.get_property(false, window, name, AtomEnum::WINDOW, 0, 1)?;
        Ok(ManagerCheck(Some((window, own))))
    }
}

impl ManagerCheck<'_> {
    pub(super) fn confirm(self) -> Result<bool, Trouble> {
        let Some((window, own)) = self.0 else { return Ok(false) };
        Ok(unless_refused(own.reply())?.and_then(|reply| first(&reply)) == Some(window))
    }
}

fn numbers(reply: &GetPropertyReply) -> Option<Vec<u32>> {
    reply.value32().map(Iterator::collect)
}

fn first(reply: &GetPropertyReply) -> Option<u32> {
    reply.value32()?.next()
}

/// What the server says of windows. Those that are gone are missing.
#[derive(Default)]
pub(super) struct Known {
    pub(super) places: HashMap<XWindow, Place>,
    /// The child of the root that carries each client.
    pub(super) tops: HashMap<XWindow, XWindow>,
    pub(super) properties: HashMap<XWindow, Properties>,
    /// Process ids by the base of the client's ids, as the server itself knows them from the sockets.
    pub(super) pids: HashMap<u32, u32>,
}

impl Known {
    /// Reads the places of `placed`, all about `clients` but their places, and the processes of both. `children` are those
    /// of the root.
    pub(super) fn read(
        link: &Link,
        children: &[XWindow],
        placed: &[XWindow],
        clients: &[XWindow],
    ) -> Result<Self, Trouble> {
        let places = placed.iter().map(|&id| PlaceCookies::ask(link, id)).collect::<Result<Vec<_>, _>>()?;
        let trees = ask_trees(link, clients.iter().map(|&client| (client, client)))?;
        let properties = ask_properties(link, clients)?;
        let pids = ask_pids(link, placed.iter().chain(clients).copied())?;
        Ok(Self {
            places: receive(places, PlaceCookies::read)?,
            tops: receive_tops(link, children, trees)?,
            properties: receive(properties, |cookies| cookies.read(&link.atoms))?,
            pids: receive_pids(link, pids)?,
        })
    }

    pub(super) fn extend(&mut self, more: Self) {
        self.places.extend(more.places);
        self.tops.extend(more.tops);
        self.properties.extend(more.properties);
        self.pids.extend(more.pids);
    }

    /// Reads the properties of popups, and leaves out what lets every click through: overlays that show something and are no
    /// part of any application.
    pub(super) fn read_popups(
        &mut self,
        link: &Link,
        mut popups: Vec<XWindow>,
    ) -> Result<Vec<XWindow>, Trouble> {
        let properties = ask_properties(link, &popups)?;
        if link.x.extension_information(shape::X11_EXTENSION_NAME)?.is_some() {
            let ask = |&id: &XWindow| Ok((id, link.x.shape_get_rectangles(id, shape::SK::INPUT)?));
            let shapes = popups.iter().map(ask).collect::<Result<Vec<_>, Trouble>>()?;
            popups.clear();
            for (id, shape) in shapes {
                if unless_refused(shape.reply())?.is_some_and(|shape| !shape.rectangles.is_empty()) {
                    popups.push(id);
                }
            }
        }
        self.properties.extend(receive(properties, |cookies| cookies.read(&link.atoms))?);
        Ok(popups)
    }
}

/// Reads the replies to questions about windows.
fn receive<C, T>(
    asked: Vec<(XWindow, C)>,
    read: impl Fn(C) -> Result<Option<T>, Trouble>,
) -> Result<HashMap<XWindow, T>, Trouble> {
    let mut known = HashMap::with_capacity(asked.len());
    for (id, cookies) in asked {
        if let Some(answer) = read(cookies)? {
            known.insert(id, answer);
        }
    }
    Ok(known)
}

/// Requests for a window's place that have been sent.
struct PlaceCookies<'c> {
    attributes: Ask<'c, GetWindowAttributesReply>,
    geometry: Ask<'c, GetGeometryReply>,
    origin: Ask<'c, TranslateCoordinatesReply>,
}

impl<'c> PlaceCookies<'c> {
    fn ask(link: &'c Link, id: XWindow) -> Result<(XWindow, Self), Trouble> {
        let attributes = link.x.get_window_attributes(id)?;
        let geometry = link.x.get_geometry(id)?;
        let origin = link.x.translate_coordinates(id, link.root, 0, 0)?;
        Ok((id, Self { attributes, geometry, origin }))
    }

    /// Reads the replies; `None` if the window is gone.
    fn read(self) -> Result<Option<Place>, Trouble> {
        let attributes = unless_refused(self.attributes.reply())?;
        let geometry = unless_refused(self.geometry.reply())?;
        let origin = unless_refused(self.origin.reply())?;
        let (Some(attributes), Some(geometry), Some(origin)) = (attributes, geometry, origin) else {
            return Ok(None);
        };
        let (width, height) = (geometry.width.into(), geometry.height.into());
        Ok(Some(Place {
            override_redirect: attributes.override_redirect,
            viewable: attributes.map_state == MapState::VIEWABLE,
            shows_pixels: attributes.class == WindowClass::INPUT_OUTPUT,
            area: Rect::new(origin.dst_x.into(), origin.dst_y.into(), width, height),
            border: geometry.border_width.into(),
        }))
    }
}

fn ask_properties<'c>(
    link: &'c Link,
    ids: &[XWindow],
) -> Result<Vec<(XWindow, PropertyCookies<'c>)>, Trouble> {
    ids.iter().map(|&id| Ok((id, PropertyCookies::ask(link, id)?))).collect()
}

/// Questions on the way from clients to the root: a client, the window above it that is asked, and the question.
type Climb<'c> = Vec<(XWindow, XWindow, Ask<'c, QueryTreeReply>)>;

fn ask_trees<'c>(
    link: &'c Link,
    climbing: impl Iterator<Item = (XWindow, XWindow)>,
) -> Result<Climb<'c>, Trouble> {
    climbing.map(|(client, at)| Ok((client, at, link.x.query_tree(at)?))).collect()
}

fn receive_tops<'c>(
    link: &'c Link,
    children: &[XWindow],
    mut asked: Climb<'c>,
) -> Result<HashMap<XWindow, XWindow>, Trouble> {
    let children: HashSet<XWindow> = children.iter().copied().collect();
    let mut tops = HashMap::with_capacity(asked.len());
    for _ in 0..=MAX_NESTING {
        let mut climbing = Vec::new();
        for (client, at, tree) in asked {
            match unless_refused(tree.reply())? {
                Some(tree) if tree.parent == link.root => {
                    tops.insert(client, at);
                }
                Some(tree) if children.contains(&tree.parent) => {
                    tops.insert(client, tree.parent);
                }
                Some(tree) => climbing.push((client, tree.parent)),
                None => {}
            }
        }
        if climbing.is_empty() {
            break;
        }
        asked = ask_trees(link, climbing.into_iter())?;
    }
    Ok(tops)
}

/// The server's ids of clients begin with these bits; its own windows have none of them.
fn client_base(link: &Link, id: XWindow) -> u32 {
    id & !link.x.setup().resource_id_mask
}

fn ask_pids(
    link: &Link,
    ids: impl Iterator<Item = XWindow>,
) -> Result<Option<Ask<'_, res::QueryClientIdsReply>>, Trouble> {
    if link.x.extension_information(res::X11_EXTENSION_NAME)?.is_none() {
        return Ok(None);
    }
    // Zero would stand for all clients.
    let clients: HashSet<u32> = ids.map(|id| client_base(link, id)).filter(|&base| base != 0).collect();
    let mask = res::ClientIdMask::LOCAL_CLIENT_PID;
    let specs: Vec<_> = clients.into_iter().map(|client| res::ClientIdSpec { client, mask }).collect();
    Ok(Some(link.x.res_query_client_ids(&specs)?))
}

fn receive_pids(
    link: &Link,
    asked: Option<Ask<'_, res::QueryClientIdsReply>>,
) -> Result<HashMap<u32, u32>, Trouble> {
    let Some(asked) = asked else { return Ok(HashMap::new()) };
    let ids = unless_refused(asked.reply())?.into_iter().flat_map(|reply| reply.ids);
    Ok(ids
        .filter_map(|id| Some((client_base(link, id.spec.client), *id.value.first()?)))
        .filter(|&(_, pid)| pid != 0)
        .collect())
}
