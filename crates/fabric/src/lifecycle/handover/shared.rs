//! Hands over the states that flows share: mappings of whole addresses, on which any number of flows depend.
//!
//! They all go to one instance, while all flows of the one that has them are frozen: all states, or none. If that one is drained, all of
//! its flows follow. If only a range goes back, those follow whose addresses have such a state.

use super::{BATCH, Group, Handover, HandoverError, is_shared};
use crate::network::host_pair;
use boundary::{FlowPosition, StateRecord};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most groups of shared states. Stops a box from filling the memory of its host.
const MAX_SHARED: usize = 65_536;

/// The most bytes of these states, for the same reason.
const MAX_SHARED_BYTES: usize = 16 << 20;

/// The time to take them. All packets of the instance wait meanwhile.
const SHARED_TIMEOUT: Duration = Duration::from_secs(2);

/// States that were exported together.
struct Part {
    groups: Vec<Group>,
    states: Vec<(usize, StateRecord)>,
}

impl Handover<'_> {
    /// Moves the states that flows share and that are of a range which goes back, while all packets of the instance wait. If that fails,
    /// it is tried later.
    pub(super) fn move_shared_of_range(&mut self) -> Result<(), HandoverError> {
        let given = self.freeze(None)?;
        let finished = self.wait_until_taken(&given);
        let moved = finished.and_then(|finished| self.move_shared(finished));
        self.thaw()?;
        moved.map(drop)
    }

    /// Moves all states that flows share, or those of a range, and decides that the flows follow them. Returns whether there were any.
    /// `finished`: since when the instance has all packets of its flows.
    pub(super) fn move_shared(&mut self, finished: Instant) -> Result<bool, HandoverError> {
        let mut parts = Vec::new();
        let taken = self.take_shared(finished, &mut parts);
        if parts.is_empty() {
            return taken.map(|()| false);
        }
        let given = taken.and_then(|()| self.give_shared(&parts));
        if given.is_err() {
            let own = self.work.from.clone();
            for part in &parts {
                let refused = self.import(&own, &part.states);
                self.lost += refused.map_or(part.states.len(), |refused| refused.len()) as u64;
            }
        }
        given.map(|()| true)
    }

    fn take_shared(&mut self, finished: Instant, parts: &mut Vec<Part>) -> Result<(), HandoverError> {
        let (begin, mut count, mut bytes) = (Instant::now(), 0, 0);
        loop {
            // Those that are exported are gone.
            let list = self.list(FlowPosition::default())?;
            let mut groups: Vec<Group> = list.groups.into_iter().filter(is_shared).collect();
            if groups.is_empty() {
                return Ok(());
            }
            while !groups.is_empty() {
                let export = self.export(&self.work.from, &groups, finished)?;
                let done = export.groups.unwrap_or(0).max(1) as usize;
                let rest = groups.split_off(done.min(groups.len()));
                let part = std::mem::replace(&mut groups, rest);
                let asked: HashSet<_> = part.iter().flatten().copied().collect();
                // A box that answers with flows that it was not asked for loses them.
                let (states, others): (Vec<_>, Vec<_>) =
                    export.states.into_iter().partition(|state| asked.contains(&state.tuples[0]));
                self.lost += others.len() as u64;
                count += part.len();
                bytes += states.iter().map(|state| state.payload.len()).sum::<usize>();
                parts.push(Part { groups: part, states: (0..).zip(states).collect() });
                if count > MAX_SHARED || bytes > MAX_SHARED_BYTES {
                    return Err(HandoverError::TooManyShared);
                }
                if begin.elapsed() > SHARED_TIMEOUT {
                    return Err(HandoverError::Late(SHARED_TIMEOUT));
                }
            }
        }
    }

    fn give_shared(&mut self, parts: &[Part]) -> Result<(), HandoverError> {
        self.collect()?;
        let heir = match self.work.to.clone() {
            Some(heir) => Some(heir),
            None => self.heir_of_all()?,
        };
        let heir = heir.ok_or(HandoverError::NoHeir)?;
        let mut accepted: Vec<Group> = Vec::new();
        for part in parts {
            let refused = self.import(&heir, &part.states);
            let of_refused = |(at, _): &(usize, String)| Some(part.states.get(*at)?.1.tuples);
            let tuples: HashSet<_> = refused.iter().flatten().filter_map(of_refused).flatten().collect();
            let is_whole =
                |group: &&Group| refused.is_ok() && !group.iter().any(|tuple| tuples.contains(tuple));
            accepted.extend(part.groups.iter().filter(is_whole).cloned());
            let problem = refused.map(|refused| refused.into_iter().next().map(|(_, reason)| reason));
            if let Some(reason) = problem.unwrap_or_else(Some) {
                // Addresses of another instance's range are of no use without the range. Without ranges, what was accepted may be what
                // the instance had.
                if self.work.to.is_some() {
                    accepted.chunks(BATCH as usize).for_each(|groups| {
                        self.discard(&heir, groups, &(0..groups.len()).collect());
                    });
                }
                return Err(HandoverError::SharedRefused(reason));
            }
        }
        self.work.to = Some(heir.clone());
        let moved: Vec<(Group, _)> =
            parts.iter().flat_map(|part| &part.groups).map(|group| (group.clone(), heir.clone())).collect();
        self.moved += moved.len() as u64;
        let work = self.work.clone();
        let hosts = moved.iter().flat_map(|(group, _)| group).filter_map(host_pair).collect();
        self.fabric.network(move |network| network.reassign(&work, &moved))??;
        if self.work.range.is_none() {
            // All flows follow.
            return Ok(());
        }
        let (hosts, mut at) = (Arc::new(hosts), Some(0));
        while let Some(next) = at {
            let (work, hosts) = (self.work.clone(), Arc::clone(&hosts));
            at = self.fabric.network(move |network| network.reassign_hosts(&work, &hosts, next))??;
        }
        Ok(())
    }
}
