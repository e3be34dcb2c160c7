//! `IPFragmenter`: fragments IPv4 packets.

use element::prelude::*;
use packet::view::ip4::{DONT_FRAGMENT, MORE_FRAGMENTS, OPTION_END, OPTION_NOP};
use packet::{HEADROOM, Ip4View, Ip4ViewMut};

/// Fragments IPv4 packets longer than MTU, and sends the fragments in order.
///
/// The length counts from the marked IPv4 header. Only the first fragment keeps data before that header. Later
/// fragments carry the options that RFC 791 copies, and all annotations. A packet that must not be fragmented, or whose
/// header leaves no room for data, goes unchanged to output 1, usually `ICMPError(..., unreachable, needfrag)`, or is
/// dropped as `dont_fragment`. The first five are logged.
/// ```click
/// InfiniteSource(LENGTH 100, LIMIT 2, STOP true)
///     -> UDPIPEncap(10.0.0.1, 1000, 10.0.0.2, 2000)
///     -> f :: IPFragmenter(60) -> CheckIPHeader -> c :: Counter -> Discard;
/// ```
/// ```expect
/// f.fragments = 6
/// f.drops = 0
/// c.count = 6
/// c.byte_count = 336
/// ```
#[derive(Args)]
#[element(
    name = "IPFragmenter",
    group = "ip",
    ports = "1/1-2",
    processing = "h/h",
    order_insensitive,
    shards = "sum",
    sums = "drops, fragments",
    logs,
    see = "ICMPError, CheckLength",
    drops = "bad_header_length, no_ip_header, dont_fragment",
    keeps_place,
    fates = "made, copied, consumed"
)]
pub struct IPFragmenterArgs {
    /// Maximum packet length in bytes; at least 8.
    #[arg(position)]
    mtu: u32,
    /// Honour the don't-fragment flag. Otherwise such packets get a random identification and are fragmented.
    #[arg(position, default = "true")]
    honor_df: bool,
    /// Log every packet that is not fragmented.
    #[arg(position, default = "false")]
    verbose: bool,
    /// Headroom of fragments in bytes. By default the usual headroom.
    headroom: Option<u32>,
}

pub struct IPFragmenter {
    args: IPFragmenterArgs,
    fragments: u64,
    drops: u64,
}

/// Rejected packets logged without VERBOSE.
const MAX_LOGGED: u64 = 5;

/// The maximum length of an IPv4 header.
const MAX_HEADER_LENGTH: usize = 60;

impl IPFragmenter {
    #[cold]
    fn reject(&mut self, cx: &Context, packet: Packet) -> Verdict {
        if (self.args.verbose || self.drops < MAX_LOGGED)
            && let Some(header) = Ip4View::new(packet.network())
        {
            let (source, destination, length) = (header.source(), header.destination(), packet.len());
            cx.log(&format!("IPFragmenter({}) DF {source} {destination} len={length}", self.args.mtu));
        }
        self.drops += 1;
        Verdict::Divert(packet, Reason::DONT_FRAGMENT)
    }

    fn fragment(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        let Some(header) = Ip4View::new(packet.network()) else {
            return Verdict::Drop(packet, Reason::NO_IP_HEADER);
        };
        let (old_field, header_length) = (header.fragment(), header.header_length());
        let Some(header_end) =
            (header_length >= 20).then_some(header_length).filter(|end| *end <= packet.network().len())
        else {
            return Verdict::Drop(packet, Reason::BAD_HEADER_LENGTH);
        };
        let room = (self.args.mtu as usize).saturating_sub(header_end) & !7;
        if (self.args.honor_df && old_field & DONT_FRAGMENT != 0) || room < 8 {
            return self.reject(cx, packet);
        }
        let length = usize::from(header.total_length()).saturating_sub(header_end);
        let random =
            if old_field & DONT_FRAGMENT != 0 { Some((cx.random() as u16).swap_bytes()) } else { None };
        let field = (old_field & !DONT_FRAGMENT) | MORE_FRAGMENTS;
        if let Some(mut header) = Ip4ViewMut::new(packet.network_mut()) {
            if let Some(random) = random {
                header.set_identification(random);
            }
            header.set_fragment(field);
            header.set_total_length((header_end + room) as u16);
            header.fill_checksum();
        }
        let excess = packet.network().len().saturating_sub(header_end + room);
        if let Some(mut first) = cx.duplicate(&packet) {
            first.truncate_by(excess);
            self.fragments += 1;
            cx.send(0, first);
        }

        let mut template = [0; MAX_HEADER_LENGTH];
        let header_length = later_header(packet.network(), header_end, &mut template);
        let step = (self.args.mtu as usize - header_length) & !7;
        let mut at = room;
        while let Some(data) =
            packet.network().get(header_end + at..).filter(|data| !data.is_empty() && at < length)
        {
            let size = step.min(length - at).min(data.len());
            let is_last = at + size >= length && old_field & MORE_FRAGMENTS == 0;
            let field = field.wrapping_add((at / 8) as u16) & if is_last { !MORE_FRAGMENTS } else { 0xffff };
            if let Some(fragment) =
                self.later_fragment(cx, &packet, &template[..header_length], &data[..size], field)
            {
                self.fragments += 1;
                cx.send(0, fragment);
            }
            at += size;
        }
        cx.end(packet, Fate::Consumed);
        Verdict::Taken
    }

    /// Creates a fragment other than the first, from a header and data.
    fn later_fragment(
        &self,
        cx: &mut Context,
        whole: &Packet,
        header: &[u8],
        data: &[u8],
        field: u16,
    ) -> Option<Packet> {
        let headroom = self.args.headroom.map_or(HEADROOM, |headroom| headroom as usize);
        let length = header.len() + data.len();
        let mut fragment = cx.allocate(headroom, length)?;
        let (to_header, to_data) = fragment.data_mut().split_at_mut_checked(header.len())?;
        to_header.copy_from_slice(header);
        to_data.copy_from_slice(data);
        fragment.set_network(0, header.len());
        if let Some(mut header) = Ip4ViewMut::new(fragment.data_mut()) {
            header.set_fragment(field);
            header.set_total_length(length as u16);
            header.fill_checksum();
        }
        fragment.copy_annotations(whole);
        Some(fragment)
    }
}

/// Derives the header of later fragments from the original header. Returns its length.
fn later_header(whole: &[u8], header_end: usize, header: &mut [u8; MAX_HEADER_LENGTH]) -> usize {
    let mut length = 20;
    if let (Some(from), Some(to)) = (whole.get(..20), header.get_mut(..20)) {
        to.copy_from_slice(from);
    }
    let mut options = whole.get(20..header_end).unwrap_or(&[]);
    loop {
        match *options {
            [OPTION_NOP, ref rest @ ..] => options = rest,
            [kind, size, ..] if kind != OPTION_END && size >= 2 => {
                let Some((option, rest)) = options.split_at_checked(size.into()) else { break };
                // The top bit of the option kind says that every fragment gets a copy.
                if kind & 0x80 != 0
                    && let Some(target) = header.get_mut(length..length + option.len())
                {
                    target.copy_from_slice(option);
                    length += option.len();
                }
                options = rest;
            }
            _ => break,
        }
    }
    length = length.next_multiple_of(4);
    header[0] = 0x40 | (length / 4) as u8;
    length
}

impl Filter for IPFragmenter {
    type Args = IPFragmenterArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("drops", "Packets that could not be fragmented.", |element| element.drops.to_string()),
        Handler::read("fragments", "Fragments sent.", |element| element.fragments.to_string()),
    ];

    fn new(args: IPFragmenterArgs, _: &mut Setup) -> Result<IPFragmenter, SetupError> {
        if args.mtu < 8 {
            return Err(SetupError::new("MTU must be at least 8"));
        }
        Ok(IPFragmenter { args, fragments: 0, drops: 0 })
    }

    #[inline]
    fn filter(&mut self, cx: &mut Context, packet: Packet) -> Verdict {
        if packet.network().len() <= self.args.mtu as usize {
            return Verdict::Pass(packet);
        }
        self.fragment(cx, packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_later_fragments() {
        let check = |options: &[u8], expected: &[u8]| {
            let mut whole = vec![0x40; 20];
            whole.extend(options);
            let mut header = [0; MAX_HEADER_LENGTH];
            let length = later_header(&whole, whole.len(), &mut header);
            assert_eq!(header[20..length], *expected, "{options:?}");
            assert_eq!(usize::from(header[0] & 0xf) * 4, length);
        };
        check(&[], &[]);
        check(&[1, 148, 4, 0, 0, 7, 3, 4], &[148, 4, 0, 0]);
        check(&[131, 7, 4, 1, 2, 3, 4, 0], &[131, 7, 4, 1, 2, 3, 4, 0]);
        for broken in [&[148, 1, 0, 0][..], &[148, 9, 0, 0], &[1, 1, 1, 148], &[0, 148, 4, 0, 0, 0, 0, 0]] {
            check(broken, &[]);
        }
    }
}
