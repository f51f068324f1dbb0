//! Consent: on a joined machine nothing is seen and nobody acts without the leave of the person at it.
//!
//! Where leave comes from is a [`ConsentSource`]'s business. The `gate` asks it whenever it matters and never keeps an
//! answer; what each tool needs stands in its definition ([`Spec::surface`](crate::tools::Spec)).

pub(crate) mod gate;
mod leave;

use std::fmt::Debug;

use async_trait::async_trait;
use serde_json::json;

pub use gate::Background;
pub(crate) use leave::Leave;

use crate::desktop::{Check, CheckStatus};
use crate::error::{Code, Error};
use crate::tools::{self, Surface};

/// What the person at the machine allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Whether the machine has been added to somebody's fleet. If not, consent is not asked for.
    pub joined: bool,
    /// Seeing is allowed.
    pub screen: bool,
    /// Acting is allowed, if seeing is.
    pub control: bool,
}

impl Grant {
    /// The machine is nobody's but its user's: everything runs.
    pub const NOT_JOINED: Self = Self { joined: false, screen: false, control: false };
    /// Joined, or not known, and nothing is allowed.
    pub const NOTHING: Self = Self { joined: true, screen: false, control: false };

    /// Whether the screen may be seen.
    pub const fn sees(self) -> bool {
        !self.joined || self.screen
    }

    /// Whether the person's desktop may be acted on.
    pub const fn acts(self) -> bool {
        !self.joined || (self.screen && self.control)
    }

    /// What of `need` is not granted; `None` if all of it is. Where acting lacks both, control is named: whoever allows
    /// that allows seeing with it.
    pub const fn lacks(self, need: Surface) -> Option<Surface> {
        match need {
            Surface::None => None,
            Surface::Screen if self.sees() => None,
            Surface::Control if self.acts() => None,
            Surface::Control if !self.control => Some(Surface::Control),
            Surface::Screen | Surface::Control => Some(Surface::Screen),
        }
    }

    /// As one line of a report on what works.
    pub fn check(self) -> Check {
        let (status, detail, fix) = match (self.joined, self.screen, self.control) {
            (false, ..) => (CheckStatus::Ok, "not asked for: this machine is not joined", None),
            (true, true, true) => (CheckStatus::Ok, "joined; seeing and acting are allowed", None),
            (true, true, false) => (
                CheckStatus::Degraded,
                "joined; seeing is allowed, acting is not",
                Some("the person at the machine runs: deskhand consent grant control"),
            ),
            (true, false, _) => (
                CheckStatus::Missing,
                "joined; neither seeing nor acting is allowed",
                Some("the person at the machine runs: deskhand consent grant all"),
            ),
        };
        let (detail, fix) = (detail.to_owned(), fix.map(str::to_owned));
        Check { name: "consent".to_owned(), status, detail, fix }
    }
}

/// What is allowed, for a person who wonders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What is allowed.
    pub grant: Grant,
    /// What is wrong, if nobody decided that it should be so. Says neither a path nor anything that stands in a record.
    pub trouble: Option<String>,
}

/// A call that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What was not allowed: `Screen` or `Control`.
    pub surface: Surface,
    /// The tool that needed it.
    pub tool: &'static str,
}

impl Refusal {
    /// The error that the caller gets. Names neither files nor anything of the screen.
    pub fn error(self) -> Error {
        let way = format!(
            "in the program that joined this machine or with `deskhand consent grant {}`",
            self.surface.name()
        );
        self.error_with(&way)
    }

    /// The same where only the host application can be told what is allowed.
    pub(crate) fn error_of_host(self) -> Error {
        self.error_with("in the application that this machine's consent comes from")
    }

    /// `way`: how the person can allow it.
    fn error_with(self, way: &str) -> Error {
        let Self { surface, tool } = self;
        let what = match surface {
            Surface::Control => "act on it",
            Surface::Screen | Surface::None => "see its screen",
        };
        let message = format!(
            "{tool} was refused: the person at this machine has not allowed agents to {what}. They can allow it there, {way}; \
             try again after that"
        );
        Error::new(Code::ConsentRequired, message)
            .with_details(json!({"surface": surface.name(), "tool": tool}))
    }
}

/// Where consent comes from.
#[async_trait]
pub trait ConsentSource: Debug + Send + Sync {
    /// What is allowed at this moment. Bounded, never an answer from before; whatever goes wrong grants nothing.
    async fn grant(&self) -> Grant;

    /// The same for a person who wonders why.
    async fn report(&self) -> Report {
        Report { grant: self.grant().await, trouble: None }
    }

    /// Leaves word of a refusal for the person. Failing changes nothing.
    async fn refused(&self, refusal: Refusal);

    /// Whether the person can say what they allow with `deskhand consent`.
    fn is_set_by_command(&self) -> bool {
        true
    }
}

/// The source of a machine that cannot be joined.
#[derive(Clone, Copy, Debug, Default)]
pub struct NeverJoined;

#[async_trait]
impl ConsentSource for NeverJoined {
    async fn grant(&self) -> Grant {
        Grant::NOT_JOINED
    }

    async fn refused(&self, _: Refusal) {}
}

/// What a tool needs, by its name. One that no definition classifies needs all there is.
pub fn need(tool: &str) -> Surface {
    tools::find(tool).map_or(Surface::Control, |tool| tool.spec.surface)
}
