//! Ports whose adapters are not there yet.

use std::time::Duration;

use async_trait::async_trait;
use deskhand_core::desktop::{Chord, Delivered, Keyboard, PortError, Stop};

pub(crate) struct NotYet;

fn not_yet<T>() -> Result<T, PortError> {
    Err(PortError::NotSupported("not built yet".to_owned()))
}

#[async_trait]
impl Keyboard for NotYet {
    async fn type_text(&self, _: &str, _: Duration, _: &Stop) -> Result<Delivered, PortError> {
        not_yet()
    }

    async fn press(&self, _: &Chord, _: u32, _: Duration, _: &Stop) -> Result<Delivered, PortError> {
        not_yet()
    }
}
