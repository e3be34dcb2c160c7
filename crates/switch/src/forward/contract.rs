//! The contract of a forwarding method.

use crate::port::PortId;
use packet::MacAddr;

/// Where a frame is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// To one port.
    To(PortId),
    /// To all ports except the source port.
    Flood,
    /// To no port.
    Drop,
}

/// A forwarding method. It sees only addresses, does no I/O, and gets the time from its caller.
pub trait Forward: Send {
    /// Decides where a frame from `source` to `destination` goes that was received at port `from`. `now` is in
    /// nanoseconds of a monotonic clock.
    fn decide(&mut self, destination: MacAddr, source: MacAddr, from: PortId, now: u64) -> Decision;

    /// Removes a port: no frame is sent to it any more.
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
