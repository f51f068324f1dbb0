//! What this program is when a test starts it as a host.
//!
//! It tells on its standard output what came of it, and does on each line of its standard input what that says.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

pub(crate) const HOST: &str = "part-host";
pub(crate) const HEIR: &str = "part-heir";

/// Where a test puts the token. (A host that is not a test's has it from its own start.)
pub(crate) const TOKEN: &str = "TEST_HOST_TOKEN";

/// A copy of this program, for a host that executes another one.
pub(crate) const OTHER: &str = "TEST_OTHER_PROGRAM";

/// The host. `manner`: what it does with the first question on.
pub(crate) fn run(socket: &str, manner: &str) -> ExitCode {
    let stream = UnixStream::connect(socket).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    send(&stream, &json!({"id": 1, "method": "machine_consent_host"}));
    let Some(challenge) = next(&mut lines) else { return say("closed") };
    if challenge["error"].is_object() {
        return say(&format!("refused {}", challenge["error"]["message"]));
    }
    if manner == "bequeath" {
        // Another program proves in its place.
        give_away(&stream, &challenge);
    } else {
        send(&stream, &proof(&challenge));
    }
    let Some(reply) = next(&mut lines) else { return say("closed") };
    if reply["error"].is_object() {
        return say(&format!("refused {}", reply["error"]["message"]));
    }
    let manner = Arc::new(Mutex::new(manner.to_owned()));
    say("admitted");
    std::thread::spawn({
        let manner = Arc::clone(&manner);
        move || {
            for line in io::stdin().lines().map_while(Result::ok) {
                *manner.lock().unwrap() = line.clone();
                say(&format!("now {line}"));
            }
        }
    });
    while let Some(line) = next(&mut lines) {
        if line["refused"].is_object() {
            say(&format!("told {}", line["refused"]));
            continue;
        }
        if line["error"].is_object() {
            say(&format!("lost {}", line["error"]["message"]));
            break;
        }
        let manner = manner.lock().unwrap().clone();
        answer(&stream, &line, &manner);
    }
    say("over")
}

fn answer(stream: &UnixStream, question: &Value, manner: &str) {
    let allow = |screen, control| json!({"id": question["id"], "nonce": question["ask"]["nonce"], "screen": screen, "control": control});
    match manner {
        "nothing" => send(stream, &allow(false, false)),
        "screen" => send(stream, &allow(true, false)),
        "all" => send(stream, &allow(true, true)),
        "slow" => {
            say("asked");
        }
        "deaf" => stay(),
        "garbage" => {
            let _ = (&*stream).write_all(b"yes\n");
        }
        "error" => send(
            stream,
            &json!({"id": question["id"], "nonce": question["ask"]["nonce"], "error": "no idea", "screen": true, "control": true}),
        ),
        "partial" => {
            send(stream, &json!({"id": question["id"], "nonce": question["ask"]["nonce"], "screen": true}))
        }
        "stale" => {
            send(stream, &json!({"id": question["id"], "nonce": "00", "screen": true, "control": true}))
        }
        "unasked" => send(stream, &json!({"id": 1_000_000, "nonce": "00", "screen": true, "control": true})),
        "heir" => {
            // The heir answers this question and all after it.
            give_away(stream, question);
            stay()
        }
        "exec" => {
            let mut other = Command::new(std::env::var_os(OTHER).unwrap());
            other.arg(HEIR).stdin(Stdio::from(OwnedFd::from(stream.try_clone().unwrap())));
            let error = other.env("TEST_QUESTION", question.to_string()).exec();
            panic!("{error}");
        }
        other => panic!("{other}"),
    }
}

/// Another program with the connection, which is its standard input: it answers as the right host would.
pub(crate) fn heir() -> ExitCode {
    let stream = UnixStream::from(std::os::fd::AsFd::as_fd(&io::stdin()).try_clone_to_owned().unwrap());
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut question = std::env::var("TEST_QUESTION").ok().map(|text| serde_json::from_str(&text).unwrap());
    while let Some(line) = question.take().or_else(|| next(&mut lines)) {
        if line["ask"].is_object() {
            answer(&stream, &line, "all");
        } else if line["ok"]["nonce"].is_string() {
            send(&stream, &proof(&line));
        }
    }
    ExitCode::SUCCESS
}

fn give_away(stream: &UnixStream, question: &Value) {
    let heir = Command::new(std::env::current_exe().unwrap())
        .arg(HEIR)
        .env("TEST_QUESTION", question.to_string())
        .stdin(Stdio::from(OwnedFd::from(stream.try_clone().unwrap())))
        .spawn();
    // It ends with the connection.
    std::thread::spawn(move || heir.unwrap().wait());
}

fn proof(challenge: &Value) -> Value {
    json!({"nonce": challenge["ok"]["nonce"], "token": std::env::var(TOKEN).unwrap()})
}

fn send(mut stream: &UnixStream, line: &Value) {
    // The service may be done with us.
    let _ = stream.write_all(format!("{line}\n").as_bytes());
}

fn next(lines: &mut BufReader<UnixStream>) -> Option<Value> {
    let mut line = String::new();
    let read = lines.read_line(&mut line).unwrap_or(0);
    (read > 0).then(|| serde_json::from_str(&line).unwrap())
}

fn stay() -> ! {
    loop {
        std::thread::park();
    }
}

fn say(line: &str) -> ExitCode {
    let _ = writeln!(io::stdout(), "{line}").and_then(|()| io::stdout().flush());
    ExitCode::SUCCESS
}
