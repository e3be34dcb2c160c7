//! The daemon's connections to its fabrics.

mod connector;
mod devices;
mod fabrics;
mod fault;
mod link;
mod route;

pub use connector::{Connector, LauncherConnection, LauncherConnector};
pub(crate) use devices::Devices;
pub(crate) use fabrics::Fabrics;
#[cfg(test)]
pub(crate) use fault::{Fault, plan_fault};
pub(crate) use link::FabricLink;
