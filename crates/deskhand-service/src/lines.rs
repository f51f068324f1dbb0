//! Lines of bounded length from a byte stream.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::sync::Semaphore;

/// What is asked of a socket at once.
const READ_BYTES: usize = 64 * 1024;

/// A buffer that grew beyond this for one line is given back after it.
const KEPT_BYTES: usize = 1024 * 1024;

/// How long the rest of a long line may take once it has its turn: others wait for theirs. Over a local socket 64 MiB take a
/// fraction of a second.
const LONG_LINE: Duration = Duration::from_secs(10);

/// Why no further line can be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    /// The line is longer than the limit. What follows it cannot be told from it.
    #[error("a line is longer than {limit} bytes")]
    TooLong { limit: usize },
    /// A long line was begun and does not end.
    #[error("a line of more than a megabyte has to come within {seconds} s")]
    TooSlow { seconds: u64 },
    /// The stream broke.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Cuts a stream into lines.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    stream: BufReader<R>,
    line: Vec<u8>,
    limit: usize,
    room: Option<Arc<Semaphore>>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(stream: R, limit: usize) -> Self {
        Self { stream: BufReader::with_capacity(READ_BYTES, stream), line: Vec::new(), limit, room: None }
    }

    /// The stream.
    pub(crate) fn get_ref(&self) -> &R {
        self.stream.get_ref()
    }

    /// The same with `room`: a line that grows beyond what is kept waits for its turn, so that many unfinished ones cost no more
    /// than a few.
    pub(crate) fn with_room(mut self, room: Arc<Semaphore>) -> Self {
        self.room = Some(room);
        self
    }

    /// Whether nothing has been read beyond the last line.
    #[cfg(feature = "host-consent")]
    pub(crate) fn is_drained(&self) -> bool {
        self.stream.buffer().is_empty()
    }

    /// The next line without its end; `None` at the end of the stream. A last line without an end was cut off with its
    /// sender and is dropped. Not to be polled again after it was dropped while it waited.
    pub(crate) async fn next(&mut self) -> Result<Option<&[u8]>, LineError> {
        self.line.clear();
        self.line.shrink_to(KEPT_BYTES);
        let limit = self.limit;
        let first = limit.min(KEPT_BYTES);
        self.read_up_to(first).await?;
        if self.line.len() > first && !self.line.ends_with(b"\n") {
            let _turn = match &self.room {
                // Never closed.
                Some(room) => Arc::clone(room).acquire_owned().await.ok(),
                None => None,
            };
            let rest = tokio::time::timeout(LONG_LINE, self.read_up_to(limit)).await;
            rest.map_err(|_| LineError::TooSlow { seconds: LONG_LINE.as_secs() })??;
        }
        match self.line.strip_suffix(b"\n") {
            Some(line) => Ok(Some(line)),
            None if self.line.len() > limit => Err(LineError::TooLong { limit }),
            None => Ok(None),
        }
    }
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Reads on to the line's end, or until it has one byte more than `limit`.
    async fn read_up_to(&mut self, limit: usize) -> Result<(), LineError> {
        let bound = (limit + 1).saturating_sub(self.line.len());
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        (&mut self.stream).take(bound).read_until(b'\n', &mut self.line).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    async fn lines(input: &[u8], limit: usize) -> (Vec<Vec<u8>>, bool) {
        let mut reader = Lines::new(input, limit);
        let mut lines = Vec::new();
        loop {
            match reader.next().await {
                Ok(Some(line)) => lines.push(line.to_vec()),
                Ok(None) => return (lines, false),
                Err(_) => return (lines, true),
            }
        }
    }

    #[tokio::test]
    async fn a_line_of_the_limit_is_read_and_one_byte_more_ends_it() {
        assert_eq!(lines(b"abc\n\nde\n", 3).await, (vec![b"abc".to_vec(), vec![], b"de".to_vec()], false));
        assert_eq!(lines(b"ab\nabcd\nef\n", 3).await, (vec![b"ab".to_vec()], true));
        assert_eq!(lines(b"ab\ncut", 3).await, (vec![b"ab".to_vec()], false));
        assert_eq!(lines(b"abcd", 3).await, (vec![], true));
    }

    proptest! {
        /// Whatever bytes come: no panic, no line over the limit, and what is read as a request was one.
        #[test]
        fn any_bytes_are_read_or_refused(input in proptest::collection::vec(any::<u8>(), 0..2000), limit in 1..200usize) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let (lines, _) = runtime.block_on(lines(&input, limit));
            for line in lines {
                prop_assert!(line.len() <= limit);
                let _ = crate::wire::Request::read(&line);
            }
        }

        /// The same for lines that are nearly requests.
        #[test]
        fn near_requests_are_read_or_refused(line in r#"\{"id": ?(-?[0-9]{0,20}|null|"a"|1e99),? ?("method": ?("[a-z]{0,5}"|7),?)? ?("session_id": ?(null|"x"|\[\]))?\}"#) {
            if let Ok(request) = crate::wire::Request::read(line.as_bytes()) {
                prop_assert!(line.contains(&request.method));
            }
        }
    }
}
