//! Advice for failed calls of the daemon.
//!
//! The daemon and its client report errors in the API's terms. Commands and options are named only here.

use std::io::ErrorKind;

use api::client::{Address, ClientError};
use api::{ApiError, ErrorCode, ErrorReason, with_causes};

/// A failed call in one line: the error, its causes, and advice.
pub(crate) fn explain(error: &ClientError) -> String {
    let text = with_causes(error);
    match hint(error) {
        Some(hint) => format!("{text}; {hint}"),
        None => text,
    }
}

fn hint(error: &ClientError) -> Option<String> {
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

/// Advice for an error that the daemon returned.
fn of_reply(error: &ApiError) -> Option<String> {
    if error.code == ErrorCode::Forbidden {
        return Some("name the token's file with --token-file, or set $CLICKBOX_TOKEN".into());
    }
    let subject = error.subject.as_deref().unwrap_or_default();
    let name = subject.split('/').nth(1).unwrap_or_default();
    Some(match error.reason? {
        ErrorReason::NoBox => "`clickbox ps` lists the boxes".into(),
        ErrorReason::NoSwitch => "`clickbox switch ls` lists the switches".into(),
        ErrorReason::NoPort => format!("`clickbox port ls {name}` lists its ports"),
        ErrorReason::NoBoxPort => format!("`clickbox show {name}` lists its ports"),
        ErrorReason::NoStack => "`clickbox stacks` lists the stacks".into(),
        ErrorReason::NoHandler => format!("`clickbox handlers {name}` lists its handlers"),
        ErrorReason::NoFile => format!("`clickbox files {name}` lists its files"),
        ErrorReason::Unconfirmed => {
            format!(
                "`clickbox confirm {name}` keeps the new state, `clickbox rollback {name}` restores the old one"
            )
        }
        ErrorReason::NoProcessor => "leave out --dedicated, or remove a box that has it".into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_lead_to_commands() {
        let reply = |code, reason, subject: &str, message: &str| {
            let subject = Some(subject.to_string());
            ClientError::Api(ApiError { reason, subject, ..ApiError::new(code, message) })
        };
        let error = reply(
            ErrorCode::NotFound,
            Some(ErrorReason::NoPort),
            "switch/lan/tap0",
            "switch lan has no port tap0",
        );
        assert_eq!(explain(&error), "switch lan has no port tap0; `clickbox port ls lan` lists its ports");
        let error = reply(ErrorCode::Busy, Some(ErrorReason::Unknown), "box/fw", "box fw sleeps");
        assert_eq!(explain(&error), "box fw sleeps");
        let error = ClientError::Api(ApiError::new(ErrorCode::Forbidden, "the token is missing or wrong"));
        assert!(explain(&error).ends_with("or set $CLICKBOX_TOKEN"));
    }
}
