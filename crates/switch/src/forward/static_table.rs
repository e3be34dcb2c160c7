//! Forwarding by a configured table, as in ClickOS: no address is learned, and unknown addresses are not flooded.

use super::contract::{Decision, Forward};
use crate::port::PortId;
use packet::MacAddr;
use std::collections::HashMap;
use std::fmt;

/// Maximum entries of a table. Bounds what one request can make the switch store.
const MAX_ENTRIES: usize = 65_536;

/// Why an entry cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableError {
    /// The address is a group address, which belongs to no port.
    Group(MacAddr),
    /// The table is full.
    Full,
    /// The zero address belongs to no port of a learning bridge, because it is never learned.
    Zero,
    /// The address is bound to another port of a learning bridge.
    Bound(MacAddr),
    /// The bucket of the address in a learning bridge holds bound addresses only.
    BucketFull(MacAddr),
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group(address) => write!(f, "{address} is a group address, which can't belong to a port"),
            Self::Full => write!(f, "the table is full: it has {MAX_ENTRIES} entries"),
            Self::Zero => f.write_str("the zero address can't belong to a port of a learning switch"),
            Self::Bound(address) => write!(f, "{address} is already assigned to another port of the switch"),
            Self::BucketFull(address) => {
                write!(f, "the table has no room for {address}: its bucket is full of assigned addresses")
            }
        }
    }
}

impl std::error::Error for TableError {}

/// A static address table. Frames to group addresses are flooded. Frames to unknown addresses go to the default port,
/// or are dropped if there is none.
#[derive(Clone, Debug, Default)]
pub struct StaticTable {
    ports: HashMap<u64, PortId>,
    default: Option<PortId>,
}

impl StaticTable {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Assigns an address to a port. Returns the address's previous port.
    pub fn insert(&mut self, address: MacAddr, port: PortId) -> Result<Option<PortId>, TableError> {
        let key = address.to_u64();
        if address.is_group() {
            return Err(TableError::Group(address));
        }
        if self.ports.len() >= MAX_ENTRIES && !self.ports.contains_key(&key) {
            return Err(TableError::Full);
        }
        Ok(self.ports.insert(key, port))
    }

    /// Removes an address. Returns its port.
    pub fn remove(&mut self, address: MacAddr) -> Option<PortId> {
        self.ports.remove(&address.to_u64())
    }

    /// Sets the port for unknown addresses.
    pub fn set_default(&mut self, port: Option<PortId>) {
        self.default = port;
    }

    /// All entries, in no particular order.
    pub fn entries(&self) -> impl Iterator<Item = (MacAddr, PortId)> {
        self.ports.iter().map(|(address, port)| (MacAddr::from_u64(*address), *port))
    }
}

impl Forward for StaticTable {
    #[inline]
    fn decide(&mut self, destination: MacAddr, _source: MacAddr, from: PortId, _now: u64) -> Decision {
        if destination.is_group() {
            return Decision::Flood;
        }
        match self.ports.get(&destination.to_u64()).copied().or(self.default) {
            Some(port) if port != from => Decision::To(port),
            _ => Decision::Drop,
        }
    }

    fn remove_port(&mut self, port: PortId) {
        self.ports.retain(|_, at| *at != port);
        self.default = self.default.filter(|at| *at != port);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

    #[test]
    fn frames_follow_the_static_table() {
        let mut table = StaticTable::new();
        assert_eq!(table.insert(A, PortId(1)), Ok(None));
        let cases = [
            (A, PortId(2), Decision::To(PortId(1))),
            (A, PortId(1), Decision::Drop),
            (B, PortId(1), Decision::Drop),
            (MacAddr::BROADCAST, PortId(1), Decision::Flood),
        ];
        for (destination, from, expected) in cases {
            assert_eq!(table.decide(destination, B, from, 0), expected, "{destination}");
        }
        table.set_default(Some(PortId(9)));
        assert_eq!(table.decide(B, A, PortId(1), 0), Decision::To(PortId(9)));
        assert_eq!(table.insert(A, PortId(3)), Ok(Some(PortId(1))));
        table.remove_port(PortId(3));
        table.remove_port(PortId(9));
        assert_eq!(table.decide(A, B, PortId(1), 0), Decision::Drop);
        assert_eq!(table.insert(MacAddr::BROADCAST, PortId(1)), Err(TableError::Group(MacAddr::BROADCAST)));
    }

    #[test]
    fn the_table_is_bounded() {
        let mut table = StaticTable::new();
        for number in 0..MAX_ENTRIES as u64 {
            assert_eq!(table.insert(MacAddr::from_u64(number), PortId(0)), Ok(None));
        }
        assert_eq!(table.insert(MacAddr::from_u64(1 << 20), PortId(0)), Err(TableError::Full));
        assert_eq!(table.insert(MacAddr::from_u64(7), PortId(1)), Ok(Some(PortId(0))));
        assert_eq!(table.entries().count(), MAX_ENTRIES);
    }
}
