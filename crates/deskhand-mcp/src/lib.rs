//! MCP over a [`Driver`]: the engine in this process, or a client of a service. Nothing here knows which.
//!
//! [`serve`] speaks to one client over a pair of byte streams until the client leaves or is to be left. Guarantees:
//!
//! - Calls are submitted to the driver in the order of their lines.
//! - A line that is no message is answered with an error and the next one is read.
//! - A client that does not read its answers costs a bounded amount of memory and loses none of them.
//! - A cancelled request gets no answer.
//! - Progress is told seldom, only to who asks for it, and never after the answer.
#![forbid(unsafe_code)]

mod answer;
mod batch;
mod call;
mod connection;
mod flow;
mod guide;
mod line;
mod message;
mod output;
mod progress;
mod server;

use std::sync::Arc;
use std::time::Duration;

use deskhand_core::driver::Profile;
use deskhand_core::{Driver, SessionId};
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

pub use flow::Limits;
pub use guide::Guide;
pub use line::MAX_LINE_BYTES;

/// How long the last answers may take to be written. A client that is gone does not read them.
const FLUSH: Duration = Duration::from_millis(100);

/// How long the driver may take to end the session: it is bounded by itself, this keeps the process's own promise.
const END_SESSION: Duration = Duration::from_millis(150);

/// What a connection is told about itself.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which tools are listed.
    pub profile: Profile,
    /// The session that the client's calls belong to.
    pub session: SessionId,
    /// The program's version, as the client is told it.
    pub version: String,
    /// Stands in the model's context all the time, so it is a sentence or two.
    pub instructions: String,
    /// What a client can fetch to read up on.
    pub guide: Guide,
    /// What is held at most.
    pub limits: Limits,
}

/// Why a connection ended other than by its client leaving.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The protocol's loop gave up.
    #[error("the MCP service ended: {0}")]
    Service(String),
}

/// Serves one client until its input ends, its output breaks, or `shutdown` is cancelled. Calls that run then get
/// 1.5 s to finish and answer; those that have not started never do. Ends the session. Takes less than 2 s from the end
/// of the input. Cancels `shutdown` itself when the output breaks.
///
/// # Errors
/// [`ServeError::Service`]: not by anything that a client sends.
pub async fn serve<R, W>(
    driver: Arc<dyn Driver>,
    options: Options,
    reader: R,
    writer: W,
    shutdown: CancellationToken,
) -> Result<(), ServeError>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let flow = flow::Flow::new(options.limits);
    let (output, writing) = output::output(writer, Arc::clone(&flow), shutdown.clone());
    let writing = tokio::spawn(writing);
    let connection = connection::Connection::new(
        Arc::clone(&driver),
        options.session.clone(),
        line::LineReader::new(reader, MAX_LINE_BYTES),
        output,
        Arc::clone(&flow),
        shutdown,
    );
    let server = server::Server {
        driver: Arc::clone(&driver),
        profile: options.profile,
        version: options.version,
        instructions: options.instructions,
        guide: options.guide,
        flow: Arc::clone(&flow),
    };
    let result = match server.serve(connection).await {
        Ok(service) => match service.waiting().await {
            Ok(_) => Ok(()),
            Err(error) => Err(ServeError::Service(error.to_string())),
        },
        // Left before the handshake.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(ServeError::Service(error.to_string())),
    };
    let abort = writing.abort_handle();
    if tokio::time::timeout(FLUSH, writing).await.is_err() {
        abort.abort();
    }
    if tokio::time::timeout(END_SESSION, driver.end_session(options.session)).await.is_err() {
        tracing::debug!("the session did not end in time");
    }
    result
}
