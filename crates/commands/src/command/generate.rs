//! `clickbox generate`: writes the capture that the demo and the tests read.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use crate::error::{CommandError, FileError};
use crate::generate::capture;
use crate::output;

/// Generate a capture file of mixed traffic.
#[derive(clap::Args)]
#[command(after_help = "Example: clickbox generate --packets 100000 mix.pcap")]
pub(crate) struct Arguments {
    /// Capture file to write.
    file: PathBuf,
    /// Random seed. The same seed gives the same capture.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of packets.
    #[arg(long, default_value_t = 2500)]
    packets: usize,
    /// Print JSON: {"file", "packets", "bytes"}.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, CommandError> {
    let Arguments { file, seed, packets, json } = arguments;
    let capture = capture(seed, packets);
    std::fs::write(&file, &capture).map_err(|error| CommandError::Write(FileError::new(&file, error)))?;
    if json {
        output::json(&json!({ "file": file, "packets": packets, "bytes": capture.len() }));
    }
    Ok(ExitCode::SUCCESS)
}
