//! DPDK's testpmd as a peer: it moves packets through processes of its own, which memif connects.
//!
//! One process has a source and a sink, and stands for the switch; each function is a process that forwards between two
//! ports. Each process polls its ports. The source only repeats a buffer, and nothing is looked up: this is the least work
//! that a chain of processes can cause.

use crate::boxes::io::gbps;
use crate::boxes::test_bed::TestBed;
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::statistics::{median, rounded};
use crate::temporary_folder::TemporaryFolder;
use serde::Serialize;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The time for a process to start.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// The time between two looks at what a process has printed.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Seconds that each printed rate is the mean of.
const PERIOD: u64 = 1;

/// The fewest rates that are measured. The first is left out, because the processes start during it.
const MIN_RATES: u32 = 3;

/// The port of the sink: the source, the ends of the chain and the sink are the ports of the first process.
const SINK: u32 = 3;

/// The rate of a chain of testpmd's processes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TestpmdRate {
    /// What was measured.
    pub peer: &'static str,
    /// Functions of the chain.
    pub chain: usize,
    /// Bytes of a frame.
    pub size: u16,
    /// Millions of packets per second that leave the chain.
    #[serde(serialize_with = "rounded")]
    pub mpps: f64,
    /// Gigabits of frames per second that leave the chain.
    #[serde(serialize_with = "rounded")]
    pub gbps: f64,
}

/// A process, which is killed on drop.
#[derive(Debug)]
struct Process {
    child: Child,
    /// What it prints.
    log: PathBuf,
}

impl Process {
    /// Starts testpmd on one core, with these devices and this number of buffers.
    fn start(
        program: &Path,
        folder: &Path,
        number: usize,
        core: usize,
        devices: &[String],
    ) -> Result<Self, MeasureError> {
        let log = folder.join(format!("{number}.log"));
        let output = File::create(&log).map_err(MeasureError::Folder)?;
        let errors = output.try_clone().map_err(MeasureError::Folder)?;
        let mut command = Command::new(program);
        command.args(["--no-huge", "-m", "256", "--no-pci", "--no-telemetry", "--lcores"]);
        // Its first thread only prints.
        command.arg(format!("0@{core},1@{core}"));
        command.arg("--file-prefix").arg(format!("clickbox-{}-{number}", std::process::id()));
        devices.iter().for_each(|device| _ = command.args(["--vdev", device]));
        command.args([
            "--",
            "--forward-mode=io",
            "--port-topology=paired",
            "--auto-start",
            "--total-num-mbufs=8192",
        ]);
        command.args(["--no-lsc-interrupt", "--stats-period"]).arg(PERIOD.to_string());
        let child = command.stdin(Stdio::null()).stdout(output).stderr(errors).current_dir(folder).spawn();
        Ok(Self { child: child.map_err(MeasureError::Testpmd)?, log })
    }

    /// Waits until `look` finds something. What it looks at is what the process has printed.
    fn until<T>(
        &mut self,
        what: &'static str,
        time: Duration,
        look: impl Fn(&str) -> Option<T>,
    ) -> Result<T, MeasureError> {
        let begin = Instant::now();
        loop {
            let text = fs::read(&self.log).map_err(MeasureError::Folder)?;
            let text = String::from_utf8_lossy(&text);
            if let Some(found) = look(&text) {
                return Ok(found);
            }
            if let Some(status) = self.child.try_wait().map_err(MeasureError::Testpmd)? {
                let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
                return Err(MeasureError::TestpmdEnded {
                    status,
                    last: last.trim().escape_debug().to_string(),
                });
            }
            if begin.elapsed() > time {
                return Err(MeasureError::Late { what });
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The rates of packets that left by a port, as testpmd prints them.
fn sent_rates(text: &str, port: u32) -> Vec<u64> {
    let blocks = text.split("NIC statistics for port ").skip(1);
    let of_port = blocks.filter_map(|block| block.strip_prefix(&format!("{port} ")));
    let rate = |block: &str| block.split_once("Tx-pps:")?.1.split_whitespace().next()?.parse().ok();
    of_port.filter_map(rate).collect()
}

fn memif(number: u8, is_server: bool, socket: &Path) -> String {
    let role = if is_server { "server" } else { "client" };
    format!("net_memif{number},role={role},id=0,socket={},socket-abstract=no,rsize=10", socket.display())
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
) -> Result<TestpmdRate, MeasureError> {
    let folder = TemporaryFolder::new().map_err(MeasureError::Folder)?;
    let folder = folder.path();
    let socket = |number: usize| folder.join(format!("{number}.sock"));
    let (near, far) = bed.cores();
    let devices = [
        format!("net_null0,size={size}"),
        memif(0, true, &socket(0)),
        memif(1, true, &socket(chain)),
        format!("net_null1,size={size},no-rx=1"),
    ];
    bed.on_all_cores(|| {
        let mut ends = Process::start(program, folder, 0, near, &devices)?;
        let mut functions = Vec::new();
        for number in 0..chain {
            // Each connects to a socket that is there.
            let before = functions.last_mut().unwrap_or(&mut ends);
            let (first, last) = (socket(number), socket(chain));
            let is_there = || first.exists() && last.exists();
            Process::until(before, "testpmd to start", START_TIMEOUT, |_| is_there().then_some(()))?;
            let is_last = number + 1 == chain;
            let devices = [memif(0, false, &first), memif(1, !is_last, &socket(number + 1))];
            functions.push(Process::start(program, folder, number + 1, far, &devices)?);
        }
        let count = plan.runs.max(MIN_RATES) + 1;
        let time = START_TIMEOUT + Duration::from_secs(PERIOD) * count;
        let rates = ends.until("packets of testpmd", time, |text| {
            let rates: Vec<u64> = sent_rates(text, SINK).into_iter().skip_while(|rate| *rate == 0).collect();
            (rates.len() >= count as usize).then_some(rates)
        })?;
        let mpps = median(rates.iter().skip(1).map(|rate| *rate as f64 / 1e6).collect());
        Ok(TestpmdRate { peer: "testpmd, memif", chain, size, mpps, gbps: gbps(mpps, size) })
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
        assert_eq!(sent_rates(&text, 3), [0, 21]);
        assert_eq!(sent_rates("NIC statistics for port 3  ##\n Tx-pps:", 3), Vec::<u64>::new());
    }

    #[test]
    fn a_program_that_ends_is_reported() {
        let folder = TemporaryFolder::new().expect("a folder");
        let mut process =
            Process::start(Path::new("/bin/false"), folder.path(), 0, 0, &[]).expect("a process");
        let found = process.until("nothing", Duration::from_secs(10), |_| None::<()>);
        assert!(matches!(found, Err(MeasureError::TestpmdEnded { .. })), "{found:?}");
        let missing = Process::start(Path::new("/nonexistent/testpmd"), folder.path(), 0, 0, &[]);
        assert!(matches!(missing, Err(MeasureError::Testpmd(_))), "{missing:?}");
    }
}
