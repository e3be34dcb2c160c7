//! Packets that functions pass on, a batch at a time.
//!
//! Most packets of a batch go the same way: from one hop of a version to an instance at the next. What they have in common is
//! found for the first one, and counted for all together. A packet that differs in anything is followed by itself.

use super::flow_records::Assignment;
use super::identity::Identity;
use super::table::{Chains, Role, Step};
use super::version::End;
use crate::batch::{FrameMark, UnreadFrame};
use crate::forward::PortKey;
use boundary::Answer;

/// Frames ahead whose records are prefetched.
const AHEAD: usize = 8;

/// From where to where packets go, and how many did.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// What their records have in common.
    assignment: Assignment,
    /// The hop that they come from, and the direction in which they were sent there.
    hop: u8,
    was_reverse: bool,
    reverse: bool,
    /// The next hop and its service; none if they leave the chain.
    next: Option<(u8, u16)>,
    to: PortKey,
    /// The flow of which a packet is timed at the hop that they come from.
    timed: Option<u32>,
    packets: u64,
    bytes: u64,
}

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
                && let Some(step) = way.pass(self, identity)
            {
                way.packets += 1;
                way.bytes += u64::from(frame.length);
                decide(step);
                continue;
            }
            way.take().into_iter().for_each(|way| self.count(way));
            let step = self.follow(role, mark(frame), frame.length as usize, now);
            way = identity.and_then(|identity| self.way(role, identity, step));
            decide(step);
        }
        way.into_iter().for_each(|way| self.count(way));
    }

    /// The way that a packet went which was followed just now, for others that go the same.
    fn way(&self, role: Role, identity: Identity, step: Step) -> Option<Way> {
        let Step::To(to, _) = step else { return None };
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
        let next = if reverse { hop.checked_sub(1) } else { hop.checked_add(1) };
        let next = next.and_then(|next| Some((next, *version.hops.get(usize::from(next))?)));
        if next.is_none() && version.ends[usize::from(reverse)] != End::Port(to) {
            return None;
        }
        let there = next.map_or(here, |(next, _)| usize::from(next));
        let places = [(here, role.slot), (there, self.records.slot(record, there))];
        Some(Way {
            assignment: Assignment { version: number, places },
            hop,
            was_reverse,
            reverse,
            next,
            to,
            timed: version.timed(here),
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
            if let Some(chain) = version.chain.and_then(|chain| self.chains.get_mut(&chain)) {
                chain.left[direction].add_all(packets, bytes);
            }
            return;
        };
        version.books.sent += packets;
        if let Some(counters) = version.counters.get_mut(usize::from(hop)) {
            counters[direction].add_all(packets, bytes);
        }
        let service = self.services.get_mut(usize::from(service)).and_then(Option::as_mut);
        let [_, (_, slot)] = assignment.places;
        if let Some(instance) = service.and_then(|service| service.get_mut(slot)) {
            instance.packets += packets;
        }
    }
}

impl Way {
    /// Where a packet goes, if it goes this way.
    #[inline(always)]
    fn pass(&self, chains: &Chains, identity: Identity) -> Option<Step> {
        let Identity { record, check, hop, reverse, lookups } = identity;
        let is_same = hop == self.hop
            && reverse == self.was_reverse
            && self.timed != Some(record)
            && chains.records.is_assigned(record, check, &self.assignment);
        let next = self.next.map(|(hop, _)| Identity { record, check, hop, reverse: self.reverse, lookups });
        is_same.then(|| Step::To(self.to, next.map_or(0, Identity::to_tag)))
    }
}
