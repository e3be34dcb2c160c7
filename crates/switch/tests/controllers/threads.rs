//! A switch of several threads with controllers: what they change holds in all shards, and what they are told are sums.

use super::*;
use flow_table::MeterCounters;
use random::Random;

/// A UDP frame of a flow, whose hash says which shard it belongs to.
fn udp(flow: u16) -> Vec<u8> {
    let mut frame = vec![0; 64];
    frame[..24]
        .copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0, 0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17]);
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[34..36].copy_from_slice(&flow.to_be_bytes());
    frame[37] = 53;
    frame
}

/// A switch with two shards, three ports with one queue each, and a controller.
struct TwoShards {
    switch: Shards<ForwardingMode>,
    pipes: Vec<Pipe>,
    wakes: Arc<AtomicUsize>,
}

impl TwoShards {
    fn new(mode: FailMode) -> Self {
        let forward = || ForwardingMode::Steering(Box::new(Steering::new(SteeringSettings::default())));
        let mut switch = Shards::new(forward(), vec![forward()], 3).expect("a switch");
        let mut pipes = Vec::new();
        for number in 0..3 {
            let (near, far) = Pipe::pair().expect("a pipe");
            let port = switch.add_port(vec![Box::new(near)], &PortSettings::default()).expect("a port");
            let mut keyed = steering(&mut switch).into_iter();
            assert!(keyed.all(|steering| steering.set_port_key(port, PortKey(number + 1))));
            pipes.push(far);
        }
        let mut bench = Self { switch, pipes, wakes: Arc::default() };
        let wakes = bench.wakes.clone();
        let wake = move || {
            wakes.fetch_add(1, Ordering::Relaxed);
        };
        bench.shards().set_controllers(mode, wake);
        bench.shards().set_connected(true);
        bench
    }

    fn shards(&mut self) -> SteeringShards<'_> {
        SteeringShards::new(steering(&mut self.switch))
    }

    fn run(&mut self) {
        while self.switch.shards_mut().map(SwitchRunner::step).sum::<usize>() > 0 {}
    }

    /// Sends a packet of each of these flows to port 0, one after the other. Returns how many each other port gets.
    fn send(&mut self, flows: std::ops::Range<u16>) -> [usize; 2] {
        let mut batch = Batch::new(256);
        assert!(flows.clone().all(|flow| batch.push(&udp(flow))));
        let numbers: Vec<u32> = (0..flows.len() as u32).collect();
        assert_eq!(self.pipes[0].send(&batch, &numbers).expect("a pipe").frames, flows.len() as u64);
        self.run();
        [1, 2].map(|port| self.received(port).len())
    }

    fn received(&mut self, port: usize) -> Vec<Vec<u8>> {
        let mut batch = Batch::new(256);
        self.pipes[port].receive(&mut batch).expect("a pipe");
        batch.frames().map(<[u8]>::to_vec).collect()
    }

    /// The number of frames that the shards received from port 0, and injected.
    fn shares(&mut self) -> Vec<u64> {
        self.switch.switches().map(|shard| shard.books().counters.received_frames).collect()
    }

    fn check_books(&mut self) {
        self.switch.settle();
        let books = self.switch.books();
        let lost: u64 = REASONS.into_iter().map(|reason| books.counters.dropped(reason)).sum();
        assert_eq!(
            books.counters.received_frames + books.injected + books.copied,
            books.planned + books.taken + lost,
            "{books:?}"
        );
    }

    fn dropped(&mut self, reason: Reason) -> u64 {
        self.switch.books().counters.dropped(reason)
    }
}

fn steering(switch: &mut Shards<ForwardingMode>) -> Vec<&mut Steering> {
    let steering = |forward| match forward {
        &mut ForwardingMode::Steering(ref mut steering) => &mut **steering,
        other => panic!("{other:?}"),
    };
    switch.forwards().map(steering).collect()
}

/// What controllers change holds in all shards, and what they are told are sums: entries, tables, groups and meters.
#[test]
fn changes_hold_in_all_shards_and_counters_are_sums() {
    let mut bench = TwoShards::new(FailMode::Secure);
    let band = Band { band_type: BandType::Drop, rate: 1, burst: 150 };
    let meter = MeterDefinition { flags: MeterDefinition::PACKETS, bands: vec![band] };
    bench.shards().add_meter(6, meter.clone(), 0).expect("a meter");
    let to = |port: u16| Bucket { actions: vec![out(port)], weight: 1, ..Bucket::default() };
    bench.shards().add_group(5, GroupType::Select, &[to(1), to(2)], 0).expect("a group");
    let mut change = entry(1, Match::any(), &[Action::Group(5)]);
    change.instructions.meter = Some(6);
    bench.shards().change_entries(&change, 0).expect("an entry");
    // The meter lets pass what one of a single thread does, whichever shards the packets belong to.
    let passed = bench.send(0..200);
    let all: usize = passed.iter().sum();
    assert!((150..=160).contains(&all) && passed.iter().all(|count| *count > 40), "{passed:?}");
    assert_eq!((bench.dropped(Reason::METER_DROP), bench.dropped(Reason::FLOW_DROP)), (200 - all as u64, 0));
    assert!(bench.shares().iter().all(|share| *share > 60), "{:?}", bench.shares());
    // A flow takes the same bucket each time.
    bench.shards().modify_meter(6, MeterDefinition { bands: Vec::new(), ..meter }, 0).expect("a meter");
    let first = bench.send(0..100);
    assert_eq!(bench.send(0..100), first);
    let mut found = Vec::new();
    let read = |shards: &mut SteeringShards<'_>, found: &mut Vec<(u64, u64)>| {
        shards.entries_from(0, 100, |entry| found.push((entry.packets, entry.bytes)))
    };
    assert_eq!((read(&mut bench.shards(), &mut found), found), (None, vec![(400, 400 * 64)]));
    let tables = bench.shards().table_counters();
    assert_eq!((tables[0].active, tables[0].lookups, tables[0].matches), (1, 400, 400));
    let (group, buckets) = bench.shards().group_counters(5);
    assert_eq!(
        (group.packets, buckets.iter().map(|one| one.packets).sum()),
        (all as u64 + 200, group.packets)
    );
    assert!(buckets.iter().all(|one| one.bytes == one.packets * 64 && one.packets > 100), "{buckets:?}");
    let (meter, bands) = bench.shards().meter_counters(6);
    assert_eq!((meter.packets, meter.bytes, bands.len()), (200, 200 * 64, 0));
    // What the first shard refuses changes nothing in any of them.
    let missing = entry(1, destination(1), &[Action::Group(9)]);
    assert_eq!(bench.shards().change_entries(&missing, 0), Err(ControlError::NoGroup(9)));
    assert_eq!(steering(&mut bench.switch).iter().map(|one| one.controller_entries()).sum::<usize>(), 2);
    // An entry goes with its group, from all shards, and is reported once.
    change.flags.send_removed = true;
    bench.shards().change_entries(&change, 0).expect("an entry");
    bench.shards().remove_group(None, 0).expect("no group");
    let removed = bench.shards().take_removed(10);
    let found: Vec<_> = removed.iter().map(|one| (one.packets, one.reason)).collect();
    assert_eq!(found, [(400, RemovalReason::GroupDelete)]);
    assert_eq!(bench.shards().take_removed(10), []);
    bench.shards().remove_meter(None, 0);
    assert_eq!(bench.send(0..50), [0, 0]);
    assert_eq!(bench.dropped(Reason::FLOW_MISS), 50);
    bench.check_books();
}

/// An entry that any shard uses is not idle; one that ends does so in all of them, and is reported once.
#[test]
fn entries_end_in_all_shards_together() {
    let mut bench = TwoShards::new(FailMode::Secure);
    let mut change = entry(1, Match::any(), &[out(1)]);
    (change.idle_timeout, change.flags.send_removed) = (Some(Duration::from_secs(1)), true);
    let now = bench.switch.now();
    bench.shards().change_entries(&change, now).expect("an entry");
    // The packets of one flow are those of one shard: here of each in turn.
    let flows = [0, 1].map(|shard| {
        (0..200).find(|flow| bench.switch.shard_of(&udp(*flow)) == shard).expect("a flow of the shard")
    });
    for flow in flows {
        let mut later = bench.switch.now();
        assert_eq!(bench.send(flow..flow + 1), [1, 0]);
        later += SECOND - 1;
        bench.shards().expire_entries(later, 10);
        assert_eq!(bench.shards().take_removed(10), []);
        assert!(bench.shards().next_deadline().is_some_and(|next| next > later));
    }
    let later = bench.switch.now() + SECOND;
    bench.shards().expire_entries(later, 10);
    let removed = bench.shards().take_removed(10);
    assert_eq!(removed.iter().map(|one| (one.packets, one.bytes)).collect::<Vec<_>>(), [(2, 128)]);
    assert_eq!(bench.shards().next_deadline(), None);
    assert!(steering(&mut bench.switch).iter().all(|one| one.controller_entries() == 0));
    assert_eq!(bench.wakes.load(Ordering::Relaxed), 1);
    bench.check_books();
}

/// Packets for controllers wait in each shard, within a bound; those that a controller sends belong to the shard of their flow.
#[test]
fn packets_reach_controllers_from_all_shards() {
    let mut bench = TwoShards::new(FailMode::Standalone);
    bench.shards().change_entries(&entry(0, Match::any(), &[to_controller()]), 0).expect("an entry");
    for _ in 0..4 {
        assert_eq!(bench.send(0..250), [0, 0]);
    }
    let full = bench.dropped(Reason::CONTROLLER_FULL);
    assert_eq!(full, 1000 - 2 * 256);
    assert_eq!(bench.wakes.load(Ordering::Relaxed), 2);
    // Those of a flow in their order, and none of a shard alone.
    let packets = bench.shards().take_packets(64);
    let of_second = packets.iter().filter(|packet| bench.switch.shard_of(&packet.frame) == 1).count();
    assert_eq!((packets.len(), of_second), (64, 32));
    assert!(packets.iter().all(|one| one.in_port == Some(1) && one.reason == PacketReason::TableMiss));
    let rest = bench.shards().take_packets(usize::MAX).len();
    assert_eq!((rest, bench.shards().take_packets(10).len()), (2 * 256 - 64, 0));
    // From the controller, through the tables and past them.
    bench.shards().change_entries(&entry(5, Match::any(), &[out(2)]), 0).expect("an entry");
    let before = bench.switch.switches().map(|shard| shard.books().injected).collect::<Vec<_>>();
    for flow in 0..100 {
        let step = match flow % 2 {
            0 => PacketOutStep::Table,
            _ => PacketOutStep::Perform(out(1)),
        };
        let frame = udp(flow);
        bench.shards().check_packet_out(&[step]).expect("good steps");
        bench.switch.inject(&frame, None, |forward, outcome| {
            if let ForwardingMode::Steering(steering) = forward {
                steering.packet_out(None, &[step], &frame, 0, outcome);
            }
        });
    }
    bench.run();
    let injected: Vec<u64> = bench.switch.switches().map(|shard| shard.books().injected).collect();
    assert_eq!(before, [0, 0]);
    assert!(injected.iter().all(|count| *count > 30) && injected.iter().sum::<u64>() == 100, "{injected:?}");
    assert_eq!([1, 2].map(|port| bench.received(port).len()), [50, 50]);
    // Without a controller nothing waits, in no shard.
    bench.shards().change_entries(&Change::new(Command::Delete, Match::any(), 5), 0).expect("no entry");
    bench.shards().change_entries(&entry(0, Match::any(), &[to_controller()]), 0).expect("an entry");
    bench.send(0..100);
    bench.shards().set_connected(false);
    assert_eq!(bench.shards().take_packets(10).len(), 0);
    assert_eq!(bench.send(0..100), [100, 100]);
    bench.check_books();
}

/// A meter is one for all threads, in simulated time: whatever their shares of the packets are, each packet passes that would pass in
/// one thread, and in any time no more than the rate and the burst allow.
#[test]
fn a_meter_holds_over_all_threads() {
    const ROUNDS: u64 = 2_000;
    // A thousand packets of 60 bytes a second each, and 50 or, without a burst, 250 at once.
    for (flags, rate, burst, depth) in [
        (MeterDefinition::PACKETS | MeterDefinition::BURST, 1_000, 50, 50),
        (MeterDefinition::KILOBITS | MeterDefinition::BURST, 480, 24, 50),
        (MeterDefinition::PACKETS, 1_000, 0, 250),
    ] {
        let mut alone = None;
        for shares in [&[1][..], &[1, 1], &[30, 1], &[1, 1, 1, 1], &[40, 5, 1, 0]] {
            let mut threads: Vec<Bench> = shares.iter().map(|_| Bench::connected(FailMode::Secure)).collect();
            let band = Band { band_type: BandType::Drop, rate, burst };
            let mut change = entry(1, Match::any(), &[out(1)]);
            change.instructions.meter = Some(6);
            let mut all = SteeringShards::new(threads.iter_mut().map(Bench::steering));
            all.add_meter(6, MeterDefinition { flags, bands: vec![band] }, 0).expect("a meter");
            all.change_entries(&change, 0).expect("an entry");
            let (mut arrivals, mut choices) = (Random::new(5), Random::new(6));
            let (mut now, mut sent, mut passed) = (0, 0, Vec::new());
            // A packet is a million units; tokens arrive with each nanosecond.
            let mut level = depth * 1_000_000;
            for _ in 0..ROUNDS {
                // Three times as much as the rate allows.
                let pause = u64::from(arrivals.below(4_000_000));
                let frames = vec![frame(1, 9); arrivals.below(13) as usize];
                let mut at = choices.below(shares.iter().sum());
                let chosen = shares
                    .iter()
                    .position(|share| at.checked_sub(*share).map(|rest| at = rest).is_none())
                    .expect("a thread");
                now += pause;
                level = (level + pause).min(depth * 1_000_000);
                let here = threads[chosen].send(0, &frames, now).len() as u64;
                assert!(here * 1_000_000 <= level, "{shares:?}: {here} packets at {now}");
                level -= here * 1_000_000;
                sent += frames.len() as u64;
                passed.push(here);
            }
            let total: u64 = passed.iter().sum();
            assert!(total * 1_000_000 > now * 9 / 10, "{shares:?}: {total} packets in {now} ns");
            assert_eq!(*alone.get_or_insert_with(|| passed.clone()), passed, "{shares:?}");
            let (meter, bands) =
                SteeringShards::new(threads.iter_mut().map(Bench::steering)).meter_counters(6);
            let dropped: u64 = threads.iter().map(|thread| thread.dropped(Reason::METER_DROP)).sum();
            assert_eq!((meter.packets, meter.bytes, dropped), (sent, sent * 60, sent - total));
            assert_eq!(bands, [MeterCounters { packets: dropped, bytes: dropped * 60 }]);
        }
    }
}
