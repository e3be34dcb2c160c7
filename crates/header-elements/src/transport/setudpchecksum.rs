//! `SetUDPChecksum`: computes the checksum of UDP datagrams.

use element::prelude::*;
use packet::checksum::Sum;
use packet::{Ip4View, UdpViewMut};

/// Computes the UDP checksum and writes it.
///
/// The IPv4 header must be marked. Fragments, and packets shorter than the UDP length, go to output 1, or are dropped
/// as `is_fragment` or `bad_length`. The first is logged.
///
/// ## Differences
///
/// A checksum of zero is written as 0xffff (RFC 768), since zero means no checksum. A UDP length below 8 counts as too
/// short.
/// ```click
/// InfiniteSource(LENGTH 8, LIMIT 2, STOP true)
///     -> UDPIPEncap(10.0.0.1, 1000, 10.0.0.2, 2000, CHECKSUM false)
///     -> SetUDPChecksum -> StoreData(28, \<ffff>) -> c :: CheckUDPHeader -> Discard;
/// ```
/// ```expect
/// c.drops = 2
/// c.losses = bad_checksum 2
/// ```
#[derive(Args)]
#[element(
    name = "SetUDPChecksum",
    group = "transport",
    ports = "1/1-2",
    processing = "a/ah",
    order_insensitive,
    shards = "independent",
    logs,
    see = "CheckUDPHeader, SetIPChecksum, CheckIPHeader, SetTCPChecksum",
    drops = "bad_length, no_ip_header, is_fragment",
    fates = "changed"
)]
pub struct SetUDPChecksumArgs;

pub struct SetUDPChecksum {
    is_told: bool,
}

impl SetUDPChecksum {
    #[cold]
    fn reject(&mut self, cx: &Context, packet: Packet, reason: Reason) -> Verdict {
        if cx.outputs() < 2 && !self.is_told {
            self.is_told = true;
            cx.log(&format!("{} :: SetUDPChecksum: fragment or short packet", cx.name()));
        }
        Verdict::Divert(packet, reason)
    }
}

/// Sets the checksum of a packet whose UDP length is shorter than the header: the sum of that many bytes, as in Click.
#[cold]
fn fill_stub(bytes: &mut [u8], pseudo: Sum, length: usize) {
    if let Some(checksum) = bytes.get_mut(6..8) {
        checksum.fill(0);
    }
    let sum = pseudo.bytes(bytes.get(..length).unwrap_or_default()).finish().to_be_bytes();
    if let Some(checksum) = bytes.get_mut(6..8) {
        checksum.copy_from_slice(&sum);
    }
}

impl Filter for SetUDPChecksum {
    type Args = SetUDPChecksumArgs;

    fn new(_: SetUDPChecksumArgs, _: &mut Setup) -> Result<SetUDPChecksum, SetupError> {
        Ok(SetUDPChecksum { is_told: false })
    }

    #[inline]
    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        let Some(header) = Ip4View::new(packet.network()) else {
            return self.reject(cx, packet, Reason::NO_IP_HEADER);
        };
        if header.is_fragment() {
            return self.reject(cx, packet, Reason::IS_FRAGMENT);
        }
        // The pseudo header without its length, which is added below.
        let pseudo = header.pseudo_header(0);
        let bytes = packet.transport_mut();
        let most = bytes.len();
        if let Some(mut udp) = UdpViewMut::new(bytes)
            && usize::from(udp.view().length()) <= most
        {
            let length = udp.view().length();
            if length >= 8 {
                udp.fill_checksum(pseudo.word(length));
            } else {
                fill_stub(bytes, pseudo.word(length), length.into());
            }
            return Verdict::Pass(packet);
        }
        self.reject(cx, packet, Reason::BAD_LENGTH)
    }
}
