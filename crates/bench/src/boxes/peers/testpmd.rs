//! DPDK's testpmd as a peer: it moves packets through processes of its own, which memif connects.
//!
//! One process has a source and a sink, and stands for the switch; each function is a process that forwards between two
//! ports. Each process polls its ports. The source only repeats a buffer, and nothing is looked up: this is the least work
//! that a chain of processes can cause.

use super::process::{Process, START_TIMEOUT};
use super::{PeerRate, memif, rates_of};
use crate::boxes::test_bed::TestBed;
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::temporary_folder::TemporaryFolder;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Seconds that each printed rate is the mean of.
pub(super) const PERIOD: u64 = 1;

/// What testpmd prints before the rates of packets that left, and of those that came.
pub(super) const SENT: &str = "Tx-pps:";
pub(super) const RECEIVED: &str = "Rx-pps:";

/// The port of the sink: the source, the ends of the chain and the sink are the ports of the first process.
const SINK: u32 = 3;

/// A testpmd that can be started.
#[derive(Clone, Copy)]
pub(super) struct Testpmd<'a> {
    pub(super) program: &'a Path,
    /// Where its sockets and what it prints are.
    pub(super) folder: &'a Path,
    /// What it does with packets. In mode `io` it forwards between its first and its second port, then between the next two.
    pub(super) mode: &'a str,
    /// Queues of each port.
    pub(super) queues: usize,
}

impl Testpmd<'_> {
    /// Starts a process on one core, with these devices.
    pub(super) fn start(
        self,
        number: usize,
        core: usize,
        devices: &[String],
    ) -> Result<Process, MeasureError> {
        let Self { program, folder, mode, queues } = self;
        let mut command = Command::new(program);
        // The peers of virtio devices need few files of memory.
        command.args(["--no-huge", "-m", "256", "--single-file-segments", "--no-pci", "--no-telemetry"]);
        // Its first thread only prints.
        command.arg("--lcores").arg(format!("0@{core},1@{core}"));
        command.arg("--file-prefix").arg(format!("clickbox-{}-{number}", std::process::id()));
        devices.iter().for_each(|device| _ = command.args(["--vdev", device]));
        command.args(["--", "--forward-mode", mode, "--port-topology=paired", "--auto-start"]);
        command.args([format!("--rxq={queues}"), format!("--txq={queues}")]);
        command
            .args(["--total-num-mbufs=8192", "--no-lsc-interrupt", "--stats-period"])
            .arg(PERIOD.to_string());
        Process::start("testpmd", &mut command, folder, &format!("{number}.log"))
    }
}

/// The rates of packets at a port, as testpmd prints them. `what`: those that came, or those that left.
pub(super) fn rates(text: &str, port: u32, what: &str) -> Vec<f64> {
    let blocks = text.split("NIC statistics for port ").skip(1);
    let of_port = blocks.filter_map(|block| block.strip_prefix(&format!("{port} ")));
    let rate = |block: &str| block.split_once(what)?.1.split_whitespace().next()?.parse().ok();
    of_port.filter_map(rate).collect()
}

/// Measures packets through a chain of functions that only forward. All functions run on one core, and the process with the
/// source and the sink on another one.
///
/// # Errors
///
/// The program can't be started, ends by itself, or moves no packets.
pub fn testpmd_rate(
    program: &Path,
    bed: &TestBed,
    chain: usize,
    size: u16,
    plan: SamplePlan,
) -> Result<PeerRate, MeasureError> {
    let folder = TemporaryFolder::new().map_err(MeasureError::Folder)?;
    let folder = folder.path();
    let socket = |number: usize| folder.join(format!("{number}.sock"));
    let (near, far) = bed.cores();
    let testpmd = Testpmd { program, folder, mode: "io", queues: 1 };
    let devices = [
        format!("net_null0,size={size}"),
        memif(0, true, &socket(0)),
        memif(1, true, &socket(chain)),
        format!("net_null1,size={size},no-rx=1"),
    ];
    bed.on_all_cores(|| {
        let mut ends = testpmd.start(0, near, &devices)?;
        let mut functions = Vec::new();
        for number in 0..chain {
            // Each connects to a socket that is there.
            let before = functions.last_mut().unwrap_or(&mut ends);
            let (first, last) = (socket(number), socket(chain));
            let is_there = || first.exists() && last.exists();
            before.until("testpmd to start", START_TIMEOUT, |_| is_there().then_some(()))?;
            let is_last = number + 1 == chain;
            let devices = [memif(0, false, &first), memif(1, !is_last, &socket(number + 1))];
            functions.push(testpmd.start(number + 1, far, &devices)?);
        }
        let count = rates_of(plan);
        let time = START_TIMEOUT + Duration::from_secs(PERIOD) * count;
        let rates = ends.until("packets of testpmd", time, |text| {
            let rates: Vec<f64> =
                rates(text, SINK, SENT).into_iter().skip_while(|rate| *rate == 0.0).collect();
            (rates.len() >= count as usize).then_some(rates)
        })?;
        Ok(PeerRate::of("testpmd, memif", chain, size, &rates))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_port() {
        let block = |port: u32, rate: u32| {
            format!(
                "  #### NIC statistics for port {port}  ####\n  TX-packets: 7\n  Rx-pps: 5 Rx-bps: 6\n  Tx-pps:      {rate}   Tx-bps:  9\n"
            )
        };
        let text: String = [(1, 4), (3, 0), (13, 8), (3, 21)].map(|(port, rate)| block(port, rate)).concat();
        assert_eq!(rates(&text, 3, SENT), [0.0, 21.0]);
        assert_eq!(rates(&text, 3, RECEIVED), [5.0, 5.0]);
        assert_eq!(rates("NIC statistics for port 3  ##\n Tx-pps:", 3, SENT), Vec::<f64>::new());
    }
}
