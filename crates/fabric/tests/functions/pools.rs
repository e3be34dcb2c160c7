//! Functions that share the packet pool of their owner.

use super::function_process::{FunctionProcess, Socket};
use super::{SINK, TOKEN, TestBed, lan, service, support, with_threads};
use model::{Attachment, CreateBox, EventKind, MAX_REPLICAS, Owner};
use protocol::fabric::{ServiceDefinition, orders};
use protocol::function::RefusedReason;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;

/// Functions in the pool of the boxes come and go under traffic, with packets in their rings and in hand, and write what they want
/// into slots. Each packet is accounted for, and all buffers come back.
#[test]
fn a_function_in_a_pool_returns_its_buffers() {
    with_threads(|threads| {
        let bed = TestBed::with_pool("pool", threads, ("in=0", &[]), Some(Owner::default()));
        // Functions with the largest rings use up the pool. The last one gets memory of its own.
        let most = |bed: &TestBed| {
            let mut there = Vec::new();
            loop {
                let function = bed.socket.connect().register(TOKEN, 2048).unwrap();
                let is_pooled = function.pool.is_some();
                there.push(function);
                if !is_pooled {
                    break;
                }
            }
            let what = "for which the packet pool of its owner has no room";
            let refused = |bed: &TestBed| {
                bed.events(EventKind::FunctionAttached).last().is_some_and(|last| last.contains(what))
            };
            bed.until("the event is recorded", refused);
            let count = there.len();
            drop(there);
            bed.until("they are gone", |bed| !bed.up().contains(&true));
            count
        };
        let before = most(&bed);
        let (mut function, mut sent, mut passed, mut kept, mut short) = (bed.join(), 0, 0, 0, 0);
        let (pool, buffers) = (file_number(function.pool.as_ref().unwrap()), function.welcome.buffer_count);
        assert_eq!((u64::from(buffers) * 2048, function.welcome.buffers), (256 << 20, 0));
        assert!(function.pool.as_ref().unwrap().set_len(0).is_err());
        for round in 0..12u64 {
            bed.send(40);
            sent += 40;
            bed.until("the function has them", |bed| bed.port("nf-1.0").1 == sent);
            let is_hostile = round % 3 == 2;
            let some = function.forward(if is_hostile { u64::MAX } else { 10 + round }, 0);
            passed += some;
            bed.until("packets arrive", |bed| bed.read("sink", "got.count") == passed);
            // Short packets in buffers of others, and in such that no one has.
            if is_hostile {
                let wrong = (0..buffers).step_by(4099);
                short += wrong.len() as u64;
                wrong.for_each(|buffer| function.push_raw(u64::from(buffer) | 9 << 32));
                function.publish();
                bed.until("they are refused", |bed| bed.port("nf-1.0").2.get("too_short") == Some(&short));
            }
            kept += 40 - some;
            drop(function);
            bed.until("it is gone", |bed| !bed.up()[0]);
            function = bed.join();
            assert_eq!((function.welcome.instance.as_str(), bed.up()[0]), ("nf-1", true));
            assert_eq!(file_number(function.pool.as_ref().unwrap()), pool);
            bed.check_account();
        }
        let drops = BTreeMap::from([("down".into(), kept), ("too_short".into(), short)]);
        assert_eq!((bed.port("nf-1.0"), sent), ((passed + short, sent, drops), passed + kept));
        drop(function);
        bed.until("it is gone", |bed| !bed.up()[0]);
        assert_eq!(most(&bed), before);
        bed.check_account();
    });
}

/// All replicas of a service have room in one pool, with one face and 512 slots each. The next function and the next box get
/// memory of their own.
#[test]
fn a_pool_has_room_for_all_replicas_of_a_service() {
    // As the launcher does.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let owner: Owner = "alice".parse().unwrap();
    let bed = TestBed::with_pool("room", 1, ("in=0", &[]), Some(owner.clone()));
    let pooled = |name: &str| ServiceDefinition { pool: Some(owner.clone()), ..service(name, "in=0", &[]) };
    bed.steer(vec![pooled("nf"), pooled("other")]).unwrap();
    let register = |socket: &Socket| socket.connect().register(TOKEN, 512);
    let replicas: Vec<FunctionProcess> = (0..MAX_REPLICAS).map(|_| register(&bed.socket).unwrap()).collect();
    let pool = file_number(replicas[0].pool.as_ref().unwrap());
    assert!(replicas.iter().all(|function| function.pool.as_ref().map(file_number) == Some(pool)));
    assert_eq!(bed.up(), [true; MAX_REPLICAS as usize]);
    assert_eq!(register(&bed.socket).err(), Some(RefusedReason::Full));
    let socket = Socket::new("room-other");
    bed.serve_at("other", &socket).unwrap();
    assert!(register(&socket).unwrap().pool.is_none());
    let found = support::definition("late", 1, Attachment::Switch(lan()));
    let definition = CreateBox { owner, share_packets: true, ..found };
    bed.client.ask(orders::DefineBox { definition, stopped: false, prepare: false }).unwrap();
    bed.start("late", SINK);
    assert_eq!(bed.read("late", "got.count"), 0);
    // Those that leave make room.
    drop(replicas);
    bed.until("they have left", |bed| bed.detached(0).len() > usize::from(MAX_REPLICAS));
    assert!(register(&bed.socket).unwrap().pool.is_some());
    bed.client.ask(orders::End {}).unwrap();
}

/// The first member makes the pool, and the next ones share it. When all have ended, the next one gets another pool, which processes
/// that have left can't reach.
#[test]
fn the_next_members_get_another_pool() {
    with_threads(|threads| {
        let owner: Owner = "ann".parse().unwrap();
        let bed = TestBed::with_pool("pools", threads, ("in=0", &[]), Some(owner));
        let number = |function: &FunctionProcess| file_number(function.pool.as_ref().unwrap());
        let (first, second) = (bed.join(), bed.join());
        let left = first.pool.as_ref().unwrap().try_clone().unwrap();
        assert_eq!(number(&first), number(&second));
        assert_ne!(first.file_number(), second.file_number());
        drop(first);
        bed.until("it is gone", |bed| bed.up() == [false, true]);
        let third = bed.join();
        assert_eq!(number(&third), file_number(&left));
        drop((second, third));
        bed.until("they are gone", |bed| bed.up() == [false, false]);
        let mut next = bed.join();
        assert_ne!(number(&next), file_number(&left));
        // The boxes are those of another owner, so that packets are copied.
        bed.send(100);
        bed.until("the function has them", |bed| bed.port("nf-1.0").1 == 100);
        assert_eq!(next.forward(u64::MAX, 0), 100);
        bed.until("packets arrive", |bed| bed.read("sink", "got.count") == 100);
        // A service whose functions are no longer trusted lets them go.
        bed.steer(vec![service("nf", "in=0", &[])]).unwrap();
        bed.until("it is gone", |bed| next.receive_now().is_none() && bed.instances(0).is_empty());
        assert!(bed.join().pool.is_none());
        bed.check_account();
    });
}

fn file_number(file: &std::fs::File) -> u64 {
    file.metadata().unwrap().ino()
}
