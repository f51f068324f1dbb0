//! Pixels as the server gives them, through memory that both share where that is possible.

use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::{fcntl_dupfd_cloexec, pread};
use tokio_util::sync::DropGuard;
use x11rb::connection::{Connection, RequestConnection as _};
use x11rb::protocol::shm::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{ConnectionExt as _, Drawable, ImageFormat};

use crate::x11::connection::{Link, Trouble, unless_refused};

/// All planes of the pixels.
const ALL_PLANES: u32 = u32::MAX;

/// The bytes of a part of a drawable, four for each pixel, and its depth.
pub(super) struct RawPixels {
    pub(super) bytes: Vec<u8>,
    pub(super) depth: u8,
}

/// A part of a drawable in its own coordinates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) x: i16,
    pub(super) y: i16,
    pub(super) width: u16,
    pub(super) height: u16,
}

impl Part {
    fn bytes(&self) -> usize {
        usize::from(self.width) * usize::from(self.height) * 4
    }
}

/// The memory that the server writes pixels into. It belongs to the one capture slot: the thread that owns it waits
/// for each reply before it asks for the next picture, so it is never written twice at once.
#[derive(Default)]
pub(super) struct Segment {
    shared: Option<Shared>,
    /// Sharing failed once (a display on another machine): it is not tried again.
    refused: bool,
}

struct Shared {
    id: shm::Seg,
    file: OwnedFd,
    size: usize,
}

impl Segment {
    /// Reads pixels. `None` if the server refused: the drawable has gone or has another size by now. `hold` is dropped
    /// once nothing changes these pixels any more, if there are any.
    pub(super) fn read(
        &mut self,
        link: &Link,
        drawable: Drawable,
        part: Part,
        hold: Option<DropGuard>,
    ) -> Result<Option<RawPixels>, Trouble> {
        if !self.refused && !self.make_room(link, part.bytes())? {
            self.refused = true;
            tracing::info!(
                "pixels cannot be shared with the display server; they come through the connection"
            );
        }
        match &self.shared {
            Some(shared) if !self.refused => read_shared(link, shared, drawable, part, hold),
            // All of them come with the answer.
            _ => read_image(link, drawable, part),
        }
    }

    /// Whether pixels are shared, as far as is known.
    pub(super) fn is_shared(&mut self, link: &Link) -> Result<bool, Trouble> {
        Ok(!self.refused && self.make_room(link, 4096)?)
    }

    fn make_room(&mut self, link: &Link, size: usize) -> Result<bool, Trouble> {
        if self.shared.as_ref().is_some_and(|shared| shared.size >= size) {
            return Ok(true);
        }
        if link.x.extension_information(shm::X11_EXTENSION_NAME)?.is_none() {
            return Ok(false);
        }
        if let Some(old) = self.shared.take() {
            link.x.shm_detach(old.id)?;
        }
        let Ok(file) = memfd_create("deskhand-pixels", MemfdFlags::CLOEXEC) else { return Ok(false) };
        let theirs = ftruncate(&file, size as u64).and_then(|()| fcntl_dupfd_cloexec(&file, 0));
        let Ok(theirs) = theirs else { return Ok(false) };
        let id = link.x.generate_id()?;
        let attached = link.x.shm_attach_fd(id, theirs, false)?.check();
        if unless_refused(attached)?.is_none() {
            return Ok(false);
        }
        self.shared = Some(Shared { id, file, size });
        Ok(true)
    }
}

fn read_shared(
    link: &Link,
    shared: &Shared,
    drawable: Drawable,
    part: Part,
    hold: Option<DropGuard>,
) -> Result<Option<RawPixels>, Trouble> {
    let format = u8::from(ImageFormat::Z_PIXMAP);
    let Part { x, y, width, height } = part;
    let cookie = link.x.shm_get_image(drawable, x, y, width, height, ALL_PLANES, format, shared.id, 0)?;
    let Some(reply) = unless_refused(cookie.reply())? else { return Ok(None) };
    drop(hold);
    // Read through the file and not through a mapping: one copy as well, and no page of it stays in our memory.
    let mut bytes = Vec::with_capacity(part.bytes());
    while bytes.len() < part.bytes() {
        let offset = bytes.len() as u64;
        let read = pread(&shared.file, rustix::buffer::spare_capacity(&mut bytes), offset);
        match read {
            Ok(0) => return Err(Trouble::Refused("the shared pixels broke off".to_owned())),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Trouble::Refused(format!("the shared pixels cannot be read: {error}"))),
        }
    }
    bytes.truncate(part.bytes());
    Ok(Some(RawPixels { bytes, depth: reply.depth }))
}

fn read_image(link: &Link, drawable: Drawable, part: Part) -> Result<Option<RawPixels>, Trouble> {
    let Part { x, y, width, height } = part;
    let cookie = link.x.get_image(ImageFormat::Z_PIXMAP, drawable, x, y, width, height, ALL_PLANES)?;
    let Some(reply) = unless_refused(cookie.reply())? else { return Ok(None) };
    let mut bytes = reply.data;
    bytes.truncate(part.bytes());
    Ok(Some(RawPixels { bytes, depth: reply.depth }))
}
