//! Shifts the sequence numbers in a TCP header (RFC 9293) and in its selective acknowledgements (RFC 2018).

use packet::TcpViewMut;
use packet::checksum;
use packet::view::tcp::option;

use super::sequence_shifts::SequenceShifts;

/// The length of a header whose only option is a timestamp, and that option's first bytes.
const ONLY_TIMESTAMP: (usize, [u8; 4]) = (32, [1, 1, 8, 10]);

/// Shifts the numbers of a segment of direction `reply`. All its options must be present.
pub(crate) fn shift_numbers(transport: &mut [u8], shifts: &mut SequenceShifts, reply: bool) {
    let Some(mut header) = TcpViewMut::new(transport) else { return };
    let sequence = header.view().sequence();
    shifts.record(reply, sequence);
    if shifts.is_shifted(reply) {
        let moved = shifts.sequence(reply, sequence);
        header.set_sequence(moved);
        header.set_checksum(checksum::update_word32(header.view().checksum(), sequence, moved));
    }
    if shifts.is_shifted(!reply) {
        let number = header.view().acknowledgement();
        let moved = shifts.acknowledgement(reply, number);
        header.set_acknowledgement(moved);
        header.set_checksum(checksum::update_word32(header.view().checksum(), number, moved));
        let (length, start) = (header.view().header_length(), header.view().options().first_chunk().copied());
        if length > 32 || (length == ONLY_TIMESTAMP.0 && start != Some(ONLY_TIMESTAMP.1)) {
            shift_selective_acks(&mut header, shifts, reply);
        }
    }
}

/// Shifts the block edges of selective acknowledgements.
fn shift_selective_acks(header: &mut TcpViewMut, shifts: &SequenceShifts, reply: bool) {
    let before = checksum::internet(header.view().options());
    let mut options = header.options_mut();
    while let [kind, rest @ ..] = options {
        if *kind == option::END {
            break;
        }
        if *kind == option::NOP {
            options = rest;
            continue;
        }
        let is_selective = *kind == option::SACK;
        let Some(&mut length) = rest.first_mut() else { break };
        let length = usize::from(length);
        if length < 2 || rest.len() + 1 < length || (is_selective && length % 8 != 2) {
            break;
        }
        let (body, next) = rest.split_at_mut(length - 1);
        if is_selective {
            for edge in body.get_mut(1..).unwrap_or_default().chunks_exact_mut(4) {
                let Some(bytes) = edge.first_chunk_mut::<4>() else { continue };
                *bytes = shifts.acknowledgement(reply, u32::from_be_bytes(*bytes)).to_be_bytes();
            }
        }
        options = next;
    }
    // The options start at an even offset, so the checksum changes by the same amount as their sum.
    let after = checksum::internet(header.view().options());
    header.set_checksum(checksum::update(header.view().checksum(), !before, !after));
}
