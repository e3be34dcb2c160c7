//! `clickbox capture`: the packets of a port.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use api::{CapturePoint, CaptureQuery, Time, operation};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::live::count;
use crate::online::{self, CommandError, Connection};
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
    #[arg(value_name = "BOX|BOX:N|SWITCH/PORT", add = ArgValueCompleter::new(online::places))]
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
    /// Say nothing about it on standard error.
    #[arg(long, short = 'q')]
    quiet: bool,
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
fn point(arguments: &Arguments) -> Result<CapturePoint, CommandError> {
    let place = &arguments.place;
    let text = match arguments.port {
        None if place.contains([':', '/']) => place.clone(),
        port => format!("{place}:{}", port.unwrap_or(0)),
    };
    text.parse().map_err(|error| CommandError::Usage(format!("{place}: {error}")))
}

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    let query = CaptureQuery { port: point(arguments)?, snap: arguments.snap, count: arguments.count };
    // A file is made, or emptied, only if there is something to capture.
    let from = arguments.daemon.client()?.call(&operation::CAPTURE, &[], &query, &())?;
    let to = match arguments.json {
        true => None,
        false => Some(BufWriter::new(online::destination(&arguments.write, "a capture is no text")?)),
    };
    let is_quiet = arguments.quiet || arguments.json;
    let progress = Arc::new(Mutex::new(Progress { to, count: 0, is_quiet }));
    end_by_signal(&progress);
    if !is_quiet {
        eprintln!("clickbox: capturing at {}, Ctrl-C ends it", query.port);
    }
    online::written(copy(from, &progress), "the capture ended")?;
    online::written(locked(&progress).end(), "the capture ended")?;
    Ok(ExitCode::SUCCESS)
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

/// How far a capture is.
struct Progress {
    /// Where packets go; nothing: to standard output, as JSON.
    to: Option<BufWriter<Box<dyn Write + Send>>>,
    count: u64,
    is_quiet: bool,
}

fn locked(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Progress {
    /// Hands a packet on.
    fn take(&mut self, record: [u8; 16], bytes: &[u8]) -> io::Result<()> {
        self.count += 1;
        if let Some(to) = &mut self.to {
            return to.write_all(&record).and_then(|()| to.write_all(bytes));
        }
        let (words, _) = record.as_chunks::<4>();
        let [seconds, nanoseconds, _, length] = [0, 1, 2, 3].map(|word| u32::from_le_bytes(words[word]));
        let time = SystemTime::UNIX_EPOCH + Duration::new(seconds.into(), nanoseconds.min(999_999_999));
        let bytes = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        output::json_line(&Captured { time: Time::from(time), length, bytes });
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.as_mut().map_or(Ok(()), Write::flush)
    }

    /// Writes what is still held back, and tells how many packets there were.
    fn end(&mut self) -> io::Result<()> {
        if !self.is_quiet {
            eprintln!("clickbox: {} captured", count(self.count, "packet"));
        }
        self.flush()
    }
}

/// Hands packets on as they come: whoever reads them wants to see each at once. One that is cut off at the end is left
/// out.
fn copy(from: impl Read, progress: &Mutex<Progress>) -> io::Result<()> {
    let mut from = BufReader::with_capacity(64 << 10, from);
    let mut header = [0; 24];
    from.read_exact(&mut header)?;
    if let Some(to) = &mut locked(progress).to {
        to.write_all(&header)?;
    }
    loop {
        // What came together is written together.
        if from.buffer().is_empty() {
            locked(progress).flush()?;
        }
        // Seconds, nanoseconds, the bytes that follow, those that the packet had.
        let mut record = [0; 16];
        match from.read_exact(&mut record) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            result => result?,
        }
        let (words, _) = record.as_chunks::<4>();
        let kept = u32::from_le_bytes(words[2]);
        let mut bytes = Vec::new();
        if from.by_ref().take(kept.into()).read_to_end(&mut bytes)? < kept as usize {
            return Ok(());
        }
        locked(progress).take(record, &bytes)?;
    }
}

/// Ends the program between two packets when it is interrupted, and at once when it is interrupted again.
fn end_by_signal(progress: &Arc<Mutex<Progress>>) {
    let interrupted = Arc::new(AtomicBool::new(false));
    let Ok((mut end, raised)) = UnixStream::pair() else { return };
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag down and only raises it. Registering fails for signals that
        // can't be caught only.
        let _ = signal_hook::flag::register_conditional_default(signal, interrupted.clone());
        let _ = signal_hook::flag::register(signal, interrupted.clone());
        let _ = raised.try_clone().and_then(|raised| signal_hook::low_level::pipe::register(signal, raised));
    }
    let progress = progress.clone();
    std::thread::spawn(move || {
        if end.read_exact(&mut [0]).is_ok() {
            let mut progress = locked(&progress);
            // Nobody is left to be told that the rest can't be written.
            let _ = progress.end();
            std::process::exit(0);
        }
    });
}
