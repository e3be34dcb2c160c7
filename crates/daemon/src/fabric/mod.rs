//! The daemon's connections to its fabrics.

mod connector;
mod devices;
mod fabrics;
mod link;
mod route;

pub use connector::{Connector, LauncherConnector};
pub(crate) use devices::Devices;
pub(crate) use fabrics::Fabrics;
pub(crate) use link::FabricLink;
