//! `clickbox generate`: the capture that the demo and the tests run on.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::generate::capture;

/// What to make.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The file to write.
    file: PathBuf,
    /// The same seed gives the same capture.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many packets.
    #[arg(long, default_value_t = 2500)]
    packets: usize,
}

/// Makes the capture.
pub(crate) fn run(arguments: Arguments) -> ExitCode {
    let Arguments { file, seed, packets } = arguments;
    match std::fs::write(&file, capture(seed, packets)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", file.display());
            ExitCode::FAILURE
        }
    }
}
