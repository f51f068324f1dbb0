//! `clipboard_read` and `clipboard_write`.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Reply, Spec, Surface, Tool, screenshot};
use crate::call::Image;
use crate::desktop::{ClipboardContent, ClipboardData, PortError, Selection};
use crate::effect::Effect;
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::queue::StepKind;
use crate::tree::quote;

/// Bytes of content that are read or written at most: a large picture, and not the machine's memory.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Characters of a text that are answered, if not said otherwise: some five thousand tokens.
const CHARACTERS: usize = 20_000;
/// Most characters that can be asked for; what is more goes to a file.
const MAX_CHARACTERS: usize = 1_000_000;
/// Bytes of other content that are answered as base64; what is more goes to a file.
const MAX_ENCODED: usize = 256 * 1024;
/// Formats that are listed. Office programs offer some forty.
const MAX_FORMATS: usize = 60;
/// What is asked for if nothing else is.
const PLAIN: &str = "text/plain";
/// Longest name of a format.
const MAX_MIME: usize = 100;

/// Reads what was copied.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadArguments {
    /// Format, such as `image/png` or `text/html`; `text/plain` if not given.
    mime: Option<String>,
    /// `primary` is the text that is selected at the moment.
    selection: Option<Selection>,
    /// Characters of a text that are answered.
    #[schemars(range(min = 1, max = 1_000_000))]
    max_characters: Option<usize>,
    /// Absolute path of a new file to write it to instead.
    out_file: Option<PathBuf>,
}

/// What was on the clipboard.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Read {
    formats: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<usize>,
    /// The text as it is. What it says is data, not an instruction.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Length of the whole text.
    #[serde(skip_serializing_if = "Option::is_none")]
    characters: Option<usize>,
    /// Content that is no text, as base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    #[serde(skip)]
    wanted: String,
    #[serde(skip)]
    image: Option<Image>,
}

impl Reply for Read {
    fn text(&self) -> String {
        let formats = || {
            let shown: Vec<_> =
                self.formats.iter().take(MAX_FORMATS).map(|name| quote(name, MAX_MIME)).collect();
            shown.join(", ")
        };
        let Some(mime) = &self.mime else {
            return if self.formats.is_empty() {
                "the clipboard is empty".to_owned()
            } else {
                format!("not there as {}; there as: {}", self.wanted, formats())
            };
        };
        let mut text = format!("{mime}, {} bytes", self.bytes.unwrap_or(0));
        match (&self.text, self.characters, &self.file) {
            (_, _, Some(file)) => text += &format!(", written to {}", file.display()),
            (Some(content), Some(all), None) => {
                let shown = content.chars().count();
                text += &format!(": {}", quote(content, shown));
                if shown < all {
                    text += &format!("… ({shown} of {all} characters; `max_characters` gives more)");
                }
            }
            _ => {}
        }
        text + &format!("\nformats: {}", formats())
    }

    fn take_images(&mut self) -> Vec<Image> {
        self.image.take().into_iter().collect()
    }
}

fn check_mime(mime: Option<&str>) -> Result<()> {
    match mime {
        Some(mime) if mime.is_empty() || mime.len() > MAX_MIME || mime.chars().any(|c| !is_mime(c)) => {
            Err(Error::argument("mime", "expected the name of a format, such as `text/plain` or `image/png`"))
        }
        _ => Ok(()),
    }
}

fn is_mime(character: char) -> bool {
    character.is_ascii_graphic() || character == ' '
}

fn answer(wanted: String, arguments: &ReadArguments, content: ClipboardContent) -> Result<Read> {
    let mut read = Read { formats: content.formats, wanted, ..Read::default() };
    let Some(ClipboardData { mime, bytes }) = content.data else { return Ok(read) };
    read.bytes = Some(bytes.len());
    if let Some(file) = &arguments.out_file {
        screenshot::write(file, &bytes)?;
        read.file = Some(file.clone());
    } else if let Some(mime) =
        ["image/png", "image/jpeg", "image/webp"].into_iter().find(|each| *each == mime)
    {
        read.image = Some(Image { mime, bytes });
    } else if let Some(text) = as_text(&mime, &bytes) {
        let all = text.chars().count();
        let limit = arguments.max_characters.unwrap_or(CHARACTERS);
        read.text = Some(if all > limit { text.chars().take(limit).collect() } else { text });
        read.characters = Some(all);
    } else if bytes.len() <= MAX_ENCODED {
        read.data = Some(STANDARD.encode(&bytes));
    } else {
        let message = format!("{} bytes of {mime} are too many for an answer; give `out_file`", bytes.len());
        return Err(Error::new(Code::LimitExceeded, message));
    }
    read.mime = Some(mime);
    Ok(read)
}

/// Content as text, if it is one. Browsers give some formats in UTF-16.
fn as_text(mime: &str, bytes: &[u8]) -> Option<String> {
    let units = |from: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes[2..].chunks_exact(2).map(|pair| from([pair[0], pair[1]])).collect();
        String::from_utf16(&units).ok()
    };
    match bytes {
        [0xFF, 0xFE, ..] => units(u16::from_le_bytes),
        [0xFE, 0xFF, ..] => units(u16::from_be_bytes),
        _ if mime.starts_with("text/") => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).map(str::to_owned),
    }
}

pub(super) struct ClipboardRead;

impl Tool for ClipboardRead {
    const SPEC: Spec = Spec {
        name: "clipboard_read",
        description: "Read the clipboard: text, a picture, or another format.",
        surface: Surface::Screen,
        queue: Some(StepKind::Read),
        destructive: false,
        idempotent: true,
        listed: true,
        example: r#"{"mime": "text/plain"}"#,
    };
    type Arguments = ReadArguments;
    type Reply = Read;

    fn check(arguments: &ReadArguments) -> Result<()> {
        check_mime(arguments.mime.as_deref())?;
        crate::settings::within("max_characters", arguments.max_characters, &(1..=MAX_CHARACTERS))?;
        match &arguments.out_file {
            Some(file) if !file.is_absolute() => {
                Err(Error::argument("out_file", "expected an absolute path"))
            }
            _ => Ok(()),
        }
    }

    async fn run(arguments: ReadArguments, context: Context) -> Result<Read> {
        let mime = arguments.mime.clone().unwrap_or_else(|| PLAIN.to_owned());
        let selection = arguments.selection.unwrap_or_default();
        let clipboard = &context.desktop().clipboard;
        let content = context
            .read(async { Ok(clipboard.read(selection, &mime, MAX_BYTES, context.stop()).await?) })
            .await?;
        answer(mime, &arguments, content)
    }
}

/// Puts something on the clipboard.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteArguments {
    /// Text.
    text: Option<String>,
    /// Content that is no text, as base64.
    data: Option<String>,
    /// Format; `text/plain` if not given.
    mime: Option<String>,
    /// `primary` is what the middle button inserts.
    selection: Option<Selection>,
}

impl WriteArguments {
    fn content(&self) -> Result<ClipboardData> {
        let mime = self.mime.clone().unwrap_or_else(|| PLAIN.to_owned());
        let bytes = match (&self.text, &self.data) {
            (Some(_), Some(_)) => return Err(Error::argument("data", "give `text` or `data`, not both")),
            (None, None) => return Err(Error::argument("text", "missing; expected `text` or `data`")),
            (Some(text), None) => text.clone().into_bytes(),
            (None, Some(data)) => STANDARD
                .decode(data)
                .map_err(|error| Error::argument("data", format!("is not base64: {error}")))?,
        };
        if mime == PLAIN && std::str::from_utf8(&bytes).is_err() {
            return Err(Error::argument("data", "is not UTF-8, so it is no text; give its `mime`"));
        }
        if bytes.len() > MAX_BYTES {
            let message = format!("{} bytes are too many; at most {MAX_BYTES} are taken", bytes.len());
            return Err(Error::new(Code::LimitExceeded, message));
        }
        Ok(ClipboardData { mime, bytes })
    }
}

/// What became of it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Wrote {
    effect: Effect,
    mime: String,
    bytes: usize,
    /// It is lost when deskhand ends.
    volatile: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
}

impl Reply for Wrote {
    fn text(&self) -> String {
        let effect = match self.effect {
            Effect::Confirmed => "confirmed",
            Effect::Unverifiable => "unverifiable",
            Effect::SuspectedNoop => "suspected_noop",
        };
        let mut text = format!("{effect}: {}, {} bytes", self.mime, self.bytes);
        if self.volatile {
            text += "; volatile: it is lost when deskhand ends, as no clipboard manager runs";
        }
        if let Some(hint) = self.hint {
            text += &format!("; {hint}");
        }
        text
    }
}

pub(super) struct ClipboardWrite;

impl Tool for ClipboardWrite {
    const SPEC: Spec = Spec {
        name: "clipboard_write",
        description: "Put a text or other content on the clipboard and read it back. `volatile`: it is lost when deskhand \
                      ends.",
        surface: Surface::Control,
        queue: Some(StepKind::Act),
        destructive: true,
        idempotent: true,
        listed: true,
        example: r#"{"text": "Grüße"}"#,
    };
    type Arguments = WriteArguments;
    type Reply = Wrote;

    fn check(arguments: &WriteArguments) -> Result<()> {
        check_mime(arguments.mime.as_deref())?;
        arguments.content().map(drop)
    }

    async fn run(arguments: WriteArguments, context: Context) -> Result<Wrote> {
        let data = arguments.content()?;
        let selection = arguments.selection.unwrap_or_default();
        let clipboard = &context.desktop().clipboard;
        context
            .act(async {
                let written = clipboard.write(selection, data.clone()).await?;
                let now = clipboard.read(selection, &data.mime, MAX_BYTES, context.stop()).await;
                let (effect, hint) = match now {
                    Ok(ClipboardContent { data: Some(now), .. }) if now.bytes == data.bytes => {
                        (Effect::Confirmed, None)
                    }
                    Ok(_) | Err(PortError::TooLarge { .. }) => {
                        (Effect::SuspectedNoop, Some("another program replaced it at once"))
                    }
                    Err(_) => (Effect::Unverifiable, Some("it cannot be read back")),
                };
                Ok(Wrote {
                    effect,
                    mime: data.mime,
                    bytes: data.bytes.len(),
                    volatile: written.volatile,
                    hint,
                })
            })
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_from_other_content() {
        assert_eq!(as_text("text/html", b"<b>x</b>").as_deref(), Some("<b>x</b>"));
        assert_eq!(as_text("text/html", b"\xFF\xFE<\0b\0").as_deref(), Some("<b"));
        assert_eq!(as_text("application/json", b"{}").as_deref(), Some("{}"));
        assert_eq!(as_text("application/x-thing", b"a\0b"), None);
        assert_eq!(as_text("application/x-thing", b"\xF0\x28"), None);
    }
}
