//! Stacks: boxes and switches that are created, changed and removed together, atomically.

use super::boxes::{Making, relied_on};
use super::claims::Claim;
use super::diff::{diff_box, diff_flows, diff_ports, diff_switch};
use super::flows::{FlowChanges, check_flows};
use super::forwarding::check_forwarding;
use super::managed_box::{Known, ManagedBox};
use super::operation::Operation;
use super::state::Supervisor;
use super::steering_step::SteeringStep;
use super::switches::{far_end, leads_to};
use crate::error::{OperationError, RequestError};
use crate::store::{Action, StoreChange, StoredFlows, StoredStack, StoredSwitch};
use api::{
    BoxName, Change, ChangeAction, Changes, ConfigurationName, CreateBox, Drift, EventKind, File, Install,
    Owner, PortDriver, RecordedWrite, Stack, StackName, StackStatus, Subject, SwitchMode, SwitchName, Time,
    with_causes,
};
use protocol::fabric::orders;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One step of applying a stack.
#[derive(Debug)]
pub(super) enum StackStep {
    MakeSwitch(api::CreateSwitch),
    RemoveSwitch(StoredSwitch),
    ShareSwitch(SwitchName, BTreeSet<Owner>),
    /// The last is the stack that makes the port, if any.
    AddPort(SwitchName, api::AddPort, Option<StackName>),
    SetAddress(SwitchName, api::MacAddr, api::PortName),
    /// Gives a switch the flows of the one that it replaces.
    KeepFlows(SwitchName, StoredFlows),
    RemovePort(SwitchName, api::AddPort),
    ChangeFlows(SwitchName, FlowChanges),
    MakeBox(Box<CreateBox>),
    RemoveBox(Arc<ManagedBox>),
    /// Removes a box before another of its name is made, which keeps the writes to its handlers or not.
    ReplaceBox(Arc<ManagedBox>, bool),
    Reload(Arc<ManagedBox>, Box<Install>),
    Alter(Arc<ManagedBox>, Box<CreateBox>),
    Steering(SteeringStep),
}

/// The writes to handlers of boxes that an operation replaces.
#[derive(Debug, Default)]
struct ReplacedWrites {
    /// Those that the next box of the same name executes again.
    kept: BTreeMap<BoxName, Vec<RecordedWrite>>,
    lost: Vec<Drift>,
}

impl ReplacedWrites {
    fn lose(&mut self, name: &BoxName, writes: Vec<RecordedWrite>) {
        if !writes.is_empty() {
            self.lost.push(Drift { name: name.clone(), writes });
        }
    }
}

/// How a stack is changed.
#[derive(Debug)]
pub(super) struct StackOrder {
    pub(super) action: Action,
    /// Other changes of the store that take effect with it.
    pub(super) others: Vec<StoreChange>,
    /// Whether to remove switches that others use.
    pub(super) is_forced: bool,
}

impl StackOrder {
    pub(super) fn new(action: Action) -> Self {
        Self { action, others: Vec::new(), is_forced: false }
    }
}

/// The steps, and the changes that are reported.
#[derive(Debug, Default)]
pub(super) struct StackPlan {
    changes: Vec<Change>,
    left_alone: Vec<Subject>,
    pub(super) steps: Vec<StackStep>,
    /// Ports that connect to other parts of the stack, and addresses, which are added once these exist.
    joins: Vec<StackStep>,
    /// Changes of flows, which name ports.
    flows: Vec<(SwitchName, FlowChanges)>,
}

impl StackPlan {
    fn changes(&self) -> Changes {
        Changes {
            changes: self.changes.clone(),
            left_alone: self.left_alone.iter().map(Subject::to_string).collect(),
            drift: Vec::new(),
            lost: Vec::new(),
        }
    }

    pub(super) fn record(
        &mut self,
        action: ChangeAction,
        subject: impl Into<Subject>,
        differences: &[String],
    ) {
        self.changes.push(Change {
            action,
            subject: subject.into().to_string(),
            detail: differences.join("; "),
        });
    }
}

impl Supervisor {
    /// Lists the stacks, by name.
    pub fn stacks(&self) -> Result<Vec<StackStatus>, OperationError> {
        let mut stored = self.0.store().stacks()?;
        stored.retain(|stored| self.sees(&stored.definition.owner));
        let boxes = self.0.all();
        let status = |stored: StoredStack| {
            let of = |stack: &Option<StackName>| stack.as_ref() == Some(&stored.name);
            StackStatus {
                applied: stored.applied,
                confirm_until: self.0.pending().get(&stored.name).map(|pending| pending.until),
                boxes: boxes
                    .iter()
                    .filter(|managed| of(&managed.inner().stack))
                    .map(|managed| managed.name.clone())
                    .collect(),
                switches: self
                    .0
                    .switches()
                    .values()
                    .filter(|switch| of(&switch.stack))
                    .map(|switch| switch.definition.name.clone())
                    .collect(),
                owner: stored.definition.owner,
                name: stored.name.clone(),
            }
        };
        Ok(stored.into_iter().map(status).collect())
    }

    /// The most bytes that a comparison with the stored definitions of these boxes reads at once: those of the largest one.
    pub(crate) fn bytes_to_compare(&self, boxes: &[BoxName]) -> Result<usize, OperationError> {
        let store = self.0.store();
        let mut most = 0;
        for name in boxes {
            if let Some(main) = store.configuration(name, &ConfigurationName::main())? {
                most = most.max(main.text.len() as u64 + store.file_bytes(main.id)?);
            }
        }
        Ok(usize::try_from(most).unwrap_or(usize::MAX))
    }

    /// The changes that applying a stack would make.
    pub fn diff_stack(&self, name: &StackName, stack: &Stack) -> Result<Changes, OperationError> {
        self.fetch_events();
        let mut stack = stack.clone();
        self.adopt_stack(name, &mut stack)?;
        let plan = self.plan(name, &stack)?;
        self.check_plan_access(&plan)?;
        let mut changes = plan.changes();
        changes.drift = self.drift(stack.boxes.iter().map(|wanted| wanted.name.clone()))?;
        Ok(changes)
    }

    /// Applies a stack: all of it, or nothing if any part is rejected.
    pub fn apply_stack(&self, name: &StackName, mut stack: Stack) -> Result<Changes, OperationError> {
        self.adopt_stack(name, &mut stack)?;
        self.change_stack(StackOrder::new(Action::Apply), name, stack)
    }

    /// Applies a stack as ordered.
    pub(super) fn change_stack(
        &self,
        order: StackOrder,
        name: &StackName,
        stack: Stack,
    ) -> Result<Changes, OperationError> {
        let claims = || self.claims_of(name, &stack);
        let mut has_begun = false;
        let done = self.operate(order.action, name, &claims, |operation| {
            let plan = self.plan(name, &stack)?;
            self.refuse_use_by_others(&order, name, &plan)?;
            let makes_boxes = plan.steps.iter().any(|step| {
                matches!(step, StackStep::MakeBox(_) | StackStep::Steering(SteeringStep::Remake(_)))
            });
            // What is rolled back ran before.
            if makes_boxes && order.action == Action::Apply {
                self.refuse_while_draining()?;
            }
            self.check_plan_access(&plan)?;
            self.check_plan(&plan)?;
            self.0.journal.owners.set(name, stack.owner.clone());
            has_begun = true;
            let (mut changes, mut writes) = (plan.changes(), ReplacedWrites::default());
            plan.steps.into_iter().try_for_each(|step| {
                let subject = step.subject();
                let done = self.step(operation, name, step, &mut writes);
                done.map_err(|error| error.of_any(subject.as_ref()))
            })?;
            changes.lost = writes.lost;
            let mut definition = stack.clone();
            let instances = definition.services.iter_mut().map(|service| &mut service.instance);
            for wanted in definition.boxes.iter_mut().chain(instances) {
                (wanted.configuration, wanted.files) = (String::new(), Vec::new());
            }
            let stored = StoredStack { name: name.clone(), definition, applied: Time::now() };
            operation.add(StoreChange::PutStack(stored));
            order.others.iter().for_each(|change| operation.add(change.clone()));
            let count = match changes.changes.len() {
                1 => "1 change".to_string(),
                count => format!("{count} changes"),
            };
            let message = format!("stack {name} was applied: {count}");
            operation.note(EventKind::StackApplied, name, message);
            Ok(changes)
        });
        done.inspect_err(|failure| self.note_undone(has_begun, name, "applied", failure))
    }

    /// Reports an operation on a stack that failed after it had begun to change something.
    fn note_undone(&self, has_begun: bool, name: &StackName, what: &str, failure: &OperationError) {
        if has_begun {
            let why = with_causes(failure);
            let message = format!("stack {name} could not be {what}; all changes were undone: {why}");
            self.0.journal.note(EventKind::StackRolledBack, name, message);
        }
    }

    /// Removes a stack's boxes and switches: all of them, or none.
    ///
    /// # Errors
    ///
    /// Others use its switches: boxes that are not part of it, ports that it did not make.
    pub fn remove_stack(&self, name: &StackName) -> Result<Changes, OperationError> {
        self.refuse_unconfirmed(name)?;
        self.drop_stack(StackOrder::new(Action::Remove), name)
    }

    /// Like [`remove_stack`](Self::remove_stack), even if others use its switches.
    pub fn remove_stack_by_force(&self, name: &StackName) -> Result<Changes, OperationError> {
        self.refuse_unconfirmed(name)?;
        self.drop_stack(StackOrder { is_forced: true, ..StackOrder::new(Action::Remove) }, name)
    }

    /// Like [`remove_stack`](Self::remove_stack), even if the stack awaits confirmation, and together with other changes
    /// of the store.
    pub(super) fn drop_stack(&self, order: StackOrder, name: &StackName) -> Result<Changes, OperationError> {
        let stack = Stack::default();
        for managed in self.0.all() {
            let is_ours = managed.inner().stack.as_ref() == Some(name);
            if is_ours {
                self.interrupt_operation_on(&managed);
            }
        }
        let mut has_begun = false;
        let done = self.operate(order.action, name, &|| self.claims_of(name, &stack), |operation| {
            if !self.0.store().stacks()?.iter().any(|stored| stored.name == *name) {
                return Err(OperationError::NoStack(name.clone()));
            }
            let plan = self.plan(name, &stack)?;
            self.refuse_use_by_others(&order, name, &plan)?;
            self.check_plan_access(&plan)?;
            has_begun = true;
            let changes = plan.changes();
            let mut writes = ReplacedWrites::default();
            plan.steps.into_iter().try_for_each(|step| self.step(operation, name, step, &mut writes))?;
            operation.add(StoreChange::RemoveStack(name.clone()));
            order.others.iter().for_each(|change| operation.add(change.clone()));
            let message = format!("stack {name} was removed");
            operation.note(EventKind::StackRemoved, name, message);
            Ok(changes)
        });
        done.inspect_err(|failure| self.note_undone(has_begun, name, "removed", failure))
    }

    /// Returns an error if a plan removes a switch that others use: boxes that are not part of the stack, and ports that
    /// it did not make.
    fn refuse_use_by_others(
        &self,
        order: &StackOrder,
        name: &StackName,
        plan: &StackPlan,
    ) -> Result<(), OperationError> {
        self.refuse_steering_of_others(name, plan, order.is_forced)?;
        let is_made = |made: &SwitchName| {
            let makes = |step: &StackStep| matches!(step, StackStep::MakeSwitch(new) if new.name == *made);
            plan.steps.iter().any(makes)
        };
        for step in plan.steps.iter().filter(|_| !order.is_forced) {
            let StackStep::RemoveSwitch(stored) = step else { continue };
            let removed = &stored.definition.name;
            if is_made(removed) {
                // It is replaced, and gets everything back.
                continue;
            }
            let ports = stored.definition.ports.iter().map(|port| &port.name);
            let by_hand = ports.filter(|port| stored.makers.get(*port) != Some(name));
            let mut users: Vec<Subject> = by_hand.map(|port| Subject::from((removed, port))).collect();
            for user in self.users_of_switch(removed)? {
                let is_foreign = match &user {
                    Subject::Box(user) => self.0.managed_box(user)?.inner().stack.as_ref() != Some(name),
                    Subject::Switch(user) => {
                        let other = self.stored_switch(user)?;
                        let mut pipes = other.definition.ports.iter().filter(|port| leads_to(port, removed));
                        pipes.any(|port| other.makers.get(&port.name) != Some(name))
                    }
                    _ => false,
                };
                if is_foreign {
                    users.push(user);
                }
            }
            if !users.is_empty() {
                return Err(OperationError::InUse(removed.into(), users));
            }
        }
        Ok(())
    }

    /// The claims of an operation that makes a stack match its definition.
    fn claims_of(&self, name: &StackName, stack: &Stack) -> Vec<Claim> {
        let ours = |stack: &Option<StackName>| stack.as_ref() == Some(name);
        let mut claims = vec![Claim::change(name)];
        claims.extend(self.claims_of_services(name, stack));
        for wanted in &stack.switches {
            claims.extend(self.claims_to_share(&wanted.name, &wanted.shared_with));
            claims.extend(wanted.ports.iter().filter_map(far_end));
        }
        for used in &stack.external {
            claims.push(Claim::change(&used.name));
            claims.extend(used.ports.iter().filter_map(far_end));
        }
        for wanted in &stack.boxes {
            claims.push(Claim::change(&wanted.name));
            claims.extend(relied_on(wanted));
        }
        let switches: Vec<StoredSwitch> = self.0.switches().values().cloned().collect();
        for stored in switches.iter().filter(|stored| ours(&stored.stack)) {
            claims.extend(self.claims_to_remove_switch(&stored.definition.name));
            claims.extend(stored.definition.ports.iter().filter_map(far_end));
        }
        for stored in switches.iter().filter(|stored| stored.makers.values().any(|maker| maker == name)) {
            claims.push(Claim::change(&stored.definition.name));
            claims.extend(stored.definition.ports.iter().filter_map(far_end));
        }
        for managed in self.0.all() {
            let is_ours = ours(&managed.inner().stack);
            if is_ours {
                claims.extend(self.claims_to_remove_box(&managed.name));
            }
        }
        claims
    }

    /// Plans the steps. Switches are created first, boxes are removed before new ones may need their names and ports,
    /// and switches are removed last.
    fn plan(&self, name: &StackName, stack: &Stack) -> Result<StackPlan, OperationError> {
        let mut plan = StackPlan::default();
        let ours = |stack: &Option<StackName>| stack.as_ref() == Some(name);
        let switches: Vec<StoredSwitch> = self.0.switches().values().cloned().collect();
        let boxes = self.0.all();
        let mut names = BTreeSet::new();
        let used = stack.external.iter().map(|used| &used.name);
        for wanted in stack.switches.iter().map(|wanted| &wanted.name).chain(used) {
            if !names.insert(wanted.as_str()) {
                return Err(RequestError::DuplicateSwitch(wanted.clone()).into());
            }
        }
        let mut names = BTreeSet::new();
        for wanted in &stack.boxes {
            if !names.insert(wanted.name.as_str()) {
                return Err(RequestError::DuplicateBox(wanted.name.clone()).into());
            }
        }
        let mut last = Vec::new();
        for stored in switches.iter().filter(|stored| ours(&stored.stack)) {
            if !stack.switches.iter().any(|wanted| wanted.name == stored.definition.name) {
                last.push(stored.clone());
            }
        }
        let unwanted = boxes.iter().filter(|managed| {
            let inner = managed.inner();
            let is_ours = ours(&inner.stack) && inner.service.is_none();
            is_ours && !stack.boxes.iter().any(|wanted| wanted.name == managed.name)
        });
        for managed in unwanted {
            plan.record(ChangeAction::Remove, &managed.name, &[]);
            plan.steps.push(StackStep::RemoveBox(managed.clone()));
        }
        for wanted in &stack.switches {
            check_flows(wanted)?;
            check_forwarding(wanted)?;
            let there = switches.iter().find(|stored| stored.definition.name == wanted.name);
            match there {
                Some(there) if !ours(&there.stack) => {
                    return Err(OperationError::Foreign(Subject::from(&wanted.name)));
                }
                Some(there) => plan.change_switch(name, there, wanted)?,
                None => plan.make_switch(name, wanted),
            }
        }
        for used in &stack.external {
            let there = switches.iter().find(|stored| stored.definition.name == used.name);
            let there = there.ok_or_else(|| OperationError::NoSwitch(used.name.clone()))?;
            if ours(&there.stack) {
                return Err(RequestError::OwnExternal(used.name.clone()).into());
            }
            plan.change_ports(name, there, &used.ports)?;
        }
        // Ports at switches that the stack no longer uses.
        for there in switches.iter().filter(|there| !ours(&there.stack)) {
            if !stack.external.iter().any(|used| used.name == there.definition.name) {
                plan.change_ports(name, there, &[])?;
            }
        }
        for wanted in &stack.boxes {
            match boxes.iter().find(|managed| managed.name == wanted.name) {
                Some(managed) if !ours(&managed.inner().stack) => {
                    return Err(OperationError::Foreign(Subject::from(&wanted.name)));
                }
                Some(managed) => self.plan_box(&mut plan, managed, wanted)?,
                None => {
                    plan.record(ChangeAction::Create, &wanted.name, &[]);
                    plan.steps.push(StackStep::MakeBox(Box::new(wanted.clone())));
                }
            }
        }
        // Before the switches that are only removed are planned.
        plan.keep_pipes(&switches);
        let joins = std::mem::take(&mut plan.joins);
        plan.steps.extend(joins);
        let steering = self.plan_steering(&mut plan, name, stack, &switches)?;
        // Flows may lead to chains that are removed, and to those that are made.
        let (gone, new): (Vec<_>, Vec<_>) = std::mem::take(&mut plan.flows)
            .into_iter()
            .map(|(switch, FlowChanges { gone, new })| {
                let gone = FlowChanges { gone, ..FlowChanges::default() };
                let new = FlowChanges { new, ..FlowChanges::default() };
                (StackStep::ChangeFlows(switch.clone(), gone), StackStep::ChangeFlows(switch, new))
            })
            .unzip();
        plan.steps.extend(gone.into_iter().filter(changes_flows));
        plan.steps.extend(steering.first.into_iter().map(StackStep::Steering));
        plan.steps.extend(new.into_iter().filter(changes_flows));
        plan.steps.extend(steering.last.into_iter().map(StackStep::Steering));
        for stored in last {
            plan.record(ChangeAction::Remove, &stored.definition.name, &[]);
            plan.steps.push(StackStep::RemoveSwitch(stored));
        }
        Ok(plan)
    }

    fn plan_box(
        &self,
        plan: &mut StackPlan,
        managed: &Arc<ManagedBox>,
        wanted: &CreateBox,
    ) -> Result<(), OperationError> {
        let (text, files) = self.main_of(&managed.name)?;
        let there = managed.inner().definition.clone();
        let found = diff_box((&there, &text, &files), wanted);
        if found.replace {
            plan.record(ChangeAction::Replace, &managed.name, &found.differences);
            plan.steps.push(StackStep::ReplaceBox(managed.clone(), wanted.keep_writes));
            plan.steps.push(StackStep::MakeBox(Box::new(wanted.clone())));
            return Ok(());
        }
        if found.reload {
            plan.record(ChangeAction::Reload, &managed.name, &found.differences);
            let install = Install {
                configuration: wanted.configuration.clone(),
                source: wanted.source.clone(),
                files: wanted.files.clone(),
                uploads: Vec::new(),
            };
            plan.steps.push(StackStep::Reload(managed.clone(), Box::new(install)));
        }
        if found.change {
            if !found.reload {
                plan.record(ChangeAction::Change, &managed.name, &found.differences);
            }
            plan.steps.push(StackStep::Alter(managed.clone(), Box::new(wanted.clone())));
        }
        Ok(())
    }

    /// A box's stored main configuration.
    pub(super) fn main_of(&self, name: &BoxName) -> Result<(String, Vec<File>), OperationError> {
        let store = self.0.store();
        match store.configuration(name, &ConfigurationName::main())? {
            Some(found) => {
                let files = store.files(name, found.id)?;
                Ok((found.text, files))
            }
            None => Ok((String::new(), Vec::new())),
        }
    }

    /// Checks all configurations before anything changes.
    fn check_plan(&self, plan: &StackPlan) -> Result<(), OperationError> {
        for step in &plan.steps {
            match step {
                StackStep::MakeBox(wanted) => {
                    self.check_for(wanted, Known::default(), &wanted.configuration, &wanted.files)?
                }
                StackStep::Reload(managed, install) => {
                    let mut definition = managed.inner().definition.clone();
                    definition.source = install.source.clone();
                    self.check_for(&definition, Known::default(), &install.configuration, &install.files)?;
                }
                StackStep::Steering(step) => self.check_steering_step(step)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Performs one step. If it is undone later, the state inside a removed box is lost.
    fn step(
        &self,
        operation: &mut Operation,
        stack: &StackName,
        step: StackStep,
        writes: &mut ReplacedWrites,
    ) -> Result<(), OperationError> {
        match step {
            StackStep::MakeSwitch(definition) => {
                self.make_switch(operation, definition, Some(stack.clone()))?;
            }
            StackStep::ShareSwitch(switch, owners) => self.set_sharing(operation, &switch, owners)?,
            StackStep::RemoveSwitch(stored) => {
                let name = &stored.definition.name;
                // An earlier step may have changed it.
                let (stored, joined) = (self.stored_switch(name)?, self.joined_to(name));
                let forwarding = self.forwarding_around(name)?;
                self.plan_switch_removal(operation, name)?;
                self.close_after_commit(operation, name)?;
                self.take_down_switch(name);
                operation.undo_by(move |supervisor| {
                    supervisor.put_switch_back(&stored, joined, forwarding);
                });
            }
            StackStep::AddPort(switch, port, maker) => {
                self.make_port(operation, &switch, &port, maker.as_ref())?;
            }
            StackStep::ChangeFlows(switch, changes) => {
                self.change_flows(operation, &switch, changes, Some(stack))?;
            }
            StackStep::KeepFlows(switch, flows) => self.keep_flows(operation, &switch, flows)?,
            StackStep::SetAddress(switch, mac, port) => {
                match self.put_address(operation, &switch, mac, &port) {
                    // The port was removed, and its address with it.
                    Err(OperationError::NoPort(..)) => {}
                    other => other?,
                }
            }
            StackStep::RemovePort(switch, port) => {
                let before = self.stored_switch(&switch)?;
                if !before.definition.ports.iter().any(|there| there.name == port.name) {
                    // It was a pipe to a switch that an earlier step has removed.
                    return Ok(());
                }
                let forwarding = self.forwarding_around(&switch)?;
                self.plan_port_removal(operation, &switch, &port.name)?;
                self.take_down_port(&switch, &port.name);
                operation.undo_by(move |supervisor| supervisor.put_port_back(before, &port, forwarding));
            }
            StackStep::MakeBox(wanted) => {
                let kept = writes.kept.remove(&wanted.name).unwrap_or_default();
                let making = Making { stack: Some(stack.clone()), writes: kept.clone(), service: None };
                let (managed, _) = self.make_box(operation, *wanted, making)?;
                let lost = self.carry_writes(operation, &managed, kept)?;
                writes.lose(&managed.name, lost);
            }
            StackStep::ReplaceBox(managed, is_kept) => {
                let found = self.writes_of_replaced(operation, &managed.name, is_kept)?;
                match is_kept {
                    true => drop(writes.kept.insert(managed.name.clone(), found)),
                    false => writes.lose(&managed.name, found),
                }
                self.step(operation, stack, StackStep::RemoveBox(managed), writes)?;
            }
            StackStep::RemoveBox(managed) => self.remove_box_now(operation, &managed),
            StackStep::Steering(step) => self.steering_step(operation, stack, step)?,
            StackStep::Reload(managed, install) => {
                drop(self.swap(operation, &managed, &ConfigurationName::main(), &install)?);
            }
            StackStep::Alter(managed, wanted) => self.alter(operation, &managed, &wanted)?,
        }
        Ok(())
    }

    /// Removes a box as a step of an operation, before others are made.
    pub(super) fn remove_box_now(&self, operation: &mut Operation, managed: &Arc<ManagedBox>) {
        let joined = self.switches_with_port_of(&managed.name);
        self.plan_removal(operation, managed);
        self.take_down_box(managed);
        let (name, service) = (managed.name.clone(), managed.inner().service.clone());
        operation.undo_by(move |supervisor| supervisor.put_box_back(&name, service, joined));
    }

    fn set_definition(&self, managed: &ManagedBox, definition: CreateBox) {
        managed.inner().definition = definition.clone();
        // A fabric that has ended gets the definition with its next start.
        let _ = self.0.fabrics.ask(orders::AlterBox { definition });
    }

    /// Changes settings of a box that may be running.
    pub(super) fn alter(
        &self,
        operation: &mut Operation,
        managed: &Arc<ManagedBox>,
        wanted: &CreateBox,
    ) -> Result<(), OperationError> {
        let before = managed.inner().definition.clone();
        let mut definition = before.clone();
        definition.cpu_weight = wanted.cpu_weight;
        definition.cpu_limit = wanted.cpu_limit;
        definition.restart = wanted.restart;
        definition.keep_writes = wanted.keep_writes;
        definition.labels = wanted.labels.clone();
        definition.start = wanted.start;
        {
            let boxes = self.0.boxes();
            self.check_change_quota(boxes.values(), &definition)?;
            managed.inner().definition = definition.clone();
        }
        operation.add(StoreChange::DefineBox(Box::new(definition.clone())));
        self.set_definition(managed, definition);
        let altered = managed.clone();
        operation.undo_by(move |supervisor| supervisor.set_definition(&altered, before));
        Ok(())
    }
}

impl StackPlan {
    /// Plans a switch without its ports to other parts of the stack; these are added later.
    fn make_switch(&mut self, stack: &StackName, wanted: &api::CreateSwitch) {
        self.record(ChangeAction::Create, &wanted.name, &[]);
        self.make_switch_and_ports(stack, wanted);
        if !wanted.flows.is_empty() {
            let changes = FlowChanges { new: wanted.flows.clone(), ..FlowChanges::default() };
            self.flows.push((wanted.name.clone(), changes));
        }
    }

    fn make_switch_and_ports(&mut self, stack: &StackName, wanted: &api::CreateSwitch) {
        let mut alone = wanted.clone();
        alone.ports.retain(|port| !connects_elsewhere(port));
        self.steps.push(StackStep::MakeSwitch(alone));
        let away = wanted.ports.iter().filter(|port| connects_elsewhere(port));
        let join =
            |port: &api::AddPort| StackStep::AddPort(wanted.name.clone(), port.clone(), Some(stack.clone()));
        self.joins.extend(away.map(join));
    }

    fn change_switch(
        &mut self,
        stack: &StackName,
        there: &StoredSwitch,
        wanted: &api::CreateSwitch,
    ) -> Result<(), OperationError> {
        let mut differences = diff_switch(&there.definition, wanted);
        if differences.is_empty() {
            if there.definition.shared_with != wanted.shared_with {
                differences.push("owners that it is shared with".to_string());
                self.steps.push(StackStep::ShareSwitch(wanted.name.clone(), wanted.shared_with.clone()));
            }
            differences.extend(self.change_flows(stack, there, &wanted.flows));
            if !differences.is_empty() {
                self.record(ChangeAction::Change, &wanted.name, &differences);
            }
            return self.change_ports(stack, there, &wanted.ports);
        }
        let found = diff_ports(there, &wanted.ports, stack).map_err(|port| foreign_port(wanted, port))?;
        let loses_flows = wanted.mode != SwitchMode::Steering;
        if !loses_flows {
            differences.extend(self.change_flows(stack, there, &wanted.flows));
        } else if !there.flows.list.is_empty() {
            differences.push(format!("{} flows that it loses", there.flows.list.len()));
        }
        self.record(ChangeAction::Replace, &wanted.name, &differences);
        self.steps.push(StackStep::RemoveSwitch(there.clone()));
        self.make_switch_and_ports(stack, wanted);
        // What others have added to the switch is added to the new one.
        for port in found.others {
            let maker = there.makers.get(&port.name).cloned();
            self.joins.push(StackStep::AddPort(wanted.name.clone(), port, maker));
        }
        if wanted.mode == SwitchMode::Static {
            let addresses = there.addresses.iter();
            let set = addresses
                .map(|(mac, port)| StackStep::SetAddress(wanted.name.clone(), *mac, port.clone()))
                .collect::<Vec<_>>();
            self.joins.extend(set);
        }
        if loses_flows && !there.steering.services.is_empty() {
            let services = there.steering.services.iter().map(|service| service.definition.name.clone());
            return Err(OperationError::HasServices(wanted.name.clone(), services.collect()));
        }
        if !there.steering.is_empty() {
            let keep = SteeringStep::Keep(wanted.name.clone(), there.steering.clone());
            self.joins.push(StackStep::Steering(keep));
        }
        if !loses_flows {
            self.joins.push(StackStep::KeepFlows(wanted.name.clone(), there.flows.clone()));
        }
        Ok(())
    }

    /// Plans the flows of a stack at a switch. The flows of others are left alone. Returns the differences.
    fn change_flows(
        &mut self,
        stack: &StackName,
        there: &StoredSwitch,
        wanted: &[api::AddFlow],
    ) -> Vec<String> {
        let changes = diff_flows(&there.flows, wanted, stack);
        let gone = changes.gone.iter().map(|stored| format!("without flow {}: {}", stored.id, stored.flow));
        let new = changes.new.iter().map(|flow| format!("with flow {flow}"));
        let differences: Vec<String> = gone.chain(new).collect();
        if !differences.is_empty() {
            self.flows.push((there.definition.name.clone(), changes));
        }
        differences
    }

    /// Plans the pipes from other switches to those that are replaced: they are removed with the old switch.
    fn keep_pipes(&mut self, switches: &[StoredSwitch]) {
        let is_removed = |plan: &Self, name: &SwitchName, port: Option<&api::PortName>| {
            plan.steps.iter().any(|step| match step {
                StackStep::RemoveSwitch(stored) => stored.definition.name == *name,
                StackStep::RemovePort(switch, removed) => switch == name && Some(&removed.name) == port,
                _ => false,
            })
        };
        let mut kept = Vec::new();
        for stored in switches.iter().filter(|stored| !is_removed(self, &stored.definition.name, None)) {
            let name = &stored.definition.name;
            for port in &stored.definition.ports {
                if matches!(&port.driver, PortDriver::Pipe { switch, .. } if is_removed(self, switch, None))
                    && !is_removed(self, name, Some(&port.name))
                {
                    let maker = stored.makers.get(&port.name).cloned();
                    kept.push(StackStep::AddPort(name.clone(), port.clone(), maker));
                }
            }
        }
        self.joins.extend(kept);
    }

    /// Plans the ports of a stack at a switch. The ports of others are left alone.
    fn change_ports(
        &mut self,
        stack: &StackName,
        there: &StoredSwitch,
        wanted: &[api::AddPort],
    ) -> Result<(), OperationError> {
        let name = &there.definition.name;
        let found = diff_ports(there, wanted, stack).map_err(|port| foreign_port(&there.definition, port))?;
        for port in found.gone {
            let action = match found.new.iter().any(|new| new.name == port.name) {
                true => ChangeAction::Replace,
                false => ChangeAction::Remove,
            };
            self.record(action, (name, &port.name), &[]);
            self.steps.push(StackStep::RemovePort(name.clone(), port));
        }
        for port in found.new {
            if !there.definition.ports.iter().any(|before| before.name == port.name) {
                self.record(ChangeAction::Create, (name, &port.name), &[]);
            }
            self.joins.push(StackStep::AddPort(name.clone(), port, Some(stack.clone())));
        }
        if there.stack.as_ref() == Some(stack) {
            let others = found.others.iter().map(|port| Subject::from((name, &port.name)));
            self.left_alone.extend(others);
        }
        Ok(())
    }
}

/// The error for a port that the stack defines differently and did not make.
fn foreign_port(switch: &api::CreateSwitch, port: api::PortName) -> OperationError {
    OperationError::Foreign(Subject::Port(switch.name.clone(), port))
}

/// Whether a step changes any flow.
fn changes_flows(step: &StackStep) -> bool {
    !matches!(step, StackStep::ChangeFlows(_, FlowChanges { gone, new }) if gone.is_empty() && new.is_empty())
}

/// Whether a port connects to a switch or a box, which must exist first.
fn connects_elsewhere(port: &api::AddPort) -> bool {
    matches!(port.driver, PortDriver::Pipe { .. } | PortDriver::Box { .. })
}
