//! Drives the X11 adapter from a shell, one command for each argument, on the display of the environment:
//! `cargo run -p deskhand-linux --example x11_probe -- windows "click 10 20" "type Grüße"`.
//! Run with `guard` as its only argument it is the guard.

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deskhand_core::desktop::{
    Button, CaptureTarget, Chord, Click, Key, Keyboard, Modifier, Pointer, Screen, Stop, Tally, WindowId,
    Windows,
};
use deskhand_core::geometry::{Point, Rect};
use deskhand_linux::environment::{EnvironmentSource, SessionEnvironment};
use deskhand_linux::x11::{X11, guard};

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(guard::SUBCOMMAND) {
        let variables = std::env::vars_os().collect::<BTreeMap<_, _>>();
        return guard::run(&SessionEnvironment::from_variables(variables), &mut |_, _| {});
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(run()));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let environment = SessionEnvironment::from_variables(std::env::vars_os().collect::<BTreeMap<_, _>>());
    let source: Arc<dyn EnvironmentSource> = Arc::new(Arc::new(environment));
    let x11 = X11::new(source, std::env::current_exe()?);
    for command in std::env::args().skip(1) {
        let begun = Instant::now();
        let result = perform(&x11, &command).await;
        eprintln!("{:8.2} ms  {command}", begun.elapsed().as_secs_f64() * 1000.0);
        match result {
            Ok(text) => println!("{text}"),
            Err(error) => println!("error: {error}"),
        }
    }
    Ok(())
}

async fn perform(x11: &X11, command: &str) -> Result<String, Box<dyn Error>> {
    let (name, rest) = command.split_once(' ').unwrap_or((command, ""));
    let numbers: Vec<i32> = rest.split(' ').filter_map(|word| word.parse().ok()).collect();
    let number = |at: usize| numbers.get(at).copied().ok_or("a number is missing");
    let stop = Stop::new();
    Ok(match name {
        "windows" => {
            let windows = Windows::list(x11).await?;
            windows.iter().map(|window| format!("{window:?}\n")).collect()
        }
        "hit" => format!("{:?}", x11.hit_test(Point::new(number(0)?, number(1)?)).await?),
        "activate" => format!("{:?}", x11.activate(WindowId(u64::try_from(number(0)?)?)).await?),
        "changes" => {
            let mut changes = x11.changes().await?;
            tokio::time::sleep(Duration::from_millis(u64::try_from(number(0)?)?)).await;
            format!("{}", *changes.borrow_and_update())
        }
        "position" => format!("{:?}", x11.position().await?),
        "move" => format!("{:?}", x11.move_to(Point::new(number(0)?, number(1)?)).await?),
        "click" => {
            let click = Click {
                at: Point::new(number(0)?, number(1)?),
                button: if rest.contains("right") { Button::Right } else { Button::Left },
                count: if rest.contains("double") { 2 } else { 1 },
                modifiers: Vec::new(),
                hold: Duration::from_millis(30),
                apart: false,
            };
            format!("{:?}", x11.click(&click, &stop).await?)
        }
        "checks" => x11.checks().await.iter().map(|check| format!("{check:?}\n")).collect(),
        "displays" => format!("{:?}", x11.displays().await?),
        "window" | "region" => {
            let target = if name == "window" {
                CaptureTarget::Window(WindowId(u64::try_from(number(0)?)?))
            } else {
                let size =
                    |at| number(at).and_then(|size| u32::try_from(size).map_err(|_| "a negative size"));
                CaptureTarget::Region(Rect::new(number(0)?, number(1)?, size(2)?, size(3)?))
            };
            let begun = Instant::now();
            let capture = x11.capture(target.into(), &stop).await?;
            let took = begun.elapsed();
            let file = rest.split(' ').next_back().unwrap_or("");
            if file.contains('/') {
                let (width, height) = (capture.pixels.width, capture.pixels.height);
                let head = format!(
                    "P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n"
                );
                std::fs::write(file, [head.as_bytes(), &capture.pixels.rgba].concat())?;
            }
            format!("{took:?} {:?} {} stale={}", capture.pixels, capture.frame, capture.stale)
        }
        "type" => format!("{:?}", x11.type_text(rest, Duration::ZERO, &Tally::default(), &stop).await?),
        "slowly" => {
            let (delay, text) = rest.split_once(' ').ok_or("a delay in milliseconds and a text")?;
            format!(
                "{:?}",
                x11.type_text(text, Duration::from_millis(delay.parse()?), &Tally::default(), &stop).await?
            )
        }
        "press" => {
            let mut names: Vec<&str> = rest.split('+').collect();
            let key = names.pop().filter(|key| !key.is_empty()).map(|key| Key(key.to_owned()));
            let modifiers = names.into_iter().filter_map(|name| match name {
                "shift" => Some(Modifier::Shift),
                "ctrl" => Some(Modifier::Ctrl),
                "alt" => Some(Modifier::Alt),
                "super" => Some(Modifier::Super),
                _ => None,
            });
            let chord = Chord { modifiers: modifiers.collect(), key };
            format!("{:?}", x11.press(&chord, 1, Duration::from_millis(10), &stop).await?)
        }
        "sleep" => {
            tokio::time::sleep(Duration::from_millis(u64::try_from(number(0)?)?)).await;
            String::new()
        }
        _ => return Err(format!("no command {name}").into()),
    })
}
