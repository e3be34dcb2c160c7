//! What chains, hops and services count.

use super::{MIRROR, TestBed, UPLINK, WAN, chain, frame, key, port};
use switch::{ChainBooks, ChainPlan, Decision, Forward, FrameMark, HopCounters, PortId, Reason};

/// Whatever the reason of a loss: the hops of a chain, its books and its service have the same number, and all packets together.
#[test]
fn hops_books_and_services_agree_on_what_was_lost() {
    let mut bed = TestBed::new(&[1, 1], vec![chain(&[0, 1])]);
    (0..10).for_each(|flow| drop(bed.path(flow, false)));
    let none = FrameMark::default();
    // There was no room in the ring of the first hop.
    let Decision::ToFunction(_, tag) = bed.decide(&frame(1, false), UPLINK, none) else { panic!() };
    bed.steering.count_lost(tag, 1);
    // There is little room at the second one.
    bed.steering.set_crowded(port(1, 0, false), true);
    (0..3).for_each(|flow| {
        assert_eq!(bed.decide(&frame(flow, false), UPLINK, none), Decision::Lose(Reason::CONGESTED));
    });
    bed.steering.set_crowded(port(1, 0, false), false);
    // Its instance ends.
    bed.steering.flush_port(port(1, 0, true));
    (0..5).for_each(|flow| {
        let (path, decision) = bed.walk(flow, false, &[]);
        assert_eq!((path.len(), decision), (1, Decision::Lose(Reason::NO_INSTANCE)));
    });
    let chains = bed.steering.chains();
    let [first, second] = [0, 1].map(|hop| chains.counters(0).unwrap().hops[hop]);
    let of = |packets, lost| HopCounters { packets, bytes: 60 * packets, lost };
    assert_eq!((first, second), ([of(16, 1), of(0, 0)], [of(18, 8), of(0, 0)]));
    let services = [0, 1].map(|service| {
        let there = chains.instances(service)[0];
        (there.packets, there.lost, chains.without_instance(service))
    });
    assert_eq!(services, [(16, 1, 0), (13, 3, 5)]);
    let books = ChainBooks {
        entered: 19,
        returned: 25,
        sent: 26,
        full: 1,
        left: 10,
        no_instance: 5,
        congested: 3,
        ..ChainBooks::default()
    };
    assert_eq!(bed.books(0), books);
}

/// The hops of a chain keep their counters as what left does, wherever their services are in the next version; a service that comes
/// again finds its own. A chain or a service that is removed and made again starts at zero.
#[test]
fn hops_keep_their_counters_when_the_chain_is_changed() {
    let mut bed = TestBed::new(&[1, 1, 1], vec![chain(&[0, 1])]);
    let counted = |bed: &TestBed| {
        let counters = bed.steering.chains().counters(0).unwrap();
        let packets = |ways: [HopCounters; 2]| ways.map(|way| (way.packets, way.bytes, way.lost));
        (counters.hops.into_iter().map(packets).collect::<Vec<_>>(), packets(counters.left))
    };
    let ways = |there: u64, back: u64| [there, back].map(|packets| (packets, 60 * packets, 0));
    let pass = |bed: &mut TestBed, services: &[u16], to: PortId| {
        bed.plan.chains = vec![ChainPlan { to: key(to), ..chain(services) }];
        bed.apply();
        (0..10).for_each(|flow| drop(bed.path(flow, false)));
        for _ in 0..130 {
            bed.now += 1_000_000_000;
            bed.steering.expire_flows(bed.now, 0);
        }
        counted(bed)
    };
    bed.path(7, true);
    assert_eq!(counted(&bed), (vec![ways(0, 1); 2], ways(0, 1)));
    assert_eq!(pass(&mut bed, &[0, 1], WAN), (vec![ways(10, 1); 2], ways(10, 1)));
    // Another port is another version.
    assert_eq!(pass(&mut bed, &[0, 1], MIRROR), (vec![ways(20, 1); 2], ways(20, 1)));
    assert_eq!(pass(&mut bed, &[1], WAN), (vec![ways(30, 1)], ways(30, 1)));
    let both = vec![ways(10, 0), ways(40, 1), ways(30, 1)];
    assert_eq!(pass(&mut bed, &[2, 1, 0], WAN), (both, ways(40, 1)));
    // The second place of a service is another hop.
    let three = vec![ways(40, 1), ways(50, 1), ways(10, 0)];
    assert_eq!(pass(&mut bed, &[0, 1, 0], WAN), (three, ways(50, 1)));
    // A service of the same number as one that was removed.
    let first = bed.plan.services.remove(0);
    bed.plan.chains = vec![chain(&[1])];
    bed.apply();
    bed.plan.services.insert(0, first);
    assert_eq!(pass(&mut bed, &[0, 1], WAN), (vec![ways(10, 0), ways(60, 1)], ways(60, 1)));
    bed.plan.chains.clear();
    bed.apply();
    assert_eq!(pass(&mut bed, &[0, 1], WAN), (vec![ways(10, 0); 2], ways(10, 0)));
    let again = ChainBooks { entered: 10, returned: 20, sent: 20, left: 10, ..ChainBooks::default() };
    assert_eq!(bed.books(0), again);
}
