//! Functions in configurations: batches, state of flows, timers, messages, drop reasons, and hot swap of their state.

use element::Class;
use function::Simulation;
use function::prelude::*;

const OVER_LIMIT: &str = "user:limit/over_limit";
const NO_FLOW: &str = "user:limit/no_flow";

/// Lets the first LIMIT packets of each flow pass.
///
/// Every second, it tells the element FRIEND how many packets it dropped.
/// ```click
/// Idle -> FlowLimit(5) -> Discard;
/// ```
#[derive(Args)]
#[element(name = "FlowLimit", group = "testing", ports = "1/1-2", processing = "h/h")]
struct FlowLimitArgs {
    /// Packets of each flow.
    #[arg(position)]
    limit: u32,
    /// The element that is told.
    friend: Option<String>,
}

struct FlowLimit {
    limit: u32,
    friend: Option<String>,
    dropped: u64,
    ticks: u32,
    told: Vec<String>,
}

impl Function for FlowLimit {
    type Args = FlowLimitArgs;
    type FlowState = u32;
    const HANDLERS: &'static [Handler<Running<FlowLimit>>] = &[
        Handler::read("dropped", "Dropped packets.", |limit| limit.dropped.to_string()),
        Handler::read("ticks", "Seconds.", |limit| limit.ticks.to_string()),
        Handler::read("told", "Messages.", |limit| limit.told.join(",")),
    ];
    const DROPS: &'static [&'static str] = &[OVER_LIMIT, NO_FLOW];
    const HAND_OVER: Option<HandOver<u32>> = Some(HandOver {
        version: 3,
        export: |count| count.to_be_bytes().to_vec(),
        import: |bytes| Some(u32::from_be_bytes(bytes.try_into().ok()?)),
    });

    fn new(args: FlowLimitArgs, _: &mut Setup) -> Result<FlowLimit, SetupError> {
        if args.limit == 0 {
            return Err(SetupError::new("LIMIT must be at least 1"));
        }
        Ok(FlowLimit { limit: args.limit, friend: args.friend, dropped: 0, ticks: 0, told: Vec::new() })
    }

    fn start(&mut self, call: &mut Call) -> Result<(), SetupError> {
        call.set_timer(0, Duration::from_secs(1));
        Ok(())
    }

    fn process(&mut self, batch: &mut Batch, flows: &mut Flows<u32>, call: &mut Call) {
        batch.filter_map(|packet| {
            let Some(count) = flows.of(&packet, call.now()) else {
                call.drop(packet, NO_FLOW);
                return None;
            };
            *count += 1;
            if *count <= self.limit {
                return Some(packet);
            }
            self.dropped += 1;
            call.drop(packet, OVER_LIMIT);
            None
        });
    }

    fn timer(&mut self, _: usize, _: &mut Flows<u32>, call: &mut Call) {
        self.ticks += 1;
        if let Some(friend) = &self.friend {
            call.message(friend, &format!("{} dropped", self.dropped));
        }
        if self.ticks < 3 {
            call.set_timer(0, Duration::from_secs(1));
        }
    }

    fn message(&mut self, text: &str, _: &mut Flows<u32>, _: &mut Call) -> Result<(), HandlerError> {
        self.told.push(text.to_string());
        Ok(())
    }
}

function::classes![FlowLimit];

static REGISTRY: &[&[Class]] = &[
    &CLASSES,
    elements::REGISTRY[0],
    elements::REGISTRY[2],
    elements::REGISTRY[6],
    elements::REGISTRY[17],
    elements::REGISTRY[19],
];

/// The frames of two flows in both directions, five packets each, and one frame without IP.
fn source(limit: &str) -> String {
    let frame = |source: &str, destination: &str, ports: &str| {
        let head = "000000000000000000000000 0800 45000020 00004000 40110000";
        format!("\\<{head} {source} {destination} {ports} 000c0000>")
    };
    let (a, b, c) = ("0a000001", "c0000209", "0a000002");
    let frames = [
        (5, frame(a, b, "13880035")),
        (5, frame(b, a, "00351388")),
        (3, frame(c, b, "13880035")),
        (
            1,
            "\\<000000000000000000000000 0806 00000000000000000000000000000000000000000000000000000000>"
                .into(),
        ),
    ];
    let text: Vec<String> = (0..).zip(&frames).map(|(number, (count, frame)): (u32, _)| {
        format!("InfiniteSource(DATA {frame}, LIMIT {count}, BURST {count}) -> [0]in{number} :: Null -> limit;")
    }).collect();
    format!("limit :: FlowLimit({limit}) -> passed :: Counter -> Discard; {}", text.join(" "))
}

#[test]
fn flows_have_state_and_packets_a_reason() {
    let done = Simulation::new(REGISTRY).run(&source("4")).unwrap();
    let read = |handler: &str| done.read(handler).unwrap();
    // Both directions are one flow: 4 of 10 packets pass, and all 3 of the other flow.
    assert_eq!(
        (read("passed.count"), read("limit.dropped"), read("limit.flows")),
        ("7".into(), "6".into(), "2".into())
    );
    let losses = read("limit.losses");
    assert!(
        losses.contains("user:limit/over_limit 6") && losses.contains("user:limit/no_flow 1"),
        "{losses}"
    );
    assert_eq!(losses.lines().count(), 2, "{losses}");
}

#[test]
fn flows_go_on_in_another_instance() {
    let simulation = Simulation::new(REGISTRY);
    let run = |text: &str| {
        let mut started = simulation.start(text).unwrap();
        started.run_for(Duration::from_secs(1));
        started
    };
    let mut one = run(&source("4"));
    let mut other = run("limit :: FlowLimit(5); Idle -> limit -> Discard;");
    assert_eq!(one.hand_over(&mut other), Ok(2));
    assert_eq!(
        (one.read("limit.flows").unwrap(), other.read("limit.flows").unwrap()),
        ("0".into(), "2".into())
    );
    // A third instance knows one of the flows: of ten packets and three.
    let mut third = run("limit :: FlowLimit(5); Idle -> limit -> Discard;");
    assert_eq!(other.hand_over(&mut third), Ok(2));
    let mut back = run(&source("20"));
    assert_eq!(third.hand_over(&mut back), Err("limit: another flow has the addresses and ports".into()));
    // No other version, no other class, and no bytes that the function does not know.
    let mut old = run(&source("4, FRIEND old"));
    assert_eq!(
        old.hand_over(&mut run("limit :: Counter; Idle -> limit -> Discard;")),
        Err("limit: the state has an unknown format or version".into())
    );
    assert_eq!(
        back.hand_over(&mut run("Idle -> Discard;")),
        Err("limit: the state does not fit the configuration".into())
    );
}

#[test]
fn a_flow_goes_on_with_its_time() {
    let simulation = Simulation::new(REGISTRY);
    // Packets without a flow let the function look at the time.
    let ticks = "TimedSource(1) -> limit;";
    let mut one = simulation.start(&format!("{} {ticks}", source("4"))).unwrap();
    one.run_for(Duration::from_secs(40));
    let mut other = simulation.start(&format!("limit :: FlowLimit(4) -> Discard; {ticks}")).unwrap();
    assert_eq!(one.hand_over(&mut other), Ok(2));
    // Nothing came for 40 of its 60 seconds.
    for (seconds, flows) in [(19, "2"), (2, "0")] {
        other.run_for(Duration::from_secs(seconds));
        assert_eq!(other.read("limit.flows").unwrap(), flows, "{seconds}");
    }
}

#[test]
fn timers_and_messages_arrive() {
    let text = format!("{} friend :: FlowLimit(1); Idle -> friend -> Discard;", source("4, FRIEND friend"));
    let done = Simulation::new(REGISTRY).run(&text).unwrap();
    assert_eq!(done.read("limit.ticks").unwrap(), "3");
    assert_eq!(done.read("friend.told").unwrap(), "6 dropped,6 dropped,6 dropped");
    assert_eq!(done.log(), Vec::<String>::new());
}

#[test]
fn errors_of_arguments_are_reported() {
    let refused = Simulation::new(REGISTRY).run("Idle -> FlowLimit(0) -> Discard;").err().unwrap();
    assert!(refused.contains("LIMIT must be at least 1"), "{refused}");
    let unknown = Simulation::new(REGISTRY).run("Idle -> FlowLimits(1) -> Discard;").err().unwrap();
    assert!(unknown.contains("FlowLimits"), "{unknown}");
}
