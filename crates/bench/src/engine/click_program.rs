//! Runs a Click-compatible program on a configuration and reads from it how long its packets took.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Packets of the first run, which only finds out how many are worth measuring.
const FIRST: u64 = 100_000;
/// The most packets of a run.
const MOST: u64 = 100_000_000;
/// How often a program's end is looked for.
const LOOK: Duration = Duration::from_millis(1);

/// Why a program could not be measured.
#[derive(Debug)]
pub enum Trouble {
    /// It could not be started, or its output not read.
    Start(std::io::Error),
    /// It failed, and said this.
    Failed(String),
    /// It took longer than this.
    Late(Duration),
    /// It did not say how long it took.
    Silent,
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Start(error) => write!(f, "cannot be started: {error}"),
            Trouble::Failed(text) => write!(f, "failed: {}", text.trim_end()),
            Trouble::Late(patience) => write!(f, "takes longer than {} s", patience.as_secs()),
            Trouble::Silent => f.write_str("does not say with -t how long it took"),
        }
    }
}

/// A program with Click's command line.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    /// What comes before Click's own options.
    prefix: Vec<&'static str>,
    /// A run that takes longer is ended: a program that hangs must not hang the measurement.
    patience: Duration,
}

impl Program {
    /// This program.
    pub fn own(patience: Duration) -> std::io::Result<Program> {
        Ok(Program { path: std::env::current_exe()?, prefix: vec!["click"], patience })
    }

    /// Another one.
    pub fn other(path: &Path, patience: Duration) -> Program {
        Program { path: path.to_path_buf(), prefix: Vec::new(), patience }
    }

    /// How many packets take about `time`, after `warm` packets.
    pub fn calibrate(
        &self,
        file: &Path,
        parameters: &[String],
        warm: u64,
        time: Duration,
    ) -> Result<u64, Trouble> {
        let count = warm.max(FIRST);
        let seconds = self.run(file, parameters, count)?.max(1e-4);
        let wanted = count as f64 * time.as_secs_f64() / seconds;
        Ok((wanted as u64).clamp(FIRST, MOST))
    }

    /// Nanoseconds of processor time a packet, over `count` packets after `warm` ones.
    pub fn measure(&self, file: &Path, parameters: &[String], warm: u64, count: u64) -> Result<f64, Trouble> {
        let start = if warm > 0 { self.run(file, parameters, warm)? } else { 0.0 };
        let all = self.run(file, parameters, warm + count)?;
        Ok((all - start).max(0.0) * 1e9 / count as f64)
    }

    /// Runs so many packets; the seconds of processor time from the end of the start-up on.
    fn run(&self, file: &Path, parameters: &[String], count: u64) -> Result<f64, Trouble> {
        let mut child = Command::new(&self.path)
            .args(&self.prefix)
            .arg("-t")
            .arg(file)
            .args(parameters)
            .arg(format!("LIMIT={count}"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(Trouble::Start)?;
        let started = Instant::now();
        let status = loop {
            match child.try_wait().map_err(Trouble::Start)? {
                Some(status) => break status,
                None if started.elapsed() > self.patience => {
                    // It may have ended by itself meanwhile.
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(Trouble::Late(self.patience));
                }
                None => std::thread::sleep(LOOK),
            }
        };
        let mut text = String::new();
        for pipe in [
            child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read>),
            child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read>),
        ]
        .into_iter()
        .flatten()
        {
            // A program prints a line or two here; more than a pipe holds would end as `Late`.
            let mut bytes = Vec::new();
            pipe.take(1 << 16).read_to_end(&mut bytes).map_err(Trouble::Start)?;
            text += &String::from_utf8_lossy(&bytes);
        }
        if !status.success() {
            return Err(Trouble::Failed(if text.is_empty() { status.to_string() } else { text }));
        }
        text.lines().find_map(seconds).ok_or(Trouble::Silent)
    }
}

/// The seconds in a line of `-t`: `USERu SYSTEMs WALL`.
fn seconds(line: &str) -> Option<f64> {
    let mut words = line.split_whitespace();
    let user: f64 = words.next()?.strip_suffix('u')?.parse().ok()?;
    let system: f64 = words.next()?.strip_suffix('s')?.parse().ok()?;
    Some(user + system)
}

/// The middle of some numbers; 0 of none.
pub fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    match numbers.len() {
        0 => 0.0,
        count if count % 2 == 1 => numbers[count / 2],
        count => (numbers[count / 2 - 1] + numbers[count / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        assert_eq!(seconds("0.310u 0.050s 0:00.95"), Some(0.36));
        assert_eq!(seconds("warning: 3"), None);
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0]), 2.5);
    }
}
