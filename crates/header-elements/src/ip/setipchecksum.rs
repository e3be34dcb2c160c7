//! `SetIPChecksum`: computes the checksum of IPv4 headers.

use element::prelude::*;
use packet::Ip4ViewMut;

/// Computes the IPv4 header checksum and writes it.
///
/// The header is the marked one, or, without a mark, at the start of the packet. Elements that change headers keep the
/// checksum correct by themselves. A packet that is not IPv4, or shorter than its header, is dropped as
/// `bad_header_length`. The first is logged.
/// ```click
/// InfiniteSource(DATA \<4500001400000000401100000a0000010a000002>, LIMIT 2, STOP true)
///     -> s :: SetIPChecksum -> c :: CheckIPHeader -> Truncate(19) -> t :: SetIPChecksum -> Discard;
/// ```
/// ```expect
/// s.drops = 0
/// c.drops = 0
/// t.drops = 2
/// t.losses = bad_header_length 2
/// ```
#[derive(Args)]
#[element(
    name = "SetIPChecksum",
    group = "ip",
    order_insensitive,
    shards = "sum",
    sums = "drops",
    see = "CheckIPHeader, DecIPTTL, SetIPDSCP, IPRewriter",
    drops = "bad_header_length",
    fates = "changed"
)]
pub struct SetIPChecksumArgs;

pub struct SetIPChecksum {
    drops: u64,
}

impl SetIPChecksum {
    #[cold]
    fn reject(&mut self, cx: &Context, packet: Packet) -> Verdict {
        self.drops += 1;
        if self.drops == 1 {
            cx.log("SetIPChecksum: bad input packet");
        }
        Verdict::Drop(packet, Reason::BAD_HEADER_LENGTH)
    }
}

impl Filter for SetIPChecksum {
    type Args = SetIPChecksumArgs;
    const HANDLERS: &'static [Handler<Self>] =
        &[Handler::read("drops", "Packets without a complete header.", |element| element.drops.to_string())];

    fn new(_: SetIPChecksumArgs, _: &mut Setup) -> Result<SetIPChecksum, SetupError> {
        Ok(SetIPChecksum { drops: 0 })
    }

    #[inline]
    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        let bytes = if packet.has_network() { packet.network_mut() } else { packet.data_mut() };
        let length = bytes.len();
        if let Some(mut header) = Ip4ViewMut::new(bytes)
            && (20..=length).contains(&header.view().header_length())
        {
            header.fill_checksum();
            return Verdict::Pass(packet);
        }
        self.reject(cx, packet)
    }
}
