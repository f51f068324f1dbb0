//! Lines of bounded length from a byte stream.

use tokio::io::{AsyncRead, AsyncReadExt};

/// Longest line that is read. One byte more and it is skipped to its end: a picture or a long text fits, a stream
/// without line ends cannot fill the memory.
pub const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// How much is asked of the stream at once: what a pipe holds.
const READ_BYTES: usize = 64 * 1024;

/// A buffer that grew beyond this for one line is given back after it.
const KEPT_BYTES: usize = 1024 * 1024;

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// The whole line.
    Whole(Vec<u8>),
    /// A line that was longer than the limit and has been skipped.
    TooLong {
        /// Its length in bytes.
        bytes: usize,
    },
}

/// Cuts a stream into [`Line`]s.
#[derive(Debug)]
pub(crate) struct LineReader<R> {
    stream: R,
    limit: usize,
    buffer: Vec<u8>,
    /// Start of what has not been given out yet.
    start: usize,
    /// Up to here no line end has been found.
    searched: usize,
    /// Bytes of a too long line that have been dropped; 0: no such line.
    skipped: usize,
    ended: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(stream: R, limit: usize) -> Self {
        Self { stream, limit, buffer: Vec::new(), start: 0, searched: 0, skipped: 0, ended: false }
    }

    /// The next line; `None` at the end of the stream or when it breaks. The last line may lack its end. Safe to drop
    /// while it waits: nothing is lost.
    pub(crate) async fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(line) = self.take_line() {
                return Some(line);
            }
            if self.ended {
                return self.take_rest();
            }
            self.compact();
            self.buffer.reserve(READ_BYTES);
            // `read_buf` is cancel-safe: bytes that were read are in the buffer.
            match self.stream.read_buf(&mut self.buffer).await {
                Ok(0) => self.ended = true,
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(%error, "the input broke");
                    self.ended = true;
                }
            }
        }
    }

    fn take_line(&mut self) -> Option<Line> {
        let end = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
        let Some(end) = end.map(|offset| self.searched + offset) else {
            self.searched = self.buffer.len();
            if self.skipped > 0 || self.searched - self.start > self.limit {
                self.skipped += self.searched - self.start;
                self.clear();
            }
            return None;
        };
        let length = end - self.start;
        let line = if self.skipped > 0 || length > self.limit {
            Line::TooLong { bytes: std::mem::take(&mut self.skipped) + length }
        } else {
            let text = &self.buffer[self.start..end];
            Line::Whole(text.strip_suffix(b"\r").unwrap_or(text).to_vec())
        };
        self.start = end + 1;
        self.searched = self.start;
        Some(line)
    }

    fn take_rest(&mut self) -> Option<Line> {
        let rest = self.buffer.split_off(self.start);
        self.clear();
        match std::mem::take(&mut self.skipped) {
            0 if rest.is_empty() => None,
            0 => Some(Line::Whole(rest)),
            skipped => Some(Line::TooLong { bytes: skipped + rest.len() }),
        }
    }

    /// Moves what is left to the front, so that the buffer does not grow with the stream.
    fn compact(&mut self) {
        if self.start == self.buffer.len() {
            self.clear();
        } else if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
    }

    fn clear(&mut self) {
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BYTES);
        self.start = 0;
        self.searched = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(input: &[u8], limit: usize) -> Vec<Line> {
        let mut reader = LineReader::new(input, limit);
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await {
            lines.push(line);
        }
        lines
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn lines_are_cut_at_their_ends() {
        assert_eq!(lines(b"a\nbc\r\n\nd", 10).await, [whole("a"), whole("bc"), whole(""), whole("d")]);
        assert_eq!(lines(b"", 10).await, []);
    }

    #[tokio::test]
    async fn a_line_over_the_limit_is_skipped_and_counted() {
        let text = format!("ok\n{}\nnext\n", "x".repeat(300_000));
        let expected = [whole("ok"), Line::TooLong { bytes: 300_000 }, whole("next")];
        assert_eq!(lines(text.as_bytes(), 1000).await, expected);
        assert_eq!(lines(&[b'x'; 2000], 1000).await, [Line::TooLong { bytes: 2000 }]);
        assert_eq!(lines(b"123\n1234\n", 3).await, [whole("123"), Line::TooLong { bytes: 4 }]);
    }
}
