//! Packets that functions pass on, a batch at a time.
//!
//! Most packets of a batch go the same way: from one hop of a version to an instance at the next. What they have in common is
//! found for the first one, and counted for all together. A packet that differs in anything is followed by itself.

use super::flow_records::Assignment;
use super::identity::Identity;
use super::table::{Chains, Role, Step};
use super::version::End;
use super::way::Way;
use crate::batch::{FrameMark, UnreadFrame};
use crate::forward::PortKey;
use boundary::{Answer, DirectPacket};

/// Frames ahead whose records are prefetched: what is done meanwhile takes about as long as a read from memory.
const AHEAD: usize = 20;

impl Chains {
    /// Decides where frames go that a function passes on along their chains.
    pub(crate) fn pass_on(
        &mut self,
        role: Role,
        frames: &[UnreadFrame],
        now: u64,
        mut decide: impl FnMut(Step),
    ) {
        let mark = |frame: &UnreadFrame| FrameMark { tag: frame.tag, meta: Answer::Next.to_meta() };
        frames.iter().take(AHEAD).for_each(|frame| self.prefetch(mark(frame)));
        let mut way: Option<Way> = None;
        for (at, frame) in frames.iter().enumerate() {
            if let Some(coming) = frames.get(at + AHEAD) {
                self.prefetch(mark(coming));
            }
            let identity = Identity::from_tag(frame.tag);
            if let (Some(way), Some(identity)) = (&mut way, identity)
                && way.timed != Some(identity.record)
                && way.has(&self.records, identity)
            {
                way.packets += 1;
                way.bytes += u64::from(frame.length);
                decide(Step::To(way.to, way.tag(identity)));
                continue;
            }
            way.take().into_iter().for_each(|way| self.count(way));
            let step = self.follow(role, mark(frame), frame.length as usize, now);
            let found = identity.and_then(|identity| self.way(role, identity));
            way = found.filter(|way| matches!(step, Step::To(to, _) if to == way.to));
            decide(step);
        }
        way.into_iter().for_each(|way| self.count(way));
    }

    /// Sets the tags of packets that a function passes on, as far as they go to port `to`, another function, in the same way.
    /// Returns their number. It counts none: [`count_direct`](Self::count_direct) follows.
    pub(crate) fn pass_direct(
        &mut self,
        role: Role,
        packets: &mut [DirectPacket],
        to: PortKey,
        now: u64,
    ) -> usize {
        self.direct = None;
        let first = packets.first().and_then(|packet| Identity::from_tag(packet.tag));
        let Some(first) = first.filter(|_| !role.translates && !self.is_frozen()) else { return 0 };
        let Some(mut way) = self.way(role, first).filter(|way| way.to == to && way.next.is_some()) else {
            return 0;
        };
        let mark = |packet: &DirectPacket| FrameMark { tag: packet.tag, meta: Answer::Next.to_meta() };
        packets.iter().take(AHEAD).for_each(|packet| self.prefetch(mark(packet)));
        let mut count = 0;
        while let Some(packet) = packets.get(count) {
            if let Some(coming) = packets.get(count + AHEAD) {
                self.prefetch(mark(coming));
            }
            let identity = Identity::from_tag(packet.tag);
            let Some(identity) = identity.filter(|identity| way.has(&self.records, *identity)) else { break };
            if way.timed == Some(identity.record)
                && let Some(version) = self.versions.get_mut(way.assignment.version)
            {
                version.measure(way.hop.into(), identity.record, now);
                way.timed = None;
            }
            if let Some(packet) = packets.get_mut(count) {
                packet.tag = way.tag(identity);
            }
            count += 1;
        }
        self.direct = Some(way);
        count
    }

    /// Counts the packets of the last [`pass_direct`](Self::pass_direct) that moved.
    pub(crate) fn count_direct(&mut self, packets: u64, bytes: u64, now: u64) {
        let Some(way) = self.direct.take() else { return };
        if let (Some((hop, _)), Some(version)) = (way.next, self.versions.get_mut(way.assignment.version))
            && packets > 0
        {
            version.start_sample(hop.into(), way.first, now);
        }
        self.count(Way { packets, bytes, ..way });
    }

    /// The way of a packet that a function passes on, for others that go the same; none if its identity is lost, if the instance at
    /// the next hop is down, or if flows say where it goes.
    fn way(&self, role: Role, identity: Identity) -> Option<Way> {
        let Identity { record, hop, reverse: was_reverse, .. } = identity;
        let (hash, number) = self.records.flow(record);
        let version = self.versions.get(number)?;
        let here = usize::from(hop);
        // Only an identity that was confirmed says anything about others.
        if (hash >> 48) as u16 != identity.check
            || version.hops.get(here) != Some(&role.service)
            || self.records.slot(record, here) != role.slot
        {
            return None;
        }
        let reverse = role.reverse.unwrap_or(was_reverse);
        let direction = usize::from(reverse);
        let next = if reverse { hop.checked_sub(1) } else { hop.checked_add(1) };
        let next = next.and_then(|next| Some((next, *version.hops.get(usize::from(next))?)));
        let there = next.map_or(here, |(next, _)| usize::from(next));
        let slot = self.records.slot(record, there);
        let to = match (next, version.ends.get(direction)?) {
            (Some((_, service)), _) => {
                let service = self.services.get(service)?;
                service.get(slot).filter(|_| service.is_up(slot))?.ports[direction]
            }
            (None, End::Port(port)) => *port,
            (None, End::LookUp) => return None,
        };
        Some(Way {
            assignment: Assignment { version: number, places: [(here, role.slot), (there, slot)] },
            hop,
            was_reverse,
            reverse,
            next,
            to,
            timed: version.timed(here),
            first: record,
            packets: 0,
            bytes: 0,
        })
    }

    /// Counts the packets that went a way.
    fn count(&mut self, way: Way) {
        let Way { assignment, reverse, next, packets, bytes, .. } = way;
        let direction = usize::from(reverse);
        let Some(version) = self.versions.get_mut(assignment.version).filter(|_| packets > 0) else { return };
        version.books.returned += packets;
        let Some((hop, service)) = next else {
            version.books.left += packets;
            version.left[direction].add_all(packets, bytes);
            return;
        };
        version.books.sent += packets;
        if let Some(counters) = version.counters.get_mut(usize::from(hop)) {
            counters[direction].add_all(packets, bytes);
        }
        let service = self.services.get_mut(service);
        let [_, (_, slot)] = assignment.places;
        if let Some(instance) = service.and_then(|service| service.get_mut(slot)) {
            instance.packets += packets;
        }
    }
}
