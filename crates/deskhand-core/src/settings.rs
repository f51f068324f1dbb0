//! Settings: `effective = call argument > session override > global`, and the file that keeps the global ones.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Code, Error, Result};

/// What an answer about a window contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CaptureMode {
    /// The tree, and a picture only where the tree is missing or says little.
    #[default]
    Auto,
    /// The tree only.
    Ax,
    /// The picture only.
    Vision,
    /// The tree, and a picture with the element indices drawn on it.
    Som,
}

/// Encoding of pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageFormat {
    /// Lossless.
    #[default]
    Png,
    /// Smaller and faster.
    Jpeg,
    /// Lossless, smaller than PNG.
    Webp,
}

/// Bounds of `max_image_dimension`: below 64 nothing can be told apart, above 8192 no model takes it.
pub const IMAGE_DIMENSION: std::ops::RangeInclusive<u32> = 64..=8192;
/// Bounds of `max_elements`: 5,000 lines are about as much as an answer may hold.
pub const ELEMENTS: std::ops::RangeInclusive<u32> = 1..=5000;
/// Bounds of `call_timeout_ms`: shorter than a round trip is no use, longer than ten minutes is no bound.
pub const CALL_TIMEOUT_MS: std::ops::RangeInclusive<u64> = 100..=600_000;

/// Settings that are set somewhere; `None`: not set here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Overrides {
    /// What get_window_state answers with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture_mode: Option<CaptureMode>,
    /// Long side of pictures in pixels.
    #[schemars(range(min = 64, max = 8192))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_image_dimension: Option<u32>,
    /// Encoding of pictures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_format: Option<ImageFormat>,
    /// Elements shown of a tree.
    #[schemars(range(min = 1, max = 5000))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_elements: Option<u32>,
    /// Deadline of a call.
    #[schemars(range(min = 100, max = 600000))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_timeout_ms: Option<u64>,
    /// Whether people see a cursor where this session acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_cursor: Option<bool>,
    /// Whether people see a preview of what agents act on; of the whole process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<bool>,
}

/// Names of the settings, in the order of [`Overrides`].
pub const NAMES: [&str; 7] = [
    "capture_mode",
    "max_image_dimension",
    "image_format",
    "max_elements",
    "call_timeout_ms",
    "agent_cursor",
    "preview",
];

impl Overrides {
    /// Checks the ranges.
    ///
    /// # Errors
    /// `invalid_argument`, naming the setting.
    pub fn validate(&self) -> Result<()> {
        within("max_image_dimension", self.max_image_dimension, &IMAGE_DIMENSION)?;
        within("max_elements", self.max_elements, &ELEMENTS)?;
        within("call_timeout_ms", self.call_timeout_ms, &CALL_TIMEOUT_MS)
    }

    /// Sets what `newer` sets.
    pub fn merge(&mut self, newer: &Overrides) {
        fn set<T: Copy>(slot: &mut Option<T>, newer: Option<T>) {
            if newer.is_some() {
                *slot = newer;
            }
        }
        set(&mut self.capture_mode, newer.capture_mode);
        set(&mut self.max_image_dimension, newer.max_image_dimension);
        set(&mut self.image_format, newer.image_format);
        set(&mut self.max_elements, newer.max_elements);
        set(&mut self.call_timeout_ms, newer.call_timeout_ms);
        set(&mut self.agent_cursor, newer.agent_cursor);
        set(&mut self.preview, newer.preview);
    }

    /// Clears the setting called `name`; `false` if there is no such setting.
    pub fn unset(&mut self, name: &str) -> bool {
        match name {
            "capture_mode" => self.capture_mode = None,
            "max_image_dimension" => self.max_image_dimension = None,
            "image_format" => self.image_format = None,
            "max_elements" => self.max_elements = None,
            "call_timeout_ms" => self.call_timeout_ms = None,
            "agent_cursor" => self.agent_cursor = None,
            "preview" => self.preview = None,
            _ => return false,
        }
        true
    }

    /// Names of the settings that it sets.
    pub fn names(&self) -> Vec<&'static str> {
        NAMES.iter().copied().filter(|name| self.is_set(name)).collect()
    }

    fn is_set(&self, name: &str) -> bool {
        match name {
            "capture_mode" => self.capture_mode.is_some(),
            "max_image_dimension" => self.max_image_dimension.is_some(),
            "image_format" => self.image_format.is_some(),
            "max_elements" => self.max_elements.is_some(),
            "call_timeout_ms" => self.call_timeout_ms.is_some(),
            "agent_cursor" => self.agent_cursor.is_some(),
            "preview" => self.preview.is_some(),
            _ => false,
        }
    }
}

/// Says that `value` must lie in `range`.
pub(crate) fn within<T: PartialOrd + std::fmt::Display + Copy>(
    field: &str,
    value: Option<T>,
    range: &std::ops::RangeInclusive<T>,
) -> Result<()> {
    match value {
        Some(value) if !range.contains(&value) => Err(Error::argument(
            field,
            format!("{value} is out of range; expected {} to {}", range.start(), range.end()),
        )),
        _ => Ok(()),
    }
}

/// Effective settings of one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Settings {
    /// What get_window_state answers with.
    pub capture_mode: CaptureMode,
    /// Long side of pictures in pixels.
    pub max_image_dimension: u32,
    /// Encoding of pictures.
    pub image_format: ImageFormat,
    /// Elements shown of a tree.
    pub max_elements: u32,
    /// Deadline of a call.
    pub call_timeout_ms: u64,
    /// Whether people see a cursor where this session acts.
    pub agent_cursor: bool,
    /// Whether people see a preview of what agents act on; of the whole process.
    pub preview: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            capture_mode: CaptureMode::default(),
            // The long side at which widely used models stop scaling pictures down themselves.
            max_image_dimension: 1568,
            image_format: ImageFormat::default(),
            // About 12 KB of outline.
            max_elements: 300,
            call_timeout_ms: 30_000,
            // A person at the desktop should see who acts on it. Where nobody is, the host says so.
            agent_cursor: true,
            preview: false,
        }
    }
}

impl Settings {
    /// The defaults, overridden by each layer in turn.
    pub fn effective(layers: &[&Overrides]) -> Self {
        let mut settings = Self::default();
        for layer in layers {
            settings.capture_mode = layer.capture_mode.unwrap_or(settings.capture_mode);
            settings.max_image_dimension = layer.max_image_dimension.unwrap_or(settings.max_image_dimension);
            settings.image_format = layer.image_format.unwrap_or(settings.image_format);
            settings.max_elements = layer.max_elements.unwrap_or(settings.max_elements);
            settings.call_timeout_ms = layer.call_timeout_ms.unwrap_or(settings.call_timeout_ms);
            settings.agent_cursor = layer.agent_cursor.unwrap_or(settings.agent_cursor);
            settings.preview = layer.preview.unwrap_or(settings.preview);
        }
        settings
    }

    /// The deadline as a duration.
    pub const fn call_timeout(&self) -> Duration {
        Duration::from_millis(self.call_timeout_ms)
    }
}

/// Where each effective value comes from: `process`, `session`, `global`, or else `default`.
pub fn origins(global: &Overrides, session: &Overrides, process: &Overrides) -> Map<String, Value> {
    NAMES
        .iter()
        .map(|name| {
            let origin = match [process, session, global].map(|layer| layer.is_set(name)) {
                [true, ..] => "process",
                [_, true, _] => "session",
                [_, _, true] => "global",
                _ => "default",
            };
            ((*name).to_owned(), Value::from(origin))
        })
        .collect()
}

/// The global settings and their file.
#[derive(Debug)]
pub struct GlobalSettings {
    file: Option<PathBuf>,
    /// `None` until the first question: starting an engine reads no file.
    loaded: Mutex<Option<Loaded>>,
}

#[derive(Clone, Debug, Default)]
struct Loaded {
    overrides: Overrides,
    /// Everything in the file, so that keys of other builds survive a rewrite.
    document: Map<String, Value>,
    /// Why the file could not be used. It is then left untouched.
    broken: Option<Error>,
}

impl GlobalSettings {
    /// Settings that are kept in `file`, or nowhere.
    pub const fn new(file: Option<PathBuf>) -> Self {
        Self { file, loaded: Mutex::new(None) }
    }

    /// The global overrides. A broken file counts as empty; [`GlobalSettings::problem`] says why.
    pub fn overrides(&self) -> Overrides {
        self.with(|loaded| loaded.overrides.clone())
    }

    /// What is wrong with the file, if anything.
    pub fn problem(&self) -> Option<Error> {
        self.with(|loaded| loaded.broken.clone())
    }

    /// Changes the global settings and saves them.
    ///
    /// # Errors
    /// `file_error` if the file is broken or cannot be written; nothing changes then.
    pub fn change(&self, set: &Overrides, unset: &[String]) -> Result<()> {
        let mut slot = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        // The file may have been edited since it was read: what a person wrote is not lost.
        let mut changed = match (&self.file, &*slot) {
            (None, Some(kept)) => kept.clone(),
            _ => self.read(),
        };
        if let Some(problem) = changed.broken {
            return Err(problem);
        }
        changed.overrides.merge(set);
        for name in unset {
            changed.overrides.unset(name);
        }
        for name in NAMES {
            changed.document.remove(name);
        }
        let known = serde_json::to_value(&changed.overrides)
            .map_err(|error| Error::new(Code::InternalError, error.to_string()))?;
        if let Value::Object(known) = known {
            changed.document.extend(known);
        }
        if let Some(file) = &self.file {
            save(file, &changed.document).map_err(|error| {
                Error::new(Code::FileError, format!("the settings could not be saved: {error}"))
            })?;
        }
        *slot = Some(changed);
        Ok(())
    }

    fn with<T>(&self, look: impl FnOnce(&Loaded) -> T) -> T {
        let mut slot = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        look(slot.get_or_insert_with(|| self.read()))
    }

    fn read(&self) -> Loaded {
        let Some(file) = &self.file else { return Loaded::default() };
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Loaded::default(),
            Err(error) => return Loaded::broken(file, &error.to_string()),
        };
        let document: Map<String, Value> = match serde_json::from_str(&text) {
            Ok(document) => document,
            Err(error) => return Loaded::broken(file, &error.to_string()),
        };
        let known: Map<_, _> = document
            .iter()
            .filter(|(key, _)| NAMES.contains(&key.as_str()))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        let overrides: Result<Overrides, String> = serde_path_to_error::deserialize(Value::Object(known))
            .map_err(|error| error.to_string())
            .and_then(|overrides: Overrides| overrides.validate().map(|()| overrides).map_err(|e| e.message));
        match overrides {
            Ok(overrides) => Loaded { overrides, document, broken: None },
            Err(why) => Loaded::broken(file, &why),
        }
    }
}

impl Loaded {
    fn broken(file: &Path, why: &str) -> Self {
        let message =
            format!("the settings file {} cannot be used: {why}; mend or remove it", file.display());
        Self { broken: Some(Error::new(Code::FileError, message)), ..Self::default() }
    }
}

/// Writes beside the file and renames, so that a reader sees the old or the new content, whole.
fn save(file: &Path, document: &Map<String, Value>) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let draft = file.with_extension(format!("json.{}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = (|| {
        let mut out = options.open(&draft)?;
        serde_json::to_writer_pretty(&mut out, document)?;
        out.write_all(b"\n")?;
        out.sync_all()?;
        std::fs::rename(&draft, file)
    })();
    if written.is_err() {
        // Best effort: the error that matters is the one returned.
        let _ = std::fs::remove_file(&draft);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(max_elements: u32) -> Overrides {
        Overrides { max_elements: Some(max_elements), ..Overrides::default() }
    }

    #[test]
    fn a_change_is_saved_and_unknown_keys_survive() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        std::fs::write(&file, r#"{"theme": "dark", "max_image_dimension": 800}"#).unwrap();
        let settings = GlobalSettings::new(Some(file.clone()));
        settings.change(&set(50), &["max_image_dimension".to_owned()]).unwrap();
        let saved: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(saved, serde_json::json!({"theme": "dark", "max_elements": 50}));
        assert_eq!(GlobalSettings::new(Some(file)).overrides(), set(50));
    }

    #[test]
    fn a_broken_file_is_named_with_its_place_and_left_untouched() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        std::fs::write(&file, "{\n  \"max_elements\": ,\n}").unwrap();
        let settings = GlobalSettings::new(Some(file.clone()));
        assert_eq!(settings.overrides(), Overrides::default());
        let error = settings.change(&set(5), &[]).unwrap_err();
        assert!(error.message.contains("line 2 column 19"), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\n  \"max_elements\": ,\n}");
    }

    #[test]
    fn what_a_person_wrote_since_it_was_read_is_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        let settings = GlobalSettings::new(Some(file.clone()));
        settings.change(&set(50), &[]).unwrap();
        std::fs::write(&file, r#"{"max_elements": 50, "max_image_dimension": 800}"#).unwrap();
        settings.change(&set(60), &[]).unwrap();
        let saved: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(saved, serde_json::json!({"max_elements": 60, "max_image_dimension": 800}));
        std::fs::write(&file, "{bad").unwrap();
        settings.change(&set(70), &[]).unwrap_err();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "{bad");
        let unsaved = GlobalSettings::new(None);
        unsaved.change(&set(50), &[]).unwrap();
        unsaved.change(&Overrides::default(), &[]).unwrap();
        assert_eq!(unsaved.overrides(), set(50));
    }

    #[test]
    fn the_session_wins_over_the_global_value() {
        let (global, session) = (set(10), set(20));
        assert_eq!(Settings::effective(&[&global, &session]).max_elements, 20);
        let (none, process) =
            (Overrides::default(), Overrides { preview: Some(true), ..Overrides::default() });
        assert_eq!(origins(&global, &none, &none)["max_elements"], "global");
        assert_eq!(origins(&global, &session, &none)["max_elements"], "session");
        let all = origins(&global, &session, &process);
        assert_eq!((&all["max_elements"], &all["preview"]), (&"session".into(), &"process".into()));
    }
}
