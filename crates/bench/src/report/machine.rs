//! The machine that the figures were measured on.

use serde::Serialize;
use std::fs::read_to_string;
use std::time::{SystemTime, UNIX_EPOCH};

/// The machine, as it describes itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Number of usable cores.
    pub cores: usize,
    /// Memory, in megabytes.
    pub memory_mb: usize,
    /// The kernel's version.
    pub kernel: String,
    /// The one-minute load average at the start. If it exceeds the number of cores, rates are too low and times too
    /// long.
    pub load: f64,
    /// The start time, in seconds since 1970 (UTC).
    pub time: u64,
}

impl Machine {
    /// This machine. Unknown fields are empty.
    pub fn this() -> Self {
        let file = |path: &str| read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().trim_start_matches([' ', '\t', ':']).trim().to_string()
        };
        let memory = field(&file("/proc/meminfo"), "MemTotal");
        let kilobytes = memory.split(' ').next().and_then(|number| number.parse::<usize>().ok());
        let load = file("/proc/loadavg").split(' ').next().and_then(|number| number.parse().ok());
        Self {
            processor: field(&file("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mb: kilobytes.unwrap_or_default() / 1024,
            kernel: file("/proc/sys/kernel/osrelease").trim().to_string(),
            load: load.unwrap_or_default(),
            time: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
        }
    }
}
