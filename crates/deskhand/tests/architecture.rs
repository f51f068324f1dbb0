//! The arrows between the crates, as ARCHITECTURE.md has them.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Each crate of the workspace, and those of the workspace that it may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    ("deskhand", &["deskhand-core", "deskhand-linux", "deskhand-mcp", "deskhand-service"]),
    ("deskhand-core", &[]),
    ("deskhand-linux", &["deskhand-core"]),
    ("deskhand-mcp", &["deskhand-core"]),
    ("deskhand-service", &["deskhand-core"]),
    ("deskhand-testkit", &["deskhand-core"]),
];

/// What crates must not know, by the libraries through which they would.
const BANNED: &[(&str, &[&str])] = &[
    ("deskhand", &["atspi-common", "rmcp", "x11rb", "xkeysym", "zbus"]),
    ("deskhand-core", &["atspi-common", "clap", "libc", "nix", "rmcp", "rustix", "x11rb", "xkeysym", "zbus"]),
    ("deskhand-linux", &["clap", "rmcp"]),
    ("deskhand-mcp", &["atspi-common", "clap", "libc", "nix", "rustix", "x11rb", "xkeysym", "zbus"]),
    ("deskhand-service", &["atspi-common", "clap", "rmcp", "x11rb", "xkeysym", "zbus"]),
];

/// Each crate of the workspace with what it depends on, tests apart.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| {
            let all = package["dependencies"].as_array().unwrap().iter();
            let needed = all.filter(|dependency| dependency["kind"] != "dev");
            (text(&package["name"]), needed.map(|dependency| text(&dependency["name"])).collect())
        })
        .collect()
}

#[test]
fn arrows_point_one_way() {
    let crates = dependencies();
    let known: BTreeSet<_> = ARROWS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(crates.keys().cloned().collect::<BTreeSet<_>>(), known, "a new crate needs its arrows here");
    for (name, allowed) in ARROWS {
        for other in crates[*name].iter().filter(|other| known.contains(*other)) {
            assert!(allowed.contains(&other.as_str()), "{name} must not depend on {other}");
        }
    }
}

#[test]
fn crates_do_not_know_what_is_none_of_their_business() {
    let crates = dependencies();
    for (name, banned) in BANNED {
        for library in *banned {
            assert!(!crates[*name].contains(*library), "{name} must not depend on {library}");
        }
    }
}
