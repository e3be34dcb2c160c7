//! Flows of users from ports of services.

use super::flow::PortKey;
use super::ingress;
use super::steering::Steering;
use flow_table::{Field, Match};
use std::time::Duration;

impl Steering {
    /// The number of the ingress port of frames from a port.
    pub(super) fn ingress_number(&self, key: PortKey) -> u32 {
        ingress::number(Some(key), self.chains.role(key)).unwrap_or(u32::from(key.0))
    }

    /// Lets flows of users from ports follow services to which the ports belong now, or no longer belong. Two flows that match
    /// the same frames then cannot both be followed: the one with the lower number is.
    pub(super) fn follow_ingress(&mut self) {
        let numbers: Vec<u64> = self.flows.keys().copied().collect();
        for id in numbers {
            let Some(stored) = self.flows.get(&id) else { continue };
            let Some(from) = stored.flow.from else { continue };
            let port = u128::from(self.ingress_number(from));
            let is_current = |found: &Match| found.get(Field::InPort).is_some_and(|(now, _)| now == port);
            if stored.flow.matches.iter().all(is_current) {
                continue;
            }
            let (mut flow, created): (_, Duration) = (stored.flow.clone(), stored.created);
            self.remove_entries(&flow, created);
            for matching in &mut flow.matches {
                let others = matching.fields().filter(|(field, ..)| *field != Field::InPort);
                let all = Match::any().with(Field::InPort, port);
                let all = others.fold(all, |all, (field, value, mask)| all?.with_masked(field, value, mask));
                // They were added before, in the same order.
                *matching = all.unwrap_or(*matching);
            }
            for matching in &flow.matches {
                let _ = self.add_entry(&flow, *matching, created);
            }
            if let Some(stored) = self.flows.get_mut(&id) {
                stored.flow = flow;
            }
        }
    }
}
