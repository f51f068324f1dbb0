//! What is written to a client, by a task of its own: a client that does not read holds up nobody.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

/// With this much unread, no further line of the client is read: one that is only slow is served at its pace.
const PAUSE_BYTES: usize = 8 * 1024 * 1024;

/// Takes lines for one client. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Output {
    lines: mpsc::UnboundedSender<Vec<u8>>,
    unread: Arc<Unread>,
    /// Bytes that may be unread.
    limit: usize,
    /// Cancelled when the client has lost its connection.
    closed: CancellationToken,
}

#[derive(Debug, Default)]
struct Unread {
    bytes: AtomicUsize,
    less: Notify,
}

impl Output {
    /// Queues a line. A client that has too much unread loses its connection.
    pub(super) fn put(&self, line: Vec<u8>) {
        let before = self.unread.bytes.fetch_add(line.len(), Ordering::Relaxed);
        // One answer may be as long as it likes: it is there already.
        if before > 0 && before + line.len() > self.limit {
            tracing::warn!(bytes = before, "a client does not read its answers and loses its connection");
            self.closed.cancel();
            return;
        }
        // Fails when the connection has ended; nobody waits for the line then.
        let _ = self.lines.send(line);
    }

    /// Waits until the client has read enough of what it asked for.
    pub(super) async fn room(&self) {
        while self.unread.bytes.load(Ordering::Relaxed) > PAUSE_BYTES {
            self.unread.less.notified().await;
        }
    }
}

/// An output that ends in `writer`, of which `limit` bytes may be unread, and the task that writes. It ends when the last [`Output`] is dropped and all is
/// written, or when the connection breaks, which it says by cancelling `closed`.
pub(super) fn output<W: AsyncWrite + Unpin>(
    writer: W,
    limit: usize,
    closed: CancellationToken,
) -> (Output, impl Future<Output = ()>) {
    let (lines, queued) = mpsc::unbounded_channel();
    let unread = Arc::new(Unread::default());
    let writing = write(writer, queued, Arc::clone(&unread), closed.clone());
    (Output { lines, unread, limit, closed }, writing)
}

async fn write<W: AsyncWrite + Unpin>(
    mut writer: W,
    mut queued: mpsc::UnboundedReceiver<Vec<u8>>,
    unread: Arc<Unread>,
    closed: CancellationToken,
) {
    while let Some(line) = queued.recv().await {
        let written = tokio::select! {
            biased;
            () = closed.cancelled() => return,
            written = writer.write_all(&line) => written,
        };
        if let Err(error) = written {
            tracing::debug!(%error, "a client is gone");
            closed.cancel();
            return;
        }
        unread.bytes.fetch_sub(line.len(), Ordering::Relaxed);
        unread.less.notify_one();
    }
}
