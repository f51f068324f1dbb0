//! Programs: what runs, what can be launched.

mod activation;
mod catalog;
mod end;
mod entry;
mod launch;
mod launcher;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use deskhand_core::desktop::{
    Apps, Ended, InstalledApp, LaunchRequest, Launched, PortError, RunningApp, Window, WindowKind, Windows,
};

use self::catalog::Catalog;
pub(crate) use self::launcher::Exits;
pub use self::launcher::{Launcher, LocalLauncher, ProgramStart};
use crate::environment::{EnvironmentSource, SessionEnvironment};
use crate::process;

/// The programs of one desktop.
pub struct LinuxApps {
    source: Arc<dyn EnvironmentSource>,
    windows: Arc<dyn Windows>,
    launcher: Arc<dyn Launcher>,
}

impl std::fmt::Debug for LinuxApps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LinuxApps").finish_non_exhaustive()
    }
}

impl LinuxApps {
    /// The programs of the desktop that `source` leads to; `windows` are that desktop's. No I/O.
    pub fn new(source: Arc<dyn EnvironmentSource>, windows: Arc<dyn Windows>) -> Self {
        let launcher = source.launcher().unwrap_or_else(|| Arc::new(LocalLauncher::default()));
        Self { source, windows, launcher }
    }

    /// The session, and the desktop entries it has.
    async fn catalog(&self) -> Result<(Arc<SessionEnvironment>, Catalog), PortError> {
        let session = self.source.get().await?;
        let variables = Arc::clone(&session);
        let catalog = tokio::task::spawn_blocking(move || Catalog::read(&variables.variables))
            .await
            .map_err(|error| PortError::Internal(format!("desktop entries were not read: {error}")))?;
        Ok((session, catalog))
    }
}

#[async_trait]
impl Apps for LinuxApps {
    async fn running(&self) -> Result<Vec<RunningApp>, PortError> {
        let windows = self.windows.list().await?;
        let (_, catalog) = self.catalog().await?;
        Ok(group(&windows, &catalog))
    }

    async fn installed(&self) -> Result<Vec<InstalledApp>, PortError> {
        let (_, catalog) = self.catalog().await?;
        let installed =
            |entry: &entry::Entry| InstalledApp { name: entry.name.clone(), desktop_id: entry.id.clone() };
        Ok(catalog.shown().into_iter().map(installed).collect())
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<Launched, PortError> {
        let (session, catalog) = self.catalog().await?;
        if let Some(entry) = activation::only_by_bus(request, &catalog) {
            let startup_id = self.windows.startup_id(&entry.id).await?;
            return activation::activate(entry, request, &session, startup_id).await;
        }
        let mut launch = launch::resolve(request, &session, &catalog)?;
        let mut startup_id = launch.given_id();
        if startup_id.is_none() && launch.tells_start {
            let program = launch.start.path.file_name().unwrap_or_default().to_string_lossy();
            startup_id = self.windows.startup_id(&program).await?;
            if let Some(id) = &startup_id {
                launch.give_id(id);
            }
        }
        let pid = self.launcher.start(launch.start).await?;
        Ok(Launched { pid, name: launch.name, startup_id })
    }

    async fn exited(&self, pid: u32) -> Option<i32> {
        self.launcher.exited(pid).await
    }

    async fn descends_from(&self, pid: u32, ancestor: u32) -> bool {
        process::descends_from(pid, ancestor)
    }

    async fn end(&self, pid: u32, force: bool) -> Result<Ended, PortError> {
        end::end(pid, force, &self.launcher.components().await).await
    }
}

/// Programs that own a window a person would count, by name.
fn group(windows: &[Window], catalog: &Catalog) -> Vec<RunningApp> {
    let mut apps: BTreeMap<(String, String), RunningApp> = BTreeMap::new();
    let mut pids: BTreeMap<(String, String), BTreeSet<u32>> = BTreeMap::new();
    for window in
        windows.iter().filter(|window| matches!(window.kind, WindowKind::Normal | WindowKind::Dialog))
    {
        let program = window.pid.and_then(process::name).map(|name| name.to_lowercase());
        let entry = catalog.of_window(&window.app, program.as_deref());
        let name = entry.map_or(&window.app, |entry| &entry.name);
        let desktop_id = entry.map(|entry| entry.id.clone());
        let key = (name.to_lowercase(), desktop_id.clone().unwrap_or_default());
        pids.entry(key.clone()).or_default().extend(window.pid);
        apps.entry(key).or_insert_with(|| RunningApp { name: name.clone(), desktop_id, pids: Vec::new() });
    }
    apps.into_iter()
        .map(|(key, app)| RunningApp {
            pids: pids.remove(&key).unwrap_or_default().into_iter().collect(),
            ..app
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use deskhand_core::desktop::WindowId;
    use deskhand_core::geometry::Rect;

    use super::*;

    fn window(id: u64, app: &str, pid: u32, kind: WindowKind) -> Window {
        Window {
            id: WindowId(id),
            pid: Some(pid),
            app: app.to_owned(),
            title: String::new(),
            frame: Rect::default(),
            client: Rect::default(),
            focused: false,
            minimized: false,
            maximized: false,
            fullscreen: false,
            z: 0,
            kind,
            parent: None,
        }
    }

    #[test]
    fn windows_are_grouped_by_program() {
        // Numbers that no process has, so that classes alone decide.
        let (a, b) = (u32::MAX - 1, u32::MAX - 2);
        let windows = [
            window(1, "Panel", a, WindowKind::Dock),
            window(2, "Pad", a, WindowKind::Normal),
            window(3, "XTerm", b, WindowKind::Normal),
            window(4, "Pad", b, WindowKind::Normal),
            window(5, "Pad", a, WindowKind::Dialog),
            window(6, "Menu", a, WindowKind::Popup),
        ];
        let apps = group(&windows, &Catalog::default());
        let texts: Vec<_> = apps.iter().map(|app| (app.name.as_str(), app.pids.clone())).collect();
        assert_eq!(texts, [("Pad", vec![b, a]), ("XTerm", vec![b])]);
    }
}
