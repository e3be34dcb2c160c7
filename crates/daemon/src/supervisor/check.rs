//! Checks configurations, each in a box of its own that is then discarded.

use super::state::Supervisor;
use crate::diagnostics::{diagnostics, refusal, remarks};
use crate::error::{OperationError, RequestError};
use crate::limits::{CHECK_MEMORY, INSTALL_TIMEOUT};
use api::{Check, CheckReply, CreateBox, Diagnostic, File, Severity, with_causes};
use boundary::Request;
use sandbox::CallError;

impl Supervisor {
    /// Checks a configuration without running it.
    pub fn check(&self, request: &Check) -> Result<CheckReply, OperationError> {
        super::boxes::check_sizes(&request.configuration, &request.files)?;
        let ports = request.ports.map_or(boundary::limits::MAX_PORTS, usize::from);
        if ports > boundary::limits::MAX_PORTS {
            return Err(RequestError::TooManyPorts(ports).into());
        }
        let source = request.source.as_deref();
        let diagnostics = self.check_in_box(&request.configuration, &request.files, ports, source)?;
        Ok(CheckReply { diagnostics })
    }

    /// Checks the configuration of a box, and returns an error if it has errors.
    pub(super) fn check_for(
        &self,
        definition: &CreateBox,
        text: &str,
        files: &[File],
    ) -> Result<(), OperationError> {
        let ports = definition.ports.len();
        let found = self.check_in_box(text, files, ports, definition.source.as_deref())?;
        match found.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            true => Err(OperationError::Refused(found)),
            false => Ok(()),
        }
    }

    /// A box's diagnostics of a configuration. If the configuration crashes the box or takes too long, this becomes a
    /// diagnostic.
    fn check_in_box(
        &self,
        text: &str,
        files: &[File],
        ports: usize,
        source: Option<&str>,
    ) -> Result<Vec<Diagnostic>, OperationError> {
        let _inside = self.0.checks.enter();
        let mut checker = self.0.factory.make_checker(ports, CHECK_MEMORY)?;
        let shipped = files.iter().try_for_each(|file| {
            let request = Request::File { name: &file.name, contents: &file.contents.0 };
            checker.call(&request, INSTALL_TIMEOUT).map(drop)
        });
        let request = Request::Check { configuration: text };
        let reply = shipped.and_then(|()| checker.call(&request, INSTALL_TIMEOUT));
        let refused = |reason: &str| Ok(vec![refusal(reason, source)]);
        match reply {
            Ok(reply) => Ok(remarks(&reply, source)),
            Err(CallError::Rejected(found)) => Ok(diagnostics(found, source)),
            Err(CallError::Refused(reason) | CallError::Missing(reason)) => refused(reason.as_str()),
            Err(CallError::TimedOut) => {
                refused(&format!("the check took longer than {} s", INSTALL_TIMEOUT.as_secs()))
            }
            Err(CallError::Ended) => match checker.state() {
                sandbox::State::Ended(end) => {
                    let report = crate::boxes::report(&end);
                    refused(&format!("the check crashed: {} {}", report.cause, report.message))
                }
                _ => refused("the check ended without a report"),
            },
            Err(error) => refused(&format!("the check failed: {}", with_causes(&error))),
        }
    }
}
