//! Everything the server says of a window, for a bug report.

use deskhand_core::desktop::{Fact, PortError, WindowId};
use x11rb::connection::{Connection, RequestConnection as _};
use x11rb::protocol::res::{self, ConnectionExt as _};
use x11rb::protocol::shape::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{Atom, AtomEnum, ConnectionExt as _, GetPropertyReply, Window as XWindow};

use super::listing::{Listed, Listing};
use crate::x11::connection::{Link, Trouble, unless_refused};

/// 32-bit units of a property that are read; icons are longer and tell nothing.
const PROPERTY_UNITS: u32 = 256;
/// Numbers of a property that are told.
const NUMBERS: usize = 24;
/// Properties that are told; applications set some dozens.
const PROPERTIES: usize = 80;
/// How far up the tree is followed.
const DEPTH: usize = 16;

/// What is known of window `id`.
///
/// # Errors
/// `WindowGone`.
pub(in crate::x11) fn read(link: &Link, listing: &Listing, id: WindowId) -> Result<Vec<Fact>, Trouble> {
    let listed = listing.find(id).ok_or(PortError::WindowGone(id))?;
    let window = XWindow::try_from(id.0).map_err(|_| PortError::UnknownWindow(id))?;
    let mut facts = vec![
        Fact::new("id", format!("{window:#x}")),
        Fact::new("window_manager", if listing.managed { "is there" } else { "none, or keeps no list" }),
        Fact::new("desktop", listing.root.to_string()),
        Fact::new("frame", listed.window.frame.to_string()),
        Fact::new("client", listed.window.client.to_string()),
        Fact::new("carried_by", format!("{:#x}, {}", listed.top, listed.top_area)),
        Fact::new("viewable", listed.viewable.to_string()),
        Fact::new("hidden_part", hidden_part(listing, listed)),
    ];
    attributes(link, window, &mut facts)?;
    facts.push(Fact::new("tree", path(link, window)?));
    process(link, window, listed, &mut facts)?;
    properties(link, window, &mut facts)?;
    Ok(facts)
}

fn hidden_part(listing: &Listing, listed: &Listed) -> String {
    let parts: Vec<_> =
        listing.hidden_part(listed.top, listed.top_area).iter().map(ToString::to_string).collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join("; ") }
}

fn attributes(link: &Link, window: XWindow, facts: &mut Vec<Fact>) -> Result<(), Trouble> {
    let attributes = link.x.get_window_attributes(window)?;
    let geometry = link.x.get_geometry(window)?;
    let has_shape = link.x.extension_information(shape::X11_EXTENSION_NAME)?.is_some();
    if let Some(said) = unless_refused(attributes.reply())? {
        let (state, class) = (said.map_state, said.class);
        let passes = if said.override_redirect { "past the window manager" } else { "managed" };
        facts.push(Fact::new(
            "attributes",
            format!("{state:?}, {class:?}, {passes}, visual {:#x}", said.visual),
        ));
    }
    if let Some(said) = unless_refused(geometry.reply())? {
        let place = format!("{}x{} at {},{} of its parent", said.width, said.height, said.x, said.y);
        facts.push(Fact::new(
            "geometry",
            format!("{place}, border {}, depth {}", said.border_width, said.depth),
        ));
    }
    if has_shape
        && let Some(said) = unless_refused(link.x.shape_query_extents(window)?.reply())?
        && said.bounding_shaped
    {
        let (width, height) = (said.bounding_shape_extents_width, said.bounding_shape_extents_height);
        facts.push(Fact::new("shape", format!("{width}x{height}")));
    }
    Ok(())
}

/// The windows from this one up to the root, and how many it has in it.
fn path(link: &Link, window: XWindow) -> Result<String, Trouble> {
    let mut path = format!("{window:#x}");
    let mut at = window;
    let mut inside = None;
    for _ in 0..DEPTH {
        let Some(tree) = unless_refused(link.x.query_tree(at)?.reply())? else { break };
        inside.get_or_insert(tree.children.len());
        if tree.parent == x11rb::NONE {
            break;
        }
        at = tree.parent;
        path += &format!(" in {at:#x}{}", if at == link.root { " (root)" } else { "" });
    }
    Ok(format!("{path}; {} windows in it", inside.unwrap_or(0)))
}

/// Where the number of its process comes from.
fn process(link: &Link, window: XWindow, listed: &Listed, facts: &mut Vec<Fact>) -> Result<(), Trouble> {
    let base = window & !link.x.setup().resource_id_mask;
    let from_server = if link.x.extension_information(res::X11_EXTENSION_NAME)?.is_some() {
        let spec = res::ClientIdSpec { client: base, mask: res::ClientIdMask::LOCAL_CLIENT_PID };
        let reply = unless_refused(link.x.res_query_client_ids(&[spec])?.reply())?;
        reply.and_then(|reply| reply.ids.first().and_then(|id| id.value.first().copied()))
    } else {
        None
    };
    let words = |pid: Option<u32>| pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
    facts.push(Fact::new("client_base", format!("{base:#x}")));
    facts.push(Fact::new("pid_by_xres", words(from_server)));
    facts.push(Fact::new("pid_taken", words(listed.window.pid)));
    facts.push(Fact::new("this_machine", rustix::system::uname().nodename().to_string_lossy()));
    Ok(())
}

fn properties(link: &Link, window: XWindow, facts: &mut Vec<Fact>) -> Result<(), Trouble> {
    let Some(list) = unless_refused(link.x.list_properties(window)?.reply())? else { return Ok(()) };
    let mut asked = Vec::new();
    for atom in list.atoms.into_iter().take(PROPERTIES) {
        let value = link.x.get_property(false, window, atom, AtomEnum::ANY, 0, PROPERTY_UNITS)?;
        asked.push((atom, link.x.get_atom_name(atom)?, value));
    }
    for (atom, name, value) in asked {
        let name = unless_refused(name.reply())?;
        let name =
            name.map_or_else(|| atom.to_string(), |name| String::from_utf8_lossy(&name.name).into_owned());
        if let Some(value) = unless_refused(value.reply())? {
            facts.push(Fact::new(name, in_words(link, &value)?));
        }
    }
    Ok(())
}

fn in_words(link: &Link, property: &GetPropertyReply) -> Result<String, Trouble> {
    let rest = if property.bytes_after > 0 {
        format!(" … {} more bytes", property.bytes_after)
    } else {
        String::new()
    };
    if property.format == 8 {
        return Ok(format!("{}{rest}", String::from_utf8_lossy(&property.value)));
    }
    let numbers: Vec<u32> = match property.format {
        16 => property.value16().into_iter().flatten().map(u32::from).take(NUMBERS).collect(),
        _ => property.value32().into_iter().flatten().take(NUMBERS).collect(),
    };
    let words = if property.type_ == Atom::from(AtomEnum::ATOM) {
        let mut names = Vec::with_capacity(numbers.len());
        for &atom in &numbers {
            names.push(link.x.get_atom_name(atom)?);
        }
        let mut words = Vec::with_capacity(names.len());
        for name in names {
            let name = unless_refused(name.reply())?;
            words
                .push(name.map_or_else(String::new, |name| String::from_utf8_lossy(&name.name).into_owned()));
        }
        words
    } else if property.type_ == Atom::from(AtomEnum::WINDOW) {
        numbers.iter().map(|number| format!("{number:#x}")).collect()
    } else {
        numbers.iter().map(ToString::to_string).collect()
    };
    Ok(format!("{}{rest}", words.join(", ")))
}
