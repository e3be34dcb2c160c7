//! What a way of forwarding is.

use crate::port::PortId;
use packet::MacAddr;

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// To one port.
    To(PortId),
    /// To all ports but the one that it came from.
    Flood,
    /// Nowhere.
    Drop,
}

/// A way of forwarding. It sees addresses only, does no I/O, and is told the time.
pub trait Forward: Send {
    /// Where a frame from `source` to `destination` goes that came in at `from`. `now` is in nanoseconds
    /// of a clock that doesn't go back.
    fn decide(&mut self, destination: MacAddr, source: MacAddr, from: PortId, now: u64) -> Decision;

    /// A port is gone: nothing goes there any more.
    fn remove_port(&mut self, port: PortId);
}

impl<F: Forward + ?Sized> Forward for Box<F> {
    fn decide(&mut self, destination: MacAddr, source: MacAddr, from: PortId, now: u64) -> Decision {
        (**self).decide(destination, source, from, now)
    }

    fn remove_port(&mut self, port: PortId) {
        (**self).remove_port(port);
    }
}
