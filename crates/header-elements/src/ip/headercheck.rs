//! The check of IPv4 headers, shared by several elements.

use core::net::Ipv4Addr;

use element::arguments::{Ip4PrefixOrHost, SpaceSeparated};
use element::prelude::*;
use packet::view::ip4::{HeaderError, View};

use super::faults::HeaderFault;

/// The possible faults, in the order of `drop_details`.
pub(crate) static REASONS: &[HeaderFault] = &[
    HeaderFault { text: "tiny packet", drop: Reason::TOO_SHORT },
    HeaderFault { text: "bad IP version", drop: Reason::BAD_VERSION },
    HeaderFault { text: "bad IP header length", drop: Reason::BAD_HEADER_LENGTH },
    HeaderFault { text: "bad IP length", drop: Reason::BAD_LENGTH },
    HeaderFault { text: "bad IP checksum", drop: Reason::BAD_CHECKSUM },
    HeaderFault { text: "bad source address", drop: Reason::BAD_SOURCE },
];

const BAD_SOURCE: usize = 5;

/// Which source addresses are rejected.
#[derive(ArgumentGroup)]
pub struct SourceArguments {
    /// Router addresses with prefix lengths. Their broadcast addresses are bad sources, the addresses are good
    /// destinations.
    interfaces: Option<SpaceSeparated<Ip4PrefixOrHost>>,
    /// Source addresses to reject.
    badsrc: Option<SpaceSeparated<Ipv4Addr>>,
    /// Destinations for which every source is accepted.
    gooddst: Option<SpaceSeparated<Ipv4Addr>>,
}

/// The parameters of the check.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeaderCheck {
    /// Whether the checksum is verified.
    pub(crate) checksum: bool,
    /// Source addresses to reject.
    pub(crate) bad_sources: Vec<Ipv4Addr>,
    /// Destinations for which any source address is accepted.
    pub(crate) good_destinations: Vec<Ipv4Addr>,
}

/// The broadcast addresses, which are never a source.
const BROADCASTS: [Ipv4Addr; 2] = [Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST];

impl HeaderCheck {
    /// Creates the check from the arguments. INTERFACES replaces BADSRC and GOODDST.
    pub(crate) fn new(checksum: bool, sources: SourceArguments) -> HeaderCheck {
        let list =
            |list: Option<SpaceSeparated<Ipv4Addr>>| list.map_or_else(Vec::new, |SpaceSeparated(list)| list);
        let (bad_sources, good_destinations) = (list(sources.badsrc), list(sources.gooddst));
        let mut check = HeaderCheck { checksum, bad_sources, good_destinations };
        if let Some(SpaceSeparated(interfaces)) = sources.interfaces {
            check.bad_sources.clear();
            check.good_destinations.clear();
            for Ip4PrefixOrHost(interface) in interfaces {
                let broadcast = interface.network().to_bits() | !interface.mask.to_bits();
                check.bad_sources.push(Ipv4Addr::from_bits(broadcast));
                check.good_destinations.push(interface.address);
            }
            check.bad_sources.extend(BROADCASTS);
        }
        check
    }

    /// Sets the bad sources from the positional list of the old syntax, which implies the broadcast addresses.
    pub(crate) fn set_old_bad_sources(&mut self, SpaceSeparated(mut list): SpaceSeparated<Ipv4Addr>) {
        list.extend(BROADCASTS);
        self.bad_sources = list;
    }

    /// Checks the header at `offset`. A valid packet is marked, trimmed to the header's length and annotated with the
    /// destination. Otherwise the error is the fault's index in [`REASONS`].
    #[inline(always)]
    pub(crate) fn check(&self, packet: &mut Packet, offset: usize) -> Result<(), usize> {
        let bytes = packet.data().get(offset..).unwrap_or(&[]);
        let header = View::check(bytes, self.checksum).map_err(fault_index)?;
        let (length, header_length) = (usize::from(header.total_length()), header.header_length());
        let destination = header.destination();
        if !self.bad_sources.is_empty() && self.is_bad_source(header.source(), destination) {
            return Err(BAD_SOURCE);
        }
        packet.set_network(offset as isize, header_length);
        packet.truncate(offset + length);
        packet.set_destination_ip(destination);
        Ok(())
    }

    /// The fast path of `check`, for packets without options and from any source. Returns false and changes nothing if
    /// `check` must decide.
    #[inline(always)]
    pub(crate) fn pass(&self, packet: &mut Packet, offset: usize) -> bool {
        let Some(bytes) = packet.data().get(offset..) else { return false };
        let Some((destination, length)) = View::check_plain(bytes, self.checksum) else { return false };
        let passes = self.bad_sources.is_empty() && packet.set_network_within(offset, 20, length);
        if passes {
            packet.set_destination_ip(destination);
        }
        passes
    }

    #[inline(never)]
    fn is_bad_source(&self, source: Ipv4Addr, destination: Ipv4Addr) -> bool {
        self.bad_sources.contains(&source) && !self.good_destinations.contains(&destination)
    }
}

#[cold]
#[inline(never)]
fn fault_index(fault: HeaderError) -> usize {
    match fault {
        HeaderError::TooShort => 0,
        HeaderError::Version => 1,
        HeaderError::HeaderLength => 2,
        HeaderError::TotalLength => 3,
        HeaderError::Checksum => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::{Ip4ViewMut, Pool};

    fn datagram(length: u16, source: [u8; 4]) -> Vec<u8> {
        let mut bytes = vec![0; 30];
        let mut header = Ip4ViewMut::new(&mut bytes).unwrap();
        header.set_header_length(20);
        header.set_total_length(length);
        header.set_source(source.into());
        header.set_destination(Ipv4Addr::new(10, 0, 0, 9));
        header.fill_checksum();
        bytes
    }

    #[test]
    fn marks_and_trims() {
        let pool = Pool::new(4);
        let check = HeaderCheck { checksum: true, ..HeaderCheck::default() };
        let mut framed = vec![0; 14];
        framed.extend(datagram(24, [10, 0, 0, 1]));
        let mut packet = pool.packet(&framed).unwrap();
        assert_eq!(check.check(&mut packet, 14), Ok(()));
        assert_eq!(
            (packet.len(), packet.network_offset(), packet.network_header_length()),
            (38, Some(14), 20)
        );
        assert_eq!(packet.destination_ip(), Ipv4Addr::new(10, 0, 0, 9));
    }

    #[test]
    fn bad_headers_and_sources_are_rejected() {
        let pool = Pool::new(4);
        let mut check = HeaderCheck { checksum: true, ..HeaderCheck::default() };
        let judge = |bytes: &[u8], offset| check.check(&mut pool.packet(bytes).unwrap(), offset);
        let sound = datagram(30, [10, 0, 0, 1]);
        assert_eq!(judge(&sound, 11), Err(0));
        assert_eq!(judge(&sound, usize::MAX), Err(0));
        assert_eq!(judge(&[], 0), Err(0));
        assert_eq!(judge(&sound, 1), Err(1));
        assert_eq!(judge(&datagram(31, [10, 0, 0, 1]), 0), Err(3));
        assert_eq!(judge(&datagram(19, [10, 0, 0, 1]), 0), Err(3));
        check.set_old_bad_sources(SpaceSeparated(Vec::new()));
        let mut broadcast = pool.packet(&datagram(30, [255; 4])).unwrap();
        assert_eq!(check.check(&mut broadcast, 0), Err(BAD_SOURCE));
        check.good_destinations.push(Ipv4Addr::new(10, 0, 0, 9));
        assert_eq!(check.check(&mut broadcast, 0), Ok(()));
    }
}
