//! `clickbox generate`: writes the capture that the demo and the tests read.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use crate::generate::capture;
use crate::output;
use crate::source::system_message;

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
pub(crate) fn run(arguments: Arguments) -> ExitCode {
    let Arguments { file, seed, packets, json } = arguments;
    let capture = capture(seed, packets);
    match std::fs::write(&file, &capture) {
        Ok(()) => {
            if json {
                output::json(&json!({ "file": file, "packets": packets, "bytes": capture.len() }));
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("clickbox: {}: {}", file.display(), system_message(&error));
            ExitCode::FAILURE
        }
    }
}
