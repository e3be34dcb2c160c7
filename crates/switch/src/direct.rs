//! Packets that go straight from one function to the next of their chain.
//!
//! In most batches of a function each packet goes on to the same next function. Where both share a pool, a packet then moves with
//! its buffer: nothing of it is read, and it enters no batch of frames. The last batch of a port says whether to expect that of the
//! next one. The first packet that differs, and those after it, are received as any others.

use crate::addresses::HEADER;
use crate::forward::Forward;
use crate::port::PortId;
use crate::runner::{SwitchRunner, running_slot};
use boundary::DirectPacket;
use std::time::Instant;

impl<F: Forward> SwitchRunner<F> {
    /// Moves packets of a function to the one that its last batch went to. Returns their number, and whether there are others.
    pub(crate) fn pass_direct(&mut self, port: PortId, clock: &mut Instant) -> (usize, bool) {
        let passed = self.list_and_pass(port, clock);
        // It holds the pool.
        self.direct.clear();
        passed
    }

    fn list_and_pass(&mut self, port: PortId, clock: &mut Instant) -> (usize, bool) {
        let now = self.time(*clock);
        let Self { switch, slots, direct, .. } = self;
        let Some(source) = running_slot(slots, port) else { return (0, true) };
        let Some(to) = source.direct_to.take().filter(|to| *to != port) else { return (0, true) };
        source.driver.list_direct(direct);
        let has_header = |packet: &DirectPacket| packet.length() as usize >= HEADER;
        let whole = direct.packets().iter().take_while(|packet| has_header(packet)).count();
        direct.truncate(whole);
        let decided = switch.forward_mut().pass_direct(direct.packets(), port, to, now);
        direct.truncate(decided);
        let Some(target) = running_slot(slots, to).filter(|target| decided > 0 && target.owner.is_none())
        else {
            return (0, true);
        };
        let is_crowded = target.driver.send_direct(direct);
        let (packets, bytes) = direct.moved();
        target.went += packets;
        switch.count_direct(port, to, (packets, bytes), now);
        if is_crowded {
            self.note_crowded_by_others(to);
        }
        let Self { slots, direct, .. } = self;
        let Some(source) = running_slot(slots, port) else { return (0, true) };
        source.driver.release_direct(direct);
        source.came += packets;
        if packets > 0 {
            let end = Instant::now();
            source.cost.time += end.duration_since(*clock);
            source.cost.visits += 1;
            source.cost.direct += packets;
            *clock = end;
        }
        if direct.is_all() {
            source.direct_to = Some(to);
        }
        (packets as usize, !direct.is_all())
    }
}
