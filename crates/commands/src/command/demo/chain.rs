//! The demonstration's chain of three boxes.

use std::str::FromStr;

use api::client::Client;
use api::{
    AddPort, Attachment, BoxDetail, CreateBox, CreateSwitch, HandlerValue, HandlerWrite, Limits, NameError,
    PortDriver, PortRequest, Restart, Sandbox, SwitchMode, SwitchPort, operation,
};

use super::error::DemoError;
use super::private_daemon::PrivateDaemon;
use super::sample;
use crate::error::CommandError;

/// A box: its name, its configuration and the configuration's file name.
pub(super) struct DemoBox {
    /// The name.
    pub(super) name: &'static str,
    /// The configuration's file in the repository.
    pub(super) file: &'static str,
    /// The configuration.
    pub(super) text: &'static str,
}

/// The boxes, from the input to the output of the chain.
pub(super) const BOXES: [DemoBox; 3] = [
    DemoBox {
        name: "firewall",
        file: "examples/boxes/firewall.click",
        text: include_str!("../../../../../examples/boxes/firewall.click"),
    },
    DemoBox {
        name: "nat",
        file: "examples/boxes/nat.click",
        text: include_str!("../../../../../examples/boxes/nat.click"),
    },
    DemoBox {
        name: "monitor",
        file: "examples/boxes/monitor.click",
        text: include_str!("../../../../../examples/boxes/monitor.click"),
    },
];

/// The switch before the first box, which receives the capture, and the switch after the last one.
const INNER_SWITCH: &str = "inner";
const OUTER_SWITCH: &str = "outer";

/// The chain, on a daemon of its own.
pub(super) struct Chain {
    daemon: PrivateDaemon,
}

impl Chain {
    /// Starts the daemon.
    pub(super) fn start() -> Result<Chain, CommandError> {
        Ok(Chain { daemon: PrivateDaemon::start()? })
    }

    /// The daemon's client.
    pub(super) fn client(&self) -> &Client {
        self.daemon.client()
    }

    /// Creates the switches, then the boxes between them; calls `on_created` with each box.
    pub(super) fn build(
        &self,
        sandbox: Sandbox,
        on_created: impl Fn(&BoxDetail),
    ) -> Result<(), CommandError> {
        for switch in [INNER_SWITCH, OUTER_SWITCH] {
            let request = CreateSwitch { mode: SwitchMode::Static, ..CreateSwitch::new(name(switch)?) };
            self.client().send(&operation::CREATE_SWITCH, &[], &request)?;
        }
        let last = BOXES.len() - 1;
        for (index, demo_box) in BOXES.iter().enumerate() {
            let pipe = |number: usize| name(&format!("pipe{number}")).map(Attachment::Pipe);
            let port = |attach| PortRequest { attach, ..PortRequest::default() };
            let before = if index == 0 { Attachment::Nothing } else { pipe(index)? };
            let after = if index == last { Attachment::Nothing } else { pipe(index + 1)? };
            let detail = self.client().send(
                &operation::CREATE_BOX,
                &[],
                &CreateBox {
                    sandbox,
                    source: Some(demo_box.file.into()),
                    ports: vec![port(before), port(after)],
                    ring: 1024.try_into().unwrap_or_default(),
                    restart: Restart::Always,
                    ..CreateBox::new(name(demo_box.name)?, demo_box.text)
                },
            )?;
            on_created(&detail);
        }
        for (switch, demo_box, port) in [(INNER_SWITCH, BOXES.first(), 0), (OUTER_SWITCH, BOXES.last(), 1)] {
            let Some(demo_box) = demo_box else { continue };
            // The default port of the inner switch sends the capture's packets to the first box.
            self.add_port(
                switch,
                "box",
                PortDriver::Box { name: name(demo_box.name)?, port },
                switch == INNER_SWITCH,
            )?;
        }
        self.add_port(OUTER_SWITCH, "uplink", PortDriver::Null {}, true)
    }

    fn add_port(
        &self,
        switch: &str,
        port: &str,
        driver: PortDriver,
        default: bool,
    ) -> Result<(), CommandError> {
        // The boxes pass on frames with the addresses of the capture.
        let transparent = matches!(driver, PortDriver::Box { .. });
        let limits = Limits { transparent, ..Limits::default() };
        let request = AddPort { name: name(port)?, driver, addresses: Vec::new(), default, limits };
        self.client().send(&operation::ADD_PORT, &[switch], &request)?;
        Ok(())
    }

    /// Starts the replay of the capture, `repeat` times at `rate`.
    pub(super) fn play(&self, repeat: u32, rate: u64) -> Result<(), CommandError> {
        let path = self.daemon.write("capture.pcap", &sample::capture().map_err(DemoError::Capture)?)?;
        let read = Some(path.to_string_lossy().into_owned());
        self.add_port(
            INNER_SWITCH,
            "capture",
            PortDriver::Pcap { read, write: None, repeat, rate: Some(rate) },
            false,
        )
    }

    /// The port that receives the capture, and the port where packets leave.
    pub(super) fn edge_ports(&self) -> Result<(SwitchPort, SwitchPort), CommandError> {
        let find = |switch: &str, name: &str| {
            let detail = self.client().ask(&operation::SHOW_SWITCH, &[switch])?;
            let port = detail.port_list.into_iter().find(|port| port.name.as_str() == name);
            let error = || DemoError::NoPort { switch: switch.into(), port: name.into() };
            Ok::<_, CommandError>(port.ok_or_else(error)?)
        };
        Ok((find(INNER_SWITCH, "capture")?, find(OUTER_SWITCH, "uplink")?))
    }

    /// Reads a handler as text.
    pub(super) fn read(&self, demo_box: &str, handler: &str) -> Result<String, CommandError> {
        let reply: HandlerValue = self.client().ask(&operation::READ, &[demo_box, handler])?;
        Ok(reply.value.text().trim().to_string())
    }

    /// Writes a handler.
    pub(super) fn write(&self, demo_box: &str, handler: &str, value: &str) -> Result<(), CommandError> {
        Ok(self.client().send(
            &operation::WRITE,
            &[demo_box, handler],
            &HandlerWrite { value: value.into() },
        )?)
    }
}

/// Parses a name.
fn name<T: FromStr<Err = NameError>>(text: &str) -> Result<T, CommandError> {
    Ok(text.parse().map_err(DemoError::Name)?)
}
