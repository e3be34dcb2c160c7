//! The mailbox with a peer that writes fuzz input, and messages with arbitrary bytes.

use crate::memory::{Input, InputMemory, with_mapped};
use boundary::limits::{MAX_CHUNK, MAX_EVENT};
use boundary::{
    Diagnostic, Event, FlowExport, FlowList, Frame, FrameReader, FrameWriter, Inbox, Message, MessageKind,
    Outbox, RefusedState, Reply, Request, Stats, control, decode_groups, decode_states, encode_groups,
    encode_states,
};

/// Maximum message length that the receiver accepts here.
const LIMIT: usize = MAX_EVENT;

fn kind(choice: u8) -> MessageKind {
    MessageKind::ALL[usize::from(choice) % MessageKind::ALL.len()]
}

/// The reader and the writer of one channel, whose loads return fuzz input.
pub fn channel(bytes: &[u8]) {
    let input = Input::new(bytes);
    let memory = InputMemory::new(control::CHANNEL_SIZE, &input);
    let position = input.word() as u32;
    let mut reader = FrameReader::at(&memory, position).unwrap();
    let mut writer = FrameWriter::at(&memory, position).unwrap();
    let (mut inbox, mut outbox) = (Inbox::new(LIMIT), Outbox::default());
    let mut payload = Vec::new();
    while !input.is_empty() {
        match input.byte() % 8 {
            0 => {
                if let Ok(Some(message)) = inbox.poll(&mut reader) {
                    assert!(message.payload.len() <= LIMIT);
                    decode(&message);
                }
            }
            1 => {
                let received = memory.once(|| reader.receive(&mut payload, LIMIT));
                assert!(payload.len() <= LIMIT);
                match received {
                    Ok(Some(frame)) if !frame.last => {}
                    _ => payload.clear(),
                }
            }
            2 => drop(reader.release()),
            3 => drop(memory.once(|| reader.prepare_sleep())),
            4 => {
                let frame =
                    Frame { kind: kind(input.byte()), number: 1, total: input.word() as u32, last: true };
                let payload = vec![0; input.word() as usize % (MAX_CHUNK + 2)];
                let _ = memory.once(|| writer.send(frame, &payload));
            }
            5 => {
                let payload = vec![0; input.word() as usize % 20_000];
                outbox.push(Message { kind: kind(input.byte()), number: u32::from(input.byte()), payload });
            }
            6 => {
                outbox.withdraw(u32::from(input.byte()));
                assert!(!outbox.is_empty() || outbox.bytes() == 0);
            }
            _ => {
                let _ = outbox.flush(&mut writer);
                let _ = (writer.prepare_sleep(), writer.end_sleep(), reader.end_sleep());
            }
        }
    }
}

/// A message of any kind with arbitrary bytes. If it can be decoded, its encoding decodes to the same value.
pub fn message(bytes: &[u8]) {
    let Some((choice, payload)) = bytes.split_first() else { return };
    decode(&Message { kind: kind(*choice), number: 7, payload: payload.to_vec() });
}

fn decode(message: &Message) {
    if let Ok(request) = Request::decode(message) {
        assert_eq!(Request::decode(&request.encode(message.number)).as_ref(), Ok(&request));
    }
    if let Ok(event) = Event::decode(message) {
        assert_eq!(Event::decode(&event.encode(message.number)), Ok(event));
    }
    if let Ok(reply) = Reply::decode(message) {
        assert_eq!(&reply.encode(message.number), message);
    }
    if let Ok(stats) = Stats::decode(&message.payload) {
        assert_eq!(Stats::decode(&stats.encode()).as_ref(), Ok(&stats));
    }
    if let Ok(diagnostics) = Diagnostic::decode(&message.payload) {
        assert_eq!(Diagnostic::decode(&Diagnostic::encode(&diagnostics)).as_ref(), Ok(&diagnostics));
    }
    if let Ok(list) = FlowList::decode(&message.payload) {
        assert_eq!(FlowList::decode(&list.encode()).as_ref(), Ok(&list));
    }
    if let Ok(export) = FlowExport::decode(&message.payload) {
        assert_eq!(FlowExport::decode(&export.encode()).as_ref(), Ok(&export));
    }
    if let Ok(refused) = RefusedState::decode(&message.payload) {
        assert_eq!(RefusedState::decode(&RefusedState::encode(&refused)).as_ref(), Ok(&refused));
    }
    if let Ok(groups) = decode_groups(&message.payload) {
        assert_eq!(decode_groups(&encode_groups(&groups)).as_ref(), Ok(&groups));
    }
    if let Ok(states) = decode_states(&message.payload) {
        assert_eq!(decode_states(&encode_states(&states)).as_ref(), Ok(&states));
    }
}

/// Messages between two correct sides arrive complete and in order, however they are split.
pub fn delivery(bytes: &[u8]) {
    let input = Input::new(bytes);
    with_mapped(control::CHANNEL_SIZE, |memory| {
        let (mut writer, mut reader) = (FrameWriter::new(memory).unwrap(), FrameReader::new(memory).unwrap());
        let (mut outbox, mut inbox) = (Outbox::default(), Inbox::new(1 << 20));
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        while !input.is_empty() {
            let (number, fill) = (sent.len() as u32, input.byte());
            let payload = vec![fill; input.word() as usize % 40_000];
            let message = Message { kind: kind(input.byte()), number, payload };
            sent.push(message.clone());
            outbox.push(message);
            if input.byte() & 1 == 0 {
                outbox.flush(&mut writer).unwrap();
                received.extend(inbox.poll(&mut reader).unwrap());
                reader.release();
            }
        }
        while received.len() < sent.len() {
            outbox.flush(&mut writer).unwrap();
            received.extend(inbox.poll(&mut reader).unwrap());
            reader.release();
        }
        assert_eq!(received, sent);
    });
}
