//! Applications of a private desktop: launched by name, listed, ended.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use deskhand_core::desktop::{CheckStatus, Desktop, Ended, LaunchRequest, PortError, RunningApp, WindowKind};
use deskhand_linux::environment::{EnvironmentSource, SessionEnvironment};
use deskhand_linux::private::{PrivateOptions, PrivateSource};
use tokio::time::timeout;

const PROGRAM: &str = env!("CARGO_BIN_EXE_deskhand");

/// Nothing here takes longer on a machine that works.
const PATIENCE: Duration = Duration::from_secs(30);

async fn on_a_private_desktop<F: Future<Output = ()>>(
    test: impl FnOnce(Desktop, Arc<SessionEnvironment>) -> F,
) {
    let source = Arc::new(PrivateSource::new(PrivateOptions::default(), PROGRAM.into()));
    let desktop = deskhand_linux::desktop(Arc::clone(&source) as _, PROGRAM.into());
    let session = source.get().await.unwrap();
    test(desktop, session).await;
    source.shutdown().await;
}

fn app(name: &str) -> LaunchRequest {
    LaunchRequest { app: name.to_owned(), ..LaunchRequest::default() }
}

/// Waits until the windows show what `look` finds.
async fn seen<T>(desktop: &Desktop, look: impl Fn(&[RunningApp]) -> Option<T>) -> T {
    let mut changes = desktop.windows.changes().await.unwrap();
    let wait = async {
        loop {
            if let Some(found) = look(&desktop.apps.running().await.unwrap()) {
                return found;
            }
            changes.changed().await.unwrap();
        }
    };
    timeout(PATIENCE, wait).await.expect("in time")
}

/// Waits until a launched process has ended.
async fn exit(desktop: &Desktop, pid: u32) -> i32 {
    let wait = async {
        loop {
            if let Some(code) = desktop.apps.exited(pid).await {
                return code;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, wait).await.expect("in time")
}

#[tokio::test]
async fn an_application_is_launched_by_its_name_listed_and_ended() {
    on_a_private_desktop(|desktop, session| async move {
        assert_eq!(desktop.apps.running().await.unwrap(), []);
        let file = session.home.clone().unwrap().join("a note.txt");
        std::fs::write(&file, "text").unwrap();
        let request = LaunchRequest { files: vec![file.to_string_lossy().into_owned()], ..app("Mousepad") };
        let launched = desktop.apps.launch(&request).await.unwrap();
        assert_eq!(launched.name, "Mousepad");
        let pad = seen(&desktop, |apps| apps.iter().find(|app| app.name == "Mousepad").cloned()).await;
        assert_eq!(pad.desktop_id.as_deref(), Some("org.xfce.mousepad"));
        assert_eq!(pad.pids, [launched.pid]);
        let windows = desktop.windows.list().await.unwrap();
        let window = windows
            .iter()
            .find(|window| window.pid == Some(launched.pid) && window.kind == WindowKind::Normal);
        assert!(window.unwrap().title.contains("a note.txt"), "{window:?}");

        assert_eq!(desktop.apps.exited(launched.pid).await, None);
        assert_eq!(desktop.apps.end(launched.pid, false).await.unwrap(), Ended::Exited);
        exit(&desktop, launched.pid).await;
        seen(&desktop, |apps| apps.is_empty().then_some(())).await;
    })
    .await;
}

#[tokio::test]
async fn a_window_of_a_child_is_found_to_belong_to_what_was_launched() {
    on_a_private_desktop(|desktop, _| async move {
        let launched = desktop.apps.launch(&app("sh -c 'xterm & wait'")).await.unwrap();
        let terminal = seen(&desktop, |apps| apps.iter().find_map(|app| app.pids.first().copied())).await;
        assert_ne!(terminal, launched.pid);
        assert!(desktop.apps.descends_from(terminal, launched.pid).await);
        assert!(desktop.apps.descends_from(terminal, terminal).await);
        assert!(!desktop.apps.descends_from(launched.pid, terminal).await);
        assert!(!desktop.apps.descends_from(std::process::id(), launched.pid).await);
        // Also when nobody is left between them.
        assert_eq!(desktop.apps.end(launched.pid, true).await.unwrap(), Ended::Exited);
        assert!(desktop.apps.descends_from(terminal, launched.pid).await);
        assert_eq!(desktop.apps.end(terminal, true).await.unwrap(), Ended::Exited);
    })
    .await;
}

#[tokio::test]
async fn a_program_that_fails_is_told() {
    on_a_private_desktop(|desktop, _| async move {
        let failed = desktop.apps.launch(&app("sh -c 'exit 3'")).await.unwrap();
        assert_eq!(exit(&desktop, failed.pid).await, 3);
        let crashed = desktop.apps.launch(&app("sh -c 'kill -SEGV $$'")).await.unwrap();
        assert_eq!(exit(&desktop, crashed.pid).await, 128 + 11);
        let missing = desktop.apps.launch(&app("No Such Program")).await;
        assert!(matches!(missing, Err(PortError::AppGone(_))), "{missing:?}");
        let folder = Some(PathBuf::from("/nowhere"));
        let misplaced = desktop.apps.launch(&LaunchRequest { folder, ..app("xterm") }).await.unwrap_err();
        assert!(misplaced.to_string().contains("folder does not exist"), "{misplaced}");
    })
    .await;
}

#[tokio::test]
async fn the_parts_of_the_desktop_are_not_ended() {
    on_a_private_desktop(|desktop, session| async move {
        let file = session.home.clone().unwrap().join("parents");
        let script = format!("echo $PPID > '{0}.new'; mv '{0}.new' '{0}'", file.display());
        let launched = desktop.apps.launch(&app(&format!("sh -c \"{script}\""))).await.unwrap();
        assert_eq!(exit(&desktop, launched.pid).await, 0);
        let supervisor: u32 = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
        let result = desktop.apps.end(supervisor, true).await;
        assert!(matches!(result, Err(PortError::NotSupported(_))), "{result:?}");
        let parts =
            std::fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children")).unwrap();
        let parts: Vec<u32> = parts.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        assert!(parts.len() >= 3, "display server, bus, window manager");
        for part in parts {
            let result = desktop.apps.end(part, true).await;
            assert!(matches!(result, Err(PortError::NotSupported(_))), "{result:?}");
        }
        assert!(desktop.windows.list().await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn what_is_installed_is_listed_with_names() {
    on_a_private_desktop(|desktop, _| async move {
        let installed = desktop.apps.installed().await.unwrap();
        let pad = installed.iter().find(|app| app.desktop_id == "org.xfce.mousepad").unwrap();
        assert_eq!(pad.name, "Mousepad");
        assert!(installed.is_sorted_by_key(|app| app.name.to_lowercase()));
    })
    .await;
}

#[tokio::test]
async fn a_private_desktop_is_in_good_health() {
    on_a_private_desktop(|desktop, _| async move {
        let checks = desktop.health.checks().await;
        let missing: Vec<_> = checks.iter().filter(|check| check.status == CheckStatus::Missing).collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert!(checks.iter().any(|check| check.name == "accessibility_bus"), "{checks:?}");
    })
    .await;
}

#[tokio::test]
async fn health_is_told_where_there_is_no_desktop() {
    let nothing = Arc::new(SessionEnvironment::default());
    let desktop = deskhand_linux::desktop(Arc::new(nothing), PROGRAM.into());
    let checks = timeout(PATIENCE, desktop.health.checks()).await.unwrap();
    let session = checks.iter().find(|check| check.name == "session").unwrap();
    assert_eq!(session.status, CheckStatus::Missing);
    assert!(session.fix.as_deref().unwrap().contains("--private"));
}
