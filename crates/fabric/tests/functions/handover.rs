//! Functions that hand the state of their flows over when they leave, and those that lie about it.

use super::function_process::FunctionProcess;
use super::{TOKEN, TestBed, with_threads};
use boundary::{
    FlowExport, FlowList, FlowPosition, RefusedState, StateRecord, StateTuple, decode_groups, decode_states,
};
use model::EventKind;
use protocol::function::{FromFunction, MAX_STATES, StatesRequest, ToFunction};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The flow from this client of the source.
fn flow(client: u8) -> StateTuple {
    let end = |address: [u8; 4], port| (Ipv4Addr::from(address).to_ipv6_mapped(), port);
    StateTuple { protocol: 17, ends: [end([10, 0, 0, client], 1000), end([10, 9, 0, 1], 53)] }
}

fn state(tuple: StateTuple, version: u32) -> StateRecord {
    let payload = tuple.ends[0].0.octets()[15..].to_vec();
    StateRecord { element: String::new(), format: String::new(), version, tuples: [tuple; 2], payload }
}

/// The bytes behind their length, which follows this number of bytes.
fn nested(request: &[u8], at: usize) -> &[u8] {
    &request[at + 4..]
}

/// The right answer of a function that names all flows of the source, at any instance.
fn right(kind: StatesRequest, request: &[u8]) -> Vec<u8> {
    match kind {
        StatesRequest::List => {
            let begins = request[..12] == [0; 12];
            let groups = if begins { (0..32).map(|client| vec![flow(client)]).collect() } else { Vec::new() };
            let next = begins.then_some(FlowPosition { element: 0, inside: 32 });
            FlowList { next, groups, lost: Vec::new() }.encode()
        }
        StatesRequest::Export => {
            let groups = decode_groups(nested(request, 8)).expect("groups");
            let states = groups.iter().map(|group| state(group[0], 1)).collect();
            FlowExport { groups: Some(groups.len() as u32), states }.encode()
        }
        StatesRequest::Import => RefusedState::encode(&[]),
    }
}

/// What a function answers; `None` for nothing.
type Answer = fn(StatesRequest, &[u8]) -> Option<Vec<u8>>;

fn always(kind: StatesRequest, request: &[u8]) -> Option<Vec<u8>> {
    Some(right(kind, request))
}

/// The right answer, except to requests of one kind.
fn except(of: StatesRequest, wrong: Vec<u8>, kind: StatesRequest, request: &[u8]) -> Option<Vec<u8>> {
    Some(if kind == of { wrong } else { right(kind, request) })
}

/// Answers requests until the function may leave, is refused, or need not go on. Returns the states that it was given, by client.
fn serve(function: &FunctionProcess, answer: Answer, is_done: &AtomicBool) -> BTreeMap<u8, u32> {
    let mut given = BTreeMap::new();
    while !is_done.load(Ordering::Acquire) {
        match function.receive_now() {
            Some(ToFunction::States { kind, number, request }) => {
                if kind == StatesRequest::Import {
                    let states = decode_states(nested(&request, 0)).expect("states");
                    given.extend(states.iter().map(|state| (state.payload[0], state.version)));
                }
                // Answers to no request change nothing.
                let stray = FromFunction::States { number: number.wrapping_sub(1), reply: vec![0; 9] };
                function.send(&stray.encode());
                if let Some(reply) = answer(kind, &request) {
                    function.send(&FromFunction::States { number, reply }.encode());
                }
            }
            Some(ToFunction::Leaving | ToFunction::Refused(_)) => break,
            Some(other) => panic!("{other:?}"),
            None => thread::sleep(Duration::from_micros(200)),
        }
    }
    given
}

/// What became of the state of the flows of a function that left.
#[derive(Debug)]
struct Outcome {
    /// The states that the function at the other instance got, and those that came back.
    given: [BTreeMap<u8, u32>; 2],
    events: Vec<String>,
    /// Flows of the one that left, and how many the other one took over.
    flows: u64,
    taken_over: u64,
}

/// The second of two functions leaves while packets wait for both. Whatever they answer, all packets arrive.
fn leave(bed: &TestBed, heir: Option<Answer>, answer: Answer) -> Outcome {
    let join = |hands_over| bed.socket.connect().register_as(TOKEN, 0, hands_over).unwrap();
    let (mut first, mut second) = (join(heir.is_some()), join(true));
    assert!(second.welcome.hands_over);
    let mut flows = 0;
    // Enough that all flows have begun.
    for round in 1..=3 {
        bed.send(400);
        bed.until("packets wait", |bed| bed.instances(0).iter().map(|one| one.waiting).sum::<u64>() == 400);
        if round == 3 {
            flows = bed.instances(0)[1].flows;
            second.send(&FromFunction::Leave.encode());
        }
        assert_eq!(second.forward(u64::MAX, 0) + first.forward(u64::MAX, 0), 400);
    }
    let is_done = AtomicBool::new(false);
    let given = thread::scope(|scope| {
        let (first, is_done) = (&first, &is_done);
        let heir = heir.map(|heir| scope.spawn(move || serve(first, heir, is_done)));
        let given = serve(&second, answer, &AtomicBool::new(false));
        is_done.store(true, Ordering::Release);
        [heir.map_or_else(BTreeMap::new, |heir| heir.join().expect("it ends")), given]
    });
    // All flows are at the first one now.
    bed.send(200);
    bed.until("packets wait", |bed| bed.instances(0)[0].waiting == 200);
    drop(second);
    assert_eq!(first.forward(u64::MAX, 0), 200);
    bed.until("packets arrive", |bed| bed.read("sink", "got.count") == 1400);
    bed.until("the switch knows", |bed| bed.up() == [true, false]);
    assert_eq!(bed.instances(0)[1].handover, None);
    let taken_over = bed.instances(0)[0].taken_over;
    drop(first);
    bed.until("the switch knows", |bed| bed.up() == [false, false]);
    for port in ["nf-1.0", "nf-2.0"] {
        let (from, to, drops) = bed.port(port);
        assert_eq!((from, drops), (to, BTreeMap::new()), "{port}");
    }
    bed.check_account();
    let events = [EventKind::StateHandedOver, EventKind::StateKept].map(|kind| bed.events(kind)).concat();
    Outcome { given, events, flows, taken_over }
}

fn kept(why: &str, what: &str) -> String {
    format!("not all flows of instance nf-2 of service nf were handed over: {why}; {what}")
}

#[test]
fn a_function_that_leaves_hands_its_flows_over() {
    with_threads(|threads| {
        let bed = TestBed::new("states", threads, "in=0", &[]);
        // It names the flows of the other one too, and gives states of them. They stay where they are.
        let Outcome { given: [heir, own], events, flows, taken_over } = leave(&bed, Some(always), always);
        assert_eq!((heir.len() as u64, taken_over), (flows, flows));
        assert!(heir.values().all(|version| *version == 1) && own.is_empty(), "{heir:?} {own:?}");
        let begin = format!("instance nf-2 of service nf handed {flows} flows over to other instances in ");
        assert!(events.len() == 1 && events[0].starts_with(&begin), "{events:?}");
        // Without another instance, its flows are not taken from it.
        let alone = bed.socket.connect().register_as(TOKEN, 0, true).unwrap();
        alone.send(&FromFunction::Leave.encode());
        let given = serve(&alone, always, &AtomicBool::new(false));
        let kept = bed.events(EventKind::StateKept);
        assert!(given.is_empty() && kept.len() == 1, "{given:?} {kept:?}");
        assert!(kept[0].ends_with("no other instance is up; flows go on without their state"), "{kept:?}");
    });
}

/// What another function answers, if it takes states over, what the one that leaves answers, and what is said of it.
type Case = (Option<Answer>, Answer, &'static str);

/// Runs cases side by side, with one switch thread or two.
fn check(name: &str, cases: &[Case], check: impl Fn(&str, Outcome) + Sync) {
    thread::scope(|scope| {
        for (number, (heir, answer, why)) in cases.iter().enumerate() {
            let check = &check;
            scope.spawn(move || {
                let bed = TestBed::new(&format!("{name}{number}"), number % 2 + 1, "in=0", &[]);
                check(why, leave(&bed, *heir, *answer));
            });
        }
    });
}

#[test]
fn functions_that_lie_about_flows_lose_only_their_own_state() {
    let cases: [Case; 7] = [
        (Some(always), |_, _| None, "function nf-2: it did not answer in time"),
        (
            Some(always),
            |_, _| Some(vec![255; 7]),
            "function nf-2: its answer is invalid: it ends in the middle of a field",
        ),
        (Some(always), |_, _| Some(vec![0; MAX_STATES + 1]), "function nf-2: it left meanwhile"),
        (
            Some(always),
            |_, _| {
                let groups = vec![vec![flow(1), flow(2)]];
                Some(FlowList { next: None, groups, lost: Vec::new() }.encode())
            },
            "function nf-2: it named something that is no single flow",
        ),
        (
            Some(always),
            |_, _| {
                let all = StateTuple { protocol: 0, ends: flow(1).ends.map(|(address, _)| (address, 0)) };
                Some(FlowList { next: None, groups: vec![vec![all]], lost: Vec::new() }.encode())
            },
            "function nf-2: it named something that is no single flow",
        ),
        (
            Some(always),
            |kind, request| except(StatesRequest::Export, vec![1, 0, 0, 0, 255], kind, request),
            "function nf-2: its answer is invalid: it ends in the middle of a field",
        ),
        (
            Some(always),
            |kind, request| except(StatesRequest::Export, FlowExport::default().encode(), kind, request),
            "packets of these flows wait in it for too long",
        ),
    ];
    check("lies", &cases, |why, Outcome { given, events, taken_over, .. }| {
        assert_eq!(events, [kept(why, "flows go on without their state")]);
        assert_eq!((given, taken_over), ([BTreeMap::new(), BTreeMap::new()], 0), "{why}");
    });
}

/// A function that gives states of other flows than those that it was asked for.
#[test]
fn states_of_flows_that_were_not_asked_for_are_lost() {
    let others: Answer = |kind, request| {
        let states = vec![state(flow(200), 1), state(flow(201), 1)];
        except(StatesRequest::Export, FlowExport { groups: Some(1000), states }.encode(), kind, request)
    };
    let case = (Some(always as Answer), others, "states of other flows came than were asked for");
    check("others", &[case, case], |why, Outcome { given, events, flows, taken_over }| {
        assert_eq!((given, taken_over), ([BTreeMap::new(), BTreeMap::new()], flows));
        // It names its flows again when all others were moved, and gives the same two states.
        assert_eq!(events[1..], [kept(why, "0 flows go on without their state, 4 were lost")]);
    });
}

#[test]
fn what_another_function_does_not_take_goes_back() {
    let refuses: Answer = |kind, request| {
        let states = decode_states(nested(request, 0)).map_or(0, |states| states.len() as u32);
        let reason = "the state has version 1,\n and not 2".to_string();
        let refused = (0..states).map(|number| RefusedState { number, reason: reason.clone() });
        except(StatesRequest::Import, RefusedState::encode(&refused.collect::<Vec<_>>()), kind, request)
    };
    let garbage: Answer = |kind, request| except(StatesRequest::Import, vec![9], kind, request);
    let cases: [Case; 3] = [
        (Some(refuses), always, "function nf-1: the state has version 1,\\n and not 2"),
        (Some(garbage), always, "function nf-1: its answer is invalid: it ends in the middle of a field"),
        (None, always, "function nf-1: it is gone, or takes no state of flows over"),
    ];
    check("versions", &cases, |why, Outcome { given: [_, own], events, flows, taken_over }| {
        assert_eq!(events, [kept(why, &format!("{flows} flows go on without their state"))]);
        assert_eq!((own.len() as u64, taken_over), (flows, 0), "{why}");
    });
}
