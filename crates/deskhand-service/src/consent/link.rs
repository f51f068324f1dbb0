//! The connection of a host: how it becomes one, and the questions and answers after that.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use deskhand_core::consent::Grant;
use deskhand_core::{Code, Error};
use rustix::rand::{GetRandomFlags, getrandom};
use serde::Serialize;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::credentials::receive;
use super::executable::Identity;
use super::message::{Answer, Ask, News, Proof, Question, Refused};
use super::peer::Peer;
use super::{ANSWER, MAX_QUESTIONS, Source, Way, Word};
use crate::wire;

/// How long becoming the host may take: its program is read whole, from a disk that may be busy.
const ADMISSION: Duration = Duration::from_secs(10);

/// Longest line of a host. A token has 4 KiB, and JSON may write each of its bytes as six.
const MAX_LINE: usize = 32 * 1024;

/// What a host may leave unread in our memory, beside what is in the socket's. It has stopped reading long before.
const MAX_UNREAD: usize = 256 * 1024;

/// Enough that no two nonces of a machine's life are the same, and none can be guessed.
const NONCE_BYTES: usize = 16;

/// A connection that wants to be the host's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newcomer {
    /// Its request.
    pub(crate) id: u64,
    /// When it was taken, in clock ticks since the machine started.
    pub(crate) accepted: u64,
}

/// Why a connection is not the host's (any more).
type Reason = &'static str;

/// Makes the connection the host's, if it may be, and serves it until it ends. Nothing else reads or writes `stream` meanwhile.
pub(crate) async fn serve(
    stream: &UnixStream,
    newcomer: Newcomer,
    source: &Source,
    closed: &CancellationToken,
) {
    let mut reader = Reader { stream, input: Vec::new() };
    let mut writer = Writer { stream, output: Vec::new() };
    let admission = tokio::time::timeout(ADMISSION, admit(&mut reader, &mut writer, newcomer, source));
    let admitted = tokio::select! {
        biased;
        () = closed.cancelled() => return,
        admitted = admission => admitted.unwrap_or(Err("it took too long")),
    };
    let why = match admitted {
        Ok(mut host) => {
            tracing::info!(pid = host.peer.pid(), "a consent host is there");
            let why = tokio::select! {
                biased;
                () = closed.cancelled() => "the service ends",
                why = host.serve(&mut reader, &mut writer) => why,
            };
            // Its open questions fail here, before anything else.
            drop(host);
            why
        }
        Err(why) => why,
    };
    tracing::warn!(why, "a connection is not the consent host's");
    let error =
        Error::new(Code::InvalidArgument, format!("this connection is not the consent host's: {why}"));
    // It fits into the socket's buffer, or nobody reads.
    if writer.put_line(wire::error_line(Some(newcomer.id), &error)).is_ok() {
        let _ = stream.try_write(&writer.output);
    }
}

/// The steps to become the host. Its message is the first that carries credentials: they are asked for before the nonce is
/// told that it has to hold.
async fn admit(
    reader: &mut Reader<'_>,
    writer: &mut Writer<'_>,
    newcomer: Newcomer,
    source: &Source,
) -> Result<Host, Reason> {
    let token = source.token.as_ref().ok_or("this service was started without a host token")?;
    rustix::net::sockopt::set_socket_passcred(reader.stream, true)
        .map_err(|_| "the kernel does not tell who sends")?;
    let peer = Arc::new(Peer::of(reader.stream, newcomer.accepted)?);
    let nonce = nonce().ok_or("there is no randomness")?;
    writer.put_line(wire::answer_line(newcomer.id, wire::HostChallenge { nonce: nonce.clone() }))?;
    writer.flush_all().await?;
    let line = reader.next(&peer).await?;
    let proof: Proof = serde_json::from_slice(&line).map_err(|_| "its proof cannot be read")?;
    // Both are looked at, whatever the first of them says.
    let (right, fresh) = (token.is(proof.token.as_bytes()), proof.nonce == nonce);
    if !right || !fresh {
        return Err("its token or its nonce is wrong");
    }
    // A program of a hundred megabytes is read: not on this thread.
    let (examined, rule) = (Arc::clone(&peer), source.rule.clone());
    let examination = tokio::task::spawn_blocking(move || examined.executable(&rule));
    let identity = examination.await.map_err(|_| "its executable cannot be read")??;
    let (words, queued) = mpsc::channel(MAX_QUESTIONS);
    let over = CancellationToken::new();
    writer.put_line(wire::answer_line(newcomer.id, wire::Empty {}))?;
    source.install(Way { words, over: over.clone() });
    let _over = over.clone().drop_guard();
    Ok(Host { peer, identity, words: queued, over, _over, last_id: 0, open: HashMap::new() })
}

/// The host of a connection.
struct Host {
    peer: Arc<Peer>,
    identity: Identity,
    words: mpsc::Receiver<Word>,
    over: CancellationToken,
    /// Whatever ends this, nobody asks it any more.
    _over: DropGuard,
    last_id: u64,
    /// Questions that were sent and are not answered.
    open: HashMap<u64, Open>,
}

struct Open {
    nonce: String,
    answer: oneshot::Sender<Grant>,
}

impl Host {
    /// Asks and takes answers, until the reason that is returned.
    async fn serve(&mut self, reader: &mut Reader<'_>, writer: &mut Writer<'_>) -> Reason {
        loop {
            let full = self.open.len() >= MAX_QUESTIONS;
            let done = tokio::select! {
                biased;
                () = self.over.cancelled() => Err("another host has taken its place"),
                () = self.peer.gone() => Err("its process has ended"),
                line = reader.next(&self.peer) => line.and_then(|line| self.take(&line)),
                word = self.words.recv(), if !full => match word {
                    Some(word) => self.say(word, writer),
                    None => Err("nobody asks any more"),
                },
                written = writer.flush(), if !writer.output.is_empty() => written,
                // Those that nobody waits for any more make room.
                () = tokio::time::sleep(ANSWER), if full => Ok(()),
            };
            if let Err(why) = done {
                return why;
            }
            if full {
                self.forget_abandoned();
            }
        }
    }

    fn forget_abandoned(&mut self) {
        self.open.retain(|_, open| !open.answer.is_closed());
    }

    fn say(&mut self, word: Word, writer: &mut Writer<'_>) -> Result<(), Reason> {
        match word {
            Word::Ask(answer) if answer.is_closed() => Ok(()),
            Word::Ask(answer) => {
                self.forget_abandoned();
                let nonce = nonce().ok_or("there is no randomness")?;
                self.last_id += 1;
                writer.put(&Question { id: self.last_id, ask: Ask { nonce: &nonce } })?;
                self.open.insert(self.last_id, Open { nonce, answer });
                Ok(())
            }
            Word::Refused(refusal) => {
                let refused = Refused { surface: refusal.surface.name(), tool: refusal.tool };
                writer.put(&News { refused })
            }
        }
    }

    fn take(&mut self, line: &[u8]) -> Result<(), Reason> {
        let answer: Answer = serde_json::from_slice(line).map_err(|_| "it sent a line that is no answer")?;
        if !self.peer.still_is(self.identity) {
            return Err("it executes another program now");
        }
        let Some(open) = self.open.remove(&answer.id) else {
            // Late: whoever asked has waited long enough and was refused.
            return if answer.id <= self.last_id { Ok(()) } else { Err("it answered what was not asked") };
        };
        if open.nonce != answer.nonce {
            return Err("it answered with another nonce");
        }
        let grant = match (answer.screen, answer.control, answer.error.is_null()) {
            (Some(screen), Some(control), true) => Grant { joined: true, screen, control },
            _ => Grant::NOTHING,
        };
        // Nobody may wait for it any more.
        let _ = open.answer.send(grant);
        Ok(())
    }
}

/// The lines of a host. Each byte of them was sent by one process.
struct Reader<'a> {
    stream: &'a UnixStream,
    input: Vec<u8>,
}

impl Reader<'_> {
    /// The next line. Can be dropped half-way.
    async fn next(&mut self, peer: &Peer) -> Result<Vec<u8>, Reason> {
        loop {
            if let Some(end) = self.input.iter().position(|byte| *byte == b'\n') {
                let rest = self.input.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.input, rest);
                line.pop();
                return Ok(line);
            }
            if self.input.len() > MAX_LINE {
                return Err("it sent a line that is too long");
            }
            let mut buffer = [0; 4096];
            self.stream.readable().await.map_err(|_| "its connection broke")?;
            match self.stream.try_io(Interest::READABLE, || receive(self.stream, &mut buffer)) {
                Ok((0, _)) => return Err("it has closed its connection"),
                Ok((length, sender)) if peer.sent(sender) => {
                    self.input.extend_from_slice(&buffer[..length]);
                }
                Ok(_) => return Err("a message was sent by another process"),
                Err(error) if again(&error) => {}
                Err(_) => return Err("its connection broke"),
            }
        }
    }
}

/// What is written to a host, as far as it reads.
struct Writer<'a> {
    stream: &'a UnixStream,
    output: Vec<u8>,
}

impl Writer<'_> {
    fn put(&mut self, message: &impl Serialize) -> Result<(), Reason> {
        let mut line = serde_json::to_vec(message).map_err(|_| "a question could not be written")?;
        line.push(b'\n');
        self.put_line(line)
    }

    fn put_line(&mut self, line: Vec<u8>) -> Result<(), Reason> {
        if self.output.len() + line.len() > MAX_UNREAD {
            return Err("it does not read");
        }
        self.output.extend(line);
        Ok(())
    }

    /// Writes some of it. Can be dropped half-way.
    async fn flush(&mut self) -> Result<(), Reason> {
        self.stream.writable().await.map_err(|_| "its connection broke")?;
        match self.stream.try_write(&self.output) {
            Ok(length) => {
                self.output.drain(..length);
                Ok(())
            }
            Err(error) if again(&error) => Ok(()),
            Err(_) => Err("its connection broke"),
        }
    }

    async fn flush_all(&mut self) -> Result<(), Reason> {
        while !self.output.is_empty() {
            self.flush().await?;
        }
        Ok(())
    }
}

fn again(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// A number that is used once, in hexadecimal digits.
fn nonce() -> Option<String> {
    let mut bytes = [0_u8; NONCE_BYTES];
    let length = getrandom(&mut bytes, GetRandomFlags::empty()).ok()?;
    (length == NONCE_BYTES).then(|| {
        bytes.iter().fold(String::new(), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    })
}
