//! Reads pcapng.

use super::{
    BYTE_ORDER_MARK, ENHANCED_PACKET, INTERFACE_DESCRIPTION, MAX_BLOCK, MAX_INTERFACES, MIN_BLOCK,
    OBSOLETE_PACKET, OPTION_OFFSET, OPTION_RESOLUTION, SECTION_HEADER, SIMPLE_PACKET,
};
use crate::MAX_CAPTURED;
use crate::byte_order::ByteOrder;
use crate::error::CaptureError;
use crate::link_type::LinkType;
use crate::parser::Step;
use crate::record::{Options, Record};
use alloc::vec::Vec;

/// Bytes of a packet block's body in front of the packet.
const PACKET_HEADER: usize = 20;

/// The section that is being read.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// Its byte order; `None` before the first section.
    order: Option<ByteOrder>,
    interfaces: Vec<Interface>,
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: LinkType,
    /// Units of a timestamp in a second.
    units: u64,
    /// Seconds to add to every timestamp.
    offset: i64,
    /// The largest number of bytes captured of a packet; zero for no limit.
    snapshot_length: u32,
}

/// Whether the bytes begin with a section header.
pub(crate) fn is_section_header(bytes: &[u8]) -> bool {
    ByteOrder::Little.u32(bytes, 0) == Some(SECTION_HEADER)
}

impl Reader {
    /// The link type of the first interface.
    pub(crate) fn link_type(&self) -> Option<LinkType> {
        self.interfaces.first().map(|interface| interface.link)
    }

    /// Reads the block at the front of the unread bytes, which begin at `position` of the capture.
    pub(crate) fn step<'a>(&mut self, unread: &'a [u8], position: u64) -> Result<Step<'a>, CaptureError> {
        if is_section_header(unread) {
            return self.start_section(unread, position);
        }
        let order = self.order.unwrap_or(ByteOrder::Little);
        let (Some(kind), Some(length)) = (order.u32(unread, 0), order.u32(unread, 4)) else {
            return Ok(Step::NeedMore);
        };
        if length < MIN_BLOCK || !length.is_multiple_of(4) {
            return Err(CaptureError::BlockLength { position, length });
        }
        if !matches!(kind, INTERFACE_DESCRIPTION | OBSOLETE_PACKET | SIMPLE_PACKET | ENHANCED_PACKET) {
            return Ok(Step::Skip(length.into()));
        }
        if length > MAX_BLOCK {
            return Err(CaptureError::BlockLength { position, length });
        }
        let Some(block) = unread.get(..length as usize) else { return Ok(Step::NeedMore) };
        let body = block.get(8..block.len() - 4).unwrap_or(&[]);
        let record = match kind {
            INTERFACE_DESCRIPTION => return self.describe_interface(order, body, length),
            ENHANCED_PACKET => self.packet(order, body, order.u32(body, 0)),
            OBSOLETE_PACKET => self.packet(order, body, order.u16(body, 0).map(u32::from)),
            _ => self.simple_packet(order, body),
        };
        Ok(match record {
            Some(record) => Step::Record(record, length as usize),
            None => Step::Bad(length.into()),
        })
    }

    /// Starts a section: it may have another byte order, and its interfaces count from zero again.
    fn start_section<'a>(&mut self, unread: &[u8], position: u64) -> Result<Step<'a>, CaptureError> {
        if unread.len() < 16 {
            return Ok(Step::NeedMore);
        }
        let order = [ByteOrder::Little, ByteOrder::Big]
            .into_iter()
            .find(|order| order.u32(unread, 8) == Some(BYTE_ORDER_MARK))
            .ok_or(CaptureError::ByteOrder { position })?;
        let length = order.u32(unread, 4).unwrap_or(0);
        if length < MIN_BLOCK + 16 || !length.is_multiple_of(4) {
            return Err(CaptureError::BlockLength { position, length });
        }
        match order.u16(unread, 12) {
            Some(1) => {}
            major => return Err(CaptureError::Version(major.unwrap_or(0))),
        }
        self.order = Some(order);
        self.interfaces.clear();
        Ok(Step::Skip(length.into()))
    }

    /// Adds an interface: link type, two unused bytes, snapshot length, options.
    fn describe_interface<'a>(
        &mut self,
        order: ByteOrder,
        body: &[u8],
        length: u32,
    ) -> Result<Step<'a>, CaptureError> {
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err(CaptureError::TooManyInterfaces);
        }
        let (Some(link), Some(snapshot_length)) = (order.u16(body, 0), order.u32(body, 4)) else {
            return Ok(Step::Bad(length.into()));
        };
        let link = LinkType(link.into()).canonical();
        let mut interface = Interface { link, units: 1_000_000, offset: 0, snapshot_length };
        for (code, value) in Options::new(order, body.get(8..).unwrap_or(&[])).iter() {
            match (code, value) {
                (OPTION_RESOLUTION, &[code]) => interface.units = units(code)?,
                (OPTION_OFFSET, value) if value.len() == 8 => {
                    interface.offset = order.u64(value, 0).unwrap_or(0) as i64;
                }
                _ => {}
            }
        }
        self.interfaces.push(interface);
        Ok(Step::Skip(length.into()))
    }

    /// Reads an enhanced or an obsolete packet block. They differ in how they name the interface; then both have the
    /// timestamp (high, low), captured length, original length, packet, options.
    fn packet<'a>(&self, order: ByteOrder, body: &'a [u8], interface: Option<u32>) -> Option<Record<'a>> {
        let number = interface?;
        let interface = self.interfaces.get(number as usize)?;
        let ticks = u64::from(order.u32(body, 4)?) << 32 | u64::from(order.u32(body, 8)?);
        let (captured, original_length) = (order.u32(body, 12)?, order.u32(body, 16)?);
        if captured > MAX_CAPTURED {
            return None;
        }
        let (bytes, rest) = body.get(PACKET_HEADER..)?.split_at_checked(captured as usize)?;
        let padding = bytes.len().next_multiple_of(4) - bytes.len();
        Some(Record {
            time_ns: interface.time_ns(ticks),
            original_length: original_length.max(captured),
            link: interface.link,
            interface: number,
            bytes,
            options: Options::new(order, rest.get(padding..).unwrap_or(&[])),
        })
    }

    /// Reads a simple packet block: original length and packet, always of the first interface, without a time.
    fn simple_packet<'a>(&self, order: ByteOrder, body: &'a [u8]) -> Option<Record<'a>> {
        let interface = self.interfaces.first()?;
        let original_length = order.u32(body, 0)?;
        let snapshot_length =
            if interface.snapshot_length == 0 { u32::MAX } else { interface.snapshot_length };
        let packet = body.get(4..)?;
        let bytes = packet.get(..original_length.min(snapshot_length) as usize).unwrap_or(packet);
        if bytes.len() > MAX_CAPTURED as usize {
            return None;
        }
        Some(Record {
            time_ns: 0,
            original_length,
            link: interface.link,
            interface: 0,
            bytes,
            options: Options::NONE,
        })
    }
}

impl Interface {
    /// The time of a timestamp; times that do not fit saturate.
    fn time_ns(&self, ticks: u64) -> i64 {
        let nanos = match self.units {
            1_000_000_000 => u128::from(ticks),
            1_000_000 => u128::from(ticks) * 1_000,
            units => u128::from(ticks) * 1_000_000_000 / u128::from(units),
        };
        let nanos = i64::try_from(nanos).unwrap_or(i64::MAX);
        self.offset.saturating_mul(1_000_000_000).saturating_add(nanos)
    }
}

/// Units in a second of an `if_tsresol` code: a negative power of ten, or of two if the top bit is set.
fn units(code: u8) -> Result<u64, CaptureError> {
    let power = u32::from(code & 0x7f);
    let units = if code & 0x80 != 0 { 1u64.checked_shl(power) } else { 10u64.checked_pow(power) };
    units.ok_or(CaptureError::Resolution(code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decoder;

    struct Writer(Vec<u8>, ByteOrder);

    impl Writer {
        fn number(&self, number: u32) -> [u8; 4] {
            if self.1 == ByteOrder::Little { number.to_le_bytes() } else { number.to_be_bytes() }
        }

        fn half(&self, number: u16) -> [u8; 2] {
            if self.1 == ByteOrder::Little { number.to_le_bytes() } else { number.to_be_bytes() }
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

        fn section(order: ByteOrder) -> Writer {
            let mut writer = Writer(Vec::new(), order);
            let mut body = writer.number(BYTE_ORDER_MARK).to_vec();
            body.extend(writer.half(1));
            body.extend([0; 2]);
            body.extend([0xff; 8]);
            writer.block(SECTION_HEADER, &body);
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
            self.block(INTERFACE_DESCRIPTION, &body);
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
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let mut writer = Writer::section(order);
            let offset = if order == ByteOrder::Little { 7u64.to_le_bytes() } else { 7u64.to_be_bytes() };
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
                    seen.push((r.time_ns, r.original_length, r.link.0, r.interface, r.bytes.to_vec()));
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
            assert_eq!((decoder.bad_records(), decoder.unread()), (1, 0));
            assert_eq!(decoder.link_type(), Ok(Some(LinkType::ETHERNET)));
        }
    }

    #[test]
    fn impossible_blocks_are_errors() {
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
        let mut many = Writer::section(ByteOrder::Little);
        (0..=MAX_INTERFACES).for_each(|_| many.interface(1, &[]));
        assert_eq!(error(many), Some(CaptureError::TooManyInterfaces));
        let mut fine = Writer::section(ByteOrder::Little);
        fine.interface(1, &[(OPTION_RESOLUTION, &[20])]);
        assert_eq!(error(fine), Some(CaptureError::Resolution(20)));
        for length in [0, 8, 13, 0xffff_fffc] {
            let mut long = Writer::section(ByteOrder::Little);
            let position = long.0.len() as u64;
            long.0.extend([6, 0, 0, 0]);
            long.0.extend(long.number(length));
            assert_eq!(error(long), Some(CaptureError::BlockLength { position, length }));
        }
        // A long block of another kind is skipped without being kept.
        let mut other = Writer::section(ByteOrder::Little);
        other.0.extend([9, 0, 0, 0]);
        other.0.extend(other.number(0xffff_fffc));
        assert_eq!(error(other), None);
    }
}
