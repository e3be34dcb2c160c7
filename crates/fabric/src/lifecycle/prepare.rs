//! Creates sandboxes before they are needed: that of a new box while the daemon has its configuration checked and stores it, and
//! a spare one for the next box.

use super::state::Fabric;
use crate::boxes::{CreatedBox, ManagedBox, Phase, SpareShape, is_memory_short};
use crate::error::OperationError;
use crate::limits::{CALL_TIMEOUT, SPARE_TIME};
use boundary::Request;
use model::{BoxName, CreateBox};
use sandbox::{CallError, SandboxKind};
use std::time::Duration;

/// What a spare checks so that its code and its memory are there when a configuration comes.
const REHEARSAL: &str = "Idle -> Counter -> Discard";

impl Fabric {
    /// Creates and starts the sandbox of a box that was just defined, without connecting its ports. The start of the box waits
    /// for it. If it fails, so does the start, which reports it.
    pub(crate) fn prepare(&self, name: &BoxName) {
        let Ok(managed) = self.0.managed_box(name) else { return };
        // The thread that has it may be starting the box already.
        let Ok(_change) = managed.change.lock_within(Duration::ZERO) else { return };
        let definition = {
            let inner = managed.inner();
            if inner.removed || inner.unwanted || inner.phase != Phase::Created || self.0.is_ending() {
                return;
            }
            inner.definition.clone()
        };
        // A reserved processor is for a box that runs.
        let Some(kind) = self.installs(&definition).filter(|_| !definition.dedicated) else { return };
        let prepared = match self.take_spare(kind, &definition) {
            Some(spare) => Some(spare),
            None => self.make_started(&definition).ok(),
        };
        if let Some(made) = prepared {
            managed.inner().prepared = Some(made);
        }
    }

    /// The kind of a box's sandbox, if it has its configurations installed: a copy is created from its template.
    fn installs(&self, definition: &CreateBox) -> Option<SandboxKind> {
        let kind = self.0.factory.resolve(definition.sandbox).ok()?;
        (!self.0.templates.may_have(kind, definition)).then_some(kind)
    }

    fn make_started(&self, definition: &CreateBox) -> Result<CreatedBox, OperationError> {
        let made = self.0.factory.make(definition, self.0.switches.wake_event(), None)?;
        self.0.factory.start(&made.instance)?;
        Ok(made)
    }

    /// The sandbox that was prepared for a box, if it still runs.
    pub(super) fn take_prepared(&self, managed: &ManagedBox) -> Option<CreatedBox> {
        let prepared = managed.inner().prepared.take();
        prepared.filter(|made| !made.instance.has_ended())
    }

    /// A spare for a box, if there is one that still runs.
    pub(super) fn take_spare(&self, kind: SandboxKind, definition: &CreateBox) -> Option<CreatedBox> {
        let made = self.0.factory.spares.take(&SpareShape::of(kind, definition)?)?;
        let addresses: Vec<_> =
            definition.ports.iter().map(|port| port.mac.unwrap_or_default().octets()).collect();
        (!made.instance.has_ended() && made.instance.renew(&addresses).is_ok()).then_some(made)
    }

    /// Makes a spare for the next box like this one, which was just started, unless there is one.
    pub(crate) fn make_spare(&self, name: &BoxName) {
        let Ok(managed) = self.0.managed_box(name) else { return };
        let definition = managed.inner().definition.clone();
        if !is_memory_short() {
            self.make_spare_for(&definition);
        }
    }

    fn make_spare_for(&self, definition: &CreateBox) {
        let spares = &self.0.factory.spares;
        let shape = self.installs(definition).and_then(|kind| SpareShape::of(kind, definition));
        let Some(shape) = shape.filter(|shape| !self.0.is_ending() && spares.begin(shape)) else { return };
        let made = self.make_started(definition).ok().filter(|made| {
            let rehearsed = made.instance.call(&Request::Check { configuration: REHEARSAL }, CALL_TIMEOUT);
            // What it answers does not matter.
            !matches!(rehearsed, Err(CallError::TimedOut | CallError::Ended | CallError::Channel(_)))
        });
        spares.keep(&shape, made);
        if self.0.is_ending() {
            spares.give_up(Duration::ZERO);
        }
    }

    /// Gives up spares that are not needed, or for which there is no memory.
    pub(super) fn give_up_spares(&self) {
        let spares = &self.0.factory.spares;
        if !spares.is_empty() {
            spares.give_up(if is_memory_short() { Duration::ZERO } else { SPARE_TIME });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use crate::lifecycle::StartSettings;
    use model::{ConfigurationName, MacAddr, PortRequest, Sandbox, Size, Time};
    use protocol::fabric::{Configuration, ConfigurationVersion};
    use sandbox::{HostSettings, KvmDevice};
    use test_support::{Capability, skip};

    fn fabric() -> Fabric {
        let settings =
            Settings { image: image::CLICKBOX, workers: 1, shares_processors: false, switch_threads: 1 };
        let fabric = Fabric::start(&settings, HostSettings { kvm: KvmDevice::Open, forker: None }, [7; 16]);
        fabric.unwrap()
    }

    fn definition(sandbox: Sandbox, number: u8) -> CreateBox {
        let port = PortRequest { mac: Some(MacAddr::new([2, 0, 0, 0, 0, number])), ..PortRequest::default() };
        let name = format!("fw{number}").parse().unwrap();
        CreateBox { sandbox, ports: vec![port], ..CreateBox::new(name, "") }
    }

    /// Defines and starts a box with a port. Returns its address, as its configuration knows it, and its processes.
    fn start(fabric: &Fabric, definition: &CreateBox) -> (String, Vec<i32>) {
        let name = &definition.name;
        fabric.define_box(definition.clone(), false).unwrap();
        let configuration = Configuration {
            name: ConfigurationName::main(),
            version: ConfigurationVersion { installed: Time::now(), swaps: 0 },
            // All differ, so that none is a copy of another.
            text: format!("Idle -> {name} :: EtherEncap(0x0800, 0:eth, 2:0:0:0:0:9) -> Discard"),
            files: Vec::new(),
            destinations: Vec::new(),
            parameters: Vec::new(),
        };
        let how = StartSettings { restore: false, replay: false, has_equals: false };
        fabric.start_box(name, vec![configuration], Vec::new(), how).unwrap();
        let handler = format!("{name}.src");
        let source = fabric.read_handler(name, &ConfigurationName::main(), (&handler, b""), CALL_TIMEOUT);
        let source = String::from_utf8(source.unwrap()).unwrap().replace(':', "-");
        let instance = fabric.0.managed_box(name).unwrap().instance().unwrap();
        (source, instance.process_ids())
    }

    fn check(fabric: &Fabric, sandbox: Sandbox, first: u8) {
        let spares = &fabric.0.factory.spares;
        let definition = |number| definition(sandbox, first + number);
        let kind = fabric.0.factory.resolve(sandbox).unwrap();
        let shape = SpareShape::of(kind, &definition(0)).unwrap();
        let put_back = |spare| {
            assert!(spares.begin(&shape));
            spares.keep(&shape, Some(spare));
        };
        let address = |number| format!("02-00-00-00-00-{:02X}", first + number);
        assert_eq!(start(fabric, &definition(0)).0, address(0));
        fabric.make_spare_for(&definition(0));
        let spare = spares.take(&shape).unwrap();
        let processes = spare.instance.process_ids();
        put_back(spare);
        assert_eq!(start(fabric, &definition(1)), (address(1), processes));
        assert!(spares.take(&shape).is_none());
        // One that has ended is not taken.
        fabric.make_spare_for(&definition(0));
        let spare = spares.take(&shape).unwrap();
        spare.instance.kill();
        put_back(spare);
        assert_eq!(start(fabric, &definition(2)).0, address(2));
        assert!(spares.take(&shape).is_none());
        fabric.make_spare_for(&definition(0));
        assert!(!spares.begin(&shape), "there is one");
        // Spares belong to no owner.
        assert_eq!(fabric.0.all().len(), usize::from(first) + 3);
    }

    #[test]
    fn a_box_takes_the_spare() {
        let fabric = fabric();
        check(&fabric, Sandbox::Process, 0);
        match fabric.0.factory.has_vms() {
            true => check(&fabric, Sandbox::Vm, 3),
            false => skip(Capability::Kvm, "there are no spare virtual machines"),
        }
        // What a box lacks, they may have.
        let large = CreateBox { memory: Size(u64::MAX), ..definition(Sandbox::Process, 8) };
        assert!(fabric.make_started(&large).is_err());
        assert!(fabric.0.factory.spares.is_empty());
        fabric.make_spare_for(&definition(Sandbox::Process, 8));
        assert!(!fabric.0.factory.spares.is_empty());
        fabric.end();
        assert!(fabric.0.factory.spares.is_empty());
        fabric.make_spare_for(&definition(Sandbox::Process, 9));
        assert!(fabric.0.factory.spares.is_empty(), "a fabric that ends makes none");
    }
}
