//! Malformed captures: whatever the bytes, the parser ends, stays within its memory, and does not depend on how the
//! capture was split.

use capture::{
    CaptureError, Decoder, LinkType, MAX_CAPTURED, PacketOptions, Parser, PcapEncoder, PcapngEncoder, Verdict,
};
use random::Random;

/// A record, copied.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    time_ns: i64,
    original_length: u32,
    interface: u32,
    bytes: Vec<u8>,
    comments: Vec<String>,
    packet_id: Option<u64>,
    queue: Option<u32>,
}

type Outcome = (Vec<Seen>, Option<CaptureError>, u64, usize);

fn copy(record: &capture::Record<'_>) -> Seen {
    assert!(record.bytes.len() <= MAX_CAPTURED as usize);
    assert!(record.original_length as usize >= record.bytes.len());
    // Parsing a verdict must not panic either.
    let _ = record.options.verdict();
    Seen {
        time_ns: record.time_ns,
        original_length: record.original_length,
        interface: record.interface,
        bytes: record.bytes.to_vec(),
        comments: record.options.comments().map(str::to_string).collect(),
        packet_id: record.options.packet_id(),
        queue: record.options.queue(),
    }
}

/// Parses a capture that is there at once.
fn whole(capture: &[u8]) -> Outcome {
    let (mut parser, mut unread, mut seen) = (Parser::new(), capture, Vec::new());
    let error = loop {
        let before = unread.len();
        match parser.record(&mut unread) {
            Ok(Some(record)) => seen.push(copy(&record)),
            Ok(None) => break None,
            Err(error) => {
                assert_eq!(parser.record(&mut unread).err(), Some(error), "an error stays");
                break Some(error);
            }
        }
        assert!(unread.len() < before, "a record takes bytes");
    };
    (seen, error, parser.bad_records(), unread.len())
}

/// Decodes a capture that arrives in pieces, read into the decoder's buffer or copied.
fn in_pieces(capture: &[u8], size: usize, copied: bool) -> Outcome {
    let (mut decoder, mut seen, mut error) = (Decoder::new(), Vec::new(), None);
    for piece in capture.chunks(size) {
        if copied {
            decoder.feed(piece);
        } else {
            decoder.space()[..piece.len()].copy_from_slice(piece);
            decoder.filled(piece.len());
        }
        loop {
            match decoder.record() {
                Ok(Some(record)) => seen.push(copy(&record)),
                Ok(None) => break,
                Err(found) => {
                    error = Some(found);
                    break;
                }
            }
        }
        if error.is_some() {
            break;
        }
    }
    (seen, error, decoder.bad_records(), decoder.unread())
}

/// A capture decodes to the same records however it is split.
fn check(capture: &[u8], context: &str) {
    let (seen, error, bad, unread) = whole(capture);
    for size in [1, 3, 16, 61, capture.len().max(1)] {
        for copied in [true, false] {
            let pieces = in_pieces(capture, size, copied);
            assert_eq!((&pieces.0, pieces.1, pieces.2), (&seen, error, bad), "{context}: pieces of {size}");
            if error.is_none() {
                assert_eq!(pieces.3, unread, "{context}: pieces of {size}");
            }
        }
    }
}

fn pcap() -> Vec<u8> {
    let encoder = PcapEncoder::new(LinkType::ETHERNET).nanoseconds(false);
    let mut capture = encoder.file_header().to_vec();
    for length in [0usize, 1, 14, 60, 3] {
        encoder.record(
            1_000_000_000 + length as i64 * 1_000,
            length as u32 + 9,
            &vec![length as u8; length],
            &mut capture,
        );
    }
    capture
}

fn pcapng() -> Vec<u8> {
    let (mut encoder, mut capture) = (PcapngEncoder::new(), Vec::new());
    for section in 0..2 {
        encoder.section(&mut capture);
        let first = encoder.interface(LinkType::ETHERNET, "first", 0, &mut capture);
        let second = encoder.interface(LinkType::RAW, "", 10, &mut capture);
        for (interface, length) in [(first, 0usize), (second, 30), (first, 61)] {
            let options = PacketOptions {
                comment: Some("dropped as no_route, Größe"),
                packet_id: Some(length as u64),
                queue: Some(section),
                verdict: Some(Verdict::LinuxXdp(1)),
            };
            encoder.packet(interface, 5 << 40, length as u32, &vec![7; length], &options, &mut capture);
        }
        encoder.packet(first, 6, 4, b"bare", &PacketOptions::default(), &mut capture);
    }
    capture
}

#[test]
fn every_byte_may_be_wrong() {
    for capture in [pcap(), pcapng()] {
        check(&capture, "sound");
        for at in 0..capture.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff, capture[at] ^ 1, capture[at].wrapping_add(4)] {
                let mut damaged = capture.clone();
                damaged[at] = value;
                let (seen, ..) = whole(&damaged);
                assert!(seen.len() <= capture.len());
            }
        }
        // The split is checked for fewer of them: it takes ten runs each.
        for at in (0..capture.len()).step_by(5) {
            let mut damaged = capture.clone();
            damaged[at] ^= 0xff;
            check(&damaged, &format!("byte {at}"));
        }
    }
}

#[test]
fn every_truncation_gives_the_records_before_it() {
    for capture in [pcap(), pcapng()] {
        let (all, ..) = whole(&capture);
        for length in 0..capture.len() {
            let (seen, error, ..) = whole(&capture[..length]);
            assert_eq!((seen.as_slice(), error), (&all[..seen.len()], None), "{length}");
        }
    }
}

#[test]
fn random_bytes_after_a_valid_header_do_not_panic() {
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    for round in 0..2_000 {
        let sound = if round % 2 == 0 { pcap() } else { pcapng() };
        let keep = random.below(sound.len() as u32) as usize;
        let mut capture = sound[..keep].to_vec();
        // Small numbers are plausible types and lengths.
        capture.extend(
            (0..random.below(200))
                .map(|_| if random.below(3) == 0 { random.next() as u8 } else { random.below(8) as u8 }),
        );
        check(&capture, &format!("round {round}"));
    }
}

#[test]
fn options_come_back_as_written() {
    let (mut encoder, mut capture) = (PcapngEncoder::new(), Vec::new());
    encoder.section(&mut capture);
    let port = encoder.interface(LinkType::ETHERNET, "port", 0, &mut capture);
    let long = "ä".repeat(40_000);
    let written = [
        PacketOptions::default(),
        PacketOptions { comment: Some("dropped: no_route"), ..PacketOptions::default() },
        PacketOptions { packet_id: Some(u64::MAX), queue: Some(7), ..PacketOptions::default() },
        PacketOptions { verdict: Some(Verdict::Hardware(b"abc")), ..PacketOptions::default() },
        PacketOptions { verdict: Some(Verdict::LinuxTc(2)), ..PacketOptions::default() },
        PacketOptions { verdict: Some(Verdict::LinuxXdp(1)), ..PacketOptions::default() },
        PacketOptions { comment: Some(&long), ..PacketOptions::default() },
    ];
    for (number, options) in (0..).zip(&written) {
        encoder.packet(port, number, 3, b"abc", options, &mut capture);
    }
    let (mut parser, mut unread) = (Parser::new(), capture.as_slice());
    for (number, options) in (0..).zip(&written) {
        let record = parser.record(&mut unread).unwrap().unwrap();
        assert_eq!((record.time_ns, record.bytes), (number, &b"abc"[..]));
        let comment = options.comment.map(|comment| &comment[..comment.len().min(65_534)]);
        assert_eq!(record.options.comments().next(), comment);
        assert_eq!(record.options.packet_id(), options.packet_id);
        assert_eq!(record.options.queue(), options.queue);
        assert_eq!(record.options.verdict(), options.verdict);
    }
    assert_eq!(parser.record(&mut unread), Ok(None));
    assert!(unread.is_empty());
}
