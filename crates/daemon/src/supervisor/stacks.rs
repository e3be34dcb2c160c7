//! Stacks: boxes and switches that are created, changed and removed together, atomically.

use super::boxes::relied_on;
use super::claims::Claim;
use super::diff::{diff_box, diff_switch};
use super::operation::Operation;
use super::state::Supervisor;
use super::switches::far_end;
use crate::boxes::{ManagedBox, Share};
use crate::error::{OperationError, RequestError};
use crate::store::{Action, StoreChange, StoredStack, StoredSwitch};
use api::Subject;
use api::{
    BoxName, Change, ChangeAction, Changes, ConfigurationName, CreateBox, EventKind, File, Install,
    PortDriver, Stack, StackName, StackStatus, SwitchName, Time, with_causes,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// One step of applying a stack.
#[derive(Debug)]
enum StackStep {
    MakeSwitch(api::CreateSwitch),
    RemoveSwitch(StoredSwitch),
    AddPort(SwitchName, api::AddPort),
    RemovePort(SwitchName, api::AddPort),
    MakeBox(Box<CreateBox>),
    RemoveBox(Arc<ManagedBox>),
    Reload(Arc<ManagedBox>, Box<Install>),
    Alter(Arc<ManagedBox>, Box<CreateBox>),
}

/// The steps, and the changes that are reported.
#[derive(Debug, Default)]
struct StackPlan {
    changes: Vec<Change>,
    steps: Vec<StackStep>,
}

impl StackPlan {
    fn record(&mut self, action: ChangeAction, subject: impl Into<Subject>, differences: &[String]) {
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
        let stored = self.0.store().stacks()?;
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
                name: stored.name.clone(),
            }
        };
        Ok(stored.into_iter().map(status).collect())
    }

    /// The changes that applying a stack would make.
    pub fn diff_stack(&self, name: &StackName, stack: &Stack) -> Result<Changes, OperationError> {
        Ok(Changes { changes: self.plan(name, stack)?.changes })
    }

    /// Applies a stack: all of it, or nothing if any part is rejected.
    pub fn apply_stack(&self, name: &StackName, stack: Stack) -> Result<Changes, OperationError> {
        self.change_stack(Action::Apply, name, stack, Vec::new())
    }

    /// Applies a stack together with other changes of the store.
    pub(super) fn change_stack(
        &self,
        action: Action,
        name: &StackName,
        stack: Stack,
        others: Vec<StoreChange>,
    ) -> Result<Changes, OperationError> {
        let claims = || self.claims_of(name, &stack);
        let mut has_begun = false;
        let done = self.operate(action, name, &claims, |operation| {
            let plan = self.plan(name, &stack)?;
            self.check_plan(&plan)?;
            has_begun = true;
            plan.steps.into_iter().try_for_each(|step| self.step(operation, name, step))?;
            let mut definition = stack.clone();
            for wanted in &mut definition.boxes {
                (wanted.configuration, wanted.files) = (String::new(), Vec::new());
            }
            let stored = StoredStack { name: name.clone(), definition, applied: Time::now() };
            operation.add(StoreChange::PutStack(stored));
            others.iter().for_each(|change| operation.add(change.clone()));
            let message = format!("stack {name} was applied: {} changes", plan.changes.len());
            operation.note(EventKind::StackApplied, name, message);
            Ok(Changes { changes: plan.changes })
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
    pub fn remove_stack(&self, name: &StackName) -> Result<Changes, OperationError> {
        self.refuse_unconfirmed(name)?;
        self.drop_stack(Action::Remove, name, Vec::new())
    }

    /// Like [`remove_stack`](Self::remove_stack), even if the stack awaits confirmation, and together with other changes
    /// of the store.
    pub(super) fn drop_stack(
        &self,
        action: Action,
        name: &StackName,
        others: Vec<StoreChange>,
    ) -> Result<Changes, OperationError> {
        let stack = Stack::default();
        let mut has_begun = false;
        let done = self.operate(action, name, &|| self.claims_of(name, &stack), |operation| {
            if !self.0.store().stacks()?.iter().any(|stored| stored.name == *name) {
                return Err(OperationError::NoStack(name.clone()));
            }
            let plan = self.plan(name, &stack)?;
            has_begun = true;
            plan.steps.into_iter().try_for_each(|step| self.step(operation, name, step))?;
            operation.add(StoreChange::RemoveStack(name.clone()));
            others.iter().for_each(|change| operation.add(change.clone()));
            let message = format!("stack {name} was removed");
            operation.note(EventKind::StackRemoved, name, message);
            Ok(Changes { changes: plan.changes })
        });
        done.inspect_err(|failure| self.note_undone(has_begun, name, "removed", failure))
    }

    /// The claims of an operation that makes a stack match its definition.
    fn claims_of(&self, name: &StackName, stack: &Stack) -> Vec<Claim> {
        let ours = |stack: &Option<StackName>| stack.as_ref() == Some(name);
        let mut claims = vec![Claim::change(name)];
        for wanted in &stack.switches {
            claims.push(Claim::change(&wanted.name));
            claims.extend(wanted.ports.iter().filter_map(far_end));
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
        for wanted in &stack.switches {
            if !names.insert(wanted.name.as_str()) {
                return Err(RequestError::DuplicateSwitch(wanted.name.clone()).into());
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
            ours(&managed.inner().stack) && !stack.boxes.iter().any(|wanted| wanted.name == managed.name)
        });
        for managed in unwanted {
            plan.record(ChangeAction::Remove, &managed.name, &[]);
            plan.steps.push(StackStep::RemoveBox(managed.clone()));
        }
        // Ports that connect to other parts of the stack are added once these exist.
        let mut joins = Vec::new();
        for wanted in &stack.switches {
            let there = switches.iter().find(|stored| stored.definition.name == wanted.name);
            match there {
                Some(there) if !ours(&there.stack) => {
                    return Err(OperationError::Foreign(Subject::from(&wanted.name)));
                }
                Some(there) => plan.change_switch(there, wanted, &mut joins),
                None => plan.make_switch(wanted, &mut joins),
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
        plan.steps.extend(joins);
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
            plan.steps.push(StackStep::RemoveBox(managed.clone()));
            plan.steps.push(StackStep::MakeBox(Box::new(wanted.clone())));
            return Ok(());
        }
        if found.reload {
            plan.record(ChangeAction::Reload, &managed.name, &found.differences);
            let install = Install {
                configuration: wanted.configuration.clone(),
                source: wanted.source.clone(),
                files: wanted.files.clone(),
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
                StackStep::MakeBox(wanted) => self.check_for(wanted, &wanted.configuration, &wanted.files)?,
                StackStep::Reload(managed, install) => {
                    let mut definition = managed.inner().definition.clone();
                    definition.source = install.source.clone();
                    self.check_for(&definition, &install.configuration, &install.files)?;
                }
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
    ) -> Result<(), OperationError> {
        match step {
            StackStep::MakeSwitch(definition) => {
                self.make_switch(operation, definition, Some(stack.clone()))?;
            }
            StackStep::RemoveSwitch(stored) => {
                let name = &stored.definition.name;
                // An earlier step may have changed it.
                let (stored, joined) = (self.stored_switch(name)?, self.joined_to(name));
                self.plan_switch_removal(operation, name)?;
                self.take_down_switch(name);
                operation.undo_by(move |supervisor| supervisor.put_switch_back(&stored, joined));
            }
            StackStep::AddPort(switch, port) => self.make_port(operation, &switch, &port)?,
            StackStep::RemovePort(switch, port) => {
                let before = self.stored_switch(&switch)?;
                self.plan_port_removal(operation, &switch, &port.name)?;
                self.take_down_port(&switch, &port.name);
                operation.undo_by(move |supervisor| supervisor.put_port_back(before, &port));
            }
            StackStep::MakeBox(wanted) => drop(self.make_box(operation, *wanted, Some(stack.clone()))?),
            StackStep::RemoveBox(managed) => {
                let joined = self.switches_with_port_of(&managed.name);
                self.plan_removal(operation, &managed);
                self.take_down_box(&managed);
                let name = managed.name.clone();
                operation.undo_by(move |supervisor| supervisor.put_box_back(&name, joined));
            }
            StackStep::Reload(managed, install) => {
                drop(self.swap(operation, &managed, &ConfigurationName::main(), &install)?);
            }
            StackStep::Alter(managed, wanted) => self.alter(operation, &managed, &wanted),
        }
        Ok(())
    }

    /// Changes settings of a box that may be running.
    fn alter(&self, operation: &mut Operation, managed: &Arc<ManagedBox>, wanted: &CreateBox) {
        let before = managed.inner().definition.clone();
        let mut definition = before.clone();
        definition.cpu_weight = wanted.cpu_weight;
        definition.cpu_limit = wanted.cpu_limit;
        definition.restart = wanted.restart;
        definition.labels = wanted.labels.clone();
        definition.start = wanted.start;
        operation.add(StoreChange::DefineBox(Box::new(definition.clone())));
        let set = |managed: &ManagedBox, definition: CreateBox| {
            if let Some(instance) = managed.instance() {
                instance.set_share(Share::of(&definition));
            }
            managed.inner().definition = definition;
        };
        set(managed, definition);
        let altered = managed.clone();
        operation.undo_by(move |_| set(&altered, before));
    }
}

impl StackPlan {
    /// Plans a switch without its ports to other parts of the stack; these are added later.
    fn make_switch(&mut self, wanted: &api::CreateSwitch, joins: &mut Vec<StackStep>) {
        self.record(ChangeAction::Create, &wanted.name, &[]);
        let mut alone = wanted.clone();
        alone.ports.retain(|port| !connects_elsewhere(port));
        self.steps.push(StackStep::MakeSwitch(alone));
        let away = wanted.ports.iter().filter(|port| connects_elsewhere(port));
        joins.extend(away.map(|port| StackStep::AddPort(wanted.name.clone(), port.clone())));
    }

    fn change_switch(
        &mut self,
        there: &StoredSwitch,
        wanted: &api::CreateSwitch,
        joins: &mut Vec<StackStep>,
    ) {
        let found = diff_switch(&there.definition, wanted);
        if found.replace {
            self.record(ChangeAction::Replace, &wanted.name, &found.differences);
            self.steps.push(StackStep::RemoveSwitch(there.clone()));
            let recorded = self.changes.len();
            self.make_switch(wanted, joins);
            self.changes.truncate(recorded);
            return;
        }
        for port in found.gone {
            let action = match found.new.iter().any(|new| new.name == port.name) {
                true => ChangeAction::Replace,
                false => ChangeAction::Remove,
            };
            self.record(action, (&wanted.name, &port.name), &[]);
            self.steps.push(StackStep::RemovePort(wanted.name.clone(), port));
        }
        for port in found.new {
            if !there.definition.ports.iter().any(|before| before.name == port.name) {
                self.record(ChangeAction::Create, (&wanted.name, &port.name), &[]);
            }
            joins.push(StackStep::AddPort(wanted.name.clone(), port));
        }
    }
}

/// Whether a port connects to a switch or a box, which must exist first.
fn connects_elsewhere(port: &api::AddPort) -> bool {
    matches!(port.driver, PortDriver::Pipe { .. } | PortDriver::Box { .. })
}
