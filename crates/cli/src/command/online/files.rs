//! `clickbox files`: what a box writes with `ToDump` and its like.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use api::{BoxName, WrittenFile, operation};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::online::{self, Column, Connection, Failure, Table};
use crate::output;

/// List the files that a box writes, or fetch one.
///
/// What ToDump and its like write in a box, the daemon keeps as long as the box is there: at most 16 files and 64 MB a box.
/// What a box writes too fast or too much is left out, in whole records, and counted as LOST.
#[derive(Args)]
#[command(after_help = "Example: clickbox files fw out.pcap | tcpdump -n -r -")]
pub(crate) struct Arguments {
    /// The box.
    #[arg(value_name = "BOX", add = ArgValueCompleter::new(online::boxes))]
    name: BoxName,
    /// The file to fetch, by the name that the configuration gives it; without it they are listed.
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
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let client = arguments.daemon.client()?;
    let name = arguments.name.as_str();
    if let Some(file) = &arguments.file {
        let contents = client.call(&operation::FILE, &[name, file], &operation::Nothing, &())?;
        return fetch(contents, arguments);
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

fn fetch(mut contents: impl io::Read, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let is_standard = arguments.write.as_os_str() == "-";
    if is_standard && io::stdout().is_terminal() {
        let text =
            "what a box wrote may be no text for a terminal: write it to a file (-w PATH), or pipe it on";
        return Err(Failure::Usage(text.into()));
    }
    let copied = if is_standard {
        io::copy(&mut contents, &mut io::stdout().lock())
    } else {
        let file = File::create(&arguments.write).map_err(|error| Failure::file(&arguments.write, error))?;
        io::copy(&mut contents, &mut &file)
    };
    match copied {
        // Who read it has had enough.
        Err(error) if is_standard && error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Failure::Other(format!("the file could not be copied: {error}"))),
        Ok(_) => Ok(ExitCode::SUCCESS),
    }
}
