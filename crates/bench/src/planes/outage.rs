//! Packet loss while the daemon is killed or upgraded. A stream at half of the measured throughput passes a switch. The
//! sender and the receiver count its packets; the difference is the loss.

use super::requests::{NewBox, create_box, create_switch, number, remove_box};
use crate::error::MeasureError;
use crate::kills::{Processes, Victim};
use crate::statistics::{Times, milliseconds};
use crate::temporary_folder::TemporaryFolder;
use api::client::Client;
use api::{Owner, Ring, Sandbox, Upgrade, operation};
use serde::Serialize;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The switch and the boxes.
const SWITCH: &str = "lan";
const SOURCE: &str = "source";
const SINK: &str = "sink";

/// The hardware addresses of source and sink.
const FROM: &str = "02:00:00:00:00:01";
const TO: &str = "02:00:00:00:00:02";

/// How long the most that arrives is measured, and each rate is tried.
const TRIAL_TIME: Duration = Duration::from_secs(1);

/// The lowest rate that is tried, in packets a second. A host that loses packets of it loses them at any rate.
const MIN_RATE: u64 = 1000;

/// The time between the start of a stream and the first interruption, and between two.
const PAUSE: Duration = Duration::from_millis(300);

/// How long a daemon may take to answer, and a stream beyond its time to end.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The pause between two attempts to read a handler.
const RETRY_PAUSE: Duration = Duration::from_micros(500);

/// The packets of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Stream {
    /// Packets that the source sent.
    pub sent: u64,
    /// Packets that the sink received.
    pub received: u64,
    /// Packets that were sent and not received.
    pub lost: u64,
}

/// A stream during which the daemon was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interrupted {
    /// How often.
    pub interruptions: u32,
    /// The packets.
    #[serde(flatten)]
    pub stream: Stream,
    /// From the start of each new daemon, or the answer of the one that is replaced, to a handler's value.
    pub answer_ms: Times,
}

/// What interruptions of the daemon cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outage {
    /// Packets a second from the source, through the switch, to the sink: the most that arrive when more are sent.
    pub capacity_pps: u64,
    /// Packets a second of which none is lost (throughput, RFC 2544): the highest of the rates that were tried. Each is
    /// three quarters of the one before. A source sends in bursts, and a burst that exceeds a ring is cut.
    pub throughput_pps: u64,
    /// Packets a second of the streams: half of that.
    pub rate_pps: u64,
    /// A stream of the same length without interruptions: what is lost here is not lost to the daemon's end.
    pub undisturbed: Stream,
    /// The daemon was killed by SIGKILL, and another one started at once.
    pub kills: Interrupted,
    /// The daemon was replaced by `clickbox upgrade`.
    pub upgrades: Interrupted,
}

/// Starts `program daemon` for the measurement. The daemon is interrupted `interruptions` times in each way.
pub fn outage(program: &Path, interruptions: u32) -> Result<Outage, MeasureError> {
    let folder = TemporaryFolder::new().map_err(MeasureError::Folder)?;
    let mut processes = Processes::new(program, folder.path());
    processes.start().map_err(MeasureError::Daemon)?;
    let client = processes.client()?;
    create_switch(&client, SWITCH, Owner::default())?;
    create(&client, SINK, TO, "FromDevice(0) -> c :: Counter -> Discard;".into())?;
    let capacity_pps = capacity(&client)?;
    let throughput_pps = throughput(&client, capacity_pps)?;
    let rate = (throughput_pps / 2).max(1);
    let (undisturbed, _) = stream(&client, rate, interruptions, |_| Ok(Duration::ZERO))?;
    let (killed, kill_times) = stream(&client, rate, interruptions, |client| {
        let daemon = processes.find(Victim::Daemon);
        processes.kill(Victim::Daemon, &daemon);
        let start = Instant::now();
        processes.start().map_err(MeasureError::Daemon)?;
        answer(client)?;
        Ok(start.elapsed())
    })?;
    let (upgraded, upgrade_times) = stream(&client, rate, interruptions, |client| {
        client.send(&operation::UPGRADE_DAEMON, &[], &Upgrade { program: None })?;
        let start = Instant::now();
        answer(client)?;
        Ok(start.elapsed())
    })?;
    let interrupted =
        |stream, times: Vec<f64>| Interrupted { interruptions, stream, answer_ms: Times::of(&times) };
    Ok(Outage {
        capacity_pps,
        throughput_pps,
        rate_pps: rate,
        undisturbed,
        kills: interrupted(killed, kill_times),
        upgrades: interrupted(upgraded, upgrade_times),
    })
}

/// Packets a second that arrive when the source sends as many as it can.
fn capacity(client: &Client) -> Result<u64, MeasureError> {
    create(client, SOURCE, FROM, source("InfiniteSource(LENGTH 46, BURST 32)"))?;
    sleep(PAUSE);
    let (before, start) = (count(client, SINK)?, Instant::now());
    sleep(TRIAL_TIME);
    let (after, time) = (count(client, SINK)?, start.elapsed());
    remove_box(client, SOURCE)?;
    Ok(((after - before) as f64 / time.as_secs_f64()) as u64)
}

/// The highest of the rates below this one at which nothing is lost.
fn throughput(client: &Client, capacity: u64) -> Result<u64, MeasureError> {
    let mut rate = capacity;
    while rate > MIN_RATE && send(client, rate, TRIAL_TIME, || Ok(()))?.lost > 0 {
        rate = rate / 4 * 3;
    }
    Ok(rate.max(MIN_RATE))
}

/// Sends a stream, and interrupts it. Returns the milliseconds of the interruptions.
fn stream(
    client: &Client,
    rate: u64,
    interruptions: u32,
    mut interrupt: impl FnMut(&Client) -> Result<Duration, MeasureError>,
) -> Result<(Stream, Vec<f64>), MeasureError> {
    let mut times = Vec::new();
    let stream = send(client, rate, PAUSE * (2 * interruptions + 2), || {
        for _ in 0..interruptions {
            sleep(PAUSE);
            times.push(milliseconds(interrupt(client)?));
        }
        Ok(())
    })?;
    Ok((stream, times))
}

/// Sends a stream for this time, and does something meanwhile.
fn send(
    client: &Client,
    rate: u64,
    time: Duration,
    meanwhile: impl FnOnce() -> Result<(), MeasureError>,
) -> Result<Stream, MeasureError> {
    let packets = (rate as f64 * time.as_secs_f64()) as u64;
    let before = count(client, SINK)?;
    create(client, SOURCE, FROM, source(&format!("RatedSource(RATE {rate}, LIMIT {packets}, LENGTH 46)")))?;
    let start = Instant::now();
    meanwhile()?;
    let mut sent = count(client, SOURCE)?;
    while sent < packets {
        if start.elapsed() > time + TIMEOUT {
            return Err(MeasureError::Late { what: "the end of a stream" });
        }
        sleep(PAUSE / 10);
        sent = count(client, SOURCE)?;
    }
    // The last packets may be on their way.
    sleep(PAUSE);
    let received = count(client, SINK)? - before;
    remove_box(client, SOURCE)?;
    Ok(Stream { sent, received, lost: sent.saturating_sub(received) })
}

/// Waits until the daemon answers for a box.
fn answer(client: &Client) -> Result<(), MeasureError> {
    let start = Instant::now();
    while let Err(error) = count(client, SINK) {
        if start.elapsed() > TIMEOUT {
            return Err(error);
        }
        sleep(RETRY_PAUSE);
    }
    Ok(())
}

/// Packets that a box has counted.
fn count(client: &Client, of: &str) -> Result<u64, MeasureError> {
    number(client, of, "c.count")
}

fn source(generator: &str) -> String {
    format!(
        "{generator} -> EtherEncap(0x0800, {FROM}, {TO}) -> c :: Counter -> ToDevice(0);\n\
         FromDevice(0) -> Discard;"
    )
}

/// The longest rings: source and sink take turns of some milliseconds on one processor.
fn ring() -> Ring {
    Ring::try_from(2048).expect("a length that rings have")
}

fn create(client: &Client, of: &str, mac: &str, configuration: String) -> Result<(), MeasureError> {
    let owner = Owner::default();
    create_box(
        client,
        NewBox {
            name: of,
            owner,
            port: Some((SWITCH, mac)),
            configuration,
            ring: ring(),
            sandbox: Sandbox::Auto,
        },
    )
}
