//! A configuration in a plain process that writes a capture of its packets to its standard output, and is controlled by a socket.

use crate::boxes::test_bed::REPLY_TIMEOUT;
use crate::error::MeasureError;
use crate::temporary_folder::TemporaryFolder;
use capture::Decoder;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time limit of a write. One of many rules takes about a second.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// The code of a reply to a command that was successful, and how other lines of such a reply begin.
const SUCCESS: &str = "200 ";
const MORE: &str = "200-";

/// A plain process with traffic. It is killed when this is dropped.
pub(super) struct PlainProcess {
    child: Child,
    control: BufReader<UnixStream>,
    /// Reads what the process sends; returns the longest time between two packets.
    reader: Option<JoinHandle<Duration>>,
    folder: TemporaryFolder,
}

impl PlainProcess {
    /// Starts `program click` with a configuration that serves a control socket at the path that it is given. Waits for its first
    /// packet.
    pub(super) fn start(
        program: &Path,
        configuration: impl FnOnce(&Path) -> String,
    ) -> Result<Self, MeasureError> {
        let folder = TemporaryFolder::new().map_err(MeasureError::Folder)?;
        let (file, socket) = (folder.path().join("firewall.click"), control_path(&folder));
        std::fs::write(&file, configuration(&socket)).map_err(MeasureError::Folder)?;
        let spawned = Command::new(program)
            .args(["click", "-R"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = spawned.map_err(MeasureError::PlainProcess)?;
        let (sender, first) = channel();
        let reader =
            child.stdout.take().map(|output| std::thread::spawn(move || longest_gap(output, &sender)));
        let started = first
            .recv_timeout(WRITE_TIMEOUT)
            .map_err(|_| MeasureError::Late { what: "the first packet of a plain process" });
        let connected = started.and_then(|()| connect(&socket).map_err(MeasureError::PlainProcess));
        match connected {
            Ok(control) => Ok(Self { child, control, reader, folder }),
            Err(error) => {
                end(&mut child);
                Err(error)
            }
        }
    }

    /// The path of its control socket.
    pub(super) fn control_path(&self) -> PathBuf {
        control_path(&self.folder)
    }

    /// Writes a handler, and waits for the reply.
    pub(super) fn write(&mut self, handler: &str, value: &str) -> Result<(), MeasureError> {
        let command = format!("WRITEDATA {handler} {}\n{value}", value.len());
        self.control.get_mut().write_all(command.as_bytes()).map_err(MeasureError::PlainProcess)?;
        loop {
            let mut line = String::new();
            self.control.read_line(&mut line).map_err(MeasureError::PlainProcess)?;
            if line.starts_with(SUCCESS) {
                return Ok(());
            }
            if !line.starts_with(MORE) {
                return Err(MeasureError::WriteRefused(line.trim_end().escape_debug().to_string()));
            }
        }
    }

    /// Ends it. Returns the longest time between two packets.
    pub(super) fn end(mut self) -> Result<Duration, MeasureError> {
        end(&mut self.child);
        let longest = self.reader.take().and_then(|reader| reader.join().ok());
        longest.ok_or(MeasureError::Late { what: "packets of a plain process" })
    }
}

impl Drop for PlainProcess {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn control_path(folder: &TemporaryFolder) -> PathBuf {
    folder.path().join("control")
}

/// Ends a process, unless it has ended.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Connects to a control socket, and reads its greeting.
fn connect(path: &Path) -> std::io::Result<BufReader<UnixStream>> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(WRITE_TIMEOUT))?;
    stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
    let mut control = BufReader::new(stream);
    control.read_line(&mut String::new())?;
    Ok(control)
}

/// Reads a capture to its end. Returns the longest time between two packets. Tells when there is a first one.
fn longest_gap(mut output: impl Read, first: &Sender<()>) -> Duration {
    let (mut decoder, mut longest, mut last) = (Decoder::new(), 0, None);
    while let Ok(count @ 1..) = output.read(decoder.space()) {
        decoder.filled(count);
        while let Ok(Some(record)) = decoder.record() {
            match last.replace(record.time_ns) {
                Some(last) => longest = longest.max(record.time_ns - last),
                // The other end waits, unless it has failed.
                None => drop(first.send(())),
            }
        }
    }
    Duration::from_nanos(u64::try_from(longest).unwrap_or_default())
}
