//! `select_text` on a fake desktop.

use deskhand_testkit::transcript::Script;

const EDITOR: &str = r#"
window 1 "Editor" app=editor pid=100 800x600+100+50 focused
  text "Body" @10,140 400x200 text="one two one 漢😀" focused multi-line
  text "Deaf" @10,340 400x20 text="one" dead
  push button "Save" @10,10 80x30
"#;

#[tokio::test(start_paused = true)]
async fn texts_and_ranges_are_selected_and_read_back() {
    let transcript = Script::new(EDITOR)
        .run(
            r#"
get_accessibility_tree {"window_id": 1}
select_text {"window_id": 1, "element_index": 1, "text": "two"}
select_text {"window_id": 1, "element_index": 1, "text": "one"}
select_text {"window_id": 1, "element_index": 1, "text": "one", "occurrence": 2}
select_text {"window_id": 1, "element_index": 1, "text": "one", "occurrence": 3}
select_text {"window_id": 1, "element_index": 1, "range": {"start": 12, "end": 14}}
select_text {"window_id": 1, "element_index": 1, "range": {"start": 3, "end": 3}}
select_text {"window_id": 1, "element_index": 1, "range": {"start": 3, "end": 15}}
select_text {"window_id": 1, "element_index": 1, "text": "three"}
select_text {"window_id": 1, "element_index": 2, "text": "one", "delivery": "background"}
select_text {"window_id": 1, "element_index": 3, "text": "one"}
select_text {"window_id": 1, "element_index": 1}
"#,
        )
        .await;
    let expected = r#"
> select_text {"window_id": 1, "element_index": 1, "text": "two"}
confirmed by ax_text: 4..7 "two"
  * select text 4..7
> select_text {"window_id": 1, "element_index": 1, "text": "one"}
ambiguous: "one" occurs 2 times; say which with `occurrence`; nothing was selected
> select_text {"window_id": 1, "element_index": 1, "text": "one", "occurrence": 2}
confirmed by ax_text: 8..11 "one"
  * select text 8..11
> select_text {"window_id": 1, "element_index": 1, "text": "one", "occurrence": 3}
invalid_argument: argument `occurrence`: "one" occurs 2 times
> select_text {"window_id": 1, "element_index": 1, "range": {"start": 12, "end": 14}}
confirmed by ax_text: 12..14 "漢😀"
  * select text 12..14
> select_text {"window_id": 1, "element_index": 1, "range": {"start": 3, "end": 3}}
confirmed by ax_text: caret at 3
  * select text 3..3
> select_text {"window_id": 1, "element_index": 1, "range": {"start": 3, "end": 15}}
invalid_argument: argument `range`: the text has 14 characters
> select_text {"window_id": 1, "element_index": 1, "text": "three"}
element_not_found: "three" does not occur
> select_text {"window_id": 1, "element_index": 2, "text": "one", "delivery": "background"}
not_supported: [2] text "Deaf" does not let its text be selected in the background; use delivery "foreground"
> select_text {"window_id": 1, "element_index": 3, "text": "one"}
not_supported: [3] button "Save" holds no text that could be selected; nothing was done
> select_text {"window_id": 1, "element_index": 1}
invalid_argument: argument `text`: missing; expected `text` or `range`
"#;
    let selecting = transcript.find("> select_text").unwrap_or(0);
    assert_eq!(transcript[selecting..].trim(), expected.trim(), "\n--- transcript ---\n{transcript}");
}
