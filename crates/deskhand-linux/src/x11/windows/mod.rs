//! Top-level windows.

pub(super) mod activate;
pub(super) mod arrange;
pub(super) mod changes;
pub(super) mod close;
pub(super) mod facts;
pub(super) mod frame;
pub(super) mod hit;
pub(super) mod listing;
mod properties;
mod reading;
pub(super) mod startup;
