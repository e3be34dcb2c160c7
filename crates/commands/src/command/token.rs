//! `clickbox token`: the tokens of the users of a daemon.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use api::{Cores, Owner, Quota, Right, Size, UserName};
use clap::{ArgGroup, Args, Subcommand};
use daemon::{NewUser, User};
use serde::Serialize;

use crate::error::CommandError;
use crate::online::{self, Column, Table};
use crate::output;

/// Manage the tokens of users who share a daemon.
///
/// A token gives rights to the objects of one owner, within a quota. Its file is named to the daemon with --tokens, and
/// holds digests only. To take a token back, remove its entry from the file: the daemon notices within a second.
#[derive(Args)]
#[command(
    after_help = "Examples: clickbox token new --file tokens --owner alice --rights read\n          clickbox token ls --file tokens"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: TokenCommand,
}

#[derive(Subcommand)]
enum TokenCommand {
    /// Make a token, add its digest to a file of tokens, and print it once.
    #[command(
        after_help = "Example: clickbox token new --file tokens --owner alice --rights read,operate,create --boxes 10 --memory 1G --cpu 2 --switches 4"
    )]
    New(New),
    /// List the users in a file of tokens.
    #[command(visible_alias = "list", after_help = "Example: clickbox token ls --file tokens")]
    Ls(Listing),
}

#[derive(Args)]
#[command(group = ArgGroup::new("quota").multiple(true).args(["boxes", "memory", "cpu", "switches", "uploads"]))]
struct New {
    /// File of tokens. It is created if it does not exist.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// Owner to whose objects the token gives rights.
    #[arg(long)]
    owner: Owner,
    /// Name of the user, for the file and the audit log [default: the owner]
    #[arg(long, value_name = "NAME")]
    user: Option<UserName>,
    /// Rights: read (see), operate (start, stop, write handlers, capture), create (create, change and remove).
    #[arg(long, value_name = "RIGHT", value_delimiter = ',', required = true)]
    rights: Vec<Right>,
    /// Quota of boxes.
    #[arg(long, value_name = "N", required_if_eq("rights", "create"))]
    boxes: Option<u32>,
    /// Quota of private memory of all boxes.
    #[arg(long, value_name = "SIZE", required_if_eq("rights", "create"))]
    memory: Option<Size>,
    /// Quota of CPU time of all boxes. A box without a limit counts as one CPU.
    #[arg(long, value_name = "CPUS", required_if_eq("rights", "create"))]
    cpu: Option<Cores>,
    /// Quota of switches.
    #[arg(long, value_name = "N", required_if_eq("rights", "create"))]
    switches: Option<u32>,
    /// Quota of bytes of uploaded files that no box has yet [default: 512M]
    #[arg(long, value_name = "SIZE")]
    uploads: Option<Size>,
    /// Print JSON: {"user", "owner", "token"}.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Listing {
    /// File of tokens.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// Print JSON: a list of users.
    #[arg(long)]
    json: bool,
}

/// A new token.
#[derive(Serialize)]
struct Made<'a> {
    user: &'a UserName,
    owner: &'a Owner,
    token: &'a str,
}

/// A user in the file.
#[derive(Serialize)]
struct Listed<'a> {
    user: &'a UserName,
    owner: &'a Owner,
    rights: &'a BTreeSet<Right>,
    quota: &'a Quota,
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    match &arguments.what {
        TokenCommand::New(new) => make(new)?,
        TokenCommand::Ls(listing) => {
            let users = daemon::users(&listing.file)?;
            if listing.json {
                output::json(&users.iter().map(listed).collect::<Vec<_>>());
            } else {
                let table = Table { columns: COLUMNS, rows: users.iter().map(row).collect() };
                online::print(&table, "there are no users: add one with `clickbox token new`");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn make(new: &New) -> Result<(), CommandError> {
    let name = match &new.user {
        Some(name) => name.clone(),
        // All names have the same pattern.
        None => new.owner.as_str().parse().map_err(CommandError::UserName)?,
    };
    let quota = Quota {
        boxes: new.boxes,
        memory: new.memory,
        cpu: new.cpu,
        switches: new.switches,
        uploads: new.uploads,
    };
    let rights = new.rights.iter().copied().collect();
    let user = NewUser { name, owner: new.owner.clone(), rights, quota };
    let token = daemon::add_user(&new.file, &user)?;
    if new.json {
        output::json(&Made { user: &user.name, owner: &user.owner, token: &token });
    } else {
        eprintln!("clickbox: this token is printed once; clients name a file with it by --token-file");
        output::text(&format!("{token}\n"));
    }
    Ok(())
}

const COLUMNS: &[Column] = &[
    Column::flexible("USER", 10),
    Column::flexible("OWNER", 10),
    Column::text("RIGHTS"),
    Column::number("BOXES"),
    Column::number("MEMORY"),
    Column::number("CPU"),
    Column::number("SWITCHES"),
    Column::number("UPLOADS"),
];

fn listed(user: &User) -> Listed<'_> {
    Listed { user: &user.name, owner: &user.owner, rights: &user.rights, quota: &user.quota }
}

fn row(user: &User) -> Vec<String> {
    fn shown<T: ToString>(limit: Option<T>) -> String {
        limit.map_or("-".into(), |limit| limit.to_string())
    }
    let rights: Vec<&str> = user.rights.iter().map(|right| right.name()).collect();
    vec![
        user.name.to_string(),
        user.owner.to_string(),
        rights.join(","),
        shown(user.quota.boxes),
        shown(user.quota.memory),
        shown(user.quota.cpu),
        shown(user.quota.switches),
        shown(user.quota.uploads),
    ]
}
