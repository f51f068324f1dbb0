//! Consent from records in the user's home: `machine-credential.json` says that the machine is joined, `consent.json` what
//! the person at it allows. Both are read at every question; nothing is kept.
//!
//! Advisory: whoever starts the process chooses its environment, and with it the home.

mod home;
mod private_file;
mod records;
mod refusal;
mod setting;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use async_trait::async_trait;
use deskhand_core::consent::{ConsentSource, Grant, Refusal, Report};
use rustix::io::Errno;

pub use records::Allowed;
pub use setting::{Change, NotChanged, Question};

/// The variables that say where the records are. A process that is started to own a desktop must be given them.
pub const VARIABLES: [&str; 2] = [home::OWN, home::GENERAL];

/// The records of one home. Making it opens nothing.
#[derive(Clone)]
pub struct Records {
    /// `None`: not known, so that nothing is granted.
    home: Option<PathBuf>,
    /// Who must own them.
    uid: u32,
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").finish_non_exhaustive()
    }
}

/// What the records say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Whether the machine is joined.
    pub joined: Joined,
    /// What the person allows. Meaningful on a joined machine.
    pub allowed: Result<Allowed, Trouble>,
}

/// Whether a machine is joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// There is no join record.
    No,
    /// There is one.
    Yes,
    /// It cannot be told, which counts as joined with nothing allowed.
    Unclear(Trouble),
}

/// Why a record counts for nothing. Says neither a path nor anything that stands in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // the texts say it
pub enum Trouble {
    #[error("the home of the records is not known: neither a variable nor the password database names it")]
    NoHome,
    #[error("the folder of the records is a link that leads nowhere")]
    Dangling,
    #[error("it is not there")]
    Missing,
    #[error("it is a link, and must be a file")]
    Link,
    #[error("it cannot be read")]
    Unreadable,
    #[error("it is no regular file")]
    NotAFile,
    #[error("it belongs to another user")]
    NotOwned,
    #[error("others can write to it")]
    Shared,
    #[error("it is larger than {} KiB", private_file::MAX_BYTES / 1024)]
    TooLarge,
    #[error("it is not what it should be")]
    Malformed,
}

impl Records {
    /// The records of this user, as the variables of a process say where they are.
    pub fn from_variables(variables: &BTreeMap<OsString, OsString>) -> Self {
        let uid = rustix::process::geteuid().as_raw();
        Self { home: home::of(variables, || home::of_user(uid)), uid }
    }

    /// Reads both records.
    pub fn read(&self) -> Said {
        let joined = self.joined();
        let allowed = match (&self.home, joined) {
            (None, _) => Err(Trouble::NoHome),
            (Some(_), Joined::No) => Err(Trouble::Missing),
            (Some(home), _) => private_file::read(&home.join(records::CONSENT), self.uid)
                .and_then(|text| records::consent(&text)),
        };
        Said { joined, allowed }
    }

    fn joined(&self) -> Joined {
        let Some(home) = &self.home else { return Joined::Unclear(Trouble::NoHome) };
        let record = home.join(records::JOIN);
        let trouble = match rustix::fs::lstat(&record) {
            Ok(_) => private_file::read(&record, self.uid).and_then(|text| records::join(&text)).err(),
            // Also where a folder on the way leads nowhere.
            Err(Errno::NOENT) => match home::leads_somewhere(home) {
                Ok(()) => return Joined::No,
                Err(trouble) => Some(trouble),
            },
            Err(_) => Some(Trouble::Unreadable),
        };
        trouble.map_or(Joined::Yes, Joined::Unclear)
    }
}

impl Said {
    /// What that allows.
    pub fn grant(&self) -> Grant {
        match (self.joined, &self.allowed) {
            (Joined::No, _) => Grant::NOT_JOINED,
            (Joined::Yes, Ok(Allowed { screen, control })) => {
                Grant { joined: true, screen: *screen, control: *control }
            }
            (Joined::Yes, Err(_)) | (Joined::Unclear(_), _) => Grant::NOTHING,
        }
    }
}

impl Said {
    /// What is wrong, if nobody decided that it should be so.
    pub fn trouble(&self) -> Option<String> {
        match (self.joined, &self.allowed) {
            (Joined::Unclear(why), _) => Some(format!(
                "whatever is granted, nothing is allowed: the join record does not count: {why}"
            )),
            (Joined::Yes, Err(Trouble::Missing)) => Some("nothing was granted yet".to_owned()),
            (Joined::Yes, Err(why)) => Some(format!("the consent record does not count: {why}")),
            (Joined::Yes, Ok(Allowed { screen: false, control: true })) => {
                Some("acting is granted, and needs seeing as well: deskhand consent grant screen".to_owned())
            }
            (Joined::Yes, Ok(_)) | (Joined::No, _) => None,
        }
    }

    /// Both.
    pub fn report(&self) -> Report {
        Report { grant: self.grant(), trouble: self.trouble() }
    }
}

/// Small files, read where the question is put: no answer is older than its question.
#[async_trait]
impl ConsentSource for Records {
    async fn grant(&self) -> Grant {
        self.read().grant()
    }

    async fn report(&self) -> Report {
        self.read().report()
    }

    async fn refused(&self, refusal: Refusal) {
        let Some(home) = &self.home else { return };
        if let Err(error) = refusal::write(home, refusal) {
            tracing::debug!(kind = %error.kind(), "the refusal could not be written down");
        }
    }
}

#[cfg(test)]
mod tests;
