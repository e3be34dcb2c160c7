//! The names of the two ports that connect a switch and a proxy of it in the fabric of another owner.

use api::{Owner, PortName};

/// The link's port at a proxy.
const UPLINK: &str = "uplink";

/// The name of the port at a switch that leads to the boxes of another owner.
pub(crate) fn owner_port(owner: &Owner) -> PortName {
    let name = format!("from-{owner}");
    // An owner's name may be as long as a port's.
    name.parse().or_else(|_| owner.as_str().parse()).unwrap_or_else(|_| uplink())
}

/// The name of the port at a proxy that leads to the switch.
pub(crate) fn uplink() -> PortName {
    UPLINK.parse().expect("a valid name")
}
