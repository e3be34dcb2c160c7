//! Checks configurations, each in a box of its own that is then discarded.

use super::state::Fabric;
use crate::boxes::report;
use crate::diagnostics::{diagnostics, remarks};
use crate::error::OperationError;
use crate::limits::{CHECK_MEMORY, INSTALL_TIMEOUT};
use boundary::Request;
use boundary::limits::MAX_PORTS;
use model::{escape, with_causes};
use protocol::fabric::{CheckOutcome, Configuration, RewriteReply};
use sandbox::CallError;

impl Fabric {
    /// The text of a configuration in which elements have other arguments.
    pub(crate) fn rewrite(
        &self,
        configuration: &Configuration,
        changes: &[(String, String)],
    ) -> Result<RewriteReply, OperationError> {
        let _inside = self.0.checks.enter();
        let mut checker = self.0.factory.make_checker(MAX_PORTS, CHECK_MEMORY)?;
        for file in &configuration.files {
            let request = Request::File { name: &file.name, contents: &file.contents.0 };
            checker.call(&request, INSTALL_TIMEOUT).map_err(rewrite_error)?;
        }
        let mut reply = RewriteReply { text: configuration.text.clone(), refused: Vec::new() };
        for (element, arguments) in changes {
            let request = Request::Rewrite { configuration: &reply.text, element, arguments };
            match checker.call(&request, INSTALL_TIMEOUT) {
                Ok(text) => reply.text = String::from_utf8_lossy(&text).into_owned(),
                Err(CallError::Refused(reason)) => {
                    reply.refused.push((element.clone(), escape::text(reason.as_str().as_bytes())));
                }
                Err(error) => return Err(rewrite_error(error)),
            }
        }
        Ok(reply)
    }

    /// A box's diagnostics of a configuration for a box with this number of ports.
    pub(crate) fn check(
        &self,
        configuration: &Configuration,
        ports: usize,
    ) -> Result<CheckOutcome, OperationError> {
        let _inside = self.0.checks.enter();
        let mut checker = self.0.factory.make_checker(ports, CHECK_MEMORY)?;
        let shipped = configuration.files.iter().try_for_each(|file| {
            let request = Request::File { name: &file.name, contents: &file.contents.0 };
            checker.call(&request, INSTALL_TIMEOUT).map(drop)
        });
        let request = Request::Check { configuration: &configuration.text };
        let reply = shipped.and_then(|()| checker.call(&request, INSTALL_TIMEOUT));
        Ok(match reply {
            Ok(reply) => CheckOutcome::Accepted(remarks(&reply)),
            Err(CallError::Rejected(found)) => CheckOutcome::Rejected(diagnostics(found)),
            Err(CallError::Refused(reason) | CallError::Missing(reason)) => {
                CheckOutcome::Failed(escape::text(reason.as_str().as_bytes()))
            }
            Err(CallError::TimedOut) => {
                CheckOutcome::Failed(format!("the check took longer than {} s", INSTALL_TIMEOUT.as_secs()))
            }
            Err(CallError::Ended) => CheckOutcome::Failed(match checker.state() {
                sandbox::State::Ended(end) => {
                    let report = report(&end);
                    format!("the check crashed: {} {}", report.cause, report.message)
                }
                _ => "the check ended without a report".into(),
            }),
            Err(error) => CheckOutcome::Failed(format!("the check failed: {}", with_causes(&error))),
        })
    }
}

/// The error for a configuration that could not be rewritten.
fn rewrite_error(error: CallError) -> OperationError {
    let cause = std::io::Error::other(with_causes(&error));
    OperationError::system("rewrite the configuration", cause)
}
