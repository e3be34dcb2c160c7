//! Translates a packet: its IP header, its transport header, and the packet that an ICMP error quotes.

use element::prelude::*;
use packet::checksum::{Sum, update};
use packet::view::{icmp4, icmp6};

use super::embedding::Embedding;
use super::icmp_types::Message;
use super::layer::Layer;

/// Length of the header of ICMP messages, with the word behind the checksum.
const MESSAGE: usize = 8;

/// The longest ICMPv6 error, with its IPv6 header (RFC 4443, section 2.4).
const MAX_ERROR: usize = 1280;

/// Makes a layer for a packet, or for one that an error quotes. Both directions share the code that calls it.
type MakeLayer<'a> = &'a dyn Fn(&[u8], bool) -> Result<Layer, Reason>;

/// Translates an IPv4 packet into one of IPv6.
pub(in super::super) fn translate_to6(packet: &mut Packet, embedding: &Embedding) -> Result<(), Reason> {
    translate(packet, &|bytes, _| Layer::to6(bytes, embedding))
}

/// Translates an IPv6 packet into one of IPv4, with this identification unless it is a fragment.
pub(in super::super) fn translate_to4(
    packet: &mut Packet,
    embedding: &Embedding,
    identification: u16,
) -> Result<(), Reason> {
    translate(packet, &|bytes, is_quoted| {
        Layer::to4(bytes, embedding, if is_quoted { 0 } else { identification })
    })
}

/// Translates with the layers that a function makes, for the packet and for one that it quotes.
#[inline(never)]
fn translate(packet: &mut Packet, layer: MakeLayer<'_>) -> Result<(), Reason> {
    let mut outer = layer(packet.data(), false)?;
    if packet.len() < outer.removed + outer.payload {
        return Err(Reason::BAD_LENGTH);
    }
    packet.truncate(outer.removed + outer.payload);
    if outer.is_icmp() {
        if outer.is_fragment {
            return Err(Reason::IS_FRAGMENT);
        }
        let (message, _) = message(packet.data(), outer.removed).ok_or(Reason::BAD_LENGTH)?;
        let is_error = match outer.is_ip6() {
            true => icmp4::kind::is_error(message.kind),
            // All types below 128 are errors.
            false => message.kind < icmp6::kind::ECHO,
        };
        if is_error {
            return translate_error(packet, outer, message, layer);
        }
    }
    if outer.is_first {
        let _ = outer.adapt(packet.data_mut().get_mut(outer.removed..).unwrap_or_default(), true)?;
    }
    outer.set_destination(packet);
    let (removed, payload) = (outer.removed, outer.payload);
    let header = outer.finish(payload)?;
    replace(packet, removed, [header, &[], &[]])
}

/// Translates an ICMP error, with the packet that it quotes.
fn translate_error(
    packet: &mut Packet,
    mut outer: Layer,
    before: Message,
    layer: MakeLayer<'_>,
) -> Result<(), Reason> {
    let start = outer.removed + MESSAGE;
    let mut inner = layer(packet.data().get(start..).unwrap_or_default(), true)?;
    let after = match outer.is_ip6() {
        true => before.to6(u16::try_from(inner.removed + inner.payload).unwrap_or(u16::MAX)),
        false => before.to4(),
    };
    let after = after.ok_or(Reason::NOT_REWRITABLE)?;
    let removed = start + inner.removed;
    let transport = packet.data_mut().get_mut(removed..).unwrap_or_default();
    let [mut old, mut new] = if inner.is_first { inner.adapt(transport, false)? } else { [Sum::ZERO; 2] };
    let inner_payload = inner.payload;
    let quoted = inner.finish(inner_payload)?;

    // What does not fit into an error is cut.
    let rest = packet.len() - removed;
    let header = outer.finish(0)?.len();
    let fits = (MAX_ERROR - header - MESSAGE).saturating_sub(quoted.len());
    if outer.is_ip6() && rest > fits {
        old = plus(old, packet.data().get(removed + fits..).unwrap_or_default());
        packet.truncate(removed + fits);
    }

    let data = packet.data();
    let length = MESSAGE + quoted.len() + data.len() - removed;
    let pseudo = outer.icmp_pseudo_headers([outer.payload, length]);
    let covered = |sum: Sum, pseudo: Sum, message: &Message, header: &[u8]| {
        let Message { kind, code, parameter } = *message;
        let pseudo = Sum::ZERO.word(pseudo.fold()).word(sum.fold()).word(u16::from_be_bytes([kind, code]));
        plus(pseudo.word((parameter >> 16) as u16).word(parameter as u16), header).fold()
    };
    old = Sum::ZERO.word(covered(old, pseudo[0], &before, data.get(start..removed).unwrap_or_default()));
    new = Sum::ZERO.word(covered(new, pseudo[1], &after, quoted));
    let (_, checksum) = message(data, outer.removed).ok_or(Reason::BAD_LENGTH)?;
    let [high, low] = update(checksum, old.fold(), new.fold()).to_be_bytes();
    let [a, b, c, d] = after.parameter.to_be_bytes();
    let message = [after.kind, after.code, high, low, a, b, c, d];
    outer.set_destination(packet);
    replace(packet, removed, [outer.finish(length)?, &message, quoted])
}

/// Adds bytes to a sum, in one place of the program.
#[inline(never)]
fn plus(sum: Sum, bytes: &[u8]) -> Sum {
    sum.bytes(bytes)
}

/// An ICMP message, and its checksum.
fn message(bytes: &[u8], at: usize) -> Option<(Message, u16)> {
    let &[kind, code, high, low, a, b, c, d] = bytes.get(at..)?.first_chunk::<MESSAGE>()?;
    let parameter = u32::from_be_bytes([a, b, c, d]);
    Some((Message { kind, code, parameter }, u16::from_be_bytes([high, low])))
}

/// Puts headers in the place of the first bytes of a packet. The first of them is its network header.
fn replace(packet: &mut Packet, removed: usize, headers: [&[u8]; 3]) -> Result<(), Reason> {
    packet.strip(removed);
    let mut room =
        packet.prepend(headers.iter().map(|header| header.len()).sum()).ok_or(Reason::BAD_LENGTH)?;
    for header in headers {
        let (to, rest) = core::mem::take(&mut room).split_at_mut(header.len());
        to.copy_from_slice(header);
        room = rest;
    }
    packet.set_network(0, headers[0].len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::{Ip4View, Ip6View, Pool};

    /// A datagram, an error that quotes one, and a fragment with options or extension headers, between 10.0.0.1 and 10.0.0.2.
    const IP4: [&[u8]; 3] = [
        &[
            0x45, 0x00, 0x00, 0x20, 0x00, 0x00, 0x00, 0x00, 0x40, 0x11, 0x66, 0xcb, 0x0a, 0x00, 0x00, 0x01,
            0x0a, 0x00, 0x00, 0x02, 0x03, 0xe8, 0x07, 0xd0, 0x00, 0x0c, 0x07, 0x59, 0x64, 0x61, 0x74, 0x61,
        ],
        &[
            0x45, 0x00, 0x00, 0x3c, 0x00, 0x00, 0x00, 0x00, 0x40, 0x01, 0x66, 0xbf, 0x0a, 0x00, 0x00, 0x01,
            0x0a, 0x00, 0x00, 0x02, 0x03, 0x04, 0x0b, 0xa4, 0x00, 0x00, 0x05, 0x78, 0x45, 0x00, 0x00, 0x20,
            0x00, 0x00, 0x00, 0x00, 0x40, 0x11, 0x66, 0xcb, 0x0a, 0x00, 0x00, 0x02, 0x0a, 0x00, 0x00, 0x01,
            0x03, 0xe8, 0x07, 0xd0, 0x00, 0x0c, 0x07, 0x59, 0x64, 0x61, 0x74, 0x61,
        ],
        &[
            0x47, 0x00, 0x00, 0x28, 0x00, 0x00, 0x20, 0x00, 0x40, 0x11, 0x3c, 0xb4, 0x0a, 0x00, 0x00, 0x01,
            0x0a, 0x00, 0x00, 0x02, 0x01, 0x07, 0x07, 0x08, 0x00, 0x00, 0x00, 0x00, 0x03, 0xe8, 0x07, 0xd0,
            0x00, 0x0c, 0x07, 0x59, 0x64, 0x61, 0x74, 0x61,
        ],
    ];

    const IP6: [&[u8]; 3] = [
        &[
            0x60, 0x00, 0x00, 0x00, 0x00, 0x18, 0x06, 0x40, 0x00, 0x64, 0xff, 0x9b, 0x00, 0x00, 0x00, 0x00,
            0x00, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x01, 0x00, 0x64, 0xff, 0x9b, 0x00, 0x00, 0x00, 0x00,
            0x00, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x02, 0x03, 0xe8, 0x00, 0x50, 0x00, 0x00, 0x00, 0x07,
            0x00, 0x00, 0x00, 0x09, 0x50, 0x18, 0x01, 0xf4, 0xbc, 0xc7, 0x00, 0x00, 0x64, 0x61, 0x74, 0x61,
        ],
        &[
            0x60, 0x00, 0x00, 0x00, 0x00, 0x3c, 0x3a, 0x40, 0x00, 0x64, 0xff, 0x9b, 0x00, 0x00, 0x00, 0x00,
            0x00, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x01, 0x00, 0x64, 0xff, 0x9b, 0x00, 0x00, 0x00, 0x00,
            0x00, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x02, 0x04, 0x00, 0x76, 0x50, 0x00, 0x00, 0x00, 0x07,
            0x60, 0x00, 0x00, 0x00, 0x00, 0x0c, 0x11, 0x40, 0x00, 0x64, 0xff, 0x9b, 0x00, 0x00, 0x00, 0x00,
            0x00, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x02, 0x00, 0x64, 0xff, 0x9b, 0x00, 0x00, 0x00, 0x00,
            0x00, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x01, 0x03, 0xe8, 0x07, 0xd0, 0x00, 0x0c, 0x07, 0x59,
            0x64, 0x61, 0x74, 0x61,
        ],
        &[
            0x60, 0x00, 0x00, 0x00, 0x00, 0x1c, 0x00, 0x40, 0x00, 0x64, 0xff, 0x9b, 0x00, 0x00, 0x00, 0x00,
            0x00, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x01, 0x00, 0x64, 0xff, 0x9b, 0x00, 0x00, 0x00, 0x00,
            0x00, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x02, 0x2c, 0x00, 0x01, 0x04, 0x00, 0x00, 0x00, 0x00,
            0x11, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x05, 0x03, 0xe8, 0x07, 0xd0, 0x00, 0x0c, 0x07, 0x59,
            0x64, 0x61, 0x74, 0x61,
        ],
    ];

    /// Any change of a packet gives a translated packet whose lengths are right, or a reason.
    #[test]
    fn any_bytes_are_translated_or_refused() {
        let embedding = Embedding::new(packet::Ip6Prefix::parse("64:ff9b::/96").ok()).ok().unwrap();
        let pool = Pool::new(2);
        let (mut random, mut translated) = (1u64, [0; 2]);
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize % below
        };
        for round in 0..30_000 {
            let to6 = round % 2 == 0;
            let bytes = if to6 { IP4 } else { IP6 }[round / 2 % 3];
            let mut packet = pool.packet(bytes).unwrap();
            for _ in 0..next(4) {
                let (place, byte) = (next(packet.len()), next(256) as u8);
                packet.data_mut()[place] = byte;
            }
            if next(4) == 0 {
                packet.truncate(next(bytes.len()));
            }
            let result = match to6 {
                true => translate_to6(&mut packet, &embedding),
                false => translate_to4(&mut packet, &embedding, 7),
            };
            if result.is_err() {
                continue;
            }
            translated[usize::from(to6)] += 1;
            match to6 {
                true => {
                    let view = Ip6View::new(packet.data()).unwrap();
                    assert_eq!((view.version(), usize::from(view.payload_length()) + 40), (6, packet.len()));
                    assert!(view.transport().complete);
                }
                false => {
                    let view = Ip4View::check(packet.data(), true).unwrap();
                    assert_eq!(usize::from(view.total_length()), packet.len());
                }
            }
        }
        assert!(translated[0] > 1_000 && translated[1] > 1_000, "{translated:?}");
    }
}
