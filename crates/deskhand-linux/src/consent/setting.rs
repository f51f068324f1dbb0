//! What the person at the machine changes.

use std::io;

use super::{Allowed, Joined, Records, Trouble, private_file, records};

/// A change of what is allowed; `None` leaves a surface as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Seeing.
    pub screen: Option<bool>,
    /// Acting.
    pub control: Option<bool>,
}

/// A change that the person is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    change: Change,
    before: Allowed,
    /// What would be allowed after it.
    pub after: Allowed,
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum NotChanged {
    /// There is nothing to allow.
    #[error("this machine is not joined: agents need no consent here, and none is given in advance")]
    NotJoined,
    /// Whatever is allowed would not count.
    #[error(
        "whether this machine is joined cannot be told, so that nothing is allowed whatever is granted. The join record: {0}"
    )]
    Unclear(Trouble),
    /// The answer is to another question.
    #[error(
        "what is allowed was changed while the question was open, so that the answer is not to what is now; nothing was \
         changed by it: ask again"
    )]
    Meanwhile,
    /// With its other fields it would be too large to count.
    #[error("the consent record would be larger than {} KiB and not count", private_file::MAX_BYTES / 1024)]
    TooLarge,
    /// The record could not be written.
    #[error("the consent record could not be written: {0}")]
    NotWritten(#[from] io::Error),
}

impl Change {
    /// Whether it allows anything.
    pub fn grants(self) -> bool {
        self.screen == Some(true) || self.control == Some(true)
    }

    /// `allowed` after it.
    #[must_use]
    pub fn on(self, allowed: Allowed) -> Allowed {
        Allowed {
            screen: self.screen.unwrap_or(allowed.screen),
            control: self.control.unwrap_or(allowed.control),
        }
    }
}

impl Records {
    /// What would be allowed after `change`.
    ///
    /// # Errors
    /// If it would not count.
    fn after(&self, change: Change) -> Result<Allowed, NotChanged> {
        let said = self.read();
        match said.joined {
            Joined::No if change.grants() => Err(NotChanged::NotJoined),
            Joined::Unclear(trouble) if change.grants() => Err(NotChanged::Unclear(trouble)),
            _ => Ok(change.on(said.allowed.unwrap_or_default())),
        }
    }

    /// Changes what is allowed, and says what is after it. Everything else in the record is kept as it stands, if it was
    /// sound.
    ///
    /// # Errors
    /// If it would not count, or could not be written.
    pub fn change(&self, change: Change) -> Result<Allowed, NotChanged> {
        let allowed = self.after(change)?;
        let Some(home) = &self.home else { return Err(NotChanged::Unclear(Trouble::NoHome)) };
        let path = home.join(records::CONSENT);
        let known = private_file::read(&path, self.uid);
        if !change.grants() && known == Err(Trouble::Missing) {
            // Nothing is allowed already, and a machine that is not joined is left without records.
            return Ok(allowed);
        }
        let kept = known.and_then(|text| records::consent(&text).and_then(|_| records::with(&text, allowed)));
        let record = kept.unwrap_or_else(|_| records::new(allowed));
        // (A revoke is written all the same: what does not count allows nothing.)
        if record.len() > private_file::MAX_BYTES && change.grants() {
            return Err(NotChanged::TooLarge);
        }
        private_file::replace(home, records::CONSENT, &record)?;
        Ok(allowed)
    }

    /// What the person is to be asked about.
    ///
    /// # Errors
    /// If the change would not count.
    pub fn question(&self, change: Change) -> Result<Question, NotChanged> {
        let before = self.read().allowed.unwrap_or_default();
        Ok(Question { change, before, after: self.after(change)? })
    }

    /// Does what the person has agreed to.
    ///
    /// # Errors
    /// As [`Records::change`]; and if something else is allowed by now than what the question was about.
    pub fn agreed(&self, question: Question) -> Result<Allowed, NotChanged> {
        let Question { change, before, after } = self.question(question.change)?;
        if (before, after) != (question.before, question.after) {
            return Err(NotChanged::Meanwhile);
        }
        self.change(change)
    }
}
