//! What the person at the machine changes.

use std::io;

use serde_json::{Map, Value};

use super::{Allowed, Joined, Records, Trouble, private_file, records};

/// A change of what is allowed; `None` leaves a surface as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Seeing.
    pub screen: Option<bool>,
    /// Acting.
    pub control: Option<bool>,
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
    pub fn after(&self, change: Change) -> Result<Allowed, NotChanged> {
        let said = self.read();
        match said.joined {
            Joined::No if change.grants() => Err(NotChanged::NotJoined),
            Joined::Unclear(trouble) if change.grants() => Err(NotChanged::Unclear(trouble)),
            _ => Ok(change.on(said.allowed.unwrap_or_default())),
        }
    }

    /// Changes what is allowed, and says what is after it. Other fields of the record are kept, if it was sound.
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
        let sound = known.ok().filter(|text| records::consent(text).is_ok());
        let mut record: Map<String, Value> =
            sound.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        record.insert(records::SCREEN.to_owned(), allowed.screen.into());
        record.insert(records::CONTROL.to_owned(), allowed.control.into());
        let text = serde_json::to_string_pretty(&record).map_err(io::Error::from)?;
        private_file::replace(home, records::CONSENT, format!("{text}\n").as_bytes())?;
        Ok(allowed)
    }
}
