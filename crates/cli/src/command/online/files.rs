//! `clickbox files`: what a box writes with `ToDump` and its like.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use api::{BoxName, WrittenFile, operation};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::online::{self, Column, CommandError, Connection, Table};
use crate::output;

/// List the files that a box writes, or fetch one.
///
/// What ToDump and its like write in a box, the daemon keeps as long as the box is there: at most 16 files and 64 MB a
/// box. What a box writes too fast or too much is left out, in whole records, and counted as LOST.
#[derive(Args)]
#[command(after_help = "Example: clickbox files fw out.pcap | tcpdump -n -r -")]
pub(crate) struct Arguments {
    /// The box.
    #[arg(value_name = "BOX", add = ArgValueCompleter::new(online::boxes))]
    name: BoxName,
    /// The file to fetch, by the name that the configuration gives it; without it they are listed.
    #[arg(add = ArgValueCompleter::new(online::written_files))]
    file: Option<String>,
    /// Where to write it; `-` is standard output.
    #[arg(long, short = 'w', value_name = "PATH", default_value = "-", requires = "file")]
    write: PathBuf,
    /// Print JSON: a list of files.
    #[arg(long, conflicts_with = "file")]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

const COLUMNS: &[Column] = &[Column::long("FILE", 10), Column::number("BYTES"), Column::number("LOST")];

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    let client = arguments.daemon.client()?;
    let name = arguments.name.as_str();
    if let Some(file) = &arguments.file {
        let mut contents = client.call(&operation::FILE, &[name, file], &operation::Nothing, &())?;
        let mut to = online::destination(&arguments.write, "what a box wrote may be no text")?;
        online::written(io::copy(&mut contents, &mut to).map(drop), "the file could not be copied")?;
        return Ok(ExitCode::SUCCESS);
    }
    let files = client.ask(&operation::FILES, &[name])?;
    if arguments.json {
        output::json(&files);
    } else {
        let row = |file: &WrittenFile| {
            let number = |size: api::Size| crate::live::grouped(size.0);
            vec![online::line(&file.name), number(file.bytes), number(file.lost)]
        };
        let table = Table { columns: COLUMNS, rows: files.iter().map(row).collect() };
        online::print(&table, &format!("box {name} has written no files"));
    }
    Ok(ExitCode::SUCCESS)
}
