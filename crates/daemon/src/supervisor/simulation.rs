//! Simulates operations of which a step or the commit fails, or whose fabric ends: the fabric, the supervisor and the store
//! then agree with each other and with what was before. `CLICKBOX_TEST_SCHEDULES` is the number of operations,
//! `CLICKBOX_TEST_SEED` repeats a run.

mod operations;
mod views;

use super::test_bed::{TestBed, until};
use crate::error::OperationError;
use crate::fabric::{Fault, plan_fault};
use api::Time;
use operations::run;
use random::Random;
use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};
use views::{assert_agreement, assert_attached, assert_numbers, views};

/// Lets instances that are drained go now. The thread that does so otherwise is not there.
fn settle(bed: &TestBed) {
    bed.fail_commits(false);
    until("drained instances are gone", || {
        bed.look_at_services(Time::from(SystemTime::now() + Duration::from_secs(5)));
        let switches = bed.0.switches();
        let mut services = switches.values().flat_map(|stored| &stored.steering.services);
        services.all(|service| service.instances.iter().all(|instance| instance.drain_until.is_none()))
    });
}

/// A fault that ends the fabric in one of the next orders of operations.
fn end_of_fabric(bed: &TestBed, random: &mut Random) -> Fault {
    let fabric = bed.fabric.clone();
    let end = Box::new(move || fabric.kill(0));
    Fault { orders: random.below(12), is_executed: random.below(2) == 0, end }
}

#[test]
fn a_failed_operation_changes_nothing() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let schedules = number("CLICKBOX_TEST_SCHEDULES").unwrap_or(2000);
    let clock = || SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let seed = number("CLICKBOX_TEST_SEED").unwrap_or_else(clock);
    println!("seed {seed}: repeat with CLICKBOX_TEST_SEED={seed}");
    let mut random = Random::new(seed);
    let bed = TestBed::unwatched_with_click();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let begin = Instant::now();
    let (mut before, mut fault) = (views(&bed), None);
    for schedule in 0..schedules {
        let commits_fail = random.below(5) == 0;
        bed.fail_commits(commits_fail);
        let to_come =
            fault.take().or_else(|| (random.below(8) == 0).then(|| end_of_fabric(&bed, &mut random)));
        let is_planned = to_come.is_some();
        plan_fault(to_come);
        let result = run(&bed, &mut random);
        fault = plan_fault(None);
        let has_ended = is_planned && fault.is_none();
        if has_ended {
            until("there is another fabric", || bed.has_whole_fabric());
        }
        settle(&bed);
        let after = views(&bed);
        assert_agreement(&after);
        assert_attached(&bed, &after);
        assert_numbers(&bed, &before[0], &after[0]);
        let what = match &result {
            Ok(()) => "done",
            // Only the answer is missing.
            Err(OperationError::Fabric(_)) if has_ended && after != before => "unanswered",
            Err(failure) => {
                let when = format!("operation {schedule}: {failure}, fabric ended: {has_ended}");
                assert_eq!(after, before, "{when}");
                if has_ended {
                    "without a fabric"
                } else if commits_fail {
                    "not committed"
                } else {
                    "refused"
                }
            }
        };
        *counts.entry(what).or_default() += 1;
        *counts.entry("fabrics").or_default() += u64::from(has_ended);
        before = after;
    }
    println!("{schedules} operations in {:?}: {counts:?}", begin.elapsed());
    let enough = |what: &str, part: u64| {
        assert!(counts.get(what).copied().unwrap_or(0) >= schedules / part, "{what}: {counts:?}");
    };
    enough("done", 8);
    enough("refused", 16);
    enough("not committed", 40);
    enough("fabrics", 100);
    enough("without a fabric", 200);
}
