//! Simulates operations of which a step or the commit fails, or whose fabric or daemon ends: the fabric, the supervisor and the
//! store then agree with each other and with what was before. The next daemon holds what was stored, and adopts what runs. `CLICKBOX_TEST_SCHEDULES` is the number of operations,
//! `CLICKBOX_TEST_SEED` repeats a run.

mod operations;
mod views;

use super::test_bed::{TestBed, until};
use crate::error::OperationError;
use crate::fabric::{Fault, plan_fault};
use crate::store::Store;
use api::Time;
use operations::run;
use protocol::fabric::Asked;
use random::Random;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};
use views::{Views, assert_agreement, assert_attached, assert_numbers, awaits_confirmation, views};

/// Does what otherwise happens within a second: stores numbers of ports that could not be stored, and lets instances that are
/// drained go. The thread that does the latter is not there.
fn settle(bed: &TestBed) {
    bed.fail_commits(false);
    bed.store_lacking_numbers();
    until("drained instances are gone", || {
        bed.look_at_services(Time::from(SystemTime::now() + Duration::from_secs(5)));
        let switches = bed.0.switches();
        let mut services = switches.values().flat_map(|stored| &stored.steering.services);
        services.all(|service| service.instances.iter().all(|instance| instance.drain_until.is_none()))
    });
}

/// The store that a killed daemon has left.
type LeftStore = Rc<RefCell<Option<Store>>>;

/// A fault that ends the fabric, the daemon, or both, in one of the next orders of operations.
fn end_of_process(bed: &TestBed, left: &LeftStore, random: &mut Random) -> Fault {
    let (ends_fabric, ends_daemon) =
        [(true, false), (true, false), (false, true), (true, true)][random.below(4) as usize];
    let (fabric, supervisor, left) = (bed.fabric.clone(), bed.supervisor.clone(), left.clone());
    let end = Box::new(move || {
        if ends_daemon {
            *left.borrow_mut() = Some(supervisor.kill());
        }
        if ends_fabric {
            fabric.kill(0);
        }
    });
    Fault { orders: random.below(12), is_executed: random.below(2) == 0, end }
}

/// What a store holds, without what the next daemon learns from the fabric.
fn contents(store: &Store) -> Vec<String> {
    let lines = |list: &dyn std::fmt::Debug| format!("{list:#?}");
    let boxes = store.boxes().unwrap();
    let configurations = boxes.iter().flat_map(|stored| {
        store.configurations(&stored.definition.name).unwrap().into_iter().map(|configuration| {
            let files = store.files(&stored.definition.name, configuration.id).unwrap();
            format!("{configuration:?} {files:?}")
        })
    });
    let mut all: Vec<String> = configurations.collect();
    all.push(lines(&boxes));
    all.push(lines(&store.switches().unwrap()));
    all.push(lines(&store.stacks().unwrap()));
    all
}

/// Starts the next daemon, which holds what the store held.
fn start_next_daemon(bed: &mut TestBed, store: Store) {
    let before = contents(&store);
    // These are rolled back.
    let awaits_confirmation = !store.unconfirmed().unwrap().is_empty();
    bed.start_next_daemon(store);
    assert!(
        awaits_confirmation || contents(&bed.0.store()) == before,
        "{before:#?} {:#?}",
        contents(&bed.0.store())
    );
}

/// When each box was started, and its process.
fn starts(bed: &TestBed) -> Vec<String> {
    let runtimes = bed.0.fabrics.runtimes(Asked::None).unwrap().into_iter();
    let starts = runtimes.map(|runtime| {
        format!("{} {:?} {:?} {}", runtime.name, runtime.started, runtime.process, runtime.restarts)
    });
    starts.collect()
}

/// Replaces the daemon between two operations. The next one adopts what is there, and changes nothing.
fn replace_daemon(bed: &mut TestBed, before: &[Views; 3]) {
    let started = starts(bed);
    let store = bed.kill();
    start_next_daemon(bed, store);
    assert_eq!(views(bed), *before);
    assert_eq!(starts(bed), started);
}

#[test]
fn a_failed_operation_changes_nothing() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let schedules = number("CLICKBOX_TEST_SCHEDULES").unwrap_or(1200);
    let clock = || SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let seed = number("CLICKBOX_TEST_SEED").unwrap_or_else(clock);
    println!("seed {seed}: repeat with CLICKBOX_TEST_SEED={seed}");
    let is_traced = std::env::var_os("CLICKBOX_TEST_TRACE").is_some();
    let mut random = Random::new(seed);
    let mut bed = TestBed::unwatched_with_click();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let begin = Instant::now();
    let left = LeftStore::default();
    let (mut before, mut fault) = (views(&bed), None);
    for schedule in 0..schedules {
        if random.below(30) == 0 && !awaits_confirmation(&before) {
            // It is the end of the daemon that is replaced.
            fault = None;
            replace_daemon(&mut bed, &before);
        }
        let commits_fail = random.below(5) == 0;
        bed.fail_commits(commits_fail);
        let to_come =
            fault.take().or_else(|| (random.below(6) == 0).then(|| end_of_process(&bed, &left, &mut random)));
        let is_planned = to_come.is_some();
        plan_fault(to_come);
        let result = run(&bed, &mut random);
        fault = plan_fault(None);
        let has_ended = is_planned && fault.is_none();
        let store = left.take();
        let was_killed = store.is_some();
        if let Some(store) = store {
            start_next_daemon(&mut bed, store);
        } else if has_ended {
            until("there is another fabric", || bed.has_whole_fabric());
        }
        settle(&bed);
        let after = views(&bed);
        assert_agreement(&after);
        assert_attached(&bed, &after);
        assert_numbers(&bed, &before[0], &after[0]);
        let what = match &result {
            Ok(()) => "done",
            Err(_) if was_killed && awaits_confirmation(&before) => "rolled back",
            // Only the answer is missing.
            Err(OperationError::Fabric(_)) if has_ended && after != before => "unanswered",
            Err(OperationError::Ending) if was_killed && after != before => "unanswered",
            Err(failure) => {
                let when = format!("operation {schedule}: {failure}, fabric ended: {has_ended}");
                assert_eq!(after, before, "{when}");
                match (was_killed, has_ended, commits_fail) {
                    (true, ..) => "interrupted",
                    (false, true, _) => "without a fabric",
                    (false, false, true) => "not committed",
                    (false, false, false) => "refused",
                }
            }
        };
        if is_traced {
            println!("operation {schedule}: {what}, {result:?}");
        }
        *counts.entry(what).or_default() += 1;
        *counts.entry("fabrics").or_default() += u64::from(has_ended && !was_killed);
        *counts.entry("killed").or_default() += u64::from(was_killed);
        before = after;
    }
    println!("{schedules} operations in {:?}: {counts:?}", begin.elapsed());
    let enough = |what: &str, part: u64| {
        assert!(counts.get(what).copied().unwrap_or(0) >= schedules / part, "{what}: {counts:?}");
    };
    enough("done", 16);
    enough("refused", 16);
    enough("not committed", 40);
    enough("fabrics", 100);
    enough("without a fabric", 200);
    enough("killed", 100);
    enough("interrupted", 200);
}
