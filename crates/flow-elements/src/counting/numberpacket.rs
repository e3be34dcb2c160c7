//! `NumberPacket`: writes increasing numbers into packets.

use core::any::Any;

use element::prelude::*;
use packet::Ip4ViewMut;

/// Length of a number in bytes.
const LENGTH: usize = 8;

/// Writes increasing numbers into packets, from 0 on: 8 bytes at OFFSET, lowest byte first.
///
/// RecordTimestamp and TimestampDiff find a packet by its number. A packet that is too short is extended with zeros, and the
/// length in its marked IPv4 header with it; put SetIPChecksum behind the element. Other checksums are not changed.
/// ```click
/// InfiniteSource(LENGTH 20, LIMIT 300, STOP true) -> n :: NumberPacket(OFFSET 16, NET_ORDER true)
///     -> c :: Classifier(16/000000000000012b, -);
/// c[0] -> last :: Counter -> Discard;
/// c[1] -> others :: Counter -> Discard;
/// ```
/// ```expect
/// n.count = 300
/// last.count = 1
/// last.byte_count = 24
/// others.count = 299
/// ```
/// ## Differences
/// The class is one of FastClick. There, the length is written to the start of any short packet.
#[derive(Args)]
#[element(
    name = "NumberPacket",
    group = "counting",
    see = "RecordTimestamp, TimestampDiff",
    fates = "changed"
)]
pub(crate) struct NumberPacketArgs {
    /// Offset of the number from the start of the packet, in bytes.
    #[arg(position, default = "40")]
    offset: u16,
    /// Write the highest byte first.
    #[arg(default = "false")]
    net_order: bool,
}

/// How the numbers are written, for RecordTimestamp.
pub(super) struct ByteOrder {
    pub(super) is_network: bool,
}

pub(crate) struct NumberPacket {
    args: NumberPacketArgs,
    count: u64,
}

impl Filter for NumberPacket {
    type Args = NumberPacketArgs;
    const HANDLERS: &'static [Handler<Self>] =
        &[Handler::read("count", "Packets numbered.", |element| element.count.to_string())];

    fn new(args: NumberPacketArgs, _: &mut Setup) -> Result<NumberPacket, SetupError> {
        Ok(NumberPacket { args, count: 0 })
    }

    fn export(&self) -> Option<Rc<dyn Any>> {
        Some(Rc::new(ByteOrder { is_network: self.args.net_order }))
    }

    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        let place = usize::from(self.args.offset)..usize::from(self.args.offset) + LENGTH;
        let missing = place.end.saturating_sub(packet.len());
        if missing > 0 {
            if packet.append(missing).is_none() {
                return Verdict::Drop(packet, Reason::NO_BUFFER);
            }
            let length = packet.network().len();
            if let Some(mut header) = Ip4ViewMut::new(packet.network_mut()) {
                header.set_total_length(u16::try_from(length).unwrap_or(u16::MAX));
            }
        }
        let number = if self.args.net_order { self.count.to_be_bytes() } else { self.count.to_le_bytes() };
        if let Some(field) = packet.data_mut().get_mut(place) {
            field.copy_from_slice(&number);
        }
        self.count += 1;
        Verdict::Pass(packet)
    }

    fn inherit(&mut self, old: &mut NumberPacket, _: &mut Context) {
        self.count = old.count;
    }
}

/// The number in a packet.
pub(super) fn number(packet: &Packet, offset: usize, net_order: bool) -> Option<u64> {
    let bytes = packet.data().get(offset..)?.first_chunk::<LENGTH>()?;
    Some(if net_order { u64::from_be_bytes(*bytes) } else { u64::from_le_bytes(*bytes) })
}
