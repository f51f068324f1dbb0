//! The other end: what the guard process does.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use x11rb::connection::{Connection, RequestConnection as _};
use x11rb::protocol::Event;
use x11rb::protocol::res::{self, ConnectionExt as _};

use super::owed::{HeldKey, Notice, Owed};
use crate::environment::SessionEnvironment;
use crate::x11::connection::{Link, Trouble};
use crate::x11::keyboard::xkb;
use crate::x11::{devices, guard::Pressed};

/// The server may still have requests of the dead connection to carry out; after this time it has.
const CLIENT_END_BOUND: Duration = Duration::from_millis(300);

/// Applications that have not read a key's symbol by then read what the key means after it was emptied.
const MAP_SETTLE: Duration = Duration::from_millis(200);

/// Runs the guard: reads what it is told until the end of its standard input, puts right what is owed, and returns.
/// `undo` gets name and argument of each announcement of another part of the program that was not settled.
///
/// `environment` names the display. Without a display, or when it ends, there is nothing left to put right but that.
pub fn run(environment: &SessionEnvironment, undo: &mut dyn FnMut(&str, &str)) -> ExitCode {
    close_inherited();
    // A session of its own, so that neither terminal nor shell end it. It fails for the leader of a process group,
    // which is as far from the terminal's signals.
    let _ = rustix::process::setsid();
    let mut watch = Watch { link: Link::open(environment).ok(), owed: Owed::default(), raw: HashMap::new() };
    watch.listen();
    let owed = std::mem::take(&mut watch.owed);
    if let Some(link) = &watch.link
        && !owed.is_settled()
        && let Err(error) = put_right(link, &owed, &mut watch.raw)
    {
        tracing::warn!(%error, "the guard could not put everything right");
    }
    for (name, argument) in &owed.undo {
        undo(name, argument);
    }
    ExitCode::SUCCESS
}

/// Closes descriptors that our parent had not marked: a pipe of somebody's that stays open here would keep its
/// reader waiting.
fn close_inherited() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let numbers: Vec<i32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|&number| number > 2)
        .collect();
    for number in numbers {
        // The folder's own descriptor was listed too and is closed by now.
        if std::fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_err() {
            continue;
        }
        // SAFETY: the guard has opened nothing yet, so no value in this process owns this open descriptor.
        unsafe { rustix::io::close(number) };
    }
}

struct Watch {
    link: Option<Link>,
    owed: Owed,
    /// How often each held key has been let go since we listen, the once by us included.
    raw: HashMap<(u16, u32), u32>,
}

impl Watch {
    /// Reads messages until their end. When the display ends first, goes on without it.
    fn listen(&mut self) {
        let input = std::io::stdin();
        let mut pending = Vec::new();
        loop {
            let socket = self.link.as_ref().map(|link| link.x.stream());
            let mut sources = vec![PollFd::new(&input, PollFlags::IN)];
            if let Some(socket) = socket {
                sources.push(PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN));
            }
            match poll(&mut sources, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
            let told = !sources[0].revents().is_empty();
            if let Some(link) = &self.link
                && count_releases(link, &mut self.raw).is_err()
            {
                self.link = None;
            }
            if !told {
                continue;
            }
            let mut buffer = [0; 4096];
            match rustix::io::read(&input, &mut buffer) {
                Ok(0) => return,
                Ok(length) => pending.extend_from_slice(&buffer[..length]),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
            while let Some(end) = pending.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = pending.drain(..=end).collect();
                let notice = std::str::from_utf8(&line[..end]).ok().and_then(Notice::parse);
                if let Some(notice) = notice {
                    self.heed(notice);
                }
            }
        }
    }

    fn heed(&mut self, notice: Notice) {
        if let Notice::Neutralising(held) = notice {
            if let Some(link) = &self.link {
                let _ = observe(link, held.device, true);
            }
            self.raw.remove(&(u16::from(held.device), u32::from(held.keycode)));
            self.owed.heed(notice);
            // That the other end has gone is seen at the end of our input.
            let _ = rustix::io::write(std::io::stdout(), b"+");
            return;
        }
        if notice == Notice::HeldRestored {
            for held in &self.owed.held {
                if let Some(link) = &self.link {
                    let _ = observe(link, held.device, false);
                }
            }
        }
        self.owed.heed(notice);
    }
}

/// Asks for the raw key releases of a device, which tell when a person lets go of a key that is up for the server.
fn observe(link: &Link, device: u8, wanted: bool) -> Result<(), Trouble> {
    devices::observe_releases(link, device, wanted)?;
    link.sync()
}

fn count_releases(link: &Link, raw: &mut HashMap<(u16, u32), u32>) -> Result<(), Trouble> {
    while let Some(event) = link.x.poll_for_event()? {
        if let Event::XinputRawKeyRelease(event) = event {
            *raw.entry((event.deviceid, event.detail)).or_default() += 1;
        }
    }
    Ok(())
}

fn put_right(link: &Link, owed: &Owed, raw: &mut HashMap<(u16, u32), u32>) -> Result<(), Trouble> {
    if let Some(client) = owed.client {
        await_end(link, client)?;
    }
    for pressed in &owed.pressed {
        match *pressed {
            Pressed::Key(keycode) => devices::release_key(link, keycode)?,
            Pressed::Button(button) => devices::release_button(link, button)?,
        }
    }
    let has_keyboard = xkb::begin(link).is_ok();
    if let Some(locks) = owed.locks
        && has_keyboard
    {
        xkb::lock(link, locks)?;
    }
    link.sync()?;
    if !owed.mapped.is_empty() && has_keyboard {
        std::thread::sleep(MAP_SETTLE);
        let empty: Vec<(u8, u32)> = owed.mapped.iter().map(|&keycode| (keycode, 0)).collect();
        xkb::assign(link, &empty)?;
    }
    link.sync()?;
    count_releases(link, raw)?;
    for held in &owed.held {
        if still_held(*held, raw) {
            devices::press_on(link, held.device, held.keycode)?;
        }
    }
    link.sync()
}

/// Let go once, by us: then whoever held the key still does.
fn still_held(held: HeldKey, raw: &HashMap<(u16, u32), u32>) -> bool {
    raw.get(&(u16::from(held.device), u32::from(held.keycode))).copied() == Some(1)
}

fn await_end(link: &Link, client: u32) -> Result<(), Trouble> {
    if link.x.extension_information(res::X11_EXTENSION_NAME)?.is_none() {
        std::thread::sleep(CLIENT_END_BOUND);
        return Ok(());
    }
    let end = Instant::now() + CLIENT_END_BOUND;
    while Instant::now() < end {
        let clients = link.x.res_query_clients()?.reply()?.clients;
        if !clients.iter().any(|other| other.resource_base == client) {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
