//! The clipboard's tools on a fake desktop.

use deskhand_core::Code;
use deskhand_core::desktop::Selection;
use deskhand_testkit::transcript::Script;

fn script() -> Script {
    Script::new("window 1 \"Editor\" app=editor pid=100 800x600+100+50 focused")
}

#[tokio::test]
async fn what_is_written_is_read_back() {
    let transcript = script()
        .run(
            r#"
clipboard_read {}
clipboard_write {"text": "Grüße"}
clipboard_read {}
clipboard_read {"mime": "image/png"}
clipboard_read {"selection": "primary"}
clipboard_write {"data": "AAEC", "mime": "application/x-thing", "selection": "primary"}
clipboard_read {"mime": "application/x-thing", "selection": "primary"}
"#,
        )
        .await;
    let expected = r#"
> clipboard_read {}
the clipboard is empty
> clipboard_write {"text": "Grüße"}
confirmed: text/plain, 7 bytes; volatile: it is lost when deskhand ends, as no clipboard manager runs
  * copy text/plain 7 bytes
> clipboard_read {}
text/plain, 7 bytes: "Grüße"
formats: "text/plain"
> clipboard_read {"mime": "image/png"}
not there as image/png; there as: "text/plain"
> clipboard_read {"selection": "primary"}
the clipboard is empty
> clipboard_write {"data": "AAEC", "mime": "application/x-thing", "selection": "primary"}
confirmed: application/x-thing, 3 bytes; volatile: it is lost when deskhand ends, as no clipboard manager runs
  * copy application/x-thing 3 bytes
> clipboard_read {"mime": "application/x-thing", "selection": "primary"}
application/x-thing, 3 bytes
formats: "application/x-thing"
"#;
    assert_eq!(transcript.trim(), expected.trim(), "\n--- transcript ---\n{transcript}");
}

#[tokio::test]
async fn long_texts_are_cut_and_say_so() {
    let script = script();
    script.desktop.copy(Selection::Clipboard, "text/plain", "äbcdef".as_bytes());
    let answer = script.call(r#"clipboard_read {"max_characters": 3}"#).await.unwrap();
    assert_eq!(answer.structured["text"], "äbc");
    assert_eq!(answer.structured["characters"], 6);
    assert!(answer.text.contains(r#""äbc"… (3 of 6 characters"#), "{}", answer.text);
}

#[tokio::test]
async fn a_picture_is_a_picture() {
    let script = script();
    script.desktop.copy(Selection::Clipboard, "image/png", &[1, 2, 3]);
    let answer = script.call(r#"clipboard_read {"mime": "image/png"}"#).await.unwrap();
    assert_eq!((answer.images[0].mime, answer.images[0].bytes.as_slice()), ("image/png", &[1, 2, 3][..]));
    assert!(answer.structured.get("data").is_none());
}

#[tokio::test]
async fn what_is_too_large_is_an_error_that_says_how_large() {
    let script = script();
    script.desktop.copy(Selection::Clipboard, "text/plain", &vec![b'x'; 17 << 20]);
    let error = script.call("clipboard_read {}").await.unwrap_err();
    assert_eq!(error.code, Code::LimitExceeded);
    assert!(error.message.contains("17825792"), "{}", error.message);
    script.desktop.copy(Selection::Clipboard, "application/x-thing", &vec![0; 1 << 20]);
    let error = script.call(r#"clipboard_read {"mime": "application/x-thing"}"#).await.unwrap_err();
    assert!(error.message.contains("out_file"), "{}", error.message);
}

#[tokio::test]
async fn a_clipboard_that_is_taken_back_is_not_confirmed() {
    let script = script();
    script.desktop.keep_clipboard();
    script.desktop.copy(Selection::Clipboard, "text/plain", b"theirs");
    script.desktop.defend_clipboard();
    let answer = script.call(r#"clipboard_write {"text": "ours"}"#).await.unwrap();
    assert_eq!(answer.structured["effect"], "suspected_noop");
    assert_eq!(answer.structured["volatile"], false);
}

#[tokio::test]
async fn an_owner_that_does_not_answer_is_an_error_of_its_application() {
    let script = script();
    script.desktop.silence_clipboard();
    assert_eq!(script.call("clipboard_read {}").await.unwrap_err().code, Code::AppNotResponding);
    let answer = script.call(r#"clipboard_write {"text": "ours"}"#).await.unwrap();
    assert_eq!(answer.structured["effect"], "unverifiable");
}
