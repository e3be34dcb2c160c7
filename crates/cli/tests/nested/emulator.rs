//! Runs the machine, with a time limit.

use crate::packages::Packages;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Long enough for a loaded machine; normally a run takes some minutes.
const TIMEOUT: Duration = Duration::from_secs(1800);

/// A process that is killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has usually exited by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a machine with these files and kernel options to its end; returns its console output.
pub(crate) fn run(packages: &Packages, files: &Path, options: &str) -> String {
    let console = files.with_file_name(format!("console-{options}"));
    let mut command = packages.emulator();
    command
        .args(["-accel", "tcg,thread=multi", "-cpu", "EPYC", "-smp", "2", "-m", "3G"])
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
    while running.0.try_wait().expect("the emulator's state").is_none() && start.elapsed() < TIMEOUT {
        std::thread::sleep(Duration::from_millis(100));
    }
    let log = fs::read(&console).expect("what the machine said");
    String::from_utf8_lossy(&log).into_owned()
}
