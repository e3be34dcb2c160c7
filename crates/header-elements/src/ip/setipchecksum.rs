//! `SetIPChecksum`: computes the checksum of IPv4 headers.

use element::OtherName;
use element::prelude::*;
use packet::{Ip4ViewMut, protocol};

/// The element of FastClick that leaves the checksum to the network card.
static NAMES: [OtherName; 1] = [OtherName { name: "ResetIPChecksum", positions: &["L4"], ..OtherName::NONE }];

/// Computes the IPv4 header checksum and writes it.
///
/// The header is the marked one, or, without a mark, at the start of the packet. Elements that change headers keep the
/// checksum correct by themselves. A packet that is not IPv4, or shorter than its header, is dropped as
/// `bad_header_length`. The first is logged. With L4, the checksum of a TCP segment or UDP datagram is computed too, unless it
/// is a fragment or cut.
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
/// ## Differences
/// L4 does not exist in Click. The class ResetIPChecksum of FastClick is this class; there, the network card computes the
/// checksums.
#[derive(Args)]
#[element(
    name = "SetIPChecksum",
    other_names = "NAMES",
    group = "ip",
    order_insensitive,
    shards = "sum",
    sums = "drops",
    logs,
    see = "CheckIPHeader, DecIPTTL, SetIPDSCP, IPRewriter",
    drops = "bad_header_length",
    fates = "changed"
)]
pub struct SetIPChecksumArgs {
    /// Compute the checksum of TCP or UDP too.
    #[arg(default = "false")]
    l4: bool,
}

pub struct SetIPChecksum {
    l4: bool,
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

    fn new(args: SetIPChecksumArgs, _: &mut Setup) -> Result<SetIPChecksum, SetupError> {
        Ok(SetIPChecksum { l4: args.l4, drops: 0 })
    }

    #[inline]
    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        let bytes = if packet.has_network() { packet.network_mut() } else { packet.data_mut() };
        let length = bytes.len();
        if let Some(mut header) = Ip4ViewMut::new(bytes)
            && (20..=length).contains(&header.view().header_length())
        {
            header.fill_checksum();
            if self.l4 {
                fill_transport(bytes);
            }
            return Verdict::Pass(packet);
        }
        self.reject(cx, packet)
    }
}

/// Computes the checksum of the segment or datagram behind an IPv4 header.
#[cold]
fn fill_transport(bytes: &mut [u8]) {
    let Some(header) = Ip4ViewMut::new(bytes) else { return };
    let header = header.view();
    let (start, end) = (header.header_length(), usize::from(header.total_length()));
    let (kind, is_fragment) = (header.protocol(), header.is_fragment());
    let pseudo = header.pseudo_header(end.saturating_sub(start) as u16);
    let Some(transport) = bytes.get_mut(start..end).filter(|_| !is_fragment) else { return };
    let place = match kind {
        protocol::TCP => 16,
        protocol::UDP => 6,
        _ => return,
    };
    let Some(_) = transport.get_mut(place..place + 2).map(|field| field.fill(0)) else { return };
    let checksum = match pseudo.bytes(transport).finish() {
        // 0 says that a datagram has no checksum.
        0 if kind == protocol::UDP => 0xffff,
        checksum => checksum,
    };
    if let Some(field) = transport.get_mut(place..place + 2) {
        field.copy_from_slice(&checksum.to_be_bytes());
    }
}
