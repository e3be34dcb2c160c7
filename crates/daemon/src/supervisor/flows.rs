//! Flows of steering switches.
//!
//! Flows without timeouts are stored with their switch. The fabric has them all, and returns the text of their conditions, so
//! that a daemon that adopts the fabric also knows those that are not stored.

use super::claims::Claim;
use super::state::Supervisor;
use crate::error::OperationError;
use crate::store::{Action, StoreChange, StoredFlow, StoredSwitch};
use api::{AddFlow, FlowOutput, FlowStatus, SwitchMode, SwitchName};
use flow_table::Match;
use protocol::fabric::{FieldMatch, FlowDefinition, orders};

/// The flow as numbers, for the fabric.
fn definition(id: u64, flow: &AddFlow) -> Result<FlowDefinition, OperationError> {
    let matches = match flow.condition.as_deref() {
        Some(text) => flow_expression::matches_of(text).map_err(OperationError::Flow)?,
        None => vec![Match::any()],
    };
    let words = |value: u128| [(value >> 64) as u64, value as u64];
    let condition =
        |(field, value, mask)| FieldMatch { field: field as u8, value: words(value), mask: words(mask) };
    // The fields that others depend on come first.
    let conditions = |matching: &Match| {
        let mut fields: Vec<_> = matching.fields().collect();
        fields.sort_by_key(|(field, ..)| rank(*field));
        fields.into_iter().map(condition).collect()
    };
    Ok(FlowDefinition { id, matches: matches.iter().map(conditions).collect(), flow: flow.clone() })
}

/// The order in which fields are added to a match.
fn rank(field: flow_table::Field) -> u8 {
    use flow_table::Field::{EthType, IpFragment, IpProto, VlanVid};
    match field {
        EthType | VlanVid => 0,
        IpFragment | IpProto => 1,
        _ => 2,
    }
}

impl Supervisor {
    /// The flows of a switch, in the order of their numbers.
    pub fn flows(&self, switch: &SwitchName) -> Result<Vec<FlowStatus>, OperationError> {
        self.0.fabrics.ask(orders::Flows { switch: switch.clone() })
    }

    /// Adds a flow to a steering switch.
    pub fn add_flow(&self, switch: &SwitchName, request: &AddFlow) -> Result<FlowStatus, OperationError> {
        let flow = AddFlow { priority: Some(request.effective_priority()), ..request.clone() };
        let mut definition = definition(0, &flow)?;
        let mut added = None;
        self.operate(Action::Change, switch, &|| vec![Claim::change(switch)], |operation| {
            let _change = self.0.change();
            let mut stored = self.stored_switch(switch)?;
            let output = match &flow.output {
                FlowOutput::Port(port) => Some(port),
                _ => None,
            };
            let ports = self.0.fabrics.ask(orders::Ports { switch: switch.clone() })?;
            for port in output.into_iter().chain(&flow.in_port) {
                if !ports.iter().any(|found| found.port.name == *port) {
                    return Err(OperationError::NoPort(switch.clone(), port.clone()));
                }
            }
            let known = self.flows(switch)?;
            let ids = known.iter().map(|known| known.id).chain(stored.flows.iter().map(|flow| flow.id));
            let id = ids.max().unwrap_or(0).saturating_add(1);
            definition.id = id;
            self.0.fabrics.ask(orders::AddFlow { switch: switch.clone(), flow: definition.clone() })?;
            let (at, before) = (switch.clone(), stored.clone());
            operation.undo_by(move |supervisor| {
                // If the fabric has ended, it has no flow.
                let _ = supervisor.0.fabrics.ask(orders::RemoveFlow { switch: at.clone(), id });
                supervisor.0.switches().insert(at, before);
            });
            if !flow.is_temporary() {
                stored.flows.push(StoredFlow { id, flow: flow.clone() });
                operation.add(StoreChange::PutSwitch(stored.clone()));
                self.0.switches().insert(switch.clone(), stored);
            }
            added = Some(id);
            Ok(())
        })?;
        let id = added.unwrap_or_default();
        Ok(FlowStatus { id, flow, packets: 0, bytes: 0, age_seconds: 0, unused_seconds: 0 })
    }

    /// Removes a flow.
    pub fn remove_flow(&self, switch: &SwitchName, id: u64) -> Result<(), OperationError> {
        self.operate(Action::Change, switch, &|| vec![Claim::change(switch)], |operation| {
            let mut stored = self.stored_switch(switch)?;
            let is_stored = stored.flows.iter().any(|flow| flow.id == id);
            if !is_stored && !self.flows(switch)?.iter().any(|flow| flow.id == id) {
                return Err(protocol::fabric::FabricError::NoFlow(switch.clone(), id).into());
            }
            if is_stored {
                stored.flows.retain(|flow| flow.id != id);
                operation.add(StoreChange::PutSwitch(stored));
            }
            let at = switch.clone();
            operation.after_commit(move |supervisor| {
                let _change = supervisor.0.change();
                // A flow with a timeout may have ended; the next fabric does not get it.
                let _ = supervisor.0.fabrics.ask(orders::RemoveFlow { switch: at.clone(), id });
                if let Some(stored) = supervisor.0.switches().get_mut(&at) {
                    stored.flows.retain(|flow| flow.id != id);
                }
            });
            Ok(())
        })
    }

    /// Gives a switch in the fabric the flows that are stored. Those that it has already stay, with their counters; those
    /// with timeouts stay too, and others are removed.
    pub(super) fn restore_flows(&self, stored: &StoredSwitch) {
        if stored.definition.mode != SwitchMode::Steering {
            return;
        }
        let switch = &stored.definition.name;
        // If the fabric has ended, the next one gets them.
        let Ok(known) = self.flows(switch) else { return };
        let is_known = |wanted: &StoredFlow| {
            known.iter().any(|found| found.id == wanted.id && found.flow == wanted.flow)
        };
        for found in known.iter().filter(|found| !found.flow.is_temporary()) {
            if !stored.flows.iter().any(|wanted| wanted.id == found.id && wanted.flow == found.flow) {
                let _ = self.0.fabrics.ask(orders::RemoveFlow { switch: switch.clone(), id: found.id });
            }
        }
        for wanted in stored.flows.iter().filter(|wanted| !is_known(wanted)) {
            if let Ok(flow) = definition(wanted.id, &wanted.flow) {
                let _ = self.0.fabrics.ask(orders::AddFlow { switch: switch.clone(), flow });
            }
        }
    }
}
