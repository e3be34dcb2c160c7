//! Open vSwitch as a peer.
//!
//! With DPDK, its bridge stands where the steering switch does, and testpmd's processes are the functions.
//! The bridge has flow entries for ports alone, and the source repeats one frame: its cache of flows has one entry for each
//! port. This is the least work that a packet can cause. The source sends all that the switch takes: what a function's ring has
//! no room for is dropped, which takes the switch time too.

use super::process::{Process, START_TIMEOUT, output};
use super::testpmd::Testpmd;
use super::{PeerRate, memif, rates_of};
use crate::boxes::test_bed::TestBed;
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::temporary_folder::TemporaryFolder;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// What each printed rate is the mean of.
const PERIOD: Duration = Duration::from_secs(1);

/// Seconds that a command waits for the switch. Opening the first port takes two.
const COMMAND_SECONDS: u32 = 30;

/// The bridge. It has only the flow entries that it is given.
const BRIDGE: &str = "br0";

/// The port of the source. The first function's input is the port after that of the sink, then comes its output.
const SOURCE: usize = 1;
const SINK: usize = 2;

/// Queues of a function's ports. The switch has a queue to send for its first thread, and one for that which moves packets.
const QUEUES: usize = 2;

/// A running switch, with its sockets and its database in a folder. Processes end before the folder goes.
pub(super) struct Switch<'a> {
    folder: &'a Path,
    _server: Process,
    switch: Process,
}

impl<'a> Switch<'a> {
    /// Starts a switch whose packets one core processes, with these settings.
    pub(super) fn start(
        program: &Path,
        folder: &'a Path,
        core: usize,
        settings: &[String],
    ) -> Result<Self, MeasureError> {
        let database = "unix:database.sock";
        output("ovsdb-tool", of_switch(folder, Command::new("ovsdb-tool").args(["create", "conf.db"])))?;
        let mut server = Command::new("ovsdb-server");
        server.args(["conf.db", "--remote=punix:database.sock", "--no-chdir", "--pidfile=database.pid"]);
        let mut server =
            Process::start("ovsdb-server", of_switch(folder, &mut server), folder, "database.log")?;
        let is_there = || folder.join("database.sock").exists();
        server.until("ovsdb-server to start", START_TIMEOUT, |_| is_there().then_some(()))?;
        let words = format!("--no-wait set Open_vSwitch . other_config:pmd-cpu-mask={:#x}", 1u64 << core);
        let words: Vec<String> = words.split(' ').map(str::to_string).chain(settings.to_vec()).collect();
        control(folder, &words)?;
        let mut switch = Command::new(program);
        switch.args([database, "--no-chdir", "--pidfile=switch.pid"]);
        let mut switch =
            Process::start("ovs-vswitchd", of_switch(folder, &mut switch), folder, "switch.log")?;
        let is_there = || folder.join("switch.pid").exists();
        switch.until("ovs-vswitchd to start", START_TIMEOUT, |_| is_there().then_some(()))?;
        Ok(Self { folder, _server: server, switch })
    }

    /// Stops its processing of packets, or continues it.
    pub(super) fn set_paused(&self, is_paused: bool) -> Result<(), MeasureError> {
        self.switch.set_paused(is_paused)
    }

    /// Creates the bridge with two network interfaces, which are used through XDP sockets. What comes in by the first one leaves
    /// by the second one.
    pub(super) fn connect_interfaces(&self, interfaces: [&str; 2]) -> Result<(), MeasureError> {
        let mut words = new_bridge();
        for (number, name) in (1..).zip(interfaces) {
            _ = write!(
                words,
                " -- add-port {BRIDGE} {name} -- set Interface {name} type=afxdp ofport_request={number} options:xdp-mode=native"
            );
        }
        control(self.folder, &words.split(' ').map(str::to_string).collect::<Vec<_>>())?;
        self.open_flow(&["add-flow", &self.management(), "in_port=1,actions=output:2"]).map(drop)
    }

    /// Creates the bridge with a source, a sink, and two ports for each function.
    fn add_ports(&self, chain: usize, size: u16) -> Result<(), MeasureError> {
        let mut words = new_bridge();
        let mut add = |number: usize, options: &str, device: &str| {
            _ = write!(
                words,
                " -- add-port {BRIDGE} p{number} -- set Interface p{number} type=dpdk ofport_request={number} {options}options:dpdk-devargs={device}"
            );
        };
        add(SOURCE, "", &format!("net_null0,size={size}"));
        add(SINK, "", &format!("net_null1,size={size},no-rx=1"));
        for number in 0..2 * chain {
            add(
                SINK + 1 + number,
                &format!("options:n_rxq={QUEUES} "),
                &memif(number, true, &socket(self.folder, number)),
            );
        }
        control(self.folder, &words.split(' ').map(str::to_string).collect::<Vec<_>>())
    }

    /// Sends packets from each port to the next one of the chain.
    fn add_flows(&self, chain: usize) -> Result<(), MeasureError> {
        for number in 0..=chain {
            let from = if number == 0 { SOURCE } else { SINK + 2 * number };
            let to = if number == chain { SINK } else { SINK + 2 * number + 1 };
            self.open_flow(&[
                "add-flow",
                &self.management(),
                &format!("in_port={from},actions=output:{to}"),
            ])?;
        }
        Ok(())
    }

    /// Packets that left by the sink.
    fn left(&self) -> Result<u64, MeasureError> {
        let text = self.open_flow(&["dump-ports", &self.management(), &SINK.to_string()])?;
        sent(&text).ok_or(MeasureError::NotANumber(text))
    }

    fn management(&self) -> String {
        format!("unix:{}", self.folder.join(format!("{BRIDGE}.mgmt")).display())
    }

    fn open_flow(&self, words: &[&str]) -> Result<String, MeasureError> {
        let mut command = Command::new("ovs-ofctl");
        command.arg(format!("--timeout={COMMAND_SECONDS}")).args(words);
        output("ovs-ofctl", of_switch(self.folder, &mut command))
    }
}

/// The words that create the bridge.
fn new_bridge() -> String {
    format!("add-br {BRIDGE} -- set bridge {BRIDGE} datapath_type=netdev fail_mode=secure")
}

/// Runs a command in the folder of a switch, and with its folders in place of the system's.
fn of_switch<'a>(folder: &Path, command: &'a mut Command) -> &'a mut Command {
    for name in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
        command.env(name, folder);
    }
    command.current_dir(folder)
}

/// Changes the database of a switch, and waits until the switch has followed.
fn control(folder: &Path, words: &[String]) -> Result<(), MeasureError> {
    let mut command = Command::new("ovs-vsctl");
    command.args(["--db=unix:database.sock", &format!("--timeout={COMMAND_SECONDS}")]).args(words);
    output("ovs-vsctl", of_switch(folder, &mut command)).map(drop)
}

/// The packets that a port has sent, as `ovs-ofctl dump-ports` prints them.
fn sent(text: &str) -> Option<u64> {
    text.split_once("tx pkts=")?.1.split(',').next()?.trim().parse().ok()
}

/// The socket of a port to a function.
fn socket(folder: &Path, number: usize) -> std::path::PathBuf {
    folder.join(format!("{number}.sock"))
}

/// Measures packets through a chain of functions that only forward. All functions run on one core, and the switch on another one.
///
/// `program` is the `ovs-vswitchd` that was built with DPDK, and `testpmd` runs the functions. The database server and the
/// commands of Open vSwitch are found by PATH.
///
/// # Errors
///
/// A program can't be started, ends by itself, or moves no packets.
pub fn ovs_rate(
    program: &Path,
    testpmd: &Path,
    bed: &TestBed,
    chain: usize,
    size: u16,
    plan: SamplePlan,
) -> Result<PeerRate, MeasureError> {
    let folder = TemporaryFolder::new().map_err(MeasureError::Folder)?;
    let folder = folder.path();
    let (near, far) = bed.cores();
    bed.on_all_cores(|| {
        let extra =
            format!("--legacy-mem --no-huge -m 1024 --no-pci --file-prefix clickbox-{}", std::process::id());
        let settings =
            ["other_config:dpdk-init=true".to_string(), format!("other_config:dpdk-extra=\"{extra}\"")];
        let switch = Switch::start(program, folder, near, &settings)?;
        switch.add_ports(chain, size)?;
        switch.add_flows(chain)?;
        let functions = Testpmd { program: testpmd, folder, mode: "io", queues: QUEUES };
        let start = |number: usize| {
            let end = |side: usize| memif(side, false, &socket(folder, 2 * number + side));
            functions.start(number + 1, far, &[end(0), end(1)])
        };
        let _functions = (0..chain).map(start).collect::<Result<Vec<_>, _>>()?;
        let begin = Instant::now();
        while switch.left()? == 0 {
            if begin.elapsed() > START_TIMEOUT {
                return Err(MeasureError::Late { what: "packets of Open vSwitch" });
            }
        }
        let mut rates = Vec::new();
        for _ in 0..rates_of(plan) {
            let (since, before) = (Instant::now(), switch.left()?);
            std::thread::sleep(PERIOD);
            rates.push((switch.left()? - before) as f64 / since.elapsed().as_secs_f64());
        }
        Ok(PeerRate::of("OVS-DPDK, memif", chain, size, &rates))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packets_of_a_port_are_read() {
        let text = "OFPST_PORT reply (xid=0x4): 1 ports\n  port  2: rx pkts=0, bytes=0, drop=0, errs=0, frame=0, over=0, crc=0\n           tx pkts=3210, bytes=9, drop=7, errs=0, coll=0\n";
        assert_eq!(sent(text), Some(3210));
        assert_eq!(sent("tx pkts=?, bytes=9"), None);
    }
}
