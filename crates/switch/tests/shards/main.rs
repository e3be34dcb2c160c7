//! Switches that several threads run together: where frames go, and that each of them is counted.

mod chains;

use boundary::Slots;
use packet::MacAddr;
use sandbox::{EventFd, Host, Sandbox, Settings, Target, Worker};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use switch::driver::{BoxPort, Pipe};
use switch::{
    Batch, Counters, Driver, ForwardingMode, LearningBridge, LearningSettings, PortId, PortSettings, REASONS,
    RateLimit, Reason, Shards, SwitchRunner, wait,
};
use test_support::{Capability, require};

const TIMEOUT: Duration = Duration::from_secs(40);

/// What is counted between a switch and what is behind its port.
const PORT_REASONS: [Reason; 7] = [
    Reason::TOO_LONG,
    Reason::FULL,
    Reason::FAULTY,
    Reason::DOWN,
    Reason::MISSED,
    Reason::BOX_ENDED,
    Reason::THREAD_FULL,
];

type Switch = Shards<ForwardingMode>;

const OURS: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const THEIRS: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

/// A UDP frame of a flow between the two, in one of its directions.
fn frame(flow: u16, back: bool) -> Vec<u8> {
    let mut frame = vec![0; 64];
    let ([to, from], [source, destination]) =
        if back { ([OURS, THEIRS], [53, flow]) } else { ([THEIRS, OURS], [flow, 53]) };
    frame[..6].copy_from_slice(&to.0);
    frame[6..12].copy_from_slice(&from.0);
    frame[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17]);
    let addresses = [[10, 0, 0, 1], [10, 0, 0, 2]];
    let [near, far] = if back { [1, 0] } else { [0, 1] };
    frame[26..30].copy_from_slice(&addresses[near]);
    frame[30..34].copy_from_slice(&addresses[far]);
    frame[34..36].copy_from_slice(&u16::to_be_bytes(source));
    frame[36..38].copy_from_slice(&u16::to_be_bytes(destination));
    frame
}

fn bridge(ageing_ns: u64) -> ForwardingMode {
    ForwardingMode::Learning(LearningBridge::new(LearningSettings {
        ageing_ns,
        seed: 7,
        ..LearningSettings::default()
    }))
}

/// A learning switch with this many shards.
fn switch(count: usize) -> Switch {
    let ageing = 300_000_000_000;
    Shards::new(bridge(ageing), (1..count).map(|_| bridge(ageing)).collect(), 5).unwrap()
}

/// Adds a port with a single queue. Returns its other end.
fn add_pipe(switch: &mut Switch) -> (PortId, Pipe) {
    let (inside, outside) = Pipe::pair().unwrap();
    (switch.add_port(vec![Box::new(inside)], &PortSettings::default()).unwrap(), outside)
}

/// Adds a port with several queues. Returns their other ends.
fn add_pipes(switch: &mut Switch, count: usize) -> (PortId, Vec<Pipe>) {
    let (inside, outside) = pipes(count);
    (switch.add_port(inside, &PortSettings::default()).unwrap(), outside)
}

fn pipes(count: usize) -> (Vec<Box<dyn Driver>>, Vec<Pipe>) {
    let ends = (0..count).map(|_| Pipe::pair().unwrap());
    ends.map(|(inside, outside)| (Box::new(inside) as Box<dyn Driver>, outside)).unzip()
}

fn send(pipe: &mut Pipe, frames: &[Vec<u8>]) {
    for part in frames.chunks(256) {
        let mut batch = Batch::new(256);
        part.iter().for_each(|frame| assert!(batch.push(frame)));
        let numbers: Vec<u32> = (0..part.len() as u32).collect();
        assert_eq!(pipe.send(&batch, &numbers).unwrap().frames, part.len() as u64);
    }
}

fn receive(pipe: &mut Pipe) -> Vec<Vec<u8>> {
    let (mut batch, mut all) = (Batch::new(256), Vec::new());
    loop {
        pipe.receive(&mut batch).unwrap();
        if batch.is_empty() {
            return all;
        }
        all.extend(batch.frames().map(<[u8]>::to_vec));
        batch.clear();
    }
}

/// Runs all shards in turn, until none of them moves anything.
fn run(switch: &mut Switch) {
    while switch.shards_mut().map(SwitchRunner::step).sum::<usize>() > 0 {}
}

/// What each shard received from a port.
fn received(switch: &mut Switch, port: PortId) -> Vec<u64> {
    switch.switches().map(|shard| shard.counters(port).unwrap().received_frames).collect()
}

/// Checks the books of the switch and its ports: each frame that came is somewhere.
fn check_books(switch: &mut Switch, ports: &[PortId]) {
    switch.settle();
    let lost = |counters: &Counters, of_port: bool| -> u64 {
        let reasons = REASONS.into_iter().filter(|reason| PORT_REASONS.contains(reason) == of_port);
        reasons.map(|reason| counters.dropped(reason)).sum()
    };
    for port in ports {
        let counters = switch.counters(*port).unwrap();
        let books = switch.port_books(*port).unwrap();
        assert_eq!(
            books.came + books.planned,
            counters.received_frames + counters.sent_frames + lost(&counters, true),
            "{port:?}: {books:?} {counters:?}"
        );
        assert_eq!(books.went, counters.sent_frames);
    }
    let books = switch.books();
    assert_eq!(
        books.counters.received_frames + books.copied,
        books.planned + lost(&books.counters, false),
        "{books:?}"
    );
}

#[test]
fn both_directions_of_a_flow_meet_in_one_thread() {
    let mut switch = switch(3);
    let [(left, mut ours), (right, mut theirs)] = [add_pipe(&mut switch), add_pipe(&mut switch)];
    assert_eq!(switch.count(), 3);
    let mut shares = [0; 3];
    let mut before = [vec![0; 3], vec![0; 3]];
    for flow in 0..600 {
        send(&mut ours, &[frame(flow, false)]);
        run(&mut switch);
        assert_eq!(receive(&mut theirs), [frame(flow, false)]);
        send(&mut theirs, &[frame(flow, true)]);
        run(&mut switch);
        assert_eq!(receive(&mut ours), [frame(flow, true)]);
        let after = [left, right].map(|port| received(&mut switch, port));
        let [there, back] = [0, 1].map(|side: usize| {
            let changed = |shard: &usize| after[side][*shard] != before[side][*shard];
            (0..3).filter(changed).collect::<Vec<_>>()
        });
        assert_eq!((there.len(), &there), (1, &back), "flow {flow}");
        shares[there[0]] += 1;
        before = after;
    }
    assert!(shares.iter().all(|share| *share > 120), "{shares:?}");
    let counters = [left, right].map(|port| switch.counters(port).unwrap());
    let expected = Counters {
        received_frames: 600,
        received_bytes: 600 * 64,
        sent_frames: 600,
        sent_bytes: 600 * 64,
        ..Counters::default()
    };
    assert_eq!(counters, [expected; 2]);
    check_books(&mut switch, &[left, right]);
}

/// Frames that come by any queue of a port reach the thread of their flow, and leave by a queue of that thread, if it has one.
#[test]
fn queues_of_a_port_are_in_several_threads() {
    for (threads, queues) in [(2, 2), (3, 2), (4, 3), (3, 1)] {
        let mut switch = switch(threads);
        let (left, mut ours) = add_pipes(&mut switch, queues);
        let (right, mut theirs) = add_pipes(&mut switch, queues);
        let exchange = |switch: &mut Switch, ours: &mut [Pipe], theirs: &mut [Pipe]| {
            let mut left_by = [Vec::new(), Vec::new()];
            for back in [false, true] {
                let (from, to) = if back { (&mut *theirs, &mut *ours) } else { (&mut *ours, &mut *theirs) };
                let count = from.len();
                for flow in 0..400 {
                    send(&mut from[usize::from(flow) % count], &[frame(flow, back)]);
                }
                let before = received(switch, if back { right } else { left });
                run(switch);
                let mut all = Vec::new();
                for queue in to.iter_mut() {
                    let frames = receive(queue);
                    left_by[usize::from(back)].push(frames.len() as u64);
                    all.extend(frames);
                }
                let mut expected: Vec<_> = (0..400).map(|flow| frame(flow, back)).collect();
                all.sort();
                expected.sort();
                assert!(all == expected, "{threads} threads: {left_by:?}");
                if to.len() == threads {
                    let after = received(switch, if back { right } else { left });
                    let handled: Vec<u64> =
                        after.iter().zip(&before).map(|(after, before)| after - before).collect();
                    assert_eq!(left_by[usize::from(back)], handled, "each thread has a queue of its own");
                }
            }
            left_by
        };
        let left_by = exchange(&mut switch, &mut ours, &mut theirs);
        assert!(left_by.iter().flatten().all(|frames| *frames > 50), "{left_by:?}");
        check_books(&mut switch, &[left, right]);
        // The device comes back with another number of queues, and with those of before.
        for count in [1, threads, queues] {
            let (inside, mut outside) = pipes(count);
            switch.set_drivers(left, inside);
            let left_by = exchange(&mut switch, &mut outside, &mut theirs);
            assert!(left_by[1].len() == count && left_by[1].iter().all(|frames| *frames > 50), "{left_by:?}");
            check_books(&mut switch, &[left, right]);
        }
        let counters = switch.counters(left).unwrap();
        let expected = Counters {
            received_frames: 1600,
            received_bytes: 1600 * 64,
            sent_frames: 1600,
            sent_bytes: 1600 * 64,
            ..Counters::default()
        };
        assert_eq!(counters, expected);
        assert_eq!(switch.remove_port(left), Some(expected));
        check_books(&mut switch, &[right]);
    }
}

#[test]
fn an_address_is_known_to_all_threads_and_ages_in_all() {
    let second = 1_000_000_000;
    let mut switch = Shards::new(bridge(second), vec![bridge(second), bridge(second)], 5).unwrap();
    let [(left, mut ours), (right, mut theirs), (third, mut others)] =
        std::array::from_fn(|_| add_pipe(&mut switch));
    send(&mut ours, &[frame(1, false)]);
    run(&mut switch);
    // Nobody knows the destination yet.
    assert_eq!((receive(&mut theirs).len(), receive(&mut others).len()), (1, 1));
    let known = |switch: &mut Switch, address: MacAddr, at: u64| {
        let find = |forward: &mut ForwardingMode| match forward {
            ForwardingMode::Learning(bridge) => bridge.find(address, at),
            other => panic!("{other:?}"),
        };
        switch.forwards().map(find).collect::<Vec<_>>()
    };
    let now = switch.now();
    assert_eq!(known(&mut switch, OURS, now), [Some(left); 3]);
    assert_eq!(known(&mut switch, OURS, now + 2 * second), [None; 3]);
    assert_eq!(known(&mut switch, THEIRS, now), [None; 3]);
    // Replies in all threads find it: none is flooded.
    send(&mut theirs, &(0..200).map(|flow| frame(flow, true)).collect::<Vec<_>>());
    run(&mut switch);
    assert_eq!((receive(&mut ours).len(), receive(&mut others).len()), (200, 0));
    // The station moves: all threads follow.
    send(&mut others, &[frame(9, false)]);
    run(&mut switch);
    let now = switch.now();
    assert_eq!(known(&mut switch, OURS, now), [Some(third); 3]);
    // An address in use is reported again, in time for the other threads.
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(1500) {
        send(&mut theirs, &[frame(77, true)]);
        run(&mut switch);
        std::thread::yield_now();
    }
    let now = switch.now();
    assert_eq!(known(&mut switch, THEIRS, now), [Some(right); 3]);
    assert_eq!(known(&mut switch, OURS, now), [None; 3]);
    check_books(&mut switch, &[left, right, third]);
    switch.remove_port(right);
    let now = switch.now();
    assert_eq!(known(&mut switch, THEIRS, now), [None; 3]);
}

#[test]
fn frames_that_another_thread_has_no_room_for_are_counted() {
    let mut switch = switch(2);
    let [(left, mut ours), (right, mut theirs)] = [add_pipe(&mut switch), add_pipe(&mut switch)];
    // The first thread drives the left port, the second one the right one.
    let burst: Vec<Vec<u8>> = (0..2000).map(|flow| frame(flow, false)).collect();
    for _ in 0..3 {
        send(&mut ours, &burst);
        while switch.first().step() > 0 {}
    }
    let lost = switch.counters(left).unwrap().dropped(Reason::THREAD_FULL)
        + switch.counters(right).unwrap().dropped(Reason::THREAD_FULL);
    // The ring has 1,024 slots, one of them for the address; the second thread did not run.
    assert_eq!(lost, 6000 - 1023);
    let room = switch.counters(left).unwrap().dropped(Reason::THREAD_FULL);
    assert!(room > 2000 && lost - room > 2000, "{room} of {lost}");
    run(&mut switch);
    assert_eq!(receive(&mut theirs).len(), 1023);
    check_books(&mut switch, &[left, right]);
    // A port that is removed while frames are on their way to it takes them along.
    send(&mut ours, &burst[..300]);
    switch.first().step();
    assert_eq!(switch.remove_port(right).unwrap().sent_frames, 1023 + receive(&mut theirs).len() as u64);
    check_books(&mut switch, &[left]);
}

/// Has threads run the shards of a switch while `body` runs, and puts them back.
fn in_threads(mut switch: Switch, body: impl FnOnce()) -> Switch {
    /// Ends the threads, also when the test fails.
    struct End<'a>(&'a AtomicBool);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let ends = AtomicBool::new(false);
    let shards: Vec<SwitchRunner<ForwardingMode>> =
        (1..switch.count()).filter_map(|shard| switch.take(shard)).collect();
    let run = |runner: &mut SwitchRunner<ForwardingMode>| {
        let mut last = Instant::now();
        while !ends.load(Ordering::Relaxed) {
            if runner.step() > 0 {
                last = Instant::now();
            } else if last.elapsed() > Duration::from_micros(100) {
                wait(std::slice::from_mut(runner), None, Duration::from_millis(200));
            }
        }
    };
    let back = std::thread::scope(|scope| {
        let threads: Vec<_> = shards
            .into_iter()
            .map(|mut shard| {
                scope.spawn(move || {
                    run(&mut shard);
                    shard
                })
            })
            .collect();
        let first = switch.first();
        let main = scope.spawn(move || run(first));
        let end = End(&ends);
        body();
        drop(end);
        main.join().unwrap();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    for (number, shard) in (1..).zip(back) {
        switch.put_back(number, shard);
    }
    switch
}

#[test]
fn threads_that_run_at_once_keep_the_order_and_count_each_frame() {
    let mut switch = switch(3);
    let [(left, mut ours), (right, mut theirs)] = [add_pipe(&mut switch), add_pipe(&mut switch)];
    let (mut sent, mut arrived) = (0, 0);
    let mut last = vec![0u32; 64];
    let numbered = |number: u32| {
        let mut frame = frame((number % 64) as u16, false);
        frame[44..48].copy_from_slice(&number.to_be_bytes());
        frame
    };
    let mut switch = in_threads(switch, || {
        let start = Instant::now();
        for burst in 0..300 {
            let mut batch = Batch::new(256);
            (burst * 100..(burst + 1) * 100).for_each(|number| assert!(batch.push(&numbered(number + 1))));
            let numbers: Vec<u32> = (0..100).collect();
            sent += ours.send(&batch, &numbers).unwrap().frames;
            let until = Instant::now() + Duration::from_millis(if burst % 50 == 49 { 300 } else { 0 });
            loop {
                for frame in receive(&mut theirs) {
                    let number = u32::from_be_bytes(frame[44..48].try_into().unwrap());
                    let flow = (number % 64) as usize;
                    assert!(number > last[flow], "{number} came after {}", last[flow]);
                    last[flow] = number;
                    arrived += 1;
                }
                // Now and then everything arrives, so that the threads sleep.
                if Instant::now() >= until {
                    break;
                }
            }
            assert!(start.elapsed() < TIMEOUT);
        }
    });
    run(&mut switch);
    arrived += receive(&mut theirs).len() as u64;
    check_books(&mut switch, &[left, right]);
    let [left, right] = [left, right].map(|port| switch.counters(port).unwrap());
    let lost = left.dropped(Reason::THREAD_FULL) + right.dropped(Reason::THREAD_FULL);
    assert_eq!((arrived, right.sent_frames), (sent - lost - right.dropped(Reason::FULL), arrived));
    assert!(arrived > 1000, "{arrived} of {sent}");
}

/// Creates a box that sends frames back with addresses exchanged, with a ring pair for each shard.
fn mirror(host: &Host, target: Target, switch: &mut Switch) -> (Sandbox, PortId) {
    let wake_event = Arc::new(EventFd::from(switch.first().wake_event().unwrap()));
    let port = sandbox::PortSettings { slots: Slots::new(128).unwrap(), mac: [0; 6], mtu: 1500 };
    let pairs = switch.count();
    let settings =
        Settings { ports: vec![port], pairs, wake_event: Some(wake_event), ..Settings::new(1 << 20) };
    let mut mirror = host.create(target, &settings).unwrap();
    mirror.start().unwrap();
    mirror.install("", "mirror", TIMEOUT).unwrap();
    let drivers = (0..pairs).map(|pair| {
        let (port, doorbell) = (mirror.take_port(pair).unwrap(), mirror.doorbell());
        Box::new(BoxPort::new(port, move || doorbell.ring())) as Box<dyn Driver>
    });
    let drivers = drivers.collect();
    let port = switch.add_port(drivers, &PortSettings::default()).unwrap();
    (mirror, port)
}

/// A box has a ring pair for each thread: its frames pass no other thread.
#[test]
fn a_box_has_a_ring_pair_for_each_thread() {
    let host = Host::new(image::PROBE).unwrap();
    let worker = Worker::start().unwrap();
    let machines = require(Capability::Kvm).then_some(Target::Vm(&worker));
    for target in machines.into_iter().chain([Target::Process]) {
        let mut switch = switch(3);
        let (_mirror, inside) = mirror(&host, target, &mut switch);
        let (uplink, mut ours) = add_pipe(&mut switch);
        let frames: Vec<Vec<u8>> = (0..90).map(|flow| frame(flow, false)).collect();
        let (start, mut back) = (Instant::now(), Vec::new());
        for round in 1..=20 {
            send(&mut ours, &frames);
            while back.len() < 90 * round {
                assert!(start.elapsed() < TIMEOUT, "{} came back", back.len());
                run(&mut switch);
                back.extend(receive(&mut ours));
            }
        }
        let shares = received(&mut switch, inside);
        assert!(shares.iter().all(|share| *share > 300), "{shares:?}");
        // What came from the box belonged to the thread that took it: only what came from the uplink passed between threads.
        assert_eq!(received(&mut switch, uplink), shares);
        let counters = [uplink, inside].map(|port| switch.counters(port).unwrap());
        let expected = Counters {
            received_frames: 1800,
            received_bytes: 1800 * 64,
            sent_frames: 1800,
            sent_bytes: 1800 * 64,
            ..Counters::default()
        };
        assert_eq!(counters, [expected; 2]);
        check_books(&mut switch, &[uplink, inside]);
    }
}

/// A limit is that of the port, whatever threads its flows belong to: one flow alone gets all of it, and all flows together no more.
#[test]
fn limits_of_a_port_hold_over_all_threads() {
    for flows in [1, 2, 500] {
        let mut switch = switch(3);
        let rate_limit = RateLimit { frames: 20_000, burst_ns: 20_000_000, ..RateLimit::default() };
        let (inside, mut ours) = Pipe::pair().unwrap();
        let settings = PortSettings { rate_limit, ..PortSettings::default() };
        let left = switch.add_port(vec![Box::new(inside)], &settings).unwrap();
        let (right, mut theirs) = add_pipe(&mut switch);
        // A first frame fills the table: later ones are no broadcasts.
        let begin = switch.now();
        let (mut sent, mut passed) = (0, 0);
        for round in 0..40 {
            let frames: Vec<_> = (0..50).map(|number| frame((round * 50 + number) % flows, false)).collect();
            send(&mut ours, &frames);
            sent += frames.len() as u64;
            run(&mut switch);
            passed += receive(&mut theirs).len() as u64;
        }
        let most = 400 + (switch.now() - begin) / 50_000;
        let counters = switch.counters(left).unwrap();
        assert_eq!(counters.received_frames, sent);
        assert_eq!(passed + counters.dropped(Reason::CAPPED), sent, "{counters:?}");
        // It has more frames than the limit allows, unless the machine stood still.
        assert!((400..=most + 1).contains(&passed) && (passed < sent || most > sent), "{passed} of {most}");
        if flows > 2 {
            assert!(received(&mut switch, left).iter().all(|count| *count > 300));
        }
        check_books(&mut switch, &[left, right]);
    }
}

/// As above: new addresses. What one thread learns costs no other one a token.
#[test]
fn new_addresses_are_limited_over_all_threads() {
    let mut switch = switch(3);
    let (inside, mut ours) = Pipe::pair().unwrap();
    let settings = PortSettings { new_addresses: 5, ..PortSettings::default() };
    let left = switch.add_port(vec![Box::new(inside)], &settings).unwrap();
    let (right, mut theirs) = add_pipe(&mut switch);
    let begin = switch.now();
    let (mut sent, mut passed) = (0, 0);
    for station in 256..316u16 {
        for flow in 0..6 {
            let mut frame = frame(station + 1000 * flow, false);
            frame[10..12].copy_from_slice(&station.to_be_bytes());
            send(&mut ours, &[frame]);
            sent += 1;
            run(&mut switch);
            passed += receive(&mut theirs).len() as u64;
        }
    }
    let seconds = (switch.now() - begin) / 1_000_000_000;
    let counters = switch.counters(left).unwrap();
    assert_eq!((counters.received_frames, passed + counters.dropped(Reason::CAPPED)), (sent, sent));
    // Each of them sends six frames, in several threads.
    assert!(passed >= 30 && passed <= 6 * (5 + 5 * (seconds + 1)), "{passed} in {seconds} s");
    assert!(received(&mut switch, left).iter().all(|count| *count > 60));
    check_books(&mut switch, &[left, right]);
}

/// Nine stations at once, in several threads: as many are learned as the limit says.
#[test]
fn threads_keep_no_new_addresses_from_each_other() {
    for first in 0..20u16 {
        let mut switch = switch(3);
        let (inside, mut ours) = Pipe::pair().unwrap();
        let settings = PortSettings { new_addresses: 5, ..PortSettings::default() };
        let left = switch.add_port(vec![Box::new(inside)], &settings).unwrap();
        let (_, mut theirs) = add_pipe(&mut switch);
        let begin = switch.now();
        let station = |station: u16| {
            let mut frame = frame(100 * first + station, false);
            frame[10..12].copy_from_slice(&(256 + station).to_be_bytes());
            frame
        };
        send(&mut ours, &(0..9).map(station).collect::<Vec<_>>());
        run(&mut switch);
        let passed = receive(&mut theirs).len() as u64;
        let most = 5 + (switch.now() - begin) / 200_000_000;
        assert!((5..=most.min(9)).contains(&passed), "{passed} of {most}");
        assert_eq!(switch.counters(left).unwrap().dropped(Reason::CAPPED), 9 - passed);
    }
}
