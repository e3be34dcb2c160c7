//! The error of a command, and its exit code.

use std::error::Error;
use std::fmt;
use std::io;

use api::client::{AddressError, ClientError, SOCKET_VARIABLE};
use api::{BoxName, Diagnostic, ErrorCode, PathError};

use super::choice_error::ChoiceError;
use super::file_error::FileError;
use crate::command::bench::BenchError;
use crate::command::demo::DemoError;
use crate::command::function::FunctionError;
use crate::environment::BindingError;
use crate::online::{PortOptionsError, StackFileError};

/// The exit codes, for the help.
pub(crate) const EXIT_CODES: &str = "Exit codes:\n  \
      0  success\n  \
      1  failure\n  \
      2  wrong usage, or a file that can't be read\n  \
      3  no daemon\n  \
      4  not found\n  \
      5  configuration, value or stack rejected\n  \
      6  already exists, or wrong state for this command";

/// Why a command failed.
///
/// A message says what is wrong, and its causes follow by [`Error::source`]. What to type next is in
/// [`hint`](super::hint).
#[derive(Debug)]
pub(crate) enum CommandError {
    /// The daemon refused a request, or can't be reached.
    Client(ClientError),
    /// The daemon has nothing of this name.
    Misspelt {
        /// Its answer.
        error: ClientError,
        /// An existing name that is similar, as the user would type it.
        similar: String,
    },
    /// There is no box of this name, but something else.
    OtherKind {
        /// The daemon's answer.
        error: ClientError,
        /// What it is, and what to type for it.
        advice: String,
    },
    /// There is no box, service, chain or switch of this name.
    NoneNamed(BoxName),
    /// A file that the user named can't be read or created.
    File(FileError),
    /// The result can't be written.
    Write(FileError),
    /// The transfer of data to the output broke off.
    Transfer {
        /// The message.
        what: &'static str,
        /// The error of the output.
        cause: io::Error,
    },
    /// Standard output is a terminal, which can't show binary data.
    Terminal {
        /// The data.
        what: &'static str,
    },
    /// The devices of a configuration are bound wrongly.
    Devices(BindingError),
    /// The threads of shards can't be started.
    Shards(io::Error),
    /// A configuration has errors. Its diagnostics are printed already.
    Configuration,
    /// `$CLICKBOX_SOCKET` is not an address.
    SocketVariable(AddressError),
    /// `$CLICKBOX_SOCKET` is not the path of a socket that a daemon could listen on.
    ListenVariable,
    /// There is no default socket to listen on.
    NoDefaultSocket,
    /// A folder can't be created.
    Folder {
        /// The folder, and why not.
        error: FileError,
        /// What it is for.
        purpose: FolderPurpose,
    },
    /// The daemon failed.
    Daemon(daemon::RunError),
    /// The daemon cannot give up its privileges.
    Confine(daemon::ConfineError),
    /// The process that starts launchers cannot be started.
    Starter(protocol::launcher::LauncherError),
    /// The file of tokens can't be used.
    Tokens(daemon::TokensError),
    /// An owner can't be the name of a user.
    UserName(api::NameError),
    /// The launcher failed.
    Launcher(launcher::RunError),
    /// This process cannot become a fabric.
    FabricEnd(protocol::launcher::FabricEndError),
    /// The fabric failed.
    Fabric(fabric::StartError),
    /// The certificates for controllers over TLS can't be used.
    Certificates(crate::command::agent::CertificateFilesError),
    /// An agent ended.
    Agent(crate::command::agent::AgentError),
    /// The daemon can't take over from another one.
    TakeOver(daemon::HandoverError),
    /// The helper process of a daemon can't be started, or failed.
    Helper(io::Error),
    /// The daemon goes on, because its successor did not become ready. The text is the daemon's.
    NotUpgraded(String),
    /// The path of this program is unknown.
    OwnProgram(io::Error),
    /// A text is not a capture point.
    CapturePoint {
        /// The text.
        text: String,
        /// Why it is none.
        cause: PathError,
    },
    /// The settings of a switch port are wrong.
    Port(PortOptionsError),
    /// The stack file can't be used.
    Stack(StackFileError),
    /// No stack is named, and the default stack file does not exist.
    NoStackFile(&'static str),
    /// No stack is named, and there is not exactly one.
    StackToExport(Vec<String>),
    /// A stack can't be written as a file.
    Export(toml::ser::Error),
    /// A switch or a chain must be named.
    Choice(ChoiceError),
    /// The caller may not upload images.
    ImageUpload,
    /// A command about a function failed.
    Function(FunctionError),
    /// A box has no such element.
    NoElement {
        /// The box.
        name: BoxName,
        /// The element.
        element: String,
        /// An element with a similar name.
        similar: Option<String>,
    },
    /// The pattern for handlers is invalid.
    HandlerPattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        cause: glob::PatternError,
    },
    /// The daemon listed a handler whose path is invalid.
    HandlerPath(PathError),
    /// No handler matches the pattern.
    NoMatch {
        /// The box.
        name: BoxName,
        /// The pattern.
        pattern: String,
    },
    /// There is no such element class.
    NoClass {
        /// The name.
        name: String,
        /// A class with a similar name.
        similar: Option<&'static str>,
    },
    /// An element class has no page in the reference.
    Undocumented(&'static str),
    /// The completion script can't be written.
    Completion(io::Error),
    /// A measurement failed.
    Bench(BenchError),
    /// The demonstration failed.
    Demo(DemoError),
}

impl CommandError {
    /// Whether what the command names does not exist.
    pub(crate) fn is_not_found(&self) -> bool {
        self.code() == 4
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Client(ClientError::NoDaemon { .. }) => 3,
            Self::Client(error) | Self::Misspelt { error, .. } | Self::OtherKind { error, .. } => {
                match error.code() {
                    Some(ErrorCode::Invalid) => 2,
                    Some(ErrorCode::NotFound) => 4,
                    Some(ErrorCode::Refused) => 5,
                    Some(ErrorCode::Exists | ErrorCode::Busy) => 6,
                    _ => 1,
                }
            }
            Self::File(_)
            | Self::Terminal { .. }
            | Self::SocketVariable(_)
            | Self::ListenVariable
            | Self::NoDefaultSocket
            | Self::Folder { .. }
            | Self::Tokens(_)
            | Self::UserName(_)
            | Self::CapturePoint { .. }
            | Self::Port(_)
            | Self::Devices(_)
            | Self::Stack(_)
            | Self::HandlerPattern { .. }
            | Self::Certificates(_)
            | Self::NoStackFile(_)
            | Self::StackToExport(_) => 2,
            Self::Function(error) if error.is_usage() => 2,
            Self::Function(FunctionError::Exists(_)) => 6,
            Self::NoneNamed(_) | Self::NoElement { .. } | Self::NoMatch { .. } => 4,
            Self::Choice(ChoiceError::NoChain { .. }) => 4,
            Self::Choice(_) => 2,
            Self::Write(_)
            | Self::HandlerPath(_)
            | Self::Transfer { .. }
            | Self::Configuration
            | Self::Daemon(_)
            | Self::Confine(_)
            | Self::Starter(_)
            | Self::Shards(_)
            | Self::Launcher(_)
            | Self::FabricEnd(_)
            | Self::Fabric(_)
            | Self::Agent(_)
            | Self::TakeOver(_)
            | Self::Helper(_)
            | Self::NotUpgraded(_)
            | Self::OwnProgram(_)
            | Self::NoClass { .. }
            | Self::Undocumented(_)
            | Self::Export(_)
            | Self::ImageUpload
            | Self::Function(_)
            | Self::Completion(_)
            | Self::Bench(_)
            | Self::Demo(_) => 1,
        }
    }

    /// The diagnostics of a configuration that the daemon rejected.
    pub(crate) fn details(&self) -> &[Diagnostic] {
        match self {
            Self::Client(ClientError::Api(error)) => &error.details,
            _ => &[],
        }
    }
}

/// What a folder is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FolderPurpose {
    /// The socket or the store of a daemon.
    Daemon,
    /// The socket of a launcher.
    Launcher,
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(error) | Self::Misspelt { error, .. } | Self::OtherKind { error, .. } => {
                error.fmt(f)
            }
            Self::NoneNamed(name) => write!(f, "there is no box, service, chain or switch {name}"),
            Self::File(error) | Self::Write(error) => error.fmt(f),
            Self::Transfer { what, .. } => f.write_str(what),
            Self::Terminal { what } => write!(f, "{what}, which a terminal can't show"),
            Self::Configuration => f.write_str("the configuration has errors"),
            Self::SocketVariable(_) => write!(f, "{SOCKET_VARIABLE} is not an address"),
            Self::ListenVariable => write!(f, "{SOCKET_VARIABLE} is not the path of a socket"),
            Self::NoDefaultSocket => f.write_str("no default socket"),
            Self::Folder { error, .. } => write!(f, "can't create the folder {error}"),
            Self::Daemon(error) => error.fmt(f),
            Self::Confine(error) => error.fmt(f),
            Self::Starter(error) => error.fmt(f),
            Self::Devices(error) => error.fmt(f),
            Self::Shards(error) => write!(f, "cannot start the threads of shards: {error}"),
            Self::Tokens(error) => error.fmt(f),
            Self::UserName(error) => error.fmt(f),
            Self::Launcher(error) => error.fmt(f),
            Self::FabricEnd(error) => error.fmt(f),
            Self::Fabric(error) => error.fmt(f),
            Self::Agent(error) => error.fmt(f),
            Self::Certificates(error) => error.fmt(f),
            Self::TakeOver(error) => error.fmt(f),
            Self::Helper(_) => f.write_str("the daemon's helper for upgrades can't run"),
            Self::NotUpgraded(message) => f.write_str(message),
            Self::OwnProgram(_) => f.write_str("can't find this program"),
            Self::CapturePoint { text, .. } => f.write_str(text),
            Self::Port(error) => error.fmt(f),
            Self::Stack(error) => error.fmt(f),
            Self::NoStackFile(file) => write!(f, "no {file} in this folder"),
            Self::StackToExport(names) if names.is_empty() => f.write_str("there are no stacks to export"),
            Self::StackToExport(names) => write!(f, "name one of the stacks: {}", names.join(", ")),
            Self::Choice(error) => error.fmt(f),
            Self::Export(_) => f.write_str("the stack can't be written as a file"),
            Self::Function(error) => error.fmt(f),
            Self::ImageUpload => f.write_str("your token does not permit uploads, which an image needs"),
            Self::NoElement { name, element, .. } => write!(f, "box {name} has no element {element}"),
            Self::HandlerPattern { pattern, .. } => write!(f, "the pattern {pattern} is invalid"),
            Self::HandlerPath(_) => f.write_str("the daemon listed an invalid handler"),
            Self::NoMatch { name, pattern } => write!(f, "no handler of box {name} matches {pattern}"),
            Self::NoClass { name, .. } => write!(f, "there is no element {name}"),
            Self::Undocumented(name) => write!(f, "{name} is not documented"),
            Self::Completion(_) => f.write_str("the script can't be written"),
            Self::Bench(error) => error.fmt(f),
            Self::Demo(error) => error.fmt(f),
        }
    }
}

impl Error for CommandError {
    /// The cause. If the message is the cause's, the cause's own cause.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Client(error) | Self::Misspelt { error, .. } | Self::OtherKind { error, .. } => {
                error.source()
            }
            Self::File(error) | Self::Write(error) | Self::Folder { error, .. } => error.source(),
            Self::Transfer { cause, .. } | Self::Completion(cause) => Some(cause),
            Self::SocketVariable(error) => Some(error),
            Self::Export(error) => Some(error),
            Self::HandlerPattern { cause, .. } => Some(cause),
            Self::HandlerPath(error) => Some(error),
            Self::Daemon(error) => error.source(),
            Self::Confine(error) => error.source(),
            Self::Starter(error) => error.source(),
            Self::Shards(error) => error.source(),
            Self::Tokens(error) => error.source(),
            Self::UserName(error) => error.source(),
            Self::Launcher(error) => error.source(),
            Self::FabricEnd(error) => error.source(),
            Self::Fabric(error) => error.source(),
            Self::Agent(error) => error.source(),
            Self::Certificates(error) => error.source(),
            Self::TakeOver(error) => error.source(),
            Self::Helper(error) => Some(error),
            Self::OwnProgram(error) => Some(error),
            Self::CapturePoint { cause, .. } => Some(cause),
            Self::Port(error) => error.source(),
            Self::Stack(error) => error.source(),
            Self::Choice(error) => error.source(),
            Self::Function(error) => error.source(),
            Self::Bench(error) => error.source(),
            Self::Demo(error) => error.source(),
            Self::Terminal { .. }
            | Self::NoneNamed(_)
            | Self::Configuration
            | Self::ListenVariable
            | Self::NoDefaultSocket
            | Self::NotUpgraded(_)
            | Self::NoStackFile(_)
            | Self::StackToExport(_)
            | Self::ImageUpload
            | Self::NoElement { .. }
            | Self::NoMatch { .. }
            | Self::NoClass { .. }
            | Self::Devices(_)
            | Self::Undocumented(_) => None,
        }
    }
}

macro_rules! from {
    ($($error:ty => $variant:ident),* $(,)?) => {
        $(impl From<$error> for CommandError {
            fn from(error: $error) -> CommandError {
                CommandError::$variant(error)
            }
        })*
    };
}

from!(
    ClientError => Client,
    FileError => File,
    FunctionError => Function,
    PortOptionsError => Port,
    StackFileError => Stack,
    ChoiceError => Choice,
    BenchError => Bench,
    DemoError => Demo,
    toml::ser::Error => Export,
    daemon::TokensError => Tokens,
);

impl From<daemon::SecretError> for CommandError {
    fn from(error: daemon::SecretError) -> CommandError {
        match error {
            daemon::SecretError::File(path, cause) => CommandError::File(FileError::new(&path, cause)),
            shared => CommandError::Tokens(shared.into()),
        }
    }
}
