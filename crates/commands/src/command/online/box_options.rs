//! The options of boxes, which single boxes and instances of services share.

use std::path::PathBuf;

use api::{
    Attachment, CoreCount, Cores, CreateBox, IpPrefix, MacAddr, PortRequest, Restart, Ring, Sandbox, Size,
    Weight,
};
use clap::{Args, ValueEnum};

use crate::online;
use crate::value::{self, ValueError};

/// The sandbox of a box.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum SandboxOption {
    /// A virtual machine if KVM is usable, else a process.
    #[default]
    Auto,
    /// A virtual machine.
    Vm,
    /// A process without privileges.
    Process,
}

/// When a box that ended is started again.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum RestartOption {
    /// Never.
    Never,
    /// After a crash.
    #[default]
    OnFailure,
    /// Whenever it ends without being stopped. A configuration that stops does not end its box.
    Always,
}

/// The options.
#[derive(Args)]
pub(super) struct BoxOptions {
    /// Slots in each ring of the ports: a power of two from 64 to 2048.
    #[arg(long, value_name = "SLOTS", default_value_t)]
    ring: Ring,
    /// Private memory.
    #[arg(long, value_name = "SIZE", default_value = "8M")]
    memory: Size,
    /// Engines that run the configuration together, each on a core of its own with a part of the flows.
    #[arg(long, value_name = "N", default_value_t)]
    cores: CoreCount,
    /// Weight when boxes compete for CPU time.
    #[arg(long, value_name = "N", default_value_t)]
    cpu_weight: Weight,
    /// Limit of CPU time, such as 0.5 or 50% of a CPU.
    #[arg(long, value_name = "CPUS")]
    cpu_limit: Option<Cores>,
    /// Reserve a CPU for the box, for low latency. The box then polls instead of sleeping.
    #[arg(long)]
    dedicated: bool,
    /// Share a packet pool with this owner's other boxes that have this option. Packets between them are not copied, but
    /// each box can read and change all packets in the pool.
    #[arg(long)]
    share_packets: bool,
    /// Sandbox of the box.
    #[arg(long, value_enum, default_value_t)]
    sandbox: SandboxOption,
    /// When to start the box again after it has ended.
    #[arg(long, value_enum, default_value_t)]
    restart: RestartOption,
    /// Repeat writes to handlers that change the configuration, such as rules and routes, after each start of the box.
    /// Otherwise a start loses them.
    #[arg(long)]
    keep_writes: bool,
    /// Label to find the box by. May be repeated.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Copy another file into the box, under the name that the configuration uses. May be repeated.
    #[arg(long = "file", value_name = "[NAME=]PATH")]
    files: Vec<String>,
    /// Create the box without starting it.
    #[arg(long)]
    no_start: bool,
}

impl BoxOptions {
    /// The files to copy into the box, by their names in the configuration.
    pub(super) fn files(&self) -> Vec<(String, PathBuf)> {
        self.files.iter().map(|text| online::file(text)).collect()
    }

    /// The definition with these options.
    pub(super) fn apply(&self, definition: CreateBox) -> CreateBox {
        CreateBox {
            sandbox: match self.sandbox {
                SandboxOption::Auto => Sandbox::Auto,
                SandboxOption::Vm => Sandbox::Vm,
                SandboxOption::Process => Sandbox::Process,
            },
            memory: self.memory,
            ring: self.ring,
            cores: self.cores,
            cpu_weight: self.cpu_weight,
            cpu_limit: self.cpu_limit,
            dedicated: self.dedicated,
            share_packets: self.share_packets,
            restart: match self.restart {
                RestartOption::Never => Restart::Never,
                RestartOption::OnFailure => Restart::OnFailure,
                RestartOption::Always => Restart::Always,
            },
            keep_writes: self.keep_writes,
            labels: self.labels.iter().cloned().collect(),
            start: !self.no_start,
            ..definition
        }
    }
}

/// `SWITCH|pipe:NAME|-[,SETTING...]`.
pub(super) fn port(text: &str) -> Result<PortRequest, ValueError> {
    let mut parts = text.split(',');
    let attach: Attachment = parts.next().unwrap_or_default().parse()?;
    let mut port = PortRequest { attach, ..PortRequest::default() };
    let number = |text: &str| text.parse().map_err(|_| ValueError::Form("a number per second"));
    let mut bound = Vec::new();
    for part in parts {
        match part.split_once('=') {
            None if part == "transparent" => port.limits.transparent = true,
            Some(("mac", mac)) => port.mac = Some(mac.parse::<MacAddr>()?),
            Some(("max-frames", count)) => port.limits.frames = Some(number(count)?),
            Some(("max-bits", count)) => port.limits.bits = Some(number(count)?),
            Some(("max-broadcasts", count)) => port.limits.broadcasts = Some(number(count)?),
            Some(("max-new-addresses", count)) => port.limits.new_addresses = Some(number(count)?),
            Some(("bind-ip", address)) => bound.push(address.parse::<IpPrefix>()?),
            _ => return Err(ValueError::PortSetting(part.into())),
        }
    }
    port.limits.bind_ip = bound.try_into()?;
    Ok(port)
}

fn label(text: &str) -> Result<(String, String), ValueError> {
    value::pair(text, "KEY=VALUE")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_may_have_settings() {
        assert_eq!(port("lan").map(|port| port.attach.to_string()), Ok("lan".into()));
        assert_eq!(port("-").map(|port| port.attach), Ok(Attachment::Nothing));
        let full = port("pipe:a,mac=02:00:00:00:00:01").expect("a port");
        assert_eq!(
            (full.attach.to_string(), full.mac),
            ("pipe:a".into(), Some(MacAddr::new([2, 0, 0, 0, 0, 1])))
        );
        let bound = port("lan,bind-ip=192.0.2.1,bind-ip=2001:db8::/64").expect("a port").limits.bind_ip;
        assert_eq!(
            bound.iter().map(|prefix| prefix.to_string()).collect::<Vec<_>>(),
            ["192.0.2.1", "2001:db8::/64"]
        );
        let limits =
            port("lan,max-frames=1,max-bits=2,max-broadcasts=3,max-new-addresses=4").expect("a port").limits;
        let rates = [limits.frames, limits.bits, limits.broadcasts, limits.new_addresses];
        assert_eq!(rates, [1, 2, 3, 4].map(Some));
        let bridge = port("lan,transparent").expect("a port");
        assert!(bridge.limits.transparent && bridge.mac.is_none() && !full.limits.transparent);
        for bad in [
            "",
            "LAN",
            "lan,",
            "lan,mtu=9000",
            "lan,mac=1",
            "lan,transparent=1",
            "lan,bind-ip=",
            "lan,max-frames=x",
            "lan,bind-ip=192.0.2.1/24",
            "lan,mac",
        ] {
            assert!(port(bad).is_err(), "{bad}");
        }
    }
}
