//! All figures of the papers beside ours, including those that are worse and those that are missing.

use super::all::Report;
use super::page::find;
use super::papers;
use super::plot::figure;
use crate::engine::{FrameSize, Row, Traffic};
use crate::{
    Chain, Density, IdleMode, Interconnect, Io, IoMode, LatencyRow, Lookup, NeighbourLoad, OwnCores,
    PacketSizes,
};
use std::fmt::Write;

/// The counterpart of a paper's figure.
#[derive(Clone, Debug, PartialEq)]
enum OwnFigure {
    /// Our figure.
    Measured(f64),
    /// Not in this report, because of its arguments or the machine.
    NotMeasured,
    /// Not measured for this reason.
    Missing(String),
}

impl From<Option<f64>> for OwnFigure {
    fn from(figure: Option<f64>) -> Self {
        figure.map_or(Self::NotMeasured, Self::Measured)
    }
}

/// Whether higher or lower figures are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Better {
    Smaller,
    Larger,
}

/// A row of the table: a paper's figure and ours.
#[derive(Debug)]
struct SummaryRow {
    what: String,
    ours: OwnFigure,
    paper: f64,
    unit: &'static str,
    better: Better,
}

impl SummaryRow {
    fn html(&self) -> String {
        let (ours, class, verdict) = match &self.ours {
            OwnFigure::NotMeasured => ("–".into(), "even", "not measured".into()),
            OwnFigure::Missing(reason) => ("–".into(), "even", format!("not measured: {reason}")),
            OwnFigure::Measured(ours) => {
                let ratio = match self.better {
                    Better::Smaller => self.paper / ours,
                    Better::Larger => ours / self.paper,
                };
                let (class, verdict) = match ratio {
                    1.05.. => ("good", format!("{} times better", figure(ratio))),
                    0.95.. => ("even", "the same".into()),
                    _ => ("bad", format!("{} times worse", figure(1.0 / ratio))),
                };
                (figure(*ours), class, verdict)
            }
        };
        format!(
            "<tr><td>{}</td><td class=\"number ours\">{ours}</td><td class=\"number\">{}</td><td>{}</td><td class=\"number {class}\">{verdict}</td></tr>",
            self.what,
            figure(self.paper),
            self.unit.replace("us", "µs")
        )
    }
}

/// The tables of both papers.
pub(super) fn summary(report: &Report) -> String {
    table("ClickOS", &clickos(report)) + &table("OpenNetVM", &opennetvm(report)) + &engine(&report.engine)
}

/// The figures of the engine without a box.
fn engine(rows: &[Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<table><thead><tr><th>Engine without a box, ns a packet</th><th>bytes</th><th>traffic</th><th>with reading</th><th>chain \
         alone</th><th>batch</th></tr></thead><tbody>",
    );
    for row in rows {
        // Writing to a string can't fail.
        let _ = write!(
            out,
            "<tr><td>{}</td><td class=\"number\">{}</td><td>{}</td><td class=\"number ours\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td></tr>",
            row.config,
            row.size,
            row.traffic,
            figure(row.ours.ns_per_packet),
            figure(row.ours.chain_ns),
            figure(row.batch.unwrap_or_default())
        );
    }
    out + "</tbody></table>"
}

fn table(paper: &str, lines: &[SummaryRow]) -> String {
    let mut out = format!(
        "<table><thead><tr><th>{paper}</th><th>here</th><th>paper</th><th></th><th></th></tr></thead><tbody>"
    );
    for line in lines {
        // Writing to a string can't fail.
        let _ = out.write_str(&line.html());
    }
    out + "</tbody></table>"
}

fn opennetvm(report: &Report) -> Vec<SummaryRow> {
    let line = |(number, (what, paper, unit)): (usize, (&str, f64, &'static str))| SummaryRow {
        what: what.into(),
        ours: of_opennetvm(report, number),
        paper,
        unit,
        better: if matches!(unit, "Gb/s" | "Mp/s") { Better::Larger } else { Better::Smaller },
    };
    papers::OPENNETVM.into_iter().enumerate().map(line).collect()
}

/// The counterpart of a figure of OpenNetVM's paper, by its place in the list. All functions of a chain run on one core here, and
/// the switch on another one.
fn of_opennetvm(report: &Report, number: usize) -> OwnFigure {
    let steered = |chain: usize, size: u16, by: Lookup| {
        find(&report.steering, |row| (row.chain, row.size, row.by) == (chain, PacketSizes::Bytes(size), by))
    };
    let ours = match number {
        1 => report.boot.service_ms.as_ref().map(|service| service.first_packet_ms.p50),
        2 => steered(1, 64, Lookup::Default).map(|row| row.latency_us.p50),
        3 => steered(1, 64, Lookup::Flow).map(|row| row.latency_us.p50),
        5 => steered(1, 1472, Lookup::Default).map(|row| row.gbps),
        7 => steered(5, 1472, Lookup::Default).map(|row| row.gbps),
        // Each of the five functions gets each packet.
        8 => steered(5, 64, Lookup::Default).map(|row| 5.0 * row.mpps),
        9 => match &report.own_cores {
            OwnCores::Measured { loss_percent, .. } => Some(*loss_percent),
            OwnCores::NotMeasured { not_measured, .. } => return OwnFigure::Missing(not_measured.clone()),
        },
        // In a container; with a hash of each packet; more functions and cores.
        _ => None,
    };
    ours.into()
}

fn clickos(report: &Report) -> Vec<SummaryRow> {
    use Better::{Larger, Smaller};
    let io = |mode, size| {
        let wanted = |io: &&Io| io.mode == mode && io.size == size && io.ring == 1024;
        find(&report.io, wanted).map(|io| io.mpps)
    };
    let chain = |length, interconnect| {
        let wanted = |chain: &&Chain| chain.length == length && chain.interconnect == interconnect;
        find(&report.chain, wanted).map(|chain| chain.gbps)
    };
    let ping = |others, load| {
        let wanted =
            |row: &&LatencyRow| row.waiting == IdleMode::Idle && row.others == others && row.load == load;
        find(&report.latency, wanted).map(|row| row.p50_us)
    };
    let ring = |slots| find(&report.memory.rings, |row| row.ring == slots).map(|row| row.kb as f64);
    let engine = |config: &str, traffic: &Traffic, size: u16| {
        let wanted = |row: &&Row| {
            row.config == config && row.traffic == *traffic && row.size == FrameSize::Bytes(size)
        };
        find(&report.engine, wanted).map(|row| row.ours.mpps)
    };
    let density = |size| {
        let wanted = |density: &&Density| density.boxes == 100 && density.size == size;
        find(&report.density, wanted).map(|density| density.mpps)
    };
    let attach_us = report.density.last().map(|density| density.attach_us);
    let (boot, daemon) = (&report.boot, report.boot.daemon_ms.as_ref());
    let is_paper = boot.boxes >= 400;
    let private = boot.private_kb;
    let [two, nine] = papers::CHAIN_GBPS.map(|(_, gbps)| gbps);
    let line = |what: &str, ours: Option<f64>, paper, unit, better| SummaryRow {
        what: what.into(),
        ours: ours.into(),
        paper,
        unit,
        better,
    };
    let mut lines = vec![
        line(
            "Start: request to the daemon, switch, configuration, first packet",
            daemon.map(|daemon| daemon.first_packet_ms.p50),
            papers::BOOT_MS,
            "ms",
            Smaller,
        ),
        line(
            "The same, for the last of 400",
            daemon.filter(|_| is_paper).map(|daemon| daemon.first_packet_ms.last),
            papers::BOOT_400TH_MS,
            "ms",
            Smaller,
        ),
        line(
            "Creating a box (sandbox library)",
            Some(boot.steps_ms.create),
            papers::CREATE_MS,
            "ms",
            Smaller,
        ),
        line("Attaching a box to a switch (switch library)", attach_us, papers::ATTACH_US, "us", Smaller),
        line(
            "Installing a configuration (sandbox library)",
            Some(boot.install_ms.p50),
            papers::INSTALL_MS,
            "ms",
            Smaller,
        ),
        line("Boxes on one host in this report", Some(boot.boxes as f64), papers::BOXES, "", Larger),
        line(
            "Image of a box (here one for all boxes)",
            Some(report.image_kb as f64),
            papers::IMAGE_KB,
            "KB",
            Smaller,
        ),
        line(
            "Element classes in the image",
            report.classes.map(|count| count as f64),
            papers::CLASSES,
            "",
            Larger,
        ),
        line(
            "Memory of a box with rings of 2,048 slots",
            ring(2048).map(|kb| kb + private + report.memory.control_kb as f64),
            papers::FOOTPRINT_KB,
            "KB",
            Smaller,
        ),
    ];
    for (slots, paper) in papers::RINGS_KB {
        lines.push(line(
            &format!("Memory of a port of {slots} slots"),
            ring(slots as u32),
            paper,
            "KB",
            Smaller,
        ));
    }
    for (entries, paper) in papers::STATE_KB {
        let table = find(&report.memory.tables, |table| table.entries == entries);
        let count = if entries == "patterns" { 400 } else { 1_000 };
        lines.push(line(
            &format!("Memory that {count} {entries} add"),
            table.filter(|table| table.count == count).map(|table| table.adds_kb),
            paper,
            "KB",
            Smaller,
        ));
    }
    for size in papers::LINE_RATE_SIZES {
        let (what, paper) = (format!("One box sends, {size} B"), papers::line_rate(size.into()));
        lines.push(line(&what, io(IoMode::Send, size), paper, "Mp/s", Larger));
    }
    lines.extend([
        line("One box sends, 64 B", io(IoMode::Send, 64), papers::SEND_MPPS, "Mp/s", Larger),
        line("One box receives, 64 B", io(IoMode::Receive, 64), papers::RECEIVE_MPPS, "Mp/s", Larger),
        line("100 boxes on one core send, 64 B", density(64), papers::DENSITY_MPPS, "Mp/s", Larger),
        line(
            &format!("The same, {} B", papers::DENSITY_LINE_RATE_SIZE),
            density(papers::DENSITY_LINE_RATE_SIZE),
            papers::line_rate(papers::DENSITY_LINE_RATE_SIZE.into()),
            "Mp/s",
            Larger,
        ),
        line("Chain of 2 boxes, 1472 B, copied", chain(2, Interconnect::Copy), two, "Gb/s", Larger),
        line("The same, sharing packets", chain(2, Interconnect::Pool), two, "Gb/s", Larger),
        line("Chain of 9 boxes, 1472 B, copied", chain(9, Interconnect::Copy), nine, "Gb/s", Larger),
        line("The same, sharing packets", chain(9, Interconnect::Pool), nine, "Gb/s", Larger),
        line(
            "Address translation of one flow, 64 B (engine without a box)",
            engine("nat", &Traffic::Constant, 64),
            papers::NAT_MPPS,
            "Mp/s",
            Larger,
        ),
        line(
            "Address translation, mixed flows, 512 B (engine without a box)",
            engine("nat", &Traffic::Mixed, 512),
            papers::NAT_AND_BRAS_MPPS,
            "Mp/s",
            Larger,
        ),
        line(
            "Broadband gateway, 512 B (engine without a box)",
            engine("bras", &Traffic::Mixed, 512),
            papers::NAT_AND_BRAS_MPPS,
            "Mp/s",
            Larger,
        ),
        line("Several network cards at once", None, papers::SCALE_OUT_GBPS, "Gb/s", Larger),
        line("Ping through an idle box", ping(0, NeighbourLoad::Idle), papers::PING_US, "us", Smaller),
        line("Ping beside 11 idle boxes", ping(11, NeighbourLoad::Idle), papers::PING_US, "us", Smaller),
        line(
            "Ping beside 11 boxes busy with memory",
            ping(11, NeighbourLoad::Memory),
            papers::PING_BESIDE_MEMORY_US,
            "us",
            Smaller,
        ),
        line(
            "Ping beside 11 boxes in endless loops",
            ping(11, NeighbourLoad::Cpu),
            papers::PING_BESIDE_HOGS_US,
            "us",
            Smaller,
        ),
        line("Writing a handler", Some(report.state.write_us.p50), papers::WRITE_US, "us", Smaller),
        line("Reading a handler", Some(report.state.read_us.p50), papers::READ_US, "us", Smaller),
    ]);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worse_and_missing_figures_are_shown() {
        let line = |ours, better| SummaryRow { what: "x".into(), ours, paper: 20.0, unit: "KB", better };
        let cases = [
            (OwnFigure::Measured(106.0), Better::Smaller, "5.3 times worse"),
            (OwnFigure::Measured(10.0), Better::Smaller, "2 times better"),
            (OwnFigure::Measured(10.0), Better::Larger, "2 times worse"),
            (OwnFigure::Measured(20.2), Better::Smaller, "the same"),
            (OwnFigure::from(None), Better::Larger, "not measured"),
        ];
        for (ours, better, expected) in cases {
            let html = line(ours, better).html();
            assert!(html.contains(expected), "{html}");
        }
    }
}
