//! `clickbox capture`: the packets of a port.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use api::{CapturePoint, CaptureQuery, Time, operation};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use crate::online::{self, Connection, Failure};
use crate::output;

/// Capture the packets that pass a port, in the format that tcpdump and Wireshark read.
///
/// No packet waits for the capture: what can't be written fast enough is left out. Ctrl-C ends it.
#[derive(Args)]
#[command(
    after_help = "Examples: clickbox capture fw --port 0 -w - | tcpdump -n -r -\n          clickbox capture lan/tap0 --count 10 --json"
)]
pub(crate) struct Arguments {
    /// A box (with --port, else its port 0), BOX:N, or SWITCH/PORT.
    #[arg(value_name = "BOX|BOX:N|SWITCH/PORT", add = ArgValueCompleter::new(online::boxes))]
    place: String,
    /// The number of the box's port.
    #[arg(long, value_name = "N")]
    port: Option<u8>,
    /// The file to write; `-` is standard output.
    #[arg(long, short = 'w', value_name = "FILE", default_value = "-")]
    write: PathBuf,
    /// Keep so many bytes of each packet.
    #[arg(long, short = 's', value_name = "BYTES")]
    snap: Option<u32>,
    /// Print JSON instead: an object a packet, {"time", "length", "bytes" in hexadecimal digits}.
    #[arg(long, conflicts_with = "write")]
    json: bool,
    /// End after so many packets.
    #[arg(long, short = 'c', value_name = "N")]
    count: Option<u64>,
    #[command(flatten)]
    daemon: Connection,
}

/// Where to capture.
fn point(arguments: &Arguments) -> Result<CapturePoint, Failure> {
    let place = &arguments.place;
    let text = match arguments.port {
        None if place.contains([':', '/']) => place.clone(),
        port => format!("{place}:{}", port.unwrap_or(0)),
    };
    text.parse().map_err(|error| Failure::Usage(format!("{place}: {error}")))
}

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let query = CaptureQuery { port: point(arguments)?, snap: arguments.snap, count: arguments.count };
    if arguments.json {
        let capture = arguments.daemon.client()?.call(&operation::CAPTURE, &[], &query, &())?;
        let told = tell(capture);
        return told
            .map(|()| ExitCode::SUCCESS)
            .map_err(|error| Failure::Other(format!("the capture ended: {error}")));
    }
    let is_standard = arguments.write.as_os_str() == "-";
    if is_standard && io::stdout().is_terminal() {
        let text = "a capture is no text for a terminal: write it to a file (-w FILE), or pipe it into `tcpdump -r -`";
        return Err(Failure::Usage(text.into()));
    }
    let capture = arguments.daemon.client()?.call(&operation::CAPTURE, &[], &query, &())?;
    let copied = if is_standard {
        copy(capture, io::stdout().lock())
    } else {
        let file = File::create(&arguments.write).map_err(|error| Failure::file(&arguments.write, error))?;
        copy(capture, file)
    };
    match copied {
        // Who read it has had enough.
        Err(error) if is_standard && error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Failure::Other(format!("the capture ended: {error}"))),
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}

/// A packet as JSON.
#[derive(Serialize)]
struct Captured {
    /// When it passed.
    time: Time,
    /// Bytes that it has.
    length: u32,
    /// Those that were kept.
    bytes: String,
}

/// Prints packets as they come.
fn tell(mut from: impl Read) -> io::Result<()> {
    // A header of 24 bytes; of each packet seconds, nanoseconds, the bytes that follow, those that it had.
    from.read_exact(&mut [0; 24])?;
    let mut record = [0; 16];
    loop {
        match from.read_exact(&mut record) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            result => result?,
        }
        let (words, _) = record.as_chunks::<4>();
        let [seconds, nanoseconds, kept, length] = [0, 1, 2, 3].map(|word| u32::from_le_bytes(words[word]));
        let mut bytes = Vec::new();
        if from.by_ref().take(kept.into()).read_to_end(&mut bytes)? < kept as usize {
            return Ok(());
        }
        let time = SystemTime::UNIX_EPOCH + Duration::new(seconds.into(), nanoseconds.min(999_999_999));
        let bytes = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        output::json_line(&Captured { time: Time::from(time), length, bytes });
    }
}

/// Copies what comes as it comes: whoever reads it wants to see each packet at once.
fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut bytes = vec![0; 64 << 10];
    loop {
        match from.read(&mut bytes) {
            Ok(0) => return to.flush(),
            Ok(count) => {
                to.write_all(bytes.get(..count).unwrap_or_default())?;
                to.flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
