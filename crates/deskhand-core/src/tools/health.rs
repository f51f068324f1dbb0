//! `health_report`.

use serde::Serialize;

use super::cursor::Nothing;
use super::{Reply, Spec, Surface, Tool};
use crate::desktop::{Check, CheckStatus};
use crate::engine::Context;
use crate::error::Result;

/// What works here.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    version: String,
    healthy: bool,
    checks: Vec<Check>,
}

impl Reply for Report {
    fn text(&self) -> String {
        let mut text = format!("deskhand {}", self.version);
        for check in &self.checks {
            let mark = match check.status {
                CheckStatus::Ok => "ok",
                CheckStatus::Degraded => "degraded",
                CheckStatus::Missing => "MISSING",
            };
            text += &format!("\n{mark:9} {}: {}", check.name, check.detail);
            if let Some(fix) = &check.fix {
                text += &format!(" — fix: {fix}");
            }
        }
        text
    }
}

pub(super) struct HealthReport;

impl Tool for HealthReport {
    const SPEC: Spec = Spec {
        name: "health_report",
        description: "What works on this desktop, what does not, and the command that mends it. Ask it when calls fail with \
                      desktop_unavailable.",
        surface: Surface::None,
        queue: None,
        destructive: false,
        idempotent: true,
        listed: true,
        example: "{}",
    };
    type Arguments = Nothing;
    type Reply = Report;

    async fn run(_: Nothing, context: Context) -> Result<Report> {
        let checks = context.desktop().health.checks().await;
        let healthy = checks.iter().all(|check| check.status != CheckStatus::Missing);
        Ok(Report { version: context.host().version.clone(), healthy, checks })
    }
}
