//! The state of flows that elements hand over to an element of the same configuration in another box.
//!
//! The state of one flow is a [`FlowState`]: bytes in a format that has a name and a version. The importer trusts none of
//! them. An element without this contract keeps no state of flows, or loses it with its box.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

use crate::context::Context;

/// The longest state of one flow in one element, in bytes.
pub const MAX_FLOW_STATE: usize = 4096;

/// The addresses and ports of a flow, equal for both directions: the lower end is first.
///
/// ICMP echo messages have their identifier as both ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowTuple {
    /// The protocol, as in the IP header.
    pub protocol: u8,
    /// Addresses and ports. IPv4 addresses are mapped into IPv6 (RFC 4291, section 2.5.5.2).
    pub ends: [(Ipv6Addr, u16); 2],
}

impl FlowTuple {
    /// The tuple of a flow between two ends.
    pub fn new(protocol: u8, one: (Ipv6Addr, u16), other: (Ipv6Addr, u16)) -> FlowTuple {
        FlowTuple { protocol, ends: if one <= other { [one, other] } else { [other, one] } }
    }

    /// The tuple of a flow over IPv4.
    pub fn ipv4(protocol: u8, one: (u32, u16), other: (u32, u16)) -> FlowTuple {
        let end = |(address, port)| (Ipv4Addr::from_bits(address).to_ipv6_mapped(), port);
        FlowTuple::new(protocol, end(one), end(other))
    }

    /// The tuple of all flows between two IPv4 addresses, whatever their protocol and ports. Address 0 stands for any.
    pub fn of_addresses(one: u32, other: u32) -> FlowTuple {
        FlowTuple::ipv4(0, (one, 0), (other, 0))
    }

    /// Its ends if it is one over IPv4.
    pub fn ipv4_ends(&self) -> Option<[(u32, u16); 2]> {
        let [(one, one_port), (other, other_port)] = self.ends;
        let [one, other] = [one.to_ipv4_mapped()?, other.to_ipv4_mapped()?];
        Some([(one.to_bits(), one_port), (other.to_bits(), other_port)])
    }
}

/// The tuples of one flow: a translated flow has one on each side.
pub type FlowTuples = [FlowTuple; 2];

/// What becomes of an element's state of flows when these go on in another box.
pub enum FlowKeeping<'a> {
    /// It keeps none that a flow depends on.
    Nothing,
    /// It keeps some, and cannot hand it over.
    Lost,
    /// It hands it over.
    HandedOver(&'a mut dyn FlowStates),
}

/// Why an element does not take the state of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportError {
    /// Its format or version is another one.
    Format,
    /// The bytes are no state of a flow, or not one of this configuration.
    Malformed,
    /// Another flow has the addresses and ports.
    Taken,
    /// There is no room.
    NoRoom,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ImportError::Format => "the state has an unknown format or version",
            ImportError::Malformed => "the state does not fit the configuration",
            ImportError::Taken => "another flow has the addresses and ports",
            ImportError::NoRoom => "there is no room for the flow",
        })
    }
}

/// The state of one flow in one element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowState {
    /// The element's name.
    pub element: String,
    /// The name of the format.
    pub format: String,
    /// The version of the format.
    pub version: u32,
    /// The addresses and ports of the flow.
    pub tuples: FlowTuples,
    /// The state: at most [`MAX_FLOW_STATE`] bytes.
    pub payload: Vec<u8>,
}

/// An element's state of flows.
pub trait FlowStates {
    /// The name and the version of the format. The version changes with any change of the bytes or their meaning.
    fn format(&self) -> (&'static str, u32);

    /// Whether one state belongs to all flows of its addresses ([`FlowTuple::of_addresses`]). Such states move all together.
    fn is_shared(&self) -> bool {
        false
    }

    /// The next flow at or after a position, and the position after it. Positions begin with zero, and no flow that stays in the
    /// element is left out.
    fn next(&self, position: u64) -> Option<(u64, FlowTuples)>;

    /// The tuples of the flow that is known by this one.
    fn find(&self, tuple: FlowTuple) -> Option<FlowTuples>;

    /// Removes the flow that is known by this tuple. Returns its state.
    fn export(&mut self, tuple: FlowTuple, cx: &Context) -> Option<(FlowTuples, Vec<u8>)>;

    /// Takes a flow over. The bytes may be anything. Nothing changes on failure.
    fn import(&mut self, tuples: FlowTuples, payload: &[u8], cx: &Context) -> Result<(), ImportError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_have_one_tuple() {
        let (one, other) = ((0x0a00_0001, 9), (0x0a00_0002, 1));
        assert_eq!(FlowTuple::ipv4(6, one, other), FlowTuple::ipv4(6, other, one));
        assert_ne!(FlowTuple::ipv4(6, one, other), FlowTuple::ipv4(17, other, one));
        assert_eq!(FlowTuple::ipv4(6, other, one).ipv4_ends(), Some([one, other]));
        let ends = [(Ipv6Addr::LOCALHOST, 1), (Ipv4Addr::LOCALHOST.to_ipv6_mapped(), 2)];
        assert_eq!(FlowTuple::new(6, ends[0], ends[1]).ipv4_ends(), None);
    }
}
