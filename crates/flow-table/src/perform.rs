//! Performs operations on frames.
//!
//! Checksums are updated with the fields that they cover (RFC 1624). Wrong ones stay wrong, so that no damage is hidden.

use packet::checksum::{Delta, correct_zero};
use packet::protocol;

use crate::action::{Action, Operation, Output};
use crate::crc32c::crc32c;
use crate::extract::PBB_HEADER;
use crate::field::Field;
use crate::locate::{Ip, Located, Payload, locate};

/// Room in front of a frame, for the headers that actions push. More headers cost a copy of the frame.
const HEADROOM: usize = 64;

/// Options of a neighbour message that are searched, as in the extraction of keys.
const MAX_ND_OPTIONS: usize = 8;

/// A frame that actions change.
#[derive(Clone, Debug, Default)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    start: usize,
}

impl FrameBuffer {
    /// Replaces the frame. The memory is reused.
    pub fn set(&mut self, frame: &[u8]) {
        self.bytes.clear();
        self.bytes.resize(HEADROOM, 0);
        self.bytes.extend_from_slice(frame);
        self.start = HEADROOM;
    }

    /// The frame.
    #[must_use]
    pub fn frame(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    fn frame_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start..).unwrap_or_default()
    }

    /// Inserts at most [`HEADROOM`] bytes at an offset within the frame.
    fn insert(&mut self, at: usize, header: &[u8]) {
        if self.start < header.len() {
            self.bytes.splice(0..0, [0; HEADROOM]);
            self.start += HEADROOM;
        }
        let from = self.start;
        self.start -= header.len();
        self.bytes.copy_within(from..from + at, self.start);
        if let Some(place) = self.frame_mut().get_mut(at..at + header.len()) {
            place.copy_from_slice(header);
        }
    }

    /// Removes bytes at an offset, all within the frame.
    fn remove(&mut self, at: usize, count: usize) {
        let from = self.start;
        self.bytes.copy_within(from..from + at, from + count);
        self.start += count;
    }
}

/// What outputs know of a packet that is not in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct OutputState {
    /// The tunnel number, as received or set.
    pub tunnel: u64,
    /// The queue that an action set.
    pub queue: Option<u32>,
}

/// What operations do beyond the frame.
pub trait Effects {
    /// Counts a frame in a meter.
    fn meter(&mut self, meter: u32, frame: &[u8]) -> MeterVerdict;
    /// Sends a frame.
    fn output(&mut self, output: Output, frame: &[u8], state: OutputState);
    /// Processes a frame by a group, at once: its outputs come before those of later actions. Its changes do not concern these.
    fn group(&mut self, group: u32, frame: &[u8], state: OutputState);
}

/// What a meter decides about a packet (OpenFlow 1.3.5, 5.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterVerdict {
    /// The packet passes.
    Pass,
    /// The drop precedence of its DSCP is raised by this number (RFC 2597: AF classes; others stay).
    Remark(u8),
    /// The packet is dropped.
    Drop,
}

/// How the operations ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Performed {
    /// All were performed.
    All,
    /// A meter dropped the packet.
    Metered,
    /// A time to live was to be decremented and is zero or one. The remaining operations were not performed, and the
    /// controller may be told (`OFPR_INVALID_TTL`).
    InvalidTtl,
}

/// Performs operations on a frame, in order (OpenFlow 1.3.5, 5.11 and 5.12).
///
/// An action on a header that the frame lacks, because it is cut off, does nothing.
pub fn perform(
    operations: &[Operation],
    buffer: &mut FrameBuffer,
    state: &mut OutputState,
    effects: &mut impl Effects,
) -> Performed {
    for operation in operations {
        let action = match operation {
            Operation::Meter(meter) => match effects.meter(*meter, buffer.frame()) {
                MeterVerdict::Pass => continue,
                MeterVerdict::Remark(levels) => {
                    remark(buffer.frame_mut(), levels);
                    continue;
                }
                MeterVerdict::Drop => return Performed::Metered,
            },
            Operation::Action(action) => *action,
        };
        match action {
            Action::Output(output) => effects.output(output, buffer.frame(), *state),
            Action::Group(group) => effects.group(group, buffer.frame(), *state),
            Action::SetQueue(queue) => state.queue = Some(queue),
            Action::SetField(Field::TunnelId, value) | Action::SetIfPresent(Field::TunnelId, value) => {
                state.tunnel = value as u64;
            }
            Action::TagVlanVid(vid) => set_tag(buffer, Field::VlanVid, vid.into()),
            Action::TagVlanPcp(pcp) => set_tag(buffer, Field::VlanPcp, pcp.into()),
            Action::SetField(field, value) | Action::SetIfPresent(field, value) => {
                set_field(buffer.frame_mut(), field, value)
            }
            Action::PushVlan(eth_type) => push_vlan(buffer, eth_type),
            Action::PopVlan | Action::StripVlan => {
                if locate(buffer.frame()).is_some_and(|found| found.has_vlan) {
                    buffer.remove(12, 4);
                }
            }
            Action::PushMpls(eth_type) => push_mpls(buffer, eth_type),
            Action::PopMpls(eth_type) => pop_mpls(buffer, eth_type),
            Action::PushPbb(eth_type) => push_pbb(buffer, eth_type),
            Action::PopPbb => pop_pbb(buffer),
            Action::SetMplsTtl(_)
            | Action::DecMplsTtl
            | Action::SetIpTtl(_)
            | Action::DecIpTtl
            | Action::CopyTtlOut
            | Action::CopyTtlIn => {
                if !change_ttl(buffer.frame_mut(), action) {
                    return Performed::InvalidTtl;
                }
            }
        }
    }
    Performed::All
}

/// Raises the drop precedence of an assured forwarding class (RFC 2597), at most to 3.
fn remark(frame: &mut [u8], levels: u8) {
    let Some(Located { network, payload: Payload::Ip(ip), .. }) = locate(frame) else { return };
    let byte = |at: usize| frame.get(at).copied().unwrap_or(0);
    let class = match ip.is_ip4 {
        true => byte(network + 1),
        false => byte(network) << 4 | byte(network + 1) >> 4,
    };
    let (class, precedence, is_odd) = (class >> 5, class >> 3 & 3, class >> 2 & 1 == 1);
    if (1..=4).contains(&class) && precedence > 0 && !is_odd {
        let raised = (precedence + levels.min(3)).min(3);
        set_ip_field(frame, network, ip, Field::IpDscp, u128::from(class << 3 | raised << 1));
    }
}

/// Sets a field of the outer VLAN tag, which is pushed if there is none.
fn set_tag(buffer: &mut FrameBuffer, field: Field, value: u128) {
    if locate(buffer.frame()).is_some_and(|found| !found.has_vlan) {
        push_vlan(buffer, 0x8100);
    }
    set_field(buffer.frame_mut(), field, value);
}

fn push_vlan(buffer: &mut FrameBuffer, eth_type: u16) {
    let Some(found) = locate(buffer.frame()) else { return };
    let outer = buffer.frame().get(14..16).filter(|_| found.has_vlan).and_then(|tci| tci.first_chunk::<2>());
    let [high, low] = outer.copied().unwrap_or_default();
    // The bit for drop eligibility is not copied: only number and priority are.
    let [first, second] = eth_type.to_be_bytes();
    buffer.insert(12, &[first, second, high & 0xef, low]);
}

fn push_mpls(buffer: &mut FrameBuffer, eth_type: u16) {
    let Some(found) = locate(buffer.frame()) else { return };
    let frame = buffer.frame();
    let shim = match found.payload {
        Payload::Mpls => {
            let outer = frame.get(found.network..).and_then(|rest| rest.first_chunk::<4>());
            u32::from_be_bytes(outer.copied().unwrap_or_default()) & !0x100
        }
        Payload::Ip(ip) => 0x100 | frame.get(found.network + ip.ttl()).copied().map_or(0, u32::from),
        _ => 0x100,
    };
    set_eth_type(buffer, &found, eth_type);
    buffer.insert(found.network, &shim.to_be_bytes());
}

fn pop_mpls(buffer: &mut FrameBuffer, eth_type: u16) {
    let Some(found) = locate(buffer.frame()) else { return };
    if matches!(found.payload, Payload::Mpls) {
        set_eth_type(buffer, &found, eth_type);
        buffer.remove(found.network, 4);
    }
}

/// Puts a header of provider backbone bridging in front, with the addresses of the frame, the number of the service of an
/// outer one, and the priority of a VLAN tag (OpenFlow 1.3.5, 5.12.1).
fn push_pbb(buffer: &mut FrameBuffer, eth_type: u16) {
    let Some(found) = locate(buffer.frame()) else { return };
    let byte = |at: usize| buffer.frame().get(at).copied().unwrap_or(0);
    let mut header = [0; PBB_HEADER];
    for (at, place) in header.iter_mut().enumerate().take(12) {
        *place = byte(at);
    }
    header[12..14].copy_from_slice(&eth_type.to_be_bytes());
    header[14] = if found.has_vlan { byte(14) & 0xe0 } else { 0 };
    if matches!(found.payload, Payload::Pbb) {
        for at in 1..4 {
            header[14 + at] = byte(found.network + at);
        }
    }
    buffer.insert(0, &header);
}

fn pop_pbb(buffer: &mut FrameBuffer) {
    let Some(found) = locate(buffer.frame()) else { return };
    if matches!(found.payload, Payload::Pbb) {
        buffer.remove(0, found.network + 4);
    }
}

fn set_eth_type(buffer: &mut FrameBuffer, found: &Located, eth_type: u16) {
    patch(buffer.frame_mut(), found.type_at, &eth_type.to_be_bytes(), []);
}

impl Ip {
    /// Where the time to live stands in the header.
    fn ttl(&self) -> usize {
        if self.is_ip4 { 8 } else { 7 }
    }

    /// The checksum of the header itself.
    fn header_checksum(&self, network: usize) -> Option<(usize, bool)> {
        self.is_ip4.then_some((network + 10, false))
    }
}

/// Performs an action on times to live; false if one is to be decremented that is zero or one.
fn change_ttl(frame: &mut [u8], action: Action) -> bool {
    let Some(found) = locate(frame) else { return true };
    let byte = |at: usize| frame.get(at).copied();
    let outer = match found.payload {
        Payload::Ip(ip) => Some((found.network + ip.ttl(), ip.header_checksum(found.network))),
        Payload::Mpls => Some((found.network + 3, None)),
        _ => None,
    };
    let Some((outer, checksum)) = outer else { return true };
    let Some(ttl) = byte(outer) else { return true };
    let is_mpls = matches!(found.payload, Payload::Mpls);
    // The header inside an MPLS header: another one, or IP by its version.
    let inner = || {
        let at = found.network + 4;
        if byte(found.network + 2)? & 1 == 0 {
            return Some((at + 3, None));
        }
        match byte(at)? >> 4 {
            4 => Some((at + 8, Some((at + 10, false)))),
            6 => Some((at + 7, None)),
            _ => None,
        }
    };
    match action {
        Action::SetMplsTtl(value) if is_mpls => patch(frame, outer, &[value], [checksum]),
        Action::SetIpTtl(value) if !is_mpls => patch(frame, outer, &[value], [checksum]),
        Action::DecMplsTtl | Action::DecIpTtl if (action == Action::DecMplsTtl) == is_mpls => {
            if ttl <= 1 {
                return false;
            }
            patch(frame, outer, &[ttl - 1], [checksum]);
        }
        Action::CopyTtlOut if is_mpls => {
            if let Some(ttl) = inner().and_then(|(at, _)| byte(at)) {
                patch(frame, outer, &[ttl], [checksum]);
            }
        }
        Action::CopyTtlIn if is_mpls => {
            if let Some((at, checksum)) = inner() {
                patch(frame, at, &[ttl], [checksum]);
            }
        }
        _ => {}
    }
    true
}

/// Sets a header field, if the frame has it.
fn set_field(frame: &mut [u8], field: Field, value: u128) {
    let Some(found) = locate(frame) else { return };
    let (at, bytes) = (found.network, value.to_be_bytes());
    let last = |count: usize| bytes.get(16 - count..).unwrap_or_default();
    let byte = |at: usize| frame.get(at).copied().unwrap_or(0);
    match field {
        Field::EthDst => patch(frame, 0, last(6), []),
        Field::EthSrc => patch(frame, 6, last(6), []),
        Field::VlanVid if found.has_vlan => {
            let kept = byte(14) & 0xf0;
            patch(frame, 14, &[kept | bytes[14] & 0x0f, bytes[15]], []);
        }
        Field::VlanPcp if found.has_vlan => {
            let kept = byte(14) & 0x1f;
            patch(frame, 14, &[kept | bytes[15] << 5], []);
        }
        Field::EthType => patch(frame, found.type_at, last(2), []),
        _ => match found.payload {
            Payload::Ip(ip) => set_ip_field(frame, at, ip, field, value),
            Payload::Mpls => {
                let shim = u32::from_be_bytes([byte(at), byte(at + 1), byte(at + 2), byte(at + 3)]);
                let shim = match field {
                    Field::MplsLabel => shim & 0xfff | (value as u32) << 12,
                    Field::MplsTc => shim & !0xe00 | (value as u32 & 7) << 9,
                    Field::MplsBos => shim & !0x100 | (value as u32 & 1) << 8,
                    _ => return,
                };
                patch(frame, at, &shim.to_be_bytes(), []);
            }
            Payload::Pbb if field == Field::PbbIsid => patch(frame, at + 1, last(3), []),
            Payload::Pbb => {}
            Payload::Arp => match field {
                Field::ArpOp => patch(frame, at + 6, last(2), []),
                Field::ArpSha => patch(frame, at + 8, last(6), []),
                Field::ArpSpa => patch(frame, at + 14, last(4), []),
                Field::ArpTha => patch(frame, at + 18, last(6), []),
                Field::ArpTpa => patch(frame, at + 24, last(4), []),
                _ => {}
            },
            Payload::Other => {}
        },
    }
}

fn set_ip_field(frame: &mut [u8], at: usize, ip: Ip, field: Field, value: u128) {
    let bytes = value.to_be_bytes();
    let last = |count: usize| bytes.get(16 - count..).unwrap_or_default();
    let byte = |at: usize| frame.get(at).copied().unwrap_or(0);
    let header = ip.header_checksum(at);
    let covered = ip.checksum().filter(|_| ip.has_pseudo_header());
    let transport = || ip.transport.filter(|(start, end)| start + 4 <= *end).map(|(start, _)| start);
    let is = |number: u8| ip.protocol == number;
    match field {
        Field::IpDscp | Field::IpEcn => {
            let class = if ip.is_ip4 { byte(at + 1) } else { byte(at) << 4 | byte(at + 1) >> 4 };
            let class = match field {
                Field::IpDscp => class & 3 | (value as u8) << 2,
                _ => class & !3 | value as u8 & 3,
            };
            match ip.is_ip4 {
                true => patch(frame, at + 1, &[class], [header]),
                false => {
                    let new = [0x60 | class >> 4, class << 4 | byte(at + 1) & 0x0f];
                    patch(frame, at, &new, []);
                }
            }
        }
        Field::IpProto => {
            patch(frame, ip.protocol_at, last(1), [header]);
            // The pseudo header has the protocol in the lower byte of a word, and an IPv6 header in the upper one.
            update(frame, Delta::NONE.word(ip.protocol.into(), bytes[15].into()), covered);
        }
        Field::Ipv4Src if ip.is_ip4 => patch(frame, at + 12, last(4), [header, covered]),
        Field::Ipv4Dst if ip.is_ip4 => patch(frame, at + 16, last(4), [header, covered]),
        Field::Ipv6Src if !ip.is_ip4 => patch(frame, at + 8, last(16), [covered]),
        Field::Ipv6Dst if !ip.is_ip4 => {
            patch(frame, at + 24, last(16), [covered.filter(|_| !ip.is_routed)]);
        }
        Field::Ipv6Flabel if !ip.is_ip4 => {
            let new = [byte(at + 1) & 0xf0 | bytes[13] & 0x0f, bytes[14], bytes[15]];
            patch(frame, at + 1, &new, []);
        }
        Field::TcpSrc | Field::TcpDst | Field::UdpSrc | Field::UdpDst => {
            let (number, offset) = match field {
                Field::TcpSrc => (protocol::TCP, 0),
                Field::TcpDst => (protocol::TCP, 2),
                Field::UdpSrc => (protocol::UDP, 0),
                _ => (protocol::UDP, 2),
            };
            if let Some(start) = transport().filter(|_| is(number)) {
                patch(frame, start + offset, last(2), [ip.checksum()]);
            }
        }
        Field::SctpSrc | Field::SctpDst if is(protocol::SCTP) => {
            let offset = if field == Field::SctpSrc { 0 } else { 2 };
            if let (Some(start), Some((_, end))) = (transport(), ip.transport) {
                set_sctp_port(frame, start, end, start + offset, last(2), ip.is_fragment);
            }
        }
        Field::Icmpv4Type | Field::Icmpv4Code if ip.is_ip4 && is(protocol::ICMP) => {
            set_icmp(frame, ip, field == Field::Icmpv4Code, bytes[15]);
        }
        Field::Icmpv6Type | Field::Icmpv6Code if !ip.is_ip4 && is(protocol::ICMP6) => {
            set_icmp(frame, ip, field == Field::Icmpv6Code, bytes[15]);
        }
        Field::NdTarget | Field::NdSll | Field::NdTll if !ip.is_ip4 && is(protocol::ICMP6) => {
            let Some((start, end)) = ip.transport else { return };
            let place = frame.get(start..end).and_then(|message| neighbour_field(message, field));
            let length = if field == Field::NdTarget { 16 } else { 6 };
            if let Some(offset) = place {
                patch(frame, start + offset, last(length), [ip.checksum()]);
            }
        }
        _ => {}
    }
}

fn set_icmp(frame: &mut [u8], ip: Ip, is_code: bool, value: u8) {
    let Some((start, end)) = ip.transport.filter(|(start, end)| start + 2 <= *end) else { return };
    patch(frame, start + usize::from(is_code), &[value], [ip.checksum()]);
    // Unlike others, this checksum can cover nothing but zeros.
    if let (true, Some((place, _))) = (ip.is_ip4, ip.checksum())
        && let Some(message) = frame.get(start..end)
        && let Some(sum) = frame.get(place..).and_then(|rest| rest.first_chunk::<2>())
    {
        let sum = correct_zero(u16::from_be_bytes(*sum), message);
        patch(frame, place, &sum.to_be_bytes(), []);
    }
}

/// Where a field of a neighbour message stands (RFC 4861, 4.3 and 4.4).
fn neighbour_field(message: &[u8], field: Field) -> Option<usize> {
    let (header, _) = message.split_first_chunk::<24>()?;
    let wanted = match (header[0], field) {
        (135 | 136, Field::NdTarget) => return Some(8),
        (135, Field::NdSll) => 1,
        (136, Field::NdTll) => 2,
        _ => return None,
    };
    let mut at = 24;
    for _ in 0..MAX_ND_OPTIONS {
        let option = message.get(at..)?.first_chunk::<8>()?;
        if option[0] == wanted {
            return Some(at + 2);
        }
        at += usize::from(option[1]).max(1) * 8;
        if option[1] == 0 {
            return None;
        }
    }
    None
}

/// Sets a port of SCTP. Its checksum covers the whole packet, so the ports of a fragment can't be set.
fn set_sctp_port(frame: &mut [u8], start: usize, end: usize, at: usize, port: &[u8], is_fragment: bool) {
    if is_fragment || start + 12 > end {
        return;
    }
    let checksum = |frame: &mut [u8]| {
        let packet = frame.get_mut(start..end)?;
        let kept: [u8; 4] = *packet.get(8..)?.first_chunk()?;
        packet.get_mut(8..12)?.fill(0);
        let computed = crc32c(packet).to_le_bytes();
        packet.get_mut(8..12)?.copy_from_slice(&kept);
        Some((kept, computed))
    };
    let was_right = checksum(frame).is_some_and(|(kept, computed)| kept == computed);
    patch(frame, at, port, []);
    if let Some((_, computed)) = checksum(frame).filter(|_| was_right) {
        patch(frame, start + 8, &computed, []);
    }
}

/// Replaces bytes, and updates the checksums that cover them. A checksum is a place, and whether zero means none.
fn patch<const N: usize>(frame: &mut [u8], at: usize, new: &[u8], checksums: [Option<(usize, bool)>; N]) {
    let first = at & !1;
    let last = (at + new.len() + 1) & !1;
    let word = |frame: &[u8], at: usize| {
        let byte = |at: usize| frame.get(at).copied().unwrap_or(0);
        u16::from_be_bytes([byte(at), byte(at + 1)])
    };
    let mut delta = Delta::NONE;
    if frame.get(at..at + new.len()).is_none() {
        return;
    }
    for place in (first..last).step_by(2) {
        let old = word(frame, place);
        for (offset, byte) in (at..).zip(new).filter(|(offset, _)| offset & !1 == place) {
            if let Some(target) = frame.get_mut(offset) {
                *target = *byte;
            }
        }
        delta = delta.word(old, word(frame, place));
    }
    checksums.into_iter().for_each(|checksum| update(frame, delta, checksum));
}

/// Changes a checksum by what changed of the bytes that it covers.
fn update(frame: &mut [u8], delta: Delta, checksum: Option<(usize, bool)>) {
    let Some((place, is_optional)) = checksum else { return };
    let Some(target) = frame.get_mut(place..).and_then(|rest| rest.first_chunk_mut::<2>()) else { return };
    let old = u16::from_be_bytes(*target);
    if is_optional && old == 0 {
        return;
    }
    let sum = match delta.normalised().apply(old) {
        0 if is_optional => 0xffff,
        sum => sum,
    };
    *target = sum.to_be_bytes();
}
