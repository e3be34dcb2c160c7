//! `SetTCPChecksum`: computes the checksum of TCP segments.

use element::prelude::*;
use packet::{Ip4View, TcpViewMut};

/// Computes the TCP checksum and writes it.
///
/// The marked IPv4 header gives the length of the segment. A packet that is too short for it is dropped as `bad_length`
/// and logged.
/// ```click
/// InfiniteSource(DATA \<0001000200000001000000025010ffff00000000>, LIMIT 2, STOP true)
///     -> IPEncap(tcp, 10.0.0.1, 10.0.0.2) -> SetTCPChecksum -> c :: CheckTCPHeader -> Discard;
/// ```
/// ```expect
/// c.drops = 0
/// ```
#[derive(Args)]
#[element(
    name = "SetTCPChecksum",
    group = "transport",
    order_insensitive,
    shards = "independent",
    logs,
    see = "CheckTCPHeader, SetIPChecksum, CheckIPHeader, SetUDPChecksum",
    drops = "bad_length",
    fates = "changed"
)]
pub struct SetTCPChecksumArgs {
    /// Correct impossible header lengths: to 20 bytes if too small, to the segment length if too large.
    #[arg(position, default = "false")]
    fixoff: bool,
}

pub struct SetTCPChecksum {
    args: SetTCPChecksumArgs,
}

impl Filter for SetTCPChecksum {
    type Args = SetTCPChecksumArgs;

    fn new(args: SetTCPChecksumArgs, _: &mut Setup) -> Result<SetTCPChecksum, SetupError> {
        Ok(SetTCPChecksum { args })
    }

    #[inline]
    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        let Some(header) = Ip4View::new(packet.network()) else {
            return reject(cx, packet);
        };
        let length = header.total_length().saturating_sub(header.header_length() as u16);
        let (pseudo, is_fragment) = (header.pseudo_header(length), header.is_fragment());
        let Some(mut tcp) = packet.transport_mut().get_mut(..length.into()).and_then(TcpViewMut::new) else {
            return reject(cx, packet);
        };
        if self.args.fixoff {
            let header_length = tcp.view().header_length();
            if header_length < 20 {
                tcp.set_header_length(20);
            } else if header_length > length.into() && !is_fragment {
                tcp.set_header_length(length.into());
            }
        }
        tcp.fill_checksum(pseudo);
        Verdict::Pass(packet)
    }
}

#[cold]
fn reject(cx: &Context, packet: Packet) -> Verdict {
    cx.log("SetTCPChecksum: bad lengths");
    Verdict::Drop(packet, Reason::BAD_LENGTH)
}
