//! Packets of a batch go where each would go by itself, and are counted the same.

use super::*;

/// What a switch counted of its chains 0 and 1, and of three services.
fn counted(bed: &TestBed) -> impl PartialEq + std::fmt::Debug {
    let chains = bed.steering.chains();
    let of_chains = [0, 1].map(|chain| {
        let counters = chains.counters(chain).unwrap_or_default();
        (counters.hops, counters.left, chains.books(chain))
    });
    let instances: Vec<_> = (0..3).map(|service| chains.instances(service)).collect();
    (of_chains, instances, chains.flows(), bed.steering.cache_counters())
}

/// A frame of one of 90 flows: mostly of UDP over IPv4; or over IPv6; or an echo message, whose match fields do not tell its flow.
fn some_frame(random: &mut Random, back: bool) -> Vec<u8> {
    let flow = (random.next() % 90) as u16;
    let mut frame = frame(flow, back);
    match random.next() % 8 {
        0 => {
            frame[23] = 1;
            frame[34..38].copy_from_slice(&[if back { 0 } else { 8 }, 0, 0, 0]);
            frame[38..40].copy_from_slice(&flow.to_be_bytes());
        }
        1 => {
            let ports = [frame[34], frame[35], frame[36], frame[37]];
            frame.resize(66, 0);
            frame[12..22].copy_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0, 0, 12, 17, 64]);
            frame[22..54].fill(0);
            let (near, far) = if back { (53, 37) } else { (37, 53) };
            (frame[near], frame[far]) = (1, 9);
            frame[54..58].copy_from_slice(&ports);
        }
        _ => {}
    }
    frame
}

/// Packets enter chains while instances end and come back or have little room, chains change, flows take other chains, and
/// seconds pass. There is room for the records of all flows, or of some.
#[test]
fn packets_that_enter_together_enter_as_each_would_alone() {
    for room in [4096, 150] {
        enter_together(room);
    }
}

fn enter_together(room: usize) {
    let mut random = Random::new(6);
    let mut beds = [(); 2].map(|()| {
        let other = ChainPlan { number: 1, from: None, both_ways: false, ..chain(&[2]) };
        let mut bed = TestBed::with_room(room, &[3, 2, 2], vec![chain(&[0, 1]), other]);
        bed.plan.services[0].destinations = vec![DestinationPlan::Chain(1)];
        bed.apply();
        for (id, source, output) in [
            (1, 5, FlowOutput::Chain(1)),
            (2, 6, FlowOutput::Port(key(MIRROR))),
            (3, 7, FlowOutput::Chain(9)),
        ] {
            let ip4 = Match::any().with(Field::EthType, 0x0800).unwrap().with(Field::IpProto, 17).unwrap();
            let matches = vec![ip4.with(Field::UdpSrc, source).unwrap()];
            bed.steering.add_flow(Flow { matches, ..flow(id, Some(key(UPLINK)), output) }, bed.now).unwrap();
        }
        bed
    });
    let (mut entered, mut lost) = (0, BTreeMap::new());
    for round in 0..600 {
        let from = if random.next().is_multiple_of(3) { WAN } else { UPLINK };
        let count = 1 + random.next() as usize % 32;
        let frames: Vec<_> = (0..count).map(|_| some_frame(&mut random, from == WAN)).collect();
        let alone: Vec<_> =
            frames.iter().map(|frame| beds[0].decide(frame, from, FrameMark::default())).collect();
        let mark = FrameMark::default();
        let heads: Vec<_> =
            frames.iter().map(|frame| FrameHead { head: frame, length: frame.len(), mark }).collect();
        let mut together = vec![Decision::Drop; count];
        let now = beds[1].now;
        beds[1].steering.decide_heads(&heads, from, now, &mut together);
        assert_eq!(together, alone, "round {round}");
        for (frame, decision) in frames.iter().zip(alone) {
            match decision {
                Decision::ToFunction(to, tag) => {
                    entered += 1;
                    // The first service gives some flows the other chain.
                    if to.0 < 120 && random.next().is_multiple_of(40) {
                        let mark = FrameMark { tag, meta: Answer::FlowChain(0).to_meta() };
                        let [one, other] = beds.each_mut().map(|bed| bed.decide(frame, to, mark));
                        assert_eq!(one, other);
                    }
                }
                Decision::Lose(reason) => *lost.entry(reason).or_insert(0) += 1,
                _ => {}
            }
        }
        let (service, slot, outer) =
            (random.next() as u16 % 3, random.next() as u8 % 2, random.next().is_multiple_of(2));
        let (some, event) = (port(service, slot, outer), random.next() % 12);
        for bed in &mut beds {
            match event {
                0 => bed.steering.flush_port(some),
                1 | 2 => bed.steering.resume_port(some),
                3 => bed.steering.set_crowded(some, true),
                4 | 5 => bed.steering.set_crowded(some, false),
                // The chain has another version; or it is gone, and there again.
                6 => bed.plan.chains[0].services.reverse(),
                7 => bed.plan.chains[1].number = 1 + u16::from(round % 3 == 0),
                8 => {
                    bed.now += 50_000_000_000;
                    assert!(bed.steering.expire_flows(bed.now, 9).is_empty());
                }
                _ => {}
            }
            if (6..8).contains(&event) {
                bed.apply();
            }
        }
        let [alone, together] = beds.each_ref().map(counted);
        assert_eq!(alone, together, "round {round}");
    }
    assert!(entered > 3000, "{entered}");
    assert!(lost[&Reason::CONGESTED] > 50 && lost[&Reason::NO_INSTANCE] > 50, "{lost:?}");
    let (_, displaced) = beds[1].steering.chains().flows();
    assert_eq!(displaced > 500, room < 4096, "{displaced}");
}

/// Packets of a batch that functions pass on go where each would go by itself, and are counted the same.
#[test]
fn packets_that_are_passed_on_together_go_as_each_would_alone() {
    let mut random = Random::new(5);
    let mut beds = [(); 2].map(|()| TestBed::new(&[3, 2, 3], vec![chain(&[0, 1, 2])]));
    // What arrives at each port: tags and lengths.
    let mut there: BTreeMap<PortId, Vec<(u64, u32)>> = BTreeMap::new();
    let mut left = 0;
    for round in 0..60 {
        for packet in 0..200 {
            let back = packet % 3 == 0;
            let frame = frame((random.next() % 90) as u16, back);
            let decided = beds
                .each_mut()
                .map(|bed| bed.decide(&frame, if back { WAN } else { UPLINK }, FrameMark::default()));
            assert_eq!(decided[0], decided[1]);
            let Decision::ToFunction(to, tag) = decided[0] else { panic!("{decided:?}") };
            there.entry(to).or_default().push((tag, 60 + packet));
        }
        for (at, mut packets) in std::mem::take(&mut there) {
            // Each function sends on at its other side, but some packets come back at the wrong one, or with a false identity.
            let from = match random.next() % 10 {
                0 => at,
                1 => port(0, 0, true),
                _ => PortId(100 + ((at.0 - 100) ^ 1)),
            };
            if random.next().is_multiple_of(4) {
                packets.iter_mut().step_by(7).for_each(|(tag, _)| *tag ^= 1 << (random.next() % 60));
            }
            let by_itself = |bed: &mut TestBed, (tag, length): &(u64, u32)| {
                let mark = FrameMark { tag: *tag, meta: Answer::Next.to_meta() };
                bed.decide(&vec![0; *length as usize], from, mark)
            };
            let alone: Vec<_> = packets.iter().map(|packet| by_itself(&mut beds[0], packet)).collect();
            let unread = (0..).zip(&packets).map(|(number, (tag, length))| UnreadFrame {
                number,
                length: *length,
                tag: *tag,
            });
            let (unread, now): (Vec<_>, _) = (unread.collect(), beds[1].now);
            let mut together = Vec::new();
            beds[1].steering.pass_on(&unread, from, now, &mut together);
            assert_eq!(together.len(), alone.len());
            for ((alone, together), packet) in alone.into_iter().zip(together).zip(packets) {
                // A packet for which its headers are needed is not passed on.
                let together = together.unwrap_or_else(|| by_itself(&mut beds[1], &packet));
                assert_eq!(together, alone, "round {round}");
                match alone {
                    Decision::ToFunction(to, tag) => there.entry(to).or_default().push((tag, packet.1)),
                    Decision::To(_) => left += 1,
                    _ => {}
                }
            }
        }
        if round == 30 {
            // An instance goes, so packets change their way in the middle of batches.
            beds.iter_mut().for_each(|bed| bed.steering.flush_port(port(1, 0, false)));
        }
    }
    assert!(left > 3000, "{left}");
    let [alone, together] = beds.each_ref().map(counted);
    assert_eq!(alone, together);
}
