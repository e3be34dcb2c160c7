//! Prints errors with hints: what to type next.
//!
//! Libraries report errors in their own terms, and the daemon in the API's. Commands and options are named only here.

use std::io::ErrorKind;
use std::process::ExitCode;

use api::client::{Address, ClientError};
use api::{ApiError, ErrorCode, ErrorReason};
use bench::MeasureError;
use bench::engine::EXAMPLES;

use super::choice_error::ChoiceError;
use super::command_error::{CommandError, FolderPurpose};
use super::message::message;
use crate::command::bench::BenchError;
use crate::online::{ChainError, StackError, lines};

impl CommandError {
    /// The error, its causes and a hint, on one line.
    pub(crate) fn text(&self) -> String {
        let text = message(self);
        match hint(self) {
            Some(hint) => format!("{text}; {hint}"),
            None => text,
        }
    }

    /// Prints the error on standard error. Returns the exit code.
    pub(crate) fn print(&self) -> ExitCode {
        if !matches!(self, Self::Configuration) {
            eprintln!("clickbox: {}", lines(&self.text()));
        }
        ExitCode::from(self.code())
    }
}

/// The hint for an error.
fn hint(error: &CommandError) -> Option<String> {
    Some(match error {
        CommandError::Client(error) => return of_call(error),
        CommandError::Terminal { .. } => "write it to a file with -w, or pipe it to another program".into(),
        CommandError::NoDefaultSocket => "choose one with --socket PATH".into(),
        CommandError::Folder { purpose: FolderPurpose::Launcher, .. } => {
            "choose another path with --socket, or start it as root".into()
        }
        CommandError::Folder { purpose: FolderPurpose::Daemon, .. } => {
            "choose other paths with --socket (or $CLICKBOX_SOCKET, which all commands use) and --store"
                .into()
        }
        CommandError::Function(error) => return error.hint(),
        CommandError::Stack(error) => return of_stack(error.cause()),
        CommandError::Choice(error) => return of_choice(error),
        CommandError::NoStackFile(_) => "name a stack (`clickbox stacks` lists them)".into(),
        CommandError::Misspelt { similar, .. } | CommandError::NoElement { similar: Some(similar), .. } => {
            format!("did you mean {similar}?")
        }
        CommandError::OtherKind { advice, .. } => advice.clone(),
        CommandError::NoneNamed(_) => {
            "`clickbox ps`, `clickbox service ls`, `clickbox chain ls` and `clickbox switch ls` list what there is".into()
        }
        CommandError::NoElement { name, .. } | CommandError::NoMatch { name, .. } => {
            format!("`clickbox handlers {name}` lists them")
        }
        CommandError::NoClass { similar: Some(name), .. } => format!("did you mean {name}?"),
        CommandError::NoClass { similar: None, .. } => "`clickbox element` lists all".into(),
        CommandError::Bench(BenchError::Measure(MeasureError::NoKvm)) => "use --sandbox process".into(),
        CommandError::Bench(BenchError::Read(_)) => {
            let names: Vec<&str> = EXAMPLES.iter().map(|example| example.name).collect();
            format!("--config takes a file or one of {}", names.join(", "))
        }
        _ => return None,
    })
}

fn of_choice(error: &ChoiceError) -> Option<String> {
    Some(match error {
        ChoiceError::NoSteeringSwitch => {
            "create one with `clickbox switch create NAME --mode steering`".into()
        }
        ChoiceError::SeveralSwitches(_, how) | ChoiceError::SeveralChains(_, _, how) => {
            format!("choose one with {how}")
        }
        ChoiceError::DifferentSwitches(..) => {
            "join two switches with a port: `clickbox port add SWITCH PORT --driver pipe --to SWITCH/PORT`"
                .into()
        }
        ChoiceError::NoChain { similar: Some(similar), .. } => format!("did you mean {similar}?"),
        ChoiceError::NoChain { similar: None, .. } => "`clickbox chain ls` lists the chains".into(),
    })
}

fn of_stack(error: &StackError) -> Option<String> {
    Some(match error {
        StackError::Name(_) => "set name = \"...\" in the file instead".into(),
        StackError::Chain { cause: ChainError::PipeName(_), .. } => "choose a shorter one".into(),
        StackError::Chain { cause: ChainError::AdjacentSwitches, .. } => {
            "join them by a port with the driver pipe".into()
        }
        _ => return None,
    })
}

fn of_call(error: &ClientError) -> Option<String> {
    match error {
        ClientError::Api(error) => of_reply(error),
        ClientError::NoDaemon { address: address @ Address::Unix(_), cause } => match cause.kind() {
            ErrorKind::PermissionDenied => {
                Some("it belongs to another user: run the command as that user, or as root".into())
            }
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                let option = match Address::from_environment().as_ref() == Ok(address) {
                    true => String::new(),
                    false => format!(" --socket {address}"),
                };
                Some(format!("start one with `clickbox daemon{option} &`"))
            }
            _ => None,
        },
        // TLS reports a rejected certificate as invalid data.
        ClientError::Connection { address: Address::Tls { .. }, cause }
            if cause.kind() == ErrorKind::InvalidData =>
        {
            Some(match format!("{cause:?}").contains("CaUsedAsEndEntity") {
                true => "the daemon's certificate is one that signs others: create one that does not, for example by \
                         `openssl req -x509 -addext basicConstraints=critical,CA:FALSE ...`"
                    .into(),
                false => "name the daemon's certificate with --certificates FILE".into(),
            })
        }
        _ => None,
    }
}

/// The hint for an error that the daemon returned.
fn of_reply(error: &ApiError) -> Option<String> {
    if error.code == ErrorCode::Forbidden {
        return Some("name the token's file with --token-file, or set $CLICKBOX_TOKEN".into());
    }
    let subject = error.subject.as_deref().unwrap_or_default();
    let name = subject.split('/').nth(1).unwrap_or_default();
    Some(match error.reason? {
        ErrorReason::NoBox => match name.rsplit_once('-') {
            // Functions that joined a service are named as its boxes would be.
            Some((service, number)) if number.parse::<u16>().is_ok() => format!(
                "`clickbox ps` lists the boxes, `clickbox service show {service}` the functions that joined service {service}"
            ),
            _ => "`clickbox ps` lists the boxes".into(),
        },
        ErrorReason::NoSwitch => "`clickbox switch ls` lists the switches".into(),
        ErrorReason::NoPort => {
            let port = subject.split('/').nth(2).unwrap_or_default();
            match port.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')) {
                // Options of commands allow this, and stack files do not.
                Some(alone) => format!("write the port without its switch: {alone}"),
                None => format!("`clickbox port ls {name}` lists its ports"),
            }
        }
        ErrorReason::NoBoxPort => format!("`clickbox show {name}` lists its ports"),
        ErrorReason::NoStack => "`clickbox stacks` lists the stacks".into(),
        ErrorReason::NoService => "`clickbox service ls` lists the services".into(),
        ErrorReason::NoChain => "`clickbox chain ls` lists the chains".into(),
        ErrorReason::Instance => format!(
            "use `clickbox service scale {name} N`, `clickbox service reload {name} FILE` or `clickbox service rm {name}`"
        ),
        ErrorReason::NoHandler => format!("`clickbox handlers {name}` lists its handlers"),
        ErrorReason::NoFile => format!("`clickbox files {name}` lists its files"),
        ErrorReason::Unconfirmed => {
            format!(
                "`clickbox confirm {name}` keeps the new state, `clickbox rollback {name}` restores the old one"
            )
        }
        ErrorReason::NoRight | ErrorReason::Quota => return None,
        ErrorReason::InUse if subject.starts_with("box/") => {
            format!("stop it first (`clickbox stop {name}`), or add --force")
        }
        ErrorReason::InUse if subject == "daemon" => "add --force to restart it anyway".into(),
        ErrorReason::InUse if subject.starts_with("service/") => {
            "change its chains (`clickbox chain set`), or add --force, which removes them too".into()
        }
        ErrorReason::Draining => "`clickbox fabric drain --cancel` ends this".into(),
        ErrorReason::InUse => "add --force to remove it anyway".into(),
        ErrorReason::NoProcessor => "leave out --dedicated, or remove a box that has it".into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_commands() {
        let reply = |code, reason, subject: &str, message: &str| {
            let subject = Some(subject.to_string());
            CommandError::Client(ClientError::Api(ApiError {
                reason,
                subject,
                ..ApiError::new(code, message)
            }))
        };
        let error = reply(
            ErrorCode::NotFound,
            Some(ErrorReason::NoPort),
            "switch/lan/tap0",
            "switch lan has no port tap0",
        );
        assert_eq!(error.text(), "switch lan has no port tap0; `clickbox port ls lan` lists its ports");
        let message = "switch lan has no port lan.tap0";
        let error = reply(ErrorCode::NotFound, Some(ErrorReason::NoPort), "switch/lan/lan.tap0", message);
        assert_eq!(error.text(), "switch lan has no port lan.tap0; write the port without its switch: tap0");
        let no_box = |name: &str| {
            reply(ErrorCode::NotFound, Some(ErrorReason::NoBox), &format!("box/{name}"), "no box").text()
        };
        assert_eq!(no_box("fw"), "no box; `clickbox ps` lists the boxes");
        assert!(no_box("nf-2").ends_with("`clickbox service show nf` the functions that joined service nf"));
        let error = reply(ErrorCode::Busy, Some(ErrorReason::Unknown), "box/fw", "box fw sleeps");
        assert_eq!(error.text(), "box fw sleeps");
        let error = ApiError::new(ErrorCode::Forbidden, "the token is missing or wrong");
        let error = CommandError::Client(ClientError::Api(error));
        assert!(error.text().ends_with("or set $CLICKBOX_TOKEN"));
    }
}
