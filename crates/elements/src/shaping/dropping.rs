//! Where early drops go.

use element::prelude::*;

/// Sends a packet to output 1, or drops it and counts it as `early_drop`.
pub(crate) fn discard(cx: &mut Context, packet: Packet) {
    if cx.outputs() < 2 {
        cx.drop(packet, "early_drop");
    } else {
        cx.send(1, packet);
    }
}
