//! What one call may do, asked for anew at each of its steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::gate::{Gate, Watch};
use super::{Grant, Refusal};
use crate::call::Outcome;
use crate::desktop::Check;
use crate::error::{Code, Error, Result};
use crate::queue::StepKind;
use crate::tools::{Spec, Surface};

/// The leave of one call.
#[derive(Debug)]
pub(crate) struct Leave {
    gate: Arc<Gate>,
    tool: &'static str,
    need: Surface,
    /// Whether a step that acts was begun.
    acted: AtomicBool,
}

impl Leave {
    pub(crate) fn new(gate: &Arc<Gate>, spec: &Spec) -> Self {
        let need = super::need(spec.name);
        Self { gate: Arc::clone(gate), tool: spec.name, need, acted: AtomicBool::new(false) }
    }

    /// Whether the tool is one that acts. (What needs leave to act does, and nothing else may.)
    pub(crate) fn acts(&self) -> bool {
        self.need == Surface::Control
    }

    /// Whether a step that acts was begun.
    pub(crate) fn acted(&self) -> bool {
        self.acted.load(Ordering::Relaxed)
    }

    /// Whether the call may run.
    ///
    /// # Errors
    /// `consent_required`.
    pub(crate) async fn require(&self) -> Result<()> {
        if self.need == Surface::None {
            return Ok(());
        }
        let Some(surface) = self.grant().await.lacks(self.need) else { return Ok(()) };
        let error = self.gate.refuse(self.refusal(surface)).await;
        Err(match self.acted() {
            true => how_far(error, "an earlier part of it had been done", &json!({"delivery": "partial"})),
            false => error,
        })
    }

    /// The same for a step whose turn has come, right before it touches a port.
    pub(crate) async fn require_step(&self, kind: StepKind) -> Result<()> {
        self.require().await?;
        if kind == StepKind::Act {
            self.acted.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Whether the call may take pixels at this moment.
    ///
    /// # Errors
    /// `consent_required`.
    pub(crate) async fn require_sight(&self) -> Result<()> {
        match self.grant().await.sees() {
            true => Ok(()),
            false => Err(self.gate.error(self.refusal(Surface::Screen))),
        }
    }

    /// What is allowed now.
    pub(crate) async fn grant(&self) -> Grant {
        self.gate.look().await
    }

    /// The same as one line of a report.
    pub(crate) async fn check(&self) -> Check {
        let check = self.grant().await.check();
        if self.gate.is_set_by_command() {
            return check;
        }
        let fix = "the person at the machine allows it in the application that consent comes from";
        Check { fix: check.fix.map(|_| fix.to_owned()), ..check }
    }

    /// Watches for a revoke while the call runs. Each step asks all the same where that cannot be had.
    pub(crate) fn watch(&self) -> Option<Watch> {
        if self.need == Surface::None {
            return None;
        }
        self.gate.watch(self.need).inspect_err(|error| tracing::warn!(%error, "a call is not watched")).ok()
    }

    /// What the caller is told at the end: nothing of the screen, if it may no longer be seen, and how far a call got that
    /// was stopped by a revoke.
    pub(crate) async fn conclude(&self, outcome: Outcome, watch: Option<&Watch>) -> Outcome {
        let revoked = watch.is_some_and(|watch| watch.revoked().is_cancelled());
        if self.need == Surface::None || matches!(&outcome, Err(error) if error.code == Code::ConsentRequired)
        {
            return outcome;
        }
        let grant = self.grant().await;
        let surface = match grant.lacks(self.need) {
            Some(surface) => surface,
            // Revoked and allowed again.
            None if revoked => self.need,
            None => return outcome,
        };
        if self.need == Surface::Control && grant.sees() && outcome.is_ok() {
            // Done, and read back while that was allowed.
            return outcome;
        }
        let refusal = self.gate.refuse(self.refusal(surface)).await;
        Err(match outcome {
            Err(error) if error.code == Code::Cancelled => {
                let details = error.details.unwrap_or_else(|| json!({}));
                how_far(refusal, &error.message, &details)
            }
            _ if self.need != Surface::Control => refusal,
            Ok(_) => how_far(refusal, "it had been done", &json!({"delivery": "complete"})),
            Err(error) => {
                let details = error.details.unwrap_or_default();
                match details["delivery"].as_str() {
                    Some(delivery) => how_far(refusal, delivery, &json!({"delivery": delivery})),
                    None if self.acted() => {
                        how_far(refusal, "how far it got is uncertain", &json!({"delivery": "uncertain"}))
                    }
                    None => how_far(refusal, "nothing was done", &json!({"delivery": "not_delivered"})),
                }
            }
        })
    }

    fn refusal(&self, surface: Surface) -> Refusal {
        Refusal { surface, tool: self.tool }
    }
}

/// The refusal of a call that had begun.
fn how_far(mut refusal: Error, words: &str, details: &Value) -> Error {
    refusal.message = format!("{}. Of this call: {words}", refusal.message);
    if let (Some(Value::Object(all)), Value::Object(more)) = (&mut refusal.details, details) {
        all.extend(more.clone());
    }
    refusal
}
