//! The demonstration with three boxes: traffic, a rule change, a killed box.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use api::{BoxDetail, BoxState, BoxStatus, Sandbox, operation};
use clap::ValueEnum;

use super::chain::{BOXES, Chain};
use super::error::DemoError;
use super::report::{self, DropCounts};
use crate::error::CommandError;
use crate::number_format::grouped;
use crate::online;
use crate::{output, screen};

/// Packets in the capture.
const PACKETS: u64 = 2500;
/// Interval between two updates of the table.
const REFRESH: Duration = Duration::from_millis(100);
/// Time limit for the restart of a box, and for packets to reach the end of the chain.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(10);
/// The rule that the demonstration adds to the firewall.
const RULE: &str = "deny udp dst port 53";

/// The sandbox of the boxes.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum SandboxOption {
    /// Virtual machines if KVM is usable, else processes.
    #[default]
    Auto,
    /// Virtual machines.
    Vm,
    /// Processes without privileges.
    Process,
}

/// Prints the configurations.
pub(super) fn print() {
    for demo_box in BOXES {
        output::text(&format!("// {}\n\n{}\n", demo_box.file, demo_box.text));
    }
}

/// Runs it.
pub(super) fn run(seconds: f64, rate: u64, option: SandboxOption, json: bool) -> Result<(), CommandError> {
    show(seconds, rate, option, &Reporter { is_silent: json })
}

/// Prints progress above the table.
struct Reporter {
    /// Whether only the JSON at the end is printed.
    is_silent: bool,
}

impl Reporter {
    /// Prints a line.
    fn print(&self, text: &str) {
        if !self.is_silent {
            screen::print(&online::line(text));
        }
    }
}

fn show(seconds: f64, rate: u64, option: SandboxOption, reporter: &Reporter) -> Result<(), CommandError> {
    let is_interrupted = Arc::new(AtomicBool::new(false));
    // Otherwise Ctrl-C would end the program, and the daemon with it, at once.
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let _ = signal_hook::flag::register(signal, is_interrupted.clone());
    }
    let chain = Chain::start()?;
    let sandbox = sandbox(&chain, option, reporter)?;
    reporter.print("  capture > firewall > nat > monitor > uplink");
    chain.build(sandbox, |detail| reporter.print(&started(detail)))?;
    let repeat = ((rate as f64 * seconds / PACKETS as f64).round() as u32).max(1);
    let total = u64::from(repeat) * PACKETS;
    reporter.print(&format!(
        "The capture is played {} times, at {} packets per second.",
        grouped(repeat.into()),
        grouped(rate)
    ));
    let begin = Instant::now();
    chain.play(repeat, rate)?;
    let mut drops = DropCounts::default();
    let watch = Watch { chain: &chain, begin, total, is_interrupted, reporter };
    watch.until(|received| received >= total / 3)?;
    let before = (denied(&chain)?, begin.elapsed());
    let write = change_rule(&chain, reporter)?;
    let change = (denied(&chain)?, begin.elapsed());
    watch.until(|received| received >= total * 2 / 3)?;
    compare([before, change, (denied(&chain)?, begin.elapsed())], reporter);
    drops.add(&chain, "nat")?;
    let back = kill(&chain, reporter)?;
    watch.until(|received| received >= total)?;
    let time = begin.elapsed();
    settle(&chain)?;
    screen::clear();
    let mut summary = report::summary(&chain, drops, time)?;
    (summary.write_ms, summary.restart_ms) = (Some(write), Some(back));
    // Before any output: a closed pipe ends the program, and the folder would remain.
    drop(chain);
    if reporter.is_silent {
        output::json(&summary);
    } else {
        output::text(&report::text(&summary));
    }
    Ok(())
}

/// The sandbox of the boxes; prints a note if it is not the preferred one.
fn sandbox(chain: &Chain, option: SandboxOption, reporter: &Reporter) -> Result<Sandbox, CommandError> {
    let host = chain.client().ask(&operation::HOST, &[])?;
    let sandbox = match option {
        SandboxOption::Auto if host.kvm.usable => Sandbox::Vm,
        SandboxOption::Vm => Sandbox::Vm,
        SandboxOption::Auto => {
            let reason = host.kvm.reason.unwrap_or_else(|| "for an unknown reason".into());
            reporter.print(&format!("KVM is not usable here ({reason}), so the boxes run in processes."));
            Sandbox::Process
        }
        SandboxOption::Process => Sandbox::Process,
    };
    reporter.print(match sandbox {
        Sandbox::Vm => "A private daemon runs three boxes in a row, each in a virtual machine:",
        _ => "A private daemon runs three boxes in a row, each in a process without privileges:",
    });
    Ok(sandbox)
}

fn started(detail: &BoxDetail) -> String {
    let status = &detail.status;
    let time = status.boot_ms.map_or(String::new(), |time| format!(", {time:.2} ms after the request"));
    format!("  {:<10}runs{time}", status.name)
}

/// The number of packets that the firewall's rules have denied.
fn denied(chain: &Chain) -> Result<u64, CommandError> {
    let losses = chain.read("firewall", "filter.losses")?;
    let count = losses.lines().find_map(|line| line.strip_prefix("denied ")?.parse().ok());
    Ok(count.unwrap_or(0))
}

/// Inserts a rule before the firewall's rules; returns the milliseconds that it took.
fn change_rule(chain: &Chain, reporter: &Reporter) -> Result<f64, CommandError> {
    let rules = chain.read("firewall", "filter.rules")?;
    let begin = Instant::now();
    chain.write("firewall", "filter.rules", &format!("{RULE}, {rules}"))?;
    let time = begin.elapsed().as_secs_f64() * 1e3;
    reporter
        .print(&format!("firewall: the rule `{RULE}` is now the first rule; the write took {time:.2} ms."));
    Ok(time)
}

/// Prints how many packets the firewall denied before and after the rule change.
fn compare([before, change, after]: [(u64, Duration); 3], reporter: &Reporter) {
    let rate = |packets: u64, time: Duration| grouped((packets as f64 / time.as_secs_f64().max(1e-3)) as u64);
    reporter.print(&format!(
        "firewall: it denied {} packets per second before the change, and {} after it.",
        rate(before.0, before.1),
        rate(after.0.saturating_sub(change.0), after.1.saturating_sub(change.1))
    ));
}

/// Kills a box and waits for its restart; returns the milliseconds that it took.
fn kill(chain: &Chain, reporter: &Reporter) -> Result<f64, CommandError> {
    let begin = Instant::now();
    chain.client().ask(&operation::KILL_BOX, &["nat"])?;
    loop {
        let status = chain.client().ask(&operation::SHOW_BOX, &["nat"])?.status;
        if status.restarts > 0 && status.state == BoxState::Running {
            break;
        }
        if begin.elapsed() > SETTLE_TIMEOUT {
            return Err(DemoError::NoRestart.into());
        }
    }
    let time = begin.elapsed().as_secs_f64() * 1e3;
    reporter.print(&format!(
        "nat: it was killed and restarted within {time:.1} ms. The other boxes kept running."
    ));
    Ok(time)
}

/// Waits until no packets are in flight.
fn settle(chain: &Chain) -> Result<(), CommandError> {
    let begin = Instant::now();
    let mut last = None;
    while begin.elapsed() < SETTLE_TIMEOUT {
        let (_, uplink) = chain.edge_ports()?;
        let sent = Some(uplink.traffic.sent_packets);
        if last == sent {
            return Ok(());
        }
        last = sent;
        std::thread::sleep(REFRESH / 2);
    }
    Ok(())
}

/// Observes the boxes while packets flow.
struct Watch<'a> {
    chain: &'a Chain,
    begin: Instant,
    total: u64,
    is_interrupted: Arc<AtomicBool>,
    reporter: &'a Reporter,
}

impl Watch<'_> {
    /// Shows the boxes until `is_enough` accepts the number of received packets.
    fn until(&self, is_enough: impl Fn(u64) -> bool) -> Result<(), CommandError> {
        let mut last = (0, Instant::now());
        loop {
            let (capture, uplink) = self.chain.edge_ports()?;
            let received = capture.traffic.received_packets;
            if self.is_interrupted.load(Ordering::Relaxed) {
                return Err(DemoError::Interrupted.into());
            }
            if received > last.0 {
                last = (received, Instant::now());
            } else if last.1.elapsed() > SETTLE_TIMEOUT {
                return Err(DemoError::NoPackets.into());
            }
            let boxes = self.chain.client().ask(&operation::LIST_BOXES, &[])?;
            let lines = self.lines(&boxes, received, uplink.traffic.sent_packets);
            let is_drawn = screen::is_available() && !self.reporter.is_silent;
            if is_drawn {
                screen::draw(&lines);
            }
            if is_enough(received) {
                if !is_drawn {
                    lines.iter().for_each(|line| self.reporter.print(line));
                }
                return Ok(());
            }
            std::thread::sleep(REFRESH);
        }
    }

    fn lines(&self, boxes: &[BoxStatus], received: u64, sent: u64) -> Vec<String> {
        let mut lines = report::rates(boxes);
        lines.push(format!(
            "{:.1} s: {} of {} packets received, {} sent",
            self.begin.elapsed().as_secs_f64(),
            grouped(received),
            grouped(self.total),
            grouped(sent)
        ));
        lines
    }
}
