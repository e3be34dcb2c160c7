//! `clickbox capture`: captures the packets of a port.

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

use crate::error::CommandError;
use crate::number_format::count;
use crate::online::{self, Connection};
use crate::output;

/// Capture the packets of a port for tcpdump or Wireshark.
///
/// A capture never delays packets: those that can't be written fast enough are left out. Ctrl-C ends the capture.
#[derive(Args)]
#[command(
    after_help = "Examples: clickbox capture fw --port 0 -w - | tcpdump -n -r -\n          clickbox capture lan/tap0 --count 10 --json"
)]
pub(crate) struct Arguments {
    /// Port to capture: BOX:N, SWITCH/PORT, or a box, which means its port 0 unless --port is given.
    #[arg(value_name = "BOX|BOX:N|SWITCH/PORT", add = ArgValueCompleter::new(online::capture_points))]
    point: String,
    /// Number of the box's port.
    #[arg(long, value_name = "N")]
    port: Option<u8>,
    /// Capture file to write, or `-` for standard output.
    #[arg(long, short = 'w', value_name = "FILE", default_value = "-")]
    write: PathBuf,
    /// Keep at most this many bytes of each packet.
    #[arg(long, short = 's', value_name = "BYTES")]
    snap: Option<u32>,
    /// Print no messages on standard error.
    #[arg(long, short = 'q')]
    quiet: bool,
    /// Print a JSON object for each packet instead: {"time", "length", "bytes" in hexadecimal}.
    #[arg(long, conflicts_with = "write")]
    json: bool,
    /// Exit after this many packets.
    #[arg(long, short = 'c', value_name = "N")]
    count: Option<u64>,
    #[command(flatten)]
    daemon: Connection,
}

/// Where to capture.
fn point(arguments: &Arguments) -> Result<CapturePoint, CommandError> {
    let point = &arguments.point;
    let text = match arguments.port {
        None if point.contains([':', '/']) => point.clone(),
        port => format!("{point}:{}", port.unwrap_or(0)),
    };
    text.parse().map_err(|cause| CommandError::CapturePoint { text: point.clone(), cause })
}

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    let query = CaptureQuery { port: point(arguments)?, snap: arguments.snap, count: arguments.count };
    // The file is created or truncated only once the capture has started.
    let from = arguments.daemon.client()?.call(&operation::CAPTURE, &[], &query, &())?;
    let to = match arguments.json {
        true => None,
        false => Some(BufWriter::new(online::destination(&arguments.write, "a capture is binary data")?)),
    };
    let is_quiet = arguments.quiet || arguments.json;
    let output_state = Arc::new(Mutex::new(CaptureOutput { to, count: 0, is_quiet }));
    end_by_signal(&output_state);
    if arguments.json || arguments.write.as_os_str() == "-" {
        let output_state = output_state.clone();
        // The reader is gone, so only the number of packets is printed.
        output::end_with_reader(move || {
            let _ = locked(&output_state).end();
        });
    }
    if !is_quiet {
        eprintln!("clickbox: capturing at {}; press Ctrl-C to stop", query.port);
    }
    online::written(copy(from, &output_state), "the capture ended")?;
    online::written(locked(&output_state).end(), "the capture ended")?;
    Ok(ExitCode::SUCCESS)
}

/// A packet as JSON.
#[derive(Serialize)]
struct CapturedPacket {
    /// Time of the packet.
    time: Time,
    /// Length of the packet.
    length: u32,
    /// The bytes that were kept.
    bytes: String,
}

/// The state of a capture.
struct CaptureOutput {
    /// Where packets are written; `None` prints JSON on standard output.
    to: Option<BufWriter<Box<dyn Write + Send>>>,
    count: u64,
    is_quiet: bool,
}

fn locked(output_state: &Mutex<CaptureOutput>) -> MutexGuard<'_, CaptureOutput> {
    output_state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CaptureOutput {
    /// Writes a packet.
    fn write_packet(&mut self, record: [u8; 16], bytes: &[u8]) -> io::Result<()> {
        self.count += 1;
        if let Some(to) = &mut self.to {
            return to.write_all(&record).and_then(|()| to.write_all(bytes));
        }
        let (words, _) = record.as_chunks::<4>();
        let [seconds, nanoseconds, _, length] = [0, 1, 2, 3].map(|word| u32::from_le_bytes(words[word]));
        let time = SystemTime::UNIX_EPOCH + Duration::new(seconds.into(), nanoseconds.min(999_999_999));
        let bytes = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        output::json_line(&CapturedPacket { time: Time::from(time), length, bytes });
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.as_mut().map_or(Ok(()), Write::flush)
    }

    /// Flushes the output, and prints the number of packets.
    fn end(&mut self) -> io::Result<()> {
        if !self.is_quiet {
            eprintln!("clickbox: {} captured", count(self.count, "packet"));
        }
        self.flush()
    }
}

/// Passes packets on as they arrive, so that a reader sees each at once. A truncated last packet is left out.
fn copy(from: impl Read, output_state: &Mutex<CaptureOutput>) -> io::Result<()> {
    let mut from = BufReader::with_capacity(64 << 10, from);
    let mut header = [0; 24];
    from.read_exact(&mut header)?;
    if let Some(to) = &mut locked(output_state).to {
        to.write_all(&header)?;
    }
    loop {
        // Packets that arrived together are written together.
        if from.buffer().is_empty() {
            locked(output_state).flush()?;
        }
        // Seconds, nanoseconds, captured length, original length.
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
        locked(output_state).write_packet(record, &bytes)?;
    }
}

/// Ends the program between two packets at the first interrupt, and at once at the second.
fn end_by_signal(output_state: &Arc<Mutex<CaptureOutput>>) {
    let interrupted = Arc::new(AtomicBool::new(false));
    let Ok((mut end, raised)) = UnixStream::pair() else { return };
    for signal in [SIGINT, SIGTERM] {
        // The order matters: at the first signal the flag is not set yet, so the signal only sets it. Registration
        // fails only for signals that can't be caught.
        let _ = signal_hook::flag::register_conditional_default(signal, interrupted.clone());
        let _ = signal_hook::flag::register(signal, interrupted.clone());
        let _ = raised.try_clone().and_then(|raised| signal_hook::low_level::pipe::register(signal, raised));
    }
    let output_state = output_state.clone();
    std::thread::spawn(move || {
        if end.read_exact(&mut [0]).is_ok() {
            let mut output_state = locked(&output_state);
            // The process ends here, so a failed write can't be reported.
            let _ = output_state.end();
            std::process::exit(0);
        }
    });
}
