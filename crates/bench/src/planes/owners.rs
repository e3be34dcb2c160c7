//! Two owners with a fabric each: how they share the processors, and how much the load of one delays the packets of the
//! other.

use super::requests::{NewBox, create_box, create_switch, number, read, remove_box};
use crate::error::MeasureError;
use crate::kills::Processes;
use crate::temporary_folder::TemporaryFolder;
use api::client::Client;
use api::{Owner, Ring, Sandbox, operation};
use rustix::param::clock_ticks_per_second;
use serde::Serialize;
use std::fs;
use std::path::Path;
use std::thread::{available_parallelism, sleep};
use std::time::{Duration, Instant};

/// The owners: the first is measured beside the second.
const OWNERS: [&str; 2] = ["one", "two"];

/// The switch of the first owner, and the boxes there that ping and answer.
const SWITCH: &str = "lan";
const PING: &str = "ping";
const PONG: &str = "pong";

/// The milliseconds between two requests.
const INTERVAL_MS: u64 = 2;

/// How long each part takes, after a pause.
const TIME: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(300);

/// How two owners share a host.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Owners {
    /// Their weights.
    pub weights: [u16; 2],
    /// Processors that each owner's fabric used while both had more work than processors.
    pub processors: [f64; 2],
    /// Round trips of the first owner's packets, from box to box through a switch, while the second does nothing.
    pub alone: RoundTrips,
    /// The same while the second owner has more work than processors.
    pub beside: RoundTrips,
}

/// Round trips.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RoundTrips {
    /// How many.
    pub count: u64,
    /// Their mean in microseconds.
    pub mean_us: f64,
    /// The longest in microseconds.
    pub max_us: f64,
}

/// Starts `program daemon` for the measurement, with these weights for its owners.
pub fn owners(program: &Path, weights: [u16; 2]) -> Result<Owners, MeasureError> {
    let folder = TemporaryFolder::new().map_err(MeasureError::Folder)?;
    let share = |place: usize| format!("--fabric-share={}={}", OWNERS[place], weights[place]);
    let cores = available_parallelism().map_or(1, |count| count.get());
    // As many workers as processors, so that each owner could use all of them.
    let options = vec!["--fabric-per-owner".into(), format!("--workers={cores}"), share(0), share(1)];
    let mut processes = Processes::new(program, folder.path()).with_options(options);
    processes.start().map_err(MeasureError::Daemon)?;
    let client = processes.client()?;
    create_switch(&client, SWITCH, owner(0)?)?;
    let pong = "FromDevice(0) -> Strip(14) -> CheckIPHeader -> ICMPPingResponder\n    \
                -> EtherEncap(0x0800, 02:00:00:00:00:02, 02:00:00:00:00:01) -> ToDevice(0);";
    let port = Some((SWITCH, "02:00:00:00:00:02"));
    create_box(
        &client,
        NewBox {
            name: PONG,
            owner: owner(0)?,
            port,
            configuration: pong.into(),
            ring: Ring::default(),
            sandbox: Sandbox::Auto,
        },
    )?;
    let alone = round_trips(&client)?;
    load(&client, 1, cores)?;
    let beside = round_trips(&client)?;
    load(&client, 0, cores)?;
    sleep(PAUSE);
    let (before, start) = (used(&client)?, Instant::now());
    sleep(TIME);
    let (after, time) = (used(&client)?, start.elapsed().as_secs_f64());
    let processors = [(after[0] - before[0]) / time, (after[1] - before[1]) / time];
    Ok(Owners { weights, processors, alone, beside })
}

/// Sends requests for a while.
fn round_trips(client: &Client) -> Result<RoundTrips, MeasureError> {
    let interval = INTERVAL_MS as f64 / 1e3;
    let configuration = format!(
        "p :: ICMPPingSource(10.0.0.1, 10.0.0.2, INTERVAL {interval}, VERBOSE false)\n    \
         -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> ToDevice(0);\n\
         FromDevice(0) -> Strip(14) -> CheckIPHeader -> c :: Counter -> p;"
    );
    let port = Some((SWITCH, "02:00:00:00:00:01"));
    create_box(
        client,
        NewBox {
            name: PING,
            owner: owner(0)?,
            port,
            configuration,
            ring: Ring::default(),
            sandbox: Sandbox::Auto,
        },
    )?;
    sleep(TIME);
    let trips = RoundTrips {
        count: number(client, PING, "c.count")?,
        mean_us: microseconds(read(client, PING, "p.rtt_avg")?)?,
        max_us: microseconds(read(client, PING, "p.rtt_max")?)?,
    };
    remove_box(client, PING)?;
    Ok(trips)
}

/// A time as handlers print it: `120us`, `0.0012s`.
fn microseconds(text: String) -> Result<f64, MeasureError> {
    let value = match text.strip_suffix("us") {
        Some(number) => number.parse().ok(),
        None => text.trim_end_matches('s').parse::<f64>().ok().map(|seconds| seconds * 1e6),
    };
    value.ok_or(MeasureError::NotANumber(text))
}

/// Starts as many boxes that always have work as there are processors.
fn load(client: &Client, place: usize, cores: usize) -> Result<(), MeasureError> {
    for number in 0..cores {
        let name = format!("load-{place}-{number}");
        let configuration = "InfiniteSource(LENGTH 60) -> Discard;".to_string();
        create_box(
            client,
            NewBox {
                name: &name,
                owner: owner(place)?,
                port: None,
                configuration,
                ring: Ring::default(),
                sandbox: Sandbox::Auto,
            },
        )?;
    }
    Ok(())
}

/// Seconds of processor time that the owners' fabrics have used.
fn used(client: &Client) -> Result<[f64; 2], MeasureError> {
    let host = client.ask(&operation::HOST, &[])?;
    let mut used = [0.0; 2];
    for (used, owner) in used.iter_mut().zip(OWNERS) {
        let own = |found: &Option<Owner>| found.as_ref().is_some_and(|found| found.as_str() == owner);
        let pid = host.fabrics.iter().find(|fabric| own(&fabric.owner)).map_or(0, |fabric| fabric.pid);
        // After the name, which ends with a bracket: user and system time are the 12th and 13th field.
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).map_err(MeasureError::Daemon)?;
        let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks: f64 = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
        *used = ticks / clock_ticks_per_second() as f64;
    }
    Ok(used)
}

fn owner(place: usize) -> Result<Owner, MeasureError> {
    OWNERS[place].parse().map_err(MeasureError::Name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_handlers_are_read() {
        let of = |text: &str| microseconds(text.into()).ok();
        assert_eq!(
            (of("120us"), of("0.0012s"), of("2s"), of("")),
            (Some(120.0), Some(1200.0), Some(2e6), None)
        );
    }
}
