//! The daemon's connections to its fabrics.

mod account;
mod connector;
mod devices;
mod fabrics;
mod fault;
mod link;
mod proxy;
mod route;
#[cfg(test)]
mod stand_in;
mod steering;

pub(crate) use account::AccountPlaces;
pub use connector::{Connector, LauncherConnection, LauncherConnector};
pub(crate) use devices::Devices;
pub(crate) use fabrics::Fabrics;
#[cfg(test)]
pub(crate) use fault::{Fault, plan_fault};
pub(crate) use link::{FabricLink, PendingOrder};
pub(crate) use proxy::{owner_port, uplink};
