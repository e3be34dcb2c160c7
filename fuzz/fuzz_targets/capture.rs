//! Any bytes as a capture: parsed at once and in pieces, and written again.
#![no_main]

use capture::{Decoder, PacketOptions, Parser, PcapngEncoder};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((size, bytes)) = data.split_first() else { return };
    let (mut parser, mut unread) = (Parser::new(), bytes);
    let mut decoder = Decoder::new();
    let mut pieces = bytes.chunks(usize::from(*size).max(1));
    let mut written = Vec::new();
    let mut encoder = PcapngEncoder::new();
    encoder.section(&mut written);
    let mut count = 0;
    while let Ok(Some(record)) = parser.record(&mut unread) {
        let options = record.options;
        let same = loop {
            match decoder.record().expect("the same bytes are as good in pieces") {
                Some(same) => break same,
                None => decoder.feed(pieces.next().expect("the same bytes have the same records")),
            }
        };
        assert!(same.bytes == record.bytes && same.time_ns == record.time_ns && same.link == record.link);
        assert!(same.original_length == record.original_length && same.options.iter().eq(options.iter()));
        let options = PacketOptions {
            comment: options.comments().next(),
            packet_id: options.packet_id(),
            queue: options.queue(),
            verdict: options.verdict(),
        };
        let interface = encoder.interface(record.link, "", 0, &mut written);
        encoder.packet(
            interface,
            record.time_ns,
            record.original_length,
            record.bytes,
            &options,
            &mut written,
        );
        count += 1;
        if count % 1_000 == 0 {
            encoder.section(&mut written);
        }
    }
    let (mut parser, mut unread) = (Parser::new(), written.as_slice());
    for _ in 0..count {
        assert!(parser.record(&mut unread).expect("what is written is sound").is_some());
    }
    assert!(unread.is_empty() || parser.record(&mut unread) == Ok(None));
});
