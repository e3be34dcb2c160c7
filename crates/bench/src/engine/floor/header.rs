//! The checks of an IPv4 header that a router makes (RFC 1812, section 5.2.2).

/// Bytes of an Ethernet header.
pub(super) const ETHERNET: usize = 14;

/// The IPv4 header of an Ethernet frame, if it is valid, with what follows it.
#[inline]
pub(super) fn ip_header(frame: &mut [u8]) -> Option<&mut [u8]> {
    let ip = frame.get_mut(ETHERNET..).filter(|ip| ip.len() >= 20)?;
    let length = usize::from(ip[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    let is_valid =
        ip[0] >> 4 == 4 && (20..=ip.len()).contains(&length) && (length..=ip.len()).contains(&total);
    (is_valid && is_sum_right(&ip[..length])).then_some(ip)
}

/// Whether the Internet checksum of a header is right.
#[inline]
fn is_sum_right(header: &[u8]) -> bool {
    let words = header.as_chunks::<4>().0;
    let sum: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
    let sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32 & 0xffff);
    (sum & 0xffff) + (sum >> 16) == 0xffff
}

/// The destination address.
#[inline]
pub(super) fn destination(ip: &[u8]) -> u32 {
    u32::from_be_bytes([ip[16], ip[17], ip[18], ip[19]])
}

/// The source address.
#[inline]
pub(super) fn source(ip: &[u8]) -> u32 {
    u32::from_be_bytes([ip[12], ip[13], ip[14], ip[15]])
}
