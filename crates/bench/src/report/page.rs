//! The report as a self-contained HTML page.

use super::all::Report;
use super::papers;
use super::plot::{Axis, Plot, Scale, Series, figure};
use super::summary::summary;
use crate::BoxProgram;
use crate::{IdleMode, Interconnect, Io, IoMode, NeighbourLoad};
use boundary::PlatformKind;
use std::fmt::Write;

/// The page's style sheet, for light and dark screens.
const STYLE: &str = include_str!("style.css");

/// A plot with its text.
struct Chapter {
    title: &'static str,
    text: String,
    command: &'static str,
    plot: Plot,
}

/// The whole page.
pub fn page(report: &Report) -> String {
    let mut out = String::from("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    let _ = write!(out, "<title>Clickbox, measured</title><style>{STYLE}</style></head><body><main>");
    let _ = write!(out, "<h1>Clickbox, measured</h1>{}", introduction(report));
    out.push_str(&caveats(report));
    out.push_str(&summary(report));
    out.push_str("<div class=\"chapters\">");
    for chapter in chapters(report) {
        let Chapter { title, text, command, plot } = chapter;
        let _ = write!(
            out,
            "<section><h2>{title}</h2><p>{text}</p><figure>{}</figure><p class=\"command\"><code>clickbox bench {command}</code></p></section>",
            plot.svg()
        );
    }
    out.push_str("</div>");
    out + "</main></body></html>\n"
}

fn introduction(report: &Report) -> String {
    let machine = &report.machine;
    let sandbox = match report.sandbox {
        PlatformKind::Vm => "virtual machines (KVM)",
        PlatformKind::Process => "sandboxed processes",
        PlatformKind::Thread => "threads, not confined",
    };
    let facts = [
        ("Boxes", sandbox.to_string()),
        ("Processor", format!("{}, {} cores", escape(&machine.processor), machine.cores)),
        ("Memory", format!("{} MB", figure(machine.memory_mb as f64))),
        ("Kernel", escape(&machine.kernel)),
        ("Load before", figure(machine.load)),
        ("Measured", date(machine.time)),
        ("Each figure", format!("the median of {} runs", report.plan.runs)),
    ];
    let mut out = String::from("<dl class=\"facts\">");
    for (name, value) in facts {
        let _ = write!(out, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    }
    out + "</dl>"
}

/// What the reader must know before the figures.
fn caveats(report: &Report) -> String {
    let machine = &report.machine;
    let mut notes = Vec::new();
    if machine.load > machine.cores as f64 / 2.0 {
        notes.push(format!(
            "<strong>The machine was busy when the measurement began (load {} on {} cores): rates are too low, times too \
             long.</strong>",
            figure(machine.load),
            machine.cores
        ));
    }
    notes.push(
        "The papers measured on other hardware and over network cards. Here frames stay in memory: no card, no driver \
         and no cable is in these figures. Compare orders of magnitude."
            .into(),
    );
    notes.push(match report.inside {
        BoxProgram::Click => {
            "The boxes run the engine with Click configurations. Each starts as a firewall with ten rules.".into()
        }
        BoxProgram::Probe => {
            "The boxes run the probe, which only sends, takes, mirrors and forwards: these figures are those of \
             sandbox, rings and switch, without an engine."
                .into()
        }
    });
    notes.push(
        "Boxes send, take and forward the same frame again and again. Only the figures of the engine are taken with \
         mixed traffic: 60,000 flows."
            .into(),
    );
    let notes: String = notes.iter().map(|note| format!("<li>{note}</li>")).collect();
    let hardware: String = papers::HARDWARE
        .iter()
        .map(|(paper, machine)| format!("<div><dt>{paper} on</dt><dd>{machine}</dd></div>"))
        .collect();
    format!("<dl class=\"facts\">{hardware}</dl><ul class=\"caveats\">{notes}</ul>")
}

fn chapters(report: &Report) -> Vec<Chapter> {
    let linear = |label| Axis { label, scale: Scale::Linear };
    let logarithmic = |label| Axis { label, scale: Scale::Logarithmic };
    let sizes: Vec<f64> = unique(report.io.iter().filter(|io| io.ring == 1024).map(|io| f64::from(io.size)));
    let rings: Vec<f64> = unique(report.io.iter().filter(|io| io.size == 64).map(|io| f64::from(io.ring)));
    let io = |mode, over_sizes: bool| {
        let rows = report
            .io
            .iter()
            .filter(move |io| io.mode == mode && if over_sizes { io.ring == 1024 } else { io.size == 64 });
        let at = move |io: &Io| (f64::from(if over_sizes { u32::from(io.size) } else { io.ring }), io.mpps);
        let mut points: Vec<(f64, f64)> = rows.map(at).collect();
        points.sort_by(|left, right| left.0.total_cmp(&right.0));
        points
    };
    let modes = |over_sizes| {
        [("send", IoMode::Send), ("receive", IoMode::Receive), ("forward", IoMode::Forward)]
            .map(|(name, mode)| Series::ours(name, io(mode, over_sizes)))
    };
    let boxes = report.boot.boxes as f64;
    let others: Vec<f64> = unique(report.latency.iter().map(|row| row.others as f64));
    let latency = |load| {
        let rows = report.latency.iter().filter(move |row| row.waiting == IdleMode::Idle && row.load == load);
        rows.map(|row| (row.others as f64, row.p50_us)).collect::<Vec<_>>()
    };
    let polling = find(&report.latency, |row| row.waiting == IdleMode::Polling).map_or(0.0, |row| row.p50_us);
    let chain = |interconnect| {
        let rows = report.chain.iter().filter(move |chain| chain.interconnect == interconnect);
        rows.map(|chain| (chain.length as f64, chain.gbps)).collect::<Vec<_>>()
    };
    let state = |write: bool| {
        let time = move |row: &crate::StateRow| if write { row.write_us.p50 } else { row.read_us.p50 };
        report.state.rows.iter().map(|row| (row.size as f64, time(row))).collect::<Vec<_>>()
    };
    let values: Vec<f64> = state(true).iter().map(|point| point.0).collect();
    let flat = |name: &str, value: f64, over: &[f64]| {
        Series::paper(name, over.iter().map(|x| (*x, value)).collect())
    };
    let steps = report.boot.steps_ms;
    let density: Vec<_> = report.density.iter().filter(|density| density.size == 64).collect();
    let spread = density.last().map_or(0.0, |density| density.spread * 100.0);
    vec![
        Chapter {
            title: "Start",
            text: format!(
                "Boxes started one after the other by the sandbox library and all kept, from the call to the first packet answered. \
                 Creating takes {} ms, starting {} ms, installing a configuration {} ms, the first packet {} ms (medians).",
                figure(steps.create), figure(steps.start), figure(steps.install), figure(steps.first_packet)
            ),
            command: "boot --count 400",
            plot: Plot {
                x: linear("boxes there already"),
                y: logarithmic("milliseconds"),
                ticks: vec![0.0, boxes / 4.0, boxes / 2.0, boxes * 0.75, boxes],
                series: vec![
                    Series::ours("Clickbox", report.boot.curve_ms.clone()),
                    Series::paper_points("ClickOS, first and 400th", vec![(0.0, papers::BOOT_MS), (boxes.min(400.0), papers::BOOT_400TH_MS)]),
                ],
            },
        },
        Chapter {
            title: "One box, frames of all sizes",
            text: "Rings of 1,024 slots. The host copies every frame into the box's memory or out of it; when the box \
                   forwards, both.".into(),
            command: "io --mode forward --all",
            plot: Plot {
                x: logarithmic("bytes of a frame"),
                y: linear("million packets a second"),
                ticks: sizes.clone(),
                series: modes(true).into_iter().chain([
                    Series::paper("10 gigabit Ethernet", sizes.iter().map(|size| (*size, papers::line_rate(*size))).collect()),
                ]).collect(),
            },
        },
        Chapter {
            title: "One box, rings of all sizes",
            text: "Frames of 64 bytes.".into(),
            command: "io --mode forward --all",
            plot: Plot {
                x: logarithmic("slots of a ring"),
                y: linear("million packets a second"),
                ticks: rings.clone(),
                series: modes(false).into_iter().chain([flat("10 gigabit Ethernet", papers::line_rate(64.0), &rings)]).collect(),
            },
        },
        Chapter {
            title: "Many boxes on one core",
            text: format!(
                "All send frames of 64 bytes from rings of 2,048 slots through one switch, which copies them on another core. The \
                 rates of the most boxes differ by {} % (standard deviation over mean).",
                figure(spread)
            ),
            command: "density --boxes 100",
            plot: Plot {
                x: linear("boxes"),
                y: linear("million packets a second, in total"),
                ticks: density.iter().map(|density| density.boxes as f64).collect(),
                series: vec![
                    Series::ours("Clickbox", density.iter().map(|density| (density.boxes as f64, density.mpps)).collect()),
                    Series::paper_points("ClickOS, 100 boxes", vec![(100.0, papers::DENSITY_MPPS)]),
                ],
            },
        },
        Chapter {
            title: "Chains",
            text: "All boxes on one core, frames of 1,472 bytes: the first box sends, the last takes, the others forward. \
                   Between each two is a switch, or a pipe. Boxes of one owner may share a packet pool; between others each packet is copied.".into(),
            command: "chain",
            plot: Plot {
                x: linear("boxes in the chain"),
                y: linear("gigabits a second"),
                ticks: report.chain.iter().filter(|chain| chain.interconnect == Interconnect::Copy).map(|chain| chain.length as f64).collect(),
                series: vec![
                    Series::ours("switches that copy", chain(Interconnect::Copy)),
                    Series::ours("switches, one pool", chain(Interconnect::Pool)),
                    Series::ours("pipes", chain(Interconnect::Pipe)),
                    Series::paper_points("ClickOS, 2 and 9 boxes", papers::CHAIN_GBPS.to_vec()),
                ],
            },
        },
        Chapter {
            title: "Answers",
            text: format!(
                "A packet through a box that was asleep, beside others on its core. A box that polls answers in {} µs.",
                figure(polling)
            ),
            command: "latency",
            plot: Plot {
                x: linear("other boxes on the core"),
                y: logarithmic("microseconds, median"),
                ticks: others.clone(),
                series: [
                    Series::ours("others idle", latency(NeighbourLoad::Idle)),
                    Series::ours("others in endless loops", latency(NeighbourLoad::Cpu)),
                    Series::ours("others busy with memory", latency(NeighbourLoad::Memory)),
                    flat("ClickOS, others idle", papers::PING_US, &[0.0, 11.0]),
                    Series::paper_points("ClickOS, others busy (up to)", vec![(11.0, papers::PING_BESIDE_HOGS_US)]),
                ]
                .into_iter()
                // The probe program has no memory load.
                .filter(|series| !series.points.is_empty())
                .collect(),
            },
        },
        Chapter {
            title: "Handlers",
            text: "A value is written to a box that was asleep, and read back.".into(),
            command: "state",
            plot: Plot {
                x: logarithmic("bytes of the value"),
                y: logarithmic("microseconds, median"),
                ticks: values.clone(),
                series: vec![
                    Series::ours("write", state(true)),
                    Series::ours("read", state(false)),
                    flat("ClickOS, write", papers::WRITE_US, &values),
                    flat("ClickOS, read", papers::READ_US, &values),
                ],
            },
        },
        Chapter {
            title: "Memory of a port",
            text: format!(
                "Both rings of a port with their buffers. A box has {} KB of its own besides, and {} KB for its mailbox; the \
                 image is there once for all boxes.",
                figure(report.boot.private_kb), report.memory.control_kb
            ),
            command: "memory",
            plot: Plot {
                x: logarithmic("slots of a ring"),
                y: linear("kilobytes"),
                ticks: papers::RINGS_KB.iter().map(|point| point.0).collect(),
                series: vec![
                    Series::ours("Clickbox", report.memory.rings.iter().map(|row| (f64::from(row.ring), row.kb as f64)).collect()),
                    Series::paper("ClickOS, Table 3", papers::RINGS_KB.to_vec()),
                ],
            },
        },
    ]
}

pub(super) fn find<T>(rows: &[T], wanted: impl Fn(&&T) -> bool) -> Option<&T> {
    rows.iter().find(wanted)
}

/// Sorted numbers without duplicates.
fn unique(numbers: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    numbers
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The calendar date of a time in seconds since 1970. Years are counted from March, so that the leap day is the last
/// day of a year.
fn date(seconds: u64) -> String {
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = year + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_the_calendar() {
        let cases = [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_583_020_799, "2020-02-29"),
            (4_102_444_800, "2100-01-01"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(date(seconds), expected);
        }
    }
}
