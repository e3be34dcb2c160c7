//! Instances that leave, and those that stand still.

use super::{TestBed, UPLINK, WAN, chain, frame, instances, key, port};
use switch::{Decision, Forward, FrameMark};

/// An instance that leaves gets no packet, and what it still answers goes on in its chain, although its flows are elsewhere.
#[test]
fn an_instance_that_leaves_answers_what_it_has() {
    let mut bed = TestBed::new(&[2], vec![chain(&[0])]);
    let of = |slot| port(0, slot, false);
    let flow = (0..).find(|flow| bed.path(*flow, false)[0] == of(1)).unwrap();
    let given = bed.decide(&frame(flow, false), UPLINK, FrameMark::default());
    let Decision::ToFunction(to, tag) = given else { panic!("{given:?}") };
    assert_eq!(to, of(1));
    let states = |bed: &TestBed| {
        let all = bed.steering.chains().instances(0);
        all.iter().map(|found| (found.is_up, found.is_draining, found.flows)).collect::<Vec<_>>()
    };
    let flows = states(&bed)[0].2;
    bed.steering.chains_mut().set_leaving(key(of(1)), true);
    assert_eq!(bed.path(flow, false), [of(0), WAN]);
    assert!((300..600).all(|flow| bed.path(flow, false)[0] == of(0)));
    // A change of the definition does not bring it back.
    bed.apply();
    assert_eq!(bed.path(flow, true), [port(0, 0, true), UPLINK]);
    assert_eq!(states(&bed), [(true, false, flows + 301), (true, true, 0)]);
    // The packet comes back to its chain, and counts there. Once the instance is another one, it is in no chain.
    let mark = FrameMark { tag, meta: 0 };
    for (is_leaving, known) in [(true, 1), (false, 0)] {
        bed.steering.chains_mut().set_leaving(key(of(1)), is_leaving);
        let before = bed.books(0).returned;
        assert_eq!(bed.decide(&frame(flow, false), port(0, 1, true), mark), Decision::To(WAN));
        assert_eq!(bed.books(0).returned - before, known);
    }
    assert_eq!(states(&bed)[1], (true, false, 0));
    assert!((600..900).any(|flow| bed.path(flow, false)[0] == of(1)));
}

/// An instance that stands still is as good as one that has ended, until it takes packets again.
#[test]
fn flows_of_an_instance_that_stands_still_go_on_at_the_others() {
    let mut bed = TestBed::new(&[2], vec![chain(&[0])]);
    let before = instances(&mut bed, 300);
    let of = |slot| port(0, slot, false);
    bed.steering.set_silent(port(0, 1, true), true);
    assert_eq!(instances(&mut bed, 300), vec![of(0); 300]);
    let states = |bed: &TestBed| {
        let all = bed.steering.chains().instances(0);
        all.iter().map(|found| (found.is_up, found.flows, found.packets)).collect::<Vec<_>>()
    };
    let moved = before.iter().filter(|to| **to == of(1)).count() as u64;
    assert!((100..200).contains(&moved), "{moved}");
    assert_eq!(states(&bed), [(true, 300, 600 - moved), (false, 0, moved)]);
    // A change of the definition does not revive it.
    bed.add_instance(0, 2);
    bed.apply();
    assert!((300..600).all(|flow| bed.path(flow, false)[0] != of(1)));
    bed.steering.set_silent(port(0, 1, true), false);
    assert_eq!(instances(&mut bed, 300), vec![of(0); 300]);
    assert!((600..900).any(|flow| bed.path(flow, false)[0] == of(1)));
    // A new box at the port has nothing to do with the silence of the one before.
    bed.steering.set_silent(port(0, 2, false), true);
    bed.steering.flush_port(port(0, 2, false));
    assert!(!states(&bed)[2].0);
    bed.steering.resume_port(port(0, 2, false));
    assert!(states(&bed)[2].0);
}
