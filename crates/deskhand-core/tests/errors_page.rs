//! Holds `docs/errors.md` against the codes there are.

use std::fmt::Write;
use std::path::Path;

use deskhand_core::{Code, Recovery};

const HEAD: &str = "# Errors\n\n\
    A failed call answers `isError: true`, its message as text, and in `structuredContent` `code`, `message`, `recovery` and\n\
    sometimes `details`. `code` is stable; the message says what to do next.\n\n\
    | recovery | what was lost, and what to do |\n| --- | --- |\n\
    | `request` | this call only: correct or repeat it |\n\
    | `snapshot` | the reading: take a new snapshot |\n\
    | `handle` | a window, application or element: look it up again |\n\
    | `capture` | the capture back end: carry on without pictures, try later |\n\
    | `session` | this session: start a new one |\n\
    | `process` | the process: reconnect; all handles are gone; check what the last input did |\n\n\
    | code | recovery | meaning |\n| --- | --- | --- |\n";

fn recovery(of: Recovery) -> &'static str {
    match of {
        Recovery::Request => "request",
        Recovery::Snapshot => "snapshot",
        Recovery::Handle => "handle",
        Recovery::Capture => "capture",
        Recovery::Session => "session",
        Recovery::Process => "process",
    }
}

#[test]
fn the_page_lists_every_code() {
    let mut expected = HEAD.to_owned();
    for code in Code::ALL {
        let _ = writeln!(
            expected,
            "| `{}` | `{}` | {} |",
            code.name(),
            recovery(code.recovery()),
            code.meaning().trim()
        );
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors.md");
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(page == expected, "docs/errors.md should be:\n{expected}");
}
