//! The mailbox over plain memory and with a hostile peer.

use super::*;
use crate::codec::Encoder;
use crate::limits::{MAX_ACCOUNT_PLACES, MAX_CHUNK, MAX_PLACE, MAX_REPLY, MAX_REQUEST};
use crate::memory::Mapped;
use crate::memory::hostile::{Hostile, edge};
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::ptr::NonNull;
use random::Random;

/// Runs `body` with both ends of a channel in fresh memory.
fn with_channel(body: impl FnOnce(FrameWriter<Mapped>, FrameReader<Mapped>)) {
    let mut words = vec![0u64; CHANNEL_BYTES / 8];
    // SAFETY: the vector outlives `body` and is not touched meanwhile.
    let memory = unsafe { Mapped::new(NonNull::new(words.as_mut_ptr().cast()).unwrap(), words.len() * 8) };
    body(FrameWriter::new(memory).unwrap(), FrameReader::new(memory).unwrap());
}

#[test]
fn messages_of_every_size_arrive_whole_and_in_order() {
    with_channel(|mut writer, mut reader| {
        let (mut outbox, mut inbox) = (Outbox::default(), Inbox::new(MAX_REQUEST));
        let sizes = [0, 1, 7, 8, 9, MAX_CHUNK - 1, MAX_CHUNK, MAX_CHUNK + 1, 65_536, 1 << 20, 3, 100_003];
        for (number, size) in sizes.into_iter().enumerate() {
            let payload = (0..size).map(|byte| (byte * 7 + number) as u8).collect();
            outbox.push(Message { kind: MessageKind::Done, number: number as u32, payload });
        }
        let mut received = 0;
        while received < sizes.len() {
            outbox.flush(&mut writer).unwrap();
            while let Some(message) = inbox.poll(&mut reader).unwrap() {
                assert_eq!((message.number, message.payload.len()), (received as u32, sizes[received]));
                let expected = |(byte, value): (usize, &u8)| *value == (byte * 7 + received) as u8;
                assert!(message.payload.iter().enumerate().all(expected));
                received += 1;
            }
            reader.release();
        }
        assert!(outbox.is_empty() && outbox.bytes() == 0 && inbox.poll(&mut reader) == Ok(None));
    });
}

#[test]
fn what_is_withdrawn_is_not_sent_unless_it_was_begun() {
    with_channel(|mut writer, mut reader| {
        let (mut outbox, mut inbox) = (Outbox::default(), Inbox::new(MAX_REQUEST));
        for (number, size) in [(1, 40_000), (2, 5), (3, 6), (2, 7)] {
            outbox.push(Message { kind: MessageKind::Write, number, payload: vec![0; size] });
        }
        outbox.flush(&mut writer).unwrap();
        for number in [1, 2, 9] {
            outbox.withdraw(number);
        }
        assert_eq!((outbox.len(), outbox.bytes()), (2, 40_006));
        let mut numbers = Vec::new();
        while numbers.len() < 2 {
            outbox.flush(&mut writer).unwrap();
            while let Some(message) = inbox.poll(&mut reader).unwrap() {
                numbers.push((message.number, message.payload.len()));
            }
            reader.release();
        }
        assert_eq!((numbers, outbox.is_empty()), (vec![(1, 40_000), (3, 6)], true));
        outbox.push(Message { kind: MessageKind::Write, number: 4, payload: vec![0; 9] });
        outbox.withdraw(4);
        assert!(outbox.is_empty() && outbox.bytes() == 0);
    });
}

#[test]
fn requests_replies_and_events_survive_the_trip() {
    let (name, handler) = ("second", "c.count");
    for request in [
        Request::Install { name: "", configuration: "Idle -> Discard;" },
        Request::Destinations { names: "ids\nport:wan" },
        Request::Parameters { values: "PORTS=1-2\nA=b" },
        Request::Remove { name },
        Request::Read { name, handler, argument: b"" },
        Request::Write { name, handler, value: &[0, 255] },
        Request::Stats,
        Request::File { name: "rules.txt", contents: &[1; 10_000] },
        Request::Check { configuration: "Idle -> Discard;" },
        Request::ListFlows { position: FlowPosition { element: 1, inside: 1 << 33 }, most: 9, range: None },
        Request::ListFlows {
            position: FlowPosition::default(),
            most: 9,
            range: Some((0x0a00_0001, 7, 65535)),
        },
        Request::ExportFlows { age: 1 << 40, groups: &[1, 2, 3] },
        Request::ImportFlows { states: &[4] },
        Request::Shard { index: 1, count: 2 },
        Request::Ranges,
        Request::Stage { name: "b", configuration: "Idle -> Discard;" },
        Request::Commit,
        Request::Abort,
        Request::Merge { name: "", handler: "c.count", answers: b"5" },
    ] {
        let message = request.encode(3);
        assert_eq!(Request::decode(&message), Ok(request));
        assert!(Reply::decode(&message).is_err() && Event::decode(&message).is_err());
        let message_is_empty = message.payload.is_empty();
        let cut = Message { payload: message.payload[..message.payload.len() / 2].to_vec(), ..message };
        assert!(Request::decode(&cut).is_err() || message_is_empty);
    }
    for reply in [Reply::Done(b"7"), Reply::Failed(b"no"), Reply::Missing(b"c"), Reply::Rejected(b"\0\0\0\0")]
    {
        let message = reply.encode(9);
        assert_eq!((message.number, Reply::decode(&message)), (9, Ok(reply)));
    }
    for event in [
        Event::Console { name: b"fw", line: b"\xff\x1b[2J" },
        Event::Output { file: b"out.pcap", position: 1 << 40, bytes: &[7; 33] },
        Event::OwnWrites {
            name: b"",
            handler: b"s.switch",
            value: b"1",
            written: Written { effect: WriteEffect::Setting, in_config: true },
            count: 1 << 40,
        },
        Event::MoreOwnWrites { name: b"fw", count: 7 },
        Event::OwnWritesGone { name: b"fw" },
    ] {
        assert_eq!(Event::decode(&event.encode(0)), Ok(event));
    }
    let stats = Stats {
        busy_cycles: 1,
        ports: vec![PortStats { full_drops: 5, ..PortStats::default() }; 16],
        drops: vec![("over_rate".to_string(), 7)],
        account: PacketAccount {
            fates: PacketFates { received: 9, made: 1, discarded: 2, merged: 1, ..PacketFates::default() },
            waiting: 3,
            oldest: u64::MAX,
            in_use: 3,
            losses: vec![LostPackets {
                element: "filter".into(),
                reason: "denied".into(),
                packets: 7,
                ..LostPackets::default()
            }],
            discards: vec![DiscardedPackets {
                connection: "a[1] -> d".into(),
                packets: 2,
                ..Default::default()
            }],
            waits: vec![WaitingPackets { element: "q".into(), packets: 3, oldest: 5, ..Default::default() }],
        },
        ..Stats::default()
    };
    assert_eq!(Stats::decode(&stats.encode()), Ok(stats.clone()));
    // Long names are cut, and surplus places left out.
    let place = DiscardedPackets { connection: "é".repeat(MAX_PLACE), ..Default::default() };
    let account = PacketAccount { discards: vec![place; MAX_ACCOUNT_PLACES + 1], ..stats.account };
    let cut = Stats::decode(&Stats { account, ..stats }.encode()).unwrap().account.discards;
    assert_eq!((cut.len(), cut[0].connection.as_str()), (MAX_ACCOUNT_PLACES, &*"é".repeat(MAX_PLACE / 2)));
}

#[test]
fn a_message_over_the_limit_is_refused_before_it_is_stored() {
    with_channel(|mut writer, mut reader| {
        let mut outbox = Outbox::default();
        outbox.push(Message { kind: MessageKind::Done, number: 1, payload: vec![0; 1001] });
        outbox.flush(&mut writer).unwrap();
        let error = Inbox::new(1000).poll(&mut reader);
        assert_eq!(error, Err(ChannelError::TooLong { bytes: 1001, limit: 1000 }));
    });
}

/// A box could keep a caller awake for ever with a message that is always continued and never longer.
#[test]
fn empty_frames_that_continue_are_refused() {
    for filled in [&b""[..], b"a"] {
        with_channel(|mut writer, mut reader| {
            let frame = Frame { kind: MessageKind::Done, number: 1, total: 4, last: false };
            assert_eq!(writer.send(frame, filled), Ok(true));
            assert_eq!(writer.send(frame, b""), Ok(true));
            writer.publish();
            assert_eq!(Inbox::new(100).poll(&mut reader), Err(ChannelError::Disordered));
        });
    }
}

#[test]
fn frames_that_do_not_belong_together_are_refused() {
    let frame = Frame { kind: MessageKind::Done, number: 1, total: 4, last: false };
    for second in [
        Frame { number: 2, ..frame },
        Frame { kind: MessageKind::Failed, ..frame },
        Frame { total: 5, ..frame },
        Frame { last: true, ..frame },
    ] {
        with_channel(|mut writer, mut reader| {
            assert_eq!(writer.send(frame, b"a"), Ok(true));
            assert_eq!(writer.send(second, b"b"), Ok(true));
            writer.publish();
            assert_eq!(Inbox::new(100).poll(&mut reader), Err(ChannelError::Disordered));
        });
    }
}

#[test]
fn a_hostile_peer_is_harmless() {
    for seed in 0..4_000 {
        let memory = Hostile::new(CHANNEL_BYTES, seed);
        let mut random = Random::new(seed ^ 0xabcd);
        let mut reader = FrameReader::new(&memory).unwrap();
        let mut writer = FrameWriter::new(&memory).unwrap();
        let (mut inbox, mut outbox) = (Inbox::new(MAX_REPLY), Outbox::default());
        for _ in 0..30 {
            memory.begin();
            match random.next() % 4 {
                0 => drop(reader.receive(&mut Vec::new(), edge(&mut random) as usize)),
                1 => drop(reader.release()),
                2 => {
                    let frame = Frame {
                        kind: MessageKind::Read,
                        number: 0,
                        total: edge(&mut random) as u32,
                        last: true,
                    };
                    let _ = writer.send(frame, &vec![0; random.next() as usize % 5000]);
                }
                _ => drop(writer.prepare_sleep()),
            }
            assert!(!memory.loaded_twice());
        }
        drop(inbox.poll(&mut reader));
        outbox.push(Message { kind: MessageKind::Stats, number: 1, payload: vec![0; 40_000] });
        let _ = outbox.flush(&mut writer);
    }
}

/// Random payloads under every kind are refused, or decode to a value that encodes to the same bytes.
#[test]
fn random_payloads_are_refused_or_read() {
    const KINDS: [MessageKind; 7] = [
        MessageKind::Install,
        MessageKind::Read,
        MessageKind::File,
        MessageKind::Check,
        MessageKind::Done,
        MessageKind::Console,
        MessageKind::Output,
    ];
    let mut random = Random::new(5);
    let (mut read, mut refused) = ([0; KINDS.len()], [0; KINDS.len()]);
    for _ in 0..50_000 {
        let mut payload = Vec::new();
        for _ in 0..random.next() % 4 {
            // A field as a peer would write it, or bytes that are close to one.
            if random.next().is_multiple_of(2) {
                payload
                    .extend_from_slice(&Encoder::default().bytes(&vec![b'a'; random.next() as usize % 5]).0);
            } else {
                payload.extend_from_slice(&edge(&mut random).to_le_bytes()[..1 + random.next() as usize % 8]);
            }
        }
        for (index, kind) in KINDS.into_iter().enumerate() {
            let message = Message { kind, number: 7, payload: payload.clone() };
            let decoded = [
                Request::decode(&message).map(|request| request.encode(7)),
                Reply::decode(&message).map(|reply| reply.encode(7)),
                Event::decode(&message).map(|event| event.encode(7)),
            ];
            // Each kind belongs to one of the three.
            match decoded.into_iter().find_map(Result::ok) {
                Some(again) => {
                    assert_eq!(again, message);
                    read[index] += 1;
                }
                None => refused[index] += 1,
            }
        }
        if let Ok(stats) = Stats::decode(&payload) {
            assert_eq!(Stats::decode(&stats.encode()), Ok(stats));
        }
        if let Ok(diagnostics) = Diagnostic::decode(&payload) {
            assert_eq!(Diagnostic::decode(&Diagnostic::encode(&diagnostics)), Ok(diagnostics));
        }
    }
    // A reply's bytes are for the caller to read, so none is refused.
    let done = KINDS.iter().position(|kind| *kind == MessageKind::Done);
    assert!(read.iter().all(|count| *count > 0), "{read:?}");
    assert!(
        refused.iter().enumerate().all(|(index, count)| (*count == 0) == (Some(index) == done)),
        "{refused:?}"
    );
}
