//! Runs the machine, with a time limit.

use crate::packages::Packages;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Long enough for a loaded machine; normally a run takes a minute or two.
const TIMEOUT: Duration = Duration::from_secs(1200);

/// A machine that prints nothing for this long hangs. No program may take longer.
const MAX_SILENCE: Duration = Duration::from_secs(crate::LONGEST as u64 + 60);

/// The same before the first box runs.
const MAX_FIRST_SILENCE: Duration = Duration::from_secs(150);

/// Machines that are started if they hang before the first box runs.
const ATTEMPTS: u32 = 3;

/// A process that is killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has usually exited by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a machine with these files and kernel options to its end; returns its console output. `first` is a line that it
/// prints when the first box runs.
///
/// The kernel changes its own instructions then. QEMU 7.2 sometimes keeps executing the old ones, above all if it emulates
/// both processors at once, and the machine hangs. So it emulates them in turn, and a machine that hangs there is
/// started again.
pub(crate) fn run(packages: &Packages, files: &Path, options: &str, first: &str) -> String {
    for attempt in 1.. {
        let (log, hangs) = run_once(packages, files, options, first);
        if !hangs || attempt == ATTEMPTS || log.contains(first) {
            return log;
        }
        println!(
            "{log}\nattempt {attempt}: the emulated machine hangs before its first box; starting it again"
        );
    }
    unreachable!("the loop ends with the last attempt")
}

/// Also returns whether the machine hung.
fn run_once(packages: &Packages, files: &Path, options: &str, first: &str) -> (String, bool) {
    let console = files.with_file_name(format!("console-{options}"));
    let mut command = packages.emulator();
    command
        .args(["-accel", "tcg,thread=single", "-cpu", "EPYC", "-smp", "2", "-m", "3G"])
        .args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio"])
        .arg("-kernel")
        .arg(packages.kernel())
        .arg("-initrd")
        .arg(files)
        .args(["-append", &format!("console=ttyS0 panic=-1 quiet {options}")])
        .stdin(Stdio::null())
        .stdout(File::create(&console).expect("a file"))
        // QEMU warns about each feature of that CPU that it does not emulate.
        .stderr(Stdio::null());
    let mut running = Running(command.spawn().expect("the emulator starts"));
    let start = Instant::now();
    let (mut log, mut length, mut last) = (String::new(), 0, start);
    loop {
        let has_ended = running.0.try_wait().expect("the emulator's state").is_some();
        let present = fs::read(&console).expect("what the machine said");
        if present.len() != length {
            log = String::from_utf8_lossy(&present).into_owned();
            (length, last) = (present.len(), Instant::now());
        }
        let limit = if log.contains(first) { MAX_SILENCE } else { MAX_FIRST_SILENCE };
        let hangs = start.elapsed() >= TIMEOUT || last.elapsed() >= limit;
        if has_ended || hangs {
            return (log, hangs && !has_ended);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
