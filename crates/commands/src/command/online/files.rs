//! `clickbox files`: the files that a box writes.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use api::{BoxName, WrittenFile, operation};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::error::CommandError;
use crate::online::{self, Column, Connection, Table};
use crate::output;

/// List the files that a box has written, or fetch one.
///
/// The daemon keeps what elements such as ToDump write until the box is removed: at most 16 files and 64 MB per box.
/// Records beyond these limits, or written too fast, are dropped and counted as LOST.
#[derive(Args)]
#[command(after_help = "Example: clickbox files fw out.pcap | tcpdump -n -r -")]
pub(crate) struct Arguments {
    /// Name of the box.
    #[arg(value_name = "BOX", add = ArgValueCompleter::new(online::boxes))]
    name: BoxName,
    /// File to fetch, by its name in the configuration. Without it, list the files.
    #[arg(add = ArgValueCompleter::new(online::written_files))]
    file: Option<String>,
    /// Where to write the file, or `-` for standard output.
    #[arg(long, short = 'w', value_name = "PATH", default_value = "-", requires = "file")]
    write: PathBuf,
    /// Print JSON: a list of files.
    #[arg(long, conflicts_with = "file")]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

const COLUMNS: &[Column] = &[Column::flexible("FILE", 10), Column::number("BYTES"), Column::number("LOST")];

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    let client = arguments.daemon.client()?;
    let name = arguments.name.as_str();
    if let Some(file) = &arguments.file {
        let mut contents = client.call(&operation::FILE, &[name, file], &operation::Nothing, &())?;
        let mut to = online::destination(&arguments.write, "the file may be binary data")?;
        online::written(io::copy(&mut contents, &mut to).map(drop), "the file could not be copied")?;
        return Ok(ExitCode::SUCCESS);
    }
    let files = client.ask(&operation::FILES, &[name])?;
    if arguments.json {
        output::json(&files);
    } else {
        let row = |file: &WrittenFile| {
            let number = |size: api::Size| crate::number_format::grouped(size.0);
            vec![online::line(&file.name), number(file.bytes), number(file.lost)]
        };
        let table = Table { columns: COLUMNS, rows: files.iter().map(row).collect() };
        online::print(&table, &format!("box {name} has written no files"));
    }
    Ok(ExitCode::SUCCESS)
}
