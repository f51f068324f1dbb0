//! What a page is made of, read from the folder of a recording. Bounded, so that a browser opens the page.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::error::Result;
use crate::recording::folder;
use crate::recording::trajectory::{Action, Said, Shot, Trajectory, read_of_turn};

/// Turns of one page. Each is a few kilobytes of it.
const MAX_TURNS: usize = 2_000;
/// Bytes of all pictures together; a third more in the page.
const MAX_PICTURES: usize = 48 * 1024 * 1024;
/// Bytes of all trees together.
const MAX_TREES: usize = 16 * 1024 * 1024;
/// How every PNG file begins.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// A recording, as far as a page shows it.
#[derive(Debug)]
pub struct Material {
    /// The whole.
    pub trajectory: Trajectory,
    /// Its turns, in order.
    pub turns: Vec<Told>,
    /// Turns after those.
    pub more_turns: usize,
    /// Different pictures, as PNG files.
    pub pictures: Vec<Vec<u8>>,
    /// Different trees.
    pub trees: Vec<String>,
    /// Videos that are there, by name.
    pub videos: Vec<String>,
    /// Address of the folder as seen from the page: nothing, or with a slash at its end.
    pub base: String,
}

/// One turn.
#[derive(Debug)]
pub struct Told {
    /// Its number.
    pub number: u32,
    /// What is written of it, or why that cannot be read.
    pub action: std::result::Result<Action, String>,
    /// From before it.
    pub before: Picture,
    /// From after it.
    pub after: Picture,
    /// Which tree.
    pub tree: Tree,
}

/// A picture of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Picture {
    /// The one with this place in [`Material::pictures`].
    Shown(usize),
    /// It would make the page too large; the name of its file.
    LeftOut(String),
    /// There is none, and why.
    Missing(String),
}

/// The tree of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tree {
    /// The one with this place in [`Material::trees`].
    Shown(usize),
    /// It would make the page too large.
    LeftOut,
    /// There is none.
    None,
}

impl Material {
    /// Reads the recording in `folder`, which may still go on. Turns that cannot be read are told as such.
    ///
    /// # Errors
    /// `invalid_trajectory`, `file_error`.
    pub fn read(folder: &Path, base: String) -> Result<Self> {
        let trajectory = Trajectory::read(folder)?;
        let mut numbers = folder::turns(folder)?;
        numbers.sort_unstable();
        let more_turns = numbers.len().saturating_sub(MAX_TURNS);
        numbers.truncate(MAX_TURNS);
        let mut pictures = Pool::new(MAX_PICTURES);
        let mut trees = Pool::new(MAX_TREES);
        let mut turns: Vec<Told> = {
            let mut said = Said::default();
            numbers.into_iter().map(|number| Told::new(folder, number, &mut said)).collect()
        };
        // What a turn led to comes first: what was before it is mostly what the turn before led to.
        for turn in &mut turns {
            turn.after = turn.picture(folder, |action| &action.after, &mut pictures);
        }
        for turn in &mut turns {
            turn.before = turn.picture(folder, |action| &action.before, &mut pictures);
        }
        for turn in &mut turns {
            turn.tree = tree(folder, turn.number, &mut trees);
        }
        let names = trajectory.parts.iter().filter_map(|part| Some(part.video.as_ref()?.file.clone()));
        let videos = names.filter(|name| is_name(name) && is_file(&folder.join(name))).collect();
        let trees = trees.held.into_iter().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let trees = trees.collect();
        Ok(Self { trajectory, turns, more_turns, pictures: pictures.held, trees, videos, base })
    }

    /// Pictures that are left out because there would be too much.
    pub fn pictures_left_out(&self) -> usize {
        let all = self.turns.iter().flat_map(|turn| [&turn.before, &turn.after]);
        all.filter(|picture| matches!(picture, Picture::LeftOut(_))).count()
    }
}

impl Told {
    fn new(folder: &Path, number: u32, said: &mut Said) -> Self {
        let unknown = || Picture::Missing("what is written of the turn cannot be read".to_owned());
        let action = Action::read(folder, number, said).map_err(|error| error.message);
        Self { number, action, before: unknown(), after: unknown(), tree: Tree::None }
    }

    fn picture(&self, folder: &Path, of: impl Fn(&Action) -> &Shot, pool: &mut Pool) -> Picture {
        let Ok(action) = &self.action else { return self.before.clone() };
        let name = match of(action) {
            Shot::Missing { missing } => return Picture::Missing(missing.clone()),
            Shot::Taken { file, .. } => file,
        };
        match read_of_turn(folder, self.number, name, MAX_PICTURES as u64) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Picture::Missing("its file is gone".to_owned())
            }
            // One that does not fit, whatever is in it, need not be read.
            Err(error) if error.kind() == ErrorKind::FileTooLarge => Picture::LeftOut(name.clone()),
            Err(error) => Picture::Missing(format!("its file cannot be read: {error}")),
            Ok(bytes) if !bytes.starts_with(PNG) => Picture::Missing("its file is no picture".to_owned()),
            Ok(bytes) => pool.add(bytes).map_or_else(|| Picture::LeftOut(name.clone()), Picture::Shown),
        }
    }
}

fn tree(folder: &Path, turn: u32, pool: &mut Pool) -> Tree {
    match read_of_turn(folder, turn, "tree.txt", MAX_TREES as u64) {
        Err(error) if error.kind() == ErrorKind::FileTooLarge => Tree::LeftOut,
        Ok(bytes) => pool.add(bytes).map_or(Tree::LeftOut, Tree::Shown),
        Err(_) => Tree::None,
    }
}

/// Whether it is a file itself: what a link leads to is no part of a recording, and not to be shown to whoever gets the page.
fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

/// Whether it is a name, and not a way out of the folder.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '\\']) && !name.starts_with('.')
}

/// Contents that are kept once each, up to a number of bytes.
struct Pool {
    held: Vec<Vec<u8>>,
    places: HashMap<[u8; 32], usize>,
    room: usize,
}

impl Pool {
    fn new(room: usize) -> Self {
        Self { held: Vec::new(), places: HashMap::new(), room }
    }

    /// Its place; `None` if there is no room.
    fn add(&mut self, bytes: Vec<u8>) -> Option<usize> {
        let digest = Sha256::digest(&bytes).into();
        if let Some(place) = self.places.get(&digest) {
            return Some(*place);
        }
        self.room = self.room.checked_sub(bytes.len())?;
        self.places.insert(digest, self.held.len());
        self.held.push(bytes);
        Some(self.held.len() - 1)
    }
}
