//! Windows, applications and clipboard of a call that is attended.

use async_trait::async_trait;
use tokio::sync::watch;

use super::Attended;
use crate::desktop::{
    Apps, Clipboard, ClipboardContent, ClipboardData, ClipboardWritten, Ended, Fact, FrameChange, Hit,
    InstalledApp, LaunchRequest, Launched, PortError, RunningApp, Selection, Stop, Window, WindowId,
    WindowState, Windows,
};
use crate::geometry::Point;

#[async_trait]
impl Windows for Attended<dyn Windows> {
    async fn list(&self) -> Result<Vec<Window>, PortError> {
        self.port.list().await
    }

    fn last_listed(&self) -> Vec<Window> {
        self.port.last_listed()
    }

    async fn hit_test(&self, point: Point) -> Result<Hit, PortError> {
        self.port.hit_test(point).await
    }

    async fn activate(&self, window: WindowId) -> Result<(), PortError> {
        self.acting().await.activate(window).await
    }

    async fn set_frame(&self, window: WindowId, change: FrameChange) -> Result<(), PortError> {
        self.acting().await.set_frame(window, change).await
    }

    async fn set_state(&self, window: WindowId, state: WindowState) -> Result<(), PortError> {
        self.acting().await.set_state(window, state).await
    }

    async fn put_below(&self, window: WindowId, above: WindowId) -> Result<(), PortError> {
        self.acting().await.put_below(window, above).await
    }

    async fn manager(&self) -> Result<Option<String>, PortError> {
        self.port.manager().await
    }

    async fn close(&self, window: WindowId) -> Result<bool, PortError> {
        self.acting().await.close(window).await
    }

    async fn facts(&self, window: WindowId) -> Result<Vec<Fact>, PortError> {
        self.port.facts(window).await
    }

    async fn startup_id(&self, program: &str) -> Result<Option<String>, PortError> {
        self.port.startup_id(program).await
    }

    async fn started_as(&self, startup_id: &str) -> Result<Vec<WindowId>, PortError> {
        self.port.started_as(startup_id).await
    }

    async fn changes(&self) -> Result<watch::Receiver<u64>, PortError> {
        self.port.changes().await
    }
}

#[async_trait]
impl Apps for Attended<dyn Apps> {
    async fn running(&self) -> Result<Vec<RunningApp>, PortError> {
        self.port.running().await
    }

    async fn installed(&self) -> Result<Vec<InstalledApp>, PortError> {
        self.port.installed().await
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<Launched, PortError> {
        self.acting().await.launch(request).await
    }

    async fn exited(&self, pid: u32) -> Option<i32> {
        self.port.exited(pid).await
    }

    async fn descends_from(&self, pid: u32, ancestor: u32) -> bool {
        self.port.descends_from(pid, ancestor).await
    }

    async fn end(&self, pid: u32, force: bool) -> Result<Ended, PortError> {
        self.acting().await.end(pid, force).await
    }
}

#[async_trait]
impl Clipboard for Attended<dyn Clipboard> {
    async fn read(
        &self,
        selection: Selection,
        mime: &str,
        limit: usize,
        stop: &Stop,
    ) -> Result<ClipboardContent, PortError> {
        self.port.read(selection, mime, limit, stop).await
    }

    async fn write(&self, selection: Selection, data: ClipboardData) -> Result<ClipboardWritten, PortError> {
        self.acting().await.write(selection, data).await
    }

    async fn hand_over(&self) {
        self.port.hand_over().await;
    }
}
