//! The tests.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deskhand_core::desktop::{Accessibility, ChangeKind, PortError, State, TreeNote};
use deskhand_core::geometry::Rect;
use deskhand_linux::accessibility::AtSpi;
use deskhand_linux::environment::SessionEnvironment;

use crate::fixture::{Eyes, Fixture, dynamic, named, names, with_role};

type Environment = Arc<SessionEnvironment>;
type Case = fn(Environment) -> Pin<Box<dyn Future<Output = ()> + Send>>;

pub(crate) fn all() -> Vec<(&'static str, Case)> {
    macro_rules! cases {
        ($($name:ident),* $(,)?) => { vec![$((stringify!($name), |environment| Box::pin($name(environment)))),*] };
    }
    cases![
        gtk3_shows_values_texts_states_and_selection,
        qt5_shows_values_texts_and_states,
        gtk4_lies_where_its_window_lies,
        gtk3_label_is_never_old,
        gtk3_name_of_a_button_by_its_label_is_never_old,
        gtk3_table_and_states_are_never_old,
        gtk4_label_is_never_old,
        qt5_label_is_never_old,
        gtk3_children_are_in_order,
        gtk3_replaced_children_are_there_at_once,
        gtk4_children_are_in_order,
        qt5_children_are_in_order,
        a_removed_element_is_gone,
        a_frozen_application_delays_nobody,
        a_modal_dialogue_counts_as_delivered,
        actions_have_their_effect_and_announce_it,
        a_window_without_a_tree_says_why,
        a_bus_that_never_answers_is_unavailable,
    ]
}

async fn gtk3_shows_values_texts_states_and_selection(environment: Environment) {
    let fixture = Fixture::start(&environment, "gtk3.py", "details 3").await;
    let eyes = Eyes::on(&environment);
    let nodes = eyes.whole(&fixture.window).await;
    assert!(named(&nodes, "check").states.has(State::Checked));
    assert!(named(&nodes, "row 2").states.has(State::Selected));
    assert!(!named(&nodes, "row 1").states.has(State::Selected));
    let shown = [with_role(&nodes, "text"), with_role(&nodes, "password text"), with_role(&nodes, "slider")];
    let [text, password, slider] =
        eyes.details(&fixture.window, &shown).await.try_into().expect("as many as asked for");
    let text = text.text.expect("a text");
    assert_eq!((text.content.as_str(), text.length), ("Grüße", 5));
    assert_eq!(password.text, None);
    assert_eq!(
        slider.value.map(|value| (value.current, value.minimum, value.maximum)),
        Some((42.0, 0.0, 100.0))
    );
    eyes.comes_into(&fixture.window, with_role(&nodes, "slider")).await;
}

async fn qt5_shows_values_texts_and_states(environment: Environment) {
    let fixture = Fixture::start(&environment, "qt5.py", "details qt").await;
    let eyes = Eyes::on(&environment);
    let nodes = eyes.whole(&fixture.window).await;
    assert!(named(&nodes, "check").states.has(State::Checked));
    let shown = [with_role(&nodes, "text"), with_role(&nodes, "password text"), with_role(&nodes, "slider")];
    let [text, password, slider] =
        eyes.details(&fixture.window, &shown).await.try_into().expect("as many as asked for");
    assert_eq!(text.text.map(|text| text.content).as_deref(), Some("Grüße"));
    assert_eq!(password.text, None);
    assert_eq!(slider.value.map(|value| value.current), Some(42.0));
    eyes.comes_into(&fixture.window, with_role(&nodes, "slider")).await;
}

async fn gtk4_lies_where_its_window_lies(environment: Environment) {
    let fixture = Fixture::start(&environment, "gtk4.py", "details 4").await;
    let eyes = Eyes::on(&environment);
    let nodes = eyes.whole(&fixture.window).await;
    let [window, label] = eyes
        .details(&fixture.window, &[&nodes[0], named(&nodes, "count 0")])
        .await
        .try_into()
        .expect("as many as asked for");
    let (window, label): (Rect, Rect) = (window.frame.expect("a frame"), label.frame.expect("a frame"));
    assert_eq!((window.x, window.y), (fixture.window.client.x, fixture.window.client.y));
    assert_eq!(window.intersection(&label), Some(label));
    assert!(fixture.window.frame.x > 0 || fixture.window.frame.y > 0, "a window at 0,0 proves nothing");
}

/// Changes something and reads at once, many times.
async fn never_old(
    environment: Environment,
    script: &str,
    times: usize,
    command: impl Fn(usize) -> String,
    expected: impl Fn(usize) -> String,
) {
    let mut fixture = Fixture::start(&environment, script, &format!("never old {script}")).await;
    let eyes = Eyes::on(&environment);
    eyes.whole(&fixture.window).await;
    for time in 1..=times {
        fixture.tell(&command(time)).await;
        let nodes = eyes.whole(&fixture.window).await;
        assert!(nodes.iter().any(|node| node.name == expected(time)), "{time}: {:?}", names(&nodes));
    }
}

async fn gtk3_label_is_never_old(environment: Environment) {
    never_old(environment, "gtk3.py", 1_000, |n| format!("label {n}"), |n| format!("count {n}")).await;
}

/// GTK announces the label's change only, not that of the button which is named by it.
async fn gtk3_name_of_a_button_by_its_label_is_never_old(environment: Environment) {
    let mut fixture = Fixture::start(&environment, "gtk3.py", "button by label").await;
    let eyes = Eyes::on(&environment);
    eyes.whole(&fixture.window).await;
    for time in 1..=100 {
        fixture.tell(&format!("inner {time}")).await;
        let nodes = eyes.whole(&fixture.window).await;
        let expected = format!("inner {time}");
        let button = nodes.iter().find(|node| node.role.ends_with("button") && node.name == expected);
        assert!(button.is_some(), "{time}: {:?}", names(&nodes));
    }
}

async fn gtk3_table_and_states_are_never_old(environment: Environment) {
    let mut fixture = Fixture::start(&environment, "gtk3.py", "table and states").await;
    let eyes = Eyes::on(&environment);
    eyes.whole(&fixture.window).await;
    for time in 10..110 {
        let on = time % 2 == 0;
        fixture.tell(&format!("row {time}")).await;
        fixture.tell(if on { "check on" } else { "check off" }).await;
        fixture.tell(if on { "hide on" } else { "hide off" }).await;
        let nodes = eyes.whole(&fixture.window).await;
        named(&nodes, &format!("row {time}"));
        assert_eq!(named(&nodes, "check").states.has(State::Checked), on);
        let button = nodes.iter().find(|node| node.role.ends_with("button") && node.name == "inner 0");
        assert_eq!(button.is_some_and(|button| button.states.has(State::Showing)), !on, "{time}");
    }
    for time in 200..220 {
        fixture.tell(&format!("append {time}")).await;
        named(&eyes.whole(&fixture.window).await, &format!("row {time}"));
    }
}

async fn gtk4_label_is_never_old(environment: Environment) {
    never_old(environment, "gtk4.py", 200, |n| format!("label {n}"), |n| format!("count {n}")).await;
}

async fn qt5_label_is_never_old(environment: Environment) {
    never_old(environment, "qt5.py", 200, |n| format!("label {n}"), |n| format!("count {n}")).await;
}

/// Adds, inserts and removes buttons, and reads after each step.
async fn in_order(environment: Environment, script: &str, times: usize) {
    let mut fixture = Fixture::start(&environment, script, &format!("in order {script}")).await;
    let eyes = Eyes::on(&environment);
    eyes.whole(&fixture.window).await;
    let mut expected: Vec<String> = Vec::new();
    for time in 0..times {
        match time % 7 {
            // The order of Qt's objects is that of their creation, wherever they lie.
            1 | 4 if script != "qt5.py" => {
                fixture.tell(&format!("insert {time}")).await;
                expected.insert(0, format!("dynamic {time}"));
            }
            0..=2 | 4 | 5 => {
                fixture.tell(&format!("add {time}")).await;
                expected.push(format!("dynamic {time}"));
            }
            _ => {
                fixture.tell("remove").await;
                expected.remove(0);
            }
        }
        if time % 3 != 0 {
            let nodes = eyes.whole(&fixture.window).await;
            assert_eq!(dynamic(&nodes), expected, "after step {time}");
        }
    }
}

async fn gtk3_children_are_in_order(environment: Environment) {
    in_order(environment, "gtk3.py", 140).await;
}

/// GTK's cache learns of a new child when the application is idle, which may be after the reading.
async fn gtk3_replaced_children_are_there_at_once(environment: Environment) {
    let mut fixture = Fixture::start(&environment, "gtk3.py", "replaced children").await;
    let eyes = Eyes::on(&environment);
    eyes.whole(&fixture.window).await;
    for time in 0..200 {
        fixture.tell(&format!("replace {time}")).await;
        let nodes = eyes.whole(&fixture.window).await;
        assert_eq!(dynamic(&nodes), [format!("dynamic {time}")], "after step {time}");
    }
}

async fn gtk4_children_are_in_order(environment: Environment) {
    in_order(environment, "gtk4.py", 70).await;
}

async fn qt5_children_are_in_order(environment: Environment) {
    in_order(environment, "qt5.py", 70).await;
}

async fn a_removed_element_is_gone(environment: Environment) {
    for script in ["gtk3.py", "gtk4.py", "qt5.py"] {
        let mut fixture = Fixture::start(&environment, script, &format!("removed {script}")).await;
        let eyes = Eyes::on(&environment);
        fixture.tell("add 1").await;
        let nodes = eyes.whole(&fixture.window).await;
        let button = named(&nodes, "dynamic 1");
        let probed = eyes.atspi.probe(&button.id).await.expect("it is there");
        assert_eq!((probed.name.as_str(), &probed.role), ("dynamic 1", &button.role));
        fixture.tell("remove").await;
        let probed = eyes.atspi.probe(&button.id).await;
        assert!(matches!(probed, Err(PortError::ElementGone)), "{script}: {probed:?}");
    }
}

async fn a_frozen_application_delays_nobody(environment: Environment) {
    let frozen = Fixture::start(&environment, "gtk3.py", "frozen").await;
    let mut healthy = Fixture::start(&environment, "gtk3.py", "healthy").await;
    let eyes = Eyes::on(&environment);
    let before = eyes.whole(&frozen.window).await;
    eyes.whole(&healthy.window).await;
    frozen.signal("STOP").await;

    let start = Instant::now();
    let slow = async { (eyes.tree(&frozen.window).await, start.elapsed()) };
    let quick = async {
        healthy.tell("label 1").await;
        let nodes = eyes.whole(&healthy.window).await;
        named(&nodes, "count 1");
        start.elapsed()
    };
    let ((tree, slow), quick) = tokio::join!(slow, quick);
    assert!(matches!(tree.notes.as_slice(), [TreeNote::NotResponding { app }] if !app.is_empty()));
    assert_eq!(tree.nodes.len(), before.len(), "what was known is shown");
    assert!(slow < Duration::from_secs(5), "{slow:?}");
    assert!(quick < Duration::from_secs(1), "{quick:?}");

    let start = Instant::now();
    let tree = eyes.tree(&frozen.window).await;
    assert!(matches!(tree.notes.as_slice(), [TreeNote::NotResponding { .. }]));
    let probed = eyes.atspi.probe(&before[1].id).await;
    assert!(matches!(probed, Err(PortError::AppNotResponding { .. })), "{probed:?}");
    assert!(start.elapsed() < Duration::from_secs(1), "a frozen application is remembered");

    // An application that is frozen when it is seen first.
    let fresh = Eyes::on(&environment);
    let start = Instant::now();
    let tree = fresh.tree(&frozen.window).await;
    assert!(matches!(tree.notes.as_slice(), [TreeNote::NotResponding { .. }]), "{:?}", tree.notes);
    assert!(start.elapsed() < Duration::from_secs(5));

    frozen.signal("CONT").await;
    eyes.whole_at_last(&frozen.window).await;
}

async fn a_modal_dialogue_counts_as_delivered(environment: Environment) {
    let fixture = Fixture::start(&environment, "gtk3.py", "with dialogue").await;
    let eyes = Eyes::on(&environment);
    let nodes = eyes.whole(&fixture.window).await;
    let start = Instant::now();
    let claim = eyes.atspi.do_action(&named(&nodes, "modal").id, 0).await;
    assert!(matches!(claim, Ok(true)), "{claim:?}");
    assert!(start.elapsed() < Duration::from_secs(3));
    eyes.whole_at_last(&fixture.window).await;
}

async fn actions_have_their_effect_and_announce_it(environment: Environment) {
    let fixture = Fixture::start(&environment, "gtk3.py", "actions").await;
    let eyes = Eyes::on(&environment);
    let nodes = eyes.whole(&fixture.window).await;
    let mut changes = eyes.atspi.changes().await.expect("it is well");
    let check = named(&nodes, "check");
    assert!(eyes.atspi.do_action(&check.id, 0).await.expect("it is well"));
    eyes.atspi.fence(&check.id.owner).await.expect("it is well");
    let mut seen = Vec::new();
    while let Ok(change) = changes.try_recv() {
        seen.push(change);
    }
    let unchecked = |kind: &ChangeKind| *kind == ChangeKind::State(State::Checked, false);
    assert!(seen.iter().any(|change| change.element == check.id && unchecked(&change.kind)), "{seen:?}");
    assert!(!eyes.atspi.probe(&check.id).await.expect("it is well").states.has(State::Checked));

    let (text, slider) = (with_role(&nodes, "text"), with_role(&nodes, "slider"));
    assert!(eyes.atspi.set_text(&text.id, "漢字").await.expect("it is well"));
    assert!(eyes.atspi.insert_text(&text.id, 1, "ü😀").await.expect("it is well"));
    assert!(eyes.atspi.set_number(&slider.id, 7.0).await.expect("it is well"));
    let [text, slider] =
        eyes.details(&fixture.window, &[text, slider]).await.try_into().expect("as many as asked for");
    assert_eq!(text.text.map(|text| text.content).as_deref(), Some("漢ü😀字"));
    assert_eq!(slider.value.map(|value| value.current), Some(7.0));

    let refused = eyes.atspi.set_text(&check.id, "x").await;
    assert!(matches!(refused, Err(PortError::NotSupported(_))), "{refused:?}");
}

async fn a_window_without_a_tree_says_why(environment: Environment) {
    let fixture = Fixture::start(&environment, "gtk3.py", "no tree").await;
    let eyes = Eyes::on(&environment);
    let mut stranger = fixture.window.clone();
    stranger.pid = Some(1);
    stranger.title = "nobody's window".into();
    stranger.client = Rect::new(3, 3, 17, 17);
    stranger.frame = stranger.client;
    let tree = eyes.tree(&stranger).await;
    assert!(tree.nodes.is_empty());
    assert!(matches!(tree.notes.as_slice(), [TreeNote::NoTree(_)]), "{:?}", tree.notes);

    // A process of another namespace: the title finds it.
    let mut elsewhere = fixture.window.clone();
    elsewhere.pid = Some(1);
    elsewhere.id.0 += 1;
    assert!(!eyes.whole(&elsewhere).await.is_empty());
}

async fn a_bus_that_never_answers_is_unavailable(environment: Environment) {
    let folder = tempfile::tempdir().expect("it is well");
    let socket = folder.path().join("bus");
    let _listener = tokio::net::UnixListener::bind(&socket).expect("it is well");
    let silent = SessionEnvironment {
        session_bus: Some(format!("unix:path={}", socket.display())),
        ..environment.as_ref().clone()
    };
    let atspi = AtSpi::new(Arc::new(Arc::new(silent)));
    let start = Instant::now();
    let answer = atspi.changes().await;
    assert!(matches!(&answer, Err(PortError::Unavailable { why, .. }) if why.contains("does not answer")));
    assert!(start.elapsed() < Duration::from_secs(8));
    assert!(!atspi.checks().await.is_empty());
}
