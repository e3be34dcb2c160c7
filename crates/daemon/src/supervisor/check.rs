//! Checks configurations, each in a box of its own that is then discarded.

use super::lifecycle::with_source;
use super::state::Supervisor;
use crate::error::{OperationError, RequestError};
use api::{Check, CheckReply, ConfigurationName, CreateBox, Diagnostic, File, Owner, Severity, Time};
use protocol::fabric::{CheckOutcome, Configuration, ConfigurationVersion, orders};

impl Supervisor {
    /// Checks a configuration without running it.
    pub fn check(&self, request: &Check) -> Result<CheckReply, OperationError> {
        super::boxes::check_sizes(&request.configuration, &request.files)?;
        let ports = request.ports.map_or(boundary::limits::MAX_PORTS, usize::from);
        if ports > boundary::limits::MAX_PORTS {
            return Err(RequestError::TooManyPorts(ports).into());
        }
        let source = request.source.as_deref();
        let diagnostics =
            self.check_in_box(&Owner::default(), (&request.configuration, &request.files), ports, source)?;
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
        let source = definition.source.as_deref();
        let found = self.check_in_box(&definition.owner, (text, files), ports, source)?;
        match found.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            true => Err(OperationError::Refused(found)),
            false => Ok(()),
        }
    }

    /// A box's diagnostics of a configuration. If the configuration crashes the box or takes too long, this becomes a
    /// diagnostic.
    fn check_in_box(
        &self,
        owner: &Owner,
        (text, files): (&str, &[File]),
        ports: usize,
        source: Option<&str>,
    ) -> Result<Vec<Diagnostic>, OperationError> {
        let configuration = Configuration {
            name: ConfigurationName::main(),
            version: ConfigurationVersion { installed: Time::now(), swaps: 0 },
            text: text.into(),
            files: files.to_vec(),
        };
        let ports = u8::try_from(ports).unwrap_or(u8::MAX);
        let found = match self.fabric_of(owner)?.ask(orders::Check { configuration, ports })? {
            CheckOutcome::Accepted(found) | CheckOutcome::Rejected(found) => found,
            CheckOutcome::Failed(message) => vec![Diagnostic {
                severity: Severity::Error,
                file: None,
                line: None,
                column: None,
                message,
                hint: None,
                related: Vec::new(),
            }],
        };
        Ok(with_source(found, source))
    }
}
