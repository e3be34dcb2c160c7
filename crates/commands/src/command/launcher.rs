//! `clickbox launcher`: runs the process that starts fabrics and opens their devices.

use std::fs::DirBuilder;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use api::client;
use clap::{Args, value_parser};
use daemon::serve_upgrades;
use launcher::{Event, RunError, Settings};
use protocol::Channel;
use protocol::launcher::{LauncherError, serve_starts, serve_starts_at};
use rustix::process::{getpid, setsid};
use sd_notify::NotifyState;
use serde::Serialize;

use crate::command::agent::CertificateFiles;
use crate::error::{CommandError, FileError, FolderPurpose};
use crate::output;

/// The socket's name, in the folder of the daemon's default socket.
const SOCKET_NAME: &str = "launcher.sock";

/// The user of root's fabrics: the last of those that Debian's policy reserves, so that no distribution assigns it. The next
/// one is that of nobody.
const FABRIC_USER: u32 = 65_533;

/// Run the process that starts fabrics and opens their devices.
///
/// A fabric is a process that holds boxes and moves packets. It has no privileges: the launcher starts it, opens
/// /dev/kvm, tap devices, packet sockets and capture files, and passes them on. It keeps tap devices while a fabric is
/// replaced. The launcher runs until SIGTERM or Ctrl-C, which also ends its fabrics, or until it is no longer used.
#[derive(Args)]
#[command(after_help = "Example: clickbox launcher --stay &")]
pub(crate) struct Arguments {
    /// Socket to listen on. Only this user and root can connect to it [default: launcher.sock in $XDG_RUNTIME_DIR, else
    /// in /run/clickbox]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Go on when nothing runs and no daemon is connected, instead of ending after a few seconds.
    #[arg(long)]
    stay: bool,
    /// Leave the terminal's session, and close standard input when ready: for programs that start a launcher.
    #[arg(long)]
    detached: bool,
    /// Start a launcher with the other options for each request on standard input, until that closes: for the daemon,
    /// which may not start programs itself.
    #[arg(long, hide = true, requires = "socket")]
    on_request: bool,
    /// Also start the successor of the daemon that started this process. The requests on standard input are then those of
    /// upgrades, and bring the channel of the others.
    #[arg(long, hide = true, requires = "on_request")]
    upgrades: bool,
    /// Number of threads that run virtual machines in each fabric [default: one per CPU, except for one CPU, which runs
    /// the switches]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    workers: usize,
    /// Number of threads that run the switches of each fabric
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u8).range(1..=8))]
    switch_threads: u8,
    /// User and group that fabrics become if the launcher is root. No file and no other process may be theirs. 0: root
    #[arg(long, value_name = "UID", default_value_t = FABRIC_USER)]
    fabric_user: u32,
    #[command(flatten)]
    certificates: CertificateFiles,
    /// Print JSON when the launcher is ready: {"socket", "pid", "shortfalls"}.
    #[arg(long)]
    json: bool,
}

/// The output when the launcher is ready.
#[derive(Serialize)]
struct Ready<'a> {
    socket: &'a Path,
    pid: i32,
    /// What the host does not permit.
    shortfalls: Vec<String>,
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    if arguments.on_request {
        return start_on_request(arguments);
    }
    if arguments.detached {
        // It fails only if this process leads a session or a process group already.
        let _ = setsid();
    }
    let socket = match &arguments.socket {
        Some(socket) => socket.clone(),
        None => default_socket().ok_or(CommandError::NoDefaultSocket)?,
    };
    arguments.certificates.load().map_err(CommandError::Certificates)?;
    make_folder(&socket)?;
    let program = std::env::current_exe().map_err(|error| CommandError::Launcher(RunError::System(error)))?;
    let settings = Settings {
        stays: arguments.stay,
        closes_input: arguments.detached,
        fabric_user: Some(arguments.fabric_user),
        arguments: vec![
            "fabric".into(),
            format!("--workers={}", arguments.workers).into(),
            format!("--switch-threads={}", arguments.switch_threads).into(),
        ],
        switch_threads: arguments.switch_threads.into(),
        agent_arguments: ["agent".into()].into_iter().chain(arguments.certificates.arguments()).collect(),
        ..Settings::new(socket.clone(), program)
    };
    launcher::run(settings, &mut |event| report(arguments, &socket, event))
        .map_err(CommandError::Launcher)?;
    Ok(ExitCode::SUCCESS)
}

/// Starts launchers for a daemon, and also its successor.
fn start_on_request(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    let program = std::env::current_exe().map_err(|error| CommandError::Launcher(RunError::System(error)))?;
    let (workers, switch_threads) = (arguments.workers, arguments.switch_threads);
    let (fabric_user, socket) = (arguments.fabric_user, arguments.socket.clone());
    let certificates: Vec<_> = arguments.certificates.arguments().collect();
    let command = move || {
        let mut command = Command::new(&program);
        command.args(["launcher", "--detached"]).arg(format!("--workers={workers}"));
        command.arg(format!("--switch-threads={switch_threads}"));
        command.arg(format!("--fabric-user={fabric_user}"));
        command.args(certificates.clone());
        command.arg("--socket").args(&socket);
        command
    };
    if arguments.upgrades {
        // The successor stays in the session of the terminal, whose Ctrl-C ends it.
        let serve = move |channel: &Channel| {
            // A daemon that has ended needs no launcher.
            let _ = serve_starts_at(channel, &command);
        };
        serve_upgrades(Some(Box::new(serve))).map_err(CommandError::Helper)?;
        return Ok(ExitCode::SUCCESS);
    }
    // Ctrl-C in the daemon's terminal is not for this process. It fails only if it leads a process group already.
    let _ = setsid();
    serve_starts(command).map_err(|error| CommandError::Starter(LauncherError::Channel(error)))?;
    Ok(ExitCode::SUCCESS)
}

/// The default socket: beside the daemon's.
fn default_socket() -> Option<PathBuf> {
    Some(client::sockets().into_iter().next()?.with_file_name(SOCKET_NAME))
}

fn make_folder(socket: &Path) -> Result<(), CommandError> {
    match socket.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) {
        Some(folder) => {
            let created = DirBuilder::new().recursive(true).mode(0o755).create(folder);
            created.map_err(|error| CommandError::Folder {
                error: FileError::new(folder, error),
                purpose: FolderPurpose::Launcher,
            })
        }
        None => Ok(()),
    }
}

/// Prints an event. A launcher that a daemon started shares its terminal, so it prints only what is amiss.
fn report(arguments: &Arguments, socket: &Path, event: &Event) {
    let is_amiss = match event {
        Event::Ready(shortfalls) => {
            let ready = Ready {
                socket,
                pid: getpid().as_raw_nonzero().get(),
                shortfalls: shortfalls.iter().map(ToString::to_string).collect(),
            };
            if arguments.json {
                output::json_line(&ready);
            }
            // Without a service manager there is nobody to tell.
            let _ = sd_notify::notify(&[NotifyState::Ready]);
            false
        }
        Event::Started(_) | Event::Adopted(_) => false,
        Event::NotAdopted { .. } => true,
        Event::Ended { ending, is_expected, .. } => !is_expected && ending.is_failure(),
    };
    if is_amiss || !(arguments.detached || arguments.json) {
        // The terminal of whoever started it may be gone; fabrics must not end because of that.
        let _ = std::io::stderr().write_all(format!("clickbox launcher: {event}\n").as_bytes());
    }
}
