//! `clickbox top`: a live table of boxes.

use std::cmp::Reverse;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use api::{BoxState, BoxStatus, HostStatus, Time, operation};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::columns::shorten;
use crate::error::CommandError;
use crate::number_format::{count, grouped};
use crate::online::{self, Column, Connection, Table};
use crate::value;
use crate::{output, screen};

/// Show a live table of boxes.
///
/// Keys: q quits; c, m, i, o, d, n sort by CPU time, memory, packets in, packets out, drops, name. If standard output
/// is not a terminal, prints the table once.
#[derive(Args)]
#[command(after_help = "Examples: clickbox top --sort drops\n          clickbox top --chains")]
pub(crate) struct Arguments {
    /// Seconds between two updates.
    #[arg(long, short, value_name = "SECONDS", default_value_t = 1.0, value_parser = value::seconds(0.05..=3600.0))]
    interval: f64,
    /// Exit after this many updates.
    #[arg(long, short, value_name = "N")]
    count: Option<u64>,
    /// Column to sort by.
    #[arg(long, value_enum, default_value_t)]
    sort: Order,
    /// Show the hops of chains instead: rate, loss and time. Without a terminal, waits up to 3 seconds until they are measured.
    #[arg(long, conflicts_with = "sort")]
    chains: bool,
    /// Print JSON, one object per update and line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// The order of the boxes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Order {
    /// Most CPU time first.
    #[default]
    Cpu,
    /// Most memory first.
    Memory,
    /// Most packets in first.
    In,
    /// Most packets out first.
    Out,
    /// Most dropped packets first.
    Drops,
    /// By name.
    Name,
}

impl Order {
    /// The order that a key selects.
    fn of_key(key: u8) -> Option<Order> {
        Some(match key {
            b'c' => Order::Cpu,
            b'm' => Order::Memory,
            b'i' => Order::In,
            b'o' => Order::Out,
            b'd' => Order::Drops,
            b'n' => Order::Name,
            _ => return None,
        })
    }

    fn sort(self, boxes: &mut [BoxStatus]) {
        // The sort is stable, and the daemon sorts by name.
        let by = |figure: fn(&BoxStatus) -> f64| {
            move |status: &BoxStatus| Reverse((figure(status).max(0.0) * 1e3).round() as u64)
        };
        match self {
            Order::Cpu => sorting::sort_by_key(boxes, by(|status| status.rates.cores)),
            Order::Memory => sorting::sort_by_key(boxes, |status| Reverse(status.usage.memory)),
            Order::In => sorting::sort_by_key(boxes, by(|status| status.rates.received_packets)),
            Order::Out => sorting::sort_by_key(boxes, by(|status| status.rates.sent_packets)),
            Order::Drops => sorting::sort_by_key(boxes, by(|status| status.rates.dropped_packets)),
            Order::Name => sorting::sort_by(boxes, |one, other| one.name.cmp(&other.name)),
        }
    }
}

/// One update.
#[derive(Serialize)]
struct Sample {
    time: Time,
    host: HostStatus,
    boxes: Vec<BoxStatus>,
}

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    let client = arguments.daemon.client()?;
    let is_live = !arguments.json && screen::is_available() && std::io::stdout().is_terminal();
    if !is_live {
        output::end_with_reader(|| ());
    }
    let once = (!is_live && !arguments.json).then_some(1);
    let mut left = arguments.count.or(once).unwrap_or(u64::MAX);
    let interval = Duration::from_secs_f64(arguments.interval);
    if arguments.chains {
        super::top_chains::run(&client, is_live, arguments.json, interval, left)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut order = arguments.sort;
    let keys = is_live.then(screen::Keys::new);
    loop {
        let host = client.ask(&operation::HOST, &[])?;
        let mut boxes = client.ask(&operation::LIST_BOXES, &[])?;
        left = left.saturating_sub(1);
        if arguments.json {
            output::json_line(&Sample { time: Time::now(), host, boxes });
        } else {
            loop {
                order.sort(&mut boxes);
                if !is_live {
                    output::text(&(lines(&host, &boxes, order, usize::MAX, usize::MAX).join("\n") + "\n"));
                    break;
                }
                let (width, height) = screen::size();
                screen::draw(&lines(&host, &boxes, order, width.saturating_sub(1), height.saturating_sub(1)));
                match keys.as_ref().filter(|_| left > 0).and_then(|keys| keys.wait(interval)) {
                    None => break,
                    Some(key) => match Order::of_key(key) {
                        Some(other) => order = other,
                        None if screen::Keys::ends(key) => return Ok(ExitCode::SUCCESS),
                        None => {}
                    },
                }
            }
        }
        if left == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        if !is_live {
            std::thread::sleep(interval);
        }
    }
}

const COLUMNS: &[Column] = &[
    Column::flexible("NAME", 8),
    Column::text("STATE"),
    Column::text("RUNS IN"),
    Column::number("CPU"),
    Column::number("MEM"),
    Column::number("IN/S"),
    Column::number("OUT/S"),
    Column::number("IN b/S"),
    Column::number("OUT b/S"),
    Column::number("DROP/S"),
];

/// The table within the given width and height.
fn lines(host: &HostStatus, boxes: &[BoxStatus], order: Order, width: usize, height: usize) -> Vec<String> {
    let sum = |figure: fn(&BoxStatus) -> f64| boxes.iter().map(figure).sum::<f64>();
    let running = boxes.iter().filter(|status| status.state == BoxState::Running).count();
    let head = format!(
        "{} {}, {running} running; {} of {}; in {}/s, out {}/s, dropped {}/s",
        grouped(boxes.len() as u64),
        if boxes.len() == 1 { "box" } else { "boxes" },
        online::share(sum(|status| status.rates.cores)),
        count(host.cores.into(), "CPU"),
        online::rate(sum(|status| status.rates.received_packets)),
        online::rate(sum(|status| status.rates.sent_packets)),
        online::rate(sum(|status| status.rates.dropped_packets)),
    );
    let by = order.to_possible_value();
    let foot = format!(
        "by {}; sort: c cpu, m memory, i in, o out, d drops, n name; q quits",
        by.as_ref().map_or("", |value| value.get_name())
    );
    // Header, titles and footer.
    let room = height.saturating_sub(3).max(1);
    let mut needed = 0;
    let ends = boxes.iter().map(|status| {
        needed += 1 + status.core_rates.len();
        needed
    });
    let ends: Vec<usize> = ends.collect();
    let count = match needed > room {
        // The last line says how many are hidden.
        true => ends.iter().take_while(|end| **end < room).count(),
        false => boxes.len(),
    };
    let (shown, hidden) = boxes.split_at(count);
    let table = Table { columns: COLUMNS, rows: shown.iter().flat_map(rows).collect() };
    let mut lines = vec![head];
    lines.extend(table.lines(width));
    if !hidden.is_empty() {
        lines.push(format!("and {} more", grouped(hidden.len() as u64)));
    }
    if height < usize::MAX {
        lines.push(foot);
    }
    lines.iter().map(|line| shorten(line, width)).collect()
}

/// The row of a box, and one for each of its cores if there are several.
fn rows(status: &BoxStatus) -> Vec<Vec<String>> {
    let core = |(number, share): (usize, &f64)| {
        let mut cells = vec![String::new(); COLUMNS.len()];
        let known = [format!("  core {number}"), String::new(), String::new(), online::share(*share)];
        cells.iter_mut().zip(known).for_each(|(cell, text)| *cell = text);
        cells
    };
    std::iter::once(row(status)).chain(status.core_rates.iter().enumerate().map(core)).collect()
}

fn row(status: &BoxStatus) -> Vec<String> {
    vec![
        status.name.to_string(),
        online::state(status.state).into(),
        online::cores_of(status),
        online::share(status.rates.cores),
        online::rate(status.usage.memory.0 as f64),
        online::rate(status.rates.received_packets),
        online::rate(status.rates.sent_packets),
        online::rate(status.rates.received_bits),
        online::rate(status.rates.sent_bits),
        online::rate(status.rates.dropped_packets),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A box with maximal values.
    fn busy(name: &str, cores: f64) -> BoxStatus {
        serde_json::from_value(serde_json::json!({
            "name": name, "owner": "default", "state": "suspended", "sandbox": "process",
            "created": "2026-01-31T12:00:00.000Z", "uptime_ms": 0, "restarts": 0, "configurations": ["main"],
            "memory": "8M", "ring": 256, "cpu_weight": 100, "dedicated": false, "restart": "never",
            "usage": { "own_ns": 0, "switch_ns": 0, "memory": 999_400 },
            "traffic": { "received_packets": 0, "received_bytes": 0, "sent_packets": 0, "sent_bytes": 0 },
            "rates": {
                "received_packets": 14_880_000.0, "received_bits": 10e9, "sent_packets": 999_400.0,
                "sent_bits": 99.9e9, "dropped_packets": 88_800.0, "cores": cores
            }
        }))
        .expect("a box")
    }

    fn host() -> HostStatus {
        serde_json::from_value(serde_json::json!({
            "version": "1", "image": "x", "started": "2026-01-31T12:00:00.000Z", "pid": 1, "sandboxes": ["process"],
            "kvm": { "usable": false }, "cgroup": "none", "cores": 128, "workers": 128, "memory": 1,
            "memory_available": 1,
            "counts": { "boxes": 0, "running": 0, "switches": 0, "ports": 0, "stacks": 0 }
        }))
        .expect("a host")
    }

    #[test]
    fn the_table_fits_the_terminal() {
        let mut boxes: Vec<BoxStatus> = (0..1000)
            .map(|number| busy(&format!("carrier-grade-nat-{number:04}"), f64::from(number) / 100.0))
            .collect();
        Order::Cpu.sort(&mut boxes);
        for (width, height) in [(79, 23), (79, 4), (60, 1), (200, 2000)] {
            let lines = lines(&host(), &boxes, Order::Cpu, width, height);
            assert!(lines.len() <= height.max(4), "{height}: {}", lines.len());
            for line in &lines {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
        let lines = lines(&host(), &boxes, Order::Cpu, 79, 23);
        assert_eq!(
            lines.first().map(String::as_str),
            Some("1,000 boxes, 0 running; 499500% of 128 CPUs; in 14.9G/s, out 999M/s, dropped 8…")
        );
        let titles = "NAME         STATE      RUNS IN    CPU   MEM   IN/S  OUT/S  IN b/S  OUT b/S  DROP/S";
        let titles: Vec<&str> = titles.split_whitespace().collect();
        assert_eq!(lines.get(1).map(|line| line.split_whitespace().collect()), Some(titles));
        assert!(
            lines.get(2).is_some_and(|line| line.starts_with("carrier…") && line.ends_with("88.8k")),
            "{lines:#?}"
        );
        assert_eq!(lines.get(21).map(String::as_str), Some("and 981 more"));
    }

    #[test]
    fn each_core_has_a_row() {
        let nat = BoxStatus { core_rates: vec![0.25, 0.5], ..busy("nat", 0.75) };
        let boxes = [nat, busy("fw", 0.5)];
        let all = lines(&host(), &boxes, Order::Cpu, 100, 7);
        let starts: Vec<Vec<&str>> =
            all.iter().skip(2).take(4).map(|line| line.split_whitespace().take(4).collect()).collect();
        let [nat, one, two, fw] = &starts[..] else { panic!("{all:#?}") };
        assert_eq!(
            (nat[0], &one[..3], &two[..3], fw[0]),
            ("nat", &["core", "0", "25%"][..], &["core", "1", "50%"][..], "fw")
        );
        // A box is shown with all its cores or not at all.
        let less = lines(&host(), &boxes, Order::Cpu, 100, 6);
        assert_eq!(less.get(2).map(String::as_str), Some("and 2 more"));
    }

    #[test]
    fn keys_select_the_sort_order() {
        let mut boxes = vec![busy("b", 0.5), busy("a", 0.2), busy("c", 0.9)];
        let names =
            |boxes: &[BoxStatus]| boxes.iter().map(|status| status.name.to_string()).collect::<String>();
        for (key, expected) in [(b'c', "cba"), (b'n', "abc"), (b'd', "abc")] {
            Order::of_key(key).expect("an order").sort(&mut boxes);
            assert_eq!(names(&boxes), expected);
        }
        assert_eq!(Order::of_key(b'x'), None);
    }
}
