//! The host token: who has it was given it by whoever started the service.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Shorter ones can be guessed.
const MIN_BYTES: usize = 32;
/// Longer ones are no tokens.
const MAX_BYTES: usize = 4096;
/// How long whoever starts the service may take to write it.
const PATIENCE: Duration = Duration::from_secs(5);

/// The token. Only a digest of it is kept.
#[derive(Clone)]
pub struct HostToken(blake3::Hash);

impl HostToken {
    /// Reads it from a descriptor, up to a line's end or the end of the file, and closes that.
    ///
    /// # Errors
    /// It does not come in time, or is shorter than 32 or longer than 4096 bytes.
    pub fn read(descriptor: OwnedFd) -> io::Result<Self> {
        let deadline = Instant::now() + PATIENCE;
        let mut file = File::from(descriptor);
        // Never grows, so that no part of the token stays behind in memory that was given back.
        let mut token = Vec::with_capacity(MAX_BYTES + 2);
        let mut byte = [0];
        while token.len() <= MAX_BYTES {
            await_bytes(&file, deadline)?;
            match file.read(&mut byte) {
                Ok(0) => break,
                Ok(_) if byte == *b"\n" => break,
                Ok(_) => token.push(byte[0]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let made = Self::new(&token);
        token.fill(0);
        std::hint::black_box(&token);
        made
    }

    /// Takes a token.
    ///
    /// # Errors
    /// It is shorter than 32 or longer than 4096 bytes.
    pub fn new(token: &[u8]) -> io::Result<Self> {
        if !(MIN_BYTES..=MAX_BYTES).contains(&token.len()) {
            let message = format!("the host token must have {MIN_BYTES} to {MAX_BYTES} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Ok(Self(blake3::hash(token)))
    }

    /// Whether `presented` is the token, in a time that does not depend on how much of it is right.
    pub(super) fn is(&self, presented: &[u8]) -> bool {
        // `Hash` is compared in constant time.
        self.0 == blake3::hash(presented)
    }
}

impl fmt::Debug for HostToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostToken")
    }
}

fn await_bytes(file: &File, deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    let left = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
    match poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&left)) {
        Ok(0) => Err(io::Error::new(io::ErrorKind::TimedOut, "the host token did not come in time")),
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const TOKEN: &str = "canary-canary-canary-canary-canary";

    fn read(bytes: &[u8]) -> io::Result<HostToken> {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(bytes).unwrap();
        drop(writer);
        HostToken::read(reader.into())
    }

    #[test]
    fn it_is_read_to_the_end_of_the_line_or_the_file() {
        for bytes in [TOKEN.to_owned(), format!("{TOKEN}\n"), format!("{TOKEN}\nmore")] {
            let token = read(bytes.as_bytes()).unwrap();
            assert!(token.is(TOKEN.as_bytes()));
            assert!(!token.is(b"") && !token.is(&TOKEN.as_bytes()[1..]));
            assert!(!format!("{token:?}").contains("canary"));
        }
    }

    #[test]
    fn a_line_is_enough_while_the_writer_stays() {
        let (reader, mut writer) = io::pipe().unwrap();
        writeln!(writer, "{TOKEN}").unwrap();
        assert!(HostToken::read(reader.into()).unwrap().is(TOKEN.as_bytes()));
    }

    #[test]
    fn what_is_no_token_is_refused_without_being_shown() {
        for bytes in [Vec::new(), b"canary".to_vec(), vec![b'c'; MAX_BYTES + 1]] {
            let error = read(&bytes).unwrap_err().to_string();
            assert!(error.contains("32 to 4096") && !error.contains("canary"), "{error}");
        }
    }
}
