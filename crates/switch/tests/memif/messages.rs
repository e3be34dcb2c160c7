//! Peers that break the protocol before they are connected.

use super::memif_peer::{
    COOKIE, Client, Peer, REGION, RINGS, SIZE, VERSION, add_region, add_ring, connect_message, event, hello,
    init, listen, memory, message,
};
use super::{Socket, awaited, gone, look, settings};
use rustix::fs::SealFlags;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};
use switch::Driver;
use switch::driver::{LinkState, MemifPort, MemifSettings};

/// How long another thread may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A server that goes on with the next client, whatever the one before did.
fn check_refused(server: &mut MemifPort, socket: &Socket, client: &Peer, case: &str, why: &str) {
    look(&mut [server]);
    let expected = format!("no client is connected: {why}");
    assert_eq!(awaited(server), expected, "{case}");
    let told = why.chars().take(95).collect::<String>();
    let is_left = why.starts_with("the peer has ended") || why.starts_with("the peer has closed");
    assert_eq!(client.reason(), (!is_left).then_some(told), "{case}");
    // While another thread closes what the client sent, others are turned away.
    let next = || {
        let next = Client::new(&socket.0, 3, b"hush");
        next.peer.send(&connect_message(), &[]);
        look(&mut [server]);
        (server.link_state() == Some(LinkState::Up)).then_some(next)
    };
    let start = Instant::now();
    let next = std::iter::repeat_with(next).take_while(|_| start.elapsed() < TIMEOUT).flatten().next();
    assert!(next.is_some(), "{case}");
    drop(next);
    look(&mut [server]);
    assert_eq!(awaited(server), "no client is connected: the peer has closed the connection", "{case}");
}

/// Steps before the one that is wrong.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Step {
    Nothing,
    Init,
    Region,
    Rings,
}

/// What a client does wrong: its name, the steps before it, the message with its descriptors, and why it is refused.
type Case<'a> = (&'a str, Step, Vec<u8>, &'a [BorrowedFd<'a>], &'a str);

#[test]
fn clients_that_break_the_protocol_are_refused() {
    let socket = Socket::new();
    let mut server = socket.server(settings(3, "hush"));
    let (good, file) = (memory(REGION, SealFlags::SHRINK), File::open("/dev/null").unwrap());
    good.write_all_at(&COOKIE.to_ne_bytes(), RINGS[0]).unwrap();
    good.write_all_at(&COOKIE.to_ne_bytes(), RINGS[1]).unwrap();
    let open = memory(REGION, SealFlags::GROW);
    let large = memory(1 << 30, SealFlags::SHRINK);
    let bell = event();
    let (good, file, open) = (good.as_fd(), file.as_fd(), open.as_fd());
    let (large, bell) = (large.as_fd(), bell.as_fd());
    let none: &[BorrowedFd<'_>] = &[];
    let unexpected = "the peer sent a message that does not belong here";
    let ring = |offset, log2_size| add_ring(true, 0, offset, log2_size, 0);
    let place = "a ring of the peer is too large or not inside its region";
    let no_descriptor = "a message of the peer came without its descriptor";
    let not_memory = "a region of the peer is not a memory file with small pages: switch zero copy off there";
    let too_much = "the peer shares too much memory: give it smaller rings or buffers";
    let cases: &[Case<'_>] = &[
        ("short message", Step::Nothing, vec![3, 0], none, unexpected),
        ("long message", Step::Nothing, vec![0; SIZE + 1], none, unexpected),
        ("empty message", Step::Nothing, Vec::new(), none, "the peer has closed the connection"),
        ("unknown type", Step::Nothing, message(9, &[]).into(), none, unexpected),
        ("no type", Step::Nothing, message(0, &[]).into(), none, unexpected),
        ("greeting", Step::Nothing, hello(VERSION, VERSION, 10).into(), none, unexpected),
        ("early region", Step::Nothing, add_region(0, REGION).into(), &[good], unexpected),
        ("early ring", Step::Nothing, ring(0, 4).into(), &[bell], unexpected),
        ("early end", Step::Nothing, connect_message().into(), none, unexpected),
        (
            "old version",
            Step::Nothing,
            init(0x100, 3, 0, b"hush").into(),
            none,
            "the peer has memif versions 1.0 to 1.0, not 2.0",
        ),
        (
            "other id",
            Step::Nothing,
            init(VERSION, 4, 0, b"hush").into(),
            none,
            "the peer wants the interface with the number 4: use the same --id on both sides",
        ),
        (
            "IP mode",
            Step::Nothing,
            init(VERSION, 3, 1, b"hush").into(),
            none,
            "the peer's interface has mode 1: use ethernet",
        ),
        ("no secret", Step::Nothing, init(VERSION, 3, 0, b"").into(), none, "the peer has another secret"),
        (
            "part of the secret",
            Step::Nothing,
            init(VERSION, 3, 0, b"hus").into(),
            none,
            "the peer has another secret",
        ),
        (
            "longer secret",
            Step::Nothing,
            init(VERSION, 3, 0, b"hush!").into(),
            none,
            "the peer has another secret",
        ),
        (
            "farewell",
            Step::Nothing,
            message(8, &[&[0; 4], b"tired"]).into(),
            none,
            "the peer has ended the connection: tired",
        ),
        ("second start", Step::Init, init(VERSION, 3, 0, b"hush").into(), none, unexpected),
        ("descriptor with an acknowledgement", Step::Init, message(1, &[]).into(), &[file], unexpected),
        ("descriptor with the end", Step::Init, connect_message().into(), &[bell], unexpected),
        ("region without a file", Step::Init, add_region(0, REGION).into(), none, no_descriptor),
        ("region of a device", Step::Init, add_region(0, REGION).into(), &[file], not_memory),
        ("region of an event", Step::Init, add_region(0, REGION).into(), &[bell], not_memory),
        (
            "region that can shrink",
            Step::Init,
            add_region(0, REGION).into(),
            &[open],
            "a region of the peer can be shortened: its memory file needs the seal F_SEAL_SHRINK",
        ),
        (
            "region longer than its file",
            Step::Init,
            add_region(0, REGION + 1).into(),
            &[good],
            "a region of the peer is longer than its memory file",
        ),
        (
            "empty region",
            Step::Init,
            add_region(0, 0).into(),
            &[good],
            "a region of the peer is longer than its memory file",
        ),
        ("huge region", Step::Init, add_region(0, 1 << 30).into(), &[large], too_much),
        ("endless region", Step::Init, add_region(0, u64::MAX).into(), &[large], too_much),
        (
            "second region first",
            Step::Init,
            add_region(1, REGION).into(),
            &[good],
            "the peer sent region 1 out of order",
        ),
        (
            "region twice",
            Step::Region,
            add_region(0, REGION).into(),
            &[good],
            "the peer sent region 0 out of order",
        ),
        ("too much in sum", Step::Region, add_region(1, 128 << 20).into(), &[large], too_much),
        ("ring without an event", Step::Region, ring(0, 4).into(), none, no_descriptor),
        (
            "ring with a file",
            Step::Region,
            ring(0, 4).into(),
            &[file],
            "the descriptor of a ring is not an eventfd",
        ),
        (
            "ring with memory",
            Step::Region,
            ring(0, 4).into(),
            &[good],
            "the descriptor of a ring is not an eventfd",
        ),
        (
            "second ring first",
            Step::Region,
            add_ring(true, 1, 0, 4, 0).into(),
            &[bell],
            "the peer sent ring 1 twice, or more rings than were offered",
        ),
        ("private header", Step::Region, add_ring(true, 0, 0, 4, 8).into(), &[bell], unexpected),
        (
            "end without rings",
            Step::Region,
            connect_message().into(),
            none,
            "the peer has no ring for one of the directions, or left one out",
        ),
        (
            "ring twice",
            Step::Rings,
            ring(0, 4).into(),
            &[bell],
            "the peer sent ring 0 twice, or more rings than were offered",
        ),
    ];
    let before = |step: Step, ring: &[u8]| {
        let peer = Peer::connect(&socket.0);
        let steps: [(Step, &[u8], &[BorrowedFd<'_>]); 4] = [
            (Step::Init, &init(VERSION, 3, 0, b"hush"), none),
            (Step::Region, &add_region(0, REGION), &[good]),
            (Step::Rings, ring, &[bell]),
            (Step::Rings, &add_ring(false, 0, RINGS[1] as u32, 4, 0), &[bell]),
        ];
        for (_, message, descriptors) in steps.iter().filter(|(of, ..)| *of <= step) {
            peer.send(message, descriptors);
        }
        peer
    };
    for (case, step, message, descriptors, why) in cases {
        let peer = before(*step, &ring(0, 4));
        look(&mut [&mut server]);
        peer.send(message, descriptors);
        check_refused(&mut server, &socket, &peer, case, why);
    }
    // Rings are looked at when the client is ready.
    let end = REGION as u32;
    for (case, wrong, why) in [
        ("ring outside", ring(end, 4), place),
        ("ring over the end", ring(end - 128 - 16 * 16 + 16, 4), place),
        ("ring at the highest offset", ring(u32::MAX - 15, 14), place),
        ("too many slots", ring(0, 15), place),
        ("absurd slots", ring(0, 255), place),
        ("crooked offset", ring(8, 4), place),
        ("no cookie", ring(1024, 4), "a ring of the peer does not begin with memif's number"),
    ] {
        let peer = before(Step::Rings, &wrong);
        peer.send(&connect_message(), none);
        check_refused(&mut server, &socket, &peer, case, why);
    }
    // A ring in another region than there is.
    let mut elsewhere = ring(0, 4);
    elsewhere[6] = 1;
    let peer = before(Step::Rings, &elsewhere);
    peer.send(&connect_message(), none);
    check_refused(&mut server, &socket, &peer, "ring elsewhere", place);
    // Small regions cost mappings.
    let peer = before(Step::Init, &[]);
    for index in 0..9 {
        peer.send(&add_region(index, 4096), &[good]);
    }
    check_refused(&mut server, &socket, &peer, "too many regions", too_much);
    // Clients that leave at any step.
    for step in [Step::Nothing, Step::Init, Step::Region, Step::Rings] {
        let peer = before(step, &ring(0, 4));
        look(&mut [&mut server]);
        drop(peer);
        look(&mut [&mut server]);
        assert_eq!(awaited(&server), "no client is connected: the peer has closed the connection");
    }
}

/// A server made by hand.
fn by_hand(listener: &OwnedFd) -> Peer {
    let accepted = rustix::net::accept_with(listener, rustix::net::SocketFlags::NONBLOCK).unwrap();
    Peer(accepted)
}

#[test]
fn servers_that_break_the_protocol_are_left() {
    let socket = Socket::new();
    let listener = listen(&socket.0);
    let unexpected = "the peer sent a message that does not belong here";
    let greeting = hello(VERSION, 0x300, 5);
    let cases: &[(&str, &[Vec<u8>], &str)] = &[
        (
            "newer version",
            &[hello(0x201, 0x300, 10).into()],
            "the peer has memif versions 2.1 to 3.0, not 2.0",
        ),
        (
            "older version",
            &[hello(0x100, 0x1ff, 10).into()],
            "the peer has memif versions 1.0 to 1.255, not 2.0",
        ),
        ("early acknowledgement", &[message(1, &[]).into()], unexpected),
        ("early end", &[message(7, &[]).into()], unexpected),
        ("second greeting", &[greeting.into(), greeting.into()], unexpected),
        ("client's message", &[greeting.into(), connect_message().into()], unexpected),
        ("short message", &[vec![2; 44]], unexpected),
        (
            "farewell",
            &[greeting.into(), message(8, &[&[0; 4], b"no"]).into()],
            "the peer has ended the connection: no",
        ),
        (
            "message after the end",
            &[greeting.into(), message(7, &[]).into(), message(7, &[]).into()],
            unexpected,
        ),
    ];
    for (case, messages, why) in cases {
        let mut client = socket.client(settings(0, ""));
        let server = by_hand(&listener);
        messages.iter().for_each(|message| server.send(message, &[]));
        look(&mut [&mut client]);
        assert_eq!(gone(&client), format!("no server is connected: {why}"), "{case}");
        let is_left = why.starts_with("the peer has ended");
        assert_eq!(server.reason(), (!is_left).then(|| why.to_string()), "{case}");
    }
    // Silence, and a server that leaves.
    let mut client = socket.client(MemifSettings { time_limit: Duration::ZERO, ..settings(0, "") });
    let _silent = by_hand(&listener);
    assert_eq!(client.due_in(), Some(Duration::ZERO));
    look(&mut [&mut client]);
    assert_eq!(gone(&client), "no server is connected: the peer did not answer in time");
    let (mut client, server) = (socket.client(settings(0, "")), by_hand(&listener));
    assert_eq!(client.link_state(), Some(LinkState::Connected));
    assert!(client.due_in().is_some_and(|due| !due.is_zero()));
    drop(server);
    look(&mut [&mut client]);
    assert_eq!(gone(&client), "no server is connected: the peer has closed the connection");
    // One that leaves while the client sends, without a word and with one.
    for (word, why) in [
        (None, "the peer has closed the connection"),
        (Some(message(8, &[&[0; 4], b"no ring"])), "the peer has ended the connection: no ring"),
    ] {
        let (mut client, server) = (socket.client(settings(0, "")), by_hand(&listener));
        server.send(&hello(VERSION, VERSION, 10), &[]);
        word.iter().for_each(|word| server.send(word, &[]));
        drop(server);
        look(&mut [&mut client]);
        assert_eq!(gone(&client), format!("no server is connected: {why}"));
    }
    // One that has fewer rings than it says: libmemif leaves without a word, and DPDK with one.
    for (word, text) in
        [(None, ""), (Some(message(8, &[&[0; 4], b"Invalid ring index"])), " (Invalid ring index)")]
    {
        let mut client = socket.client(MemifSettings { queues: 3, ..settings(0, "") });
        let server = by_hand(&listener);
        let mut greeting = hello(VERSION, VERSION, 10);
        greeting[40..44].copy_from_slice(&[0xff; 4]);
        server.send(&greeting, &[]);
        look(&mut [&mut client]);
        word.iter().for_each(|word| server.send(word, &[]));
        drop(server);
        look(&mut [&mut client]);
        let why = format!(
            "the peer has closed the connection when it was given 3 rings in each direction{text}: try --queues 1"
        );
        assert_eq!(gone(&client), format!("no server is connected: {why}"));
    }
}

/// A silent client keeps its place for a time only.
#[test]
fn a_silent_client_makes_room_for_the_next() {
    let socket = Socket::new();
    let mut server = socket.server(MemifSettings { time_limit: Duration::ZERO, ..settings(0, "") });
    let silent = Peer::connect(&socket.0);
    server.prepare_sleep().unwrap();
    assert_eq!(server.link_state(), Some(LinkState::Connected));
    server.prepare_sleep().unwrap();
    assert_eq!(awaited(&server), "no client is connected: the peer did not answer in time");
    assert_eq!(silent.reason().as_deref(), Some("the peer did not answer in time"));
}
