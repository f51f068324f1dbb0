//! Windows that lie over everything and let everything through, and the pictures that the server paints them from.

use deskhand_core::desktop::PortError;
use deskhand_core::geometry::Rect;
use x11rb::connection::{Connection, RequestConnection as _};
use x11rb::protocol::shape::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{
    AtomEnum, ClipOrdering, Colormap, ColormapAlloc, ConnectionExt as _, CreateGCAux, CreateWindowAux,
    EventMask, ImageFormat, ImageOrder, Pixmap, PropMode, Rectangle, VisualClass, Visualid,
    Window as XWindow, WindowClass,
};
use x11rb::wrapper::ConnectionExt as _;

use super::canvas::Picture;
use crate::x11::connection::{Link, Trouble};

/// Bytes of a picture that one request carries: below what every server takes.
const PIECE: usize = 64 * 1024;

/// What panes are made of on this display.
pub(super) struct Panes {
    /// Visual and colours of windows with coverage, if the display has them.
    translucent: Option<(Visualid, Colormap)>,
    opaque: (u8, Visualid),
    /// The selection that a compositing manager owns.
    compositing: u32,
}

/// A window to be opened.
pub(super) struct Pane<'a> {
    pub(super) window: XWindow,
    /// In screen pixels.
    pub(super) area: Rect,
    pub(super) pixmap: Pixmap,
    /// Instance and class, each with a 0 behind it.
    pub(super) class: &'a [u8],
    pub(super) name: &'a str,
}

impl Panes {
    /// Finds out what the display has.
    ///
    /// # Errors
    /// `NotSupported`, and those of the connection.
    pub(super) fn prepare(link: &Link) -> Result<Self, Trouble> {
        if link.x.extension_information(shape::X11_EXTENSION_NAME)?.is_none() {
            // A window that takes clicks must not lie over others.
            return Err(PortError::NotSupported("the display server has no shaped windows".to_owned()).into());
        }
        let setup = link.x.setup();
        let found = setup.roots.iter().enumerate().find(|(_, root)| root.root == link.root);
        let (number, root) = found.ok_or(Trouble::Lost)?;
        if !matches!(root.root_depth, 24 | 32) || setup.image_byte_order != ImageOrder::LSB_FIRST {
            let why = "the display keeps its pixels in a form that is not supported".to_owned();
            return Err(PortError::NotSupported(why).into());
        }
        let visual = root
            .allowed_depths
            .iter()
            .filter(|depth| depth.depth == 32)
            .flat_map(|depth| &depth.visuals)
            .find(|visual| visual.class == VisualClass::TRUE_COLOR && visual.red_mask == 0x00ff_0000)
            .map(|visual| visual.visual_id);
        let translucent = match visual {
            Some(visual) => {
                let colours = link.x.generate_id()?;
                link.x.create_colormap(ColormapAlloc::NONE, colours, link.root, visual)?;
                Some((visual, colours))
            }
            None => None,
        };
        let compositing = format!("_NET_WM_CM_S{number}");
        let compositing = link.x.intern_atom(false, compositing.as_bytes())?.reply()?.atom;
        Ok(Self { translucent, opaque: (root.root_depth, root.root_visual), compositing })
    }

    /// Whether what lies below a pane can shine through it at this moment.
    pub(super) fn are_translucent(&self, link: &Link) -> Result<bool, Trouble> {
        let owner = || link.x.get_selection_owner(self.compositing)?.reply().map_err(Trouble::from);
        Ok(self.translucent.is_some() && owner()?.owner != x11rb::NONE)
    }

    fn depth(&self, translucent: bool) -> u8 {
        if translucent { 32 } else { self.opaque.0 }
    }

    /// Opens a window that shows `picture`, which its pixmap holds.
    pub(super) fn open(
        &self,
        link: &Link,
        pane: &Pane<'_>,
        picture: &Picture,
        translucent: bool,
    ) -> Result<(), Trouble> {
        let &Pane { window, area, pixmap, class, name } = pane;
        let colours = self.translucent.filter(|_| translucent);
        let visual = colours.map_or(self.opaque.1, |(visual, _)| visual);
        let mut attributes = CreateWindowAux::new()
            .override_redirect(1)
            .border_pixel(0)
            .background_pixmap(pixmap)
            .event_mask(EventMask::NO_EVENT);
        if let Some((_, colours)) = colours {
            attributes = attributes.colormap(colours);
        }
        let x = &link.x;
        x.create_window(
            self.depth(translucent),
            window,
            link.root,
            short(area.x),
            short(area.y),
            length(area.width),
            length(area.height),
            0,
            WindowClass::INPUT_OUTPUT,
            visual,
            &attributes,
        )?;
        // No click, no pointer and no drop ever reaches it.
        x.shape_rectangles(shape::SO::SET, shape::SK::INPUT, ClipOrdering::UNSORTED, window, 0, 0, &[])?;
        if !translucent {
            let runs: Vec<Rectangle> = picture.runs().iter().map(rectangle).collect();
            let (set, bounding) = (shape::SO::SET, shape::SK::BOUNDING);
            x.shape_rectangles(set, bounding, ClipOrdering::YX_BANDED, window, 0, 0, &runs)?;
        }
        let atoms = &link.atoms;
        // What is dragged about has no shadow and no animation with any compositor.
        let kind = [atoms._NET_WM_WINDOW_TYPE_DND];
        x.change_property32(PropMode::REPLACE, window, atoms._NET_WM_WINDOW_TYPE, AtomEnum::ATOM, &kind)?;
        x.change_property8(PropMode::REPLACE, window, AtomEnum::WM_CLASS, AtomEnum::STRING, class)?;
        let text = atoms.UTF8_STRING;
        x.change_property8(PropMode::REPLACE, window, atoms._NET_WM_NAME, text, name.as_bytes())?;
        x.map_window(window)?;
        Ok(())
    }

    /// Hands a picture to the server.
    pub(super) fn upload(
        &self,
        link: &Link,
        picture: &Picture,
        translucent: bool,
    ) -> Result<Pixmap, Trouble> {
        let pixmap = link.x.generate_id()?;
        let (width, height) = (length(picture.pixels.width), length(picture.pixels.height));
        link.x.create_pixmap(self.depth(translucent), pixmap, link.root, width, height)?;
        self.paint(link, pixmap, picture, translucent)?;
        Ok(pixmap)
    }

    /// Replaces what a pixmap of the same size holds.
    pub(super) fn paint(
        &self,
        link: &Link,
        pixmap: Pixmap,
        picture: &Picture,
        translucent: bool,
    ) -> Result<(), Trouble> {
        let x = &link.x;
        let context = x.generate_id()?;
        x.create_gc(context, pixmap, &CreateGCAux::new())?;
        let bytes = if translucent { picture.premultiplied() } else { picture.opaque() };
        let stride = picture.pixels.width.max(1) as usize * 4;
        let at_once = (PIECE / stride).max(1);
        let columns = length(picture.pixels.width);
        for (place, piece) in bytes.chunks(at_once * stride).enumerate() {
            let top = i16::try_from(place * at_once).unwrap_or(i16::MAX);
            let rows = u16::try_from(piece.len() / stride).unwrap_or(u16::MAX);
            let (format, depth) = (ImageFormat::Z_PIXMAP, self.depth(translucent));
            x.put_image(format, pixmap, context, columns, rows, 0, top, 0, depth, piece)?;
        }
        x.free_gc(context)?;
        Ok(())
    }
}

fn short(value: i32) -> i16 {
    i16::try_from(value).unwrap_or(if value < 0 { i16::MIN } else { i16::MAX })
}

fn length(value: u32) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

fn rectangle(area: &Rect) -> Rectangle {
    Rectangle { x: short(area.x), y: short(area.y), width: length(area.width), height: length(area.height) }
}
