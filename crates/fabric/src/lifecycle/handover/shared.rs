//! Hands over the states that flows share: mappings of whole addresses, on which any number of flows depend.
//!
//! The switch does not know which flows these are. So they all go to one instance, while all flows of the drained one are frozen: all
//! states, or none.

use super::{Group, Handover, HandoverError};
use boundary::{FlowPosition, StateRecord};
use std::collections::HashSet;
use std::fmt;
use std::time::{Duration, Instant};

/// The most groups of shared states. Stops a box from filling the memory of its host.
const MAX_SHARED: usize = 65_536;

/// The most bytes of these states, for the same reason.
const MAX_SHARED_BYTES: usize = 16 << 20;

/// The time to take them. All packets of the instance wait meanwhile.
const SHARED_TIMEOUT: Duration = Duration::from_secs(2);

/// Why the states that flows share were not taken over.
#[derive(Debug)]
pub(super) enum SharedError {
    /// There are more than `MAX_SHARED`.
    TooMany,
    /// The other instance refused one.
    Refused(String),
    /// No instance can take them over.
    NoHeir,
    /// They are those of a range that goes back. The flows that depend on them would not follow.
    InUse,
}

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => {
                write!(
                    f,
                    "it has more than {MAX_SHARED} states of whole addresses, or {MAX_SHARED_BYTES} bytes of them"
                )
            }
            Self::Refused(reason) => write!(f, "states of whole addresses move all or none: {reason}"),
            Self::NoHeir => f.write_str("no other instance is up"),
            Self::InUse => f.write_str("states of whole addresses do not go back while they are in use"),
        }
    }
}

/// Whether a group is of states that flows share.
pub(super) fn is_shared(group: &Group) -> bool {
    group.iter().any(boundary::StateTuple::is_of_addresses)
}

/// States that were exported together.
struct Part {
    groups: Vec<Group>,
    states: Vec<(usize, StateRecord)>,
}

impl Handover<'_> {
    /// Moves all states that flows share, and decides that all flows follow them. Returns whether there were any. `finished`: since
    /// when the instance has all packets of its flows.
    pub(super) fn move_shared(&mut self, finished: Instant) -> Result<bool, HandoverError> {
        let mut parts = Vec::new();
        let taken = self.take_shared(finished, &mut parts);
        if parts.is_empty() {
            return taken.map(|()| false);
        }
        let given = taken.and_then(|()| self.give_shared(&parts));
        if given.is_err() {
            // What the other instance has accepted ends there by its timeout: no flow comes there.
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
                    return Err(HandoverError::Shared(SharedError::TooMany));
                }
                if begin.elapsed() > SHARED_TIMEOUT {
                    return Err(HandoverError::Late(SHARED_TIMEOUT));
                }
            }
        }
    }

    fn give_shared(&mut self, parts: &[Part]) -> Result<(), HandoverError> {
        self.collect()?;
        let work = self.work.clone();
        let heir = match work.to.clone() {
            Some(heir) => Some(heir),
            None => self.fabric.network(move |network| network.heir_of_all(&work))??,
        };
        let heir = heir.ok_or(HandoverError::Shared(SharedError::NoHeir))?;
        for part in parts {
            let refused = self.import(&heir, &part.states);
            let problem = refused.map(|refused| refused.into_iter().next().map(|(_, reason)| reason));
            if let Some(reason) = problem.unwrap_or_else(Some) {
                return Err(HandoverError::Shared(SharedError::Refused(reason)));
            }
        }
        self.work.to = Some(heir.clone());
        let moved: Vec<(Group, _)> =
            parts.iter().flat_map(|part| &part.groups).map(|group| (group.clone(), heir.clone())).collect();
        self.moved += moved.len() as u64;
        let work = self.work.clone();
        Ok(self.fabric.network(move |network| network.reassign(&work, &moved))??)
    }
}
