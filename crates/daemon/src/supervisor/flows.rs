//! Flows of steering switches.
//!
//! Flows without timeouts are stored with their switch. The fabric has them all, and returns the text of their conditions, so
//! that a daemon that adopts the fabric also knows those that are not stored.

use super::claims::Claim;
use super::operation::Operation;
use super::state::Supervisor;
use crate::error::{OperationError, RequestError};
use crate::store::{Action, StoreChange, StoredFlow, StoredFlows, StoredSwitch};
use api::{
    AddFlow, ControllerAddress, CreateSwitch, EventKind, FlowOutput, FlowStatus, MAX_CONTROLLERS, PortName,
    StackName, SwitchMode, SwitchName, with_causes,
};
use flow_table::Match;
use protocol::fabric::{FieldMatch, FlowDefinition, orders};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The flow as numbers, for the fabric.
fn definition(id: u64, flow: &AddFlow) -> Result<FlowDefinition, OperationError> {
    let matches = match flow.condition.as_deref() {
        Some(text) => flow_expression::matches_of(text).map_err(|error| {
            let place = error.place(text);
            OperationError::Flow(error, place)
        })?,
        None => vec![Match::any()],
    };
    let words = |value: u128| [(value >> 64) as u64, value as u64];
    let condition =
        |(field, value, mask)| FieldMatch { field: field as u8, value: words(value), mask: words(mask) };
    let conditions = |matching: &Match| matching.fields().map(condition).collect();
    Ok(FlowDefinition { id, matches: matches.iter().map(conditions).collect(), flow: flow.clone() })
}

/// Checks the flows and the controllers in the definition of a switch.
pub(super) fn check_flows(switch: &CreateSwitch) -> Result<(), OperationError> {
    let name = || switch.name.clone();
    if switch.mode != SwitchMode::Steering && !switch.flows.is_empty() {
        return Err(RequestError::FlowsWithoutSteering(name()).into());
    }
    let distinct: BTreeSet<ControllerAddress> = sorting::collect(switch.controllers.iter().copied());
    if switch.mode != SwitchMode::Steering && (!distinct.is_empty() || !switch.fail_mode.is_default()) {
        return Err(RequestError::ControllersWithoutSteering(name()).into());
    }
    if distinct.is_empty() && !switch.fail_mode.is_default() {
        return Err(RequestError::FailModeWithoutControllers(name()).into());
    }
    if distinct.len() != switch.controllers.len() || distinct.len() > MAX_CONTROLLERS {
        return Err(RequestError::Controllers(name()).into());
    }
    let mut known = HashSet::new();
    for flow in &switch.flows {
        if flow.is_temporary() {
            return Err(RequestError::FlowWithTimeout(name()).into());
        }
        if !known.insert(flow.with_priority()) {
            return Err(RequestError::DuplicateFlow(name()).into());
        }
        check_flow(flow).map_err(|error| error.of_part(format!("switch {}, flow {flow}", switch.name)))?;
    }
    Ok(())
}

/// Returns an error if a user can't add the flow.
fn check_flow(flow: &AddFlow) -> Result<(), OperationError> {
    // It would match everything, with the priority of a flow that does not.
    if flow.condition.as_deref().is_some_and(|text| text.trim().is_empty()) {
        return Err(RequestError::EmptyCondition.into());
    }
    definition(0, flow).map(drop)
}

/// Flows of one switch to remove and to add.
#[derive(Debug, Default)]
pub(super) struct FlowChanges {
    /// Stored flows to remove. If that is undone, their counters begin at zero.
    pub(super) gone: Vec<StoredFlow>,
    /// Flows to add.
    pub(super) new: Vec<AddFlow>,
}

impl Supervisor {
    /// The flows of a switch, in the order of their numbers.
    pub fn flows(&self, switch: &SwitchName) -> Result<Vec<FlowStatus>, OperationError> {
        let mut flows: Vec<FlowStatus> = Vec::new();
        loop {
            let after = flows.last().map_or(0, |flow| flow.id);
            let found = self.flows_after(switch, after, None)?;
            if found.is_empty() {
                return Ok(flows);
            }
            flows.extend(found);
        }
    }

    fn flows_after(
        &self,
        switch: &SwitchName,
        after: u64,
        most: Option<u32>,
    ) -> Result<Vec<FlowStatus>, OperationError> {
        self.0.fabrics.ask(orders::Flows { switch: switch.clone(), after, most })
    }

    /// Adds a flow to a steering switch.
    pub fn add_flow(&self, switch: &SwitchName, request: &AddFlow) -> Result<FlowStatus, OperationError> {
        let flow = request.with_priority();
        check_flow(&flow)?;
        let mut added = 0;
        self.operate(Action::Change, switch, &|| vec![Claim::change(switch)], |operation| {
            let changes = FlowChanges { new: vec![flow.clone()], ..FlowChanges::default() };
            added = self.change_flows(operation, switch, changes, None)?;
            Ok(())
        })?;
        Ok(FlowStatus { id: added, flow, packets: 0, bytes: 0, age_seconds: 0, unused_seconds: 0 })
    }

    /// Removes and adds flows as a step of an operation, possibly of a stack. Returns the last number that a flow got.
    pub(super) fn change_flows(
        &self,
        operation: &mut Operation,
        switch: &SwitchName,
        changes: FlowChanges,
        stack: Option<&StackName>,
    ) -> Result<u64, OperationError> {
        let FlowChanges { gone, new } = changes;
        let _change = self.0.change();
        let mut stored = self.stored_switch(switch)?;
        let before = stored.clone();
        let ports = self.0.fabrics.ask(orders::Ports { switch: switch.clone() })?;
        let ports: BTreeSet<PortName> = sorting::collect(ports.into_iter().map(|found| found.port.name));
        let removed: BTreeSet<u64> = sorting::collect(gone.iter().map(|flow| flow.id));
        stored.flows.list.retain(|flow| !removed.contains(&flow.id));
        let mut added = Vec::new();
        for flow in new {
            let output = match &flow.output {
                FlowOutput::Port(port) => Some(port),
                _ => None,
            };
            if let Some(port) = output.into_iter().chain(&flow.in_port).find(|port| !ports.contains(*port)) {
                return Err(OperationError::NoPort(switch.clone(), port.clone()));
            }
            if let FlowOutput::Chain(chain) = &flow.output
                && stored.steering.chain(chain).is_none()
            {
                return Err(OperationError::NoChain(switch.clone(), chain.clone()));
            }
            stored.flows.last = stored.flows.last.saturating_add(1);
            added.push(StoredFlow {
                id: stored.flows.last,
                flow: flow.with_priority(),
                stack: stack.cloned(),
            });
        }
        let (at, taken, put) = (switch.clone(), gone.clone(), added.clone());
        operation.undo_by(move |supervisor| {
            let _change = supervisor.0.change();
            // What was not done yet is refused. If the fabric has ended, the next one gets the flows as they were.
            for flow in put {
                let _ = supervisor.0.fabrics.ask(orders::RemoveFlow { switch: at.clone(), id: flow.id });
            }
            for flow in taken {
                let _ = supervisor.order_flow(&at, &flow);
            }
            supervisor.0.switches().insert(at, before);
        });
        for flow in gone {
            self.0.fabrics.ask(orders::RemoveFlow { switch: switch.clone(), id: flow.id })?;
        }
        added.iter().try_for_each(|flow| self.order_flow(switch, flow))?;
        stored.flows.list.extend(added.into_iter().filter(|flow| !flow.flow.is_temporary()));
        let last = stored.flows.last;
        operation.add(StoreChange::PutSwitch(stored.clone()));
        self.0.switches().insert(switch.clone(), stored);
        Ok(last)
    }

    /// Removes a flow.
    pub fn remove_flow(&self, switch: &SwitchName, id: u64) -> Result<(), OperationError> {
        self.operate(Action::Change, switch, &|| vec![Claim::change(switch)], |operation| {
            let mut stored = self.stored_switch(switch)?;
            let is_stored = stored.flows.list.iter().any(|flow| flow.id == id);
            let is_there = |found: Vec<FlowStatus>| found.iter().any(|flow| flow.id == id);
            if !is_stored && !is_there(self.flows_after(switch, id.saturating_sub(1), Some(1))?) {
                return Err(protocol::fabric::FabricError::NoFlow(switch.clone(), id).into());
            }
            if is_stored {
                stored.flows.list.retain(|flow| flow.id != id);
                operation.add(StoreChange::PutSwitch(stored));
            }
            let at = switch.clone();
            operation.after_commit(move |supervisor| {
                let _change = supervisor.0.change();
                // A flow with a timeout may have ended; the next fabric does not get it.
                let _ = supervisor.0.fabrics.ask(orders::RemoveFlow { switch: at.clone(), id });
                if let Some(stored) = supervisor.0.switches().get_mut(&at) {
                    stored.flows.list.retain(|flow| flow.id != id);
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
        // There may be thousands.
        let wanted: BTreeMap<u64, &AddFlow> =
            sorting::collect(stored.flows.list.iter().map(|wanted| (wanted.id, &wanted.flow)));
        let found: BTreeMap<u64, &AddFlow> =
            sorting::collect(known.iter().map(|found| (found.id, &found.flow)));
        for (id, flow) in found.iter().filter(|(_, flow)| !flow.is_temporary()) {
            if wanted.get(id) != Some(flow) {
                let _ = self.0.fabrics.ask(orders::RemoveFlow { switch: switch.clone(), id: *id });
            }
        }
        let is_known = |wanted: &StoredFlow| found.get(&wanted.id) == Some(&&wanted.flow);
        for wanted in stored.flows.list.iter().filter(|wanted| !is_known(wanted)) {
            if let Err(failure) = self.order_flow(switch, wanted) {
                let message = format!(
                    "flow {} of switch {switch} could not be restored: {}",
                    wanted.id,
                    with_causes(&failure)
                );
                self.0.journal.note(EventKind::FlowLost, switch, message);
            }
        }
    }

    fn order_flow(&self, switch: &SwitchName, wanted: &StoredFlow) -> Result<(), OperationError> {
        let flow = definition(wanted.id, &wanted.flow)?;
        self.0.fabrics.ask(orders::AddFlow { switch: switch.clone(), flow })
    }

    /// Gives a switch that was just made the flows of the one that it replaces.
    pub(super) fn keep_flows(
        &self,
        operation: &mut Operation,
        switch: &SwitchName,
        flows: StoredFlows,
    ) -> Result<(), OperationError> {
        let _change = self.0.change();
        let mut stored = self.stored_switch(switch)?;
        flows.list.iter().try_for_each(|wanted| self.order_flow(switch, wanted))?;
        stored.flows = flows;
        operation.add(StoreChange::PutSwitch(stored.clone()));
        self.0.switches().insert(switch.clone(), stored);
        Ok(())
    }
}
