use futures_util::future::BoxFuture;

use super::Engine;
use crate::call::{Call, Outcome, SessionId};
use crate::driver::{Driver, Profile, ToolListing};
use crate::error::Result;
use crate::session::Lease;

/// An engine as one client has it that lives in the same process: its calls belong to its session, which has a lease.
#[derive(Clone, Debug)]
pub struct Leased {
    engine: Engine,
    session: SessionId,
    lease: Option<Lease>,
}

impl Engine {
    /// Begins a session that lives until [`Driver::end_session`], and gives the driver whose calls belong to it.
    ///
    /// # Errors
    /// As [`Engine::open_session`].
    pub fn lease(&self, session: &SessionId, label: Option<&str>) -> Result<Leased> {
        let lease = self.open_session(session, true, label)?;
        Ok(Leased { engine: self.clone(), session: session.clone(), lease })
    }
}

impl Driver for Leased {
    fn tools(&self, profile: Profile) -> BoxFuture<'_, Result<Vec<ToolListing>>> {
        self.engine.tools(profile)
    }

    fn submit(&self, mut call: Call) -> BoxFuture<'static, Outcome> {
        if call.session.as_ref() == Some(&self.session) {
            call.lease.clone_from(&self.lease);
        }
        self.engine.submit(call)
    }

    fn leave(&self, session: &SessionId) {
        self.engine.leave(session);
    }

    fn end_session(&self, session: SessionId) -> BoxFuture<'_, ()> {
        self.engine.end_session(session)
    }
}
