//! Frames of elements: what a toolkit says, and where that is on the screen.

use tokio::time::Instant;

use deskhand_core::desktop::{ElementId, Window};
use deskhand_core::geometry::Rect;

use super::app::{App, Failure, Toolkit};
use super::bus::Bus;

/// AT-SPI's number of screen coordinates.
pub(super) const SCREEN: u32 = 0;
/// AT-SPI's number of window coordinates.
pub(super) const WINDOW: u32 = 1;

/// Device pixels for one logical pixel, as desktops offer them.
const SCALES: [f64; 7] = [1.0, 1.25, 1.5, 1.75, 2.0, 3.0, 4.0];
/// Pixels by which a frame may differ from the window that it is the frame of.
const TOLERANCE: f64 = 2.0;

/// Logical pixels of the widest border that a toolkit draws around a window itself.
const BORDER: f64 = 16.0;

/// Asks for the extents of `id`. `None` where it gives none that mean anything.
pub(super) async fn ask(
    bus: &Bus,
    app: &App,
    id: &ElementId,
    space: u32,
    until: Instant,
) -> Result<Option<Rect>, Failure> {
    let interface = "org.a11y.atspi.Component";
    let answer = app
        .ask_for::<((i32, i32, i32, i32),), _>(bus, &id.object, interface, "GetExtents", &(space,), until)
        .await;
    match answer {
        Ok(((x, y, width, height),)) => Ok(usable(x, y, width, height)),
        Err(Failure::Object(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Extents that mean something: GTK gives `INT_MIN` for what is not realised, others −1 or nothing.
fn usable(x: i32, y: i32, width: i32, height: i32) -> Option<Rect> {
    let nowhere = x == i32::MIN || y == i32::MIN || (x == -1 && y == -1 && width <= 1 && height <= 1);
    match (u32::try_from(width), u32::try_from(height)) {
        (Ok(width), Ok(height)) if !nowhere && width > 0 && height > 0 => Some(Rect { x, y, width, height }),
        _ => None,
    }
}

/// How the extents of one window's elements become screen pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Space {
    /// AT-SPI's number of the coordinates to ask for.
    pub kind: u32,
    /// Screen place of their origin.
    origin: (i32, i32),
    /// Device pixels for one of theirs.
    scale: f64,
}

impl Space {
    /// For the elements of `window`, whose frame object says that it has the extents `frame` (screen coordinates).
    pub(super) fn of(toolkit: Toolkit, window: &Window, frame: Option<Rect>) -> Self {
        let fitting = frame.and_then(|frame| fitting(&frame, window));
        let scale = fitting.map_or(1.0, |(scale, _)| scale);
        if toolkit.extents_start_at_window() {
            let (left, top) = fitting.map_or((window.client.x, window.client.y), |(_, corner)| corner);
            // A popup counts from where its owner's widget is, and from 0 in no other case.
            let (x, y) = frame.map_or((0, 0), |frame| (frame.x, frame.y));
            let from = |start: i32, own: i32| start.saturating_sub((f64::from(own) * scale).round() as i32);
            Self { kind: WINDOW, origin: (from(left, x), from(top, y)), scale }
        } else {
            Self { kind: SCREEN, origin: (0, 0), scale }
        }
    }

    /// For the elements of a popover of GTK 4 in `window`. They count from where the widget is that opened it, which has the
    /// extents `opener`, but lie in the popover's window. `frame` are the extents of the popover.
    pub(super) fn of_popover(window: &Window, frame: Option<Rect>, opener: Rect) -> Self {
        let fits = |scale: &&f64, frame: &Rect| {
            (f64::from(frame.width) * **scale - f64::from(window.client.width)).abs() <= TOLERANCE * **scale
        };
        let scale = frame.and_then(|frame| SCALES.iter().find(|scale| fits(scale, &frame)));
        let scale = scale.copied().unwrap_or(1.0);
        let from = |start: i32, own: i32| start.saturating_sub((f64::from(own) * scale).round() as i32);
        let origin = (from(window.client.x, opener.x), from(window.client.y, opener.y));
        Self { kind: WINDOW, origin, scale }
    }

    /// Screen pixels of `rect`.
    pub(super) fn to_screen(self, rect: Rect) -> Rect {
        let scaled = |value: i32| (f64::from(value) * self.scale).round() as i32; // saturates
        let (left, top) = (scaled(rect.x), scaled(rect.y));
        let size = |value: u32| (f64::from(value) * self.scale).round() as u32;
        Rect {
            x: left.saturating_add(self.origin.0),
            y: top.saturating_add(self.origin.1),
            width: size(rect.width),
            height: size(rect.height),
        }
    }

    /// For what gives device pixels already in a window whose other elements do not.
    pub(super) fn in_device_pixels(self) -> Self {
        Self { scale: 1.0, ..self }
    }

    /// The toolkit's coordinates of a screen point.
    pub(super) fn reverse(self, x: i32, y: i32) -> (i32, i32) {
        let unscaled =
            |value: i32, origin: i32| (f64::from(value.saturating_sub(origin)) / self.scale).floor() as i32;
        (unscaled(x, self.origin.0), unscaled(y, self.origin.1))
    }
}

/// The part of a window whose extents are all off by the same.
///
/// LibreOffice draws below a menu bar of GTK's, but what it draws counts from the top of the window. Its root pane fills
/// the container that GTK gives it, so both have the same size, and the places tell the difference.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shift {
    pub pane: ElementId,
    pub x: i32,
    pub y: i32,
}

impl Shift {
    /// From the root pane and what contains it.
    pub(super) fn between(pane: ElementId, own: Rect, container: Rect) -> Option<Self> {
        let same_size = own.width == container.width && own.height == container.height;
        let (x, y) = (container.x.saturating_sub(own.x), container.y.saturating_sub(own.y));
        (same_size && (x, y) != (0, 0)).then_some(Self { pane, x, y })
    }

    pub(super) fn apply(&self, rect: Rect) -> Rect {
        Rect { x: rect.x.saturating_add(self.x), y: rect.y.saturating_add(self.y), ..rect }
    }
}

/// How extents of one window's elements become screen pixels, quirks included.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub space: Space,
    pub shift: Option<Shift>,
}

/// Device pixels for one pixel of `frame`, which is the frame of `window` with or without its borders, and the screen place
/// of its corner. `None`: it is not.
fn fitting(frame: &Rect, window: &Window) -> Option<(f64, (i32, i32))> {
    let fits = |scale: f64, area: &Rect| {
        let near = |logical: u32, device: u32| {
            (f64::from(logical) * scale - f64::from(device)).abs() <= TOLERANCE * scale
        };
        near(frame.width, area.width) && near(frame.height, area.height)
    };
    let corner = |area: &Rect| (area.x, area.y);
    let whole = SCALES.into_iter().find_map(|scale| {
        let areas = [&window.client, &window.frame];
        areas.into_iter().find(|area| fits(scale, area)).map(|area| (scale, corner(area)))
    });
    whole.or_else(|| SCALES.into_iter().find_map(|scale| within_border(frame, &window.client, scale)))
}

/// GTK 4 draws an even border of its own around a window, in which it is resized, where nobody takes shadows off.
fn within_border(frame: &Rect, client: &Rect, scale: f64) -> Option<(f64, (i32, i32))> {
    let left_over = |device: u32, logical: u32| f64::from(device) - f64::from(logical) * scale;
    let across = left_over(client.width, frame.width);
    let down = left_over(client.height, frame.height);
    let is_border = (0.0..=2.0 * BORDER * scale).contains(&across) && (across - down).abs() <= TOLERANCE;
    let half = (across / 2.0).round() as i32;
    is_border.then(|| (scale, (client.x.saturating_add(half), client.y.saturating_add(half))))
}

#[cfg(test)]
mod tests {
    use deskhand_core::desktop::{WindowId, WindowKind};

    use super::*;

    /// A window with a title bar of 19 and borders of 1 pixel.
    fn window(client: Rect) -> Window {
        Window {
            id: WindowId(1),
            pid: None,
            app: String::new(),
            title: String::new(),
            frame: Rect::new(client.x - 1, client.y - 20, client.width + 2, client.height + 21),
            client,
            focused: false,
            minimized: false,
            maximized: false,
            fullscreen: false,
            z: 0,
            kind: WindowKind::Normal,
            parent: None,
        }
    }

    #[test]
    fn extents_that_mean_nothing_are_none() {
        assert_eq!(usable(i32::MIN, i32::MIN, 10, 10), None);
        assert_eq!(usable(-1, -1, 1, 1), None);
        assert_eq!(usable(0, 0, 0, 5), None);
        assert_eq!(usable(0, 0, -1, -1), None);
        assert_eq!(usable(-1, -1, 40, 20), Some(Rect::new(-1, -1, 40, 20)));
        assert_eq!(usable(-300, 5, 40, 20), Some(Rect::new(-300, 5, 40, 20)));
    }

    #[test]
    fn gtk_3_with_borders_is_taken_as_it_is() {
        let window = window(Rect::new(76, 307, 640, 480));
        let space = Space::of(Toolkit::Gtk3, &window, Some(window.frame));
        let button = Rect::new(115, 307, 41, 25);
        assert_eq!(space.to_screen(button), button);
        assert_eq!(space.reverse(115, 307), (115, 307));
    }

    #[test]
    fn gtk_4_starts_at_the_window() {
        let window = window(Rect::new(300, 200, 355, 486));
        let space = Space::of(Toolkit::Gtk4, &window, Some(Rect::new(0, 0, 355, 486)));
        assert_eq!(space.kind, WINDOW);
        assert_eq!(space.to_screen(Rect::new(10, 20, 30, 40)), Rect::new(310, 220, 30, 40));
        assert_eq!(space.reverse(310, 220), (10, 20));
    }

    #[test]
    fn gtk_4_draws_its_own_border_or_shadow() {
        let mut window = window(Rect::new(457, 164, 365, 496));
        window.frame = window.client;
        let space = Space::of(Toolkit::Gtk4, &window, Some(Rect::new(0, 0, 355, 486)));
        assert_eq!(space.to_screen(Rect::new(10, 20, 30, 40)), Rect::new(472, 189, 30, 40));
        let doubled = Rect::new(100, 100, 730, 992);
        let double = Window { client: doubled, frame: doubled, ..window.clone() };
        let space = Space::of(Toolkit::Gtk4, &double, Some(Rect::new(0, 0, 355, 486)));
        assert_eq!(space.to_screen(Rect::new(10, 20, 30, 40)), Rect::new(130, 150, 60, 80));
        let shadowed = Window { frame: Rect::new(483, 187, 300, 400), ..window };
        let space = Space::of(Toolkit::Gtk4, &shadowed, Some(Rect::new(0, 0, 300, 400)));
        assert_eq!(space.to_screen(Rect::new(10, 20, 30, 40)), Rect::new(493, 207, 30, 40));
    }

    #[test]
    fn a_menu_of_gtk_4_counts_from_the_widget_that_opened_it() {
        let menu = Window { kind: WindowKind::Popup, ..window(Rect::new(636, 276, 170, 211)) };
        let space = Space::of(Toolkit::Gtk4, &menu, Some(Rect::new(9, 17, 170, 211)));
        assert_eq!(space.to_screen(Rect::new(30, 25, 128, 30)), Rect::new(657, 284, 128, 30));
    }

    /// Measured: a combo box at 0,186 in its window, its list at 0,192 with a shadow, an entry at 12,211.
    #[test]
    fn a_popover_counts_from_its_opener() {
        let window = window(Rect::new(447, 345, 386, 126));
        let popover = Some(Rect::new(0, 192, 386, 120));
        let space = Space::of_popover(&window, popover, Rect::new(0, 186, 380, 34));
        assert_eq!(space.to_screen(Rect::new(12, 211, 25, 16)), Rect::new(459, 370, 25, 16));
        assert_eq!(space.reverse(459, 370), (12, 211));
    }

    #[test]
    fn logical_pixels_become_device_pixels() {
        for (scale, client) in [(2.0, Rect::new(200, 100, 800, 600)), (1.5, Rect::new(150, 75, 600, 450))] {
            let window = window(client);
            let logical = Rect::new(100, 50, 400, 300);
            let space = Space::of(Toolkit::Gtk3, &window, Some(logical));
            assert_eq!(space.scale, scale);
            assert_eq!(space.to_screen(logical), client);
            let inside = space.reverse(client.x + 7, client.y + 7);
            assert!(
                space
                    .to_screen(Rect::new(inside.0, inside.1, 1, 1))
                    .contains(deskhand_core::geometry::Point::new(client.x + 7, client.y + 7))
            );
        }
    }

    #[test]
    fn a_display_left_of_the_origin_stays_there() {
        let window = window(Rect::new(-1280, 40, 640, 480));
        let space = Space::of(Toolkit::Gtk4, &window, Some(Rect::new(0, 0, 640, 480)));
        assert_eq!(space.to_screen(Rect::new(5, 5, 10, 10)), Rect::new(-1275, 45, 10, 10));
    }

    #[test]
    fn a_pane_below_a_menu_bar_is_shifted() {
        let pane = ElementId { owner: ":1.1".into(), object: "/1".into() };
        let container = Rect::new(0, 44, 1920, 1036);
        let shift = Shift::between(pane.clone(), Rect::new(0, 19, 1920, 1036), container);
        let shift = shift.expect("they differ");
        assert_eq!(shift.apply(Rect::new(41, 157, 82, 17)), Rect::new(41, 182, 82, 17));
        assert_eq!(Shift::between(pane.clone(), container, container), None);
        assert_eq!(Shift::between(pane, Rect::new(0, 19, 100, 100), container), None, "another thing");
    }

    #[test]
    fn a_frame_of_unknown_size_is_not_scaled() {
        let window = window(Rect::new(10, 10, 640, 480));
        for frame in [None, Some(Rect::new(0, 0, 333, 100))] {
            assert_eq!(Space::of(Toolkit::Qt, &window, frame).scale, 1.0);
        }
    }

    #[test]
    fn absurd_numbers_do_not_overflow() {
        let window = window(Rect::new(100, 100, 640, 480));
        let space = Space::of(Toolkit::Gtk4, &window, None);
        let far = space.to_screen(Rect::new(i32::MAX, i32::MIN + 1, u32::MAX, u32::MAX));
        assert_eq!((far.x, far.width), (i32::MAX, u32::MAX));
    }
}
