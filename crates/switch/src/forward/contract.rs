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
    /// To no port, because the source address is bound to another port.
    Spoofed,
    /// To no port, because the source address is valid for no sender.
    BadSource,
}

/// A forwarding method. It sees only addresses, does no I/O, and gets the time from its caller.
pub trait Forward: Send {
    /// Decides where a frame from `source` to `destination` goes that was received at port `from`. `now` is in
    /// nanoseconds of a monotonic clock.
    fn decide(&mut self, destination: MacAddr, source: MacAddr, from: PortId, now: u64) -> Decision;

    /// Removes a port: no frame is sent to it any more.
    fn remove_port(&mut self, port: PortId);

    /// Forgets the addresses learned at a port that went down. Its assigned addresses stay. Callers may repeat it while
    /// the port is down, so it must be cheap when there is nothing to forget.
    fn flush_port(&mut self, _port: PortId) {}
}

impl<F: Forward + ?Sized> Forward for Box<F> {
    fn decide(&mut self, destination: MacAddr, source: MacAddr, from: PortId, now: u64) -> Decision {
        (**self).decide(destination, source, from, now)
    }

    fn remove_port(&mut self, port: PortId) {
        (**self).remove_port(port);
    }

    fn flush_port(&mut self, port: PortId) {
        (**self).flush_port(port);
    }
}
