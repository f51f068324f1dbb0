//! The tests.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use rustix::process::Signal;

use crate::stage::{PATIENT, Stage, Started, kill_and_wait};
use crate::starter::{Part, program};

/// A test and its name.
type Case = (&'static str, fn());

pub(crate) const ALL: &[Case] = &[
    ("two_start_at_once", two_start_at_once),
    ("f4_twenty_start_at_once_with_a_stale_socket", f4_twenty_start_at_once_with_a_stale_socket),
    ("twenty_hosts_share_what_one_of_them_launched", twenty_hosts_share_what_one_of_them_launched),
    ("starters_are_killed_at_random_moments", starters_are_killed_at_random_moments),
    (
        "hosts_find_a_service_although_launchers_are_killed",
        hosts_find_a_service_although_launchers_are_killed,
    ),
    ("f5_a_stopped_service_is_waited_for", f5_a_stopped_service_is_waited_for),
    ("f5_a_stopped_service_is_named_and_never_replaced", f5_a_stopped_service_is_named_and_never_replaced),
    ("a_killed_service_is_replaced_by_one_that_waits", a_killed_service_is_replaced_by_one_that_waits),
    ("f4_a_successor_keeps_its_socket", f4_a_successor_keeps_its_socket),
    ("another_build_at_the_same_path_is_refused", another_build_at_the_same_path_is_refused),
    ("another_build_at_another_path_is_refused", another_build_at_another_path_is_refused),
    ("a_host_launches_its_own_build_although_its_file_was_replaced", a_host_launches_its_own_build),
    ("an_in_process_owner_keeps_others_out", an_in_process_owner_keeps_others_out),
    ("an_in_process_owner_waits_for_one_that_ends", an_in_process_owner_waits_for_one_that_ends),
    ("a_launched_service_survives_its_launcher", a_launched_service_survives_its_launcher),
    ("a_launched_service_keeps_nothing_of_its_launcher", a_launched_service_keeps_nothing_of_its_launcher),
    ("a_service_that_fails_at_once_is_told", a_service_that_fails_at_once_is_told),
];

/// How often what came out, and which process was elected.
fn outcomes(all: &mut [Started]) -> (BTreeMap<String, usize>, Vec<u32>) {
    let mut counts = BTreeMap::new();
    let mut elected = Vec::new();
    for one in all {
        let outcome = one.outcome().unwrap_or_else(|| "nothing 0".to_owned());
        let (what, rest) = outcome.split_once(' ').unwrap();
        assert!(what != "failed", "{outcome}");
        *counts.entry(what.to_owned()).or_default() += 1;
        if what == "elected" {
            elected.push(rest.parse().unwrap());
        }
    }
    (counts, elected)
}

#[track_caller]
fn one_is_elected(stage: &Stage, mut all: Vec<Started>) {
    let count = all.len();
    let (counts, elected) = outcomes(&mut all);
    assert_eq!(counts.get("elected"), Some(&1), "{counts:?}");
    assert_eq!(counts.get("connected").copied().unwrap_or(0), count - 1, "{counts:?}");
    assert_eq!(stage.asked(), elected[0]);
    assert_eq!(stage.holder().unwrap().pid, elected[0]);
}

fn two_start_at_once() {
    for _ in 0..50 {
        let stage = Stage::new();
        let (all, gate) = stage.line_up(&program(), Part::Starter, 2);
        drop(gate);
        one_is_elected(&stage, all);
    }
}

fn f4_twenty_start_at_once_with_a_stale_socket() {
    let stage = Stage::new();
    for _ in 0..3 {
        let mut first = stage.start(Part::Starter, PATIENT);
        first.expect("elected");
        first.kill();
        assert!(stage.socket().exists(), "nothing stale to start with");
        let (all, gate) = stage.line_up(&program(), Part::Starter, 20);
        drop(gate);
        one_is_elected(&stage, all);
    }
}

fn twenty_hosts_share_what_one_of_them_launched() {
    let stage = Stage::new();
    let (mut all, gate) = stage.line_up(&program(), Part::Host, 20);
    drop(gate);
    let services: Vec<u32> = all.iter_mut().map(|host| host.expect("connected")).collect();
    assert!(services.iter().all(|pid| *pid == services[0]), "{services:?}");
    assert_eq!(stage.asked(), services[0]);
}

/// Numbers that look random and are the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn starters_are_killed_at_random_moments() {
    let stage = Stage::new();
    let mut chance = Chance(7);
    for round in 0..30 {
        let (mut all, gate) = stage.line_up(&program(), Part::Starter, 4);
        drop(gate);
        // Not an event that could be awaited: any moment of the start is as good.
        std::thread::sleep(Duration::from_micros(chance.below(8000)));
        for victim in [chance.below(4), chance.below(4)] {
            all[usize::try_from(victim).unwrap()].kill();
        }
        let (counts, elected) = outcomes(&mut all);
        assert!(elected.len() <= 3, "round {round}: {counts:?}");
        // Whatever is left, the next one finds or becomes the service, and there is one.
        let mut next = stage.start(Part::Starter, PATIENT);
        let outcome = next.outcome().unwrap();
        let pid: u32 = outcome.split_once(' ').unwrap().1.parse().unwrap_or_else(|_| panic!("{outcome}"));
        assert_eq!(stage.asked(), pid);
        assert_eq!(stage.folder.holders().len(), 1);
    }
}

fn hosts_find_a_service_although_launchers_are_killed() {
    let mut chance = Chance(11);
    for _ in 0..10 {
        let stage = Stage::new();
        let (mut all, gate) = stage.line_up(&program(), Part::Host, 4);
        drop(gate);
        std::thread::sleep(Duration::from_micros(chance.below(20_000)));
        all[0].kill_group();
        all[1].kill_group();
        let services: Vec<u32> = all[2..].iter_mut().map(|host| host.expect("connected")).collect();
        assert_eq!(services[0], services[1]);
        assert_eq!(stage.asked(), services[0]);
        assert_eq!(stage.holder().unwrap().pid, services[0]);
    }
}

fn f5_a_stopped_service_is_waited_for() {
    let stage = Stage::new();
    let mut service = stage.start(Part::Starter, PATIENT);
    let pid = service.expect("elected");
    service.stop();
    let mut others: Vec<Started> = (0..10).map(|_| stage.start(Part::Starter, PATIENT)).collect();
    for other in &mut others {
        assert_eq!(other.next(), Some(format!("trying {pid}")));
    }
    service.signal(Signal::CONT);
    for other in &mut others {
        assert_eq!(other.expect("connected"), pid);
    }
}

fn f5_a_stopped_service_is_named_and_never_replaced() {
    let stage = Stage::new();
    let mut service = stage.start(Part::Starter, PATIENT);
    let pid = service.expect("elected");
    service.stop();
    for part in [Part::Starter, Part::Host] {
        let mut other = stage.start(part, 300);
        let outcome = other.outcome().unwrap();
        for word in [
            "failed service_unreachable",
            &format!("pid {pid}"),
            "stopped (state T)",
            "kill -CONT",
            "x0.sock",
        ] {
            assert!(outcome.contains(word), "{word}: {outcome}");
        }
    }
    assert!(stage.holder().unwrap().is_stopped());
    service.signal(Signal::CONT);
    assert_eq!(stage.asked(), pid);
}

fn a_killed_service_is_replaced_by_one_that_waits() {
    let stage = Stage::new();
    let mut service = stage.start(Part::Starter, PATIENT);
    let pid = service.expect("elected");
    service.stop();
    let mut next = stage.start(Part::Starter, PATIENT);
    assert_eq!(next.next(), Some(format!("trying {pid}")));
    service.kill();
    assert_eq!(next.expect("elected"), next.pid());
    assert_eq!(stage.asked(), next.pid());
}

fn f4_a_successor_keeps_its_socket() {
    let stage = Stage::new();
    let mut service = stage.start(Part::Starter, PATIENT);
    service.expect("elected");
    for _ in 0..20 {
        let (mut all, gate) = stage.line_up(&program(), Part::Starter, 3);
        drop(gate);
        stage.end_service();
        let (counts, elected) = outcomes(&mut all);
        // Some may still have met the old one.
        assert!(elected.len() <= 1, "{counts:?}");
        let mut next = stage.start(Part::Starter, PATIENT);
        next.outcome().unwrap();
        let holder = stage.holder().unwrap();
        assert_eq!(stage.asked(), holder.pid);
        let mut owners = all.into_iter().chain([next]);
        service = owners.find(|one| one.pid() == holder.pid).unwrap();
    }
    drop(service);
}

#[track_caller]
fn refused(outcome: &str, code: &str, words: &[&str]) {
    assert!(outcome.starts_with(&format!("failed {code} ")), "{outcome}");
    for word in words {
        assert!(outcome.contains(word), "{word}: {outcome}");
    }
}

fn another_build_at_the_same_path_is_refused() {
    let stage = Stage::new();
    let path = stage.publish("deskhand", "old");
    let mut service = stage.start_build(&path, Part::Starter, PATIENT);
    let pid = service.expect("elected").to_string();
    assert_eq!(stage.publish("deskhand", "new"), path);
    for part in [Part::Starter, Part::Host] {
        let mut other = stage.start_build(&path, part, PATIENT);
        let path = path.to_str().unwrap();
        refused(&other.outcome().unwrap(), "build_conflict", &[&pid, path, "deskhand stop"]);
    }
    assert_eq!(stage.holder().unwrap().build.path, path);
    // The same build at another path is the same build.
    let copy = stage.publish("copy", "old");
    assert_eq!(stage.start_build(&copy, Part::Starter, PATIENT).expect("connected").to_string(), pid);
}

fn another_build_at_another_path_is_refused() {
    let stage = Stage::new();
    let mut service = stage.start_build(&stage.publish("a", "a"), Part::Starter, PATIENT);
    let pid = service.expect("elected").to_string();
    let mut other = stage.start_build(&stage.publish("b", "b"), Part::Starter, PATIENT);
    refused(&other.outcome().unwrap(), "build_conflict", &[&pid, "/a ", "/b "]);
    service.kill();
    let mut other = stage.start_build(&stage.publish("b", "b"), Part::Starter, PATIENT);
    other.expect("elected");
}

fn a_host_launches_its_own_build() {
    let stage = Stage::new();
    let path = stage.publish("deskhand", "old");
    let (mut hosts, gate) = stage.line_up(&path, Part::Host, 3);
    stage.publish("deskhand", "new");
    // They wait for the gate with the old file under their feet. One of them may only be about to read it.
    let mut new = hosts.pop().unwrap();
    new.kill();
    drop(gate);
    let services: Vec<u32> = hosts.iter_mut().map(|host| host.expect("connected")).collect();
    assert_eq!(services[0], services[1]);
    let holder = stage.holder().unwrap();
    assert_eq!((holder.pid, &holder.build.path), (services[0], &path), "without the kernel's mark");
    let link = std::fs::read_link(format!("/proc/{}/exe", holder.pid)).unwrap();
    assert!(link.to_str().unwrap().ends_with(" (deleted)"), "{}", link.display());
}

fn an_in_process_owner_keeps_others_out() {
    let stage = Stage::new();
    let mut owner = stage.start(Part::Alone, PATIENT);
    let pid = owner.expect("elected").to_string();
    for part in [Part::Alone, Part::Starter, Part::Host] {
        let mut other = stage.start(part, 100);
        refused(&other.outcome().unwrap(), "desktop_in_use", &[&pid, &format!("kill {pid}")]);
    }
    owner.kill();
    let mut service = stage.start(Part::Starter, PATIENT);
    let pid = service.expect("elected").to_string();
    let mut other = stage.start(Part::Alone, PATIENT);
    refused(&other.outcome().unwrap(), "desktop_in_use", &[&pid, "x0.sock"]);
}

fn an_in_process_owner_waits_for_one_that_ends() {
    let stage = Stage::new();
    let mut owner = stage.start(Part::Alone, PATIENT);
    owner.expect("elected");
    let mut next = stage.start(Part::Alone, PATIENT);
    owner.kill();
    assert_eq!(next.expect("elected"), next.pid());
}

fn a_launched_service_survives_its_launcher() {
    let stage = Stage::new();
    let mut host = stage.start(Part::Host, PATIENT);
    let service = host.expect("connected");
    host.kill_group();
    assert_eq!(stage.asked(), service);
    assert_eq!(stage.start(Part::Host, PATIENT).expect("connected"), service);
    let mode = std::fs::metadata(stage.folder.log(&stage.holder().unwrap().desktop)).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
}

fn a_launched_service_keeps_nothing_of_its_launcher() {
    let stage = Stage::new();
    let (mut reader, writer) =
        rustix::pipe::pipe().map(|(reader, writer)| (std::fs::File::from(reader), writer)).unwrap();
    rustix::io::fcntl_setfd(&reader, rustix::io::FdFlags::CLOEXEC).unwrap();
    assert!(writer.as_raw_fd() > 2);
    let mut command = stage.command(&program(), Part::Host, PATIENT);
    command.stdin(std::process::Stdio::null()).env("CANARY", "sings").env("DESKHAND_TEST", "kept");
    let mut host = Started::new(&mut command);
    drop(writer);
    let service = host.expect("connected");
    host.kill();
    // The end: nobody holds the other end any more, although the service lives.
    assert_eq!(reader.read_to_end(&mut Vec::new()).unwrap(), 0);
    assert_eq!(stage.asked(), service);
    let environment = String::from_utf8(std::fs::read(format!("/proc/{service}/environ")).unwrap()).unwrap();
    assert!(!environment.contains("CANARY"), "{environment}");
    assert!(environment.split('\0').any(|variable| variable == "DESKHAND_TEST=kept"), "{environment}");
    assert_eq!(std::fs::read_link(format!("/proc/{service}/cwd")).unwrap().to_str(), Some("/"));
    kill_and_wait(service);
    assert!(stage.holder().is_none(), "a killed service's record is not a holder");
}

fn a_service_that_fails_at_once_is_told() {
    // What the launched one needs is taken away: it cannot write its locks.
    let stage = Stage::new();
    let lock = stage.folder.path().join("desktop-x0.lock");
    std::fs::create_dir(&lock).unwrap();
    let mut host = stage.start(Part::Host, PATIENT);
    refused(
        &host.outcome().unwrap(),
        "service_unreachable",
        &["ended at once", "exit status: 1", "x0.log", "desktop-x0.lock"],
    );
}
