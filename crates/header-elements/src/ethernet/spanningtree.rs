//! The spanning tree protocol of IEEE 802.1D-1998, clause 8, without clocks and packets.

use element::prelude::*;

use super::bpdu::{Claim, Message, Times};

/// A second, in the unit of [`Times`].
pub(super) const SECOND: u16 = 256;
/// The default priority of a port, in the upper byte of its number.
const PORT_PRIORITY: u16 = 0x8000;

/// What a port does with frames other than messages of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PortState {
    Blocking,
    Listening,
    /// Frames are received, so that the switch learns their addresses, and none are sent.
    Learning,
    Forwarding,
}

impl PortState {
    pub(super) fn name(self) -> &'static str {
        match self {
            PortState::Blocking => "blocking",
            PortState::Listening => "listening",
            PortState::Learning => "learning",
            PortState::Forwarding => "forwarding",
        }
    }
}

#[derive(Clone)]
struct Port {
    state: PortState,
    /// Time until the next state, for a port that listens or learns.
    wait: u16,
    /// The best claim that is made on its segment: this bridge's own on ports for which it is designated.
    claim: Claim,
    /// How old the claim is, if it came in a message.
    age: Option<u16>,
    /// The next message acknowledges a notification.
    acknowledges: bool,
    /// A message was sent in this second, so that the next one waits.
    held: bool,
    waiting: bool,
}

/// A bridge. Its time is a call of [`tick`](Bridge::tick) in each second.
pub(super) struct Bridge {
    /// Its priority and address.
    id: u64,
    /// The cost of each port.
    cost: u32,
    own_times: Times,
    times: Times,
    ports: Vec<Port>,
    root: u64,
    root_cost: u32,
    root_port: Option<usize>,
    /// Time until the next messages of the root, or the next notification.
    hello: u16,
    /// Whether addresses expire sooner.
    changed: bool,
    /// Time for which the root says that the topology changed.
    changed_left: u16,
    /// A change that the root has not acknowledged.
    detected: bool,
    /// Changes that this bridge found or heard of.
    pub(super) changes: u64,
    /// Messages to send, by port.
    pub(super) sent: Vec<(usize, Message)>,
}

fn port_id(port: usize) -> u16 {
    PORT_PRIORITY | (port as u16 + 1)
}

impl Bridge {
    /// A bridge that takes itself for the root. Its ports listen.
    pub(super) fn new(id: u64, cost: u32, times: Times, ports: usize) -> Bridge {
        let mut bridge = Bridge {
            id,
            cost,
            own_times: times,
            times,
            ports: Vec::new(),
            root: id,
            root_cost: 0,
            root_port: None,
            hello: 0,
            changed: false,
            changed_left: 0,
            detected: false,
            changes: 0,
            sent: Vec::new(),
        };
        for port in 0..ports {
            bridge.ports.push(Port {
                state: PortState::Listening,
                wait: times.forward_delay,
                claim: bridge.own_claim(port),
                age: None,
                acknowledges: false,
                held: false,
                waiting: false,
            });
        }
        bridge
    }

    /// Goes on as the bridge that it replaces, which has the same address and ports.
    pub(super) fn take_over(&mut self, old: &mut Bridge) {
        core::mem::swap(self, old);
        (self.cost, self.own_times) = (old.cost, old.own_times);
        self.select();
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// The state of each port.
    pub(super) fn states(&self) -> impl Iterator<Item = PortState> {
        self.ports.iter().map(|port| port.state)
    }

    /// The root, the cost of the path there, and the port that leads there.
    pub(super) fn root(&self) -> (u64, u32, Option<usize>) {
        (self.root, self.root_cost, self.root_port)
    }

    /// The role of a port.
    pub(super) fn role(&self, port: usize) -> &'static str {
        if self.root_port == Some(port) {
            "root"
        } else if self.is_designated(port) {
            "designated"
        } else {
            "alternate"
        }
    }

    /// For how long the switch is to keep addresses, if not for its own time.
    pub(super) fn lifetime(&self) -> Option<u16> {
        self.changed.then_some(self.times.forward_delay)
    }

    /// A message has arrived.
    pub(super) fn receive(&mut self, port: usize, message: &Message) {
        let Some(found) = self.ports.get(port) else { return };
        match *message {
            Message::Notification => {
                if self.is_designated(port) {
                    self.topology_changed();
                    self.port(port, |port| port.acknowledges = true);
                    self.send_configuration(port);
                }
            }
            // An old message is one of a root that may be gone.
            Message::Configuration { age, times, .. } if age >= times.max_age => {}
            Message::Configuration { claim, age, times, changed, acknowledges } => {
                let same_bridge = |of: &Claim| (of.root, of.cost, of.bridge);
                let replaces = claim <= found.claim
                    || same_bridge(&claim) == same_bridge(&found.claim) && claim.bridge != self.id;
                if !replaces {
                    if self.is_designated(port) {
                        self.send_configuration(port);
                    }
                    return;
                }
                let was_root = self.is_root();
                self.port(port, |port| (port.claim, port.age) = (claim, Some(age)));
                self.select();
                if was_root && !self.is_root() && self.detected {
                    self.notify();
                }
                if self.root_port == Some(port) {
                    (self.times, self.changed) = (times, changed);
                    self.send_configurations();
                    self.detected &= !acknowledges;
                }
            }
        }
    }

    /// A second has passed.
    pub(super) fn tick(&mut self) {
        self.ports.iter_mut().for_each(|port| port.held = false);
        self.expire();
        for port in 0..self.ports.len() {
            self.advance(port);
        }
        if self.is_root() {
            self.changed_left = self.changed_left.saturating_sub(SECOND);
            self.changed = self.changed_left > 0;
            self.detected = false;
        }
        self.hello = self.hello.saturating_sub(SECOND);
        if self.hello == 0 {
            if self.is_root() {
                self.hello = self.times.hello;
                self.send_configurations();
            } else if self.detected {
                self.notify();
            }
        }
        for port in 0..self.ports.len() {
            if self.ports.get(port).is_some_and(|port| port.waiting) {
                self.send_configuration(port);
            }
        }
    }

    /// Forgets claims that were not repeated in time.
    fn expire(&mut self) {
        let was_root = self.is_root();
        let mut expired = false;
        for port in 0..self.ports.len() {
            let (max_age, own) = (self.times.max_age, self.own_claim(port));
            self.port(port, |port| {
                port.age = port.age.map(|age| age.saturating_add(SECOND));
                if port.age.is_some_and(|age| age >= max_age) {
                    expired = true;
                    (port.claim, port.age) = (own, None);
                }
            });
        }
        if expired {
            self.select();
            if self.is_root() && !was_root {
                self.topology_changed();
                self.hello = 0;
            }
        }
    }

    /// Brings a port that waits for it to its next state.
    fn advance(&mut self, number: usize) {
        let delay = self.times.forward_delay;
        let Some(port) = self.ports.get_mut(number) else { return };
        if !matches!(port.state, PortState::Listening | PortState::Learning) {
            return;
        }
        port.wait = port.wait.saturating_sub(SECOND);
        if port.wait > 0 {
            return;
        }
        if port.state == PortState::Listening {
            (port.state, port.wait) = (PortState::Learning, delay);
            return;
        }
        port.state = PortState::Forwarding;
        if (0..self.ports.len()).any(|port| self.is_designated(port)) {
            self.topology_changed();
        }
    }

    fn is_root(&self) -> bool {
        self.root_port.is_none()
    }

    fn port(&mut self, number: usize, change: impl FnOnce(&mut Port)) {
        if let Some(port) = self.ports.get_mut(number) {
            change(port);
        }
    }

    fn own_claim(&self, port: usize) -> Claim {
        Claim { root: self.root, cost: self.root_cost, bridge: self.id, port: port_id(port) }
    }

    fn is_designated(&self, port: usize) -> bool {
        self.ports
            .get(port)
            .is_some_and(|found| found.claim.bridge == self.id && found.claim.port == port_id(port))
    }

    /// Selects the root, the port to it, and the ports for which this bridge is designated, and their states.
    fn select(&mut self) {
        let best = (0..self.ports.len())
            .filter(|port| !self.is_designated(*port))
            .filter_map(|port| self.ports.get(port).map(|found| (found.claim, port)))
            .filter(|(claim, _)| claim.root < self.id)
            .map(|(claim, port)| (Claim { cost: claim.cost.saturating_add(self.cost), ..claim }, port))
            .min();
        (self.root, self.root_cost, self.root_port) =
            best.map_or((self.id, 0, None), |(claim, port)| (claim.root, claim.cost, Some(port)));
        if self.is_root() {
            self.times = self.own_times;
        }
        for port in 0..self.ports.len() {
            let own = self.own_claim(port);
            let Some(claim) = self.ports.get(port).map(|port| port.claim) else { continue };
            if self.is_designated(port) || claim.root != self.root || own <= claim {
                self.port(port, |port| (port.claim, port.age) = (own, None));
                self.unblock(port);
            } else if self.root_port == Some(port) {
                self.port(port, |port| port.acknowledges = false);
                self.unblock(port);
            } else {
                self.block(port);
            }
        }
    }

    fn unblock(&mut self, port: usize) {
        let delay = self.times.forward_delay;
        self.port(port, |port| {
            if port.state == PortState::Blocking {
                (port.state, port.wait) = (PortState::Listening, delay);
            }
        });
    }

    fn block(&mut self, port: usize) {
        let mut state = PortState::Blocking;
        self.port(port, |port| {
            state = core::mem::replace(&mut port.state, state);
            (port.acknowledges, port.waiting) = (false, false);
        });
        if matches!(state, PortState::Learning | PortState::Forwarding) {
            self.topology_changed();
        }
    }

    fn topology_changed(&mut self) {
        self.changes += 1;
        if self.is_root() {
            self.changed = true;
            self.changed_left = self.times.max_age.saturating_add(self.times.forward_delay);
        } else if !core::mem::replace(&mut self.detected, true) {
            self.notify();
        }
    }

    /// Tells the root of a change. Repeated until it is acknowledged.
    fn notify(&mut self) {
        self.hello = self.own_times.hello;
        self.sent.extend(self.root_port.map(|port| (port, Message::Notification)));
    }

    fn send_configurations(&mut self) {
        for port in 0..self.ports.len() {
            if self.is_designated(port) {
                self.send_configuration(port);
            }
        }
    }

    /// Sends a message, or, after another one in the same second, has it sent in the next.
    fn send_configuration(&mut self, number: usize) {
        let age = self.root_port.and_then(|port| self.ports.get(port)?.age);
        let age = age.map_or(0, |age| age.saturating_add(SECOND));
        let (claim, times, changed) = (self.own_claim(number), self.times, self.changed);
        let Some(port) = self.ports.get_mut(number) else { return };
        port.waiting = port.held;
        if port.held || age >= times.max_age {
            return;
        }
        port.held = true;
        let acknowledges = core::mem::take(&mut port.acknowledges);
        self.sent.push((number, Message::Configuration { claim, age, times, changed, acknowledges }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times { max_age: 20 * SECOND, hello: 2 * SECOND, forward_delay: 15 * SECOND };

    /// Bridges, and the cables between their ports.
    struct Network {
        bridges: Vec<Bridge>,
        cables: Vec<[(usize, usize); 2]>,
    }

    impl Network {
        /// Bridges with these priorities, each with a cable to each other one, and a port without a cable.
        fn mesh(priorities: &[u64]) -> Network {
            let count = priorities.len();
            let bridges = priorities.iter().map(|id| Bridge::new(*id, 4, TIMES, count)).collect();
            let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
            // The port of each bridge to another one has that one's number, and its own number leads nowhere.
            let cables = pairs.map(|(a, b)| [(a, b), (b, a)]).collect();
            Network { bridges, cables }
        }

        fn run(&mut self, seconds: usize) {
            for _ in 0..seconds {
                self.bridges.iter_mut().for_each(Bridge::tick);
                self.deliver();
            }
        }

        fn deliver(&mut self) {
            let mut left = 10_000;
            loop {
                let mut sent = Vec::new();
                for (at, bridge) in self.bridges.iter_mut().enumerate() {
                    sent.extend(bridge.sent.drain(..).map(|(port, message)| ((at, port), message)));
                }
                if sent.is_empty() {
                    return;
                }
                for (from, message) in sent {
                    for [one, other] in &self.cables {
                        let to = if *one == from {
                            other
                        } else if *other == from {
                            one
                        } else {
                            continue;
                        };
                        self.bridges[to.0].receive(to.1, &message);
                        left -= 1;
                        assert!(left > 0, "messages without end");
                    }
                }
            }
        }

        fn states(&self, bridge: usize) -> Vec<&'static str> {
            self.bridges[bridge].states().map(PortState::name).collect()
        }

        /// The number of cables that forward in both directions.
        fn open_cables(&self) -> usize {
            let is_open = |(bridge, port): (usize, usize)| {
                self.bridges[bridge].states().nth(port) == Some(PortState::Forwarding)
            };
            self.cables.iter().filter(|ends| ends.iter().all(|end| is_open(*end))).count()
        }
    }

    #[test]
    fn a_mesh_becomes_a_tree() {
        for count in 1..6_u64 {
            let ids: Vec<u64> = (0..count).map(|at| 0x8000_0000_0000_0001 + (at * 5) % 7).collect();
            let mut network = Network::mesh(&ids);
            network.run(29);
            assert_eq!(network.open_cables(), 0, "{count} bridges: no port forwards before two delays");
            network.run(6);
            assert_eq!(network.open_cables(), count as usize - 1, "{count} bridges");
            let root = *ids.iter().min().expect("bridges");
            assert!(network.bridges.iter().all(|bridge| bridge.root().0 == root));
            // The change is over after its time, for all.
            network.run(40);
            assert!(network.bridges.iter().all(|bridge| bridge.lifetime().is_none() && !bridge.detected));
        }
    }

    #[test]
    fn another_bridge_becomes_the_root() {
        let mut network = Network::mesh(&[1, 2, 3]);
        network.run(80);
        assert_eq!(network.states(2), ["forwarding", "blocking", "forwarding"]);
        assert_eq!((network.bridges[2].role(0), network.bridges[2].role(1)), ("root", "alternate"));
        assert_eq!(network.bridges[2].root(), (1, 4, Some(0)));
        // Bridge 0 is unplugged.
        network.cables.retain(|[one, _]| one.0 != 0);
        network.run(60);
        assert_eq!(network.bridges[2].root(), (2, 4, Some(1)));
        assert_eq!(network.open_cables(), 1);
        assert_eq!(network.states(2), ["forwarding", "forwarding", "forwarding"]);
    }

    #[test]
    fn a_change_is_told_to_the_root_and_to_all() {
        let mut network = Network::mesh(&[1, 2, 3]);
        network.run(80);
        let before = network.bridges[0].changes;
        // The cable between 0 and 2 is unplugged: 2 notices when the claim of 0 is too old.
        network.cables.retain(|cable| *cable != [(0, 2), (2, 0)]);
        network.run(20);
        assert_eq!(network.bridges[2].root(), (1, 8, Some(1)));
        network.run(31);
        assert!(network.bridges[0].changes > before);
        assert!(network.bridges.iter().all(|bridge| bridge.lifetime() == Some(TIMES.forward_delay)));
        network.run(40);
        assert!(network.bridges.iter().all(|bridge| bridge.lifetime().is_none() && !bridge.detected));
        assert_eq!(network.open_cables(), 2);
    }

    #[test]
    fn any_messages_are_survived() {
        let mut random = 1_u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            random >> 33
        };
        let mut bridge = Bridge::new(5, u32::MAX, TIMES, 3);
        for _ in 0..20_000 {
            let times = Times { max_age: next() as u16, hello: next() as u16, forward_delay: next() as u16 };
            let claim =
                Claim { root: next() % 8, cost: next() as u32 * 2, bridge: next() % 8, port: next() as u16 };
            let message = match next() % 4 {
                0 => Message::Notification,
                _ => Message::Configuration {
                    claim,
                    age: next() as u16,
                    times,
                    changed: next() % 2 == 0,
                    acknowledges: next() % 2 == 0,
                },
            };
            bridge.receive(next() as usize % 4, &message);
            if next() % 3 == 0 {
                bridge.tick();
            }
            assert!(bridge.sent.len() <= 12, "messages are held");
            bridge.sent.clear();
        }
    }
}
