//! Displays and their pixels.

mod beneath;
mod camera;
mod displays;
mod pixels;
mod reveal;
mod segment;

pub(super) use camera::Camera;
pub(super) use displays::displays;
