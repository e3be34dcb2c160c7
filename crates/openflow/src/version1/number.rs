//! Numbers of ports, which have 16 bits (OpenFlow 1.0, 5.3.2).

use flow_table::port_number;

/// The first reserved number (`OFPP_MAX`).
const RESERVED: u16 = 0xff00;

/// No port (`OFPP_NONE`).
pub(super) const NONE: u16 = 0xffff;

/// The number in OpenFlow 1.3: reserved ones have the same lower bits.
pub(super) fn widen(port: u16) -> u32 {
    if port >= RESERVED { 0xffff_0000 | u32::from(port) } else { port.into() }
}

/// The number in OpenFlow 1.0; `None` if it has none.
pub(super) fn narrow(port: u32) -> Option<u16> {
    match port {
        port if port > port_number::MAX => Some(port as u16),
        port => u16::try_from(port).ok().filter(|port| *port < RESERVED),
    }
}
