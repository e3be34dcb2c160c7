//! The pcapng format (draft-ietf-opsawg-pcapng): blocks in sections, several interfaces with clocks of their own.
//!
//! A block is type, length, body, length again. Enhanced, simple and obsolete packet blocks are records; interface
//! descriptions say what the packets of an interface begin with and how its timestamps count; the rest is passed over.

use super::decoder::{Found, MAX_CAPTURE, Step};
use super::error::DumpError;
use super::link::LinkType;
use super::order::Order;
use alloc::vec::Vec;
use packet::Timestamp;

/// The type of a section header; it reads the same in both byte orders.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// The number by which a section header tells its byte order.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// The shortest block: type and two lengths.
const SHORTEST: u32 = 12;
/// The longest block that is looked into, headers and options included: a hostile length must not fill the memory.
const LONGEST: u32 = 2 * MAX_CAPTURE;
/// The most interfaces of a section: each costs memory, and a description is only twenty bytes long.
const MAX_INTERFACES: usize = 4096;

/// Options of an interface description.
const OPTION_END: u16 = 0;
const OPTION_RESOLUTION: u16 = 9;
const OPTION_OFFSET: u16 = 14;

/// The section that is being read.
#[derive(Debug, Default)]
pub(super) struct Section {
    order: Option<Order>,
    interfaces: Vec<Interface>,
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: LinkType,
    /// Units of the timestamp in a second.
    units: u64,
    /// Seconds to be added to every timestamp.
    offset: i64,
    /// The most bytes captured of a packet; zero for no limit.
    snapshot: u32,
}

/// Whether the bytes begin with a section header.
pub(super) fn recognises(bytes: &[u8]) -> bool {
    Order::Little.u32(bytes, 0) == Some(SECTION)
}

impl Section {
    /// The link type of the first interface.
    pub(super) fn link(&self) -> Option<LinkType> {
        self.interfaces.first().map(|interface| interface.link)
    }

    /// Looks at the block at the front of the unread bytes.
    pub(super) fn step(&mut self, unread: &[u8], position: u64) -> Result<Step, DumpError> {
        if recognises(unread) {
            return self.start(unread, position);
        }
        let order = self.order.unwrap_or(Order::Little);
        let (Some(kind), Some(length)) = (order.u32(unread, 0), order.u32(unread, 4)) else {
            return Ok(Step::More);
        };
        if length < SHORTEST || !length.is_multiple_of(4) {
            return Err(DumpError::BlockLength { position, length });
        }
        if !matches!(kind, INTERFACE | OBSOLETE_PACKET | SIMPLE_PACKET | ENHANCED_PACKET) {
            return Ok(Step::Skip(length.into()));
        }
        if length > LONGEST {
            return Err(DumpError::BlockLength { position, length });
        }
        let Some(block) = unread.get(..length as usize) else { return Ok(Step::More) };
        let body = &block[8..block.len() - 4];
        if kind == INTERFACE {
            return self.describe(order, body, length);
        }
        let found = match kind {
            ENHANCED_PACKET => self.enhanced(order, body, order.u32(body, 0)),
            OBSOLETE_PACKET => self.enhanced(order, body, order.u16(body, 0).map(u32::from)),
            _ => self.simple(order, body),
        };
        Ok(match found {
            Some(found) => Step::Record(Found { length: length.into(), ..found }),
            None => Step::Bad(length.into()),
        })
    }

    /// Starts a section: its byte order may differ, and its interfaces are numbered anew.
    fn start(&mut self, unread: &[u8], position: u64) -> Result<Step, DumpError> {
        if unread.len() < 16 {
            return Ok(Step::More);
        }
        let order =
            [Order::Little, Order::Big].into_iter().find(|order| order.u32(unread, 8) == Some(BYTE_ORDER));
        let order = order.ok_or(DumpError::ByteOrder { position })?;
        let length = order.u32(unread, 4).unwrap_or(0);
        if length < SHORTEST + 16 || !length.is_multiple_of(4) {
            return Err(DumpError::BlockLength { position, length });
        }
        match order.u16(unread, 12) {
            Some(1) => {}
            major => return Err(DumpError::Version(major.unwrap_or(0))),
        }
        self.order = Some(order);
        self.interfaces.clear();
        Ok(Step::Skip(length.into()))
    }

    /// Takes in an interface description: link type, two unused bytes, snapshot length, options.
    fn describe(&mut self, order: Order, body: &[u8], length: u32) -> Result<Step, DumpError> {
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err(DumpError::TooManyInterfaces);
        }
        let (Some(link), Some(snapshot)) = (order.u16(body, 0), order.u32(body, 4)) else {
            return Ok(Step::Bad(length.into()));
        };
        let link = LinkType(link.into()).canonical();
        let mut interface = Interface { link, units: 1_000_000, offset: 0, snapshot };
        let mut options = &body[8..];
        while let (Some(code), Some(size)) = (order.u16(options, 0), order.u16(options, 2)) {
            let padded = 4 + usize::from(size).next_multiple_of(4);
            let Some(value) = options.get(4..4 + usize::from(size)) else { break };
            match (code, value) {
                (OPTION_END, _) => break,
                (OPTION_RESOLUTION, &[code]) => interface.units = units(code)?,
                (OPTION_OFFSET, value) if value.len() == 8 => {
                    interface.offset = order.u64(value, 0).unwrap_or(0) as i64;
                }
                _ => {}
            }
            options = options.get(padded..).unwrap_or(&[]);
        }
        self.interfaces.push(interface);
        Ok(Step::Skip(length.into()))
    }

    /// Enhanced and obsolete packet blocks differ in how they name the interface; then come timestamp (high, low),
    /// captured length, original length, packet, options.
    fn enhanced(&self, order: Order, body: &[u8], number: Option<u32>) -> Option<Found> {
        let interface = self.interfaces.get(number? as usize)?;
        let ticks = u64::from(order.u32(body, 4)?) << 32 | u64::from(order.u32(body, 8)?);
        let (captured, original_length) = (order.u32(body, 12)?, order.u32(body, 16)?);
        let end = 20usize.checked_add(captured as usize)?;
        if captured > MAX_CAPTURE || end > body.len() {
            return None;
        }
        Some(Found {
            timestamp: interface.time(ticks),
            original_length,
            link: interface.link,
            interface: number?,
            bytes: 28..8 + end,
            length: 0,
        })
    }

    /// A simple packet block: original length, packet; always of the first interface, without a time.
    fn simple(&self, order: Order, body: &[u8]) -> Option<Found> {
        let interface = self.interfaces.first()?;
        let original_length = order.u32(body, 0)?;
        let most = if interface.snapshot == 0 { u32::MAX } else { interface.snapshot };
        let captured = (original_length.min(most) as usize).min(body.len() - 4);
        if captured > MAX_CAPTURE as usize {
            return None;
        }
        let bytes = 12..12 + captured;
        Some(Found {
            timestamp: Timestamp::ZERO,
            original_length,
            link: interface.link,
            interface: 0,
            bytes,
            length: 0,
        })
    }
}

impl Interface {
    /// The time of a timestamp; times that don't fit saturate.
    fn time(&self, ticks: u64) -> Timestamp {
        let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(self.units);
        let nanos = i64::try_from(nanos).unwrap_or(i64::MAX);
        Timestamp::from_parts(self.offset, 0) + Timestamp::from_nanos(nanos)
    }
}

/// The units in a second of a resolution code: a negative power of ten, or of two if the top bit is set.
fn units(code: u8) -> Result<u64, DumpError> {
    let power = u32::from(code & 0x7f);
    let units = if code & 0x80 != 0 { 1u64.checked_shl(power) } else { 10u64.checked_pow(power) };
    units.ok_or(DumpError::Resolution(code))
}

#[cfg(test)]
mod tests {
    use super::super::Decoder;
    use super::*;

    struct Writer(Vec<u8>, Order);

    impl Writer {
        fn number(&self, number: u32) -> [u8; 4] {
            if self.1 == Order::Little { number.to_le_bytes() } else { number.to_be_bytes() }
        }

        fn half(&self, number: u16) -> [u8; 2] {
            if self.1 == Order::Little { number.to_le_bytes() } else { number.to_be_bytes() }
        }

        fn block(&mut self, kind: u32, body: &[u8]) {
            let mut body = body.to_vec();
            body.resize(body.len().next_multiple_of(4), 0);
            let length = self.number(body.len() as u32 + 12);
            self.0.extend(self.number(kind));
            self.0.extend(length);
            self.0.extend(body);
            self.0.extend(length);
        }

        fn section(order: Order) -> Writer {
            let mut writer = Writer(Vec::new(), order);
            let mut body = writer.number(BYTE_ORDER).to_vec();
            body.extend(writer.half(1));
            body.extend([0; 2]);
            body.extend([0xff; 8]);
            writer.block(SECTION, &body);
            writer
        }

        fn interface(&mut self, link: u16, options: &[(u16, &[u8])]) {
            let mut body = self.half(link).to_vec();
            body.extend([0; 2]);
            body.extend(self.number(3));
            for (code, value) in options {
                body.extend(self.half(*code));
                body.extend(self.half(value.len() as u16));
                body.extend(*value);
                body.resize(body.len().next_multiple_of(4), 0);
            }
            self.block(INTERFACE, &body);
        }

        fn packet(&mut self, interface: u32, ticks: u64, original: u32, packet: &[u8]) {
            let mut body = Vec::new();
            for field in [interface, (ticks >> 32) as u32, ticks as u32, packet.len() as u32, original] {
                body.extend(self.number(field));
            }
            body.extend(packet);
            self.block(ENHANCED_PACKET, &body);
        }
    }

    #[test]
    fn interfaces_have_clocks_of_their_own() {
        for order in [Order::Little, Order::Big] {
            let mut writer = Writer::section(order);
            let offset = if order == Order::Little { 7u64.to_le_bytes() } else { 7u64.to_be_bytes() };
            writer.interface(1, &[]);
            writer.interface(101, &[(2, b"eth0"), (OPTION_RESOLUTION, &[9]), (OPTION_OFFSET, &offset)]);
            writer.interface(1, &[(OPTION_RESOLUTION, &[0x8a])]);
            writer.block(5, b"statistics");
            writer.packet(0, 1_000_001, 60, b"first");
            writer.packet(1, 5, 3, b"abc");
            writer.packet(2, 512, 3, b"abc");
            writer.packet(3, 0, 3, b"bad");
            let simple = [&writer.number(9)[..], b"simple"].concat();
            writer.block(SIMPLE_PACKET, &simple);
            let old = [
                &writer.half(1)[..],
                &[0; 2],
                &[0; 4],
                &writer.number(1),
                &writer.number(2),
                &writer.number(2),
                b"ab",
            ]
            .concat();
            writer.block(OBSOLETE_PACKET, &old);
            let mut decoder = Decoder::new();
            let mut seen = Vec::new();
            for piece in writer.0.chunks(5) {
                decoder.feed(piece);
                while let Some(r) = decoder.record().unwrap() {
                    seen.push((
                        r.timestamp.nanos(),
                        r.original_length,
                        r.link.0,
                        r.interface,
                        r.bytes.to_vec(),
                    ));
                }
            }
            let expected = [
                (1_000_001_000, 60, 1, 0, b"first".to_vec()),
                (7_000_000_005, 3, 101, 1, b"abc".to_vec()),
                (500_000_000, 3, 1, 2, b"abc".to_vec()),
                (0, 9, 1, 0, b"sim".to_vec()),
                (7_000_000_001, 2, 101, 1, b"ab".to_vec()),
            ];
            assert_eq!(seen, expected);
            assert_eq!((decoder.bad_records(), decoder.unfinished()), (1, 0));
            assert_eq!(decoder.link(), Ok(Some(LinkType::ETHERNET)));
        }
    }

    #[test]
    fn lies_are_errors() {
        let error = |writer: Writer| {
            let mut decoder = Decoder::new();
            decoder.feed(&writer.0);
            loop {
                match decoder.record() {
                    Ok(Some(_)) => {}
                    Ok(None) => return None,
                    Err(error) => return Some(error),
                }
            }
        };
        let mut many = Writer::section(Order::Little);
        (0..=MAX_INTERFACES).for_each(|_| many.interface(1, &[]));
        assert_eq!(error(many), Some(DumpError::TooManyInterfaces));
        let mut fine = Writer::section(Order::Little);
        fine.interface(1, &[(OPTION_RESOLUTION, &[20])]);
        assert_eq!(error(fine), Some(DumpError::Resolution(20)));
        for length in [0, 8, 13, 0xffff_fffc] {
            let mut long = Writer::section(Order::Little);
            let position = long.0.len() as u64;
            long.0.extend([6, 0, 0, 0]);
            long.0.extend(long.number(length));
            assert_eq!(error(long), Some(DumpError::BlockLength { position, length }));
        }
        // A long block of another kind is passed over without being kept.
        let mut other = Writer::section(Order::Little);
        other.0.extend([9, 0, 0, 0]);
        other.0.extend(other.number(0xffff_fffc));
        assert_eq!(error(other), None);
    }
}
