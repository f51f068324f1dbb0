//! The order on the desktop: complete operations one after another, fair between sessions.
//!
//! A [`Ticket`] is a place in the queue; it is taken without awaiting, when a request is read. First in, first out
//! within a session, round robin across sessions. Steps that only read run side by side, but never during one that
//! acts and never out of turn: a read that is behind an act waits for it, and an act waits for the reads before it. A
//! read that takes longer than [`READ_PLACE`] gives up its place and goes on beside later steps.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

/// How long a read keeps later acts waiting. Longer than any healthy tree takes, shorter than a person notices.
pub const READ_PLACE: Duration = Duration::from_millis(250);

/// What a step does to the desktop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// Only reads.
    Read,
    /// Changes something.
    Act,
}

/// The queue of one desktop. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct DesktopQueue {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Sessions that wait, the next to be served first. A session stands here once, however much it waits for.
    turns: VecDeque<Lane>,
    waiting: HashMap<Lane, VecDeque<Waiting>>,
    reading: usize,
    acting: bool,
    next_ticket: u64,
}

/// Names a session's own line in the queue.
type Lane = Arc<str>;

#[derive(Debug)]
struct Waiting {
    ticket: u64,
    kind: StepKind,
    granted: oneshot::Sender<()>,
}

impl State {
    /// Starts every step whose turn it is.
    fn advance(&mut self) {
        while !self.acting {
            let Some(lane) = self.turns.front().cloned() else { return };
            let Some(line) = self.waiting.get_mut(&lane) else { return };
            match line.front().map(|waiting| waiting.kind) {
                Some(StepKind::Act) if self.reading > 0 => return,
                _ => {}
            }
            self.turns.pop_front();
            let next = line.pop_front();
            if line.is_empty() {
                self.waiting.remove(&lane);
            } else {
                self.turns.push_back(lane);
            }
            if let Some(next) = next
                && next.granted.send(()).is_ok()
            {
                match next.kind {
                    StepKind::Read => self.reading += 1,
                    StepKind::Act => self.acting = true,
                }
            }
        }
    }

    fn leave(&mut self, lane: &Lane, ticket: u64) -> bool {
        let Some(line) = self.waiting.get_mut(lane) else { return false };
        let before = line.len();
        line.retain(|waiting| waiting.ticket != ticket);
        let left = line.len() < before;
        if line.is_empty() {
            self.waiting.remove(lane);
            self.turns.retain(|turn| turn != lane);
        }
        left
    }

    fn release(&mut self, kind: StepKind) {
        match kind {
            StepKind::Read => self.reading -= 1,
            StepKind::Act => self.acting = false,
        }
    }
}

impl DesktopQueue {
    /// Takes a place for one step of the session called `lane`.
    pub fn ticket(&self, lane: &Arc<str>, kind: StepKind) -> Ticket {
        let mut state = self.lock();
        let number = state.next_ticket;
        state.next_ticket += 1;
        let (granted, turn) = oneshot::channel();
        if !state.waiting.contains_key(lane) {
            state.turns.push_back(Arc::clone(lane));
        }
        state.waiting.entry(Arc::clone(lane)).or_default().push_back(Waiting {
            ticket: number,
            kind,
            granted,
        });
        state.advance();
        Ticket { queue: self.clone(), lane: Arc::clone(lane), number, kind, turn: Some(turn) }
    }

    /// How many steps wait, in all sessions.
    pub fn waiting(&self) -> usize {
        self.lock().waiting.values().map(VecDeque::len).sum()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent between any two statements that could panic: there is none under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the queue. Dropping it leaves the queue.
#[derive(Debug)]
pub struct Ticket {
    queue: DesktopQueue,
    lane: Lane,
    number: u64,
    kind: StepKind,
    /// `None` once the turn has come.
    turn: Option<oneshot::Receiver<()>>,
}

impl Ticket {
    /// The kind of step it is for.
    pub const fn kind(&self) -> StepKind {
        self.kind
    }

    /// Waits for the turn. Cancel-safe: dropping the future leaves the queue.
    pub async fn turn(mut self) -> Permit {
        if let Some(turn) = self.turn.as_mut() {
            // The sender is dropped only by `leave`, which only our own drop calls.
            let _ = turn.await;
        }
        self.turn = None;
        Permit { queue: self.queue.clone(), kind: self.kind, held: true }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let Some(mut turn) = self.turn.take() else { return };
        let mut state = self.queue.lock();
        // Not in line any more and granted: the turn came between the last poll and this drop.
        if !state.leave(&self.lane, self.number) && turn.try_recv().is_ok() {
            state.release(self.kind);
        }
        state.advance();
    }
}

/// The right to run one step. Dropping it lets the next ones go.
#[derive(Debug)]
pub struct Permit {
    queue: DesktopQueue,
    kind: StepKind,
    held: bool,
}

impl Permit {
    /// Runs a step. The answer is its result and whether it was a read that gave up its place, so that later
    /// steps may have run beside it.
    pub async fn run<T>(mut self, step: impl Future<Output = T>) -> (T, bool) {
        let mut step = std::pin::pin!(step);
        if self.kind == StepKind::Act {
            return (step.await, false);
        }
        tokio::select! {
            biased;
            result = &mut step => (result, false),
            () = tokio::time::sleep(READ_PLACE) => {
                self.give_up();
                (step.await, true)
            }
        }
    }

    fn give_up(&mut self) {
        if std::mem::take(&mut self.held) {
            let mut state = self.queue.lock();
            state.release(self.kind);
            state.advance();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.give_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lane(name: &str) -> Arc<str> {
        name.into()
    }

    fn granted(ticket: &mut Ticket) -> bool {
        // A ticket that has its turn is ready at the first poll.
        let granted = ticket.turn.as_mut().is_none_or(|turn| turn.try_recv().is_ok());
        if granted {
            ticket.turn = None;
        }
        granted
    }

    impl Ticket {
        fn into_permit(mut self) -> Permit {
            self.turn = None;
            Permit { queue: self.queue.clone(), kind: self.kind, held: true }
        }
    }

    #[test]
    fn a_busy_session_does_not_starve_another() {
        let queue = DesktopQueue::default();
        let (a, b) = (lane("a"), lane("b"));
        let mut first = queue.ticket(&a, StepKind::Act);
        let mut more: Vec<_> = (0..10).map(|_| queue.ticket(&a, StepKind::Act)).collect();
        let mut other = queue.ticket(&b, StepKind::Act);
        assert!(granted(&mut first));
        drop(first.into_permit());
        // A's second was in line before B came; then it is B's turn, not A's third.
        assert!(granted(&mut more[0]) && !granted(&mut other));
        drop(more.remove(0).into_permit());
        assert!(granted(&mut other) && !granted(&mut more[0]));
    }

    #[test]
    fn reads_run_side_by_side_but_not_past_an_act() {
        let queue = DesktopQueue::default();
        let a = lane("a");
        let mut reads = [queue.ticket(&a, StepKind::Read), queue.ticket(&a, StepKind::Read)];
        let mut act = queue.ticket(&a, StepKind::Act);
        let mut late = queue.ticket(&lane("b"), StepKind::Read);
        assert!(reads.iter_mut().all(granted));
        assert!(!granted(&mut act) && !granted(&mut late));
        let [first, second] = reads;
        drop(first.into_permit());
        assert!(!granted(&mut act));
        drop(second.into_permit());
        assert!(granted(&mut act) && !granted(&mut late));
        drop(act.into_permit());
        assert!(granted(&mut late));
    }

    #[test]
    fn a_turn_that_comes_while_its_ticket_is_dropped_is_passed_on() {
        let queue = DesktopQueue::default();
        let a = lane("a");
        let first = queue.ticket(&a, StepKind::Act);
        let mut second = queue.ticket(&a, StepKind::Act);
        drop(first); // granted, never polled
        assert!(granted(&mut second));
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_read_gives_up_its_place_and_says_so() {
        let queue = DesktopQueue::default();
        let a = lane("a");
        let read = queue.ticket(&a, StepKind::Read);
        let act = queue.ticket(&a, StepKind::Act);
        let (release, wait) = oneshot::channel::<()>();
        let reading = tokio::spawn(async move { read.turn().await.run(wait).await.1 });
        let permit = act.turn().await; // comes once the read has given up its place
        drop(permit);
        release.send(()).unwrap();
        assert!(reading.await.unwrap(), "the read must say that it overlapped");
    }

    #[derive(Clone, Debug)]
    enum Operation {
        Take(u8, bool),
        /// Takes a place and gives it back before anybody looks whether its turn has come.
        TakeAndLeave(u8, bool),
        Leave(usize),
        Finish(usize),
    }

    fn operations() -> impl Strategy<Value = Vec<Operation>> {
        let operation = prop_oneof![
            3 => (0..4u8, any::<bool>()).prop_map(|(lane, act)| Operation::Take(lane, act)),
            1 => (0..4u8, any::<bool>()).prop_map(|(lane, act)| Operation::TakeAndLeave(lane, act)),
            1 => (0..64usize).prop_map(Operation::Leave),
            3 => (0..64usize).prop_map(Operation::Finish),
        ];
        proptest::collection::vec(operation, 1..200)
    }

    proptest! {
        /// Never an act beside anything; first in, first out within a session; nothing waits while nothing runs; no session gets
        /// two turns while another waits for one; who leaves, holds up nobody.
        #[test]
        fn random_operations_keep_the_order(operations in operations()) {
            let queue = DesktopQueue::default();
            let mut waiting: Vec<Ticket> = Vec::new();
            let mut running: Vec<Permit> = Vec::new();
            // Turns that others had since a session began to wait for its next one.
            let mut passed: HashMap<Lane, HashMap<Lane, usize>> = HashMap::new();
            for operation in operations {
                match operation {
                    Operation::Take(name, act) => waiting.push(
                        queue.ticket(&lane(&name.to_string()), if act { StepKind::Act } else { StepKind::Read }),
                    ),
                    Operation::TakeAndLeave(name, act) => drop(
                        queue.ticket(&lane(&name.to_string()), if act { StepKind::Act } else { StepKind::Read }),
                    ),
                    Operation::Leave(at) if !waiting.is_empty() => {
                        let at = at % waiting.len();
                        drop(waiting.remove(at));
                    }
                    Operation::Finish(at) if !running.is_empty() => {
                        let at = at % running.len();
                        drop(running.remove(at));
                    }
                    _ => {}
                }
                let mut still = Vec::new();
                let mut blocked: Vec<Arc<str>> = Vec::new();
                let mut granted_to: Vec<Lane> = Vec::new();
                for mut ticket in waiting {
                    if granted(&mut ticket) {
                        prop_assert!(!blocked.contains(&ticket.lane), "out of turn within a session");
                        granted_to.push(Arc::clone(&ticket.lane));
                        running.push(ticket.into_permit());
                    } else {
                        if !blocked.contains(&ticket.lane) {
                            blocked.push(Arc::clone(&ticket.lane));
                        }
                        still.push(ticket);
                    }
                }
                waiting = still;
                passed.retain(|lane, _| blocked.contains(lane) && !granted_to.contains(lane));
                for lane in &blocked {
                    let passed = passed.entry(Arc::clone(lane)).or_default();
                    for other in granted_to.iter().filter(|other| *other != lane && !granted_to.contains(lane)) {
                        let turns = passed.entry(Arc::clone(other)).or_default();
                        *turns += 1;
                        prop_assert!(*turns <= 1, "{} had two turns while {} waited", other, lane);
                    }
                }
                let acting = running.iter().filter(|permit| permit.kind == StepKind::Act).count();
                prop_assert!(acting == 0 || running.len() == 1, "an act runs beside another step");
                prop_assert!(!running.is_empty() || waiting.is_empty(), "steps wait while nothing runs");
                prop_assert_eq!(queue.waiting(), waiting.len());
            }
        }
    }
}
