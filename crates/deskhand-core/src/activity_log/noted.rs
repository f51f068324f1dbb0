//! One call while the log waits for its outcome.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::{ActivityLog, Entry, Frame, Inner, Line};
use crate::call::{Call, Gist, Outcome};
use crate::consent::Leave;
use crate::desktop::{Desktop, Stop};
use crate::engine::see;
use crate::error::Error;
use crate::queue::StepKind;
use crate::session::Session;
use crate::subject::Subject;
use crate::timestamp::rfc3339;
use crate::tools::{self, ToolDefinition};

/// How long the frame of a call is waited for, beside everything else.
const LOOK: Duration = Duration::from_secs(2);
/// Characters kept of a session's id, which is the caller's own where a connection does not give it a life.
const MAX_ID: usize = 80;

/// A call that has come. One that is dropped was never begun.
#[derive(Debug)]
pub(crate) struct Noted {
    log: ActivityLog,
    tool: Option<&'static ToolDefinition>,
    begun: Instant,
    /// `None`: its end is noted.
    line: Option<Line>,
}

impl Noted {
    /// Notes a call. `session` is whose it is, if that lives.
    pub(crate) fn new(log: &ActivityLog, call: &Call, session: Option<&Session>) -> Self {
        let tool = tools::find(&call.tool);
        let id = |id: &str| id.chars().filter(|c| !c.is_control()).take(MAX_ID).collect::<String>();
        let session_id = match session {
            Some(session) => (!session.anonymous).then(|| id(&session.lane)),
            None => call.session.as_ref().map(|session| id(&session.0)),
        };
        let line = Line {
            time: rfc3339(SystemTime::now()),
            session: session.and_then(Session::label).or_else(|| session_id.clone()),
            session_id,
            tool: tool.map(|tool| tool.spec.name.to_owned()),
            arguments: call.arguments.keys().filter(|name| !name.starts_with('_')).cloned().collect(),
            ..Line::default()
        };
        Self { log: log.clone(), tool, begun: Instant::now(), line: Some(line) }
    }

    /// It is refused before anything of it was looked at closely: names of arguments may be anything.
    pub(crate) fn refuse(mut self, error: &Error) {
        let Some(mut line) = self.line.take() else { return };
        let known = self.tool.map(|tool| (tool.schema)()).unwrap_or_default();
        let is_known = |name: &String| known.get("properties").is_some_and(|names| names.get(name).is_some());
        let given = line.arguments.len();
        line.arguments.retain(is_known);
        line.unknown_arguments = (given - line.arguments.len()) as u64;
        line.duration_ms = self.duration_ms();
        self.hand_over(line, Gist::of_error(error), Frame::None);
    }

    /// Notes its outcome. If it acted, what is to be seen of `subject` is looked at beside everything else, as far as it may be
    /// seen then. Within a Tokio runtime.
    pub(crate) fn conclude(
        mut self,
        outcome: &Outcome,
        desktop: &Desktop,
        leave: &Arc<Leave>,
        subject: Subject,
    ) {
        let Some(mut line) = self.line.take() else { return };
        line.duration_ms = self.duration_ms();
        let gist = Gist::of(outcome);
        if !leave.acted() {
            return self.hand_over(line, gist, Frame::None);
        }
        let (desktop, leave) = (desktop.clone(), Arc::clone(leave));
        let number = self.log.0.newest_look.fetch_add(1, Ordering::Relaxed) + 1;
        let looks = self.log.0.looks.clone();
        looks.spawn(async move {
            let looked =
                self.log.0.ending.run_until_cancelled(self.look(number, &desktop, &leave, subject)).await;
            let frame = looked.unwrap_or(Frame::Missing("cancelled"));
            self.hand_over(line, gist, frame);
        });
    }

    /// Looks at what the call acted on. Of calls that end faster than pictures can be taken, the newest is looked at.
    async fn look(&self, number: u64, desktop: &Desktop, leave: &Leave, subject: Subject) -> Frame {
        let Inner { eye, newest_look, .. } = &*self.log.0;
        let stop = Stop::new();
        let _stops = stop.clone().drop_guard();
        let look = async {
            let _alone = eye.acquire().await;
            if newest_look.load(Ordering::Relaxed) > number {
                return Ok(Frame::Missing("superseded"));
            }
            leave.require_sight().await?;
            let target = subject.target(desktop).await?;
            see(desktop, leave, target.into(), &stop).await.map(Frame::Taken)
        };
        match tokio::time::timeout(LOOK, look).await {
            Ok(Ok(frame)) => frame,
            Ok(Err(error)) => Frame::Missing(error.code.name()),
            Err(_) => Frame::Missing("timeout"),
        }
    }

    fn duration_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn hand_over(&self, line: Line, gist: Gist, frame: Frame) {
        let Gist { effect, code, delivery } = gist;
        self.log.offer(Entry { line: Line { effect, code, delivery, ..line }, frame });
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        let Some(mut line) = self.line.take() else { return };
        line.duration_ms = self.duration_ms();
        let acts = self.tool.is_some_and(|tool| tool.spec.queue == Some(StepKind::Act));
        self.hand_over(line, Gist::never_begun(acts), Frame::None);
    }
}
