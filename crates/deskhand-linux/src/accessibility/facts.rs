//! Which application of the bus a window belongs to and why, for a bug report.

use tokio::time::Instant;

use deskhand_core::desktop::{Fact, Window};

use super::app::{App, ROUND_TRIP};
use super::frames::{self, NotFound};
use super::{AtSpi, process};

/// Applications of other processes that are told.
const OTHERS: usize = 20;

/// What is known of the application of `window`.
pub(super) async fn of(atspi: &AtSpi, window: &Window) -> Vec<Fact> {
    let mut facts = Vec::new();
    let bus = match atspi.bus().await {
        Ok(bus) => bus,
        Err(error) => return vec![Fact::new("bus", error.to_string())],
    };
    let until = Instant::now() + 2 * ROUND_TRIP;
    let apps = match frames::applications(&bus, until).await {
        Ok(apps) => apps,
        Err(error) => return vec![Fact::new("registry", error.to_string())],
    };
    facts.push(Fact::new("applications", apps.len().to_string()));
    let mut others = 0;
    for app in &apps {
        let pid = app.pid(&bus).await;
        let own = pid.is_some() && pid == window.pid;
        if !own {
            others += 1;
        }
        if own || others <= OTHERS {
            let about = app.about(&bus, until).await;
            let name = about.map_or_else(|_| "does not answer".to_owned(), |about| about.name.clone());
            let toolkit = app.toolkit_words().unwrap_or_else(|| "unknown".to_owned());
            let pid = pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
            let owner = &app.owner;
            let whose = if own { "own_application" } else { "other_application" };
            facts.push(Fact::new(whose, format!("{owner} {name}, pid {pid}, toolkit {toolkit}")));
        }
        if own {
            facts.extend(
                frames::explain(&bus, app, window, until)
                    .await
                    .into_iter()
                    .map(|said| Fact::new("top_level", said)),
            );
        }
    }
    facts.push(match atspi.found(&bus, window, until).await {
        Ok(found) => Fact::new("taken", taken(&found.app, &found.root.object)),
        Err(reason) => Fact::new("taken", format!("none: {}", why_none(&reason, window))),
    });
    facts
}

fn taken(app: &App, object: &str) -> String {
    let memory = app.memory();
    let loaded = if memory.loaded { "read in bulk" } else { "not read in bulk" };
    let frozen = if app.is_frozen() { ", does not answer" } else { "" };
    format!("{} {object}; {} objects known, {loaded}{frozen}", app.owner, memory.mirror.len())
}

fn why_none(reason: &NotFound, window: &Window) -> String {
    match reason {
        NotFound::NoApplication => {
            let library = window.pid.map(process::has_toolkit);
            match library {
                Some(true) => {
                    "no application of its process is on the bus, though it has a toolkit that could be"
                }
                Some(false) => {
                    "no application of its process is on the bus, and it has no toolkit that could be"
                }
                None => "its process is unknown, and no application has a window of that title and place",
            }
            .to_owned()
        }
        NotFound::NoFrame(app) => format!("{} publishes no window like it", app.owner),
        NotFound::Silent(app, silence) => format!("{} does not answer: {silence:?}", app.owner),
        NotFound::Registry(error) => error.to_string(),
    }
}
