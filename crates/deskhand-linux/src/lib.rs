//! The Linux adapters behind the ports of `deskhand-core`: X11, AT-SPI, applications, and the private desktop.
//!
//! Nothing here knows tools, sessions or transports. Making a [`desktop`] opens no display and no bus: each adapter
//! connects when its first method is called.

pub mod accessibility;
pub mod apps;
pub mod environment;
pub mod health;
pub mod private;
mod process;
pub mod x11;
