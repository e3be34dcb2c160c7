//! The daemon's connection to its fabric.

mod connector;
mod devices;
mod link;

pub use connector::{Connector, LauncherConnector};
pub(crate) use devices::Devices;
pub(crate) use link::FabricLink;
