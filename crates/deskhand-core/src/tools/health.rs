//! `health_report` and `check_permissions`.

use serde::Serialize;

use super::cursor::Nothing;
use super::{Reply, Spec, Surface, Tool};
use crate::activity_log::ActivityLog;
use crate::desktop::{Check, CheckStatus, Need};
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
        let mut checks = context.desktop().health.checks().await;
        checks.push(context.consent_check().await);
        checks.extend(context.host().activity_log.as_ref().map(ActivityLog::check));
        let healthy = checks.iter().all(|check| check.status != CheckStatus::Missing);
        Ok(Report { version: context.host().version.clone(), healthy, checks })
    }
}

/// What can be done here.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Permissions {
    /// Whether all of it works.
    ready: bool,
    permissions: Vec<Permission>,
}

/// Something that an agent does, and what stands in its way.
#[derive(Clone, Debug, Serialize)]
struct Permission {
    name: &'static str,
    status: CheckStatus,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    because: Vec<Check>,
}

impl Permissions {
    /// What the person allows is something that stands in the way of everything, and works by itself.
    fn with_consent(mut self, consent: Check) -> Self {
        let status = consent.status;
        if status != CheckStatus::Ok {
            self.ready = false;
            self.permissions.push(Permission { name: "consent", status, because: vec![consent] });
        }
        self
    }

    /// From all checks and what of them each need stands on.
    fn of(checks: &[Check], needs: &[Need]) -> Self {
        let permission = |need: &Need| {
            let trouble =
                |check: &&Check| need.checks.contains(&&*check.name) && check.status != CheckStatus::Ok;
            let because: Vec<Check> = checks.iter().filter(trouble).cloned().collect();
            let missing = because.iter().any(|check| check.status == CheckStatus::Missing);
            let status = match (because.is_empty(), missing) {
                (true, _) => CheckStatus::Ok,
                (false, true) => CheckStatus::Missing,
                (false, false) => CheckStatus::Degraded,
            };
            Permission { name: need.name, status, because }
        };
        let permissions: Vec<Permission> = needs.iter().map(permission).collect();
        let ready = permissions.iter().all(|permission| permission.status == CheckStatus::Ok);
        Self { ready, permissions }
    }
}

impl Reply for Permissions {
    fn text(&self) -> String {
        let mut text = if self.ready { "everything works" } else { "not everything works" }.to_owned();
        for Permission { name, status, because } in &self.permissions {
            text += &match status {
                CheckStatus::Ok => format!("\n{name}: works"),
                CheckStatus::Degraded => format!("\n{name}: works in part"),
                CheckStatus::Missing => format!("\n{name}: DOES NOT WORK"),
            };
            for check in because {
                text += &format!("\n  {}: {}", check.name, check.detail);
                if let Some(fix) = &check.fix {
                    text += &format!(" — fix: {fix}");
                }
            }
        }
        text
    }
}

pub(super) struct CheckPermissions;

impl Tool for CheckPermissions {
    const SPEC: Spec = Spec {
        name: "check_permissions",
        description: "Whether the screen can be seen, elements read, and pointer and keyboard used here; what stands in the way, \
                      and the command that mends it. health_report has every check.",
        surface: Surface::None,
        queue: None,
        destructive: false,
        idempotent: true,
        listed: false,
        example: "{}",
    };
    type Arguments = Nothing;
    type Reply = Permissions;

    async fn run(_: Nothing, context: Context) -> Result<Permissions> {
        let health = &context.desktop().health;
        let consent = context.consent_check().await;
        Ok(Permissions::of(&health.checks().await, health.needs()).with_consent(consent))
    }
}
