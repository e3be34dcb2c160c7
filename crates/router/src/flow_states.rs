//! The state of flows that elements hand over to another router of the same configuration.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use element::{FlowKeeping, FlowState, FlowStates, FlowTuple, ImportError, MAX_FLOW_STATE};
use packet::Timestamp;

use crate::router::Router;

/// Flows that are looked at for one list, so that packets wait for a bounded time.
const MAX_LOOKED_AT: u32 = 4096;

/// Tuples of flows that depend on each other. More than this is no flow, but a mistake or an attack.
const MAX_GROUP: usize = 64;

/// Where a list of flows goes on: the number of the element in the list, and the position inside it.
pub type FlowPosition = (u32, u64);

/// Flows whose state can be handed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedFlows {
    /// Where the list goes on; `None` at its end.
    pub next: Option<FlowPosition>,
    /// Flows by their tuples. Elements know one flow by different tuples if one of them translates it.
    pub groups: Vec<Vec<FlowTuple>>,
}

impl Router {
    /// Calls an element that hands over the state of flows.
    fn with_states<R>(
        &self,
        index: usize,
        run: impl FnOnce(&mut dyn FlowStates, &element::Context) -> R,
    ) -> Option<R> {
        let found = self.state.call(index, |object, cx| match object.flow_states() {
            FlowKeeping::HandedOver(states) => Some(run(states, cx)),
            FlowKeeping::Nothing | FlowKeeping::Lost => None,
        });
        found.flatten()
    }

    /// The numbers of the elements that hand over the state of flows: first those with states that flows share.
    fn stateful(&self) -> Vec<usize> {
        let of = |index: usize| Some((index, self.with_states(index, |states, _| states.is_shared())?));
        let (mut shared, others): (Vec<_>, Vec<_>) =
            (0..self.state.nodes.len()).filter_map(of).partition(|(_, is_shared)| *is_shared);
        shared.extend(others);
        shared.into_iter().map(|(index, _)| index).collect()
    }

    /// The elements that keep the state of flows and cannot hand it over.
    pub fn elements_that_lose_flows(&self) -> Vec<String> {
        let loses = |index: &usize| {
            let found =
                self.state.call(*index, |object, _| matches!(object.flow_states(), FlowKeeping::Lost));
            found == Some(true)
        };
        let nodes = (0..self.state.nodes.len()).filter(loses);
        nodes.filter_map(|index| Some(self.state.nodes.get(index)?.element.name.clone())).collect()
    }

    /// Some flows whose state can be handed over, from a position on: at most `most` groups that `is_wanted`. States that flows share
    /// come first.
    pub fn list_flows(
        &self,
        position: FlowPosition,
        most: usize,
        is_wanted: impl Fn(&[FlowTuple]) -> bool,
    ) -> ListedFlows {
        let (mut element, mut inside) = position;
        let mut list = ListedFlows::default();
        let stateful = self.stateful();
        let mut seen = 0;
        while let Some(index) = stateful.get(element as usize) {
            if list.groups.len() >= most || seen >= MAX_LOOKED_AT {
                list.next = Some((element, inside));
                return list;
            }
            seen += 1;
            let found = self.with_states(*index, |states, _| states.next(inside)).flatten();
            let Some((next, tuples)) = found else {
                (element, inside) = (element + 1, 0);
                continue;
            };
            inside = next;
            if !list.groups.iter().any(|group| group.contains(&tuples[0])) {
                let group = self.related(&tuples, &stateful);
                if is_wanted(&group) {
                    list.groups.push(group);
                }
            }
        }
        list
    }

    /// All tuples that elements know for a flow.
    fn related(&self, tuples: &[FlowTuple], stateful: &[usize]) -> Vec<FlowTuple> {
        let mut group: Vec<FlowTuple> = Vec::new();
        let add = |group: &mut Vec<FlowTuple>, tuples: &[FlowTuple]| {
            for tuple in tuples {
                if group.len() < MAX_GROUP && !group.contains(tuple) {
                    group.push(*tuple);
                }
            }
        };
        add(&mut group, tuples);
        let mut at = 0;
        while let Some(tuple) = group.get(at).copied() {
            for index in stateful {
                if let Some(Some(found)) = self.with_states(*index, |states, _| states.find(tuple)) {
                    add(&mut group, &found);
                }
            }
            at += 1;
        }
        group
    }

    /// Removes the flows that are known by these tuples from all elements. Returns their states.
    pub fn export_flow(&self, group: &[FlowTuple]) -> Vec<FlowState> {
        let mut exported = Vec::new();
        for index in 0..self.state.nodes.len() {
            for tuple in group {
                let found = self.with_states(index, |states, cx| {
                    let (tuples, payload) = states.export(*tuple, cx)?;
                    Some((states.format(), tuples, payload))
                });
                if let Some(((format, version), tuples, payload)) = found.flatten()
                    && let Some(node) = self.state.nodes.get(index)
                {
                    let (element, format) = (node.element.name.clone(), format.to_string());
                    exported.push(FlowState { element, format, version, tuples, payload });
                }
            }
        }
        exported
    }

    /// Gives the element that a state names the flow. Nothing changes on failure.
    pub fn import_flow(&self, state: &FlowState) -> Result<(), ImportError> {
        if state.payload.len() > MAX_FLOW_STATE {
            return Err(ImportError::Malformed);
        }
        let index = self.state.by_name.get(&state.element).copied().ok_or(ImportError::Malformed)?;
        let imported = self.with_states(index, |states, cx| match states.format() {
            (format, version) if format == state.format && version == state.version => {
                states.import(state.tuples, &state.payload, cx)
            }
            _ => Err(ImportError::Format),
        });
        imported.unwrap_or(Err(ImportError::Format))
    }

    /// How long the packet that has waited longest in an element waits, at most; `None` if none waits.
    pub fn longest_wait(&self) -> Option<Timestamp> {
        self.state.resources.clock.refresh();
        let account = self.state.account();
        // What an element does not know the age of may be old.
        (account.waiting > 0).then(|| account.oldest.unwrap_or(Timestamp::MAX))
    }
}
