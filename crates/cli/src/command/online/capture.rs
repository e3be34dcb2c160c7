//! `clickbox capture`: the packets of a port.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use api::{CapturePoint, CaptureQuery, operation};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::online::{self, Connection, Failure};

/// Capture the packets that pass a port, in the format that tcpdump and Wireshark read.
///
/// No packet waits for the capture: what can't be written fast enough is left out. Ctrl-C ends it.
#[derive(Args)]
#[command(after_help = "Example: clickbox capture fw --port 0 -w - | tcpdump -n -r -")]
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
