//! A switch between two network interfaces, measured beside Open vSwitch between two others.
//!
//! The interfaces are ends of veth pairs in a network namespace of the measurement, which ends with it. At the other end of the
//! first one, the kernel makes frames on a core of its own, more than a switch can take. They are received in the kernel's time on
//! that core. What leaves by the second one is counted at its other end, where the host drops it because it is for nobody: the kernel
//! does this, too, in the time of the switch.

use super::ovs::Switch;
use super::process::{START_TIMEOUT, output};
use crate::boxes::test_bed::{allowed_cores, pin};
use crate::error::MeasureError;
use crate::sample_plan::SamplePlan;
use crate::statistics::{median, rounded, rounded_if_any};
use crate::temporary_folder::TemporaryFolder;
use rustix::thread::UnshareFlags;
use serde::Serialize;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use switch::driver::{AfPacket, AfXdp, XdpError, XdpSource, pass_frames};
use switch::{Driver, LearningBridge, LearningSettings, MacAddr, PortSettings, SwitchRunner};

/// Bytes of a frame.
const SIZE: usize = 64;

/// Where the frames go.
const DESTINATION: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

/// The start of a frame: a UDP datagram over IPv4 without a checksum.
const HEADERS: [u8; 42] = [
    2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, // Ethernet
    0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0x66, 0xb9, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
    0x10, 1, 0, 16, 0, 30, 0, 0, // UDP
];

/// Frames that are made between two looks at the end of a run.
const FRAMES_PER_CALL: u32 = 1 << 14;

/// The time in which all processes reach their speed.
const WARM_UP: Duration = Duration::from_millis(100);

/// Visits to the ports between two readings of the clock.
const VISITS_PER_CLOCK_READ: u32 = 256;

/// The interfaces of Open vSwitch.
const OF_OVS: [&str; 2] = ["ovs0", "ovs1"];

/// The driver of a switch's ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InterfaceDriver {
    /// XDP sockets.
    AfXdp,
    /// Packet sockets.
    AfPacket,
}

/// The rate of a switch between two interfaces, in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InterfaceRate {
    /// The driver of both ports.
    pub driver: InterfaceDriver,
    /// Millions of frames per second that leave the switch: the median.
    #[serde(serialize_with = "rounded")]
    pub mpps: f64,
    /// The most of all runs.
    #[serde(serialize_with = "rounded")]
    pub best_mpps: f64,
    /// Nanoseconds of the switch's core for each frame, with the kernel's part: the median.
    #[serde(serialize_with = "rounded")]
    pub nanoseconds: f64,
    /// The rate of Open vSwitch with XDP sockets: the median.
    #[serde(serialize_with = "rounded_if_any", skip_serializing_if = "Option::is_none")]
    pub ovs_mpps: Option<f64>,
    /// The most of all of its runs.
    #[serde(serialize_with = "rounded_if_any", skip_serializing_if = "Option::is_none")]
    pub best_ovs_mpps: Option<f64>,
}

impl InterfaceDriver {
    /// The two interfaces of a switch.
    fn interfaces(self) -> [&'static str; 2] {
        match self {
            Self::AfXdp => ["xdp0", "xdp1"],
            Self::AfPacket => ["packet0", "packet1"],
        }
    }

    fn open(self, interface: &'static str) -> Result<Box<dyn Driver>, MeasureError> {
        let port: Result<Box<dyn Driver>, _> = match self {
            Self::AfXdp => AfXdp::open(interface, None).map(|port| Box::new(port) as _).map_err(Into::into),
            Self::AfPacket => AfPacket::open(interface).map(|port| Box::new(port) as _),
        };
        port.map_err(|error| MeasureError::Interface { name: interface, error })
    }

    /// A learning switch that sends by the second interface what comes in by the first one.
    fn switch(self) -> Result<SwitchRunner<LearningBridge>, MeasureError> {
        let bridge = LearningBridge::new(LearningSettings::default());
        let mut runner = SwitchRunner::new(bridge).map_err(MeasureError::Folder)?;
        let [first, second] = self.interfaces();
        runner.add_port(self.open(first)?, PortSettings::default())?;
        let to = runner.add_port(self.open(second)?, PortSettings::default())?;
        // An empty table has room; without the address, the frames would be flooded.
        let _ = runner.switch().forward_mut().bind(DESTINATION, to);
        Ok(runner)
    }
}

fn unusable(name: &'static str, error: XdpError) -> MeasureError {
    MeasureError::Interface { name, error: error.into() }
}

/// The other end of an interface.
fn other_end(interface: &str) -> String {
    format!("far-{interface}")
}

/// Measures switches with these drivers, and Open vSwitch, whose `ovs-vswitchd` is `ovs`. Its other programs are found by PATH, and
/// so is `ip`. The caller needs root's privileges. The switch has the first core of this thread, and the source of frames the last.
///
/// # Errors
///
/// A network namespace or an interface can't be used, a program can't be started, or no frames pass.
pub fn interface_rates(
    drivers: &[InterfaceDriver],
    ovs: Option<&Path>,
    plan: SamplePlan,
) -> Result<Vec<InterfaceRate>, MeasureError> {
    // The namespace is that of the thread and of what it starts.
    let measure = || {
        #[expect(
            deprecated,
            reason = "its successor is unsafe for what is not done here: to share no descriptors"
        )]
        rustix::thread::unshare(UnshareFlags::NEWNET)
            .map_err(|error| MeasureError::Namespace(error.into()))?;
        measure(drivers, ovs, plan)
    };
    thread::scope(|scope| scope.spawn(measure).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The measurement, in the network namespace of this thread.
fn measure(
    drivers: &[InterfaceDriver],
    ovs: Option<&Path>,
    plan: SamplePlan,
) -> Result<Vec<InterfaceRate>, MeasureError> {
    // Otherwise hosts send packets on their own.
    fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").map_err(MeasureError::Namespace)?;
    let all = drivers.iter().map(|driver| driver.interfaces()).chain(ovs.map(|_| OF_OVS));
    let mut receivers = Vec::new();
    for [first, second] in all {
        [first, second].into_iter().try_for_each(connect)?;
        if first == InterfaceDriver::AfPacket.interfaces()[0] {
            // Without a program, the kernel takes no frames there that were made by one.
            receivers.push(pass_frames(first).map_err(|error| unusable(first, error))?);
        }
    }
    let cores = allowed_cores();
    let cores = (cores.first().copied().unwrap_or(0), cores.last().copied().unwrap_or(0));
    let folder = TemporaryFolder::new().map_err(MeasureError::Folder)?;
    let ovs = ovs.map(|program| Switch::start(program, folder.path(), cores.0, &[])).transpose()?;
    if let Some(ovs) = &ovs {
        ovs.connect_interfaces(OF_OVS)?;
    }
    let mut switches = drivers.iter().map(|driver| driver.switch()).collect::<Result<Vec<_>, _>>()?;
    let (mut ours, mut others) = (vec![Vec::new(); drivers.len()], Vec::new());
    // They take turns, because others use the machine too.
    for _ in 0..plan.runs.max(1) {
        if let Some(ovs) = &ovs {
            ovs.set_paused(false)?;
            others.push(rate(OF_OVS, cores, plan.time, thread::sleep)?);
            ovs.set_paused(true)?;
        }
        for ((driver, runner), rates) in drivers.iter().zip(&mut switches).zip(&mut ours) {
            rates.push(rate(driver.interfaces(), cores, plan.time, |time| run(runner, time))?);
        }
    }
    let best = |rates: &[f64]| rates.iter().copied().max_by(f64::total_cmp);
    let rows = drivers.iter().zip(ours).map(|(driver, rates)| {
        let (best_mpps, mpps) = (best(&rates).unwrap_or_default(), median(rates));
        InterfaceRate {
            driver: *driver,
            mpps,
            best_mpps,
            nanoseconds: 1e3 / mpps,
            ovs_mpps: ovs.is_some().then(|| median(others.clone())),
            best_ovs_mpps: best(&others),
        }
    });
    Ok(rows.collect())
}

/// Makes an interface that is up, with its other end.
fn connect(interface: &str) -> Result<(), MeasureError> {
    let far = other_end(interface);
    let queues = "numrxqueues 1 numtxqueues 1";
    for words in [
        format!("link add {interface} {queues} type veth peer name {far} {queues}"),
        format!("link set {interface} up"),
        format!("link set {far} up"),
    ] {
        output("ip", Command::new("ip").args(words.split(' ')))?;
    }
    Ok(())
}

/// Moves frames for a while.
fn run(runner: &mut SwitchRunner<LearningBridge>, time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        (0..VISITS_PER_CLOCK_READ).for_each(|_| _ = runner.step());
    }
}

/// Millions of frames per second that arrive behind the second interface while `run` runs for this time.
fn rate(
    [first, second]: [&'static str; 2],
    (near, far): (usize, usize),
    time: Duration,
    mut run: impl FnMut(Duration),
) -> Result<f64, MeasureError> {
    let mut frame = [0; SIZE];
    frame.iter_mut().zip(HEADERS).for_each(|(byte, value)| *byte = value);
    let source = XdpSource::new(&other_end(first), &frame).map_err(|error| unusable(first, error))?;
    let sink = other_end(second);
    let is_over = AtomicBool::new(false);
    let send = || -> Result<(), XdpError> {
        while !is_over.load(Ordering::Relaxed) {
            source.send(FRAMES_PER_CALL)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        // A thread stays on the core where it was created.
        pin(Some(&far));
        let sender = scope.spawn(send);
        pin(Some(&near));
        let mut measure = || {
            let (begin, start) = (Instant::now(), received(&sink)?);
            while received(&sink)? == start && !sender.is_finished() {
                if begin.elapsed() > START_TIMEOUT {
                    return Err(MeasureError::Late { what: "the first frame" });
                }
                run(WARM_UP);
            }
            run(WARM_UP);
            let (begin, before) = (Instant::now(), received(&sink)?);
            run(time);
            let (after, took) = (received(&sink)?, begin.elapsed());
            Ok((after - before) as f64 / took.as_secs_f64() / 1e6)
        };
        let measured = measure();
        is_over.store(true, Ordering::Relaxed);
        sender
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            .map_err(|error| unusable(first, error))?;
        measured
    })
}

/// The frames that an interface of this thread's network namespace has received.
fn received(interface: &str) -> Result<u64, MeasureError> {
    let text = fs::read_to_string("/proc/thread-self/net/dev").map_err(MeasureError::Namespace)?;
    of_interface(&text, interface).ok_or(MeasureError::NotANumber(text))
}

/// The received frames of an interface in the kernel's table.
fn of_interface(text: &str, interface: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frames_of_an_interface_are_read() {
        let text = "Inter-|   Receive                |  Transmit\n face |bytes    packets errs drop\n    lo:       0       7    0\nfar-xdp1: 640      10    0    0 0\n";
        assert_eq!(of_interface(text, "far-xdp1"), Some(10));
        assert_eq!(of_interface(text, "lo"), Some(7));
        assert_eq!(of_interface(text, "far-xdp"), None);
    }

    #[test]
    fn the_header_has_a_valid_checksum() {
        assert_eq!(packet::checksum::internet(&HEADERS[14..34]), 0);
    }
}
