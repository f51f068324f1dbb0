//! Random operations on sessions, held against a small model of what must come of them.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use std::collections::BTreeMap;
use std::time::Duration;

use deskhand_core::{Code, Driver, Host, Lease, Limits, Outcome, SessionId};
use deskhand_testkit::transcript::Script;
use proptest::prelude::*;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const IDS: usize = 5;
const SESSIONS: usize = 3;
const CALLS: usize = 3;
/// Not a whole number of seconds, as the waits are, so that none ends exactly with it.
const IDLE: Duration = Duration::from_millis(5500);

const HOLD: &str = r#"wait_for {"condition": "window_opens", "title": "Never", "timeout_ms": 600000}"#;

#[derive(Clone, Debug)]
enum Operation {
    Open { id: usize, lease: bool },
    Call { id: usize, with_lease: bool },
    Hold { id: usize, with_lease: bool },
    Cancel(usize),
    End(usize),
    EndByItself { id: usize, with_lease: bool },
    Wait(u64),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let id = 0..IDS;
    let operation = prop_oneof![
        2 => (id.clone(), any::<bool>()).prop_map(|(id, lease)| Operation::Open { id, lease }),
        4 => (id.clone(), any::<bool>()).prop_map(|(id, with_lease)| Operation::Call { id, with_lease }),
        4 => (id.clone(), any::<bool>()).prop_map(|(id, with_lease)| Operation::Hold { id, with_lease }),
        2 => (0..64_usize).prop_map(Operation::Cancel),
        1 => id.clone().prop_map(Operation::End),
        1 => (id, any::<bool>()).prop_map(|(id, with_lease)| Operation::EndByItself { id, with_lease }),
        2 => (1..7_u64).prop_map(Operation::Wait),
    ];
    proptest::collection::vec(operation, 1..60)
}

/// What a session must be like.
#[derive(Clone, Debug)]
struct Live {
    leased: bool,
    active: Instant,
}

#[derive(Default)]
struct Model {
    live: BTreeMap<usize, Live>,
    ended: Vec<usize>,
}

struct Held {
    id: usize,
    cancel: CancellationToken,
    outcome: JoinHandle<Outcome>,
}

struct World {
    script: Script,
    model: Model,
    leases: BTreeMap<usize, Lease>,
    held: Vec<Held>,
}

fn name(id: usize) -> String {
    format!("s{id}")
}

impl World {
    fn new() -> Self {
        let limits = Limits { sessions: SESSIONS, calls: CALLS, ..Limits::default() };
        let host = Host { limits, session_idle: Some(IDLE), ..Host::default() };
        Self {
            script: Script::on("window 1 \"Editor\" pid=100 800x600+100+50 focused\n", host),
            model: Model::default(),
            leases: BTreeMap::new(),
            held: Vec::new(),
        }
    }

    fn caller(&self, id: usize, with_lease: bool) -> Script {
        let lease = self.leases.get(&id).filter(|_| with_lease).cloned();
        Script { lease, ..self.script.as_session(&name(id)) }
    }

    /// Why the model refuses a caller, if it does; else the session lives now and was active.
    fn admit(&mut self, id: usize, with_lease: bool) -> Option<Code> {
        if self.model.ended.contains(&id) {
            return Some(Code::SessionEnded);
        }
        match self.model.live.get(&id) {
            Some(live) if live.leased && !with_lease => return Some(Code::SessionInUse),
            None if self.model.live.len() >= SESSIONS => return Some(Code::LimitExceeded),
            _ => {}
        }
        let active = Instant::now();
        self.model.live.entry(id).or_insert(Live { leased: false, active }).active = active;
        None
    }

    fn held_by(&self, id: usize) -> usize {
        self.held.iter().filter(|held| held.id == id).count()
    }

    async fn ended(&mut self, id: usize) {
        if self.model.live.remove(&id).is_none() {
            return;
        }
        self.model.ended.push(id);
        let (gone, held) = std::mem::take(&mut self.held).into_iter().partition(|held| held.id == id);
        self.held = held;
        let gone: Vec<Held> = gone;
        for held in gone {
            let error = held.outcome.await.unwrap().unwrap_err();
            assert_eq!(error.code, Code::SessionEnded);
        }
    }

    async fn carry_out(&mut self, operation: &Operation) {
        match *operation {
            Operation::Open { id, lease } => {
                let refused = self.admit(id, false);
                let opened = self.script.engine.open_session(&SessionId::new(&name(id)), lease, None);
                assert_eq!(opened.as_ref().err().map(|error| error.code), refused);
                if let Ok(opened) = opened {
                    assert_eq!(opened.is_some(), lease);
                    self.model.live.get_mut(&id).unwrap().leased = lease;
                    self.leases.extend(opened.map(|lease| (id, lease)));
                }
            }
            Operation::Call { id, with_lease } => {
                let mut refused = self.admit(id, with_lease);
                if refused.is_none() && self.held_by(id) >= CALLS {
                    refused = Some(Code::LimitExceeded);
                }
                let outcome = self.caller(id, with_lease).call("get_session").await;
                assert_eq!(outcome.err().map(|error| error.code), refused);
            }
            Operation::Hold { id, with_lease } => {
                let refused = self.admit(id, with_lease);
                let full = self.held_by(id) >= CALLS;
                let caller = self.caller(id, with_lease);
                let call = caller.parse(HOLD);
                let cancel = call.cancel.clone();
                let outcome = tokio::spawn(caller.engine.invoke(call));
                tokio::time::sleep(Duration::from_millis(1)).await;
                match refused.or(full.then_some(Code::LimitExceeded)) {
                    None => self.held.push(Held { id, cancel, outcome }),
                    Some(code) => assert_eq!(outcome.await.unwrap().unwrap_err().code, code),
                }
            }
            Operation::Cancel(at) if !self.held.is_empty() => {
                let held = self.held.remove(at % self.held.len());
                held.cancel.cancel();
                assert_eq!(held.outcome.await.unwrap().unwrap_err().code, Code::Cancelled);
                self.model.live.get_mut(&held.id).unwrap().active = Instant::now();
            }
            Operation::Cancel(_) => {}
            Operation::End(id) => {
                // Twice at the same time: both wait for one clean-up.
                let end = || self.script.engine.end_session(SessionId::new(&name(id)));
                tokio::join!(end(), end());
                self.ended(id).await;
            }
            Operation::EndByItself { id, with_lease } => {
                let mut refused = self.admit(id, with_lease);
                if refused.is_none() && self.held_by(id) >= CALLS {
                    refused = Some(Code::LimitExceeded);
                }
                let outcome = self.caller(id, with_lease).call("end_session").await;
                assert_eq!(outcome.err().map(|error| error.code), refused);
                if refused.is_none() {
                    self.ended(id).await;
                }
            }
            Operation::Wait(seconds) => {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                let now = Instant::now();
                let idle: Vec<usize> = self
                    .model
                    .live
                    .iter()
                    .filter(|(id, live)| !live.leased && self.held_by(**id) == 0 && live.active + IDLE <= now)
                    .map(|(id, _)| *id)
                    .collect();
                for id in idle {
                    self.ended(id).await;
                }
            }
        }
    }

    /// Holds what is told of the sessions against the model.
    fn compare(&self) {
        let told: Vec<_> = self
            .script
            .engine
            .sessions()
            .into_iter()
            .map(|info| (info.session.unwrap(), info.leased, info.calls.len()))
            .collect();
        let expected: Vec<_> =
            self.model.live.iter().map(|(&id, live)| (name(id), live.leased, self.held_by(id))).collect();
        assert_eq!(told, expected);
        assert_eq!(*self.script.engine.named_sessions().borrow(), expected.len());
        assert!(self.held.iter().all(|held| !held.outcome.is_finished()), "a held call ended by itself");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn sessions_do_as_their_model(operations in operations()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut world = World::new();
            for operation in &operations {
                world.carry_out(operation).await;
                world.compare();
            }
        });
    }
}
