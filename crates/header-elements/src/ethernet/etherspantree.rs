//! `EtherSpanTree`: keeps switches from forwarding in loops.

use element::arguments::ElementName;
use element::prelude::*;
use packet::MacAddr;

use super::bpdu::{FRAME_LENGTH, Malformed, Message, Times};
use super::spanningtree::{Bridge, PortState, SECOND};

/// Spanning tree protocol for an EtherSwitch: closes ports that would forward in a loop.
///
/// The protocol is that of IEEE 802.1D-1998. Switches that are connected in loops then forward along a tree.
///
/// Its inputs take the protocol's messages from the ports of the switch, which a `Classifier(14/4242, -)` tells from other
/// frames, and its outputs send messages to the same ports. Frames from port N pass the Suppressor INPUT_SUPPRESSOR, the
/// EtherSwitch SWITCH and the Suppressor OUTPUT_SUPPRESSOR. All four elements have the same number of ports. A port
/// listens for FORWARD_DELAY, then learns addresses for FORWARD_DELAY, and then forwards, unless the tree does without it.
/// After a change of the tree, the switch forgets addresses sooner.
///
/// The bridge with the least priority is the root, and of several the one with the least address. Messages of later
/// versions of the protocol are dropped as `other_protocol`; switches with such a version also understand this one.
///
/// Tried with bridges of the Linux kernel (`stp_state 1`): either side as the root, two links between them and a ring of three.
///
/// ## Differences
/// - There may be at most 255 ports, the most that the protocol can number.
/// - The keywords and the handlers do not exist in Click. Click's priority is 57005, and its path cost 1.
/// - Click writes its address in another byte order, does not report changes to other switches, never changes the lifetime of
///   addresses, and reads messages without looking at their length, protocol and type.
/// ```click
/// // Two switches with two cables between them. Without the tree, a broadcast would go round for ever.
/// elementclass Bridge { $address, $priority |
///     input[0] -> c0 :: Classifier(14/4242, -);
///     input[1] -> c1 :: Classifier(14/4242, -);
///     tree :: EtherSpanTree($address, in, out, switch, PRIORITY $priority);
///     in, out :: Suppressor;
///     switch :: EtherSwitch;
///     c0[0] -> [0] tree [0] -> [0] output;
///     c1[0] -> [1] tree [1] -> [1] output;
///     c0[1] -> [0] in [0] -> [0] switch [0] -> [0] out [0] -> [0] output;
///     c1[1] -> [1] in [1] -> [1] switch [1] -> [1] out [1] -> [1] output;
/// }
/// a :: Bridge(2:0:0:0:0:1, 4096);
/// b :: Bridge(2:0:0:0:0:2, 8192);
/// a[0] -> [0] b;  b[0] -> [0] a;
/// a[1] -> [1] b;  b[1] -> [1] a;
/// frame :: InfiniteSource(DATA \<ffffffffffff 020000000003 88b5>, LIMIT 1, ACTIVE false) -> [0] b;
/// Script(wait 40s, write frame.active true, wait 1s, stop);
/// ```
/// ```expect
/// a/tree.root = 1000.02-00-00-00-00-01 0
/// b/tree.root = 1000.02-00-00-00-00-01 4 0
/// a/tree.ports = 0 designated forwarding\n1 designated forwarding
/// b/tree.ports = 0 root forwarding\n1 alternate blocking
/// b/out.losses = suppressed 1
/// frame.count = 1
/// ```
#[derive(Args)]
#[element(
    name = "EtherSpanTree",
    group = "ethernet",
    ports = "-/=",
    processing = "h/h",
    flow = "x/y",
    see = "EtherSwitch, Suppressor",
    drops = "too_short, own_source, other_protocol",
    fates = "made, consumed"
)]
pub struct EtherSpanTreeArgs {
    /// Ethernet address of the switch.
    #[arg(position)]
    addr: MacAddr,
    /// Suppressor between the ports and the switch.
    #[arg(position)]
    input_suppressor: ElementName,
    /// Suppressor between the switch and the ports.
    #[arg(position)]
    output_suppressor: ElementName,
    /// The EtherSwitch.
    #[arg(position)]
    switch: ElementName,
    /// Priority of the switch; the least becomes the root.
    #[arg(default = "57344")]
    priority: u16,
    /// Cost of the path through a port: 4 is that of 1 Gbit/s.
    #[arg(default = "4")]
    cost: u32,
    /// Time between messages of the root, 1 to 10 seconds.
    #[arg(default = "2")]
    hello: Timestamp,
    /// Time after which a message that was not repeated is forgotten, 6 to 40 seconds.
    #[arg(default = "20")]
    max_age: Timestamp,
    /// Time for which a port listens, and then learns, 4 to 30 seconds.
    #[arg(default = "15")]
    forward_delay: Timestamp,
}

/// Maximum ports: in messages, a port's number has eight bits (IEEE 802.1D-1998, 9.2.7).
const MAX_PORTS: usize = 255;

pub struct EtherSpanTree {
    args: EtherSpanTreeArgs,
    bridge: Bridge,
    /// The states that the suppressors have.
    states: Vec<Option<PortState>>,
    /// The lifetime of addresses that the switch had at first, and the one that it has for a time.
    lifetime: (String, Option<u16>),
}

/// A time in the protocol's unit.
fn protocol_time(keyword: &'static str, time: Timestamp, least: i64, most: i64) -> Result<u16, SetupError> {
    let seconds = time.seconds();
    if time.subsecond_nanos() != 0 || !(least..=most).contains(&seconds) {
        return Err(SetupError::argument(keyword, format!("must be {least} to {most} whole seconds")));
    }
    Ok(seconds as u16 * SECOND)
}

/// A bridge's priority and address.
fn identifier(id: u64) -> String {
    let [high, low, address @ ..] = id.to_be_bytes();
    format!("{high:02X}{low:02X}.{}", MacAddr(address))
}

impl Element for EtherSpanTree {
    type Args = EtherSpanTreeArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read(
            "root",
            "The root's priority and address, the cost of the path there, and the port.",
            |tree| {
                let (root, cost, port) = tree.bridge.root();
                let port = port.map_or_else(String::new, |port| format!(" {port}"));
                format!("{} {cost}{port}", identifier(root))
            },
        ),
        Handler::read("bridge", "The switch's own priority and address.", |tree| {
            identifier(tree.bridge.id())
        }),
        Handler::read("ports", "Role and state of each port, one per line.", |tree| {
            let states = tree.bridge.states().enumerate();
            states
                .map(|(port, state)| format!("{port} {} {}\n", tree.bridge.role(port), state.name()))
                .collect()
        }),
        Handler::read("changes", "Changes of the tree that this switch found or heard of.", |tree| {
            tree.bridge.changes.to_string()
        }),
    ];

    fn new(args: EtherSpanTreeArgs, setup: &mut Setup) -> Result<EtherSpanTree, SetupError> {
        let times = Times {
            hello: protocol_time("HELLO", args.hello, 1, 10)?,
            max_age: protocol_time("MAX_AGE", args.max_age, 6, 40)?,
            forward_delay: protocol_time("FORWARD_DELAY", args.forward_delay, 4, 30)?,
        };
        if 2 * (times.forward_delay - SECOND) < times.max_age || times.max_age < 2 * (times.hello + SECOND) {
            return Err(SetupError::new(
                "MAX_AGE must be at least 2 * (HELLO + 1 s), and at most 2 * (FORWARD_DELAY - 1 s)",
            ));
        }
        let [a, b, c, d, e, f] = args.addr.0;
        let id = u64::from(args.priority) << 48 | u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        let ports = setup.outputs();
        if ports > MAX_PORTS {
            return Err(SetupError::new(format_args!("at most {MAX_PORTS} ports")));
        }
        let bridge = Bridge::new(id, args.cost, times, ports);
        Ok(EtherSpanTree { args, bridge, states: vec![None; ports], lifetime: (String::new(), None) })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let EtherSpanTreeArgs { input_suppressor, output_suppressor, switch, .. } = &self.args;
        let find = |keyword, name: &ElementName, class: &str, handler: &str| {
            cx.read_handler(&format!("{}.class", name.0), "")
                .ok()
                .filter(|found| found.trim_end() == class)
                .and_then(|_| cx.read_handler(&format!("{}.{handler}", name.0), "").ok())
                .ok_or_else(|| {
                    SetupError::argument(
                        keyword,
                        format!("must be the name of a {class} with the same ports"),
                    )
                })
        };
        let last = format!("active{}", self.states.len().saturating_sub(1));
        find("INPUT_SUPPRESSOR", input_suppressor, "Suppressor", &last)?;
        find("OUTPUT_SUPPRESSOR", output_suppressor, "Suppressor", &last)?;
        self.lifetime.0 = find("SWITCH", switch, "EtherSwitch", "timeout")?;
        cx.set_timer_after(0, Timestamp::from_parts(1, 0));
        self.apply(cx);
        Ok(())
    }

    fn push(&mut self, cx: &mut Context, port: usize, mut batch: Batch) {
        for packet in batch.drain() {
            let frame = packet.data();
            if frame.get(6..12).is_some_and(|source| source == self.args.addr.0) {
                cx.drop(packet, Reason::OWN_SOURCE);
                continue;
            }
            match Message::parse(frame) {
                Ok(message) => {
                    self.bridge.receive(port, &message);
                    cx.end(packet, Fate::Consumed);
                }
                Err(Malformed::Short) => cx.drop(packet, Reason::TOO_SHORT),
                Err(Malformed::Other) => cx.drop(packet, Reason::OTHER_PROTOCOL),
            }
        }
        cx.recycle(batch);
        self.apply(cx);
    }

    fn timer(&mut self, cx: &mut Context, timer: usize) {
        self.bridge.tick();
        self.apply(cx);
        cx.set_timer_after(timer, Timestamp::from_parts(1, 0));
    }

    fn inherit(&mut self, old: &mut EtherSpanTree, cx: &mut Context) {
        if self.states.len() == old.states.len() && self.bridge.id() == old.bridge.id() {
            self.bridge.take_over(&mut old.bridge);
            self.apply(cx);
        }
    }
}

impl EtherSpanTree {
    /// Sends the messages of the protocol, and sets the suppressors and the switch.
    fn apply(&mut self, cx: &mut Context) {
        let sent = core::mem::take(&mut self.bridge.sent);
        for (port, message) in sent {
            let frame: [u8; FRAME_LENGTH] = message.frame(self.args.addr);
            if let Some(packet) = cx.packet(&frame) {
                cx.send(port, packet);
            }
        }
        for (port, (state, applied)) in self.bridge.states().zip(&mut self.states).enumerate() {
            if applied.replace(state) == Some(state) {
                continue;
            }
            let set = |name: &ElementName, open: bool| {
                cx.defer_write(&format!("{}.active{port}", name.0), if open { "true" } else { "false" });
            };
            set(&self.args.input_suppressor, matches!(state, PortState::Learning | PortState::Forwarding));
            set(&self.args.output_suppressor, state == PortState::Forwarding);
        }
        let lifetime = self.bridge.lifetime();
        if lifetime != self.lifetime.1 {
            self.lifetime.1 = lifetime;
            let seconds =
                lifetime.map_or_else(|| self.lifetime.0.clone(), |time| (time / SECOND).max(1).to_string());
            cx.defer_write(&format!("{}.timeout", self.args.switch.0), &seconds);
        }
    }
}
