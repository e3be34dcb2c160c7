//! Defines and starts a box by one order.

use super::attaching::Attaching;
use super::boot::StartSettings;
use super::operations::attach;
use super::state::Fabric;
use crate::error::OperationError;
use crate::network::AttachRequest;
use model::{CreateBox, RecordedWrite};
use protocol::fabric::{Configuration, Started};

impl Fabric {
    /// Defines a box as by [`define_box`](Self::define_box), and starts it as by [`start_box`](Self::start_box). The switches' thread
    /// attaches its ports while its configurations are installed. If they can't be attached, the box does not exist, whatever else
    /// failed.
    pub(crate) fn launch_box(
        &self,
        definition: CreateBox,
        configurations: Vec<Configuration>,
        writes: Vec<RecordedWrite>,
    ) -> Result<Started, OperationError> {
        let (name, owner) = (definition.name.clone(), definition.owner.clone());
        let cores = definition.cores.number();
        let ports: Vec<AttachRequest> = definition.ports.iter().map(|port| attach(port, cores)).collect();
        self.reserve_box(definition, false)?;
        let attached = name.clone();
        let begun = self.0.switches.begin(move |network| network.attach(&attached, &owner, &ports));
        let attaching = begun.map(Attaching::new).inspect_err(|_| drop(self.0.boxes().remove(&name)))?;
        let how = StartSettings { restore: false, replay: false, has_equals: false };
        let started = self.start_attached(&name, configurations, writes, how, &attaching);
        started.or_else(|failure| {
            let attached = attaching.wait();
            if attaching.has_failed() {
                self.0.boxes().remove(&name);
            }
            attached.and(Err(failure))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use crate::boxes::Phase;
    use model::{
        Attachment, ConfigurationName, CreateSwitch, MacAddr, PortRequest, Sandbox, SwitchMode, Time,
    };
    use protocol::fabric::ConfigurationVersion;
    use sandbox::{HostSettings, KvmDevice};

    fn configuration(text: &str) -> Vec<Configuration> {
        vec![Configuration {
            name: ConfigurationName::main(),
            version: ConfigurationVersion { installed: Time::now(), swaps: 0 },
            text: text.into(),
            files: Vec::new(),
            destinations: Vec::new(),
            parameters: Vec::new(),
        }]
    }

    #[test]
    fn a_box_that_cannot_be_attached_does_not_exist() {
        let settings =
            Settings { image: image::CLICKBOX, workers: 1, shares_processors: false, switch_threads: 1 };
        let host = HostSettings { kvm: KvmDevice::Open, forker: None };
        let fabric = Fabric::start(&settings, host, [7; 16]).unwrap();
        let switch = CreateSwitch { mode: SwitchMode::Learning, ..CreateSwitch::new("lan".parse().unwrap()) };
        fabric.add_switch(switch).unwrap();
        let launch = |to: &str, text: &str| {
            let mac = Some(MacAddr::new([2, 0, 0, 0, 0, 1]));
            let port = PortRequest { attach: to.parse().unwrap(), mac, ..PortRequest::default() };
            let name = "fw".parse().unwrap();
            let definition =
                CreateBox { sandbox: Sandbox::Process, ports: vec![port], ..CreateBox::new(name, "") };
            fabric.launch_box(definition, configuration(text), Vec::new())
        };
        let (good, bad) = ("FromDevice(0) -> Discard", "FromDevice(0) -> Nothing");
        for text in [good, bad] {
            let failure = launch("wan", text).unwrap_err();
            assert!(
                matches!(&failure, OperationError::NoSwitch(name) if name.as_str() == "wan"),
                "{failure}"
            );
            assert!(fabric.0.all().is_empty());
        }
        // One that is attached and refused stays defined, as after `define_box`.
        let failure = launch("lan", bad).unwrap_err();
        assert!(matches!(failure, OperationError::Refused(_)), "{failure}");
        let name = "fw".parse().unwrap();
        assert_eq!(fabric.0.managed_box(&name).unwrap().inner().phase, Phase::Created);
        assert!(matches!(launch("lan", good), Err(OperationError::Exists(_))));
        fabric.forget_box(&name).unwrap();
        let started = launch("lan", good).unwrap();
        let attachments: Vec<Attachment> = started.runtime.unwrap().attachments;
        assert_eq!(attachments, [Attachment::Switch("lan".parse().unwrap())]);
    }
}
