//! Prints the element tree of a window and how long it took to read.
//!
//! `tree PID TITLE X Y WIDTH HEIGHT [ROUNDS]`: the window's process, its title and the place of its client area, as
//! `xwininfo` and `xdotool` tell them. The desktop is the one that the environment names.

use std::sync::Arc;
use std::time::{Duration, Instant};

use deskhand_core::desktop::{
    Accessibility, DetailsRequest, ElementId, State, Stop, TreeRequest, Window, WindowId, WindowKind,
};
use deskhand_core::geometry::Rect;
use deskhand_linux::accessibility::AtSpi;
use deskhand_linux::environment::SessionEnvironment;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [pid, title, x, y, width, height, rest @ ..] = arguments.as_slice() else {
        return Err("usage: tree PID TITLE X Y WIDTH HEIGHT [ROUNDS]".into());
    };
    let client = Rect::new(x.parse()?, y.parse()?, width.parse()?, height.parse()?);
    let window = Window {
        id: WindowId(1),
        pid: Some(pid.parse()?).filter(|pid| *pid != 0),
        app: String::new(),
        title: title.clone(),
        frame: client,
        client,
        focused: false,
        minimized: false,
        maximized: false,
        fullscreen: false,
        z: 0,
        kind: if rest.iter().any(|word| word == "popup") { WindowKind::Popup } else { WindowKind::Normal },
        parent: None,
    };
    let rounds: usize = rest.first().map_or(Ok(5), |rounds| rounds.parse())?;
    let environment = SessionEnvironment::from_variables(std::env::vars_os().collect());
    let atspi = AtSpi::new(Arc::new(Arc::new(environment)));
    let request = TreeRequest { max_nodes: 20_000, budget: Duration::from_secs(10), text_limit: 200 };
    let stop = Stop::new();

    let start = Instant::now();
    let receiver = atspi.changes().await?;
    eprintln!("connected in {:?}", start.elapsed());
    drop(receiver);
    for round in 0..rounds {
        let start = Instant::now();
        let tree = atspi.tree(&window, &request, &stop).await?;
        let read = start.elapsed();
        let shown: Vec<ElementId> = tree
            .nodes
            .iter()
            .filter(|node| node.states.has(State::Showing))
            .map(|node| node.id.clone())
            .take(300)
            .collect();
        let details = atspi
            .details(&window, &shown, DetailsRequest { text_limit: 200, frames: true, actions: false }, &stop)
            .await?;
        eprintln!(
            "round {round}: {} nodes in {read:?}, {} details until {:?} {:?} {:?}",
            tree.nodes.len(),
            details.len(),
            start.elapsed(),
            tree.toolkit,
            tree.notes
        );
        if round + 1 < rounds {
            continue;
        }
        let mut depth: Vec<usize> = Vec::new();
        for node in &tree.nodes {
            let level = node.parent.map_or(0, |parent| depth[parent as usize] + 1);
            depth.push(level);
            let known = shown.iter().position(|id| *id == node.id).and_then(|place| details[place].as_ref());
            let states: Vec<String> = [State::Checked, State::Selected, State::Focused, State::Showing]
                .into_iter()
                .filter(|state| node.states.has(*state))
                .map(|state| format!("{state:?}"))
                .collect();
            println!(
                "{}{} {:?} {} {}{}",
                "  ".repeat(level),
                node.role,
                node.name,
                states.join(","),
                known.map(|d| format!("{:?} {:?} {:?}", d.frame, d.text, d.value)).unwrap_or_default(),
                if node.unread_children > 0 { format!(" +{}", node.unread_children) } else { String::new() }
            );
        }
    }
    Ok(())
}
