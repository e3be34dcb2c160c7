//! `clickbox store`: backups and checks of the daemon's store.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use api::operation::{self, Nothing};
use api::{SetAsideEntry, StoreStatus};
use clap::{Args, Subcommand};

use crate::error::{CommandError, FileError};
use crate::online::{self, Column, Connection, Table};
use crate::output;

/// Back up, check and repair the daemon's store.
#[derive(Args)]
#[command(after_help = "Examples: clickbox store backup clickbox.backup\n          clickbox store check")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: StoreCommand,
}

#[derive(Subcommand)]
enum StoreCommand {
    /// Write a copy of the store to a file, which only you can read.
    ///
    /// The copy has all changes that were acknowledged. To restore it, use it as the store of a daemon.
    #[command(after_help = "Example: clickbox store backup clickbox.backup")]
    Backup(Backup),
    /// Check the store's whole file, and list what was set aside.
    ///
    /// Exits with 1 if the file is damaged or entries were set aside.
    #[command(after_help = "Example: clickbox store check || clickbox store repair")]
    Check(Check),
    /// List, retry or drop entries that were set aside because they could not be read or restored.
    #[command(
        after_help = "Examples: clickbox store repair\n          clickbox store repair --retry\n          \
                      clickbox store repair --drop 3"
    )]
    Repair(Repair),
}

#[derive(Args)]
struct Backup {
    /// File to write. It is replaced once the copy is complete.
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// Print JSON: an empty object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

#[derive(Args)]
struct Check {
    /// Print JSON: {"findings": [...], "set_aside": [...]}.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

#[derive(Args)]
struct Repair {
    /// Restore all entries that can be read now.
    #[arg(long)]
    retry: bool,
    /// Delete an entry, by its number. May be repeated.
    #[arg(long, value_name = "ENTRY", conflicts_with = "retry")]
    drop: Vec<i64>,
    /// Print JSON: {"findings": [...], "set_aside": [...]}.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

/// Runs `store`.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    match &arguments.what {
        StoreCommand::Backup(backup) => {
            let client = backup.daemon.client()?;
            let mut copy = client.call(&operation::BACK_STORE_UP, &[], &Nothing, &())?;
            write(&backup.file, &mut copy)?;
            online::print_success(backup.json);
            Ok(ExitCode::SUCCESS)
        }
        StoreCommand::Check(check) => {
            let status = check.daemon.client()?.ask(&operation::CHECK_STORE, &[])?;
            print(&status, check.json, "the store is sound");
            let is_sound = status.findings.is_empty() && status.set_aside.is_empty();
            Ok(ExitCode::from(u8::from(!is_sound)))
        }
        StoreCommand::Repair(repair) => {
            let client = repair.daemon.client()?;
            for entry in &repair.drop {
                client.ask(&operation::DROP_SET_ASIDE, &[&entry.to_string()])?;
            }
            let mut failed = None;
            if repair.retry {
                let status = client.ask(&operation::CHECK_STORE, &[])?;
                for entry in status.set_aside {
                    if let Err(error) = client.ask(&operation::RETRY_SET_ASIDE, &[&entry.id.to_string()]) {
                        failed.get_or_insert(error);
                    }
                }
            }
            let status = client.ask(&operation::CHECK_STORE, &[])?;
            print(&status, repair.json, "nothing is set aside");
            failed.map_or(Ok(ExitCode::SUCCESS), Err)
        }
    }
}

/// Writes a file as a whole or not at all. Only this user can read it: configurations may contain keys.
fn write(path: &Path, copy: &mut dyn io::Read) -> Result<(), CommandError> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&partial)
        .map_err(|error| FileError::new(&partial, error))
        .and_then(|mut file| {
            let copied = io::copy(copy, &mut file).and_then(|_| file.flush()).and_then(|()| file.sync_all());
            let moved = copied.and_then(|()| fs::rename(&partial, path));
            moved.map_err(|error| {
                // The error matters more than a file that stays.
                let _ = fs::remove_file(&partial);
                FileError::new(path, error)
            })
        });
    Ok(written?)
}

const COLUMNS: &[Column] = &[
    Column::number("ENTRY"),
    Column::text("KIND"),
    Column::flexible("NAME", 10),
    Column::flexible("REASON", 20),
];

fn print(status: &StoreStatus, is_json: bool, nothing: &str) {
    if is_json {
        return output::json(status);
    }
    for finding in &status.findings {
        output::text(&format!("{}\n", online::line(finding)));
    }
    if status.findings.is_empty() || !status.set_aside.is_empty() {
        let row = |entry: &SetAsideEntry| {
            vec![
                entry.id.to_string(),
                online::line(&entry.kind),
                online::line(&entry.name),
                online::line(&entry.reason),
            ]
        };
        online::print(&Table { columns: COLUMNS, rows: status.set_aside.iter().map(row).collect() }, nothing);
    }
}
