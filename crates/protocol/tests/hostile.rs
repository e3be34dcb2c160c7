//! What a hostile peer can send: no message makes the receiver panic, block, leak a descriptor or take much memory.

use protocol::{Channel, ChannelError, MAX_DESCRIPTORS, MemoryFileFault, Received};
use random::Random;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A type with everything that our messages use.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Message {
    Text(String),
    Bytes(Vec<u8>),
    Map(BTreeMap<u32, Option<Items>>),
    Number(u64),
}

type Items = Vec<(bool, char, i64)>;

const MOST: usize = 100_000;
const ALL_SEALS: SealFlags =
    SealFlags::SEAL.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::WRITE);

/// The tests count the descriptors of the process, so they run one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("the process's descriptors").count()
}

fn send_raw(to: &Channel, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(descriptors.is_empty() || control.push(SendAncillaryMessage::ScmRights(descriptors)));
    sendmsg(to, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).expect("an open channel");
}

/// Sends one raw message and returns the receiver's result. No descriptor may stay open, and the next message must
/// arrive.
fn check(bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<Option<Received<Message>>, ChannelError> {
    let (one, other) = Channel::pair().expect("a pair");
    let before = open_descriptors();
    send_raw(&one, bytes, descriptors);
    let result = other.receive::<Message>(MOST);
    let kept = result.as_ref().ok().and_then(Option::as_ref).map_or(0, |message| message.descriptors.len());
    assert_eq!(open_descriptors(), before + kept);
    one.send(&Message::Number(7), &[]).expect("an open channel");
    let next = other.receive::<Message>(MOST).expect("a message").expect("an open channel");
    assert_eq!(next.message, Message::Number(7));
    result
}

fn memory_file(length: u64, bytes: &[u8], seals: SealFlags) -> OwnedFd {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(memfd_create(c"test", flags).expect("a memory file"));
    file.write_all(bytes).expect("room");
    file.set_len(length).expect("room");
    fcntl_add_seals(&file, seals).expect("seals");
    file.into()
}

/// The head of a message in a memory file.
fn head(length: u64) -> Vec<u8> {
    [&[1][..], &length.to_le_bytes()].concat()
}

#[test]
fn malformed_bytes_are_errors() {
    let _alone = alone();
    let value = protocol::codec::encode_to(&Message::Text("text".to_string()), vec![0]).expect("an encoding");
    assert_eq!(check(&value, &[]).expect("a message").expect("no end").message, Message::Text("text".into()));
    for length in 1..value.len() {
        assert!(matches!(check(&value[..length], &[]), Err(ChannelError::Decode(_))), "{length}");
    }
    let longer = [&value[..], &[0, 0]].concat();
    assert!(matches!(check(&longer, &[]), Err(ChannelError::TrailingBytes(2))));
    assert!(matches!(check(&[2, 0, 0], &[]), Err(ChannelError::UnknownForm(2))));
    assert!(matches!(check(&[0, 9], &[]), Err(ChannelError::Decode(_))), "there is no such variant");
    // A list that announces 2^63 elements, and a string of 2^35 bytes.
    let list = [0, 1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1];
    assert!(matches!(check(&list, &[]), Err(ChannelError::Decode(_))));
    assert!(matches!(check(&[0, 0, 0xff, 0xff, 0xff, 0xff, 0x7f], &[]), Err(ChannelError::Decode(_))));
    // An empty message cannot be told from the end.
    assert!(check(&[], &[]).expect("no error").is_none());
}

#[test]
fn messages_over_the_bounds_are_errors() {
    let _alone = alone();
    assert!(matches!(check(&[0; 140_000], &[]), Err(ChannelError::Truncated)));
    let file = memory_file(MOST as u64 + 1, &[], ALL_SEALS);
    let error = check(&head(MOST as u64 + 1), &[file.as_fd()]).expect_err("too long");
    assert!(matches!(error, ChannelError::TooLong { length: 100_001, most: MOST }), "{error:?}");
    // A sparse file costs its sender nothing.
    let file = memory_file(1 << 50, &[], ALL_SEALS);
    for length in [1 << 50, u64::MAX] {
        let error = check(&head(length), &[file.as_fd()]).expect_err("too long");
        assert!(matches!(error, ChannelError::TooLong { .. }), "{error:?}");
    }
    let (one, other) = Channel::pair().expect("a pair");
    one.send(&Message::Bytes(vec![0; 98]), &[]).expect("room");
    let error = other.receive::<Message>(99).expect_err("the payload and its framing");
    assert!(matches!(error, ChannelError::TooLong { length: 108, most: 99 }), "{error:?}");
}

#[test]
fn memory_files_that_are_not_as_announced_are_errors() {
    let _alone = alone();
    let value = protocol::codec::encode_to(&Message::Bytes(vec![5; 1_000]), vec![]).expect("an encoding");
    let length = value.len() as u64;
    let good = memory_file(length, &value, ALL_SEALS);
    let received = check(&head(length), &[good.as_fd()]).expect("a message").expect("no end");
    assert_eq!((received.message, received.descriptors.len()), (Message::Bytes(vec![5; 1_000]), 0));

    let fault = |bytes: &[u8], descriptors: &[BorrowedFd<'_>]| match check(bytes, descriptors) {
        Err(ChannelError::MemoryFile(fault)) => fault,
        other => panic!("{other:?}"),
    };
    assert_eq!(fault(&head(length), &[]), MemoryFileFault::Missing);
    assert_eq!(fault(&head(length)[..5], &[good.as_fd()]), MemoryFileFault::WrongLength);
    for missing in [SealFlags::SEAL, SealFlags::SHRINK, SealFlags::GROW, SealFlags::WRITE] {
        let file = memory_file(length, &value, ALL_SEALS.difference(missing));
        assert_eq!(fault(&head(length), &[file.as_fd()]), MemoryFileFault::NotSealed, "{missing:?}");
    }
    // A file whose reader would wait, and files that anybody may change.
    let (pipe, _writer) = std::io::pipe().expect("a pipe");
    let zero = File::open("/dev/zero").expect("a device");
    let program = File::open("/proc/self/exe").expect("a file");
    for file in [pipe.as_fd(), zero.as_fd(), program.as_fd()] {
        assert_eq!(fault(&head(length), &[file]), MemoryFileFault::NotSealed);
    }
    for wrong in [length - 1, length + 1] {
        assert_eq!(fault(&head(wrong), &[good.as_fd()]), MemoryFileFault::WrongLength);
    }
    let garbage = memory_file(length, &[0xff; 10], ALL_SEALS);
    assert!(matches!(check(&head(length), &[garbage.as_fd()]), Err(ChannelError::Decode(_))));
    let long = memory_file(length + 3, &value, ALL_SEALS);
    let error = check(&head(length + 3), &[long.as_fd()]).expect_err("surplus bytes");
    assert!(matches!(error, ChannelError::TrailingBytes(3)), "{error:?}");
}

#[test]
fn surplus_descriptors_are_closed() {
    let _alone = alone();
    let value = protocol::codec::encode_to(&Message::Number(1), vec![0]).expect("an encoding");
    let file = File::open("/dev/null").expect("a device");
    for number in [1, MAX_DESCRIPTORS] {
        let received = check(&value, &vec![file.as_fd(); number]).expect("a message").expect("no end");
        assert_eq!(received.descriptors.len(), number);
    }
    for number in MAX_DESCRIPTORS + 1..=253 {
        match check(&value, &vec![file.as_fd(); number]) {
            Err(ChannelError::TooManyDescriptors(found)) => assert_eq!(found, number),
            Err(ChannelError::Truncated) => assert!(number > MAX_DESCRIPTORS + 1),
            other => panic!("{number}: {other:?}"),
        }
    }
    // The memory file comes on top.
    let value = protocol::codec::encode_to(&Message::Number(1), vec![]).expect("an encoding");
    let memory = memory_file(value.len() as u64, &value, ALL_SEALS);
    let mut descriptors = vec![memory.as_fd()];
    descriptors.extend([file.as_fd(); MAX_DESCRIPTORS]);
    let received = check(&head(value.len() as u64), &descriptors).expect("a message").expect("no end");
    assert_eq!(received.descriptors.len(), MAX_DESCRIPTORS);
    descriptors.push(file.as_fd());
    assert!(check(&head(value.len() as u64), &descriptors).is_err());
    // Errors and the end close descriptors, too.
    assert!(check(&[0xff], &[file.as_fd(); 3]).is_err());
    assert!(check(&[], &[file.as_fd(); 3]).expect("no error").is_none());
}

#[test]
fn unread_descriptors_are_closed_with_the_channel() {
    let _alone = alone();
    let before = open_descriptors();
    let (one, other) = Channel::pair().expect("a pair");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    one.send(&Message::Number(1), &[writer.as_fd()]).expect("room");
    drop((one, other, writer));
    assert_eq!(std::io::read_to_string(reader).expect("an end"), "");
    assert_eq!(open_descriptors(), before);
}

#[test]
fn random_messages_are_harmless() {
    let _alone = alone();
    let before = open_descriptors();
    let (one, other) = Channel::pair().expect("a pair");
    let null = File::open("/dev/null").expect("a device");
    let mut random = Random::new(14);
    let valid = [
        Message::Text("a text".to_string()),
        Message::Bytes(vec![3; 300]),
        Message::Map([(1, None), (9, Some(vec![(true, 'ä', -5); 20]))].into()),
        Message::Number(1 << 40),
    ];
    let valid = valid.map(|message| protocol::codec::encode_to(&message, vec![0]).expect("an encoding"));
    let (mut messages, mut errors) = (0, 0);
    for round in 0..20_000 {
        let mut bytes: Vec<u8> = match random.below(2) {
            0 => (0..random.below(200)).map(|_| random.next() as u8).collect(),
            _ => valid[random.below(4) as usize].clone(),
        };
        for _ in 0..random.below(4) {
            if let Some(length) = u32::try_from(bytes.len()).ok().filter(|length| *length > 0) {
                bytes[random.below(length) as usize] = random.next() as u8;
            }
        }
        if let Some(form) = bytes.first_mut().filter(|_| random.below(4) > 0) {
            *form = random.below(2) as u8;
        }
        let length = random.below_u64(2_000);
        let noise: Vec<u8> = (0..random.below(2_000)).map(|_| random.next() as u8).collect();
        let file = memory_file(length, &noise, ALL_SEALS);
        let mut descriptors = vec![file.as_fd(); random.below(2) as usize];
        descriptors.extend(vec![null.as_fd(); random.below(12) as usize]);
        if random.below(8) == 0 {
            bytes = head(length);
        }
        send_raw(&one, &bytes, &descriptors);
        match other.receive::<Message>(1_500) {
            Ok(_) => messages += 1,
            Err(ChannelError::System(error)) => panic!("round {round}: {error}"),
            Err(_) => errors += 1,
        }
    }
    assert!(messages > 100 && errors > 100, "{messages} messages, {errors} errors");
    drop((one, other, null));
    assert_eq!(open_descriptors(), before);
}
