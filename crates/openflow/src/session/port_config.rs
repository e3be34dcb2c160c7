//! The configuration of ports in both versions (`ofp_port_config`: OpenFlow 1.3.5, 7.2.1; 1.0, 5.2.1).
//!
//! Switches have the bits of OpenFlow 1.0, which are more than those of 1.3: there `OFPPC_NO_RECV` also concerns frames of spanning
//! trees.

use crate::ErrorCode;
use crate::message::{Port, PortMod};

const NO_RECV: u32 = 1 << 2;

/// Frames of spanning trees are dropped (`OFPPC_NO_RECV_STP`), and the port is not flooded (`OFPPC_NO_FLOOD`): bits of 1.0 alone.
const NO_RECV_STP: u32 = 1 << 3;
const NO_FLOOD: u32 = 1 << 4;
const OF_VERSION1: u32 = NO_RECV_STP | NO_FLOOD;

/// The change that a controller of OpenFlow 1.3 means.
pub(super) fn from_version3(change: PortMod) -> Result<PortMod, ErrorCode> {
    if change.config & change.mask & OF_VERSION1 != 0 {
        return Err(ErrorCode::PMFC_BAD_CONFIG);
    }
    let [config, mask] = [change.config, change.mask].map(|bits| bits & !OF_VERSION1 | (bits & NO_RECV) << 1);
    Ok(PortMod { config, mask, ..change })
}

/// The port as a controller of OpenFlow 1.3 sees it.
pub(super) fn to_version3(port: Port) -> Port {
    Port { config: port.config & !OF_VERSION1, ..port }
}
