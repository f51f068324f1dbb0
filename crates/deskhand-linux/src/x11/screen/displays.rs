//! The monitors.

use deskhand_core::desktop::Display;
use deskhand_core::geometry::Rect;
use x11rb::connection::RequestConnection as _;
use x11rb::protocol::randr::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _};

use crate::x11::connection::{Link, Trouble, unless_refused};

/// Dots for each inch that toolkits take for a scale of 1.
const PLAIN_DPI: f64 = 96.0;

/// More of the resource database than this is not looked at; it is some kilobytes long.
const RESOURCE_UNITS: u32 = 65_536;

/// The monitors, in the server's order, the one with panels marked. Without RandR the desktop is one display.
///
/// X11 has no scale of its own. What toolkits go by is `Xft.dpi`, which holds for the whole desktop.
pub(in crate::x11) fn displays(link: &Link) -> Result<Vec<Display>, Trouble> {
    let resources = AtomEnum::RESOURCE_MANAGER;
    let resources = link.x.get_property(false, link.root, resources, AtomEnum::ANY, 0, RESOURCE_UNITS)?;
    let has_randr = link.x.extension_information(randr::X11_EXTENSION_NAME)?.is_some();
    let monitors = if has_randr {
        unless_refused(link.x.randr_get_monitors(link.root, true)?.reply())?.map(|reply| reply.monitors)
    } else {
        None
    };
    let monitors = monitors.unwrap_or_default();
    let scale = scale_of(&String::from_utf8_lossy(&resources.reply()?.value));
    let mut names = Vec::with_capacity(monitors.len());
    for monitor in &monitors {
        names.push(link.x.get_atom_name(monitor.name)?);
    }
    let mut displays = Vec::with_capacity(monitors.len().max(1));
    for ((place, monitor), name) in (0..).zip(&monitors).zip(names) {
        let name =
            unless_refused(name.reply())?.map(|reply| String::from_utf8_lossy(&reply.name).into_owned());
        displays.push(Display {
            display: place,
            name: name.unwrap_or_else(|| format!("monitor {place}")),
            frame: Rect::new(monitor.x.into(), monitor.y.into(), monitor.width.into(), monitor.height.into()),
            scale,
            primary: monitor.primary,
        });
    }
    if displays.is_empty() {
        let frame = link.root_area()?;
        displays.push(Display { display: 0, name: "screen".to_owned(), frame, scale, primary: true });
    } else if !displays.iter().any(|display| display.primary) {
        displays[0].primary = true;
    }
    Ok(displays)
}

fn scale_of(resources: &str) -> f64 {
    let dpi = resources.lines().find_map(|line| line.strip_prefix("Xft.dpi:")?.trim().parse::<f64>().ok());
    dpi.filter(|dpi| (PLAIN_DPI..=PLAIN_DPI * 8.0).contains(dpi)).map_or(1.0, |dpi| dpi / PLAIN_DPI)
}

#[cfg(test)]
mod tests {
    use super::scale_of;

    #[test]
    fn scale_comes_from_the_font_resolution() {
        assert!((scale_of("Xft.antialias: 1\nXft.dpi:\t192\n") - 2.0).abs() < f64::EPSILON);
        assert!((scale_of("Xft.dpi: 120") - 1.25).abs() < f64::EPSILON);
        for plain in ["", "Xft.dpi: 96", "Xft.dpi: nonsense", "Xft.dpi: 0", "Xft.dpi: NaN", "Xft.dpi: 1e9"] {
            assert!((scale_of(plain) - 1.0).abs() < f64::EPSILON, "{plain}");
        }
    }
}
