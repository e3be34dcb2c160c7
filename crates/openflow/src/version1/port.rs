//! Ports (OpenFlow 1.0, 5.2.1).

use super::number;
use crate::message::Port;
use crate::wire::Writer;

/// The link is down (`OFPPS_LINK_DOWN`): the only state that both versions have.
const LINK_DOWN: u32 = 1;

/// Writes a port; false if its number is beyond this version.
pub(super) fn write(writer: &mut Writer, port: &Port) -> bool {
    let Some(number) = number::narrow(port.number) else { return false };
    writer.u16(number).bytes(&port.address.0).text(&port.name, 16);
    writer.u32(port.config).u32(port.state & LINK_DOWN);
    // The bits for rates up to 10 Gb/s are the same; the others moved.
    for features in [port.current, port.advertised, port.supported, port.peer] {
        writer.u32(features & 0x7f);
    }
    true
}
