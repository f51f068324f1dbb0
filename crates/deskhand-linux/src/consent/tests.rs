#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use deskhand_core::tools::Surface;

use super::*;

/// Must turn up nowhere.
const CANARY: &str = "canary-5f1d";
const JOIN: &str = r#"{"machine_id": "m-1", "credential": "canary-5f1d", "joined_at": 17}"#;
const CONSENT: &str = r#"{"screen": true, "control": true, "by": {"name": "Ada"}}"#;

struct Home(tempfile::TempDir);

impl Home {
    fn joined() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        home.put(records::JOIN, JOIN);
        home.put(records::CONSENT, CONSENT);
        home
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn records(&self) -> Records {
        at(&[(home::OWN, self.path().to_str().unwrap())], None)
    }
}

fn at(variables: &[(&str, &str)], of_user: Option<&str>) -> Records {
    let variables = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let uid = rustix::process::geteuid().as_raw();
    Records { home: home::of(&variables, || of_user.map(PathBuf::from)), uid }
}

const ALL: Grant = Grant { joined: true, screen: true, control: true };

#[test]
fn sound_records_grant_what_they_say() {
    let home = Home::joined();
    assert_eq!(home.records().read().grant(), ALL);
    for (screen, control) in [(false, true), (true, false), (false, false)] {
        home.put(records::CONSENT, format!(r#"{{"screen":{screen},"control":{control}}}"#));
        assert_eq!(home.records().read().grant(), Grant { joined: true, screen, control });
    }
    fs::remove_file(home.path().join(records::CONSENT)).unwrap();
    assert_eq!(home.records().read().grant(), Grant::NOTHING);
    fs::remove_file(home.path().join(records::JOIN)).unwrap();
    assert_eq!(home.records().read().grant(), Grant::NOT_JOINED);
}

/// Makes something of the file at the path.
type Spoil = fn(&Path);

/// What is wrong with a file, whatever stands in it.
const SPOILED: &[(&str, Spoil, Trouble)] = &[
    (
        "a link to a sound file",
        |path| {
            let real = path.with_extension("real");
            fs::rename(path, &real).unwrap();
            symlink(real, path).unwrap();
        },
        Trouble::Link,
    ),
    (
        "a link that leads nowhere",
        |path| {
            fs::remove_file(path).unwrap();
            symlink("nowhere", path).unwrap();
        },
        Trouble::Link,
    ),
    (
        "a directory",
        |path| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        },
        Trouble::NotAFile,
    ),
    (
        "a FIFO that nobody writes to",
        |path| {
            fs::remove_file(path).unwrap();
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        },
        Trouble::NotAFile,
    ),
    (
        "a socket",
        |path| {
            fs::remove_file(path).unwrap();
            drop(std::os::unix::net::UnixListener::bind(path).unwrap());
        },
        Trouble::Unreadable,
    ),
    (
        "writable by the group",
        |path| {
            fs::set_permissions(path, fs::Permissions::from_mode(0o620)).unwrap();
        },
        Trouble::Shared,
    ),
    (
        "writable by others",
        |path| {
            fs::set_permissions(path, fs::Permissions::from_mode(0o602)).unwrap();
        },
        Trouble::Shared,
    ),
    (
        "64 KiB and a byte",
        |path| {
            let mut text = fs::read(path).unwrap();
            text.resize(64 * 1024 + 1, b' ');
            fs::write(path, text).unwrap();
        },
        Trouble::TooLarge,
    ),
    ("empty", |path| fs::write(path, "").unwrap(), Trouble::Malformed),
];

/// What is wrong with a text that would be a sound record otherwise.
fn malformed(sound: &str) -> Vec<(&'static str, Vec<u8>)> {
    let text = |text: String| text.into_bytes();
    vec![
        ("cut short", text(sound[..sound.len() - 1].to_owned())),
        ("trailing data", text(format!("{sound}{{}}"))),
        ("a trailing byte", text(format!("{sound}\0"))),
        ("a byte order mark", text(format!("\u{feff}{sound}"))),
        ("a name that stands twice", text(format!(r#"{{"a": 1, "a": 1, {}"#, &sound[1..]))),
        (
            "a name that stands twice, spelled otherwise",
            text(format!(r#"{{"a": 1, "\u0061": 1, {}"#, &sound[1..])),
        ),
        (
            "a name that stands twice further in",
            text(format!(r#"{{"more": [{{"a": 1, "a": 1}}], {}"#, &sound[1..])),
        ),
        ("not UTF-8", [b"{\"x\": \"\xff\", ", &sound.as_bytes()[1..]].concat()),
        ("a lone surrogate", text(format!(r#"{{"x": "\ud800", {}"#, &sound[1..]))),
        ("a list", text(format!("[{sound}]"))),
        ("nested without end", text("[".repeat(30_000))),
        ("null", text("null".to_owned())),
        ("no JSON", text("yes".to_owned())),
        ("no fields", text("{}".to_owned())),
    ]
}

const WRONG_CONSENT: &[(&str, &str)] = &[
    ("partial", r#"{"screen": true}"#),
    ("partial, the other", r#"{"control": true}"#),
    ("another case", r#"{"Screen": true, "control": true}"#),
    ("another case of both", r#"{"SCREEN": true, "CONTROL": true}"#),
    ("a text", r#"{"screen": "true", "control": true}"#),
    ("a number", r#"{"screen": 1, "control": 1}"#),
    ("nothing for one", r#"{"screen": true, "control": null}"#),
    ("lists", r#"{"screen": [true], "control": {"is": true}}"#),
    ("a truth in another case", r#"{"screen": True, "control": True}"#),
    ("twice, the first of them false", r#"{"screen": false, "screen": true, "control": true}"#),
];

const WRONG_JOIN: &[(&str, &str)] = &[
    ("partial", r#"{"machine_id": "m-1"}"#),
    ("partial, the other", r#"{"credential": "canary-5f1d"}"#),
    ("another case", r#"{"Machine_Id": "m-1", "credential": "canary-5f1d"}"#),
    ("an empty text", r#"{"machine_id": "", "credential": "canary-5f1d"}"#),
    ("an empty credential", r#"{"machine_id": "m-1", "credential": ""}"#),
    ("a number", r#"{"machine_id": 1, "credential": "canary-5f1d"}"#),
    ("an object", r#"{"machine_id": "m-1", "credential": {"value": "canary-5f1d"}}"#),
    ("nothing", r#"{"machine_id": "m-1", "credential": null}"#),
    ("twice", r#"{"machine_id": "m-1", "credential": "canary-5f1d", "credential": "canary-5f1d"}"#),
];

fn grants_nothing(home: &Home, record: &str, what: &str, trouble: Trouble) {
    let said = home.records().read();
    assert_eq!(said.grant(), Grant::NOTHING, "{record}: {what}");
    let told = match record {
        records::JOIN => said.joined == Joined::Unclear(trouble),
        _ => said.joined == Joined::Yes && said.allowed == Err(trouble),
    };
    assert!(told, "{record}: {what}: {said:?}");
    let debug = format!("{said:?} {:?} {trouble}", home.records());
    assert!(!debug.contains(CANARY) && !debug.contains(home.path().to_str().unwrap()), "{debug}");
}

#[test]
fn a_record_that_is_not_sound_grants_nothing() {
    for (record, sound, wrong) in
        [(records::JOIN, JOIN, WRONG_JOIN), (records::CONSENT, CONSENT, WRONG_CONSENT)]
    {
        for (what, spoil, trouble) in SPOILED {
            let home = Home::joined();
            spoil(&home.path().join(record));
            grants_nothing(&home, record, what, *trouble);
        }
        let wrong = wrong.iter().map(|(what, text)| (*what, text.as_bytes().to_vec()));
        for (what, text) in malformed(sound).into_iter().chain(wrong) {
            let home = Home::joined();
            home.put(record, text);
            grants_nothing(&home, record, what, Trouble::Malformed);
        }
        // What is just small enough, and readable by others, is sound.
        let home = Home::joined();
        let mut text = sound.as_bytes().to_vec();
        text.resize(64 * 1024, b'\n');
        home.put(record, text);
        fs::set_permissions(home.path().join(record), fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(home.records().read().grant(), ALL, "{record}");
    }
}

#[test]
fn a_record_of_another_user_grants_nothing() {
    let home = Home::joined();
    let records = Records { uid: home.records().uid + 1, ..home.records() };
    assert_eq!(records.read().joined, Joined::Unclear(Trouble::NotOwned));
    let path = home.path().join(records::CONSENT);
    assert_eq!(private_file::read(&path, records.uid), Err(Trouble::NotOwned));
    assert!(private_file::read(&path, home.records().uid).is_ok());
}

#[test]
fn the_home_is_the_first_that_is_named() {
    for (variables, of_user, expected) in [
        (&[("ACPMUX_HOME", "/a/b/"), ("HOME", "/home/u")][..], None, Some("/a/b")),
        (&[("ACPMUX_HOME", ""), ("HOME", "/home/u")], None, None),
        (&[("HOME", "/home/u")], Some("/other"), Some("/home/u/.acpmux")),
        (&[("HOME", "")], Some("/other"), Some("/other/.acpmux")),
        (&[], Some("/other"), Some("/other/.acpmux")),
        (&[], None, None),
        (&[("ACPMUX_HOME", "here"), ("HOME", "/home/u")], None, None),
        (&[("HOME", "here")], None, None),
    ] {
        assert_eq!(at(variables, of_user).home.as_deref(), expected.map(Path::new), "{variables:?}");
    }
    let said = at(&[], None).read();
    assert_eq!((said.grant(), said.joined), (Grant::NOTHING, Joined::Unclear(Trouble::NoHome)));
}

#[test]
fn the_password_database_knows_this_user_and_not_everybody() {
    // Every system has the first user.
    assert!(home::of_user(0).is_some_and(|home| home.is_absolute()));
    assert_eq!(home::of_user(u32::MAX - 7), None);
}

#[test]
fn a_home_that_is_not_there_is_no_join_and_a_link_to_nowhere_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let own = |path: &Path| at(&[(home::OWN, path.to_str().unwrap())], None).read();
    let below = |path: &Path| at(&[(home::GENERAL, path.to_str().unwrap())], None).read();
    fs::create_dir(path("empty")).unwrap();
    symlink(path("empty"), path("to-empty")).unwrap();
    for sound in ["empty", "to-empty", "nowhere", "nowhere/at/all"] {
        assert_eq!(own(&path(sound)).grant(), Grant::NOT_JOINED, "{sound}");
        assert_eq!(below(&path(sound)).grant(), Grant::NOT_JOINED, "{sound}");
    }
    symlink(path("gone"), path("dangling")).unwrap();
    symlink(path("dangling"), path("to-dangling")).unwrap();
    for dangling in ["dangling", "dangling/", "to-dangling", "dangling/further"] {
        assert_eq!(own(&path(dangling)).joined, Joined::Unclear(Trouble::Dangling), "{dangling}");
        assert_eq!(below(&path(dangling)).grant(), Grant::NOTHING, "{dangling}");
    }
    symlink(path("gone"), path("empty/.acpmux")).unwrap();
    assert_eq!(below(&path("empty")).joined, Joined::Unclear(Trouble::Dangling));
    symlink(path("loop"), path("loop")).unwrap();
    fs::write(path("file"), "").unwrap();
    for unreadable in ["loop", "file"] {
        assert_eq!(own(&path(unreadable)).joined, Joined::Unclear(Trouble::Unreadable), "{unreadable}");
    }
}

#[tokio::test]
async fn a_refusal_is_written_down_whole_and_for_this_user_alone() {
    let home = Home::joined();
    let path = home.path().join("consent-refusal.json");
    // A link in its place is replaced, not written through.
    symlink(home.path().join("elsewhere"), &path).unwrap();
    for tool in ["screenshot", "click"] {
        home.records().refused(Refusal { surface: Surface::Control, tool }).await;
        let record: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(
            (&record["version"], &record["surface"], &record["tool"]),
            (&1.into(), &"control".into(), &tool.into())
        );
        let at = record["refused_at"].as_str().unwrap();
        assert!(at.len() == 20 && at.starts_with("20") && at.ends_with('Z'), "{at}");
        let stat = fs::symlink_metadata(&path).unwrap();
        assert!(stat.is_file() && stat.permissions().mode() & 0o777 == 0o600);
    }
    let mut names: Vec<_> =
        fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["consent-refusal.json", "consent.json", "machine-credential.json"]);
    // Where it cannot be written nothing is left either.
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    home.records().refused(Refusal { surface: Surface::Screen, tool: "click" }).await;
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 3);
}

#[test]
fn times_are_written_as_the_standard_has_them() {
    for (seconds, expected) in [
        (0, "1970-01-01T00:00:00Z"),
        (951_782_399, "2000-02-28T23:59:59Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (1_709_251_199, "2024-02-29T23:59:59Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"),
        (1_796_083_199, "2026-11-30T23:59:59Z"),
    ] {
        assert_eq!(deskhand_core::timestamp::rfc3339_seconds(seconds), expected);
    }
}

#[test]
fn changes_keep_what_else_stands_in_the_record() {
    let home = Home::joined();
    let records = home.records();
    let change = |screen, control| records.change(Change { screen, control }).unwrap();
    assert_eq!(change(None, Some(false)), Allowed { screen: true, control: false });
    let text = fs::read_to_string(home.path().join(records::CONSENT)).unwrap();
    assert!(text.contains("Ada"), "{text}");
    assert_eq!(records.read().grant(), Grant { joined: true, screen: true, control: false });
    assert_eq!(change(Some(false), None), Allowed::default());
    assert_eq!(change(Some(true), Some(true)), Allowed { screen: true, control: true });
    // Byte by byte: what a program of ours would make of a number is none of its author's.
    for (before, after) in [
        (
            "{\"n\":1e400, \"big\" : 12345678901234567890123,\t\"control\":false,\"s\u{63}reen\": false ,\"of\": {\"n\": [-0.10, 1E+2]}}",
            "{\"n\":1e400, \"big\" : 12345678901234567890123,\t\"control\":true,\"s\u{63}reen\": true ,\"of\": {\"n\": [-0.10, 1E+2]}}",
        ),
        (
            r#" {"scr\u0065en": false, "control" :false, "screen ": [false, "screen"]}  "#,
            r#" {"scr\u0065en": true, "control" :true, "screen ": [false, "screen"]}  "#,
        ),
    ] {
        home.put(records::CONSENT, before);
        assert_eq!(records.read().grant(), Grant::NOTHING, "{before}");
        assert_eq!(change(Some(true), Some(true)), Allowed { screen: true, control: true });
        assert_eq!(fs::read_to_string(home.path().join(records::CONSENT)).unwrap(), after);
        assert_eq!(records.read().grant(), ALL);
    }
    let large = |screen| {
        let text = format!(r#"{{"screen": {screen}, "control": true, "n": ""#);
        format!("{text}{}\"}}", "x".repeat(64 * 1024 - text.len() - 2))
    };
    home.put(records::CONSENT, large(false));
    assert_eq!(change(Some(true), None), Allowed { screen: true, control: true });
    home.put(records::CONSENT, large(true));
    assert_eq!(change(Some(false), None), Allowed { screen: false, control: true });
    assert_eq!(records.read().grant(), Grant::NOTHING, "it is a byte too long");
    // A record that counts for nothing is not built upon.
    home.put(records::CONSENT, r#"{"screen": true, "control": "yes"}"#);
    assert_eq!(change(None, Some(true)), Allowed { screen: false, control: true });
    let stat = fs::metadata(home.path().join(records::CONSENT)).unwrap();
    assert_eq!(stat.permissions().mode() & 0o777, 0o600);
}

#[test]
fn an_answer_counts_for_what_was_asked() {
    let home = Home::joined();
    let records = home.records();
    let put =
        |screen, control| home.put(records::CONSENT, format!(r#"{{"screen":{screen},"control":{control}}}"#));
    let all = Change { screen: Some(true), control: Some(true) };
    let control = Change { screen: None, control: Some(true) };
    for (change, before, meanwhile) in [
        (control, (true, false), (false, false)), // a revoke
        (control, (false, false), (true, false)), // more than was asked about
        (all, (false, false), (true, false)),
        (all, (true, true), (false, false)),
    ] {
        put(before.0, before.1);
        let question = records.question(change).unwrap();
        put(meanwhile.0, meanwhile.1);
        assert!(matches!(records.agreed(question), Err(NotChanged::Meanwhile)), "{change:?}");
        let allowed = Allowed { screen: meanwhile.0, control: meanwhile.1 };
        assert_eq!(records.read().allowed, Ok(allowed));
        put(before.0, before.1);
        assert_eq!(records.agreed(question).unwrap(), question.after);
    }
    let question = records.question(all).unwrap();
    fs::remove_file(home.path().join(records::JOIN)).unwrap();
    assert!(matches!(records.agreed(question), Err(NotChanged::NotJoined)));
}

#[test]
fn nothing_is_allowed_in_advance_and_a_revoke_always_works() {
    let home = Home::joined();
    let records = home.records();
    let (grant, revoke) = (
        Change { screen: Some(true), control: Some(true) },
        Change { screen: Some(false), control: Some(false) },
    );
    fs::remove_file(home.path().join(records::JOIN)).unwrap();
    assert!(matches!(records.change(grant), Err(NotChanged::NotJoined)));
    // What was left from another time.
    records.change(revoke).unwrap();
    home.put(records::JOIN, JOIN);
    assert_eq!(records.read().grant(), Grant::NOTHING);
    home.put(records::JOIN, "{}");
    assert!(matches!(records.change(grant), Err(NotChanged::Unclear(Trouble::Malformed))));
    for name in [records::JOIN, records::CONSENT] {
        fs::remove_file(home.path().join(name)).unwrap();
    }
    records.change(revoke).unwrap();
    assert_eq!(
        fs::read_dir(home.path()).unwrap().count(),
        0,
        "nothing is written on a machine that is not joined"
    );
}
