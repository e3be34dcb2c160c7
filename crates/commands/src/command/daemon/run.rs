//! `clickbox daemon`: runs the daemon that supervises boxes and switches.

use std::fs::DirBuilder;
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use api::{Size, client};
use clap::{ArgGroup, Args, Subcommand, value_parser};
use daemon::{Handover, LauncherConnector, Listeners, Settings, SymbolFile, Tcp, UpgradeHelper};
use protocol::fabric::CheckLimits;
use protocol::launcher::Starter;
use rustix::process::{Resource, Rlimit, Signal, getpid, getrlimit, kill_process, setrlimit};
use serde::Serialize;

use super::paths::{default_store, launcher_socket};
use super::share::FabricShare;
use super::stop;
use crate::command::agent::CertificateFiles;
use crate::components;
use crate::error::{CommandError, FileError, FolderPurpose};
use crate::output;
use crate::value::{self, ValueError};

/// The option with which a daemon takes over from another one.
const TAKE_OVER: &str = "--take-over";

/// Run the daemon that supervises boxes and switches.
///
/// The commands for boxes, switches and stacks talk to the daemon. The boxes run in a process of their own, the fabric,
/// which a launcher starts. SIGTERM, or a crash, ends the daemon only: boxes and traffic go on, and the next daemon with
/// the same store adopts them. Ctrl-C, and `clickbox daemon stop --all`, end everything; the next daemon then starts all
/// boxes again. Only tap devices and packet sockets need privileges, which only the launcher uses: the daemon gives up
/// all capabilities, and all system calls that it does not need. Run `clickbox doctor`
/// to see what is missing.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Example: clickbox daemon &",
    group = ArgGroup::new("access").multiple(true).args(["token", "tokens"])
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: Option<DaemonCommand>,
    /// Socket to listen on. Only this user can connect to it [default: $CLICKBOX_SOCKET, else clickbox.sock in
    /// $XDG_RUNTIME_DIR, else /run/clickbox/clickbox.sock]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// File that stores the definitions [default: with the socket in $XDG_RUNTIME_DIR, a file in $XDG_STATE_HOME or
    /// ~/.local/state; with /run/clickbox/clickbox.sock, a file in /var/lib/clickbox; with any other socket, none]
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// Keep definitions in memory only. They are lost when the daemon ends.
    #[arg(long, conflicts_with = "store")]
    no_store: bool,
    /// Number of threads that run virtual machines [default: one per CPU, except for one CPU, which runs the switches]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    workers: usize,
    /// Number of threads that run the switches. With several, each port of a box has a ring pair for each of them: see the book,
    /// "Switch threads"
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u8).range(1..=8))]
    switch_threads: u8,
    /// Socket of the launcher. The daemon starts a launcher if none listens there [default: the path of the store, or
    /// without a store that of the socket, with .launcher appended]
    #[arg(long, value_name = "PATH")]
    launcher: Option<PathBuf>,
    /// Do not start a launcher: a service manager does. Requests that need one fail until it listens.
    #[arg(long, requires = "launcher")]
    expect_launcher: bool,
    #[command(flatten)]
    certificates: CertificateFiles,
    /// Give each owner of boxes and switches a fabric, a process of its own. If it crashes, only this owner's boxes are
    /// away. It costs processor time: fabrics that share a processor sleep when they are idle, and boxes at another owner's
    /// switch reach it through a copy.
    #[arg(long)]
    fabric_per_owner: bool,
    /// What the fabric of an owner gets of the processors when it starts: a weight, 100 by default, and perhaps processors
    /// of its own, such as alice=200 or bob=100@2-3. May be repeated.
    #[arg(long = "fabric-share", value_name = "OWNER=WEIGHT[@CPUS]", requires = "fabric_per_owner")]
    fabric_shares: Vec<FabricShare>,
    /// Also listen on this TCP address, with TLS and tokens.
    #[arg(long, value_name = "IP:PORT", requires_all = ["certificate", "key", "access"])]
    listen: Option<SocketAddr>,
    /// Certificate chain for TLS, in PEM.
    #[arg(long, value_name = "FILE", requires = "listen")]
    certificate: Option<PathBuf>,
    /// Private key of the certificate, in PEM. Refused if other users of the host can read it.
    #[arg(long, value_name = "FILE", requires = "listen")]
    key: Option<PathBuf>,
    /// File with the token of administrators over TCP: at least 16 characters. Refused if other users of the host can read
    /// it.
    #[arg(long = "token-file", value_name = "FILE", requires = "listen", id = "token")]
    token: Option<PathBuf>,
    /// File of tokens of users, which `clickbox token` makes. Each has rights to the objects of one owner. The file is
    /// read again when it changes, and at SIGHUP. Refused if other users of the host can read it.
    #[arg(long, value_name = "FILE", requires = "listen")]
    tokens: Option<PathBuf>,
    /// The longest time that the check of a configuration may take. It then ends with an error.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = value::seconds(0.01..=600.0))]
    check_time: f64,
    /// Memory that the check of a configuration may use, from 1M to 4G. It then ends with an error. Up to 16 configurations
    /// are checked at once.
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = check_memory)]
    check_memory: Size,
    /// Exit when standard input closes, for programs that start their own daemon.
    #[arg(long)]
    until_input_ends: bool,
    /// Take over from a daemon whose helper started this process.
    #[arg(long, hide = true)]
    take_over: bool,
    /// Print JSON when the daemon is ready: {"socket", "listen", "store", "pid"}.
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum DaemonCommand {
    Stop(stop::Arguments),
}

/// Parses the memory of a check.
fn check_memory(text: &str) -> Result<Size, ValueError> {
    let range = CheckLimits::MIN_MEMORY..=CheckLimits::MAX_MEMORY;
    match text.parse::<Size>() {
        Ok(size) if range.contains(&size.0) => Ok(size),
        _ => Err(ValueError::Form("a size from 1M to 4G")),
    }
}

/// The output when the daemon is ready.
#[derive(Serialize)]
struct Ready<'a> {
    socket: &'a Path,
    listen: Option<SocketAddr>,
    store: Option<&'a Path>,
    pid: i32,
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    match &arguments.what {
        Some(DaemonCommand::Stop(arguments)) => stop::run(arguments),
        None => serve(arguments),
    }
}

fn serve(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    let socket = socket(arguments)?;
    let store =
        if arguments.no_store { None } else { arguments.store.clone().or_else(|| default_store(&socket)) };
    for (path, mode) in [(Some(&socket), 0o755), (store.as_ref(), 0o700)] {
        make_folder(path.and_then(|path| path.parent()), mode)?;
    }
    let tcp = match (arguments.listen, &arguments.certificate, &arguments.key) {
        (Some(address), Some(certificate), Some(key)) => Some(Tcp {
            address,
            certificate: certificate.clone(),
            key: key.clone(),
            token: arguments.token.clone(),
            tokens: arguments.tokens.clone(),
        }),
        _ => None,
    };
    let handover = arguments.take_over.then(Handover::receive).transpose().map_err(CommandError::TakeOver)?;
    // The socket comes first: its lock shows whether another daemon runs.
    let listeners = Listeners::open(&socket, arguments.listen, handover).map_err(CommandError::Daemon)?;
    // Boxes that end with the daemon can't outlive its upgrade.
    let upgrades = store.is_some() && !arguments.until_input_ends;
    let launcher =
        arguments.launcher.clone().unwrap_or_else(|| launcher_socket(store.as_deref().unwrap_or(&socket)));
    let upgrade_helper = upgrades.then(|| upgrade_helper(arguments, &launcher)).transpose()?.map(Arc::new);
    let connector = connector(arguments, launcher, upgrade_helper.as_deref())?;
    let settings = Settings {
        store: store.clone(),
        symbols: symbols(),
        ends_fabric: arguments.until_input_ends,
        upgrade_helper,
        fabric_per_owner: arguments.fabric_per_owner,
        function_folder: socket.parent().map(|folder| folder.join("functions")),
        check_limits: CheckLimits {
            time: Duration::from_secs_f64(arguments.check_time),
            memory: arguments.check_memory.0,
        },
        ..Settings::new(Arc::new(connector), concat!("clickbox ", env!("CARGO_PKG_VERSION")))
    };
    raise_limit_of_files();
    // The processes that start launchers and successors run already, and the sockets are open.
    daemon::confine().map_err(CommandError::Confine)?;
    if arguments.until_input_ends {
        std::thread::spawn(end_with_input);
    }
    let ready = |address: &daemon::Address| {
        let ready = Ready {
            socket: &socket,
            listen: address.tcp,
            store: store.as_deref(),
            pid: getpid().as_raw_nonzero().get(),
        };
        if arguments.json {
            output::json_line(&ready);
        } else {
            eprintln!("{}", sentence(&ready));
        }
    };
    daemon::run(&settings, listeners, tcp.as_ref(), ready).map_err(CommandError::Daemon)?;
    Ok(ExitCode::SUCCESS)
}

/// A process that starts launchers on request.
fn starting(arguments: &Arguments, launcher: &Path) -> Result<Command, CommandError> {
    let mut command = Command::new(std::env::current_exe().map_err(CommandError::OwnProgram)?);
    command.args(["launcher", "--on-request", "--detached", "--socket"]).arg(launcher);
    command.arg(format!("--workers={}", arguments.workers));
    command.arg(format!("--switch-threads={}", arguments.switch_threads));
    command.args(arguments.certificates.arguments());
    Ok(command)
}

/// The process that starts this daemon's successor, with the same arguments, and launchers, unless somebody else does.
fn upgrade_helper(arguments: &Arguments, launcher: &Path) -> Result<UpgradeHelper, CommandError> {
    let own = std::env::args_os().skip(1).filter(|argument| argument != TAKE_OVER);
    let successor = own.chain([TAKE_OVER.into()]).collect();
    let command = match arguments.expect_launcher {
        true => {
            let mut command = Command::new(std::env::current_exe().map_err(CommandError::OwnProgram)?);
            command.args(["upgrade", "--helper"]);
            command
        }
        false => {
            let mut command = starting(arguments, launcher)?;
            command.arg("--upgrades");
            command
        }
    };
    UpgradeHelper::spawn(command, successor).map_err(CommandError::Helper)
}

/// The launcher that the daemon uses, which it has started if none listens: by the helper for upgrades, if there is one.
fn connector(
    arguments: &Arguments,
    launcher: PathBuf,
    helper: Option<&UpgradeHelper>,
) -> Result<LauncherConnector, CommandError> {
    if !arguments.expect_launcher {
        arguments.certificates.load().map_err(CommandError::Certificates)?;
    }
    let starter = match helper {
        _ if arguments.expect_launcher => None,
        Some(helper) => Some(helper.starter().map_err(CommandError::Helper)?),
        None => Some(Starter::spawn(starting(arguments, &launcher)?).map_err(CommandError::Starter)?),
    };
    let shares = arguments.fabric_shares.iter().map(|of| (of.owner.clone(), of.share.clone())).collect();
    Ok(LauncherConnector::new(launcher, starter).with_shares(shares))
}

fn sentence(ready: &Ready) -> String {
    let tcp = ready.listen.map_or(String::new(), |address| format!(" and at {address}"));
    let store = match ready.store {
        Some(path) => format!("definitions are in {}", path.display()),
        None => "definitions are in memory only".into(),
    };
    format!("clickbox {}: at {}{tcp}; {store}", env!("CARGO_PKG_VERSION"), ready.socket.display())
}

/// The symbols of the box image, which the build leaves beside the program.
fn symbols() -> Option<SymbolFile> {
    let path = std::env::current_exe().ok()?.with_extension("symbols");
    Some(SymbolFile { path, fingerprint: components::get().box_image_fingerprint })
}

/// The socket to listen on.
fn socket(arguments: &Arguments) -> Result<PathBuf, CommandError> {
    if let Some(path) = &arguments.socket {
        return Ok(path.clone());
    }
    if std::env::var_os(client::SOCKET_VARIABLE).is_some_and(|text| !text.is_empty()) {
        return match client::Address::from_environment() {
            Ok(client::Address::Unix(path)) => Ok(path),
            _ => Err(CommandError::ListenVariable),
        };
    }
    client::sockets().into_iter().next().ok_or(CommandError::NoDefaultSocket)
}

fn make_folder(folder: Option<&Path>, mode: u32) -> Result<(), CommandError> {
    match folder.filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) {
        Some(folder) => {
            let created = DirBuilder::new().recursive(true).mode(mode).create(folder);
            created.map_err(|error| CommandError::Folder {
                error: FileError::new(folder, error),
                purpose: FolderPurpose::Daemon,
            })
        }
        None => Ok(()),
    }
}

/// Raises the limit of open files to the hard limit: each box needs a few.
fn raise_limit_of_files() {
    let limit = getrlimit(Resource::Nofile);
    // A lower limit only means fewer boxes, and the daemon reports when it is reached.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Waits until standard input closes, then shuts this process down.
fn end_with_input() {
    let mut bytes = [0; 4096];
    let mut input = std::io::stdin().lock();
    while input.read(&mut bytes).is_ok_and(|count| count > 0) {}
    let _ = kill_process(getpid(), Signal::INT);
}
