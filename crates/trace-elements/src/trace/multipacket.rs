//! Packets that represent several.

use element::prelude::*;
use packet::{Ip4ViewMut, Packet, UdpViewMut, annotation, protocol};

/// Number of packets that a packet represents besides itself.
pub(super) fn extra_packets(packet: &Packet) -> u32 {
    packet.annotation_u32(annotation::EXTRA_PACKETS.offset.into())
}

fn set_extra_packets(packet: &mut Packet, count: u32) {
    packet.set_annotation_u32(annotation::EXTRA_PACKETS.offset.into(), count);
}

/// Splits a packet that represents several into packets of equal length and spacing in time.
pub(super) struct Multipacket {
    /// The rest of the packet.
    rest: Packet,
    /// The length of all packets but the last, in bytes.
    length: u32,
    delta: Timestamp,
    end: Timestamp,
}

impl Multipacket {
    /// Takes a packet that represents at least two.
    pub(super) fn new(mut packet: Packet) -> Multipacket {
        let more = extra_packets(&packet).max(1);
        let own = packet.len() as u32;
        let mut length = own.saturating_add(packet.extra_length()) / more.saturating_add(1);
        if length < own {
            length = own;
            packet.set_extra_length(length.saturating_mul(more));
        }
        let end = packet.timestamp();
        let mut delta = Timestamp::ZERO;
        if !packet.first_timestamp().is_zero() {
            delta = share(end - packet.first_timestamp(), more);
            let first = packet.first_timestamp();
            packet.set_timestamp(first);
        }
        set_ip_length(&mut packet, length);
        Multipacket { rest: packet, length, delta, end }
    }

    /// Returns the next packet, unless the pool is exhausted, and the rest.
    pub(super) fn next(mut self, cx: &mut Context) -> (Option<Packet>, Option<Multipacket>) {
        let Some(left) = extra_packets(&self.rest).checked_sub(1) else { return (Some(self.rest), None) };
        let mut packet = cx.begin(Fate::Copied, self.rest.duplicate());
        let own = self.rest.len() as u32;
        if let Some(packet) = &mut packet {
            set_extra_packets(packet, 0);
            packet.set_extra_length(self.length.saturating_sub(own));
        }
        let extra = self.rest.extra_length().saturating_sub(self.length);
        set_extra_packets(&mut self.rest, left);
        self.rest.set_extra_length(extra);
        let time = self.rest.timestamp() + self.delta;
        self.rest.set_timestamp(time);
        if left == 0 {
            // The last packet gets the remainder of the division.
            self.rest.set_timestamp(self.end);
            set_ip_length(&mut self.rest, own.saturating_add(extra));
        }
        (packet, Some(self))
    }
}

/// A fraction of a span of time, rounded to the nearest nanosecond.
pub(super) fn share(span: Timestamp, parts: u32) -> Timestamp {
    let parts = i64::from(parts.max(1));
    Timestamp::from_nanos(span.nanos().saturating_add(parts / 2 * span.nanos().signum()) / parts)
}

/// Sets the length in the IP header and in a UDP header.
fn set_ip_length(packet: &mut Packet, length: u32) {
    let length = length.min(0xffff) as u16;
    let Some(mut ip) = Ip4ViewMut::new(packet.network_mut()) else { return };
    let view = ip.view();
    let (header, is_udp) = (view.header_length(), view.protocol() == protocol::UDP);
    if view.total_length() == length {
        return;
    }
    ip.set_total_length(length);
    if let Some(mut udp) = UdpViewMut::new(packet.transport_mut()).filter(|_| is_udp) {
        udp.set_length(length.saturating_sub(header as u16));
    }
}
