//! The annotations of a packet.

use core::net::{Ipv4Addr, Ipv6Addr};

use super::Packet;
use crate::Timestamp;
use crate::annotation::{self, Field};
use crate::packet_type::PacketType;
use crate::slot::{ANNOTATED, NEAR_ANNOTATIONS};
impl Packet {
    /// Time of capture or creation; zero if not set.
    #[inline]
    pub fn timestamp(&self) -> Timestamp {
        self.slot().timestamp
    }

    /// Sets the time.
    #[inline]
    pub fn set_timestamp(&mut self, timestamp: Timestamp) {
        self.slot_mut().timestamp = timestamp;
    }

    /// How the frame was addressed.
    #[inline]
    pub fn packet_type(&self) -> PacketType {
        PacketType::from_number(self.slot().kind & !ANNOTATED)
    }

    /// Sets how the frame was addressed.
    #[inline]
    pub fn set_packet_type(&mut self, kind: PacketType) {
        let slot = self.slot_mut();
        slot.kind = slot.kind & ANNOTATED | kind as u8;
    }

    /// The device that received the packet: a number assigned by the environment, zero for none.
    #[inline]
    pub fn device(&self) -> u16 {
        self.slot().device
    }

    /// Sets the device.
    #[inline]
    pub fn set_device(&mut self, device: u16) {
        self.slot_mut().device = device;
    }

    /// All annotation bytes.
    #[inline]
    pub fn annotations(&self) -> &[u8; annotation::SIZE] {
        &self.slot().annotations
    }

    /// All annotation bytes, mutable.
    #[inline]
    pub fn annotations_mut(&mut self) -> &mut [u8; annotation::SIZE] {
        let slot = self.slot_mut();
        slot.kind |= ANNOTATED;
        &mut slot.annotations
    }

    #[inline]
    fn annotation<const N: usize>(&self, offset: usize) -> [u8; N] {
        self.slot().annotations.get(offset..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
    }

    #[inline]
    fn set_annotation<const N: usize>(&mut self, offset: usize, value: [u8; N]) {
        let slot = self.slot_mut();
        if let Some(field) = slot.annotations.get_mut(offset..).and_then(|rest| rest.first_chunk_mut()) {
            *field = value;
            if offset + N > NEAR_ANNOTATIONS {
                slot.kind |= ANNOTATED;
            }
        }
    }

    /// The annotation byte at `offset`; zero if out of range.
    #[inline]
    pub fn annotation_u8(&self, offset: usize) -> u8 {
        self.annotation::<1>(offset)[0]
    }

    /// Sets the annotation byte at `offset`; does nothing if out of range.
    #[inline]
    pub fn set_annotation_u8(&mut self, offset: usize, value: u8) {
        self.set_annotation(offset, [value]);
    }

    /// The 16-bit annotation at `offset`, host byte order.
    #[inline]
    pub fn annotation_u16(&self, offset: usize) -> u16 {
        u16::from_ne_bytes(self.annotation(offset))
    }

    /// Sets the 16-bit annotation at `offset`, host byte order.
    #[inline]
    pub fn set_annotation_u16(&mut self, offset: usize, value: u16) {
        self.set_annotation(offset, value.to_ne_bytes());
    }

    /// The 32-bit annotation at `offset`, host byte order.
    #[inline]
    pub fn annotation_u32(&self, offset: usize) -> u32 {
        u32::from_ne_bytes(self.annotation(offset))
    }

    /// Sets the 32-bit annotation at `offset`, host byte order.
    #[inline]
    pub fn set_annotation_u32(&mut self, offset: usize, value: u32) {
        self.set_annotation(offset, value.to_ne_bytes());
    }

    /// The bytes of `field`.
    pub fn annotation_bytes(&self, field: Field) -> &[u8] {
        let from = usize::from(field.offset);
        self.slot().annotations.get(from..from + usize::from(field.size)).unwrap_or(&[])
    }

    /// The paint (colour) annotation.
    #[inline]
    pub fn paint(&self) -> u8 {
        self.annotation_u8(annotation::PAINT.offset.into())
    }

    /// Sets the paint (colour) annotation.
    #[inline]
    pub fn set_paint(&mut self, paint: u8) {
        self.set_annotation_u8(annotation::PAINT.offset.into(), paint);
    }

    /// The next hop's IPv4 address; `0.0.0.0` if not set.
    #[inline]
    pub fn destination_ip(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.annotation::<4>(annotation::DST_IP.offset.into()))
    }

    /// Sets the next hop's IPv4 address.
    #[inline]
    pub fn set_destination_ip(&mut self, address: Ipv4Addr) {
        self.set_annotation(annotation::DST_IP.offset.into(), address.octets());
    }

    /// The annotation `DST_IP6`: the next hop's IPv6 address.
    #[inline]
    pub fn destination_ip6(&self) -> Ipv6Addr {
        Ipv6Addr::from(self.annotation::<16>(annotation::DST_IP6.offset.into()))
    }

    /// Sets the annotation `DST_IP6`.
    #[inline]
    pub fn set_destination_ip6(&mut self, address: Ipv6Addr) {
        self.set_annotation(annotation::DST_IP6.offset.into(), address.octets());
    }

    /// The aggregate number.
    #[inline]
    pub fn aggregate(&self) -> u32 {
        self.annotation_u32(annotation::AGGREGATE.offset.into())
    }

    /// Sets the aggregate number.
    #[inline]
    pub fn set_aggregate(&mut self, aggregate: u32) {
        self.set_annotation_u32(annotation::AGGREGATE.offset.into(), aggregate);
    }

    /// Number of bytes that the packet represents, in addition to its own.
    #[inline]
    pub fn extra_length(&self) -> u32 {
        self.annotation_u32(annotation::EXTRA_LENGTH.offset.into())
    }

    /// Sets the number of bytes that the packet represents, in addition to its own.
    #[inline]
    pub fn set_extra_length(&mut self, length: u32) {
        self.set_annotation_u32(annotation::EXTRA_LENGTH.offset.into(), length);
    }

    /// The time of the first packet that this one represents; zero if not set.
    #[inline]
    pub fn first_timestamp(&self) -> Timestamp {
        let nanos = self.annotation(annotation::FIRST_TIMESTAMP.offset.into());
        Timestamp::from_nanos(i64::from_ne_bytes(nanos))
    }

    /// Sets the time of the first packet that this one represents.
    #[inline]
    pub fn set_first_timestamp(&mut self, time: Timestamp) {
        self.set_annotation(annotation::FIRST_TIMESTAMP.offset.into(), time.nanos().to_ne_bytes());
    }
}
