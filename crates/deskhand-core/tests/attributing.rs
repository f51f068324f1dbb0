//! What an action is said to have done, where other things change as well: on a fake desktop.

use std::time::Duration;

use deskhand_core::desktop::ElementId;
use deskhand_testkit::transcript::Script;

const CALCULATOR: &str = r#"
window 1 "Sums" app=sums pid=100 400x300+0+0 focused
  push button "Late" @10,10 80x30
  push button "Dead" @10,50 80x30
  label "0"
  toggle button "7" @10,90 80x30 springs changes=3
  toggle button "Bold" @10,130 80x30
  push button "Add" @10,170 80x30 changes=3
"#;

const LATE: &str = r#"click {"window_id": 1, "element_index": 1}"#;
const DEAD: &str = r#"click {"window_id": 1, "element_index": 2}"#;
const ADD: &str = r#"click {"window_id": 1, "element_index": 6}"#;
const KEY: &str = r#"press_key {"window_id": 1, "key": "F20"}"#;

async fn calculator() -> Script {
    let script = Script::new(CALCULATOR);
    script.run(r#"get_window_state {"window_id": 1}"#).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    script
}

#[tokio::test(start_paused = true)]
async fn the_late_effect_of_one_action_is_not_that_of_the_next() {
    for next in [KEY, DEAD] {
        let script = calculator().await;
        assert!(script.run(LATE).await.contains("unverifiable by ax_action; no change was seen"));
        let desktop = script.desktop.clone();
        let late = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            desktop.rename_element(1, 3, "42");
        });
        let transcript = script.run(next).await;
        assert!(
            transcript.contains("unverifiable") && transcript.contains("[3] name changed"),
            "{transcript}"
        );
        assert!(transcript.contains("that may be the effect of the action before"), "{transcript}");
        late.await.unwrap();
        // What is not a moment ago is over.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let transcript = script.run(ADD).await;
        assert!(transcript.contains("confirmed by ax_action: [3] name changed"), "{transcript}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_state_of_the_element_itself_is_evidence_at_any_time() {
    let script = calculator().await;
    let transcript = script.run(&format!("{DEAD}\nclick {{\"window_id\": 1, \"element_index\": 5}}")).await;
    assert!(transcript.contains("confirmed by ax_action: unchecked → checked"), "{transcript}");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_springs_back_is_pressed_each_time() {
    let script = calculator().await;
    let click = r#"click {"window_id": 1, "element_index": 4}"#;
    let transcript = script.run(&[click; 4].join("\n")).await;
    assert_eq!(transcript.matches("* use toggle button \"7\"").count(), 4, "{transcript}");
    assert_eq!(transcript.matches("confirmed by ax_action").count(), 4, "{transcript}");
    // A toggle that stays is no key.
    let click = r#"click {"window_id": 1, "element_index": 5}"#;
    let transcript = script.run(&[click; 2].join("\n")).await;
    assert!(transcript.contains(": checked → unchecked"), "{transcript}");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_springs_back_is_no_evidence_for_the_next_click() {
    let script = calculator().await;
    let transcript =
        script.run(&[r#"click {"window_id": 1, "element_index": 4}"#, LATE, DEAD].join("\n")).await;
    assert_eq!(transcript.matches("no change was seen").count(), 2, "{transcript}");
}

#[tokio::test(start_paused = true)]
async fn a_clock_is_no_evidence_for_the_first_action_either() {
    let script = Script::new(CALCULATOR);
    let clock = script.desktop.clone();
    let ticking = tokio::spawn(async move {
        for tick in 0..100 {
            clock.rename_element(1, 3, &format!("tick {tick}"));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    for _ in 0..5 {
        let transcript = script.run(r#"click {"window_id": 1, "query": {"name": "Dead"}}"#).await;
        assert!(transcript.contains("unverifiable"), "{transcript}");
    }
    ticking.abort();
}

#[tokio::test(start_paused = true)]
async fn an_element_that_only_moves_is_not_restless() {
    let script = calculator().await;
    let moving = script.desktop.clone();
    let animation = tokio::spawn(async move {
        for _ in 0..60 {
            moving.move_element(1, 3);
            tokio::time::sleep(Duration::from_millis(17)).await;
        }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    animation.await.unwrap();
    let transcript = script.run(ADD).await;
    assert!(transcript.contains("confirmed by ax_action: [3] name changed"), "{transcript}");
}

#[tokio::test(start_paused = true)]
async fn a_page_that_replaces_its_clock_by_a_new_object_is_no_evidence_either() {
    let script = calculator().await;
    let clock = script.desktop.clone();
    let ticking = tokio::spawn(async move {
        for tick in 0..100u32 {
            let object = format!("tick/{tick}").into();
            clock.tell_gone(ElementId { owner: "app-100".into(), object });
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let transcript = script.run(DEAD).await;
    assert!(transcript.contains("unverifiable by ax_action; no change was seen"), "{transcript}");
    ticking.abort();
}

#[tokio::test(start_paused = true)]
async fn a_key_for_an_application_that_does_not_answer_is_said_to_wait() {
    let script = calculator().await;
    script.desktop.freeze(100, true);
    let transcript = script.run(KEY).await;
    assert!(transcript.contains("unverifiable by keyboard; the application does not answer"), "{transcript}");
}
