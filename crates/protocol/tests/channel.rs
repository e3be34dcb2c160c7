//! What two well-behaved ends of a channel can rely on.

use protocol::{Channel, ChannelError, MAX_DESCRIPTORS, Received};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::Duration;

/// A bound that all messages of these tests meet.
const MOST: usize = 1 << 20;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Message {
    Empty,
    Bytes(Vec<u8>),
    Fields { name: String, numbers: [u64; 3], option: Option<bool> },
}

fn receive(channel: &Channel) -> Message {
    let received = channel.receive(MOST).expect("a message").expect("an open channel");
    assert!(received.descriptors.is_empty());
    received.message
}

#[test]
fn messages_of_all_lengths_arrive_in_order() {
    let (one, other) = Channel::pair().expect("a pair");
    let fields = || Message::Fields { name: "ä".to_string(), numbers: [0, 7, u64::MAX], option: Some(true) };
    // Around the longest message that travels in the socket itself, and far beyond it.
    for length in [0, 1, 32_000, 131_060, 131_064, 131_066, 131_067, 131_068, 131_072, 132_000, 500_000] {
        let bytes = || Message::Bytes((0..length).map(|byte| byte as u8).collect());
        one.send(&Message::Empty, &[]).expect("room");
        one.send(&bytes(), &[]).expect("room");
        one.send(&fields(), &[]).expect("room");
        assert_eq!(receive(&other), Message::Empty);
        assert_eq!(receive(&other), bytes());
        assert_eq!(receive(&other), fields());
    }
}

#[test]
fn descriptors_arrive_in_order_with_short_and_long_messages() {
    let (one, other) = Channel::pair().expect("a pair");
    for message in [Message::Empty, Message::Bytes(vec![9; 300_000])] {
        let (readers, writers): (Vec<_>, Vec<_>) =
            (0..MAX_DESCRIPTORS).map(|_| std::io::pipe().expect("a pipe")).unzip();
        let borrowed: Vec<BorrowedFd<'_>> = writers.iter().map(AsFd::as_fd).collect();
        one.send(&message, &borrowed).expect("room");
        drop(writers);
        let received: Received<Message> = other.receive(MOST).expect("a message").expect("an open channel");
        assert_eq!(received.message, message);
        assert_eq!(received.descriptors.len(), MAX_DESCRIPTORS);
        for (number, (descriptor, mut reader)) in received.descriptors.into_iter().zip(readers).enumerate() {
            let flags = rustix::io::fcntl_getfd(&descriptor).expect("an open descriptor");
            assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
            File::from(descriptor).write_all(&[number as u8]).expect("an open pipe");
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).expect("an open pipe");
            assert_eq!(bytes, [number as u8]);
        }
    }
    let many = vec![one.as_fd(); MAX_DESCRIPTORS + 1];
    let error = one.send(&Message::Empty, &many).expect_err("too many");
    assert!(matches!(error, ChannelError::TooManyDescriptors(20)), "{error:?}");
}

#[test]
fn what_was_sent_before_the_end_is_received() {
    let (one, other) = Channel::pair().expect("a pair");
    one.send(&Message::Bytes(vec![1]), &[]).expect("room");
    one.send(&Message::Bytes(vec![2; 40_000]), &[]).expect("room");
    // The peer closes with an unread message, so the kernel reports a reset first.
    other.send(&Message::Empty, &[]).expect("room");
    drop(one);
    assert_eq!(receive(&other), Message::Bytes(vec![1]));
    assert_eq!(receive(&other), Message::Bytes(vec![2; 40_000]));
    assert!(other.receive::<Message>(MOST).expect("an end").is_none());
    let error = other.send(&Message::Empty, &[]).expect_err("a closed end");
    assert!(matches!(error, ChannelError::Closed), "{error:?}");
}

#[test]
fn shut_down_wakes_all_receivers_of_both_ends() {
    let (one, other) = Channel::pair().expect("a pair");
    thread::scope(|scope| {
        let receivers: Vec<_> = [&one, &one, &other, &other]
            .map(|channel| scope.spawn(|| channel.receive::<Message>(MOST)))
            .into_iter()
            .collect();
        one.shut_down();
        for receiver in receivers {
            assert!(receiver.join().expect("no panic").expect("no error").is_none());
        }
    });
    one.shut_down();
}

#[test]
fn several_threads_receive_whole_messages() {
    const MESSAGES: u32 = 500;
    let (one, other) = Channel::pair().expect("a pair");
    let body = |number: u32| number.to_le_bytes().repeat(1 + (number as usize * 37) % 9_000);
    let seen: BTreeSet<u32> = thread::scope(|scope| {
        let receivers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut seen = Vec::new();
                    while let Some(received) = other.receive(MOST).expect("a message") {
                        let (number, bytes): (u32, Vec<u8>) = received.message;
                        assert!(bytes == body(number), "message {number} is damaged");
                        seen.push(number);
                    }
                    seen
                })
            })
            .collect();
        let senders: Vec<_> = (0..2)
            .map(|half| {
                let one = &one;
                scope.spawn(move || {
                    for number in (half..MESSAGES).step_by(2) {
                        one.send(&(number, body(number)), &[]).expect("room");
                    }
                })
            })
            .collect();
        senders.into_iter().for_each(|sender| sender.join().expect("no panic"));
        one.shut_down();
        receivers.into_iter().flat_map(|receiver| receiver.join().expect("no panic")).collect()
    });
    assert!(seen.into_iter().eq(0..MESSAGES));
}

#[test]
fn time_limits_of_the_socket_hold() {
    let (one, other) = Channel::pair().expect("a pair");
    let limit = Some(Duration::from_millis(10));
    set_socket_timeout(&one, Timeout::Recv, limit).expect("a time limit");
    set_socket_timeout(&one, Timeout::Send, limit).expect("a time limit");
    let error = one.receive::<Message>(MOST).expect_err("nothing was sent");
    assert!(matches!(error, ChannelError::WouldBlock), "{error:?}");
    let error = loop {
        if let Err(error) = one.send(&Message::Bytes(vec![0; 10_000]), &[]) {
            break error;
        }
    };
    assert!(matches!(error, ChannelError::WouldBlock), "{error:?}");
    assert_eq!(receive(&other), Message::Bytes(vec![0; 10_000]));
}

#[test]
fn a_channel_survives_its_conversion() {
    let (one, other) = Channel::pair().expect("a pair");
    let descriptor = OwnedFd::from(one);
    Channel::from(descriptor).send(&Message::Empty, &[]).expect("room");
    assert_eq!(receive(&other), Message::Empty);
}
