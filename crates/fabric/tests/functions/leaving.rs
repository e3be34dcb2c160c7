//! Functions that leave in order.

use super::{TestBed, with_threads};
use protocol::function::{FromFunction, RefusedReason, ToFunction};
use std::collections::BTreeMap;

/// A function says that it leaves while packets wait for it: it gets no more, answers those, and none is lost.
#[test]
fn a_function_that_leaves_in_order_loses_nothing() {
    with_threads(|threads| {
        let bed = TestBed::new("leave", threads, "in=0", &[]);
        let (mut first, mut second) = (bed.join(), bed.join());
        bed.send(200);
        bed.until("packets wait", |bed| bed.port("nf-1.0").1 + bed.port("nf-2.0").1 == 200);
        let waiting = bed.port("nf-2.0").1;
        assert!(waiting > 10, "{waiting}");
        second.send(&FromFunction::Leave.encode());
        assert_eq!(second.receive(), Some(ToFunction::Leaving));
        let states = |bed: &TestBed| -> Vec<_> {
            bed.instances(0).iter().map(|one| (one.up, one.draining, one.waiting)).collect()
        };
        assert_eq!(states(&bed), [(true, false, 200 - waiting), (true, true, waiting)]);
        bed.send(200);
        bed.until("all flows are at the first", |bed| bed.port("nf-1.0").1 == 400 - waiting);
        assert_eq!((first.forward(u64::MAX, 0), second.forward(u64::MAX, 0)), (400 - waiting, waiting));
        bed.until("packets arrive", |bed| bed.read("sink", "got.count") == 400);
        bed.until("the switch has the answers", |bed| bed.port("nf-2.0").0 == waiting);
        drop(second);
        bed.until("the switch knows", |bed| bed.up() == [true, false]);
        for (name, count) in [("nf-1.0", 400 - waiting), ("nf-2.0", waiting)] {
            assert_eq!(bed.port(name), (count, count, BTreeMap::new()), "{name}");
        }
        assert_eq!(bed.port("source.0"), (400, 0, BTreeMap::new()));
        assert_eq!(bed.instances(0).iter().map(|one| one.flows).sum::<u64>(), 32);
        let left = bed.detached(1);
        assert!(left[0].ends_with("nf-2 left service nf: it left in order"), "{left:?}");
        bed.check_account();
        // The next one at its place gets packets again. Who leaves twice is no function.
        let mut third = bed.join();
        assert_eq!(states(&bed), [(true, false, 0), (true, false, 0)]);
        drop(first);
        bed.until("the switch knows", |bed| bed.up() == [false, true]);
        bed.send(100);
        bed.until("packets wait", |bed| bed.port("nf-2.0").1 == waiting + 100);
        assert_eq!(third.forward(u64::MAX, 0), 100);
        bed.until("packets arrive", |bed| bed.read("sink", "got.count") == 500);
        for _ in 0..2 {
            third.send(&FromFunction::Leave.encode());
        }
        assert_eq!(third.receive(), Some(ToFunction::Leaving));
        assert_eq!(third.receive(), Some(ToFunction::Refused(RefusedReason::Malformed)));
        bed.check_account();
    });
}
