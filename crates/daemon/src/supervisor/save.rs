//! Makes writes to handlers the definition of a box: gives the elements in the stored text the arguments that they have now.

use super::boxes::refuse_instance;
use super::claims::Claim;
use super::lifecycle::{configuration_of, lock_for_change, version};
use super::managed_box::{Known, ManagedBox};
use super::operation::Operation;
use super::state::Supervisor;
use crate::error::OperationError;
use crate::limits::CALL_TIMEOUT;
use crate::store::{Action, StoredConfiguration};
use api::{
    BoxName, ConfigurationName, EventKind, File, HandlerPath, RecordedWrite, Save, Saved, Time, UnsavedWrite,
};
use protocol::fabric::{Configuration, RewriteReply, orders};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the text of a configuration would become.
struct Plan {
    text: String,
    saved: Vec<RecordedWrite>,
    left: Vec<UnsavedWrite>,
}

impl Supervisor {
    /// Makes the writes to a configuration of a running box part of its text, as far as the text can express them. The
    /// others stay. The box goes on undisturbed. If the box belongs to a stack, only tells what the text would be: the next
    /// application of the stack would undo it.
    pub fn save(
        &self,
        name: &BoxName,
        configuration: &ConfigurationName,
        request: &Save,
    ) -> Result<Saved, OperationError> {
        let managed = self.0.managed_box(name)?;
        self.operate(Action::Change, name, &|| vec![Claim::change(name)], |operation| {
            let _change = lock_for_change(&managed)?;
            if managed.inner().removed {
                return Err(OperationError::NoBox(name.clone()));
            }
            if !request.preview {
                refuse_instance(&managed)?;
            }
            let missing = || OperationError::NoConfiguration(name.clone(), configuration.clone());
            let (before, files) = {
                let store = self.0.store();
                let before = store.configuration(name, configuration)?.ok_or_else(missing)?;
                let files = store.files(name, before.id)?;
                (before, files)
            };
            let plan = self.plan_save(&managed, &before, &files)?;
            let stack = managed.inner().stack.clone();
            let is_stored = !request.preview && stack.is_none() && !plan.saved.is_empty();
            let saved = Saved {
                before: before.text.clone(),
                configuration: plan.text.clone(),
                source: before.source.clone(),
                saved: plan.saved.iter().map(RecordedWrite::path).collect(),
                left: plan.left.clone(),
                stack,
                stored: is_stored,
            };
            if is_stored {
                self.store_saved(operation, &managed, before, files, plan)?;
            }
            Ok(saved)
        })
    }

    /// Finds out what can be expressed as text.
    fn plan_save(
        &self,
        managed: &ManagedBox,
        before: &StoredConfiguration,
        files: &[File],
    ) -> Result<Plan, OperationError> {
        let name = &managed.name;
        let (mut writes, _) = self.present_writes(name)?;
        writes.retain(|write| write.configuration == before.name);
        let mut plan = Plan { text: before.text.clone(), saved: Vec::new(), left: Vec::new() };
        let mut leave = |write: &RecordedWrite, reason: &str| {
            plan.left.push(UnsavedWrite { handler: write.path(), reason: reason.into() });
        };
        // The arguments of each element, by its name in the path, and its own name.
        let mut elements: BTreeMap<String, (String, String)> = BTreeMap::new();
        let mut candidates = Vec::new();
        for write in writes {
            let Some((element, _)) =
                write.handler.rsplit_once('.').filter(|(element, _)| !element.is_empty())
            else {
                leave(&write, "it belongs to no element");
                continue;
            };
            if !write.in_config {
                leave(&write, "the arguments of its element don't show it");
                continue;
            }
            let element = element.to_string();
            if !elements.contains_key(&element) {
                let read = |handler: &str| {
                    let handler = format!("{element}.{handler}");
                    let path =
                        HandlerPath { name: name.clone(), configuration: before.name.clone(), handler };
                    let value = self.read_within(&path, b"", CALL_TIMEOUT)?;
                    Ok::<_, OperationError>(String::from_utf8_lossy(&value).into_owned())
                };
                elements.insert(element.clone(), (read("name")?, read("config")?));
            }
            candidates.push((element, write));
        }
        if candidates.is_empty() {
            return Ok(plan);
        }
        let configuration = configuration_of(managed, before, files);
        let changes = elements.values().cloned().collect();
        let (owner, image) = {
            let inner = managed.inner();
            (inner.definition.owner.clone(), inner.definition.image_digest().copied())
        };
        let link = self.fabric_of(&owner)?;
        self.load_image(&link, image.as_ref())?;
        let order = orders::Rewrite { configuration, changes, limits: Some(self.0.check_limits), image };
        let RewriteReply { text, refused } = link.ask(order)?;
        for (element, write) in candidates {
            let own = elements.get(&element).map(|(own, _)| own);
            match refused.iter().find(|(refused, _)| Some(refused) == own) {
                Some((_, reason)) => leave(&write, reason),
                None => plan.saved.push(write),
            }
        }
        plan.text = text;
        Ok(plan)
    }

    /// Replaces the stored text by that of a plan, and the writes by those that are left.
    fn store_saved(
        &self,
        operation: &mut Operation,
        managed: &Arc<ManagedBox>,
        before: StoredConfiguration,
        files: Vec<File>,
        plan: Plan,
    ) -> Result<(), OperationError> {
        let name = &managed.name;
        super::boxes::check_sizes(&plan.text, &[])?;
        let mut definition = managed.inner().definition.clone();
        definition.source = before.source.clone();
        self.check_for(&definition, Known::default(), &plan.text, &files)?;
        let stored = StoredConfiguration {
            id: 0,
            installed: Time::now(),
            swaps: before.swaps + 1,
            text: plan.text,
            ..before.clone()
        };
        operation.stage(name, &stored, &[])?;
        let (mut writes, _) = self.present_writes(name)?;
        writes.retain(|write| write.configuration == before.name);
        let left: Vec<RecordedWrite> = writes
            .iter()
            .filter(|write| !plan.saved.iter().any(|saved| saved.number == write.number))
            .cloned()
            .collect();
        let count = plan.saved.len();
        self.redefine(name, &stored, &files, left)?;
        let (changed, what) = (managed.clone(), before.name.clone());
        operation.undo_by(move |supervisor| {
            // If the box has ended meanwhile, its next start makes up for it.
            let _ = supervisor.redefine(&changed.name, &before, &files, writes);
            supervisor.store_writes(&changed.name);
        });
        operation.add(self.reported_writes(name)?);
        let plural = if count == 1 { "" } else { "s" };
        let message =
            format!("{count} write{plural} to handlers became part of configuration {what} of box {name}");
        operation.note(EventKind::WritesSaved, name, message);
        Ok(())
    }

    /// Gives the fabric another text of a configuration that its box runs already, and the writes to it that remain.
    fn redefine(
        &self,
        name: &BoxName,
        stored: &StoredConfiguration,
        files: &[File],
        writes: Vec<RecordedWrite>,
    ) -> Result<(), OperationError> {
        let configuration = Configuration {
            name: stored.name.clone(),
            version: version(stored),
            text: stored.text.clone(),
            files: files.to_vec(),
            destinations: Vec::new(),
            parameters: Vec::new(),
        };
        self.0.fabrics.ask(orders::Redefine { name: name.clone(), configuration, writes })
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_bed::{TestBed, process, until};
    use super::*;
    use api::CreateBox;
    use protocol::fabric::Phase;

    const FILTER: &str = "Idle -> f :: IPFilter(allow all) -> r :: RadixIPLookup(10.0.0.0/8 0) -> Discard;";

    /// The box has the old text with all writes, in the store as in the fabric, which restarts it by itself.
    #[test]
    fn a_save_that_cannot_be_stored_is_taken_back() {
        let (bed, name) = (TestBed::with_click(), "fw".parse::<BoxName>().unwrap());
        let main = ConfigurationName::main();
        bed.create_box(CreateBox { keep_writes: true, ..process("fw", FILTER) }).unwrap();
        bed.write(&"fw/f.rules".parse().unwrap(), b"deny all").unwrap();
        bed.write(&"fw/r.add".parse().unwrap(), b"11.0.0.0/8 0").unwrap();
        let state = || {
            let text = bed.show_configuration(&name, &main).unwrap().configuration;
            (text, bed.written(&name), bed.value("fw/f.config"), bed.value("fw/r.table"))
        };
        let before = state();
        assert_eq!((before.0.as_str(), before.1.len()), (FILTER, 2));
        bed.fail_commits(true);
        assert!(bed.save(&name, &main, &Save::default()).is_err());
        assert_eq!(state(), before);
        bed.fail_commits(false);
        assert_eq!(state(), before);
        bed.kill_box(&name).unwrap();
        until("it runs again", || {
            bed.show_box(&name).unwrap().status.restarts == 1 && bed.phase(&name) == Some(Phase::Running)
        });
        assert_eq!(state(), before);
        bed.replace_fabric_of(&name);
        assert_eq!(state(), before);
        let saved = bed.save(&name, &main, &Save::default()).unwrap();
        assert!(saved.stored && saved.configuration.contains("deny all"), "{saved:?}");
        let after = state();
        assert_eq!((&after.0, &after.2, &after.3), (&saved.configuration, &before.2, &before.3));
    }
}
