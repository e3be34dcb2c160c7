//! The core: decides where each frame of a batch goes, and counts.

use crate::addresses::HEADER;
use crate::batch::{Batch, UnreadFrame};
use crate::books::SwitchBooks;
use crate::counters::Counters;
use crate::forward::{Decision, Forward, FrameHead, MAX_HEADS, Outcome, Target};
use crate::made::MadeFrames;
use crate::plan::ForwardingPlan;
use crate::port::{PortId, PortLimits, PortSettings};
use crate::port_config::{ClosedPorts, PortConfig};
use crate::switch_port::Port;
use flow_table::Key;
use reason::Reason;
use std::fmt;

/// Maximum ports of a switch.
pub const MAX_PORTS: usize = 4096;

/// Why a port cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchError {
    /// The switch already has [`MAX_PORTS`] ports.
    Full,
}

impl fmt::Display for SwitchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => write!(f, "all {MAX_PORTS} ports of the switch are taken"),
        }
    }
}

impl std::error::Error for SwitchError {}

/// A switch without drivers: ports, counters, and a forwarding method.
#[derive(Debug)]
pub struct Switch<F> {
    forward: F,
    ports: Vec<Option<Port>>,
    /// What was counted at ports that were removed, and what is counted for all ports together.
    books: SwitchBooks,
    /// The frames of this batch that are passed on unread, and the decisions about them.
    unread: Vec<UnreadFrame>,
    passed: Vec<Option<Decision>>,
    closed: ClosedPorts,
}

impl<F: Forward> Switch<F> {
    /// A switch without ports.
    pub fn new(forward: F) -> Self {
        Self {
            forward,
            ports: Vec::new(),
            books: SwitchBooks::default(),
            unread: Vec::new(),
            passed: Vec::new(),
            closed: ClosedPorts::default(),
        }
    }

    /// Adds a port with the lowest free number.
    pub fn add_port(&mut self, settings: PortSettings) -> Result<PortId, SwitchError> {
        let limits = PortLimits::new(&settings);
        self.add_limited_port(settings, limits)
    }

    /// Adds a port with limits that shards of the switch share.
    pub(crate) fn add_limited_port(
        &mut self,
        settings: PortSettings,
        limits: PortLimits,
    ) -> Result<PortId, SwitchError> {
        let free = self.ports.iter().position(Option::is_none).unwrap_or(self.ports.len());
        if free >= MAX_PORTS {
            return Err(SwitchError::Full);
        }
        if free == self.ports.len() {
            self.ports.push(None);
        }
        let PortLimits { limiter, new_addresses } = limits;
        self.forward.limit_new_addresses(PortId(free as u16), new_addresses);
        self.ports[free] = Some(Port::new(settings, limiter));
        Ok(PortId(free as u16))
    }

    /// Removes a port. Returns its final counters.
    pub fn remove_port(&mut self, port: PortId) -> Option<Counters> {
        let removed = self.ports.get_mut(usize::from(port.0))?.take()?;
        self.forward.remove_port(port);
        self.closed.set(port, PortConfig::default());
        self.books.counters += removed.counters;
        Some(removed.counters)
    }

    /// Forgets the addresses learned at a port that went down. Bound addresses stay.
    pub fn flush_port(&mut self, port: PortId) {
        self.forward.flush_port(port);
    }

    /// Changes a port's settings; its rate limiter restarts with full buckets. Returns false if the port does not
    /// exist.
    pub fn set_port(&mut self, port: PortId, settings: PortSettings) -> bool {
        let Some(entry) = self.port_mut(port) else { return false };
        let PortLimits { limiter, new_addresses } = PortLimits::new(&settings);
        entry.limiter = limiter;
        entry.set(settings);
        self.forward.limit_new_addresses(port, new_addresses);
        true
    }

    /// Says whether a port gets frames that are sent to all ports.
    pub fn set_flooded(&mut self, port: PortId, is_flooded: bool) {
        if let Some(entry) = self.port_mut(port) {
            entry.is_flooded = is_flooded;
        }
    }

    /// Forbids a port to receive, to send, or to be flooded, or no longer.
    pub fn set_port_config(&mut self, port: PortId, config: PortConfig) {
        self.closed.set(port, config);
        if let Some(entry) = self.port_mut(port) {
            entry.configure(config);
        }
    }

    /// A port's settings.
    pub fn settings(&self, port: PortId) -> Option<&PortSettings> {
        self.ports.get(usize::from(port.0))?.as_ref().map(|port| &port.settings)
    }

    /// Whether frames from a port may be passed on unread.
    pub(crate) fn leaves_unread(&self, from: PortId) -> bool {
        let port = self.ports.get(usize::from(from.0)).and_then(Option::as_ref);
        port.is_some_and(|port| !port.checks_frames()) && self.forward.leaves_unread(from)
    }

    /// Decides about the frames that are passed on unread, and copies what of the others received at a port
    /// [`switch`](Self::switch) will look at.
    pub(crate) fn complete(&mut self, batch: &mut Batch, from: PortId, now: u64) {
        self.unread.clear();
        self.passed.clear();
        self.unread.extend(batch.unread());
        if !self.unread.is_empty() {
            self.forward.pass_on(&self.unread, from, now, &mut self.passed);
            self.passed.resize(self.unread.len(), None);
            for (frame, decision) in self.unread.iter().zip(&mut self.passed) {
                if decision.is_none() || (frame.length as usize) < HEADER {
                    *decision = None;
                    batch.read_head(frame.number);
                }
            }
        }
        if let Some(guard) = self.settings(from).and_then(|settings| settings.guard.as_ref()) {
            batch.complete_where(|head| guard.needs_whole(head));
        }
        if self.forward.reads_headers() {
            batch.complete_where(Key::needs_more);
        }
    }

    /// A port's counters.
    pub fn counters(&self, port: PortId) -> Option<&Counters> {
        self.ports.get(usize::from(port.0))?.as_ref().map(|port| &port.counters)
    }

    /// The frames that were planned to be sent to a port.
    pub fn planned(&self, port: PortId) -> Option<u64> {
        self.ports.get(usize::from(port.0))?.as_ref().map(|port| port.planned)
    }

    /// What became of the frames of all ports, those that were removed too.
    pub fn books(&self) -> SwitchBooks {
        let mut books = self.books;
        self.ports.iter().flatten().for_each(|port| books.counters += port.counters);
        books
    }

    /// All ports.
    pub fn ports(&self) -> impl Iterator<Item = PortId> {
        let there = self.ports.iter().enumerate().filter(|(_, port)| port.is_some());
        there.map(|(index, _)| PortId(index as u16))
    }

    /// Notes that a port has a driver that works.
    pub fn resume_port(&mut self, port: PortId) {
        self.forward.resume_port(port);
    }

    /// The forwarding method, for reading or changing its table.
    pub fn forward_mut(&mut self) -> &mut F {
        &mut self.forward
    }

    /// Decides where the frames of a batch go that was received at port `from`, and counts them. `now` is in
    /// nanoseconds of a monotonic clock.
    pub fn switch(&mut self, batch: &Batch, from: PortId, now: u64, plan: &mut ForwardingPlan) {
        plan.clear();
        self.forward.begin_batch();
        let Self { forward, ports, books, unread, passed, closed } = self;
        let Some(port) = ports.get_mut(usize::from(from.0)).and_then(Option::take) else { return };
        let mut port = port;
        // The source port is taken out of the list meanwhile, so that no frame returns to it.
        let places = Places { from, ports, books, plan, closed };
        let received_bytes = match forward.reads_headers() {
            false => switch_by_addresses(forward, &mut port, places, batch, from, now),
            true if unread.len() == batch.len() && passed.iter().all(Option::is_some) => {
                switch_passed(unread, passed, places, &mut port.counters)
            }
            true => switch_by_headers(forward, &mut port, places, batch, (unread, passed), from, now),
        };
        count_planned(plan, ports, books);
        port.limiter.end_batch();
        port.counters.received_frames += batch.len() as u64;
        port.counters.received_bytes += received_bytes;
        if let Some(slot) = ports.get_mut(usize::from(from.0)) {
            *slot = Some(port);
        }
        unread.clear();
        passed.clear();
    }

    /// Performs the operations of the method on a frame that it decided so, and counts what becomes of it. The frames of
    /// [`ForwardingPlan::performed`] are given in their order.
    pub fn perform(&mut self, frame: &[u8], from: PortId, now: u64, made: &mut MadeFrames) {
        self.carry_out(Some(from), made, |forward, outcome| forward.perform(frame, from, now, outcome));
    }

    /// Takes in a frame that no port received, and counts what becomes of it: what `perform` makes the method do.
    pub fn inject(
        &mut self,
        from: Option<PortId>,
        made: &mut MadeFrames,
        perform: impl FnOnce(&mut F, &mut dyn Outcome),
    ) {
        self.books.injected += 1;
        self.carry_out(from, made, perform);
    }

    fn carry_out(
        &mut self,
        from: Option<PortId>,
        made: &mut MadeFrames,
        perform: impl FnOnce(&mut F, &mut dyn Outcome),
    ) {
        let Self { forward, ports, books, closed, .. } = self;
        let mut outcome = Outcomes { from, ports, books, made, closed, count: 0 };
        perform(forward, &mut outcome);
        let count = outcome.count;
        if count == 0 {
            outcome.lose(Reason::FLOW_DROP);
        }
        books.copied += count.saturating_sub(1);
    }

    /// Counts made frames that are about to be sent to ports.
    pub(crate) fn count_made(&mut self, made: &MadeFrames) {
        count_planned(made.plan(), &mut self.ports, &mut self.books);
    }

    /// Counts frames that were sent to a port.
    pub fn sent(&mut self, port: PortId, frames: u64, bytes: u64) {
        if let Some(port) = self.port_mut(port) {
            port.counters.sent_frames += frames;
            port.counters.sent_bytes += bytes;
        }
    }

    /// Counts packets that went straight from the port of a function to that of another, and their bytes.
    pub(crate) fn count_direct(&mut self, from: PortId, to: PortId, (packets, bytes): (u64, u64), now: u64) {
        self.forward.count_direct(packets, bytes, now);
        if let Some(port) = self.port_mut(from) {
            port.counters.received_frames += packets;
            port.counters.received_bytes += bytes;
        }
        if let Some(port) = self.port_mut(to) {
            port.planned += packets;
        }
        self.books.planned += packets;
        self.sent(to, packets, bytes);
    }

    /// Counts frames that were dropped outside the core.
    #[inline]
    pub fn lost(&mut self, port: PortId, reason: Reason, frames: u64) {
        if frames > 0
            && let Some(port) = self.port_mut(port)
        {
            port.counters.drop(reason, frames);
        }
    }

    fn port_mut(&mut self, port: PortId) -> Option<&mut Port> {
        self.ports.get_mut(usize::from(port.0))?.as_mut()
    }
}

/// Where the frames of a batch go: the other ports, and what is counted there.
struct Places<'a> {
    from: PortId,
    ports: &'a [Option<Port>],
    books: &'a mut SwitchBooks,
    plan: &'a mut ForwardingPlan,
    closed: &'a ClosedPorts,
}

impl Places<'_> {
    fn has(&self, to: PortId) -> bool {
        self.ports.get(usize::from(to.0)).is_some_and(Option::is_some) && !self.closed.sends_nothing(to)
    }

    /// Plans or counts a frame. It is dropped if the port does not exist, sends nothing, or is the one that the frame comes
    /// from.
    #[inline(always)]
    fn put_existing(&mut self, frame: u32, decision: Decision, source: &mut Counters) {
        let decision = match decision {
            Decision::To(to) | Decision::ToFunction(to, _) if !self.has(to) => match to {
                to if to == self.from => Decision::Lose(Reason::SAME_PORT),
                to if self.closed.sends_nothing(to) => Decision::Lose(Reason::PORT_CONFIG),
                _ => Decision::Drop,
            },
            decision => decision,
        };
        self.put(frame, decision, source);
    }

    /// Plans or counts a frame. Only a port that exists is decided on.
    #[inline(always)]
    fn put(&mut self, frame: u32, decision: Decision, source: &mut Counters) {
        match decision {
            Decision::To(to) => self.plan.add(to, frame),
            Decision::ToFunction(to, tag) => {
                self.plan.add(to, frame);
                self.plan.tags.push((frame, tag));
            }
            Decision::Lose(reason) => source.drop(reason, 1),
            Decision::Drop => source.drop(Reason::NO_ROUTE, 1),
            Decision::Spoofed => source.drop(Reason::SPOOFED, 1),
            Decision::Capped => source.drop(Reason::CAPPED, 1),
            Decision::BadSource => source.drop(Reason::BAD_SOURCE, 1),
            Decision::FlowMiss => source.drop(Reason::FLOW_MISS, 1),
            Decision::FlowDrop => source.drop(Reason::FLOW_DROP, 1),
            Decision::Perform => self.plan.performed.push(frame),
            Decision::Flood => {
                let mut reached = 0u64;
                for to in (0..self.ports.len() as u16).map(PortId) {
                    if is_flooded(self.ports, to) && !self.closed.misses(Target::Flood, to) {
                        self.plan.add(to, frame);
                        reached += 1;
                    }
                }
                source.drop(Reason::NO_ROUTE, u64::from(reached == 0));
                self.plan.floods |= reached > 1;
                self.books.copied += reached.saturating_sub(1);
            }
        }
    }
}

/// Whether a port is there and gets frames that are sent to all ports.
fn is_flooded(ports: &[Option<Port>], port: PortId) -> bool {
    ports.get(usize::from(port.0)).is_some_and(|port| port.as_ref().is_some_and(|port| port.is_flooded))
}

fn count_planned(plan: &ForwardingPlan, ports: &mut [Option<Port>], books: &mut SwitchBooks) {
    for to in plan.ports() {
        let frames = plan.frames(*to).len() as u64;
        books.planned += frames;
        if let Some(Some(port)) = ports.get_mut(usize::from(to.0)) {
            port.planned += frames;
        }
    }
}

/// What becomes of one frame that the method performs operations on.
struct Outcomes<'a> {
    from: Option<PortId>,
    ports: &'a mut [Option<Port>],
    books: &'a mut SwitchBooks,
    made: &'a mut MadeFrames,
    closed: &'a ClosedPorts,
    /// Frames that were sent, taken and lost.
    count: u64,
}

impl Outcome for Outcomes<'_> {
    fn send(&mut self, target: Target, frame: &[u8]) {
        let Self { from, ports, made, closed, .. } = self;
        let has = |to: PortId| ports.get(usize::from(to.0)).is_some_and(Option::is_some);
        let reached = match target {
            // Only the action that says so sends a frame back (OpenFlow 1.3.5, 5.12).
            Target::Port(to) | Target::Function(to, _) if Some(to) == *from => {
                return self.lose(Reason::SAME_PORT);
            }
            Target::Port(to) | Target::Function(to, _) if closed.sends_nothing(to) => {
                return self.lose(Reason::PORT_CONFIG);
            }
            Target::Port(to) if has(to) => made.add(frame, [to]),
            Target::Function(to, tag) if has(to) => made.add_tagged(frame, to, tag),
            Target::Port(_) | Target::Function(..) => Some(0),
            Target::Back if from.is_some_and(|from| closed.sends_nothing(from)) => {
                return self.lose(Reason::PORT_CONFIG);
            }
            Target::Back => made.add(frame, from.filter(|to| has(*to))),
            Target::Flood | Target::All => {
                let all = (0..ports.len() as u16).map(PortId);
                let is_open = |to: &PortId| is_flooded(ports, *to) && !closed.misses(target, *to);
                made.add(frame, all.filter(|to| Some(*to) != *from && is_open(to)))
            }
        };
        match reached {
            Some(0) => self.lose(Reason::NO_ROUTE),
            Some(reached) => self.count += reached,
            // Longer than any frame, or more than fits: the flow asks for the impossible.
            None => self.lose(Reason::FLOW_DROP),
        }
    }

    fn take(&mut self) {
        self.count += 1;
        self.books.taken += 1;
    }

    fn lose(&mut self, reason: Reason) {
        self.count += 1;
        let port = self.from.and_then(|from| self.ports.get_mut(usize::from(from.0))?.as_mut());
        port.map_or(&mut self.books.counters, |port| &mut port.counters).drop(reason, 1);
    }
}

/// Decides by the addresses of each frame. Returns the bytes of all frames.
#[inline(always)]
fn switch_by_addresses(
    forward: &mut impl Forward,
    port: &mut Port,
    mut places: Places<'_>,
    batch: &Batch,
    from: PortId,
    now: u64,
) -> u64 {
    let (mut last, mut bytes) = (None, 0);
    for (number, (head, length)) in (0..).zip(batch.heads()) {
        bytes += length as u64;
        let addresses = match port.admit(head, length, now) {
            Ok(addresses) => addresses,
            Err(reason) => {
                port.counters.drop(reason, 1);
                continue;
            }
        };
        let decision = match last {
            // A batch has one time: consecutive frames with equal addresses get the same decision and teach nothing new.
            Some((before, decision)) if before == addresses => decision,
            _ => {
                let [destination, source] = addresses.pair();
                // No station has a group address (IEEE 802-2014, 8.2.2).
                let decision = match source.is_group() {
                    true => Decision::BadSource,
                    false => forward.decide(destination, source, from, now),
                };
                let decision = match decision {
                    Decision::To(to) if !places.has(to) => Decision::Drop,
                    decision => decision,
                };
                last = Some((addresses, decision));
                decision
            }
        };
        places.put(number, decision, &mut port.counters);
    }
    bytes
}

/// Plans a batch of which all frames are passed on unread. Returns their bytes.
fn switch_passed(
    unread: &[UnreadFrame],
    passed: &[Option<Decision>],
    mut places: Places<'_>,
    counters: &mut Counters,
) -> u64 {
    let mut bytes = 0;
    for (frame, decision) in unread.iter().zip(passed) {
        bytes += u64::from(frame.length);
        decision.iter().for_each(|decision| places.put_existing(frame.number, *decision, counters));
    }
    bytes
}

/// Decides by the headers of several frames together, except those that are passed on unread. Returns the bytes of all frames.
fn switch_by_headers(
    forward: &mut impl Forward,
    port: &mut Port,
    mut places: Places<'_>,
    batch: &Batch,
    (unread, passed): (&[UnreadFrame], &[Option<Decision>]),
    from: PortId,
    now: u64,
) -> u64 {
    let mut bytes = 0;
    let mut heads = [FrameHead::default(); MAX_HEADS];
    let mut numbers = [0; MAX_HEADS];
    let mut decisions = [Decision::Drop; MAX_HEADS];
    let mut frames = (0..).zip(batch.heads());
    // The unread frames up to here, and those that are planned: all frames of a batch are planned in their order.
    let (mut seen, mut planned) = (0, 0);
    let mut plan_unread = |before: u32, places: &mut Places<'_>, counters: &mut Counters| {
        while let (Some(frame), Some(decision)) = (unread.get(planned), passed.get(planned))
            && frame.number < before
        {
            decision.iter().for_each(|decision| places.put_existing(frame.number, *decision, counters));
            planned += 1;
        }
    };
    loop {
        let mut count = 0;
        for (number, (head, length)) in frames.by_ref() {
            bytes += length as u64;
            if unread.get(seen).is_some_and(|frame| frame.number == number) {
                seen += 1;
                if passed.get(seen - 1).is_some_and(Option::is_some) {
                    continue;
                }
            }
            if let Err(reason) = port.admit(head, length, now) {
                port.counters.drop(reason, 1);
                continue;
            }
            heads[count] = FrameHead { head, length, mark: batch.mark(number as usize) };
            numbers[count] = number;
            count += 1;
            if count == MAX_HEADS {
                break;
            }
        }
        if count == 0 {
            plan_unread(u32::MAX, &mut places, &mut port.counters);
            return bytes;
        }
        forward.decide_heads(&heads[..count], from, now, &mut decisions[..count]);
        for (number, decision) in numbers.iter().zip(&decisions).take(count) {
            plan_unread(*number, &mut places, &mut port.counters);
            places.put_existing(*number, *decision, &mut port.counters);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward::{ForwardingMode, LearningBridge, LearningSettings, StaticTable};
    use crate::rate_limiter::RateLimit;
    use packet::MacAddr;

    fn frame(destination: u8, source: u8, length: usize) -> Vec<u8> {
        let mut frame = vec![0; length.max(12)];
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, destination]);
        frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, source]);
        frame.truncate(length);
        frame
    }

    fn batch(frames: &[Vec<u8>]) -> Batch {
        let mut batch = Batch::new(frames.len());
        for frame in frames {
            assert!(batch.push(frame));
        }
        batch
    }

    /// Compares every port's plan, and all counters that are not zero.
    fn check<F: Forward>(switch: &mut Switch<F>, from: u16, frames: &[Vec<u8>], expected: &[(u16, &[u32])]) {
        let mut plan = ForwardingPlan::default();
        switch.switch(&batch(frames), PortId(from), 0, &mut plan);
        let mut ports = plan.ports().to_vec();
        ports.sort_unstable();
        let planned: Vec<(u16, &[u32])> = ports.iter().map(|port| (port.0, plan.frames(*port))).collect();
        assert_eq!(planned, expected);
    }

    #[test]
    fn frames_are_split_by_destination() {
        let mut table = StaticTable::new();
        for port in 0..4 {
            table.insert(MacAddr([2, 0, 0, 0, 0, port]), PortId(port.into())).unwrap();
        }
        let mut switch = Switch::new(table);
        for port in 0..3 {
            assert_eq!(switch.add_port(PortSettings::default()), Ok(PortId(port)));
        }
        let mut all = frame(9, 0, 60);
        all[..6].fill(0xff);
        let frames = [
            frame(1, 0, 60),
            frame(2, 0, 61),
            frame(1, 0, 62),
            frame(0, 0, 63),
            frame(3, 0, 64),
            frame(1, 0, 13),
            all,
        ];
        // The last frame but one is too short; port 3 is in the table but doesn't exist; port 0 is the source.
        check(&mut switch, 0, &frames, &[(1, &[0, 2, 6]), (2, &[1, 6])]);
        let mut expected = Counters {
            received_frames: 7,
            received_bytes: 60 + 61 + 62 + 63 + 64 + 13 + 60,
            ..Counters::default()
        };
        expected.drop(Reason::NO_ROUTE, 2);
        expected.drop(Reason::TOO_SHORT, 1);
        assert_eq!(switch.counters(PortId(0)), Some(&expected));
        switch.sent(PortId(1), 3, 182);
        switch.lost(PortId(1), Reason::FULL, 2);
        // 5 received frames of 7 go on, one of them to two ports.
        let books = switch.books();
        assert_eq!((books.counters.received_frames, books.copied, books.planned), (7, 1, 6 - 1));
        assert_eq!((switch.planned(PortId(1)), switch.planned(PortId(2))), (Some(3), Some(2)));
        let counters = switch.counters(PortId(1)).unwrap();
        assert_eq!((counters.sent_frames, counters.sent_bytes, counters.dropped(Reason::FULL)), (3, 182, 2));
    }

    #[test]
    fn a_learning_switch_floods_until_it_has_learned() {
        let mut switch = Switch::new(LearningBridge::new(LearningSettings::default()));
        for _ in 0..3 {
            switch.add_port(PortSettings::default()).unwrap();
        }
        check(&mut switch, 0, &[frame(2, 1, 60)], &[(1, &[0]), (2, &[0])]);
        check(&mut switch, 2, &[frame(1, 2, 60)], &[(0, &[0])]);
        check(&mut switch, 0, &[frame(2, 1, 60)], &[(2, &[0])]);
        switch.remove_port(PortId(2)).unwrap();
        check(&mut switch, 0, &[frame(2, 1, 60)], &[(1, &[0])]);
        assert_eq!(switch.add_port(PortSettings::default()), Ok(PortId(2)));
        check(&mut switch, 7, &[frame(2, 1, 60)], &[]);
    }

    #[test]
    fn a_frame_in_a_switch_with_one_port_has_no_route() {
        let mut switch = Switch::new(LearningBridge::new(LearningSettings::default()));
        switch.add_port(PortSettings::default()).unwrap();
        check(&mut switch, 0, &[frame(2, 1, 60)], &[]);
        assert_eq!(switch.counters(PortId(0)).unwrap().dropped(Reason::NO_ROUTE), 1);
    }

    #[test]
    fn spoofed_and_capped_frames_are_counted() {
        let mut table = StaticTable::new();
        table.set_default(Some(PortId(1)));
        let mut switch = Switch::new(table);
        let only = Some(MacAddr([2, 0, 0, 0, 0, 1]));
        let bits = 8 * 65_536;
        let rate_limit = RateLimit { bits, ..RateLimit::default() };
        switch.add_port(PortSettings { source: only, rate_limit, ..PortSettings::default() }).unwrap();
        switch.add_port(PortSettings::default()).unwrap();
        let frames: Vec<_> =
            (0..100).map(|number| frame(9, if number % 4 == 0 { 2 } else { 1 }, 1024)).collect();
        let mut plan = ForwardingPlan::default();
        switch.switch(&batch(&frames), PortId(0), 0, &mut plan);
        // The bucket holds 64 KB.
        assert_eq!(plan.frames(PortId(1)).len(), 64);
        let counters = switch.counters(PortId(0)).unwrap();
        assert_eq!((counters.dropped(Reason::SPOOFED), counters.dropped(Reason::CAPPED)), (25, 11));
    }

    /// A group address as source is refused at every port, also at one that may use any source.
    #[test]
    fn group_addresses_are_no_sources() {
        let mut table = StaticTable::new();
        table.set_default(Some(PortId(1)));
        let mut switch = Switch::new(ForwardingMode::Static(table));
        let mut bridge =
            Switch::new(ForwardingMode::Learning(LearningBridge::new(LearningSettings::default())));
        for switch in [&mut switch, &mut bridge] {
            for _ in 0..2 {
                switch.add_port(PortSettings::default()).unwrap();
            }
            let mut frames = [frame(9, 1, 60), frame(9, 1, 60), frame(9, 1, 60), frame(9, 2, 60)];
            frames[1][6..12].fill(0xff);
            frames[2][6] = 1;
            check(switch, 0, &frames, &[(1, &[0, 3])]);
            let mut expected = Counters { received_frames: 4, received_bytes: 240, ..Counters::default() };
            expected.drop(Reason::BAD_SOURCE, 2);
            assert_eq!(switch.counters(PortId(0)), Some(&expected));
        }
    }

    /// Limits of new addresses and of broadcasts, over ten simulated seconds.
    #[test]
    fn quotas_of_a_port_are_exact() {
        let mut switch = Switch::new(LearningBridge::new(LearningSettings::default()));
        let rate_limit = RateLimit { broadcasts: 3, ..RateLimit::default() };
        switch.add_port(PortSettings { rate_limit, new_addresses: 5, ..PortSettings::default() }).unwrap();
        switch.add_port(PortSettings::default()).unwrap();
        let mut plan = ForwardingPlan::default();
        let mut expected = Counters::default();
        for second in 0..10u8 {
            // Twelve new stations, one of which sends twice in a row, the known ones of this second, and five broadcasts.
            let mut frames: Vec<_> = (0..12).map(|number| frame(250, 12 * second + number, 60)).collect();
            frames.push(frames[11].clone());
            frames.extend((0..5).map(|number| frame(250, 12 * second + number, 60)));
            let mut all = frame(0, 12 * second, 60);
            all[..6].fill(0xff);
            frames.extend(vec![all; 5]);
            switch.switch(&batch(&frames), PortId(0), u64::from(second) * 1_000_000_000, &mut plan);
            let sent: Vec<u32> = (0..5).chain(13..18).chain(18..21).collect();
            assert_eq!(plan.frames(PortId(1)), sent, "second {second}");
            expected.received_frames += 23;
            expected.received_bytes += 23 * 60;
            expected.drop(Reason::CAPPED, 8);
            expected.drop(Reason::BROADCASTS_CAPPED, 2);
        }
        assert_eq!(switch.counters(PortId(0)), Some(&expected));
        // Other settings start with full buckets.
        switch.set_port(PortId(0), PortSettings { new_addresses: 1, ..PortSettings::default() });
        let frames: Vec<_> = (200..210).map(|number| frame(250, number, 60)).collect();
        switch.switch(&batch(&frames), PortId(0), 9_000_000_000, &mut plan);
        assert_eq!(plan.frames(PortId(1)), [0]);
        // A port that is added later in its place has its own.
        switch.remove_port(PortId(0)).unwrap();
        switch.add_port(PortSettings::default()).unwrap();
        switch.switch(&batch(&frames), PortId(0), 9_000_000_000, &mut plan);
        assert_eq!(plan.frames(PortId(1)).len(), 10);
    }

    /// A frame from an address that is bound to another port is dropped, and moves nothing.
    #[test]
    fn a_spoofed_frame_takes_no_traffic() {
        let mut switch = Switch::new(LearningBridge::new(LearningSettings::default()));
        for _ in 0..3 {
            switch.add_port(PortSettings::default()).unwrap();
        }
        let victim = MacAddr([2, 0, 0, 0, 0, 1]);
        switch.forward_mut().bind(victim, PortId(0)).unwrap();
        // Known before it has sent anything.
        check(&mut switch, 2, &[frame(1, 9, 60)], &[(0, &[0])]);
        // The thief sends from the victim's address, to itself, to others, and among frames of its own.
        let theft = [frame(9, 1, 60), frame(9, 1, 60), frame(9, 5, 60), frame(1, 1, 60), frame(0xff, 1, 60)];
        check(&mut switch, 1, &theft, &[(2, &[2])]);
        check(&mut switch, 2, &[frame(1, 9, 60)], &[(0, &[0])]);
        check(&mut switch, 0, &[frame(9, 1, 60)], &[(2, &[0])]);
        let expected = |frames: u64, spoofed| {
            let mut counters =
                Counters { received_frames: frames, received_bytes: frames * 60, ..Counters::default() };
            counters.drop(Reason::SPOOFED, spoofed);
            counters
        };
        for (port, counters) in [(0, expected(1, 0)), (1, expected(5, 4)), (2, expected(2, 0))] {
            assert_eq!(switch.counters(PortId(port)), Some(&counters), "port {port}");
        }
    }

    #[test]
    fn ports_are_bounded() {
        let mut switch = Switch::new(StaticTable::new());
        for port in 0..MAX_PORTS as u16 {
            assert_eq!(switch.add_port(PortSettings::default()), Ok(PortId(port)));
        }
        assert_eq!(switch.add_port(PortSettings::default()), Err(SwitchError::Full));
        assert_eq!(switch.ports().count(), MAX_PORTS);
        assert!(switch.remove_port(PortId(5)).is_some() && switch.remove_port(PortId(5)).is_none());
        assert_eq!(switch.add_port(PortSettings::default()), Ok(PortId(5)));
    }
}
