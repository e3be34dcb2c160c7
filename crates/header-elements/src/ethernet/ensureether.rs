//! `EnsureEther`: prepends an Ethernet header if there is none.

use element::prelude::*;
use packet::{EtherType, MacAddr};

use super::header::{LENGTH, ethernet, read_u16};

/// Makes sure that IP packets have an Ethernet header.
///
/// Packets pass unchanged if they have no network header annotation, or already have a 14-byte header of type IP or IP6
/// before the network header. If such a header was stripped, it is restored. Otherwise, everything before the network
/// header is replaced by a header with the given type and addresses. A packet that cannot grow is dropped as
/// `too_long`.
/// ```click
/// InfiniteSource(LENGTH 46, LIMIT 2, STOP true) -> MarkIPHeader -> EnsureEther
///     -> c :: Classifier(0/020202020202 6/010101010101 12/0800, -);
/// c[0] -> right :: Counter -> Discard;
/// c[1] -> wrong :: Counter -> Discard;
/// ```
/// ```expect
/// right.count = 2
/// right.byte_count = 120
/// wrong.count = 0
/// ```
#[derive(Args)]
#[element(
    name = "EnsureEther",
    group = "ethernet",
    order_insensitive,
    shards = "independent",
    see = "EtherEncap, EtherRewrite",
    drops = "too_long",
    fates = "changed"
)]
pub struct EnsureEtherArgs {
    /// EtherType of new headers.
    #[arg(position, default = "0x0800")]
    ethertype: u32,
    /// Source address of new headers.
    #[arg(position, default = "1:1:1:1:1:1")]
    src: MacAddr,
    /// Destination address of new headers.
    #[arg(position, default = "2:2:2:2:2:2")]
    dst: MacAddr,
}

pub struct EnsureEther {
    header: [u8; LENGTH],
}

impl Filter for EnsureEther {
    type Args = EnsureEtherArgs;

    fn new(args: EnsureEtherArgs, _: &mut Setup) -> Result<EnsureEther, SetupError> {
        let Ok(kind) = u16::try_from(args.ethertype) else {
            let text = "argument 1 (Ethernet encapsulation type) must be <= 0xFFFF";
            return Err(SetupError::new(text));
        };
        Ok(EnsureEther { header: ethernet(args.dst, args.src, EtherType(kind)) })
    }

    #[inline]
    fn filter(&mut self, _: &mut Context, mut packet: Packet) -> Verdict {
        let Some(offset) = packet.network_offset().and_then(|offset| usize::try_from(offset).ok()) else {
            return Verdict::Pass(packet);
        };
        if offset == LENGTH && carries_ip(packet.data()) {
            return Verdict::Pass(packet);
        }
        if offset == 0 && packet.unstrip(LENGTH) {
            if carries_ip(packet.data()) {
                return Verdict::Pass(packet);
            }
            packet.strip(LENGTH);
        }
        packet.strip(offset);
        match packet.prepend(LENGTH).and_then(|target| target.first_chunk_mut()) {
            Some(target) => *target = self.header,
            None => return Verdict::Drop(packet, Reason::TOO_LONG),
        }
        Verdict::Pass(packet)
    }
}

/// Whether the EtherType is IPv4 or IPv6.
#[inline]
fn carries_ip(frame: &[u8]) -> bool {
    read_u16(frame, 12).is_some_and(|kind| kind == EtherType::IP4.0 || kind == EtherType::IP6.0)
}
