//! The keyboard: text and chords, whatever the layout.

pub(super) mod layout;
pub(super) mod names;
pub(super) mod plan;
#[cfg(test)]
mod tests;
pub(super) mod typing;
pub(super) mod xkb;
