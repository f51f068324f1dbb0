//! The writer: a task of its own, so that a client that does not read holds up nothing but its own answers.

use std::sync::Arc;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::flow::Flow;

/// With more bytes queued than this the client does not read at the moment: progress is left out, an answer never.
const BEHIND: usize = 64 * 1024;

/// Where answers are put. Never waits: [`Flow`] bounds what is queued by not reading on.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    lines: mpsc::UnboundedSender<Vec<u8>>,
    flow: Arc<Flow>,
}

impl Output {
    /// Whether so much is queued that what nobody needs is left out.
    pub(crate) fn is_behind(&self) -> bool {
        self.flow.answer_bytes() > BEHIND
    }

    /// Queues `line`, which has no line end yet.
    pub(crate) fn put(&self, mut line: Vec<u8>) {
        line.push(b'\n');
        let bytes = line.len();
        self.flow.answer_queued(bytes);
        if self.lines.send(line).is_err() {
            self.flow.answer_written(bytes); // the output broke: nobody will read it
        }
    }
}

/// Makes the queue and the future that writes it out. The future ends when every [`Output`] is dropped and all is
/// written; if writing fails it cancels `broken` and ends.
pub(crate) fn output<W>(
    mut writer: W,
    flow: Arc<Flow>,
    broken: CancellationToken,
) -> (Output, impl Future<Output = ()> + Send)
where
    W: AsyncWrite + Unpin + Send,
{
    let (lines, mut queue) = mpsc::unbounded_channel::<Vec<u8>>();
    let writing = {
        let flow = Arc::clone(&flow);
        async move {
            while let Some(line) = queue.recv().await {
                let result = match writer.write_all(&line).await {
                    // Flush only when nothing follows, so that a burst of answers is few writes.
                    Ok(()) if queue.is_empty() => writer.flush().await,
                    result => result,
                };
                flow.answer_written(line.len());
                if let Err(error) = result {
                    tracing::debug!(%error, "the output broke");
                    broken.cancel();
                    return;
                }
            }
        }
    };
    (Output { lines, flow }, writing)
}
